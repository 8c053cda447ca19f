"""The text of ``print(sol)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether.problem.names import counted

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

MOST_COMPONENTS = 8
WIDTH = 88


def summary(result: DaeResult) -> str:
    """Summarise a run in a few lines."""
    stats = result.stats
    n = result.y.shape[0]
    head = "success" if result.success else "FAILED"
    lines = [f"{head}: {_without_remedy(result)}"]
    if result.diagnosis is not None:
        lines += [f"  try      {remedy}" for remedy in result.diagnosis.remedies]
    if len(result.t):
        lines.append(f"  t        {result.t[0]:.6g} to {result.t[-1]:.6g}, "
                     f"{counted(len(result.t), 'point')}, {counted(n, 'unknown')}")
        lines.append(f"  y(end)   {_values(result)}")
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
        count = result.drift.shape[0]
        kept = "1 constraint or invariant" if count == 1 else f"{count} constraints and invariants"
        lines.append(f"  drift    {stats.worst_drift:.2g} at most off {kept}")
    for name, times in zip(result.event_names, result.t_events or [], strict=False):
        last = f", last at {times[-1]:.6g}" if len(times) else ""
        label = name.removeprefix("event ")
        lines.append(f"  event    {label}: {counted(len(times), 'time')}{last}")
    return "\n".join(lines)


def _without_remedy(result: DaeResult) -> str:
    """Return the message without the remedy at its end: all remedies have their own lines."""
    diagnosis = result.diagnosis
    if diagnosis is None or not diagnosis.remedies:
        return result.message
    return result.message.removesuffix(f" Try: {diagnosis.remedies[0]}.")


def _values(result: DaeResult) -> str:
    """Return the last values, by name if there are names, as many as fit in a line."""
    last = result.y[:, -1]
    plain = all(name == f"y[{j}]" for j, name in enumerate(result.names))
    if plain:
        words = [f"{value:.6g}" for value in last[:MOST_COMPONENTS]]
    else:
        words = [
            f"{name} = {value:.6g} {unit}".rstrip()
            for name, value, unit in zip(
                result.names[:MOST_COMPONENTS], last, result.units, strict=False
            )
        ]
    while len(words) > 1 and len(", ".join(words)) > WIDTH:
        words.pop()
    text = ", ".join(words) + (", ..." if len(words) < len(last) else "")
    return f"[{text}]" if plain else text
