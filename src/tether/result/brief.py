"""A result in one line, and as a table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from tether.base.html import table
from tether.problem.names import listed

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["one_line", "page"]

MOST_ROWS = 20


def one_line(result: DaeResult) -> str:
    """Say in one line how a run ended and what it returned."""
    n, points = result.y.shape
    word = "success" if result.success else f"FAILED ({result.status.name})"
    span = f"t = {result.t[0]:.6g} to {result.t[-1]:.6g}, " if points else ""
    named = f" ({listed(result.names)})" if n else ""
    return f"<DaeResult: {word}, {span}{_count(points, 'point')}, {_count(n, 'unknown')}{named}>"


def page(result: DaeResult) -> str:
    """Write the summary, and the first, last, smallest and largest value of every unknown."""
    head, *lines = str(result).splitlines()
    about = [line.strip().partition(" ") for line in lines]
    rows = [(word, text.strip()) for word, _, text in about if word != "y(end)"]
    parts = [f"<p><b>{escape(head)}</b></p>"]
    if result.t.size:
        parts.append(table(_values(result), ("unknown", "start", "end", "smallest", "largest")))
        if len(result.names) > MOST_ROWS:
            parts.append(f"<p>and {len(result.names) - MOST_ROWS} more unknowns</p>")
    return f"<div>{''.join(parts)}{table(rows)}</div>"


def _values(result: DaeResult) -> list[tuple[str, ...]]:
    rows = []
    for name, y in zip(result.labels[:MOST_ROWS], result.y, strict=False):
        values = (y[0], y[-1], np.min(y), np.max(y))
        rows.append((name, *(f"{value:.6g}" for value in values)))
    return rows


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")
