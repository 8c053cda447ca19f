"""Loss: a number computed from a solution, and its derivatives with respect to the solution."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core.plain import Plain
from tether.sensitivity.differences import gradient_of
from tether.trace import cache_key, jacobian, trace
from tether.trace.emit import NoProgram, Program
from tether.trace.tracer import TraceFailure

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["LossSlopes", "SolutionValues", "slopes_of_loss"]

# How many programs of losses are kept.
MAX_PROGRAMS_KEPT = 64
_known: dict[Any, tuple[Program, list[int]] | None] = {}


@dataclass(frozen=True, eq=False)
class SolutionValues:
    """The argument of a loss: values of a solution, under the names that a `DaeResult` has.

    Attributes
    ----------
    t : ndarray, shape (nt,)
        Times.
    y : ndarray, shape (n, nt)
        Solution.
    quadratures : ndarray, shape (m, nt), or None
        Integrals.
    t_events, y_events : list of ndarray or None
        Times of each event and the values there.
    names : tuple of str
        Names of the unknowns: ``sol["voltage"]`` is a row of y.
    """

    t: np.ndarray
    y: Any
    quadratures: Any
    t_events: Any
    y_events: Any
    names: tuple[str, ...]

    def __getitem__(self, key: str | int) -> Any:
        """Return an unknown by name or number."""
        if isinstance(key, str) and key not in self.names:
            raise KeyError(f"there is no unknown {key!r}; there are {', '.join(self.names)}")
        return self.y[self.names.index(key) if isinstance(key, str) else key]

    def __getattr__(self, name: str) -> Any:
        """Refuse other attributes, and name those that there are."""
        raise AttributeError(
            f"a loss cannot use sol.{name}, only sol.t, sol.y, sol['name'], sol.names, "
            "sol.quadratures, sol.t_events and sol.y_events"
        )


@dataclass(frozen=True, eq=False)
class LossSlopes:
    """A loss and its derivatives with respect to the values of the solution."""

    value: float
    by_y: np.ndarray                           # (n + m, nt): rows of integrals come last
    by_t_events: list[np.ndarray]              # for every event: (occurrences,)
    by_y_events: list[np.ndarray]              # for every event: (occurrences, n)


def slopes_of_loss(loss: Callable[..., Any], sol: DaeResult) -> LossSlopes:
    """Differentiate a loss: exactly if it can be traced, by differences if not.

    If a loss returns a pair, its value and its derivative with respect to y, that is taken.
    """
    layout = _Layout(sol)
    x = layout.flat
    found = loss(layout.view(x))
    if isinstance(found, tuple) and len(found) == 2:
        by_y = np.asarray(found[1], float)
        if by_y.shape != sol.y.shape:
            raise ValueError(
                f"loss returned a derivative of shape {by_y.shape}, but y has {sol.y.shape}"
            )
        value, gradient = _number(found[0]), np.zeros(len(x))
        gradient[: by_y.size] = by_y.ravel()
    else:
        value = _number(found)
        gradient = _gradient(loss, layout, x, value)
    if not np.isfinite(gradient).all():
        raise ValueError(f"the derivative of loss is not finite where loss = {value:.6g}")
    return layout.split(value, gradient)


def _number(found: Any) -> float:
    if np.size(found) != 1 or np.asarray(found).dtype.kind not in "fiu":
        raise TypeError(f"loss must return a real number, got {found!r}")
    value = float(np.ravel(found)[0])
    if not math.isfinite(value):
        raise ValueError(f"loss is {value}: it has no derivative there")
    return value


def _gradient(
    loss: Callable[..., Any], layout: _Layout, x: np.ndarray, value: float
) -> np.ndarray:
    found = _traced(loss, layout, len(x))
    if found is None:
        return gradient_of(
            lambda at: _number(loss(layout.view(at))), x, np.where(x == 0.0, 1.0, np.abs(x))
        )
    program, columns = found
    values = Plain(program).values(0.0, x, x)
    if not math.isclose(values[0], value, rel_tol=1e-9, abs_tol=1e-300):
        raise ValueError(
            f"loss gave {value:.6g}, and {values[0]:.6g} when it was traced: it depends on more "
            "than the solution"
        )
    gradient = np.zeros(len(x))
    gradient[columns] = values[1:]
    return gradient


def _traced(
    loss: Callable[..., Any], layout: _Layout, size: int
) -> tuple[Program, list[int]] | None:
    """Program of a loss and its nonzero derivatives, and their columns; None if called.

    It is kept, and used as long as nothing changes that the loss depends on.
    """
    key = cache_key(loss, size), layout.key
    if key[0] is not None and key in _known:
        return _known[key]

    def residual(t: float, y: Any, yp: Any) -> list[Any]:
        found = loss(layout.view(y))
        return [np.ravel(found)[0] if isinstance(found, np.ndarray) else found]

    found = None
    try:
        traced = trace(residual, size, size=1)
        slopes = jacobian(traced.graph, traced.outputs, traced.unknowns())
        program = traced.program([*traced.outputs, *slopes.nodes], opaque=True)
        found = program, slopes.cols
    except (TraceFailure, NoProgram):
        pass
    if key[0] is not None:
        if len(_known) == MAX_PROGRAMS_KEPT:
            _known.clear()
        _known[key] = found
    return found


class _Layout:
    """The values of a solution as one vector."""

    def __init__(self, sol: DaeResult) -> None:
        self._t, self._names, self._n = sol.t, sol.names, len(sol.y)
        rows = sol.y if sol.quadratures is None else np.concatenate([sol.y, sol.quadratures])
        self._shape = rows.shape
        self._has_events = sol.t_events is not None
        self.key = sol.t.tobytes(), self._names, self._shape, self._has_events
        self._times = [len(t) for t in sol.t_events or ()]
        parts = [rows.ravel(), *(sol.t_events or ())]
        parts += [np.ravel(y) for y in sol.y_events or ()]
        self.flat = np.concatenate(parts).astype(float)

    def view(self, x: Any) -> SolutionValues:
        """Return the values in a vector under their names."""
        rows, t_events, y_events = self._cut(x)
        rows, n = rows.reshape(self._shape), self._n
        return SolutionValues(
            self._t, rows[:n], rows[n:] if n < len(rows) else None,
            t_events if self._has_events else None, y_events if self._has_events else None,
            self._names,
        )

    def _cut(self, x: Any) -> tuple[Any, list[Any], list[Any]]:
        n, size = self._n, self._shape[0] * self._shape[1]
        place, t_events, y_events = size, [], []
        for count in self._times:
            t_events.append(x[place : place + count])
            place += count
        for count in self._times:
            y_events.append(x[place : place + count * n].reshape(count, n))
            place += count * n
        return x[:size], t_events, y_events

    def split(self, value: float, gradient: np.ndarray) -> LossSlopes:
        """Return derivatives in the shapes of the values."""
        y, t_events, y_events = self._cut(gradient)
        return LossSlopes(value, y.reshape(self._shape), t_events, y_events)
