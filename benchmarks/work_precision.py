"""Time against correct digits over a range of tolerances, tether and its peers in one run.

    python -m benchmarks.work_precision [--rounds 5] [--problems akzo,heat1d] [--quick]

Writes a Markdown table and a picture into benchmarks/results, and prints the time of tether over
that of scikit-sundae at equal digits (curves.py says how it is read off).
"""

from __future__ import annotations

import argparse
import math
import statistics
from pathlib import Path

from benchmarks.curves import Curve, common_levels, monotone_curve
from benchmarks.measure import Case, cold_seconds, conditions, interleave, prepare
from benchmarks.peers import SOLVERS
from tether import gallery

RESULTS = Path(__file__).parent / "results"
PROBLEMS = (
    "robertson", "akzo", "transamp", "pend-i1", "caraxis-i1", "andrews-i1", "heat1d",
)
LIMIT = 30.0  # seconds for one run
COLD_RTOL, COLD_ROUNDS = 1e-6, 3
BUDGET = 2.0  # seconds over all rounds; slow cases make fewer of them
PAIRS = (
    ("tether", "scikit-sundae"),
    ("tether", "scikit-sundae, lists"),
    ("tether", "casadi idas"),
    ("tether", "pydiffsol bdf"),
    ("tether, callback", "scikit-sundae"),
    ("tether, callback, lists", "scikit-sundae, lists"),
)
STYLES = ("o-", "o:", "o--", "s-", "^--", "^:", "v--", "D:", "x:")


def tolerances(per_decade: int) -> list[float]:
    """From 1e-3 to 1e-9."""
    return [10 ** (-3 - k / per_decade) for k in range(6 * per_decade + 1)]


def collect(problem_name: str, rtols: list[float]) -> list[Case]:
    """Set up every solver at every tolerance; after a hang the tighter ones are left out."""
    cases = []
    for solver, adapter in SOLVERS.items():
        for rtol in rtols:
            case = prepare(solver, adapter, gallery.get(problem_name), rtol, LIMIT)
            if case is None:
                break
            cases.append(case)
            if case.hung:
                break
    return cases


def cold(problems: list[str]) -> list[str]:
    """Lines with the time of set-up and first solution of every solver."""
    lines = ["| problem | " + " | ".join(SOLVERS) + " |", "|---" * (len(SOLVERS) + 1) + "|"]
    for name in problems:
        problem, times = gallery.get(name), []
        for adapter in SOLVERS.values():
            seconds = min(
                cold_seconds(adapter, problem, COLD_RTOL, LIMIT) for _ in range(COLD_ROUNDS)
            )
            times.append("-" if math.isnan(seconds) else f"{1e3 * seconds:.1f}")
        lines.append(f"| {name} | " + " | ".join(times) + " |")
    return lines


def table(cases: list[Case]) -> list[str]:
    lines = [
        "| problem | solver | rtol | ms | digits | steps | residuals |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        head = f"| {case.problem.name} | {case.solver} | {case.rtol:.1e} "
        if case.run is None or case.failure:
            lines.append(f"{head}| - | failed: {case.failure.replace('|', '/')[:80]} | | |")
            continue
        counts = " | ".join(str(c or "") for c in (case.run.steps, case.run.residuals))
        lines.append(f"{head}| {1e3 * case.seconds:.3f} | {case.digits:.2f} | {counts} |")
    return lines


def curves(cases: list[Case]) -> dict[tuple[str, str], Curve]:
    """Monotone curve per (problem, solver), from the runs that reached the end."""
    grouped: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        if not case.failure and math.isfinite(case.digits):
            grouped.setdefault((case.problem.name, case.solver), []).append(case)
    return {
        key: monotone_curve([c.digits for c in runs], [c.seconds for c in runs])
        for key, runs in grouped.items()
    }


def ratios(
    found: dict[tuple[str, str], Curve], problems: list[str], one: str, other: str
) -> list[str]:
    """Lines with time(one) / time(other) at each level that both reach."""
    lines = [f"| problem | {one} / {other} at digits | geometric mean |", "|---|---|---|"]
    for problem in problems:
        if (problem, one) not in found or (problem, other) not in found:
            continue
        first, second = found[problem, one], found[problem, other]
        values = {
            level: first.seconds_at(level) / second.seconds_at(level)
            for level in common_levels(first, second)
        }
        if not values:
            lines.append(f"| {problem} | no level in common | |")
            continue
        listed = ", ".join(f"{level:g}: {value:.2f}" for level, value in values.items())
        mean = statistics.geometric_mean(values.values())
        lines.append(f"| {problem} | {listed} | {mean:.2f} |")
    return lines


def picture(cases: list[Case], problems: list[str], target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(problems))
    rows = math.ceil(len(problems) / columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(4.4 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    styles = dict(zip(SOLVERS, STYLES, strict=False))
    for panel, problem in zip(grid.flat, problems, strict=False):
        for number, (solver, style) in enumerate(styles.items()):
            runs = [c for c in cases if (c.problem.name, c.solver) == (problem, solver)]
            runs = [c for c in runs if not c.failure and math.isfinite(c.digits)]
            panel.plot(
                [c.digits for c in runs],
                [1e3 * c.seconds for c in runs],
                style,
                color=f"C{number}",
                markersize=4,
                label=solver,
            )
        panel.set(title=problem, yscale="log", xlabel="correct digits", ylabel="ms")
        panel.grid(alpha=0.3)
    for panel in list(grid.flat)[len(problems) :]:
        panel.set_axis_off()
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.savefig(target, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="comma-separated names")
    parser.add_argument("--quick", action="store_true", help="two rounds, whole decades only")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    problems = arguments.problems.split(",")
    rounds, per_decade = (2, 1) if arguments.quick else (arguments.rounds, 2)

    first_calls = cold(problems)
    cases: list[Case] = []
    for problem in problems:
        here = collect(problem, tolerances(per_decade))
        interleave(here, rounds, BUDGET)
        cases += here
        print(f"{problem}: {len(here)} cases measured", flush=True)

    text = ["# Work and precision", "", conditions(), ""]
    text.append(f"Best of {rounds} interleaved rounds; atol = rtol times the problem's scale.")
    found = curves(cases)
    for one, other in PAIRS:
        lines = ratios(found, problems, one, other)
        text += ["", f"## Time of {one} over {other} at equal digits", "", *lines]
    text += ["", f"## Set-up and first solution, ms at rtol = {COLD_RTOL:g}", "", *first_calls]
    print("\n".join(text))
    text += ["", "## Every case", "", *table(cases)]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "work_precision.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    picture(cases, problems, arguments.output / "work_precision.png")


if __name__ == "__main__":
    main()
