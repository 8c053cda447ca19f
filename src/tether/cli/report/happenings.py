"""What happened during a run: restarts, jumps, events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tether.cli.report.markup import number, paragraphs, table

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["events_table", "jumps_table", "restarts"]

MAX_TIMES = 12
MAX_JUMPS = 20


def restarts(sol: DaeResult) -> str:
    """Say when the run started again, which is where a time occurs twice."""
    times = np.unique(sol.t[1:][np.diff(sol.t) == 0])
    if not len(times):
        return ""
    return paragraphs([f"The run started again {_times(len(times))}, at t = {_listed(times)}."])


def jumps_table(sol: DaeResult, names: Sequence[str]) -> str:
    """List where unknowns jumped, and by how much."""
    rows = [
        [jump.t, _changes(jump.changes, names), _changes(jump.impulses, names),
         "the equations" if jump.by_law else "the smallest change"]
        for jump in sol.jumps[:MAX_JUMPS]
    ]
    head = ["t", "changes", "impulses", "decided by"]
    some = f" (the first {len(rows)} of {len(sol.jumps)})" if len(rows) < len(sol.jumps) else ""
    return table(head, rows, f"Jumps{some}") if rows else ""


def events_table(sol: DaeResult) -> str:
    """List how often each event happened, and when."""
    if not sol.t_events:
        return ""
    rows = [
        [name, len(times), _listed(times)]
        for name, times in zip(sol.event_names, sol.t_events, strict=True)
    ]
    return table(["event", "times", "at t"], rows, "Events")


def _changes(values: dict[int, float], names: Sequence[str]) -> str:
    parts = [f"{names[j] if j < len(names) else f'unknown {j}'}: {number(value)}"
             for j, value in values.items()]
    return "; ".join(parts[:MAX_TIMES]) + (" …" if len(parts) > MAX_TIMES else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _listed(times: np.ndarray) -> str:
    shown = ", ".join(number(time) for time in times[:MAX_TIMES])
    left = len(times) - MAX_TIMES
    return f"{shown} and {left} more" if left > 0 else shown
