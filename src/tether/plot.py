"""Pictures of a solution; needs matplotlib (``pip install tether[plot]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tether.diagnosis import Diagnosis
    from tether.result import DaeResult, Statistics

MOST_LINES = 10


def load_pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install tether[plot]") from error
    return pyplot


def as_label(name: str) -> str:
    """Write a name so that matplotlib shows it as it is: neither as a formula nor not at all."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def plot_solution(
    result: DaeResult,
    *,
    components: Sequence[int] | None = None,
    labels: Sequence[str] | None = None,
) -> Figure:
    """Plot the states, and below them step size and order where every step was kept, and drift.

    Parameters
    ----------
    result : DaeResult
        What `solve_dae` returned.
    components : sequence of int, optional
        Which unknowns to draw; the first ten when left out.
    labels : sequence of str, optional
        Names of the drawn unknowns.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
    """
    pyplot = load_pyplot()

    n = result.y.shape[0]
    chosen = list(range(min(n, MOST_LINES))) if components is None else list(components)
    names = [f"y[{i}]" for i in chosen] if labels is None else list(labels)
    if len(names) != len(chosen):
        raise ValueError(f"labels must have one name per component ({len(chosen)})")

    history = result.stats.h is not None and len(result.stats.h) > 0
    heights = [3.0] + [1.0, 1.0] * history + [1.0] * (result.drift is not None)
    figure, axes = pyplot.subplots(
        len(heights), 1, sharex=True, squeeze=False, layout="constrained",
        height_ratios=heights, figsize=(8, 1.5 + 1.1 * sum(heights)),
    )
    states = axes[0, 0]
    for i, name in zip(chosen, names, strict=True):
        states.plot(result.t, result.y[i], label=as_label(name))
    for times in result.t_events or []:
        for time in times:
            states.axvline(time, color="0.8", linewidth=0.8, zorder=0)
    states.set_ylabel("y")
    states.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if history:
        _plot_history(axes[1, 0], axes[2, 0], result.stats)
    if result.drift is not None:
        _plot_drift(axes[-1, 0], result.t, result.drift)
    axes[-1, 0].set_xlabel("t")
    return figure


def _plot_history(size_axis: Axes, order_axis: Axes, stats: Statistics) -> None:
    t, h, order = (np.asarray(part) for part in (stats.t, stats.h, stats.order))
    size_axis.semilogy(t, np.abs(h), drawstyle="steps-pre", color="0.3")
    size_axis.set_ylabel("step size")
    order_axis.plot(t, order, drawstyle="steps-pre", color="0.3")
    order_axis.set_ylabel("order")
    order_axis.set_yticks(range(1, 6))


def _plot_drift(axis: Axes, t: np.ndarray, drift: np.ndarray) -> None:
    """Residual of each constraint; what is zero, or far below the rest, sits at the bottom."""
    size = np.abs(drift)
    floor = max(1e-3 * size.max(initial=0.0, where=np.isfinite(size)), 1e-300)
    for row in size:
        axis.semilogy(t, np.maximum(row, floor), linewidth=0.8)
    axis.set_ylabel("drift")


def plot_diagnosis(diagnosis: Diagnosis) -> Figure:
    """Plot step size, error and condition of the last attempts; those that failed are marked.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of a solution.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
    """
    pyplot = load_pyplot()
    from tether.steps import OUTCOMES

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
