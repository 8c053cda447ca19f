"""Constraints and invariants: what the user passes, checked and ready for the core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether._core import constraints as core
from tether._core import project
from tether._core.adapters import raise_users
from tether._core.state import State
from tether.lowlevel import as_low_level, capsule_address
from tether.options import Options

__all__ = ["Constraint"]

SIGNATURE = "(double, double *, double *[, void *])"


class Constraint:
    """A constraint or invariant with what is known about it.

    A plain function is enough for `solve_dae`; this class adds a Jacobian, and the number of
    values, which a C function cannot tell.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` returns one or several values. It may also be a C function
        (`scipy.LowLevelCallable`, Numba cfunc, ctypes pointer) with the arguments
        ``(double t, double *y, double *values)`` and optionally ``void *user_data``.
    jac : callable, optional
        ``jac(t, y, *args)`` returns the matrix of derivatives, one row per value; for a C
        function another C function of the same signature that fills it row by row.
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


class Constraints:
    """All constraints and invariants of a problem."""

    def __init__(self, constraints: Any, invariants: Any) -> None:
        self.constraints = as_constraints("constraints", constraints)
        self.invariants = as_constraints("invariants", invariants)

    @property
    def all(self) -> list[Constraint]:
        """Constraints first, then invariants."""
        return self.constraints + self.invariants

    def attach(
        self, state: State, t: float, y: np.ndarray, args: tuple, options: Options
    ) -> None:
        """Let the state hold the constraints; sizes come from a first call at (t, y)."""
        if not self.all:
            return
        pieces: list[core.PythonPiece | None] = []
        starts = [0]
        functions, jacobians, data = [], [], []
        for name, item in self._named():
            size = item.size or _size_of(name, item, t, y, args)
            starts.append(starts[-1] + size)
            if item.low_level is not None:
                function, user_data = capsule_address(item.low_level, SIGNATURE, name)
                functions.append(function)
                data.append(user_data)
                jacobians.append(_jacobian_address(name, item, user_data))
                pieces.append(None)
            else:
                functions.append(0)
                data.append(-1)
                jacobians.append(0)
                pieces.append(core.PythonPiece(item.fun, item.jac, len(y), size, args))
        core.use_python_pieces(state)
        state.constrain(pieces, starts, functions, jacobians, data)
        state.pieces_have_jacobians = all(item.jac is not None for item in self.all)
        state.project_before_test = options.projection_placement == "before"
        state.projection_power = float(options.projection_power)
        if options.projection_solver == "orthogonal":
            project.use_orthogonal(state)
        elif options.projection_solver == "cholesky":
            project.use_cholesky(state)
        else:
            from tether.linear.compound import CompoundSystem

            project.use_sparse(state, CompoundSystem())

    def set_references(self, state: State, t: float, y: np.ndarray) -> None:
        """Take the invariants' values at (t, y) as those to keep."""
        if not self.invariants:
            return
        reference = state.array("g_reference")
        reference[:] = 0.0
        _, values = core.constraints_at(state, t, y)
        raise_users(state)
        first = state.array("piece_start")[len(self.constraints)]
        reference[first:] = values[first:]

    def name_of(self, state: State, row: int) -> str:
        """Name of one row of G: which constraint or invariant, and which of its values."""
        piece = int(np.searchsorted(state.array("piece_start"), row, side="right")) - 1
        name = list(self._named())[piece][0]
        return f"{name}, value {row - state.array('piece_start')[piece]}"

    def _named(self) -> list[tuple[str, Constraint]]:
        return [
            (f"{kind}[{number}]", item)
            for kind, items in (("constraints", self.constraints), ("invariants", self.invariants))
            for number, item in enumerate(items)
        ]


def _jacobian_address(name: str, item: Constraint, user_data: int) -> int:
    """Address of a C Jacobian, which is called with the user data of its function."""
    if item.low_level_jac is None:
        return 0
    address, own_data = capsule_address(item.low_level_jac, SIGNATURE, f"{name}.jac")
    if own_data != user_data:
        raise ValueError(f"{name}.jac must take the same user data as {name}, or both none")
    return address


def _size_of(name: str, item: Constraint, t: float, y: np.ndarray, args: tuple) -> int:
    values = np.asarray(item.fun(t, y.copy(), *args))
    if values.ndim > 1 or values.size == 0 or values.dtype.kind not in "fiub":
        raise ValueError(f"{name} must return a real number or a vector of them, got {values!r}")
    return values.size
