"""What a run returns: the solution, the polynomial through it, and the work it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether._core import interpolate
from tether._core.state import State
from tether.diagnosis import Diagnosis
from tether.frozen import made
from tether.start.consistent import Start
from tether.status import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.structure.report import IndexReport

__all__ = ["DaeResult", "Interpolant", "LocalInterpolant", "Statistics"]


@dataclass(frozen=True, eq=False)
class Statistics:
    """Work of a run.

    Attributes
    ----------
    steps : int
        Accepted steps.
    nfev, njev, nlu : int
        Residuals (those for differences and for the check of the result included), Jacobians,
        factorisations.
    iterations : int
        Newton iterations.
    error_test_failures, convergence_failures : int
        Attempts at a step that were repeated, by cause.
    projections : int
        Projections onto the constraints.
    worst_drift : float
        Largest residual of any constraint after any step.
    seconds : float
        Time of the integration.
    checks : int
        Points at which what was traced was compared with the functions themselves. These calls are
        not part of `nfev`.
    t, h, order : ndarray or None
        End, size and order of every accepted step, when every step was kept.

    Examples
    --------
    >>> from tether import solve_dae
    >>> stats = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0]).stats
    >>> len(stats.h) == stats.steps
    True
    >>> int(max(stats.order))
    5
    """

    steps: int
    nfev: int
    njev: int
    nlu: int
    iterations: int
    error_test_failures: int
    convergence_failures: int
    projections: int = 0
    worst_drift: float = 0.0
    seconds: float = 0.0
    checks: int = 0
    t: np.ndarray | None = None
    h: np.ndarray | None = None
    order: np.ndarray | None = None

    @classmethod
    def of(cls, state: State, **more: Any) -> Statistics:
        """Read the counters of the core."""
        return made(
            cls, steps=state.steps, nfev=state.nfev, njev=state.njev, nlu=state.nlu,
            iterations=state.iterations, error_test_failures=state.error_test_failures,
            convergence_failures=state.convergence_failures, projections=state.projections,
            worst_drift=state.worst_drift, **more,
        )


def _as_times(t: ArrayLike) -> np.ndarray:
    if np.ndim(t) > 1:
        raise ValueError(f"t must be a number or a vector, got shape {np.shape(t)}")
    return np.ascontiguousarray(np.atleast_1d(t), float)


class LocalInterpolant:
    """The polynomial over one step: ``interpolant(t) -> (y, yp)``."""

    def __init__(self, t: float, k: int, psi: np.ndarray, phi: np.ndarray) -> None:
        self.t, self.k, self.t_old = t, k, t - psi[1]
        self._psi, self._phi = psi, phi
        self._n = len(phi) // (k + 1)

    def restricted(self, n: int) -> LocalInterpolant:
        """Return the polynomial of the first n unknowns."""
        if n == self._n:
            return self
        part = np.ascontiguousarray(self._phi.reshape(self.k + 1, self._n)[:, :n]).ravel()
        fewer = LocalInterpolant(self.t, self.k, self._psi, part)
        fewer.t_old = self.t_old
        return fewer

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""
        times = _as_times(t)
        y, yp = np.empty((2, len(times), self._n))
        interpolate.evaluate_at(times, self.t, self.k, self._psi, self._phi, y, yp)
        return (y[0], yp[0]) if np.ndim(t) == 0 else (y.T, yp.T)


class Interpolant:
    """The solution between the steps: ``sol(t) -> (y, yp)``.

    Over the step that ends at t_n with order k the solution is the polynomial of degree k
    through the last k + 1 points; it is rebuilt from the stored points when asked for.
    At a time where an event changed the state the value before the change is returned.

    Parameters
    ----------
    t : ndarray, shape (nt,)
        Times of the steps.
    y : ndarray, shape (nt, n)
        Solution there.
    k : ndarray, shape (nt,)
        Degree of the polynomial that ends there; zero where the integration (re)started, negative
        where it went on smoothly with other equations from the point before.

    Examples
    --------
    >>> from tether import solve_dae
    >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], dense_output=True).sol
    >>> y, yp = sol(0.5)
    >>> print(round(float(y[0]), 4), round(float(yp[0]), 4))
    0.6065 -0.6065
    >>> sol([0.25, 0.5, 0.75])[0].shape
    (1, 3)
    """

    def __init__(self, t: np.ndarray, y: np.ndarray, k: np.ndarray) -> None:
        kept = k >= 0                  # polynomials reach back over a smooth change
        self._t, self._y, self._k = t, y, k
        if not kept.all():
            self._t, self._y, self._k = t[kept], np.ascontiguousarray(y[kept]), k[kept]
        rows = np.arange(len(self._k))
        since = rows - np.maximum.accumulate(np.where(self._k == 0, rows, 0))
        self._k = np.minimum(self._k, since)           # a start may have a history of its own
        self._direction = 1.0 if t[-1] >= t[0] else -1.0
        self._forward = self._direction * self._t

    @property
    def t_min(self) -> float:
        """Smallest time covered."""
        return float(min(self._t[0], self._t[-1]))

    @property
    def t_max(self) -> float:
        """Largest time covered."""
        return float(max(self._t[0], self._t[-1]))

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""
        times = _as_times(t)
        slack = 8 * np.finfo(float).eps * max(abs(self.t_min), abs(self.t_max))
        if not np.all((times >= self.t_min - slack) & (times <= self.t_max + slack)):
            raise ValueError(f"t must lie within [{self.t_min}, {self.t_max}], got {t!r}")
        # the first step that ends at or after the time; row 0 ends no step
        rows = np.searchsorted(self._forward, self._direction * times, side="left")
        rows = np.clip(rows, 1, len(self._t) - 1)
        y, yp = np.empty((2, len(times), self._y.shape[1]))
        by_row = np.argsort(rows, kind="stable")
        for inside in np.split(by_row, np.flatnonzero(np.diff(rows[by_row])) + 1):
            end = int(rows[inside[0]]) if len(inside) else 1
            if self._k[end] == 0:      # a restart ends no step; none may follow it
                end += 1 if end + 1 < len(self._t) else -1
            psi, phi = interpolate.polynomial_through(self._t, self._y, end, int(self._k[end]))
            y_part, yp_part = np.empty((2, len(inside), y.shape[1]))
            interpolate.evaluate_at(
                times[inside], self._t[end], int(self._k[end]), psi, phi, y_part, yp_part
            )
            y[inside], yp[inside] = y_part, yp_part
        return (y[0], yp[0]) if np.ndim(t) == 0 else (y.T, yp.T)


@dataclass(frozen=True, eq=False)
class DaeResult:
    """Solution of a DAE, with SciPy's names and shapes.

    Attributes
    ----------
    t : ndarray, shape (nt,)
        Times: every accepted step, or `t_eval`.
    y, yp : ndarray, shape (n, nt)
        Solution and derivative.
    sol : Interpolant or None
        ``sol(t) -> (y, yp)``, with ``dense_output=True``.
    t_events, y_events, yp_events : list of ndarray or None
        Times of each event and the values there.
    nfev, njev, nlu : int
        Residuals (those for differences included), Jacobians, factorisations.
    status : Status
        How the run ended; negative is a failure.
    message : str
        The same in words, with a remedy.
    success : bool
        Whether the run reached its goal.
    start : Start
        Starting values and what was changed to get them.
    stats : Statistics
        Work of the run.
    how : str
        How the equations were run: traced or called, as written or reduced.
    warnings : tuple of str
        What is doubtful about a result that was reached, and where a trace turned out to differ
        from its function, so that the run was repeated; empty for almost all.
    drift : ndarray, shape (m, nt) or None
        Residual of the constraints, and of the invariants less their starting values, at `t`. First
        those found in the equations, then those given. Where the structure of the equations
        changed on the way, rows of found constraints that did not exist at a time are NaN there.

    Examples
    --------
    >>> from tether import solve_dae
    >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], t_eval=[0, 0.5, 1])
    >>> sol.success, sol.status
    (True, <Status.REACHED_END: 0>)
    >>> sol.y.round(4).tolist()
    [[1.0, 0.6065, 0.3679]]
    """

    t: np.ndarray
    y: np.ndarray = field(repr=False)
    yp: np.ndarray = field(repr=False)
    sol: Interpolant | None = field(repr=False)
    t_events: list[np.ndarray] | None
    y_events: list[np.ndarray] | None = field(repr=False)
    yp_events: list[np.ndarray] | None = field(repr=False)
    status: Status
    message: str
    start: Start = field(repr=False)
    stats: Statistics = field(repr=False)
    drift: np.ndarray | None = field(default=None, repr=False)
    how: str = field(default="", repr=False)
    analysis: Callable[[], IndexReport] | None = field(default=None, repr=False)
    verdict: Diagnosis | Callable[[], Diagnosis] | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Why a run failed, where, and what to do next; ``print`` it."""
        return self.verdict() if callable(self.verdict) else self.verdict

    @cached_property
    def index(self) -> IndexReport | None:
        """What kind of DAE it is; worked out when asked for."""
        return None if self.analysis is None else self.analysis()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the functions behind: a report that was not asked for cannot be pickled."""
        return self.__dict__ | {"analysis": None, "verdict": self.diagnosis}

    @property
    def success(self) -> bool:
        """Whether the run reached its goal."""
        return not self.status.failed

    @property
    def nfev(self) -> int:
        """Number of residuals."""
        return self.stats.nfev

    @property
    def njev(self) -> int:
        """Number of Jacobians."""
        return self.stats.njev

    @property
    def nlu(self) -> int:
        """Number of factorisations."""
        return self.stats.nlu

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' between the steps; needs ``dense_output=True``."""
        if self.sol is None:
            raise ValueError(
                "there is no dense output: solve with dense_output=True, and past the first step"
            )
        return self.sol(t)

    def __str__(self) -> str:
        """Summarise the run in a few lines."""
        from tether.summary import summary

        return summary(self)

    def plot(self, **options: Any) -> Figure:
        """Plot states, step size and order; see `tether.plot.plot_solution`."""
        from tether.plot import plot_solution

        return plot_solution(self, **options)
