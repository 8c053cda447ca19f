"""What the first call of `solve_dae` costs, before anything is known about a function.

    python -m benchmarks.first_call [--rounds 7] [--quick]

Every figure comes from a process of its own that has solved one trivial problem before, so that
everything is imported, and has an empty cache of compiled libraries. The problems take turns, and
the best of all rounds counts. The interval is a millionth of the usual one: what is measured is
tracing, comparison with the function, analysis and the making of programs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import conditions
from tether import gallery, solve_dae
from tether.plan import choose
from tether.plan.shelf import shelf

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
SHARE = 1e-6                           # of the interval
# Phases, and the functions of `tether.plan.choose` that they are.
PHASES = {
    "trace": ("trace",),
    "compare": ("verify",),
    "analyse": ("find_modes", "analyze_trace"),
    "programs": ("_reduce", "prepare"),
}
FURTHER = ("pleiades", "wheelset, index 2", "wheelset", "two-bit adder")

Case = tuple[Callable[..., Any], tuple[float, float], Any, Any]


def case(name: str) -> Case:
    """Return residual, interval and start of a problem of the gallery or of the tests."""
    if name not in FURTHER:
        p = gallery.get(name)
        return p.fun, p.t_span, p.y0, p.yp0
    sys.path.insert(0, str(ROOT / "tests"))
    if name == "pleiades":
        from support.pleiades import SPAN, START, pleiades

        return pleiades, SPAN, START, None
    if name == "two-bit adder":
        from support.adder import START, adder

        return adder, (0.0, 320.0), START, None
    from support.wheelset import START, wheelset

    return partial(wheelset, index=2 if "2" in name else 3), (0.0, 10.0), START, None


def measure(name: str) -> dict[str, Any]:
    """Solve a problem for the first time, and clock it and its phases."""
    solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0])
    fun, (begin, end), y0, yp0 = case(name)
    spent = dict.fromkeys(PHASES, 0.0)
    for phase, functions in PHASES.items():
        for function in functions:
            setattr(choose, function, _clocked(getattr(choose, function), phase, spent))
    start = time.thread_time()
    sol = solve_dae(fun, (begin, begin + SHARE * (end - begin)), y0, yp0)
    total = time.thread_time() - start
    assert sol.how.startswith("traced"), sol.how
    plan = next(plan for plan in reversed(shelf._plans.values()) if plan.system is not None)
    assert plan.system is not None
    return {
        "n": len(y0), "operations": int(plan.system.program.size), "total": total,
        **spent, "rest": total - sum(spent.values()),
    }


def _clocked(
    function: Callable[..., Any], phase: str, spent: dict[str, float]
) -> Callable[..., Any]:
    """Let a function note its time; not that of a phase within another."""

    def clocked(*args: Any, **options: Any) -> Any:
        before, start = sum(spent.values()), time.thread_time()
        try:
            return function(*args, **options)
        finally:
            spent[phase] += time.thread_time() - start - (sum(spent.values()) - before)

    return clocked


def in_new_process(name: str) -> dict[str, Any]:
    """Measure a problem in a process that has never seen it."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.first_call", "--one", name], cwd=ROOT, check=True,
            env={**os.environ, "TETHER_CACHE": cache}, capture_output=True, text=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def table(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Markdown lines, times in milliseconds."""
    columns = ["total", *PHASES, "rest"]
    lines = [
        f"| | unknowns | operations | {' | '.join(columns)} | us per operation |",
        "|---|" + "---|" * (len(columns) + 3),
    ]
    for name, runs in found.items():
        best = min(runs, key=lambda run: run["total"])
        times = " | ".join(f"{1e3 * best[column]:.1f}" for column in columns)
        each = 1e6 * best["total"] / best["operations"]
        lines.append(f"| {name} | {best['n']} | {best['operations']} | {times} | {each:.0f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    names = [*gallery.names("classic"), *FURTHER]
    rounds = 2 if arguments.quick else arguments.rounds
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(in_new_process(name))
    sizes = {name: (runs[0]["n"], runs[0]["operations"]) for name, runs in found.items()}
    found = dict(sorted(found.items(), key=lambda item: sizes[item[0]]))
    small = [min(run["total"] for run in runs) for runs in found.values() if runs[0]["n"] <= 30]
    text = [
        "# The first call", "", conditions(), "",
        f"Milliseconds of the calling thread, best of {rounds} interleaved rounds, each in a "
        "process of its own that has solved a trivial problem before; no compiled libraries. "
        "Operations are those of the program that is integrated, Jacobian included. Up to 30 "
        f"unknowns the longest is "
        f"{1e3 * max(small):.0f} ms, the geometric mean "
        f"{1e3 * np.exp(np.mean(np.log(small))):.0f} ms.",
        "", *table(found),
    ]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "first_call.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
