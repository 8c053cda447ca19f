"""What a step costs when the equations cost nothing.

    python -m benchmarks.overhead [--rounds 7] [--quick]

Solves `trivial` (two unknowns) with a compiled and with a plain Python residual, and with tether
some small problems in C. Two figures per row: the time of the whole call over its accepted steps,
and the time of one further step, from the difference between a long and a short run, in which the
fixed cost of a call drops out.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import peers
from benchmarks.measure import Case, conditions, interleave, prepare
from tether import gallery
from tether.gallery import GalleryProblem

RESULTS = Path(__file__).parent / "results"
RTOL = 1e-6
LIMIT = 60.0  # seconds for one run
SLOW_BUDGET = 4.0  # seconds over all rounds; slow solvers make fewer of them

COMPILED = ("tether, C residual", "casadi idas", "pydiffsol bdf")
PYTHON = ("tether", "tether, lists", "scikit-sundae", "scikit-sundae, lists", "scipy_dae BDF")
EVERY_STEP: dict[str, peers.Adapter] = {
    "tether": functools.partial(peers.tether, every_step=True),
    "scikit-sundae": functools.partial(peers.sksundae, every_step=True),
}


@dataclass
class Row:
    """A long and a short run of one solver."""

    label: str
    long: Case
    short: Case

    def per_step(self, steps: int) -> float:
        """Microseconds of the whole call for each accepted step."""
        return 1e6 * self.long.seconds / steps

    def per_further_step(self, steps: int, short_steps: int) -> float:
        """Microseconds of one step without the fixed cost of a call."""
        return 1e6 * (self.long.seconds - self.short.seconds) / (steps - short_steps)


def make_row(
    label: str, solver: str, adapter: peers.Adapter, problem: GalleryProblem, short_end: float
) -> Row | None:
    shortened = replace(problem, t_span=(problem.t_span[0], short_end))
    cases = [prepare(solver, adapter, p, RTOL, LIMIT) for p in (problem, shortened)]
    if cases[0] is None or cases[1] is None:
        return None
    return Row(label, cases[0], cases[1])


def trivial_rows(solvers: tuple[str, ...], t_end: float) -> list[Row]:
    """End value only, and every step where that is another way to call."""
    problem = gallery.trivial(t_end)
    rows = []
    for solver in solvers:
        if solver not in peers.SOLVERS:
            continue
        rows.append(make_row(solver, solver, peers.SOLVERS[solver], problem, t_end / 100))
        if solver in EVERY_STEP:
            label = f"{solver}, every step returned"
            rows.append(make_row(label, solver, EVERY_STEP[solver], problem, t_end / 100))
    return [row for row in rows if row is not None]


def small_rows() -> list[Row]:
    """Small problems with a C residual."""
    solver = "tether, C residual"
    if solver not in peers.SOLVERS:
        return []
    ends = (
        (gallery.robertson(), 4.0),
        (gallery.pendulum(t_end=50.0), 1.0),
        (gallery.akzo(), 1.0),
        (gallery.car_axis(), 0.1),
    )
    rows = [
        make_row(f"{problem.name} (n = {problem.n})", solver, peers.SOLVERS[solver], problem, end)
        for problem, end in ends
    ]
    return [row for row in rows if row is not None]


def table(rows: list[Row]) -> list[str]:
    """Markdown lines; the ratio is to the first row."""
    lines = [
        "| | steps | us per step, whole call | us per further step | ratio |",
        "|---|---|---|---|---|",
    ]
    first = None
    for row in rows:
        long_steps, short_steps = steps(rows, row, "long"), steps(rows, row, "short")
        failure = row.long.failure or row.short.failure
        if failure or long_steps is None or short_steps is None:
            lines.append(f"| {row.label} | - | failed: {failure or 'steps unknown'} | | |")
            continue
        further = row.per_further_step(long_steps, short_steps)
        first = first or further
        lines.append(
            f"| {row.label} | {long_steps} | {row.per_step(long_steps):.2f} | {further:.2f} "
            f"| {further / first:.2f} |"
        )
    return lines


def steps(rows: list[Row], row: Row, length: str) -> int | None:
    """Accepted steps of a run, or those of another run of the same solver.

    scikit-sundae tells its steps only when it returns every one; they are the same ones.
    """
    family = row.long.solver.split(",")[0]
    candidates = [row, *(r for r in rows if r.long.solver.split(",")[0] == family)]
    runs = [getattr(candidate, length).run for candidate in candidates]
    return next((run.steps for run in runs if run is not None and run.steps is not None), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--quick", action="store_true", help="three rounds, a shorter run")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    rounds, t_end = (3, 200.0) if arguments.quick else (arguments.rounds, 1000.0)

    groups = {
        f"`trivial` to t = {t_end:g}, compiled residual": trivial_rows(COMPILED, t_end),
        f"`trivial` to t = {t_end:g}, plain Python residual": trivial_rows(PYTHON, t_end),
        "tether on small problems, C residual": small_rows(),
    }
    cases = [case for rows in groups.values() for row in rows for case in (row.long, row.short)]
    interleave(cases, rounds, SLOW_BUDGET)

    text = ["# Cost per step", "", conditions(), ""]
    text.append(
        f"rtol {RTOL:g}; best of {rounds} interleaved rounds. The ratio compares the time of one "
        "further step with the first row; below 1 is faster than that row."
    )
    for title, rows in groups.items():
        if rows:
            text += ["", f"## {title}", "", *table(rows)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "overhead.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
