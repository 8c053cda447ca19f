"""Which unknowns occur in which equations, as inline SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tether.cli.report.markup import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tether.explain.report import IndexReport

__all__ = ["incidence_picture"]

MAX_LABELS = 40
MAX_ENTRIES = 20_000
MAX_CELL, MIN_CELL, WIDTH = 24.0, 3.0, 640.0
MAX_NAME_LENGTH = 14


def incidence_picture(report: IndexReport, names: Sequence[str]) -> str:
    """Draw a row for every equation, a column for every unknown; "" if nothing is known."""
    entries = report.incidence.entries
    if not entries or len(entries) > MAX_ENTRIES:
        return ""
    n = report.n
    cell = min(max(WIDTH / n, MIN_CELL), MAX_CELL)
    labelled = n <= MAX_LABELS
    left = 34.0 if labelled else 6.0
    top = 10.0 + 7.0 * max(len(_short(name)) for name in names) if labelled else 6.0
    width, height = left + n * cell + 6, top + n * cell + 6
    parts = [f'<rect class="axis" x="{left}" y="{top}" width="{n * cell}" height="{n * cell}"/>']
    match = set(enumerate(report.incidence.match))
    for i, j, order in entries:
        parts.append(_entry(i, j, order, left, top, cell, names[j], (i, j) in match))
    if labelled:
        for k, name in enumerate(names):
            middle = left + (k + 0.5) * cell + 4
            parts.append(f'<text transform="translate({middle:.1f} {top - 5:.1f}) rotate(-90)">'
                         f"{escape(_short(name))}</text>")
            parts.append(f'<text x="{left - 6:.1f}" y="{top + (k + 0.5) * cell + 4:.1f}" '
                         f'text-anchor="end">{k}</text>')
    words = "rows: equations, columns: unknowns"
    return "\n".join([
        f'<figure><svg style="max-width:{width:.0f}px" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'role="img" aria-label="{words}">', *parts, "</svg>",
        '<figcaption class="note">Rows are equations, columns are unknowns. '
        '<span class="box y"></span> y alone, <span class="box slope"></span> y&#x27; or higher, '
        '<span class="box match"></span> assigned to each other.</figcaption></figure>',
    ])


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"


def _entry(
    i: int, j: int, order: int, left: float, top: float, cell: float, name: str, matched: bool
) -> str:
    gap = 0.1 * cell
    x, y, side = left + j * cell + gap, top + i * cell + gap, cell - 2 * gap
    kind = "slope" if order else "y"
    ring = " match" if matched else ""
    called = escape(name + "'" * order)
    return (
        f'<rect class="{kind}{ring}" x="{x:.1f}" y="{y:.1f}" width="{side:.1f}" '
        f'height="{side:.1f}"><title>equation {i}: {called}</title></rect>'
    )
