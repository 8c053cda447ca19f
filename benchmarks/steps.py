"""Work at equal digits over the gallery: what a change of the method gains or costs.

    python -m benchmarks.steps before.json                 # with the build before
    python -m benchmarks.steps after.json before.json      # with the one after

Every problem of the gallery is solved at 25 tolerances, and the counts of its work are kept beside
the correct digits. With a second file the two builds are compared: steps, residuals, Jacobians and
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

TOLERANCES = [float(f"{10.0**-e:.4g}") for e in np.arange(3.0, 9.01, 0.25)]
COUNTS = ("steps", "nfev", "njev", "nlu")
# Digits of the reference itself: what is closer to it than that is luck.
MARGIN = 0.5

Run = dict[str, Any]


def runs(name: str, options: dict[str, Any]) -> list[Run]:
    """Solve a problem at all tolerances, from loose to tight; those that fail are left out."""
    problem = get(name)
    found = []
    for rtol in TOLERANCES:
        sol = problem.solve(rtol=rtol, max_seconds=60, **options)
        if not sol.success:
            continue
        counts = {count: int(getattr(sol.stats, count)) for count in COUNTS}
        digits = min(problem.digits(sol.y[:, -1]), problem.reference_digits - MARGIN)
        found.append({"rtol": rtol, "digits": digits, **counts})
    return found


def at_equal_digits(new: list[Run], old: list[Run], count: str) -> float:
    """Geometric mean of a ratio of counts over all digits that both reach; NaN if there are none."""
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
        if name not in old:
            continue
        mine = {run["rtol"]: run for run in new[name]}
        pairs = [(mine[run["rtol"]], run) for run in old[name] if run["rtol"] in mine]
        if not pairs:
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
    chosen = options.problems.split(",") if options.problems else names()
    found = {name: runs(name, way) for name in chosen}
    options.output.write_text(json.dumps(found, indent=1))
    if options.before is not None:
        compare(found, json.loads(options.before.read_text()))


if __name__ == "__main__":
    main()
