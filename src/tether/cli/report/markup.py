"""Pieces of HTML; all text from outside is escaped here."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["as_formula", "as_json", "escape", "number", "paragraphs", "preformatted", "section",
           "table"]

MAX_ROWS = 200


def escape(text: Any) -> str:
    """Escape text for use in elements and attributes.

    Examples
    --------
    >>> from tether.cli.report.markup import escape
    >>> escape("<b>'x'")
    '&lt;b&gt;&#x27;x&#x27;'
    """
    return html.escape(str(text), quote=True)


def number(value: float) -> str:
    """Write a number with six digits."""
    return f"{value:.6g}"


def as_json(value: Any) -> str:
    """Return JSON that is safe inside a script element, which it cannot end."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def as_formula(text: str) -> str:
    """Return a Python formula as HTML, with superscripts for powers and dots for products.

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
    """Return a section with a heading; an empty string if it would be empty."""
    inside = "\n".join(part for part in parts if part)
    return f"<section><h2>{escape(title)}</h2>\n{inside}\n</section>" if inside else ""


def paragraphs(lines: Iterable[str], kind: str = "") -> str:
    """Return one paragraph per line."""
    chosen = f' class="{kind}"' if kind else ""
    return "\n".join(f"<p{chosen}>{escape(line)}</p>" for line in lines)


def preformatted(text: str) -> str:
    """Return text with its layout."""
    return f"<pre>{escape(text)}</pre>"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> str:
    """Return a table with numbers aligned to the right."""
    shown = rows[:MAX_ROWS]
    lines = ['<div class="wide"><table>']
    if caption:
        lines.append(f"<caption>{escape(caption)}</caption>")
    if head:
        first = shown[0] if shown else head
        cells = [f"<th{_kind(v)}>{escape(word)}</th>" for word, v in zip(head, first, strict=True)]
        lines.append(f"<thead><tr>{''.join(cells)}</tr></thead>")
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in shown]
    lines.append("</table></div>")
    if len(rows) > MAX_ROWS:
        lines.append(paragraphs([f"{len(rows) - MAX_ROWS} more rows are left out."]))
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = number(value) if _kind(value) else value
    return f"<td{_kind(value)}>{escape(text)}</td>"


def _kind(value: Any) -> str:
    return ' class="number"' if isinstance(value, (int, float)) else ""
