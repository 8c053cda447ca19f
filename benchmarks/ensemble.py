"""Many members at once, against the bare core, more threads, and loops over other solvers.

    python -m benchmarks.ensemble [--members 10000] [--rounds 3] [--quick]

Robertson's kinetics with three rates that vary, and a pendulum of index 3 (projected) with varying
gravity and starting angle. Figures are processor time where threads do not matter, since it depends
less on what else the machine does, and ratios of interleaved runs where they do. The bare core is
`tether._core.step.advance` alone on states that were made ready before; its time is compared for
each step, since it is measured on fewer members.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import conditions
from tether import solve_ensemble
from tether._core import codes, step
from tether.ensemble.schedule import Schedule
from tether.problem.problem import Problem
from tether.run.integration import Integration

RESULTS = Path(__file__).parent / "results"
SAMPLE = 200                   # members of loops that are slow
TRIALS = 3                     # for every round in which the machine does nothing else
TWO_CORES = 1.9                # so many were in use


def robertson(t: float, y: Any, yp: Any, k1: float, k2: float, k3: float) -> list:
    a, b, c = y
    return [yp[0] + k1 * a - k2 * b * c, yp[1] - k1 * a + k2 * b * c + k3 * b * b, a + b + c - 1.0]


def pendulum(t: float, y: Any, yp: Any, g: float) -> list:
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + g, x * x + z * z - 1.0
    ]


@dataclass
class Study:
    """One problem for many parameters."""

    name: str
    fun: Callable[..., list]
    t_end: float
    y0: np.ndarray
    args: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, name: str, count: int) -> Study:
        random = np.random.default_rng(1)
        if name == "robertson":
            factors = 1.0 + 0.5 * random.random((3, count))
            rates = np.array([0.04, 1e4, 3e7])[:, None] * factors
            return cls(name, robertson, 1e6, np.array([1.0, 0.0, 0.0]), tuple(rates))
        angle, zeros = random.uniform(0.2, 1.4, count), np.zeros(count)
        y0 = np.stack([np.sin(angle), -np.cos(angle), zeros, zeros, zeros], axis=1)
        return cls(name, pendulum, 10.0, y0, (random.uniform(5.0, 15.0, count),))

    def part(self, count: int) -> Study:
        y0 = self.y0[:count] if self.y0.ndim == 2 else self.y0
        return Study(self.name, self.fun, self.t_end, y0, tuple(a[:count] for a in self.args))

    def solve(self, **more: Any) -> Any:
        return solve_ensemble(
            self.fun, (0.0, self.t_end), self.y0, args=self.args, start="quiet", **more
        )

    def member(self, i: int) -> tuple[np.ndarray, tuple[float, ...]]:
        y0 = self.y0[i] if self.y0.ndim == 2 else self.y0
        return y0, tuple(float(a[i]) for a in self.args)


def bare_core(study: Study, count: int) -> float:
    """Processor seconds of a step in the core alone."""
    spent, steps = 0.0, 0
    for i in range(count):
        y0, args = study.member(i)
        run = Integration(
            Problem(study.fun, args=args), 0.0, y0, options={"backend": "machine"},
            t_bound=study.t_end, dense_output=False,
        )
        began = time.process_time()
        while step.advance(run.state, 10**9) == codes.COMPARISON_DUE:
            run.state.to_compare = False       # with the function, which is not the core's work
        spent += time.process_time() - began
        steps += run.state.steps
    return spent / steps


def one_thread(study: Study) -> float:
    """Processor seconds of a step of members of an ensemble on one thread."""
    began = time.process_time()
    result = study.solve(workers=1, engine="threads")
    return (time.process_time() - began) / result.stats["steps"].sum()


def on_threads(study: Study, workers: int) -> np.ndarray:
    """Seconds by the clock, and of all processors together."""
    began = np.array([time.perf_counter(), time.process_time()])
    study.solve(workers=workers, engine="threads")
    return np.array([time.perf_counter(), time.process_time()]) - began


def two_threads_over_one(study: Study, rounds: int) -> tuple[float, float]:
    """Ratios of neighbouring runs; by the clock only where both threads had a core, else NaN."""
    by_clock, by_processor = [], []
    for _ in range(TRIALS * rounds):
        two, one = on_threads(study, 2), on_threads(study, 1)
        by_processor.append(two[1] / one[1])
        if two[1] > TWO_CORES * two[0] and one[1] > 0.5 * TWO_CORES * one[0]:
            by_clock.append(two[0] / one[0])
        if len(by_clock) == rounds:
            break
    return float(np.median(by_clock or [np.nan])), float(np.median(by_processor))


def loop_over_ida(study: Study, count: int) -> float:
    """Processor seconds of a member in a loop over scikit-sundae, with the Python residual."""
    from sksundae.ida import IDA

    began = time.process_time()
    for i in range(count):
        y0, args = study.member(i)
        if study.name == "robertson":
            fun, algebraic, slopes = robertson, 2, np.array([-args[0], args[0], 0.0])
        else:
            fun, algebraic, tension = pendulum_of_index_1, 4, -args[0] * y0[1]
            slopes = np.array([0.0, 0.0, -tension * y0[0], -tension * y0[1] - args[0], 0.0])
            y0 = np.append(y0[:4], tension)
        solver = IDA(
            as_ida_calls_it(fun, args), rtol=1e-6, atol=1e-9, max_num_steps=100_000,
            algebraic_idx=[algebraic], calc_initcond="yp0",
        )
        # with two times it would return every step
        found = solver.solve(np.linspace(0.0, study.t_end, 3), y0, slopes)
        assert found.success, found.message
    return (time.process_time() - began) / count


def pendulum_of_index_1(t: float, y: Any, yp: Any, g: float) -> list:
    """The pendulum with its constraint differentiated twice, since IDA is not for index 3."""
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + g,
        u * u + v * v - tension * (x * x + z * z) - g * z,
    ]


def as_ida_calls_it(fun: Callable[..., list], args: tuple) -> Callable[..., None]:
    def residual(t: float, y: Any, yp: Any, res: Any) -> None:
        res[:] = fun(t, y, yp, *args)

    return residual


IN_DIFFSL = """
in_i { k1 = 0.04, k2 = 10000, k3 = 30000000 }
u_i { x = 1, y = 0, z = 0, }
dudt_i { dxdt = 1, dydt = 0, dzdt = 0, }
M_i { dxdt, dydt, 0, }
F_i { -k1*x + k2*y*z, k1*x - k2*y*z - k3*y*y, 1 - x - y - z, }
"""


def loop_over_pydiffsol(count: int) -> float:
    """Processor seconds of a member of Robertson's kinetics, of which it solves one at a time."""
    import pydiffsol

    ode = pydiffsol.Ode(IN_DIFFSL, matrix_type=pydiffsol.nalgebra_dense)
    ode.ode_solver, ode.rtol, ode.atol = pydiffsol.bdf, 1e-6, 1e-9
    study = Study.of("robertson", count)
    began = time.process_time()
    for i in range(count):
        ode.solve(np.array(study.member(i)[1]), study.t_end)
    return (time.process_time() - began) / count


