"""Start: starting values, and how they differ from those that were given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tether.base.reason import Reason
from tether.base.status import Status
from tether.structure.jump import Jump
from tether.structure.pencil import Pencil

__all__ = ["Start", "changed_values"]

# A change below this share of the tolerance counts as round-off.
NO_CHANGE = 1e-6


def changed_values(
    new: np.ndarray, old: np.ndarray, tolerances: np.ndarray
) -> dict[int, float]:
    """Return the changes of values that were changed by more than round-off, by index."""
    if new.tobytes() == old.tobytes():         # the usual case, in a tenth of the time
        return {}
    change = new - old
    return {int(j): float(change[j]) for j in (abs(change) > NO_CHANGE * tolerances).nonzero()[0]}


@dataclass(frozen=True, eq=False)
class Start:
    """Starting values and what was changed to get them.

    Attributes
    ----------
    y, yp : ndarray
        The values the integration starts from.
    success : bool
        Whether they are consistent.
    reason : Reason
        What was done, or what is wrong: equations, unknowns and numbers.
    message : str
        The same in words.
    moved : dict
        Change of every component of y that was changed, by index.
    residual : tuple of float
        Largest absolute residual before and after.
    ypp : ndarray or None
        Second derivative of the differential part, where it could be found.
    fixed : tuple of int
        Components that were to keep their value exactly.
    on_constraints : bool
        False if the values were refused because they violate the constraints.
    pencil : Pencil or None
        Local index and kinds of the unknowns, where the index is above 1.
    jump : Jump or None
        The jump by the law of the equations, if differential variables had to jump.
    lawful : bool
        False if they had to jump and the law gave no values: then the change is the smallest that
        makes them consistent.
    status : Status
        Status of a run that cannot begin because the start failed.

    Examples
    --------
    >>> from tether import solve_dae
    >>> start = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0]).start
    >>> start.success, start.message, start.yp.round(6).tolist()
    (True, "found y'", [-1.0])
    """

    y: np.ndarray
    yp: np.ndarray
    success: bool
    reason: Reason = field(repr=False)
    message: str = ""                  # filled in where it is shown
    moved: dict[int, float] = field(default_factory=dict)
    residual: tuple[float, float] = (0.0, 0.0)
    ypp: np.ndarray | None = field(default=None, repr=False)
    on_constraints: bool = True
    fixed: tuple[int, ...] = ()
    pencil: Pencil | None = field(default=None, repr=False)
    jump: Jump | None = field(default=None, repr=False)
    lawful: bool = field(default=True, repr=False)
    status: Status = field(default=Status.NO_CONSISTENT_START, repr=False)

    def after(self, earlier: Start) -> Start:
        """Combine this start with the earlier one whose values it was made from."""
        jump = earlier.jump if self.jump is None else self.jump.after(earlier.jump)
        return replace(self, jump=jump, lawful=self.lawful and earlier.lawful)

    def restricted(self, n: int) -> Start:
        """Return the part of the first n unknowns."""
        if n == len(self.y):
            return self
        ypp = None if self.ypp is None else self.ypp[:n]
        return replace(
            self, y=self.y[:n], yp=self.yp[:n], ypp=ypp,
            moved={j: change for j, change in self.moved.items() if j < n},
            fixed=tuple(j for j in self.fixed if j < n),
        )
