"""A fit in words: one line, a table, a table for notebooks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from tether.base.html import table
from tether.problem.names import counted, listed

if TYPE_CHECKING:
    from tether.fitting.result import FitResult

__all__ = ["one_line", "page", "summary"]

WIDTH = 100
TITLES = ("parameter", "value", "std. error", "95 % interval")
# Correlations above this are listed.
STRONG_CORRELATION = 0.95


def one_line(result: FitResult) -> str:
    """Say in one line how a fit ended."""
    ended = "converged" if result.success else "not converged"
    return (
        f"<FitResult: {ended}, {counted(len(result.names), 'parameter')} ({listed(result.names)}), "
        f"{counted(len(result.residuals), 'value')}>"
    )


def summary(result: FitResult) -> str:
    """Summarise a fit in a table and a few sentences."""
    rows = [TITLES, *_rows(result)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(TITLES))]
    lines = [_head(result)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join([*lines, *_sentences(result)])


def page(result: FitResult) -> str:
    """Summarise a fit for a notebook."""
    from html import escape  # late, to save time

    texts = "".join(f"<p>{escape(line.strip())}</p>" for line in _sentences(result, 10**6))
    return f"<p>{escape(_head(result))}</p>{table(_rows(result), TITLES)}{texts}"


def _head(result: FitResult) -> str:
    ended = "converged" if result.success else "NOT CONVERGED"
    return (
        f"Fit of {counted(len(result.names), 'parameter')} to "
        f"{counted(len(result.residuals), 'value')}: {ended}, {counted(result.solves, 'solve')}, "
        f"chi2 = {result.chi2:.4g}, {counted(result.dof, 'degree')} of freedom"
    )


def _rows(result: FitResult) -> list[tuple[str, ...]]:
    intervals = result.confidence()
    return [
        (name, f"{value:.6g}", *_spread(error, low, high))
        for name, value, error, (low, high) in zip(
            result.names, result.x, result.stderr, intervals, strict=True
        )
    ]


def _spread(error: float, low: float, high: float) -> tuple[str, str]:
    if not np.isfinite(error):
        return "unknown", "unknown"
    return f"{error:.3g}", f"{low:.5g} to {high:.5g}"


def _sentences(result: FitResult, width: int = WIDTH) -> list[str]:
    texts = [] if result.success else [result.message]
    texts += _correlations(result)
    texts += [str(direction) for direction in result.unidentifiable]
    texts += result.doubts
    lines: list[str] = []
    for text in dict.fromkeys(texts):
        lines += textwrap.wrap(text, width, initial_indent="- ", subsequent_indent="  ")
    return lines


def _correlations(result: FitResult) -> list[str]:
    found = []
    for i, first in enumerate(result.names):
        for j, second in enumerate(result.names[:i]):
            value = result.correlation[i, j]
            if abs(value) > STRONG_CORRELATION:
                found.append((abs(value), f"{second} and {first} ({value:.3f})"))
    if not found:
        return []
    strongest = [text for _, text in sorted(found, reverse=True)]
    return [f"Strongly correlated: {listed(strongest)}."]
