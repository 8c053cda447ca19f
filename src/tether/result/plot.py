"""Pictures of a solution; needs matplotlib (``pip install tether[plot]``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tether.base.pyplot import as_label, load_pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tether.result.solution import DaeResult
    from tether.run.statistics import Statistics

MOST_LINES = 10


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