def on_dask(count: int) -> tuple[float, float]:
    """Milliseconds of a member, and time by the clock over that of two workers who never wait."""
    from dask.distributed import Client, LocalCluster

    study, busy = Study.of("pendulum", count), []
    study.t_end, measured = 140.0, Schedule.measured

    def note(schedule: Schedule, members: int, seconds: float) -> None:
        busy.append(seconds)
        measured(schedule, members, seconds)

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, Client(cluster) as client:
        study.part(20).solve(engine=client)
        Schedule.measured = note               # type: ignore[method-assign]
        began = time.perf_counter()
        study.solve(engine=client)
        spent = time.perf_counter() - began
        Schedule.measured = measured           # type: ignore[method-assign]
    return 1e3 * sum(busy) / count, 2.0 * spent / sum(busy)


def with_events(study: Study) -> tuple[float, float]:
    """Processor microseconds of a member that counts when it passes the middle, and without."""
    def middle(t: float, y: Any, yp: Any, g: float) -> float:
        return y[0]

    found = []
    for events in (middle, None):
        began = time.process_time()
        study.solve(workers=1, engine="threads", events=events)
        found.append(1e6 * (time.process_time() - began) / len(study.args[0]))
    return found[0], found[1]


MILLION = """
import resource, time
import numpy as np
from tether import solve_ensemble
def decay(t, y, yp, rate):
    return [yp[0] + rate * y[0], y[1] - 2.0 * y[0]]
rates = np.linspace(0.1, 2.0, 1_000_000)
solve_ensemble(decay, (0.0, 1.0), [1.0, 2.0], args=(rates[:10],))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
result = solve_ensemble(decay, (0.0, 1.0), [1.0, 2.0], args=(rates,), progress=True)
assert result.success.all()
assert np.allclose(result.y[:, 0, 0], np.exp(-rates), rtol=1e-3)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before // 1024, after // 1024, round(1e6 * result.seconds / 1e6, 1))
"""


