"""What an evaluation costs: plain Python, the machine, and the same program in C.

    python -m benchmarks.machine [--rounds 7] [--quick]

Residual: nanoseconds of one call through the core's seam, with a new y every time. Jacobian: all
entries of F_y and F_y' at a new point, the shared parts of the residual included. The
compiler's time is that of the first call; `cached` finds the library of an earlier process.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import conditions
from tether import gallery
from tether._core import adapters, jacobian, probe
from tether._core.dense import Dense
from tether._core.state import State
from tether.trace import trace
from tether.trace.backend import prepare_system

RESULTS = Path(__file__).parent / "results"
BUDGET = 0.02                          # seconds of one timing


def repulsion(points: int) -> tuple[Callable[..., list[Any]], int, np.ndarray]:
    """Points that repel each other with friction: a large program, all pairs of unknowns."""

    def fun(t: float, y: Any, yp: Any) -> list[Any]:
        force = [0.0] * (3 * points)
        for i in range(points):
            for j in range(i):
                d = [y[3 * i + k] - y[3 * j + k] for k in range(3)]
                s = 1.0 / (d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
                for k in range(3):
                    force[3 * i + k] = force[3 * i + k] + d[k] * s
                    force[3 * j + k] = force[3 * j + k] - d[k] * s
        return [yp[i] - force[i] for i in range(3 * points)]

    return fun, 3 * points, np.random.default_rng(0).standard_normal(3 * points)


def problems() -> dict[str, tuple[Callable[..., Any], int, np.ndarray]]:
    """Residual, number of unknowns and a point, by name."""
    names = ("robertson", "pend-i1", "akzo", "transamp", "caraxis-i1")
    found = {name: gallery.get(name) for name in names}
    chosen = {name: (p.fun, p.n, p.y0 + 0.01) for name, p in found.items()}
    heat = gallery.heat1d(m=100)
    chosen["heat1d, m = 100"] = (heat.fun, heat.n, heat.y0)
    chosen["repulsion, 20 points"] = repulsion(20)
    return chosen


def nanoseconds(state: State, y: np.ndarray, residuals: bool, rounds: int) -> float:
    """Time of one evaluation, the best of several rounds."""
    yp, count, best = np.zeros_like(y), 1, math.inf
    for _ in range(rounds + 8):
        numbers = (count, 0) if residuals else (0, count)
        begin = time.perf_counter()
        probe.repeat(state, 0.1, y, yp, *numbers)
        elapsed = time.perf_counter() - begin
        best = min(best, elapsed / count)
        if elapsed < BUDGET:
            count = int(count * min(10.0, 1.2 * BUDGET / max(elapsed, 1e-6))) + 1
    return 1e9 * best


def new_state(n: int) -> State:
    state = State(Dense(n), np.full(n, 1e-6), np.full(n, 1e-6))
    state.h = 1e-3
    return state


def evaluation_row(name: str, rounds: int) -> list[str]:
    fun, n, y = problems()[name]
    plain = new_state(n)
    adapters.use_python_residual(plain, fun, (), False)
    jacobian.use_differences(plain)
    probe.move_to(plain, 0.1, y, np.zeros(n))

    begin = time.perf_counter()
    traced = trace(fun, n)
    traced_at = time.perf_counter()
    machine = prepare_system(traced, backend="machine")
    prepared_at = time.perf_counter()
    compiled = prepare_system(traced, backend="c")
    compiled_at = time.perf_counter()
    prepare_system(traced, backend="c")
    loaded_at = time.perf_counter()

    states = [new_state(n) for _ in range(2)]
    machine.attach(states[0])
    compiled.attach(states[1])
    python = nanoseconds(plain, y, True, rounds)
    residual, entries = (nanoseconds(states[0], y, kind, rounds) for kind in (True, False))
    c_residual, c_entries = (nanoseconds(states[1], y, kind, rounds) for kind in (True, False))
    counts = traced.program().size, program_size(traced)
    in_c = compiled.name == "c"
    return [
        name, f"{n}", f"{counts[0]}, {counts[1]}", f"{python:.0f}",
        f"{residual:.0f} ({residual / counts[0]:.1f})", f"{c_residual:.0f}" if in_c else "-",
        f"{entries:.0f} ({entries / counts[1]:.1f})", f"{c_entries:.0f}" if in_c else "-",
        f"{1e3 * (traced_at - begin):.1f}, {1e3 * (prepared_at - traced_at):.1f}",
        f"{1e3 * (compiled_at - prepared_at):.0f}, {1e3 * (loaded_at - compiled_at):.1f}"
        if in_c else "-",
    ]


def program_size(traced: Any) -> int:
    return traced.program(traced.outputs + traced.f_y.nodes + traced.f_yp.nodes).size


def solve_row(name: str, rounds: int) -> list[str]:
    """Whole integrations; tracing and compiling not included."""
    given = gallery.get(name)
    ways: list[dict[str, Any]] = [
        {"trace": "never"}, {"options": {"backend": "machine"}}, {"options": {"backend": "c"}},
    ]
    best, steps = [math.inf] * len(ways), 0
    for _ in range(rounds + 1):            # plans and libraries are made in the first
        for k, way in enumerate(ways):
            begin = time.perf_counter()
            sol = given.solve(rtol=1e-6, atol=given.atol(1e-6), **way)
            best[k] = min(best[k], time.perf_counter() - begin)
            steps = sol.stats.steps
    return [name, f"{steps}", *(f"{1e3 * seconds:.2f}" for seconds in best)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="timings of which the best counts")
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder to write into")
    arguments = parser.parse_args()
    rounds = 2 if arguments.quick else arguments.rounds

    with tempfile.TemporaryDirectory() as cache:
        os.environ["TETHER_CACHE"] = cache
        text = ["# Cost of an evaluation", "", conditions(), ""]
        text += [
            "Nanoseconds; in brackets per operation. Operations: of the residual, and with all "
            "Jacobian entries.", "",
            "| problem | n | operations | Python residual | machine: residual | C: residual "
            "| machine: Jacobian | C: Jacobian | ms to trace, to differentiate and schedule "
            "| ms to compile, cached |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        text += ["| " + " | ".join(evaluation_row(name, rounds)) + " |" for name in problems()]
        text += [
            "", "Whole integrations at rtol 1e-6, in milliseconds; Python without a Jacobian.", "",
            "| problem | steps | Python | machine | C |", "|---|---|---|---|---|",
        ]
        names = ("robertson", "pend-i1", "akzo", "transamp", "caraxis-i1")
        text += ["| " + " | ".join(solve_row(name, rounds)) + " |" for name in names]
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "machine.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
