"""The page of the documentation that lists the gallery, and its picture.

``python -m tether.gallery.page > docs/gallery.md`` writes the page,
``python -m tether.gallery.page docs/images/gallery.png`` draws the picture.
"""

import sys

from tether import gallery
from tether.base.optional import load_pyplot
from tether.gallery.base import GalleryProblem

__all__ = ["draw", "page"]

HEAD = """# Gallery

<!-- Written by `python -m tether.gallery.page > docs/gallery.md`; do not edit. -->

Problems with trusted end values, ready to be solved:

```python
from tether import gallery

problem = gallery.get("buck-converter")
sol = problem.solve(rtol=1e-6)
print(problem.title, problem.digits(sol.y[:, -1]))     # correct digits at the end
```

![All problems of the gallery, solved and drawn](images/gallery.png)

A problem has the equations as a plain Python function (`fun`), span and start (`t_span`, `y0`,
`yp0`, `events`), `names` and `units` of its unknowns, a `title` and a `description`, the end value
(`reference`) with its `source` and how many of its digits are right (`reference_digits`), the
digits to which a run at `rtol=1e-6` meets it (`expected_digits`), and the unknowns that make its
`picture`. No reference comes from tether itself. Some problems have a size or another parameter:
`gallery.get("chain", links=12)`.

"""

_HEADINGS = {
    "classic": "Classic problems of the literature",
    "circuits": "Circuits",
    "machines": "Machines",
    "control": "Control",
    "plants": "Plants",
    "fields": "Fields",
}

_TABLE = "| name | problem | unknowns | index | digits | reference |\n|---|---|---|---|---|---|\n"


def _row(problem: GalleryProblem) -> str:
    digits = f"{problem.expected_digits:g} of {problem.reference_digits:g}"
    cells = (
        f"`{problem.name}`", f"**{problem.title}.** {problem.description}",
        str(problem.n), str(problem.index), digits, problem.source,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """Write the page from what the problems say about themselves.

    Examples
    --------
    >>> from tether.gallery.page import page
    >>> page().startswith("# Gallery")
    True
    """
    parts = [HEAD]
    for group in gallery.groups():
        rows = [_row(gallery.get(name)) for name in gallery.names(group)]
        parts.append(f"## {_HEADINGS[group]}\n\n{_TABLE}" + "\n".join(rows) + "\n\n")
    return "".join(parts).rstrip() + "\n"


def _by_unit(problem: GalleryProblem) -> list[list[int]]:
    """Sort the unknowns that make the picture by their units."""
    found: dict[str, list[int]] = {}
    for name in problem.picture:
        place = problem.names.index(name)
        found.setdefault(problem.units[place], []).append(place)
    return list(found.values())


def draw(path: str, columns: int = 6) -> None:
    """Solve all problems and draw the unknowns that make their pictures, into one file.

    Parameters
    ----------
    path : str
        File to write; its ending says which kind.
    columns : int
        Pictures side by side.
    """
    problems = [gallery.get(name) for name in gallery.names()]
    lines = -(-len(problems) // columns)
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(lines, columns, figsize=(2.1 * columns, 1.7 * lines))
    for problem, ax in zip(problems, axes.flat, strict=False):
        sol = problem.solve(rtol=1e-6)
        # decades of time are seen on a logarithmic axis only
        late = problem.t_span[1] > 1e6
        times = sol.t[1:] if late else sol.t
        for rows in _by_unit(problem):
            values = sol.y[rows][:, -len(times) :]
            # every unit over the whole height
            low, high = values.min(), values.max()
            ax.plot(times, (values.T - low) / (high - low), linewidth=0.9)
        if late:
            ax.set_xscale("log")
        ax.set_title(problem.name, fontsize=8)
        ax.set_xticks([])
        ax.set_yticks([])
    for ax in axes.flat[len(problems):]:
        ax.set_axis_off()
    figure.tight_layout(pad=0.6)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(sys.argv[1])
    else:
        sys.stdout.write(page())
