"""Calls of a residual that is a plain Python function, at equal digits: tether over IDA.

Nothing is traced and no Jacobian is given, so that differences count, for both:

    python -m benchmarks.calls [--write]

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
from tether import gallery
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


def ratio(problem: GalleryProblem) -> float:
    """Calls of tether over calls of IDA at equal digits; nan where they have none in common."""
    curves = []
    for adapter in (functools.partial(tether, trace="never"), sksundae):
        digits, calls = curve_of(adapter, problem)
        if len(digits) < 2:
            return math.nan
        curves.append(monotone_curve(digits, calls))
    levels = common_levels(*curves)
    logs = [math.log(curves[0].seconds_at(x) / curves[1].seconds_at(x)) for x in levels]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def main() -> None:
    """Print the table, and write it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("problems", nargs="*")
    options = parser.parse_args()
    rows, known = [], []
    for name in options.problems or gallery.names("classic"):
        value = ratio(gallery.get(name))
        words = "IDA does not solve it" if math.isnan(value) else f"{value:.2f}"
        rows.append(f"| {name} | {words} |")
        known += [] if math.isnan(value) else [value]
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
