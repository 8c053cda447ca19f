"""Plots of a solution; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.optional import as_label, load_pyplot
from tether.problem.units import separated, with_unit
from tether.result.access import described, values_of
from tether.result.between import finer
from tether.result.panels import in_panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tether.result.solution import DaeResult

MOST_LINES = 10
LONGEST_TITLE = 20
# With dense output and no more points than this, curves get so many points between two.
ENOUGH_POINTS, BETWEEN = 2000, 8
# Lines differ without colour too: those of a panel in their dashes, and after these in width.
DASHES = ("-", "--", ":", "-.", (0, (8, 2, 1, 2, 1, 2)), (0, (8, 2, 4, 2)))
WIDTHS = (1.5, 3.0)
# Okabe and Ito's colours for all kinds of vision, without yellow; they differ in lightness in
# print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
EVENT_DASHES = (":", "--", "-.")
# Mark of an unknown's curve in a figure.
CURVE = "unknown"


def plot_solution(
    result: DaeResult,
    unknowns: Sequence[str | int] | str | int | None = None,
    *,
    against: str | int | None = None,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    steps: bool | None = None,
) -> Figure:
    """Plot unknowns over time or against another unknown.

    Unknowns share a panel if they have the same unit; those without one share it if they are of
    similar size. Lines differ in colour and in their dashes. Events are vertical lines. Curves are
    smooth where the run had ``dense_output=True``; otherwise they join the kept points.

    Parameters
    ----------
    result : DaeResult
        What `solve_dae` returned.
    unknowns : name, number or a list of them, optional
        What to draw; ``x'`` is the derivative of x. The first ten when left out.
    against : name or number, optional
        The unknown for the horizontal axis (a phase portrait); time when left out. Start and end
        of the curves are marked.
    ax : matplotlib.axes.Axes, optional
        Where to draw everything in one panel; a new figure when left out.
    labels : sequence of str, optional
        Names of the lines in the legend, with units in brackets at the end if they have one; the
        names of the unknowns when left out.
    steps : bool, optional
        Whether to add panels with step size, order and drift below. When left out they are
        added if no unknowns are named, over time, where every step was kept.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
    """
    pyplot = load_pyplot()
    keys = _keys(result, unknowns)
    if against == "t" and "t" not in result.names:
        against = None
    if labels is not None and len(labels) != len(keys):
        raise ValueError(f"labels must have one name per unknown drawn ({len(keys)})")
    if labels is None:
        names, units = [list(part) for part in zip(*(described(result, key) for key in keys),
                                                   strict=True)] or [[], []]
    else:
        names, units = map(list, separated(labels))
    shown = finer(result, BETWEEN) if len(result.t) <= ENOUGH_POINTS else result
    lines = [values_of(shown, key) for key in keys]
    if ax is not None:
        if steps:
            raise ValueError("steps needs a figure of its own; leave ax out")
        _draw(ax, shown, list(range(len(lines))), names, units, lines, against)
        _label_time(ax, result, against)
        return ax.figure             # type: ignore[return-value]

    panels = in_panels(units, lines) or [[]]
    wanted = unknowns is None and against is None if steps is None else steps
    if wanted and against is not None:
        raise ValueError("steps are drawn over time; leave against out")
    below = _panels_below(result) if wanted else []
    height = 3.0 if len(panels) == 1 else 2.0
    heights = [height] * len(panels) + [1.0] * len(below)
    figure, axes = pyplot.subplots(
        len(heights), 1, sharex=True, squeeze=False, layout="constrained",
        height_ratios=heights, figsize=(8, 1.5 + 1.1 * sum(heights)),
    )
    column = list(axes[:, 0])
    for axis, panel in zip(column, panels, strict=False):
        _draw(axis, shown, panel, names, units, lines, against)
    for axis, draw in zip(column[len(panels):], below, strict=True):
        draw(axis, result)
    _label_time(column[-1], result, against)
    figure.align_ylabels(column)
    if unknowns is None and len(result.names) > MOST_LINES:
        column[0].set_title(
            f"the first {MOST_LINES} of {len(result.names)} unknowns", fontsize="medium"
        )
    return figure


def _keys(result: DaeResult, unknowns: Any) -> list[str | int]:
    if unknowns is None:
        return list(range(min(len(result.names), MOST_LINES)))
    if isinstance(unknowns, (str, int, np.integer)):
        return [unknowns]            # type: ignore[list-item]
    return list(unknowns)


def _draw(
    axis: Axes,
    result: DaeResult,
    panel: Sequence[int],
    names: Sequence[str],
    units: Sequence[str],
    lines: Sequence[np.ndarray],
    against: str | int | None,
) -> None:
    """Draw the lines of one panel, with their legend."""
    across = result.t if against is None else values_of(result, against)
    marker = "o" if len(across) == 1 else None
    # continue the colours and dashes of an earlier call in the same axes
    before = sum(line.get_gid() == CURVE for line in axis.lines)
    for place, i in enumerate(panel, before):
        axis.plot(
            across, lines[i], label=as_label(names[i]), color=COLOURS[(before + i) % len(COLOURS)],
            gid=CURVE,
            linestyle=DASHES[place % len(DASHES)], marker=marker,
            linewidth=WIDTHS[place // len(DASHES) % len(WIDTHS)],
        )
    if against is None:
        _mark_events(axis, result, labelled=0 in panel)
    elif len(across):
        _mark_ends(axis, across, [lines[i] for i in panel])
    axis.set_ylabel(_title([names[i] for i in panel], [units[i] for i in panel]))
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.5)


def _title(names: Sequence[str], units: Sequence[str]) -> str:
    """Title of the vertical axis: the names if short, and the unit if all have the same."""
    unit = f"[{units[0]}]" if units and units[0] and len(set(units)) == 1 else ""
    text = ", ".join(map(with_unit, names, [""] * len(names) if unit else units))
    words = text if len(text) <= LONGEST_TITLE else ""
    return as_label(f"{words} {unit}".strip())


def _mark_events(axis: Axes, result: DaeResult, labelled: bool) -> None:
    """Draw a line for every event; they are labelled in the legend of one panel."""
    for name, times, dashes in zip(
        result.event_names, result.t_events or [], cycle(EVENT_DASHES), strict=False
    ):
        for count, time in enumerate(times):
            axis.axvline(
                time, color="0.6", linewidth=0.8, linestyle=dashes, zorder=0,
                label=as_label(name) if labelled and count == 0 else None,
            )


def _mark_ends(axis: Axes, across: np.ndarray, lines: Sequence[np.ndarray]) -> None:
    known = axis.get_legend_handles_labels()[1]
    for word, place, marker in (("start", 0, "o"), ("end", -1, "s")):
        axis.plot(
            [across[place]] * len(lines), [line[place] for line in lines], marker, color="black",
            fillstyle="none", label=None if word in known else word,
        )


def _label_time(axis: Axes, result: DaeResult, against: str | int | None) -> None:
    axis.set_xlabel("t" if against is None else as_label(with_unit(*described(result, against))))


# --- below the solution ---------------------------------------------------------------------------


def _panels_below(result: DaeResult) -> list[Any]:
    """Return functions that draw step size and order, if every step was kept, and any drift."""
    history = result.stats.h is not None and len(result.stats.h) > 0
    return [_plot_size, _plot_order] * history + [_plot_drift] * (result.drift is not None)


def _plot_size(axis: Axes, result: DaeResult) -> None:
    t, h = np.asarray(result.stats.t), np.asarray(result.stats.h)
    axis.semilogy(t, np.abs(h), drawstyle="steps-pre", color="0.3")
    axis.set_ylabel("step size")


def _plot_order(axis: Axes, result: DaeResult) -> None:
    t, order = np.asarray(result.stats.t), np.asarray(result.stats.order)
    axis.plot(t, order, drawstyle="steps-pre", color="0.3")
    axis.set_ylabel("order")
    axis.set_yticks(range(1, 6))


def _plot_drift(axis: Axes, result: DaeResult) -> None:
    """Plot the residual of each constraint; zero and very small values are at the bottom."""
    size = np.abs(np.asarray(result.drift))
    floor = 1e-3 * size.max(initial=0.0, where=np.isfinite(size)) or np.finfo(float).eps
    for number, row in enumerate(size):
        axis.semilogy(
            result.t, np.maximum(row, floor), linewidth=0.8, label=f"constraint {number}",
            color=COLOURS[number % len(COLOURS)], linestyle=DASHES[number % len(DASHES)],
        )
    axis.set_ylabel("drift")
    if 0 < len(size) <= MOST_LINES:
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.5,
                    fontsize="x-small")
