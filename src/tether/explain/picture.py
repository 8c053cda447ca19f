"""Pictures: which variables occur in which equations, and the last attempts of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether.base.optional import as_label, load_pyplot
from tether.run.attempts import OUTCOMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.explain.diagnosis import Diagnosis
    from tether.explain.report import IndexReport

# With more equations than this, axes have few numbers.
MOST_LABELS = 40


def plot_incidence(report: IndexReport) -> Figure:
    """Draw the pattern of the equations: light for y, dark for y', rings for the assignment.

    Parameters
    ----------
    report : IndexReport
        The report, as `analyze` returns it.

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


def plot_diagnosis(diagnosis: Diagnosis) -> Figure:
    """Plot step size, error and condition of the last attempts; those that failed are marked.

    Parameters
    ----------
    diagnosis : Diagnosis
        The diagnosis of a solution.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
    """
    pyplot = load_pyplot()
    figure, (size_axis, error_axis, condition_axis) = pyplot.subplots(
        3, 1, sharex=True, layout="constrained", figsize=(8, 6)
    )
    steps = diagnosis.steps
    if steps is not None and len(steps):
        attempt = np.arange(len(steps)) - len(steps) + 1
        for code in np.unique(steps["outcome"]):
            rows = steps["outcome"] == code
            name = OUTCOMES.get(int(code), f"code {int(code)}")
            style = {"marker": "." if code == 0 else "x", "linestyle": "none", "label": name}
            size_axis.semilogy(attempt[rows], np.abs(steps["h"][rows]), **style)
            tested = rows & (steps["error"] > 0)
            error_axis.semilogy(attempt[tested], steps["error"][tested], **style)
        factored = (steps["condition"] > 0) & np.isfinite(steps["condition"])
        condition_axis.semilogy(attempt[factored], steps["condition"][factored], color="0.3")
        largest = np.max(steps["condition"][factored], initial=1.0)
        condition_axis.set_ylim(0.5, max(1e3, 2.0 * largest))     # well conditioned stays low
        size_axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    error_axis.axhline(1.0, color="0.8", zorder=0)
    size_axis.set_ylabel("step size")
    error_axis.set_ylabel("error / tolerance")
    condition_axis.set_ylabel("condition")
    condition_axis.set_xlabel("attempt, the last is 0")
    size_axis.set_title(diagnosis.cause.value)
    return figure
