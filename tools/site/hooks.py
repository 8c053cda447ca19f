"""What the site needs beyond mkdocs: starred entries of the navigation, and formulas as MathML.

A browser draws MathML by itself, so that the pages need no script for it and no network.
"""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)
TAG = re.compile(r"\\tag\{(\w+)\}")


def on_config(config: Any) -> Any:
    """Replace ``folder/*`` in the navigation by the pages of the folder."""
    docs = Path(config["docs_dir"])
    config["nav"] = [_expanded(entry, docs) for entry in config["nav"]]
    config["nav"] = [entry for entry in config["nav"] if list(entry.values()) != [[]]]
    return config


def _expanded(entry: dict[str, Any], docs: Path) -> dict[str, Any]:
    (title, target), = entry.items()
    if not isinstance(target, str) or not target.endswith("/*"):
        return entry
    pages = sorted((docs / target[:-2]).glob("*.md"), key=lambda page: (page.stem != "index", page))
    return {title: [page.relative_to(docs).as_posix() for page in pages]}


def on_page_content(content: str, **_: Any) -> str:
    """Write every formula as MathML, with its number beside it."""
    return FORMULA.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    block = found[1] == "div"
    tex = html.unescape(found[2]).strip()
    tag = TAG.search(tex)
    formula = convert(TAG.sub("", tex).strip(), display="block" if block else "inline")
    if not block:
        return formula
    if tag is None:
        return f'<div class="equation">{formula}</div>'
    number = f'<span class="number">({tag[1]})</span>'
    return f'<div class="equation" id="eq-{tag[1]}">{formula}{number}</div>'
