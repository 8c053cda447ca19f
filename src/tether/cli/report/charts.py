"""Charts as inline SVG, readable without colours, that show the values at the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tether.cli.report.axes import Axis, fit_axis
from tether.cli.report.markup import as_json, escape

__all__ = ["Line", "chart"]

WIDTH, HEIGHT = 440, 235
LEFT, RIGHT, TOP, BOTTOM = 62, 418, 10, 202
# Colours that colour-blind readers can tell apart, and dashes for prints in black and white.
STYLES = (
    ("#0072b2", ""), ("#d55e00", "7 3"), ("#008060", "2 3"), ("#aa3377", "9 3 2 3"),
    ("#555555", "4 2"),
)
MAX_LINES = len(STYLES)
# More points than this are thinned out, but peaks are kept: for every line, the extremes in each of
# so many strips of time.
MAX_POINTS = 1500
BUCKETS = 200


@dataclass(frozen=True)
class Line:
    """A curve with its name."""

    name: str
    values: np.ndarray
    stairs: bool = False


def chart(
    title: str, t: np.ndarray, lines: Sequence[Line], *, log: bool = False, log_time: bool = False
) -> str:
    """Draw lines over time.

    Parameters
    ----------
    title : str
        The title above the chart.
    t : ndarray
        Times.
    lines : sequence of Line
        The lines, at most five.
    log, log_time : bool
        Whether axes are logarithmic; values that are not positive are then left out.
    """
    keep = _thinned(t, lines, log_time)
    t = t[keep]
    shown = [Line(line.name, line.values[keep], line.stairs) for line in lines]
    across = fit_axis(t, LEFT, RIGHT, log=log_time)
    up = fit_axis(np.concatenate([line.values for line in shown]), BOTTOM, TOP, log=log, pad=0.05)
    parts = [_frame(across, up)]
    legend = []
    for line, (colour, dash) in zip(shown, STYLES, strict=False):
        style = f'stroke="{colour}"' + (f' stroke-dasharray="{dash}"' if dash else "")
        parts.append(f'<path class="line" {style} d="{_path(line, t, across, up)}"/>')
        legend.append(
            f'<li><svg class="key" viewBox="0 0 28 8" aria-hidden="true"><path d="M0 4H28" '
            f'class="line" {style}/></svg>{escape(line.name)} <output></output></li>'
        )
    data = as_json({
        "x": _rounded(across(t)), "t": [f"{value:.8g}" for value in t],
        "y": [[f"{value:.6g}" for value in line.values] for line in shown],
    })
    return "\n".join([
        f'<figure class="chart"><figcaption>{escape(title)} <output></output></figcaption>',
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        *parts, f'<path class="cursor" d="M0 {TOP}V{BOTTOM}" visibility="hidden"/></svg>',
        f'<ul class="legend">{"".join(legend)}</ul>',
        f'<script type="application/json">{data}</script></figure>',
    ])


def _thinned(t: np.ndarray, lines: Sequence[Line], log_time: bool) -> np.ndarray:
    """Return rows to draw: all of them, or the extremes of every line in narrow strips of time."""
    rows = np.flatnonzero(np.isfinite(t) & ((t > 0) | (not log_time)))
    if len(rows) <= MAX_POINTS:
        return rows
    place = fit_axis(t[rows], 0.0, BUCKETS, log=log_time)(t[rows])
    strip = np.clip(place.astype(int), 0, BUCKETS - 1)
    # times are in order, so every strip is a range of rows
    edges = np.flatnonzero(np.diff(strip)) + 1
    chosen = {int(rows[0]), int(rows[-1])}
    for part in np.split(rows, edges):
        chosen.add(int(part[0]))
        for line in lines:
            values = line.values[part]
            known = np.flatnonzero(np.isfinite(values))
            if len(known):
                chosen.add(int(part[known[np.argmin(values[known])]]))
                chosen.add(int(part[known[np.argmax(values[known])]]))
    return np.array(sorted(chosen))


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), 1) for value in values]


def _path(line: Line, t: np.ndarray, across: Axis, up: Axis) -> str:
    """Return the path of a line, which is interrupted where there is no value."""
    fine = np.isfinite(line.values) & ((line.values > 0) | (not up.log))
    x = _rounded(across(t))
    y = _rounded(up(np.where(fine, line.values, 1.0)))
    words = []
    drawing = False
    for i, ok in enumerate(fine.tolist()):
        if ok and drawing and line.stairs:
            words.append(f"H{x[i]}V{y[i]}")
        elif ok:
            words.append(f"{'L' if drawing else 'M'}{x[i]} {y[i]}")
        drawing = ok
    return "".join(words)


def _frame(across: Axis, up: Axis) -> str:
    parts = [f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>']
    for x, label in across.ticks():
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{BOTTOM}"/>')
        parts.append(f'<text x="{x:.1f}" y="{BOTTOM + 16}" text-anchor="middle">{label}</text>')
    for y, label in up.ticks():
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    parts.append(f'<text x="{(LEFT + RIGHT) // 2}" y="{HEIGHT - 3}" text-anchor="middle">t</text>')
    return "\n".join(parts)
