"""The words of ``print(sol)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

MOST_COMPONENTS = 8


def summary(result: DaeResult) -> str:
    """Summarise a run in a few lines."""
    stats = result.stats
    n = result.y.shape[0]
    head = "success" if result.success else "FAILED"
    lines = [f"{head}: {result.message}"]
    if result.diagnosis is not None:
        lines += [f"  try      {remedy}" for remedy in result.diagnosis.remedies]
    if len(result.t):
        lines.append(f"  t        {result.t[0]:.6g} to {result.t[-1]:.6g}, {len(result.t)} points, "
                     f"{n} unknowns")
        lines.append(f"  y(end)   {_values(result.y[:, -1])}")
    if result.how:
        lines.append(f"  run      {result.how}")
    lines.append(f"  start    {result.start.message}")
    steps = f"  steps    {stats.steps} accepted"
    if stats.h is not None and stats.order is not None and len(stats.h):
        size = np.abs(stats.h)
        steps += f", h from {size.min():.2g} to {size.max():.2g}, order up to {stats.order.max()}"
    lines.append(steps)
    lines.append(f"  repeated {stats.error_test_failures} for the error, "
                 f"{stats.convergence_failures} for Newton")
    lines.append(f"  work     {stats.nfev} residuals, {stats.njev} Jacobians, {stats.nlu} "
                 f"factorisations, {stats.seconds:.3g} s")
    if result.drift is not None:
        lines.append(f"  drift    {stats.worst_drift:.2g} at most off {result.drift.shape[0]} "
                     "constraints and invariants")
    for number, times in enumerate(result.t_events or []):
        lines.append(f"  event {number}  {len(times)} times" + (f", last at {times[-1]:.6g}"
                                                              if len(times) else ""))
    return "\n".join(lines)


def _values(y: np.ndarray) -> str:
    shown = ", ".join(f"{value:.6g}" for value in y[:MOST_COMPONENTS])
    return f"[{shown}{', ...' if len(y) > MOST_COMPONENTS else ''}]"
