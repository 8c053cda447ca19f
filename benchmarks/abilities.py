"""Which problems of the gallery a solver gets through at all.

    python -m benchmarks.abilities

Every solver is given the same Python function at rtol = 1e-6, and, but for tether, starting values
that tether has made consistent. Solvers that cannot take a Python function are not asked.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import HANG, conditions, prepare
from benchmarks.peers import SOLVERS, Run
from tether import consistent_start, gallery
from tether.gallery import GalleryProblem

RESULTS = Path(__file__).parent / "results"
RTOL = 1e-6
LIMIT = 30.0               # seconds for one problem
PEERS = ("scikit-sundae", "scipy_dae BDF")


def by_tether(problem: GalleryProblem) -> str:
    sol = problem.solve(rtol=RTOL, start="quiet")
    return outcome(problem, Run(sol.y[:, -1], failure="" if sol.success else sol.message))


def by_peer(solver: str, problem: GalleryProblem) -> str:
    if problem.events:
        return "-"
    t0 = problem.t_span[0]
    start = consistent_start(problem.fun, t0, problem.y0, problem.yp0, atol=problem.atol(RTOL))
    begun = replace(problem, y0=start.y, yp0=start.yp) if start.success else problem
    case = prepare(solver, SOLVERS[solver], begun, RTOL, LIMIT)
    if case is None:
        return "-"
    if case.run is not None:
        return outcome(problem, case.run)
    return outcome(problem, case.solve())


def outcome(problem: GalleryProblem, run: Run) -> str:
    if run.failure:
        return run.failure if run.failure.startswith(HANG) else "fails"
    return f"{problem.digits(run.y):.1f}"


def solved(problem: GalleryProblem, words: str) -> bool:
    """Whether a solver came within a digit of what is expected of tether."""
    try:
        return float(words) >= problem.expected_digits - 1
    except ValueError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    peers = [solver for solver in PEERS if solver in SOLVERS]
    rows = []
    counts = dict.fromkeys(("tether", *peers), 0)
    for name in gallery.names():
        problem = gallery.get(name)
        cells = {"tether": by_tether(problem)}
        cells |= {solver: by_peer(solver, problem) for solver in peers}
        for solver, words in cells.items():
            counts[solver] += solved(problem, words)
        rows.append(f"| {name} | {problem.index} | {' | '.join(cells.values())} |")
        print(rows[-1], flush=True)
    total = len(gallery.names())
    text = [
        "# What gets solved", "", conditions(), "",
        f"Correct digits at the end, at rtol = {RTOL:g}, the same Python function for all. Solvers "
        f"other than tether start from values that tether has made consistent. A run without an "
        f"end within {LIMIT:g} s is stopped; `-` is for events that change the state, which other "
        "solvers do not have.", "",
        f"| problem | index | {' | '.join(counts)} |", "|---" * (2 + len(counts)) + "|", *rows,
        f"| solved, of {total} | | {' | '.join(map(str, counts.values()))} |",
    ]  # fmt: skip
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "abilities.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
