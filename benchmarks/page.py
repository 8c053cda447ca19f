"""Write docs/performance.md from what the benchmarks left in results/.

    python -m benchmarks.page

`make bench` does so at its end. Nothing on the page is typed by hand but the words around it.
"""

import math
import re
import shutil
from itertools import dropwhile, takewhile
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
PICTURE = DOCS / "images/work-precision.png"

PEERS = {  # as work_precision.py names them: what stands on the page
    "tether over scikit-sundae": "scikit-sundae (IDA)",
    "tether over casadi idas": "CasADi (IDAS)",
    "tether over pydiffsol bdf": "pydiffsol (BDF)",
    "tether, callback over scikit-sundae": "called, over scikit-sundae",
}

HEAD = """# Performance

<!-- Written by `python -m benchmarks.page`; do not edit. -->

`make bench` measures tether and its peers on the problems of [the gallery](gallery/index.md), in
interleaved rounds on one machine, and writes this page. How it is measured, and every single case,
is in the folder `benchmarks` of the repository. Times depend on the machine; ratios much less.

"""

EQUAL_DIGITS = """## Time at equal digits

Two solvers seldom reach the same accuracy at the same tolerance, so times are compared at equal
numbers of correct digits. The table has the time of tether over that of the other solver, as a
geometric mean over the digits that both reach: **below 1, tether is faster**. All solvers but
CasADi and pydiffsol are given the same Python function; these two get its formulas as symbols or
text and compile them. An empty cell means that the other solver did not get there, or that the
problem cannot be written for it. In the last column tether does not trace the function but calls
it, as scikit-sundae does.

"""

HIGH_INDEX = """## Index 2 and 3 as written

Time of tether over the *fastest* peer that reaches the same digits, with the system integrated as
it is written. Geometric mean over the digits; by default tether would reduce these systems to
index 1 first.

"""

OVERHEAD = """## Cost of a step

What a solver spends besides evaluating the equations, in microseconds per step, measured on a
problem whose equations cost next to nothing.

"""

CALLS = """## Calls of a function that cannot be traced

A Python function that is called, not traced, costs as much as its calls. Calls of tether over
those of IDA (scikit-sundae), at equal digits, where these are 0.6 and more;
`benchmarks/results/calls.md` has all problems:

"""

FIRST = """## The first call

The first call of a function traces and analyses it. Set-up and first solution together, in
milliseconds, in a process that has not met the problem before:

"""

ABILITIES = """## What gets solved at all

Correct digits at the end at `rtol=1e-6`, the same Python function for all. Other solvers start from
values that tether has made consistent. A run that does not end within 30 s is stopped; `-` is for
an event that changes the state, which the other solver does not have. The table leaves out what all
of them solve; `benchmarks/results/abilities.md` has that, too.

"""

LARGE = """## Large systems

Processor time of tether over that of IDA (scikit-sundae) at `rtol=1e-6`: with the function traced,
with the function called and its pattern given, and for a first call, which traces it. IDA is told
the band of lines and ladders, and gets the pattern of the rest for SuperLU.
[Large systems](how-to/large-systems.md) says what to do with which.

"""

LAST = """## Where tether is not the fastest

- pydiffsol, which compiles the formulas, is twice as fast on `heat1d`.
- Ladders and networks of thousands of nodes written as loops: called, the loop takes all the time.
- The first call costs some milliseconds of analysis. A single short run of a small problem may be
  over by then in another solver.
"""


