"""Time at equal digits on smooth problems, over that of another tree.

    python -m benchmarks.smooth TREE [--problems NAME,...] [--python PYTHON] [--rounds N]

Both trees are built in place, and solve the problems in turns, in processes of their own, with the
processor's time of the best of several solves at eleven tolerances. Digits are those of the whole
solution (`steps.py`); times are compared at those that both reach (`curves.py`). Switches, hidden
inputs and other things that smooth problems do without must not cost them anything: a ratio below 1
means that this tree needs less time. Another tree may need another Python, with its own versions of
the libraries.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.curves import common_levels, monotone_curve
from benchmarks.steps import SMALLEST, TOLERANCES, reference, times
from tether import solve_dae
from tether.gallery import get

ROOT = Path(__file__).parent.parent
PROBLEMS = ("robertson", "akzo", "pend-i1", "pend-i3", "andrews-i1", "andrews-i3", "transamp",
            "caraxis-i1", "caraxis-i3", "vdpol", "trivial", "rotor", "harmonic", "heat1d")
SOLVES = 5                             # of which the fastest counts
SHORTEST = 0.01                        # seconds to measure, in as many solves as that takes

# Digits and seconds of every problem at every tolerance.
Found = dict[str, list[tuple[float, float]]]


def solve_all(right: dict[str, list[list[float]]]) -> Found:
    """Solve all problems at all tolerances."""
    warnings.simplefilter("ignore")
    return {name: [measured(name, np.array(exact), rtol) for rtol in TOLERANCES]
            for name, exact in right.items()}


def measured(name: str, exact: np.ndarray, rtol: float) -> tuple[float, float]:
    """Return the digits and the seconds of a solve; NaN for a failure."""
    problem = get(name)
    size = np.abs(exact).max(axis=1, keepdims=True)
    size = np.maximum(size, SMALLEST * size.max())

    def solve() -> Any:
        return solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                         atol=problem.atol(rtol), t_eval=times(name))

    sol = solve()
    if not sol.success:
        return math.nan, math.nan
    error = np.sqrt(np.mean(np.max(np.abs(sol.y - exact) / size, axis=0) ** 2))
    return -math.log10(max(error, 1e-14)), min(seconds(solve) for _ in range(SOLVES))


def seconds(solve: Any) -> float:
    """Return the processor's time of one solve, the mean of several short ones."""
    count, begin = 0, time.process_time()
    while time.process_time() - begin < SHORTEST:
        solve()
        count += 1
    return (time.process_time() - begin) / count


def in_tree(tree: Path, python: str, right: Path) -> Found:
    """Solve all problems with the package of a tree."""
    places = os.pathsep.join([str(tree / "src"), str(ROOT)])
    settings = {**os.environ, "PYTHONPATH": places, "OPENBLAS_NUM_THREADS": "1"}
    command = [python, __file__, "--solve", str(right)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    return {name: [tuple(run) for run in runs] for name, runs in json.loads(done.stdout).items()}


def best(rounds: list[Found], name: str) -> list[tuple[float, float]]:
    """Return the digits and the shortest times of all rounds, without failures."""
    runs = [(each[0][0], min(run[1] for run in each))
            for each in zip(*(found[name] for found in rounds), strict=True)]
    return [run for run in runs if run[0] == run[0]]


def ratio(new: list[tuple[float, float]], old: list[tuple[float, float]]) -> float:
    """Geometric mean of the ratios of time at all digits that both reach."""
    curves = [monotone_curve(*map(list, zip(*runs, strict=True))) for runs in (new, old)]
    levels = common_levels(*curves)
    logs = [math.log(curves[0].seconds_at(x) / curves[1].seconds_at(x)) for x in levels]
    return math.exp(np.mean(logs)) if logs else math.nan


def main() -> None:
    """Print the ratios of the problems and their mean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path, nargs="?", help="the other one, built in place")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--python", default=sys.executable, help="the Python of the other tree")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--solve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve:
        print(json.dumps(solve_all(json.loads(options.solve.read_text()))))
        return
    names = options.problems.split(",")
    right = {name: reference(name, {}) for name in names}
    new: list[Found] = []
    old: list[Found] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "right.json")
        file.write_text(json.dumps({name: values for name, values in right.items() if values}))
        for _ in range(options.rounds):
            old.append(in_tree(options.tree.resolve(), options.python, file))
            new.append(in_tree(ROOT, sys.executable, file))
    ratios = {name: ratio(best(new, name), best(old, name)) for name in new[0]}
    print("| problem | time at equal digits |\n|---|---|")
    for name, value in ratios.items():
        print(f"| {name} | {value:.2f} |")
    print(f"| **mean** | {math.exp(np.nanmean(np.log(list(ratios.values())))):.2f} |")


if __name__ == "__main__":
    main()
