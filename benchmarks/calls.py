"""Calls of a residual that is a plain Python function, at equal digits: tether over IDA.

Nothing is traced and no Jacobian is given, so that differences count, for both:

    python -m benchmarks.calls [--write]

Both begin at the same values: where a problem has no slopes for its start, tether finds them.

A ratio is the geometric mean over the whole and half digits that both solvers reach
(`benchmarks/curves.py`); calls do not depend on the machine.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.curves import common_levels, monotone_curve
from benchmarks.measure import conditions, prepare
from benchmarks.peers import Adapter, sksundae, tether
from tether import consistent_start, gallery
from tether.gallery import GalleryProblem

TOLERANCES = 10.0 ** -np.arange(3.0, 8.6, 0.5)
LIMIT = 20.0               # seconds for one run of IDA, which hangs on some problems
RESULTS = Path(__file__).parent / "results" / "calls.md"


def counting(fun: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Return a function that counts its calls, and the count."""
    count = [0]

    def counted(*arguments: Any) -> Any:
        count[0] += 1
        return fun(*arguments)

    return counted, count


def curve_of(adapter: Adapter, problem: GalleryProblem) -> tuple[list[float], list[float]]:
    """Digits and calls from the loosest tolerance to the tightest, as far as runs succeed."""
    digits, calls = [], []
    for rtol in TOLERANCES:
        fun, count = counting(problem.fun)
        case = prepare("", adapter, replace(problem, fun=fun), float(rtol), LIMIT)
        if case is None or case.failure not in ("", "not run"):
            continue
        count[0] = 0
        run = case.solve()
        if run.failure or not np.isfinite(run.y).all():
            continue
        digits.append(problem.digits(run.y))
        calls.append(float(count[0]))
    return digits, calls


def names() -> list[str]:
    """Problems for IDA: of index 0 or 1 without events, and the car axis of index 2."""
    problems = {name: gallery.get(name) for name in gallery.names()}
    return [name for name, problem in problems.items()
            if (problem.index <= 1 or name == "caraxis-i2") and not problem.events]


def started(problem: GalleryProblem) -> GalleryProblem:
    """Return the problem with consistent values and slopes at its start."""
    if problem.yp0 is not None:
        return problem
    start = consistent_start(problem.fun, problem.t_span[0], problem.y0, rtol=1e-10)
    return replace(problem, y0=start.y, yp0=start.yp) if start.success else problem


def ratio(problem: GalleryProblem) -> float | str:
    """Calls of tether over calls of IDA at equal digits, or why there is no such number."""
    problem = started(problem)
    points = {"tether": curve_of(functools.partial(tether, trace="never"), problem),
              "IDA": curve_of(sksundae, problem)}
    failed = [name for name, (digits, _) in points.items() if len(digits) < 2]
    if failed:
        return "solved by neither" if len(failed) == 2 else f"{failed[0]} does not solve it"
    curves = [monotone_curve(*found) for found in points.values()]
    levels = common_levels(*curves)
    logs = [math.log(curves[0].seconds_at(x) / curves[1].seconds_at(x)) for x in levels]
    return math.exp(sum(logs) / len(logs)) if logs else "no digits in common"


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("problems", nargs="*")
    options = parser.parse_args()
    rows, known = [], []
    for name in options.problems or names():
        value = ratio(gallery.get(name))
        words = value if isinstance(value, str) else f"{value:.2f}"
        rows.append(f"| {name} | {words} |")
        known += [] if isinstance(value, str) else [value]
        print(rows[-1], flush=True)
    mean = math.exp(sum(map(math.log, known)) / len(known))
    text = "\n".join(["# Calls of a plain Python residual, tether over IDA, at equal digits", "",
                      conditions(), "", "| problem | ratio |", "|---|---|", *rows,
                      f"| geometric mean of {len(known)} | {mean:.2f} |", ""])
    print(f"geometric mean {mean:.2f}")
    if options.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
