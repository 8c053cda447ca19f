"""Index 2 and 3 as written: time against correct digits, tether and peers with their tricks.

    python -m benchmarks.high_index [--rounds 3] [--problems pend-i3,andrews-i2] [--quick]

The peers that take a Python residual get what their users know: an absolute tolerance of 1e6 for
the unknowns of index 2 and 3, which takes those out of their error tests. tether gets nothing.
Writes a Markdown table into benchmarks/results.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.curves import common_levels
from benchmarks.measure import Case, conditions, interleave, prepare
from benchmarks.peers import Adapter, Solve, on_lists, scipy_dae, sksundae, tether
from benchmarks.work_precision import curves, table
from tether import gallery, solve_dae
from tether.gallery import GalleryProblem

RESULTS = Path(__file__).parent / "results"
PROBLEMS = (
    "pend-i2", "pend-ggl", "caraxis-i2", "andrews-i2", "fekete", "pend-i3", "caraxis-i3",
    "andrews-i3",
)
LIMIT = 20.0
BUDGET = 3.0
LOOSE = 1e6


class Loosened(GalleryProblem):
    """A problem whose unknowns of index 2 and 3 are out of the error test."""

    def atol(self, rtol: float) -> np.ndarray:
        atol = super().atol(rtol)
        atol[list(_loose(self.name))] = LOOSE
        return atol


@functools.cache
def _loose(name: str) -> tuple[int, ...]:
    problem = gallery.get(name)
    t0 = problem.t_span[0]
    start = solve_dae(problem.fun, (t0, t0 + 1e-9), problem.y0, problem.yp0, form="given").start
    return tuple(int(j) for j in np.flatnonzero(start.pencil.var_index > 1))


def loosened(adapter: Adapter) -> Adapter:
    """The same solver with the trick."""

    def adapted(problem: GalleryProblem, rtol: float) -> Solve:
        return adapter(Loosened(**vars(problem)), rtol)

    return adapted


def plain_lists(adapter: Adapter) -> Adapter:
    """Work on lists where the residual can: what a careful user would do."""

    def adapted(problem: GalleryProblem, rtol: float) -> Solve:
        if problem.vectorised:
            return adapter(replace(problem, bandwidth=None), rtol)
        return on_lists(adapter)(problem, rtol)

    return adapted


SOLVERS: dict[str, Adapter] = {
    "tether, callback": plain_lists(functools.partial(tether, form="given", trace="never")),
    "tether, traced": functools.partial(tether, form="given"),
    "scikit-sundae, loose": plain_lists(loosened(sksundae)),
    "scipy_dae BDF, loose": plain_lists(loosened(scipy_dae)),
}


def collect(name: str, rtols: list[float]) -> list[Case]:
    """Set up every solver at every tolerance."""
    cases = []
    for solver, adapter in SOLVERS.items():
        for rtol in rtols:
            case = prepare(solver, adapter, gallery.get(name), rtol, LIMIT)
            if case is not None:
                cases.append(case)
            if case is None or case.hung:
                break
    return cases


def ratios(cases: list[Case], problems: list[str]) -> list[str]:
    """Time of tether over the fastest peer at each number of digits both reach."""
    found = curves(cases)
    lines = ["| problem | solver | over the fastest peer, at digits |", "|---|---|---|"]
    peers = [solver for solver in SOLVERS if "tether" not in solver]
    for name in problems:
        for solver in ("tether, callback", "tether, traced"):
            ours = found.get((name, solver))
            best: dict[float, float] = {}
            for peer in peers:
                theirs = found.get((name, peer))
                if ours is None or theirs is None:
                    continue
                for level in common_levels(ours, theirs):
                    ratio = ours.seconds_at(level) / theirs.seconds_at(level)
                    best[level] = max(best.get(level, 0.0), ratio)
            listed = ", ".join(f"{level:g}: {best[level]:.2f}" for level in sorted(best))
            lines.append(f"| {name} | {solver} | {listed or 'no peer gets there'} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="comma-separated names")
    parser.add_argument("--quick", action="store_true", help="one round, three tolerances")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    problems = arguments.problems.split(",")
    exponents = (4.0, 6.0, 8.0) if arguments.quick else np.arange(3.0, 9.01, 0.5)
    cases: list[Case] = []
    for name in problems:
        here = collect(name, [10.0**-e for e in exponents])
        interleave(here, 1 if arguments.quick else arguments.rounds, BUDGET)
        cases += here
        print(f"{name}: {len(here)} cases measured", flush=True)
    text = ["# Index 2 and 3 as written", "", conditions(), "", *ratios(cases, problems)]
    print("\n".join(text))
    text += ["", "## Every case", "", *table(cases)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "high_index.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
