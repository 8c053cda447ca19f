"""Values that the invariants of a run keep, and how they jumped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["References"]

# Relative change below which an invariant has not jumped.
ROUND_OFF = 1e-12


@dataclass(frozen=True, eq=False)
class _Jump:
    t: float
    values: np.ndarray
    names: list[str]


class References:
    """Values that the invariants of a run keep.

    They are those at the start. Where the structure of the equations changes it may happen that no
    state nearby has them; then the invariants jump, and that is noted. A run may try several starts
    before it goes on: only the jump of the last one counts.

    Attributes
    ----------
    values : ndarray or None
        The values; None if those at the next start are to be taken.
    shift : ndarray or None
        How far they are from those of the start.
    jumps : list of str
        Descriptions of their jumps.
    """

    def __init__(self) -> None:
        self.values: np.ndarray | None = None
        self.shift: np.ndarray | None = None
        self.jumps: list[str] = []
        self._jump: _Jump | None = None

    def keep(self, values: np.ndarray | None) -> None:
        """Keep these values from now on."""
        self.values = values
        self.shift = None if values is None else np.zeros(len(values))

    def forget(self) -> None:
        """Take the values at the next start, as when the state was changed on purpose."""
        self.values = self.shift = None

    def no_jump(self) -> None:
        """Drop the jump that was noted: another start is tried."""
        self._jump = None

    def jump(self, t: float, values: np.ndarray, names: list[str]) -> None:
        """Note a start at which the invariants have other values."""
        self._jump = _Jump(t, values, names)

    def settle(self) -> None:
        """Accept the start that was found last, with its jump."""
        jump, self._jump = self._jump, None
        if jump is None or self.values is None or self.shift is None:
            return
        change, self.values = jump.values - self.values, jump.values
        self.shift = self.shift + change
        self.jumps += [
            f"{name} jumped by {step:.3g} at t = {jump.t:.10g}: the structure of the equations "
            "changed there, and no state nearby keeps its value"
            for name, step, value in zip(jump.names, change, jump.values, strict=True)
            if abs(step) > ROUND_OFF * abs(value)
        ]
