"""The documentation as a whole: length of pages, links, names, words; `make site` builds it."""

import re
import runpy
from pathlib import Path

import pytest
from support.helpers import ROOT

import tether

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKING = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *PAGES]

MOST_WORDS = 1500
MAY_BE_LONGER = ("reference/", "mathematics", "architecture.md")


def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def without_code(text: str) -> str:
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchor_of(heading: str) -> str:
    """Make the anchor of a heading as mkdocs and GitHub do where both agree."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_are_short(page):
    place = page.relative_to(DOCS).as_posix()
    if not place.startswith(MAY_BE_LONGER):
        assert len(text_of(page).split()) <= MOST_WORDS


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(text_of(page))):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def test_pages_named_in_the_code_exist():
    cited = set()
    for source in (ROOT / "src").rglob("*.py"):
        cited |= set(re.findall(r"docs/[\w/-]+\.md", text_of(source)))
    assert cited
    assert not [name for name in sorted(cited) if not (ROOT / name).exists()]


def test_every_public_name_is_in_the_reference():
    text = "".join(text_of(page) for page in (DOCS / "reference").glob("*.md"))
    shown = set(re.findall(r"^::: tether\.(?:\w+\.)*(\w+)$", text, re.MULTILINE))
    assert shown >= set(tether.__all__)


def test_every_page_is_in_the_navigation():
    text = text_of(ROOT / "mkdocs.yml").split("\nnav:", 1)[1]
    named = set(re.findall(r"[\w/-]+\.md", text))
    assert named == {page.relative_to(DOCS).as_posix() for page in PAGES}


def glossary() -> list[str]:
    return re.findall(r"^### (.*)$", text_of(DOCS / "glossary.md"), re.MULTILINE)


def test_the_glossary_is_in_order():
    words = [word.lower() for word in glossary()]
    assert words == sorted(words)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize("word", glossary())
def test_words_of_the_glossary_are_used(word):
    used = re.compile(rf"\b{re.escape(word)}", re.IGNORECASE)
    others = [page for page in PAGES if page.name != "glossary.md"]
    assert any(used.search(text_of(page)) for page in others), word


def test_the_page_of_benchmarks_is_up_to_date():
    """Run ``python -m benchmarks.page`` if not."""
    written = runpy.run_path(str(ROOT / "benchmarks/page.py"))["page"]()
    assert text_of(DOCS / "performance.md") == written


def test_readme_has_the_numbers_of_the_comparison():
    """Run ``python -m benchmarks.abilities`` and write them down if not."""
    measured = text_of(ROOT / "benchmarks/results/abilities.md")
    (numbers,) = re.findall(r"^\| solved, of (\d+) \| \| (\d+) \| (\d+) \|", measured, re.MULTILINE)
    total, ours, theirs = numbers
    assert f"{total} problems" in text_of(ROOT / "README.md")
    assert f"all {ours} solved | {theirs} solved |" in text_of(ROOT / "README.md")
