"""The last attempts at a step, as recorded by the core."""

from __future__ import annotations

from functools import cache

import numpy as np

from tether._core import codes
from tether._core.state import State

__all__ = ["read_steps"]

COLUMNS = (
    "t",             # end of the attempt
    "h",             # its size ...
    "order",         # ... and order
    "error",         # norm of the local error over the tolerance; -1: not computed
    "component",     # with the largest error, for attempts that failed the error test; -1: unknown
    "increment",     # weighted size of Newton's first increment
    "rate",          # last measured rate of convergence
    "iterations",    # of Newton, up to the end of this attempt
    "outcome",       # code: 0 accepted, 1 error, 2 Newton, 3 singular, 4 not finite
    "projection",    # weighted size of the move onto the constraints
    "condition",     # of the matrix as last factored, a lower estimate; -1: singular
)
COMPONENT = COLUMNS.index("component")
OUTCOMES = {
    codes.OK: "accepted",
    codes.ERROR_TEST: "error too large",
    codes.NO_CONVERGENCE: "no convergence",
    codes.SINGULAR: "singular matrix",
    codes.NON_FINITE: "not finite",
    codes.NOT_ON_CONSTRAINTS: "not on constraints",
}


def read_steps(state: State) -> np.ndarray:
    """Return the last attempts, oldest first, as a structured array with the names in `COLUMNS`.

    One more field, ``slopes``, has y' at the end of each attempt.

    Examples
    --------
    >>> from tether.run.integration import Integration
    >>> from tether.run.attempts import read_steps
    >>> run = Integration(lambda t, y, yp: [yp[0] + y[0]], 0.0, [1.0], t_bound=1.0)
    >>> run.step().name
    'RUNNING'
    >>> steps = read_steps(run.state)
    >>> len(steps), int(steps["order"][0]), bool(steps["error"][0] < 1)
    (1, 1, True)
    """
    ring = state.ring_rows
    count = min(state.attempts, state.ring_size)
    oldest = state.attempts % state.ring_size if count == state.ring_size else 0
    rows = np.concatenate([ring[oldest:count], ring[:oldest]])
    return rows.view(_row(state.n))[:, 0]


@cache
def _row(n: int) -> np.dtype:
    """Type of a row, cached: making one takes longer than reading the ring."""
    return np.dtype([*((name, float) for name in COLUMNS), ("slopes", float, (n,))])
