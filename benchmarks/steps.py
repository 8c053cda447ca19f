"""Work at equal digits over the gallery: what a change of the method gains or costs.

    python -m benchmarks.steps before.json                 # with the build before
    python -m benchmarks.steps after.json before.json      # with the one after

Every problem of the gallery is solved at eleven tolerances, and the counts of its work are kept
beside the correct digits: those of the whole solution, at 400 times, against a run at 1e-11 that
is written into the first file and taken from it by the second run. Unknowns are measured by their
largest values. With a second file the two builds are compared: steps, residuals, Jacobians and
factorisations at equal digits (`curves.py`), and at equal tolerances the steps and what becomes of
the digits. A ratio below 1 means that the new build needs less. Counts do not depend on the load of
the machine, so the two runs need not be interleaved.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.curves import common_levels, monotone_curve
from tether.gallery import get, names

TOLERANCES = [float(f"{10.0**-e:.4g}") for e in np.arange(3.5, 8.51, 0.5)]
REFERENCE = (1e-11, 1e-10)     # the first at which the problem is solved
TIMES = 400
COUNTS = ("steps", "nfev", "njev", "nlu")
# Of the largest unknown: by less none is measured.
SMALLEST = 1e-3
# Runs whose digits do not grow by this much from the loosest to the tightest say nothing.
GROWTH = 1.5

Run = dict[str, Any]


def reference(name: str, options: dict[str, Any]) -> list[list[float]] | None:
    """Return the unknowns at all times by a tight run; None if there is no such run."""
    problem = get(name)
    for rtol in REFERENCE:
        sol = problem.solve(rtol=rtol, t_eval=times(name), max_seconds=60, **options)
        if sol.success:
            return list(sol.y.tolist())
    return None


def times(name: str) -> np.ndarray:
    """Return the times at which solutions are compared."""
    return np.linspace(*get(name).t_span, TIMES)[1:]


def runs(name: str, right: list[list[float]], options: dict[str, Any]) -> list[Run]:
    """Solve a problem at all tolerances, from loose to tight; those that fail are left out."""
    problem, exact = get(name), np.array(right)
    size = np.abs(exact).max(axis=1, keepdims=True)
    size = np.maximum(size, SMALLEST * size.max())
    found = []
    for rtol in TOLERANCES:
        sol = problem.solve(rtol=rtol, t_eval=times(name), max_seconds=60, **options)
        if not sol.success:
            continue
        counts = {count: int(getattr(sol.stats, count)) for count in COUNTS}
        error = np.sqrt(np.mean(np.max(np.abs(sol.y - exact) / size, axis=0) ** 2))
        found.append({"rtol": rtol, "digits": -math.log10(max(error, 1e-14)), **counts})
    return found


def at_equal_digits(new: list[Run], old: list[Run], count: str) -> float:
    """Geometric mean of a ratio of counts over all digits that both reach; NaN for none."""
    curves = [
        monotone_curve([run["digits"] for run in each], [max(run[count], 1) for run in each])
        for each in (new, old)
    ]
    levels = common_levels(*curves)
    ratios = [math.log(curves[0].seconds_at(x) / curves[1].seconds_at(x)) for x in levels]
    return math.exp(np.mean(ratios)) if ratios else math.nan


def compare(new: dict[str, list[Run]], old: dict[str, list[Run]]) -> None:
    """Print a row for each problem and the geometric means."""
    print("| problem | " + " | ".join(COUNTS) + " | steps at equal rtol | digits gained | failed |")
    print("|---|" + "---|" * (len(COUNTS) + 3))
    rows = []
    for name in new:
        mine = {run["rtol"]: run for run in new[name]}
        pairs = [(mine[run["rtol"]], run) for run in old.get(name, []) if run["rtol"] in mine]
        if len(pairs) < 2 or pairs[-1][1]["digits"] - pairs[0][1]["digits"] < GROWTH:
            continue
        steps = math.exp(np.mean([math.log(a["steps"] / b["steps"]) for a, b in pairs]))
        gained = float(np.mean([a["digits"] - b["digits"] for a, b in pairs]))
        ratios = [at_equal_digits(new[name], old[name], count) for count in COUNTS]
        rows.append([*ratios, steps, gained])
        failed = f"{len(TOLERANCES) - len(new[name])}, {len(TOLERANCES) - len(old[name])}"
        print(f"| {name} | " + " | ".join(f"{x:.2f}" for x in rows[-1]) + f" | {failed} |")
    means = np.array(rows)
    geometric = np.exp(np.nanmean(np.log(means[:, :-1]), axis=0))
    print("| **mean** | " + " | ".join(f"{x:.3f}" for x in geometric)
          + f" | {means[:, -1].mean():.2f} | |")


def main() -> None:
    """Solve the gallery, write the counts and compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("--problems", help="comma-separated, instead of the whole gallery")
    parser.add_argument("--way", choices=["auto", "given", "called"], default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    way = {"auto": {}, "given": {"form": "given"}, "called": {"trace": "never"}}[options.way]
    before = json.loads(options.before.read_text()) if options.before else None
    right, found = before["right"] if before else {}, {}
    for name in options.problems.split(",") if options.problems else names():
        if name not in right:
            right[name] = reference(name, way)
        if right[name] is not None:
            found[name] = runs(name, right[name], way)
    options.output.write_text(json.dumps({"right": right, "runs": found}))
    if before is not None:
        compare(found, before["runs"])


if __name__ == "__main__":
    main()
