"""Which problems of the gallery a solver gets through at all.

    python -m benchmarks.abilities

Every solver is given the same Python function at rtol = 1e-6, and, but for tether, starting values
that tether has made consistent. Solvers that cannot take a Python function are not asked.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from sksundae.ida import IDA

from benchmarks.measure import HANG, conditions, prepare
from benchmarks.peers import MAX_STEPS, SOLVERS, Run, filling_residual
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


def rough_start() -> list[str]:
    """Start a pendulum of index 3 off its circle, with and without help for the start."""
    problem = replace(gallery.get("pend-i3"), y0=np.array([1.1, 0.1, 0, 0, 0]), yp0=np.zeros(5))
    sol = problem.solve(rtol=RTOL, start="quiet")
    lines = [f"| tether | {'solved' if sol.success else 'fails'} |"]
    for what in ("y0", "yp0"):
        lines.append(f"| scikit-sundae, calc_initcond={what!r} | {_begun_by_ida(problem, what)} |")
    return lines


def _begun_by_ida(problem: GalleryProblem, what: str) -> str:
    solver = IDA(filling_residual(problem), rtol=RTOL, atol=RTOL, calc_initcond=what,
                 algebraic_idx=list(problem.algebraic))  # fmt: skip
    try:
        sol = solver.solve(list(problem.t_span), problem.y0, problem.yp0)
    except RuntimeError as error:
        return str(error)
    return "solved" if sol.success else str(sol.message)


def drift() -> list[str]:
    """Let a pendulum swing for 1000 s: tether at index 3, IDA differentiated by hand."""
    problem = replace(gallery.get("pend-i3"), t_span=(0.0, 1000.0))
    sol = problem.solve(rtol=RTOL, atol=RTOL)
    lines = [f"| tether, index 3 | {sol.success} | {_length_off(sol.y):.1e} |"]
    problem = gallery.get("pend-i1")
    solver = IDA(filling_residual(problem), rtol=RTOL, atol=RTOL, max_num_steps=MAX_STEPS,
                 algebraic_idx=[4])  # fmt: skip
    end = solver.solve([0.0, 1000.0], problem.y0, problem.yp0)
    return [*lines, f"| scikit-sundae, index 1 | {end.success} | {_length_off(end.y.T):.1e} |"]


def _length_off(y: np.ndarray) -> float:
    return float(np.abs(y[0] ** 2 + y[1] ** 2 - 1).max())


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
        "", "## A pendulum of index 3 that starts off its circle", "",
        "| | |", "|---|---|", *rough_start(),
        "", "## A pendulum after 1000 s, rtol = atol = 1e-06", "",
        "| | success | x**2 + z**2 off by at most |", "|---|---|---|", *drift(),
    ]  # fmt: skip
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "abilities.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
