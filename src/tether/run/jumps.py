"""Jumped: where unknowns jump in a run, by how much, and the impulses involved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tether.problem.options import Options
from tether.structure.start import Start

__all__ = ["Jumped", "jumped"]

# A change below this share of the tolerance cannot be distinguished from errors of the run: there
# is no jump if `apply` sets something to zero that is zero up to round-off at the event.
NOTICED = 1e-3
# A relative change below this is round-off, however small the tolerance.
ROUND_OFF = 1e-12


@dataclass(frozen=True)
class Jumped:
    """A place where unknowns jump whose derivatives occur in the equations.

    Attributes
    ----------
    t : float
        Time of the jump.
    changes : dict
        By how much every unknown jumped, by index.
    impulses : dict
        Integrals, over the moment of the jump, of unknowns that are infinite there, such as
        reactions and currents, by index; only those that follow from the equations, without what an
        event did.
    by_law : bool
        Whether the equations determine the jump; otherwise it is the smallest change with which the
        constraints hold.
    open_equations : tuple of int
        Equations with coefficients that change in the jump: they do not determine it alone, and
        were integrated along the straight line from the old to the new values.

    Examples
    --------
    A capacitor of 1 F at 10 V is connected to an empty one of 4 F; the charge is kept:

    >>> from tether import solve_dae
    >>> def circuit(t, y, yp):
    ...     v1, v2, i = y
    ...     return [yp[0] + i, 4 * yp[1] - i, v1 - v2 if t > 1 else i]
    >>> jump = solve_dae(circuit, (0, 2), [10, 0, 0]).jumps[0]
    >>> round(jump.t, 9), {j: round(v, 9) for j, v in jump.changes.items()}
    (1.0, {0: -8.0, 1: 2.0})
    >>> {j: round(p, 9) for j, p in jump.impulses.items()}
    {2: 8.0}
    """

    t: float
    changes: dict[int, float]
    impulses: dict[int, float] = field(default_factory=dict)
    by_law: bool = True
    open_equations: tuple[int, ...] = ()

    def restricted(self, n: int) -> Jumped:
        """Return the jumps of the first n unknowns."""
        if all(j < n for j in (*self.changes, *self.impulses)):
            return self
        return replace(
            self, changes={j: x for j, x in self.changes.items() if j < n},
            impulses={j: x for j, x in self.impulses.items() if j < n},
        )


def jumped(
    t: float, before: np.ndarray, start: Start, options: Options, on_purpose: bool
) -> Jumped | None:
    """Describe a new start, if anything jumps there.

    Parameters
    ----------
    t : float
        Time of the start.
    before : ndarray
        The user's unknowns before it.
    start : Start
        Values from which the run continues.
    options : Options
        Options, whose tolerances decide which changes are negligible.
    on_purpose : bool
        Whether the user's code has changed the state.
    """
    jump = start.jump
    if jump is None and start.lawful and not on_purpose:
        return None
    after = start.y[: len(before)]
    size = np.maximum(np.abs(after), np.abs(before))
    rtol, atol = options.tolerances(len(before))
    large = np.abs(after - before) > np.maximum(ROUND_OFF * size, NOTICED * (rtol * size + atol))
    changes = {int(j): float(after[j] - before[j]) for j in np.flatnonzero(large)}
    if not changes:
        return None
    if jump is None:
        return Jumped(float(t), changes, by_law=start.lawful)
    return Jumped(float(t), changes, jump.impulses, True, jump.open_rows)
