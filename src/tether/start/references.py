"""Values that invariants are to keep, and what became of them on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["References"]

# Relative: a change below this is none.
ROUND_OFF = 1e-12


@dataclass(frozen=True, eq=False)
class _Jump:
    t: float
    values: np.ndarray
    names: list[str]


class References:
    """Values that the invariants of a run are to keep.

    They are those of the start. Where the structure of the equations changes it may happen that no
    state nearby has them; then the invariants jump, and that is noted. While a run looks for a way
    to go on several starts are tried: only the jump of the last one counts.

    Attributes
    ----------
    values : ndarray or None
        The values; None where those at the next start are to be taken.
    shift : ndarray or None
        How far they are from those of the start.
    jumps : list of str
        When they jumped, in words.
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
        """Take the values at the next start: somebody has changed the state on purpose."""
        self.values = self.shift = None

    def no_jump(self) -> None:
        """Try another start."""
        self._jump = None

    def jump(self, t: float, values: np.ndarray, names: list[str]) -> None:
        """Note a start at which the invariants have other values."""
        self._jump = _Jump(t, values, names)

    def settle(self) -> None:
        """Go on from the start that was found last."""
        jump, self._jump = self._jump, None
        if jump is None or self.values is None or self.shift is None:
            return
        change, self.values = jump.values - self.values, jump.values
        self.shift = self.shift + change
        self.jumps += [
            f"{name} jumped by {step:.3g} at t = {jump.t:.10g}: where the structure of the "
            "equations changed there, no state nearby keeps it"
            for name, step, value in zip(jump.names, change, jump.values, strict=True)
            if abs(step) > ROUND_OFF * abs(value)
        ]
