"""HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["table"]


def table(rows: Iterable[Sequence[str]], titles: Sequence[str] = ()) -> str:
    """Write an HTML table, with names in the first column; any text may occur in it.

    Examples
    --------
    >>> from tether.base.html import table
    >>> table([["a<b"]])
    '<table><tr><th style="text-align:left">a&lt;b</th></tr></table>'
    """
    from html import escape  # late, to save time

    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    lines = [f"<tr>{head}</tr>"] if titles else []
    for name, *texts in rows:
        cells = "".join(f'<td style="text-align:left">{escape(text)}</td>' for text in texts)
        lines.append(f'<tr><th style="text-align:left">{escape(name)}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</table>"
