"""Code blocks of README and docs run, block after block in one namespace per page."""

import linecache
import re

import pytest
from support.helpers import ROOT

OPTIONAL = ("matplotlib", "pandas", "xarray", "h5py", "PIL", "torch", "jax")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_blocks_run(page):
    namespace = {}
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for number, block in enumerate(blocks):
        name = f"<block {number} of {page.name}>"
        # as in a notebook, where the text of a function can be read
        linecache.cache[name] = (len(block), None, block.splitlines(keepends=True), name)
        try:
            exec(compile(block, name, "exec"), namespace)
        except ImportError as error:
            if any(package in str(error) for package in OPTIONAL):
                pytest.skip(str(error))
            raise


def test_equations_cited_in_code_and_docs_exist():
    text = (ROOT / "docs/mathematics.md").read_text(encoding="utf-8")
    known = {int(n) for n in re.findall(r"\\tag{(\d+)}", text)}
    cited = set()
    for source in [*(ROOT / "src").rglob("*.py"), *PAGES]:
        code = source.read_text(encoding="utf-8")
        for first, last in re.findall(r"math \((\d+)\)(?:[-,] ?\((\d+)\))?", code):
            cited |= {int(first), int(last or first)}
    assert cited
    assert cited <= known


@pytest.mark.parametrize("name", ["make demo", "make test"])
def test_readme_names_the_two_commands(name):
    assert name in (ROOT / "README.md").read_text(encoding="utf-8")
