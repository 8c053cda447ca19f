"""Charts of a run: the solution in groups, step size and order, drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tether.cli.report.charts import MAX_LINES, Line, chart
from tether.cli.report.markup import paragraphs
from tether.result.between import finer
from tether.result.plot import BETWEEN, ENOUGH_POINTS

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["drift_charts", "history_charts", "solution_charts"]

MAX_CURVES = 40
# Curves share a chart if their sizes differ by less than this factor.
SIMILAR_SIZE = 10.0
# Drift below this share of the largest is drawn at the bottom of the chart.
DRIFT_FLOOR = 1e-3
# Time has a logarithmic axis if half of the steps lie within this share of the interval.
CROWDED_SHARE = 1e-3


def solution_charts(sol: DaeResult, names: Sequence[str], units: Sequence[str]) -> str:
    """Draw the unknowns; those of one unit and of similar size together."""
    if len(sol.t) < 2:
        return ""
    decades = by_decades(sol.t)
    smooth = finer(sol, BETWEEN) if len(sol.t) <= ENOUGH_POINTS else sol
    t, y = smooth.t, smooth.y
    n = len(y)
    # of many unknowns, some are shown, evenly spaced, since they are often values along a line
    shown = np.unique(np.linspace(0, n - 1, min(n, MAX_CURVES)).round().astype(int))
    drawn = []
    for group in groups(y[shown], [units[j] for j in shown]):
        members = [int(shown[k]) for k in group]
        lines = [Line(names[j], y[j]) for j in members]
        drawn.append(chart(_title(members, names, units), t, lines, log_time=decades))
    more = [f"{len(shown)} of {n} unknowns are shown."] if len(shown) < n else []
    return _grid(drawn) + paragraphs(more)


def by_decades(t: np.ndarray) -> bool:
    """Tell whether most of a run happens in a small part of the time right after zero."""
    return bool(len(t) > 2 and 0 <= t[0] < t[-1] and np.median(t) < CROWDED_SHARE * t[-1])


def groups(y: np.ndarray, units: Sequence[str]) -> list[list[int]]:
    """Group the rows that can share a chart.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.cli.report.curves import groups
    >>> groups(np.array([[1.0], [2.0], [1e-5]]), ["", "", ""])
    [[0, 1], [2]]
    """
    found: list[tuple[str, float, list[int]]] = []
    for j, row in enumerate(y):
        size = float(np.max(np.abs(row), initial=0.0, where=np.isfinite(row)))
        for unit, other, members in found:
            if unit == units[j] and len(members) < MAX_LINES and _similar(size, other):
                members.append(j)
                break
        else:
            found.append((units[j], size, [j]))
    return [members for _, _, members in found]


def _similar(a: float, b: float) -> bool:
    if a == 0.0 or b == 0.0:
        return a == b
    return abs(math.log(a / b)) < math.log(SIMILAR_SIZE)


def _title(group: list[int], names: Sequence[str], units: Sequence[str]) -> str:
    unit = units[group[0]]
    return ", ".join(names[j] for j in group) + (f" in {unit}" if unit else "")


def history_charts(sol: DaeResult) -> str:
    """Draw size and order of the steps."""
    stats = sol.stats
    if stats.t is None or stats.h is None or stats.order is None or len(stats.t) < 2:
        return ""
    decades = by_decades(stats.t)
    size = Line("step size", np.abs(stats.h))
    order = Line("order", stats.order.astype(float), stairs=True)
    return _grid([
        chart("Step size", stats.t, [size], log=True, log_time=decades),
        chart("Order", stats.t, [order], log_time=decades),
    ])


def drift_charts(sol: DaeResult) -> str:
    """Draw how far the solution is off each constraint or, if there are many, the worst of them."""
    if sol.drift is None or len(sol.t) < 2:
        return ""
    size = np.abs(sol.drift)
    if len(size) > MAX_LINES:
        worst = np.max(np.where(np.isfinite(size), size, 0.0), axis=0)
        lines = [Line(f"worst of {len(size)} constraints and invariants", worst)]
    else:
        lines = [Line(f"constraint {k}", row) for k, row in enumerate(size)]
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
    floor = DRIFT_FLOOR * largest
    lines = [Line(line.name, np.maximum(line.values, floor)) for line in lines]
    text = f"At most {max(largest, sol.stats.worst_drift):.2g} at any time."
    if not np.any(size > 0):
        return paragraphs([text])
    return paragraphs([text]) + _grid(
        [chart("Residual of the constraints", sol.t, lines, log=True, log_time=by_decades(sol.t))]
    )


def _grid(charts: Sequence[str]) -> str:
    return '<div class="charts">\n' + "\n".join(charts) + "\n</div>"