def million() -> tuple[int, int, float]:
    """Memory in MB before and after, and microseconds of a member, of a million members."""
    found = subprocess.run(
        [sys.executable, "-c", MILLION], capture_output=True, text=True, check=True
    )
    before, after, each = found.stdout.split()
    return int(before), int(after), float(each)


def measure(study: Study, rounds: int, with_ida: bool) -> list[str]:
    """Return a row of the table."""
    few, more = study.part(SAMPLE), study.part(10 * SAMPLE)
    steps = float(few.solve(workers=1).stats["steps"].mean())
    both = [(bare_core(few, SAMPLE), one_thread(more)) for _ in range(rounds)]
    bare, single = (steps * min(times) for times in zip(*both, strict=True))
    by_clock, by_processor = two_threads_over_one(study, rounds)
    row = [
        study.name, f"{1e6 * bare:.0f}", f"{1e6 * single:.0f}", f"{single / bare:.3f}",
        "busy" if np.isnan(by_clock) else f"{by_clock:.2f}", f"{by_processor:.2f}",
    ]
    ida = loop_over_ida(few, SAMPLE if study.name == "robertson" else 50) if with_ida else None
    row.append("-" if ida is None else f"{1e6 * ida:.0f}")
    row.append("-" if ida is None else f"{ida / single:.0f}")
    return row


def others(quick: bool) -> list[str]:
    """Return lines about events, and about packages that are installed."""
    counting, plain = with_events(Study.of("pendulum", 200))
    lines = ["", f"An event that the pendulum passes about ten times takes a member from "
             f"{plain:.0f} to {counting:.0f} us."]
    if find_spec("pydiffsol"):
        lines += ["", "pydiffsol, which compiles the formulas and solves one member at a time: "
                  f"{1e6 * loop_over_pydiffsol(SAMPLE):.0f} us for a member of robertson."]
    if find_spec("distributed"):
        each, ratio = on_dask(100 if quick else 1000)
        lines += ["", f"Dask, two workers of one thread, members of {each:.0f} ms: by the clock "
                  f"{ratio:.3f} of what two workers would take that never wait."]
    print("\n".join(lines))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    count = 1000 if chosen.quick else chosen.members
    with_ida = find_spec("sksundae") is not None
    lines = [
        "# Many members at once", "",
        f"`python -m benchmarks.ensemble`: {count} members, rtol 1e-6, atol 1e-9, only their ends "
        "are kept. Microseconds for a member: in the bare core, on one thread (processor time), "
        "and in a loop over scikit-sundae with a Python residual. Two threads over one are ratios "
        f"on {os.cpu_count()} cores: by the clock, of rounds in which both threads had a core for "
        "themselves, and of the processor time of all threads.", "",
        conditions(), "",
        "| problem | bare core | one thread | over bare core | 2 threads, clock | 2 threads, work "
        "| scikit-sundae | over one thread |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in ("robertson", "pendulum"):
        row = measure(Study.of(name, count), chosen.rounds, with_ida)
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    if not chosen.quick:
        before, after, each = million()
        lines += ["", f"10^6 members of two unknowns with `keep=\"final\"`: {each:.1f} us each; "
                  f"the memory of the process grows from {before} MB to {after} MB."]
        print(lines[-1])
    lines += others(chosen.quick)
    (chosen.output / "ensemble.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
