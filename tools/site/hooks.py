"""What the site needs beyond mkdocs: formulas, and a search that works from the disk.

A browser draws MathML by itself, so formulas need no script. The search of the theme would load a
small script from a network if the pages are opened from the disk; it gets our copy instead.
"""

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.utils import get_relative_url

FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)
TAG = re.compile(r"\\tag\{(\w+)\}")
CITED = re.compile(r"\bmath \((\d+[ab]?)\)")
# bars stand close to what they enclose
BAR = re.compile(r"<mo[^>]*>(&#x0007C;|\|)</mo>")
# a prime as an index is set too high: the sign itself is raised already
PRIME = re.compile(r"<msup>(<mi>\w</mi>)<mi>&#x02032;</mi></msup>")
SHIM_ADDRESS = "https://unpkg.com/iframe-worker/shim"


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Write every formula as MathML, with its number beside it, and link to those cited."""
    there = get_relative_url("mathematics.html", page.url)
    link = rf'<a href="{there}#eq-\1">math (\1)</a>'
    return CITED.sub(link, FORMULA.sub(_mathml, content))


def _mathml(found: re.Match[str]) -> str:
    block = found[1] == "div"
    tex = html.unescape(found[2]).strip()
    tag = TAG.search(tex)
    formula = convert(TAG.sub("", tex).strip(), display="block" if block else "inline")
    formula = PRIME.sub(r"<mrow>\1<mo lspace='0' rspace='0'>&#x02032;</mo></mrow>", formula)
    formula = BAR.sub('<mo lspace="0" rspace="0" stretchy="false">|</mo>', formula)
    if not block:
        return formula
    if tag is None:
        return f'<div class="equation">{formula}</div>'
    number = f'<span class="number">({tag[1]})</span>'
    return f'<div class="equation" id="eq-{tag[1]}">{formula}{number}</div>'


def on_post_build(config: Any) -> None:
    """Load the script that the search needs from our copy."""
    site = Path(config["site_dir"])
    for page in site.rglob("*.html"):
        copy = "../" * len(page.relative_to(site).parents[:-1]) + "assets/iframe-worker.js"
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM_ADDRESS, copy), encoding="utf-8")
