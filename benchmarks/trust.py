"""What it costs to compare traces with their functions along a run.

    python -m benchmarks.trust [--rounds 30] [--quick]

Runs with and without comparisons take turns in one process. `between` is the ratio of the best
times: what a run costs more that has nothing to compare, with its conditions watched at every step.
`share` is the time of the comparisons in that of all runs of the same plan after the first ones,
which are compared whatever that costs. `first` is the share of the first solve, tracing included.
`points` are the comparisons of all runs.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.measure import conditions
from tether import gallery, solve_dae
from tether.plan import choose, functions, ledger
from tether.plan.plan import Plan
from tether.plan.shelf import Shelf
from tether.run import trust

RESULTS = Path(__file__).parent / "results"
SLOT = 0.01                            # seconds of one turn, one run at least

Run = Callable[[], Any]


def friction(t: float, y: Any, yp: Any) -> list[Any]:
    """Return a mass on a spring with friction that changes with its direction, and a stop."""
    x, v = y
    drag = 0.3 * v if v > 0.0 else 0.1 * v
    wall = 50.0 * (x - 0.8) if x > 0.8 else 0.0
    return [yp[0] - v, yp[1] + x + drag + wall - math.sin(1.3 * t)]


def upwind(t: float, y: Any, yp: Any) -> Any:
    """Return 30 cells of a flow that takes its values from where the wind comes."""
    wind = np.sin(t + 0.2 * np.arange(30))
    flux = wind * np.where(wind > 0.0, y, np.roll(y, -1))
    return yp + flux - np.roll(flux, 1) + 0.1 * y


def problems() -> dict[str, Run]:
    """Return runs by name."""
    runs: dict[str, Run] = {}
    for name in gallery.names("classic"):
        p = gallery.get(name)

        def run(p: gallery.GalleryProblem = p) -> Any:
            return solve_dae(p.fun, p.t_span, p.y0, p.yp0, rtol=1e-5, atol=p.atol(1e-5),
                             t_eval=[p.t_span[1]])

        runs[name] = run
    short = gallery.get("pend-i1")
    runs["pend-i1, to t = 0.01"] = lambda: solve_dae(short.fun, (0.0, 0.01), short.y0, short.yp0)
    runs["friction, 4 branches"] = lambda: solve_dae(friction, (0.0, 50.0), [1.0, 0.0])
    runs["upwind, 30 conditions"] = lambda: solve_dae(upwind, (0.0, 10.0), np.linspace(0, 1, 30))
    return runs


def _never(_: ledger.Ledger) -> bool:
    return False


class Series:
    """Runs of one problem, with a shelf of plans of its own."""

    def __init__(self, run: Run, trusting: bool) -> None:
        self.run, self.trusting = run, trusting
        self.shelf, self.best, self.points = Shelf(), math.inf, 0

    def turn(self, slot: float = SLOT) -> None:
        """Run for a while."""
        with ExitStack() as stack:
            for module in (choose, functions, trust):
                stack.enter_context(mock.patch.object(module, "shelf", self.shelf))
            if self.trusting:
                stack.enter_context(mock.patch.object(ledger.Ledger, "begin_run", _never))
                stack.enter_context(mock.patch.object(ledger.Ledger, "can_pay", False))
                stack.enter_context(mock.patch.object(Plan, "conditions", None))
            end = time.perf_counter() + slot
            while True:
                began = time.perf_counter()
                sol = self.run()
                seconds = time.perf_counter() - began
                self.points += sol.stats.checks
                assert not sol.warnings, sol.warnings
                if not sol.stats.checks:
                    self.best = min(self.best, seconds)
                if time.perf_counter() >= end:
                    return

    @property
    def spent(self) -> tuple[float, float]:
        """Return the time of runs and of comparisons."""
        plans = self.shelf._plans.values()
        runs = sum(plan.ledger.run_seconds for plan in plans)
        return runs, sum(plan.ledger.compare_seconds for plan in plans)


def measure(run: Run, rounds: int) -> str:
    """Return a row of the table."""
    trusting, verifying = Series(run, True), Series(run, False)
    verifying.turn(0.0)
    first = verifying.spent
    for _ in range(ledger.FIRST_RUNS):
        verifying.turn()
    before = verifying.spent
    for _ in range(rounds):
        trusting.turn()
        verifying.turn()
    after = verifying.spent
    share = (after[1] - before[1]) / (after[0] - before[0])
    ratio = verifying.best / trusting.best if math.isfinite(verifying.best) else math.nan
    return (f"| {trusting.best * 1e3:.3f} | {ratio:.3f} | {share:.2%} | {first[1] / first[0]:.2%} "
            f"| {verifying.points} |")


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines = ["# The cost of comparing traces with their functions", "", conditions(), "",
             "| problem | ms | between | share | first | points |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, run in problems().items():
        lines.append(f"| {name} {measure(run, 3 if options.quick else options.rounds)}")
        print(lines[-1], flush=True)
    options.output.mkdir(exist_ok=True)
    (options.output / "trust.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
