"""Picture of a system: which variables stand in which equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether.plot import as_label, load_pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.structure.report import IndexReport

# With more equations than this the axes have numbers only here and there.
MOST_LABELS = 40


def plot_incidence(report: IndexReport) -> Figure:
    """Draw the pattern of the equations: light for y, dark for y', rings for the assignment.

    Parameters
    ----------
    report : IndexReport
        What `analyze` returned.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown.
    """
    pyplot = load_pyplot()
    if not report.incidence.entries:
        raise ValueError("there is no pattern to draw: the equations could not be traced")
    n = report.n
    orders = np.full((n, n), np.nan)
    for i, j, order in report.incidence.entries:
        orders[i, j] = order
    side = min(3.0 + 0.25 * n, 9.0)
    figure, axis = pyplot.subplots(figsize=(side, side), layout="constrained")
    axis.imshow(orders, cmap="Blues", vmin=-1.0, vmax=max(1.5, float(np.nanmax(orders))))
    rows = np.flatnonzero(np.array(report.incidence.match, dtype=int) >= 0)
    columns = np.array(report.incidence.match, dtype=int)[rows]
    axis.plot(columns, rows, "o", markersize=float(np.clip(150.0 / n, 3.0, 12.0)), fillstyle="none",
              color="tab:orange")
    axis.set_ylabel("equation")
    axis.set_xlabel("variable")
    if n <= MOST_LABELS:
        axis.set_xticks(range(n), [as_label(name) for name in report.names], rotation=90)
        axis.set_yticks(range(n))
    axis.set_title(f"index {report.index}; light: y, dark: y', rings: assignment", fontsize=9)
    return figure
