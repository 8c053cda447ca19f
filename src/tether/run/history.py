"""Points before the start of a run, given by the user: the method may begin with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether._core.state import State

__all__ = ["check_history"]


def check_history(history: Any, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Return times, and values in rows; raise an error unless they lead up to a state."""
    try:
        t, y = (np.ascontiguousarray(part, float) for part in history)
    except (TypeError, ValueError):
        raise ValueError("history must be a pair (times, values)") from None
    if t.ndim != 1 or len(t) == 0 or y.shape != (state.n, len(t)):
        raise ValueError(
            f"history must be m times and values of shape ({state.n}, m), got shapes "
            f"{t.shape} and {y.shape}"
        )
    if np.any(state.direction * np.diff(np.append(t, state.t)) <= 0):
        raise ValueError("history must have its times before t0, oldest first")
    if not (np.all(np.isfinite(t)) and np.all(np.isfinite(y))):
        raise ValueError("history must be finite")
    return t, np.ascontiguousarray(y.T)
