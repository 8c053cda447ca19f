"""Draw the pictures of the how-to pages, all or some: ``python tools/site/pictures.py [page ...]``.

The code blocks of a page run in order, and where a picture follows one of them what was called
``figure`` by then is saved under its name.
"""

import contextlib
import io
import linecache
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
PIECES = re.compile(r"^```python\n(?P<code>.*?)^```|^!\[.*?\]\((?P<image>.*?)\)", re.DOTALL | re.M)


def draw(page: Path) -> None:
    """Run one page and save its pictures."""
    namespace: dict[str, object] = {}
    for number, piece in enumerate(PIECES.finditer(page.read_text(encoding="utf-8"))):
        if piece["image"]:
            target = (page.parent / piece["image"]).resolve()
            figure = namespace["figure"]
            figure.savefig(target, dpi=80, pil_kwargs={"optimize": True})  # type: ignore[attr-defined]
            print(target.name, target.stat().st_size // 1024, "kB")
            continue
        code, name = piece["code"], f"<piece {number} of {page.name}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, name, "exec"), namespace)
    pyplot.close("all")


if __name__ == "__main__":
    for page in [Path(name) for name in sys.argv[1:]] or sorted(PAGES.glob("*.md")):
        draw(page)
