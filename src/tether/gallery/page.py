"""The pages of the documentation that show the gallery, and their pictures.

``python -m tether.gallery.page docs`` writes the pages into ``docs/gallery`` and draws the pictures
into ``docs/images/gallery``; with ``--pages`` only the pages.
"""

import sys
from pathlib import Path

from tether import gallery
from tether.base.optional import load_pyplot
from tether.gallery.base import GalleryProblem

__all__ = ["draw", "pages"]

_NOTE = "<!-- Written by `python -m tether.gallery.page docs`; do not edit. -->\n\n"

_HEAD = f"""# Gallery

{_NOTE}Problems with trusted end values, ready to be solved:

```python
from tether import gallery

problem = gallery.get("buck-converter")
sol = problem.solve(rtol=1e-6)
print(problem.title, problem.digits(sol.y[:, -1]))     # correct digits at the end
```

From a shell: `tether solve buck-converter --plot buck.png`.

A problem has its equations as a plain Python function (`fun`), interval and start (`t_span`, `y0`,
`yp0`, `events`), `names` and `units` of its unknowns, a `title` and a `description`, the end value
(`reference`) with its `source` and the number of its correct digits (`reference_digits`), the
number of digits to which a run at `rtol=1e-6` agrees with it (`expected_digits`), and the unknowns
in its `picture`. No reference comes from tether itself. Some problems have a size or another
parameter: `gallery.get("chain", links=12)`.

"""

_HEADINGS = {
    "classic": "Classic problems of the literature",
    "circuits": "Circuits",
    "machines": "Machines",
    "control": "Control",
    "plants": "Plants",
    "fields": "Fields",
}


def _thumbnail(problem: GalleryProblem) -> str:
    return f"![{problem.title}](../images/gallery/{problem.name}.png)"


def _entry(problem: GalleryProblem) -> str:
    unknowns = f"{problem.n} unknown" + ("s" if problem.n > 1 else "")
    return (
        f"## {problem.name}\n\n**{problem.title}.** {problem.description}\n\n"
        f"{_thumbnail(problem)}\n\n"
        f"{unknowns}, index {problem.index}. A run at `rtol=1e-6` is right to "
        f"{problem.expected_digits:g} digits. Reference, right to {problem.reference_digits:g}: "
        f"{problem.source}.\n\n"
    )


def pages() -> dict[str, str]:
    """Make the pages from the attributes of the problems.

    Returns
    -------
    dict
        Texts by file name: a page with all pictures, and one page for every group.

    Examples
    --------
    >>> from tether.gallery.page import pages
    >>> sorted(pages())[:3]
    ['circuits.md', 'classic.md', 'control.md']
    """
    index = [_HEAD]
    written = {}
    for group in gallery.groups():
        problems = [gallery.get(name) for name in gallery.names(group)]
        pictures = [f"[{_thumbnail(p)}]({group}.md#{p.name})" for p in problems]
        index.append(f"## {_HEADINGS[group]}\n\n" + "\n".join(pictures) + "\n\n")
        text = f"# {_HEADINGS[group]}\n\n{_NOTE}" + "".join(_entry(p) for p in problems)
        written[f"{group}.md"] = text.rstrip() + "\n"
    return {"index.md": "".join(index).rstrip() + "\n", **written}


def _by_unit(problem: GalleryProblem) -> list[list[int]]:
    """Group the unknowns in the picture by their units."""
    found: dict[str, list[int]] = {}
    for name in problem.picture:
        place = problem.names.index(name)
        found.setdefault(problem.units[place], []).append(place)
    return list(found.values())


def _draw(problem: GalleryProblem, path: Path) -> None:
    sol = problem.solve(rtol=1e-6)
    # many decades of time need a logarithmic axis
    late = problem.t_span[1] > 1e6
    times = sol.t[1:] if late else sol.t
    pyplot = load_pyplot()
    figure, ax = pyplot.subplots(figsize=(2.0, 1.5))
    for rows in _by_unit(problem):
        values = sol.y[rows][:, -len(times) :]
        # each unit is scaled to the whole height
        low, high = values.min(), values.max()
        ax.plot(times, (values.T - low) / (high - low), linewidth=0.9)
    if late:
        ax.set_xscale("log")
    ax.set_title(problem.name, fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    figure.tight_layout(pad=0.4)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def draw(folder: str | Path) -> None:
    """Solve all problems and draw their pictures, one file each.

    Parameters
    ----------
    folder : str or Path
        Where to write ``<name of the problem>.png``.
    """
    for name in gallery.names():
        _draw(gallery.get(name), Path(folder) / f"{name}.png")


def _main(docs: Path, with_pictures: bool) -> None:
    for folder in (docs / "gallery", docs / "images/gallery"):
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (docs / "gallery" / name).write_text(text, encoding="utf-8")
    if with_pictures:
        draw(docs / "images/gallery")


if __name__ == "__main__":
    _main(Path(sys.argv[1]), "--pages" not in sys.argv)
