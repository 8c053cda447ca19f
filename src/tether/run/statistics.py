"""The work of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np

from tether._core.state import State
from tether.base.frozen import make_frozen
from tether.base.html import table

__all__ = ["Statistics"]


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
        Points at which traces were compared with the functions themselves. These calls are not
        included in `nfev`.
    t, h, order : ndarray or None
        End, size and order of every accepted step, if every step was stored.

    Examples
    --------
    >>> from tether import solve_dae
    >>> stats = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0]).stats
    >>> len(stats.h) == stats.steps
    True
    >>> int(max(stats.order))
    6
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
    t: np.ndarray | None = field(default=None, repr=False)
    h: np.ndarray | None = field(default=None, repr=False)
    order: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, state: State, seconds: float = 0.0, checks: int = 0,
        history: dict[str, np.ndarray] | None = None,
    ) -> Statistics:
        """Read the counters of the core; `history` has the last three fields."""
        return make_frozen(cls, {
            "steps": state.steps, "nfev": state.nfev, "njev": state.njev, "nlu": state.nlu,
            "iterations": state.iterations, "error_test_failures": state.error_test_failures,
            "convergence_failures": state.convergence_failures,
            "projections": state.projections, "worst_drift": state.worst_drift,
            "seconds": seconds, "checks": checks, **(history or {}),
        })

    def _repr_html_(self) -> str:
        """List the counts for a notebook."""
        counts = [f.name for f in fields(self) if f.repr]
        return table([[name.replace("_", " "), f"{getattr(self, name):.6g}"] for name in counts])