def text_of(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def section(name: str, title: str) -> list[list[str]]:
    """Read the rows of the first table behind a heading, without its head."""
    part = text_of(name).split(f"\n{title}\n", 1)[1].split("\n## ", 1)[0]
    lines = dropwhile(lambda line: not line.startswith("|"), part.splitlines())
    rows = list(takewhile(lambda line: line.startswith("|"), lines))
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def conditions(name: str) -> str:
    """Read the line that says when and with which versions a file was measured."""
    return text_of(name).splitlines()[2]


def measured() -> str:
    """Say when and with which versions each part was measured."""
    parts: dict[str, list[str]] = {}
    for name in ("work_precision", "high_index", "overhead", "calls", "large", "abilities"):
        parts.setdefault(conditions(name), []).append(f"`{name}`")
    lines = [f"- {', '.join(names)}: {words}" for words, names in parts.items()]
    return "\n## When and where\n\n" + "\n".join(lines) + "\n"


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def at_digits(cell: str) -> float:
    """Take the geometric mean of '5: 0.03, 5.5: 0.04'; entries of 0.00 are 0.005 at most."""
    return mean([max(float(value), 0.005) for value in re.findall(r": ([\d.]+)", cell)])


def shown(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio >= 0.01 else "below 0.01"


def equal_digits() -> str:
    found: dict[str, dict[str, str]] = {}
    for heading in PEERS:
        for row in section("work_precision", f"## Time of {heading} at equal digits"):
            found.setdefault(row[0], {})[heading] = shown(at_digits(row[1]))
    rows = [[f"`{name}`", *(cells.get(peer, "") for peer in PEERS)]
            for name, cells in found.items()]
    return table(["problem", *PEERS.values()], rows)


def high_index() -> str:
    found: dict[str, dict[str, str]] = {}
    for name, solver, ratios in section("high_index", conditions("high_index")):
        words = shown(at_digits(ratios)) if ":" in ratios else "no peer gets there"
        found.setdefault(name, {})[solver] = words
    rows = [[f"`{name}`", cells["tether, traced"], cells["tether, callback"]]
            for name, cells in found.items()]
    return table(["problem", "traced", "called"], rows)


def overhead() -> str:
    rows = []
    for kind in ("compiled residual", "plain Python residual"):
        for row in section("overhead", f"## `trivial` to t = 1000, {kind}"):
            if row[0] != "tether, every step returned" and "lists" not in row[0]:
                rows.append([row[0], kind, row[1], row[2]])
    return table(["solver", "equations", "steps", "µs per step"], rows)


def calls() -> str:
    *rows, mean_of_all = section("calls", conditions("calls"))
    compared = [(name, ratio) for name, ratio in rows if "solve" not in ratio]
    near = [[f"`{name}`", ratio] for name, ratio in compared if float(ratio) >= 0.6]
    return table(["problem", "calls over IDA's"], [*near, mean_of_all])


def first_call() -> str:
    title = "## Set-up and first solution, ms at rtol = 1e-06"
    part = text_of("work_precision").split(f"{title}\n", 1)[1]
    head = [cell.strip() for cell in part.strip().splitlines()[0].strip("|").split("|")]
    wanted = ["tether", "scikit-sundae", "scipy_dae BDF", "casadi idas", "pydiffsol bdf"]
    rows = [[f"`{row[0]}`", *(row[head.index(name)] for name in wanted)]
            for row in section("work_precision", title)]
    return table(["problem", *wanted], rows)


def abilities() -> str:
    head = next(line for line in text_of("abilities").splitlines() if line.startswith("| problem"))
    rows = section("abilities", conditions("abilities"))
    rows = [
        [f"**{name}**" if "solved" in name else f"`{name}`", *rest]
        for name, *rest in rows
        if "solved" in name or not all(re.fullmatch(r"[\d.]+", cell) for cell in rest)
    ]
    return table([cell.strip() for cell in head.strip("|").split("|")], rows)


def large() -> str:
    return table(["problem", "traced", "called", "first call"], [
        [*row[:3], row[4]] for row in section("large", conditions("large")) if row[1] != "-"
    ])


def page() -> str:
    return (
        HEAD + EQUAL_DIGITS + equal_digits()
        + f"![Time against correct digits](images/{PICTURE.name})\n\n"
        + HIGH_INDEX + high_index() + OVERHEAD + overhead() + CALLS + calls()
        + FIRST + first_call() + LARGE + large() + ABILITIES + abilities() + LAST + measured()
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    shutil.copyfile(RESULTS / "work_precision.png", PICTURE)
