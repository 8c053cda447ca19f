"""A solve as a differentiable function of PyTorch (optional: ``pip install torch``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tether.base.optional import load_optional
from tether.bridge import SECOND_ORDER, Solve, TapedRun, pairs, replaced

__all__ = ["solve"]


def solve(
    fun: Any,
    t_span: Sequence[float],
    y0: Any,
    args: Sequence[Any] = (),
    *,
    t_eval: Any,
    on_failure: str = "raise",
    **options: Any,
) -> Any:
    """Solve F(t, y, y') = 0; the result can be differentiated by PyTorch.

    Parameters
    ----------
    fun : callable or Problem
        The residual ``fun(t, y, yp, *args)``, written with NumPy as for `tether.solve_dae`.
    t_span : pair of float
        Start and end.
    y0 : tensor or array_like, shape (n,)
        Starting values.
    args : sequence
        Further arguments of `fun`: tensors, numbers, and lists, tuples and dictionaries of them.
        `fun` gets tensors as NumPy arrays, and those of zero dimensions as floats.
    t_eval : array_like
        Times at which the solution is returned.
    on_failure : {"raise", "nan"}
        What happens if the run fails, or ends before the last of the times: either a RuntimeError
        says why, or a warning does, and the values and their derivatives are NaN.
    **options
        Further arguments of `solve_dae`, such as `rtol`, `atol`, `events` and `start`.

    Returns
    -------
    tensor, shape (n, len(t_eval))
        The solution, in the widest of the float types of the tensors passed and on the device of
        the first; the run itself is always in double precision and on the CPU.

    Notes
    -----
    Derivatives with respect to `y0` and all tensors in `args` come from running the accepted steps
    backwards (`tether.vjp`). There are no second derivatives.

    Examples
    --------
    >>> import torch, tether.torch
    >>> k = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    >>> y = tether.torch.solve(lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0], (k,),
    ...                        t_eval=[1.0], rtol=1e-8, atol=1e-10)
    >>> y.sum().backward()
    >>> round(k.grad.item(), 6)                          # -exp(-k)
    -0.135335
    """
    torch = load_optional("torch", "tether.torch")
    run = Solve(fun, t_span, t_eval, on_failure, options)
    form = y0, args
    tensors = [x for x, _ in pairs(form, form, torch.Tensor)]
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        by_y0 = any(x.requires_grad for x, _ in pairs(y0, y0, torch.Tensor))
        return _differentiable().apply(_Call(run, form, by_y0), *tensors)
    return _like(torch, run.values(*_numbers(torch, form, tensors)), tensors)


@dataclass(eq=False)
class _Call:
    """One solve, with y0 and the arguments as they were passed, and what its gradient needs."""

    run: Solve
    form: tuple[Any, Any]
    by_y0: bool                                # whether derivatives with respect to y0 are wanted
    taped: TapedRun | None = None


@cache
def _differentiable() -> Any:
    """Make the function that PyTorch differentiates."""
    torch = load_optional("torch", "tether.torch")

    class Solution(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """The values of a run."""

        @staticmethod
        def forward(call: _Call, *tensors: Any) -> Any:
            call.taped = call.run.taped(*_numbers(torch, call.form, tensors), call.by_y0)
            return _like(torch, call.taped.y, tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.call = inputs[0]
            ctx.save_for_backward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, y_bar: Any) -> tuple:
            return None, *Slopes.apply(ctx.call, y_bar, *ctx.saved_tensors)

    class Slopes(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """The gradient, as a function of all inputs, so that differentiating it again raises."""

        @staticmethod
        def forward(call: _Call, y_bar: Any, *tensors: Any) -> tuple:
            assert call.taped is not None
            bars = call.taped.pull(_as_array(y_bar))
            found = [bar for _, bar in pairs(call.form, bars, torch.Tensor)]
            return tuple(
                torch.as_tensor(np.asarray(bar, float)).to(x) if x.is_floating_point() else None
                for x, bar in zip(tensors, found, strict=True)
            )

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *bars: Any) -> tuple:
            raise NotImplementedError(SECOND_ORDER)

    return Solution


def _numbers(torch: Any, form: tuple, tensors: Sequence[Any]) -> tuple[np.ndarray, tuple]:
    """Return y0 and the arguments with numbers and arrays in the places of tensors."""
    y0, args = replaced(form, torch.Tensor, iter([_as_number(x) for x in tensors]))
    return np.array(y0, float), args


def _as_array(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().double().numpy()


def _as_number(tensor: Any) -> Any:
    """Return what `fun` gets for a tensor: a number if it has no dimensions, else a copy."""
    if tensor.ndim == 0:
        return tensor.item()
    found = _as_array(tensor) if tensor.is_floating_point() else tensor.detach().cpu().numpy()
    return found.copy()


def _like(torch: Any, values: np.ndarray, tensors: Sequence[Any]) -> Any:
    """Return values as a tensor, of the type and on the device of those that were passed."""
    floats = [x for x in tensors if x.is_floating_point()]
    kind = torch.float64
    if floats:
        kind = floats[0].dtype
        for x in floats[1:]:
            kind = torch.promote_types(kind, x.dtype)
    found = torch.as_tensor(values, dtype=kind)
    return found.to(tensors[0].device) if tensors else found
