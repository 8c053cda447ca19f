"""Bridge: a solve as a function of numbers, with its gradient, for packages that differentiate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tether.adjoint import Pullback, vjp
from tether.result.solution import DaeResult
from tether.solve import check_span, check_t_eval, solve_dae
from tether.trace.arguments import ArgumentLayout
from tether.trace.known import is_record

__all__ = ["RunError", "Solve", "TapedRun", "pairs", "replaced"]

ON_FAILURE = ("raise", "nan")
SECOND_ORDER = (
    "solve gives first derivatives only: a gradient through it cannot be differentiated again. "
    "Do not use create_graph=True, hessian or grad of grad; tether.hessian_product computes the "
    "second derivative times a vector"
)


def pairs(value: Any, other: Any, kind: type) -> Iterator[tuple[Any, Any]]:
    """Yield the objects of a type in one structure, each with its counterpart in another.

    Structures are lists, tuples, named tuples and dictionaries.

    Examples
    --------
    >>> from tether.bridge import pairs
    >>> list(pairs([1, {"a": 2.0}], [10, {"a": 20}], float))
    [(2.0, 20)]
    """
    if isinstance(value, kind):
        yield value, other
    elif type(value) is dict:
        for key, part in value.items():
            yield from pairs(part, other[key], kind)
    elif type(value) in (list, tuple) or is_record(type(value)):
        for k, part in enumerate(value):
            yield from pairs(part, other[k], kind)


def replaced(value: Any, kind: type, others: Iterator[Any]) -> Any:
    """Return a structure with its objects of a type replaced by `others`, in order.

    Examples
    --------
    >>> from tether.bridge import replaced
    >>> replaced([1, {"a": 2.0}], float, iter([20]))
    [1, {'a': 20}]
    """
    if isinstance(value, kind):
        return next(others)
    if type(value) is dict:
        return {key: replaced(part, kind, others) for key, part in value.items()}
    if type(value) in (list, tuple) or is_record(type(value)):
        parts = [replaced(part, kind, others) for part in value]
        return parts if type(value) is list else tuple.__new__(type(value), parts)
    return value


class RunError(RuntimeError):
    """A run that was to be differentiated did not reach its end."""


class Solve:
    """A solve as a function of its starting values and arguments.

    Parameters
    ----------
    fun : callable or Problem
        The residual.
    t_span : pair of float
        Start and end.
    t_eval : array_like
        Times at which the values are wanted.
    on_failure : {"raise", "nan"}
        Whether a run that fails raises `RunError`, or warns and gives NaN.
    options : dict
        Further arguments of `solve_dae`.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.bridge import Solve
    >>> decay = Solve(lambda t, y, yp, p: [yp[0] + p["k"] * y[0]], (0, 1), [0.5, 1.0], "raise", {})
    >>> run = decay.taped(np.array([1.0]), ({"k": 2.0},))
    >>> run.y.round(4)
    array([[0.3679, 0.1353]])
    >>> y0_bar, args_bar = run.pull(np.array([[0.0, 1.0]]))
    >>> y0_bar.round(4), round(args_bar[0]["k"], 4)
    (array([0.1353]), -0.1353)
    """

    def __init__(
        self, fun: Any, t_span: Sequence[float], t_eval: Any, on_failure: str,
        options: dict[str, Any],
    ) -> None:
        if on_failure not in ON_FAILURE:
            raise ValueError(f"on_failure must be one of {ON_FAILURE}, got {on_failure!r}")
        if "quadratures" in options:
            raise ValueError(
                "quadratures are not supported here; write the integral of q as a further unknown "
                "y[k], with the equation yp[k] - q = 0"
            )
        if t_eval is None:
            raise ValueError("t_eval must be given: the times at which the solution is returned")
        times = check_t_eval(t_eval, *check_span(t_span))
        assert times is not None
        self.fun, self.t_span, self.times = fun, t_span, times
        self.fails_with_nan, self.options = on_failure == "nan", options

    def values(self, y0: np.ndarray, args: tuple) -> np.ndarray:
        """Return the solution at the times, (n, times)."""
        return self._checked(self._run(solve_dae, y0, args), len(y0))

    def taped(self, y0: np.ndarray, args: tuple, by_y0: bool = True) -> TapedRun:
        """Return the solution at the times, with what takes derivatives back through the run.

        Derivatives with respect to y0 are zero unless `by_y0` is set.
        """
        own = ArgumentLayout(args).own if args else 0
        wanted = ("all" if by_y0 else "args") if own else "y0"
        sol, pullback = self._run(vjp, y0, args, wrt=wanted)
        y = self._checked(sol, len(y0))
        size = len(y0) * (sol.stats.steps + 1)
        return TapedRun(y, args, own, pullback, self.fails_with_nan, size)

    def _run(self, solver: Callable[..., Any], y0: np.ndarray, args: tuple, **more: Any) -> Any:
        return solver(
            self.fun, self.t_span, y0, args=args, t_eval=self.times, **self.options, **more
        )

    def _checked(self, sol: DaeResult, n: int) -> np.ndarray:
        """Return the values of a run, which fails if it has not reached the last of the times."""
        if sol.success and len(sol.t) == len(self.times):
            return np.ascontiguousarray(sol.y)
        text = f"the run failed: {sol.message}" if not sol.success else (
            f"the run ended before the last time of t_eval, {self.times[-1]:.6g}: {sol.message}"
        )
        if not self.fails_with_nan:
            raise RunError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return np.full((n, len(self.times)), np.nan)


class TapedRun:
    """The values of a run, and how they depend on its starting values and arguments.

    Attributes
    ----------
    y : ndarray, shape (n, times)
        The solution.
    size : int
        Number of values in all steps of the run.
    """

    def __init__(
        self, y: np.ndarray, args: tuple, own: int, pullback: Pullback, fails_with_nan: bool,
        size: int,
    ) -> None:
        self.y, self._args, self._own, self.size = y, args, own, size
        self._pullback, self._fails_with_nan = pullback, fails_with_nan

    def pull(self, y_bar: np.ndarray) -> tuple[np.ndarray, tuple]:
        """Return derivatives of a scalar with respect to y0 and args, from those w.r.t. y.

        The derivatives with respect to args are a copy of args with its floats replaced.
        """
        known = np.isfinite(self.y).all() and np.isfinite(y_bar).all()
        if known or not self._fails_with_nan:
            found = self._pullback(y_bar)
        else:
            found = np.full(len(self._pullback.names), np.nan)
        layout = ArgumentLayout(self._args, fixed=not self._own)
        by_y0 = found[self._own :] if len(found) > self._own else np.zeros(len(self.y))
        return by_y0, layout.replace(self._args, lambda i: float(found[i]))
