"""Constraint: a condition that the solution must satisfy at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether.problem.lowlevel import as_low_level

__all__ = ["Constraint", "as_constraints"]


class Constraint:
    """A constraint or invariant, with its Jacobian and its number of values.

    A plain function is enough for `solve_dae`; this class adds a Jacobian, and the number of
    values, which cannot be read off a C function.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` returns one or several values. It may also be a C function
        (`scipy.LowLevelCallable`, Numba cfunc, ctypes pointer) with the arguments
        ``(double t, double *y, double *values)`` and optionally ``void *user_data``.
    jac : callable, optional
        ``jac(t, y, *args)`` returns the matrix of derivatives, one row per value, as an array or in
        any sparse format of SciPy. For a C function it is another C function of the same signature,
        which fills the matrix row by row.
    size : int, optional
        Number of values; needed for a C function.

    Examples
    --------
    >>> from tether import Constraint, solve_dae
    >>> def circle(t, y, yp):
    ...     return [yp[0] + y[1], yp[1] - y[0]]
    >>> radius = Constraint(lambda t, y: y[0]**2 + y[1]**2 - 1, jac=lambda t, y: [2*y[0], 2*y[1]])
    >>> sol = solve_dae(circle, (0, 100), [1.0, 0.0], constraints=radius)
    >>> bool(abs(sol.drift).max() < 1e-14)
    True
    """

    def __init__(
        self, fun: Any, *, jac: Callable[..., Any] | None = None, size: int | None = None
    ) -> None:
        self.fun, self.jac, self.size = fun, jac, size
        self.low_level = as_low_level(fun)
        self.low_level_jac = None if jac is None else as_low_level(jac)
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer))):
            raise TypeError(f"size must be an integer, got {size!r}")
        if self.low_level is not None:
            if size is None or size < 1:
                raise ValueError("size, the number of values, is needed for a C constraint")
            if jac is not None and self.low_level_jac is None:
                raise TypeError("jac of a C constraint must be a C function too")
        elif not callable(fun):
            raise TypeError(f"a constraint must be callable, got {type(fun).__name__}")
        elif jac is not None and (self.low_level_jac is not None or not callable(jac)):
            raise TypeError(f"jac of a constraint must be callable, got {type(jac).__name__}")


def as_constraints(name: str, value: Any) -> list[Constraint]:
    """Read what the user passed as `constraints` or `invariants`."""
    if value is None:
        return []
    items = list(value) if isinstance(value, Sequence) else [value]
    found = []
    for number, item in enumerate(items):
        if isinstance(item, Constraint):
            found.append(item)
            continue
        try:
            found.append(Constraint(item, jac=getattr(item, "jac", None)))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}[{number}]: {error}") from None
    return found
