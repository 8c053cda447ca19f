"""A solve as a differentiable function of JAX (optional: ``pip install jax``)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tether.base.optional import load_optional
from tether.bridge import SECOND_ORDER, Solve, TapedRun, pairs, replaced

__all__ = ["solve"]

# How many runs, and values in them, are kept for gradients; the last run is kept in any case.
MAX_RUNS, MAX_VALUES = 100, 5_000_000


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
    """Solve F(t, y, y') = 0; the result can be differentiated by JAX.

    It works under `jax.grad`, `jax.jit` and `jax.vmap`; the last solves one member after another.

    Parameters
    ----------
    fun : callable or Problem
        The residual ``fun(t, y, yp, *args)``, written with NumPy as for `tether.solve_dae`.
    t_span : pair of float
        Start and end.
    y0 : array_like, shape (n,)
        Starting values.
    args : sequence
        Further arguments of `fun`: arrays, numbers, and lists, tuples and dictionaries of them.
        `fun` gets JAX's arrays as NumPy arrays, and those of zero dimensions as floats.
    t_eval : array_like
        Times at which the solution is returned.
    on_failure : {"raise", "nan"}
        What happens if the run fails, or ends before the last of the times: either an exception
        says why (wrapped in one of JAX's own under `jax.jit`), or a warning does, and the values
        and their derivatives are NaN.
    **options
        Further arguments of `solve_dae`, such as `rtol`, `atol`, `events` and `start`.

    Returns
    -------
    jax.Array, shape (n, len(t_eval))
        The solution, in the widest of the float types of the JAX arrays passed. The run itself is
        always in double precision; ``jax.config.update("jax_enable_x64", True)`` keeps its digits.

    Notes
    -----
    Derivatives with respect to `y0` and all float arrays in `args` come from running the accepted
    steps backwards (`tether.vjp`). There are no second derivatives, and no forward mode.

    Examples
    --------
    >>> import jax, tether.jax
    >>> def end(k):
    ...     y = tether.jax.solve(lambda t, y, yp, k: [yp[0] + k * y[0]], (0, 1), [1.0], (k,),
    ...                          t_eval=[1.0], rtol=1e-8, atol=1e-10)
    ...     return y[0, 0]
    >>> round(float(jax.grad(end)(2.0)), 5)              # -exp(-k)
    -0.13534
    """
    jax = load_optional("jax", "tether.jax")
    for name, value in (("t_span", t_span), ("t_eval", t_eval)):
        if _are_traced(jax, value):
            raise TypeError(
                f"{name} must be concrete numbers: a solution is not differentiated with respect "
                "to times, and they cannot be arguments of a function under jax.jit"
            )
    form = y0, args
    arrays = [jax.numpy.asarray(x) for x, _ in pairs(form, form, jax.Array)]
    if len(arrays) < sum(isinstance(x, jax.Array) for x in jax.tree_util.tree_leaves(form)):
        raise TypeError(
            "y0 and args must be arrays, numbers, and lists, tuples and dictionaries of them, but "
            "one of them is an object of another class that contains JAX arrays"
        )
    run = Solve(fun, t_span, t_eval, on_failure, options)
    return _differentiable()(_Host(jax, run, form, arrays), arrays)


@cache
def _differentiable() -> Any:
    """Make the function that JAX differentiates, which calls back the host."""
    jax = load_optional("jax", "tether.jax")

    @partial(jax.custom_jvp, nondiff_argnums=(0, 1))
    def call(method: Any, shapes: Any, *values: Any) -> Any:
        if not _are_traced(jax, values):
            return jax.tree_util.tree_map(jax.numpy.asarray, method(*values))
        return jax.pure_callback(method, shapes, *values, vmap_method="sequential")

    @call.defjvp
    def refuse(method: Any, shapes: Any, values: Any, tangents: Any) -> Any:
        raise NotImplementedError(SECOND_ORDER)

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def solution(host: _Host, arrays: list) -> Any:
        return call(host.values, host.shape, arrays)

    def forward(host: _Host, arrays: list) -> tuple:
        return call(host.taped, host.shape, arrays), arrays

    def backward(host: _Host, arrays: list, y_bar: Any) -> tuple:
        arrays = [jax.numpy.asarray(x) for x in arrays]    # JAX may pass numbers
        shapes = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays if _is_float(x))
        found = iter(call(host.slopes, shapes, arrays, y_bar))
        nothing = jax.dtypes.float0
        return ([next(found) if _is_float(x) else np.zeros(x.shape, nothing) for x in arrays],)

    solution.defvjp(forward, backward)
    return solution


def _are_traced(jax: Any, values: Any) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in jax.tree_util.tree_leaves(values))


class _Host:
    """A solve as functions of arrays, which JAX calls back."""

    def __init__(self, jax: Any, run: Solve, form: tuple[Any, Any], arrays: list[Any]) -> None:
        self._run = run
        # arrays that JAX is tracing must not outlive the call, so placeholders are kept
        self._form = replaced(form, jax.Array, iter([_Place()] * len(arrays)))
        self._by_y0 = any(True for _ in pairs(form[0], form[0], jax.Array))
        kinds = [x.dtype for x in arrays if _is_float(x)]
        kind = jax.numpy.result_type(*(kinds or [float]))
        y0 = form[0]
        n = sum(map(np.size, y0)) if isinstance(y0, (list, tuple)) else np.size(y0)
        self.shape = jax.ShapeDtypeStruct((n, len(run.times)), kind)

    def _numbers(self, arrays: list[Any]) -> tuple[np.ndarray, Any]:
        """Return y0 and the arguments with numbers and arrays in the places of JAX's."""
        y0, args = replaced(self._form, _Place, iter([_as_number(x) for x in arrays]))
        return np.array(y0, float), args

    def values(self, arrays: list[Any]) -> np.ndarray:
        """Return the solution."""
        return self._run.values(*self._numbers(arrays)).astype(self.shape.dtype)

    def taped(self, arrays: list[Any]) -> np.ndarray:
        """Return the solution, and keep what its gradient needs."""
        return self._taped(arrays).y.astype(self.shape.dtype)

    def slopes(self, arrays: list[Any], y_bar: Any) -> tuple[np.ndarray, ...]:
        """Return derivatives with respect to the float arrays."""
        bars = self._taped(arrays).pull(np.asarray(y_bar, float))
        found = [bar for _, bar in pairs(self._form, bars, _Place)]
        return tuple(
            np.asarray(bar, x.dtype) for x, bar in zip(arrays, found, strict=True) if _is_float(x)
        )

    def _taped(self, arrays: list[Any]) -> TapedRun:
        key = self, b"".join([np.asarray(x).tobytes() for x in arrays])
        run = _last_runs.get(key)
        if run is None:
            run = self._run.taped(*self._numbers(arrays), self._by_y0)
            _last_runs.keep(key, run)
        return run


class _LastRuns:
    """Recent runs, whose gradients may be asked for; one that is missing is run again."""

    def __init__(self) -> None:
        self._runs: OrderedDict[Hashable, TapedRun] = OrderedDict()
        self._size, self._lock = 0, threading.Lock()

    def get(self, key: Hashable) -> TapedRun | None:
        """Return a run, if it was kept."""
        with self._lock:
            return self._runs.get(key)

    def keep(self, key: Hashable, run: TapedRun) -> None:
        """Keep a run; drop the oldest ones while there are too many or they are too large."""
        with self._lock:
            self._runs[key] = run
            self._size += run.size
            while len(self._runs) > MAX_RUNS or (
                self._size > MAX_VALUES and len(self._runs) > 1
            ):
                self._size -= self._runs.popitem(last=False)[1].size


_last_runs = _LastRuns()


class _Place:
    """Placeholder for a JAX array in a structure."""


def _is_float(array: Any) -> bool:
    return np.dtype(array.dtype).kind == "f"


def _as_number(array: Any) -> Any:
    """Return what `fun` gets for an array: a number if it has no dimensions, else a copy."""
    found = np.array(array, float) if _is_float(array) else np.array(array)
    return found.item() if found.ndim == 0 else found
