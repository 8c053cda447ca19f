"""Pieces of HTML; everything that comes from outside is escaped here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["as_formula", "as_json", "escape", "number", "paragraphs", "preformatted", "section",
           "table"]

MOST_ROWS = 200


def escape(text: Any) -> str:
    """Return text that stands for itself in elements and attributes.

    Examples
    --------
    >>> from tether.cli.report.markup import escape
    >>> escape("<b>'x'")
    '&lt;b&gt;&#x27;x&#x27;'
    """
    return html.escape(str(text), quote=True)


def number(value: float) -> str:
    """Write a number with the digits a reader wants."""
    return f"{value:.6g}"


def as_json(value: Any) -> str:
    """Return JSON that may stand inside a script element: it cannot end it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def as_formula(text: str) -> str:
    """Return a formula of Python's as HTML, with raised exponents and dots for products.

    Examples
    --------
    >>> from tether.cli.report.markup import as_formula
    >>> as_formula("2*x**2 < 1")
    '2·x<sup>2</sup> &lt; 1'
    """
    short = re.sub(r"\d+\.\d{7,}(e[+-]\d+)?", lambda found: f"{float(found[0]):.7g}", text)
    written = re.sub(r"\*\*(\d+(?:\.\d+)?|\(-?\d+\))", r"<sup>\1</sup>", escape(short))
    return written.replace("*", "·")


def section(title: str, *parts: str) -> str:
    """Return a section with a heading, nothing if it would be empty."""
    inside = "\n".join(part for part in parts if part)
    return f"<section><h2>{escape(title)}</h2>\n{inside}\n</section>" if inside else ""


def paragraphs(lines: Iterable[str], kind: str = "") -> str:
    """Return one paragraph per line."""
    chosen = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{chosen}>{escape(line)}</p>" for line in lines)


def preformatted(text: str) -> str:
    """Return text as it is laid out."""
    return f"<pre>{escape(text)}</pre>"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table; numbers stand to the right."""
    shown = rows[:MOST_ROWS]
    lines = ['<div class="wide"><table>']
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    if head:
        first = shown[0] if shown else head
        cells = [f"<th{_kind(v)}>{escape(word)}</th>" for word, v in zip(head, first, strict=True)]
        lines.append(f"<thead><tr>{''.join(cells)}</tr></thead>")
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown]
    lines.append("</table></div>")
    if len(rows) > MOST_ROWS:
        lines.append(paragraphs([f"{len(rows) - MOST_ROWS} more rows are left out."]))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = number(value) if _kind(value) else value
    return f"<td{_kind(value)}>{escape(text)}</td>"


def _kind(value: Any) -> str:
    return ' class="number"' if isinstance(value, (int, float)) else ""
