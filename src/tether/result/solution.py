"""What a run returns: the solution, the polynomial through it, and the work it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.status import Status
from tether.explain.diagnosis import Diagnosis
from tether.result.plot import plot_solution
from tether.result.summary import summary
from tether.run.jumps import Jumped
from tether.run.method import DenseOutput
from tether.run.statistics import Statistics
from tether.structure.start import Start

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.explain.report import IndexReport

__all__ = ["DaeResult"]


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
    jumps : tuple of Jumped
        Where unknowns with a derivative jumped, at the start or on the way: when, by how much, and
        the impulses that go with it.
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
    sol: DenseOutput | None = field(repr=False)
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
    jumps: tuple[Jumped, ...] = ()

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
        return summary(self)

    def plot(self, **options: Any) -> Figure:
        """Plot states, step size and order; see `tether.result.plot.plot_solution`."""
        return plot_solution(self, **options)
