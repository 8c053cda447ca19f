"""Large systems: time, digits, fill and memory against IDA with banded and sparse matrices.

    python -m benchmarks.large [--rounds 3] [--quick]

Lines and squares of heat, ladders and random networks of resistors, capacitors and diodes written
as loops over a netlist, and hanging chains. tether is measured with its plan made (warm) and for
the first time, traced and with the function called; IDA (scikit-sundae, if it is installed) with
the band or the pattern that it needs to be told. Both begin at the same consistent values and keep
the end alone. All runs of a row take turns in one process, and ratios of processor times are
reported. Two tables follow: how the time of a step grows with the
size, and what a million unknowns take, in processes of their own.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, diags_array, eye_array, kron

from benchmarks.measure import conditions
from tether import solve_dae

RESULTS = Path(__file__).parent / "results"
RTOL, ATOL = 1e-6, 1e-9

Residual = Callable[..., Any]


@dataclass
class Large:
    """A system that comes in any size; `pattern` is that of both Jacobians together."""

    name: str
    fun: Residual
    t_end: float
    y0: np.ndarray
    pattern: Any
    exact: np.ndarray | None = None
    band: int = 0
    index: int = 1


def line(n: int) -> Large:
    """Heat on a line, both ends at zero."""
    width = 1.0 / (n + 1)

    def heat(t: float, y: Any, yp: Any) -> Any:
        u = np.concatenate([[0.0], y, [0.0]])
        return yp - (u[2:] - 2 * u[1:-1] + u[:-2]) / width**2

    mode = np.sin(np.pi * width * np.arange(1, n + 1))
    rate = (2 / width * np.sin(np.pi * width / 2)) ** 2
    pattern = diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    return Large(f"heat, line of {n}", heat, 0.1, mode, pattern, mode * np.exp(-0.1 * rate), 1)


def square(k: int) -> Large:
    """Heat on a square of k by k points, its border at zero."""
    width = 1.0 / (k + 1)

    def heat(t: float, y: Any, yp: Any) -> Any:
        u = np.zeros((k + 2, k + 2), dtype=y.dtype)
        u[1:-1, 1:-1] = y.reshape(k, k)
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return yp - ((around - 4 * u[1:-1, 1:-1]) / width**2).reshape(-1)

    mode = np.sin(np.pi * width * np.arange(1, k + 1))
    rate = 2 * (2 / width * np.sin(np.pi * width / 2)) ** 2
    side = diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    pattern = kron(eye_array(k), side) + kron(side, eye_array(k))
    start = np.outer(mode, mode).reshape(-1)
    return Large(
        f"heat, square of {k} x {k}", heat, 0.05, start, pattern, start * np.exp(-0.05 * rate), k
    )


def netlist(n: int, random: bool) -> Large:
    """Resistors, capacitors and diodes: a ladder, or a random tree with a few bridges."""
    draw = np.random.default_rng(n)
    parts: list[tuple[str, int, int, float]] = [("R", k - 1, k, 1e3) for k in range(1, n)]
    if random:
        parts = [("R", int(draw.integers(max(0, k - 8), k)), k, float(draw.uniform(500, 2000)))
                 for k in range(1, n)]
        for first in draw.integers(0, n - 20, n // 20):
            parts.append(("R", int(first), int(first + draw.integers(2, 20)), 5e3))
    for k in range(n):
        parts.append(("C", k, -1, 1e-6))
        if not random or draw.random() < 0.3:
            parts.append(("D", k, -1, 1e-12))

    def circuit(t: float, v: Any, dv: Any) -> Any:
        current = [0.0] * n
        current[0] = (v[0] - 5 * np.sin(300 * t)) / 100
        for kind, a, b, value in parts:
            if kind == "R":
                through = (v[a] - v[b]) / value
                current[b] = current[b] - through
            else:
                through = value * (dv[a] if kind == "C" else np.exp(v[a] / 0.05) - 1)
            current[a] = current[a] + through
        return current

    ends = np.array([(a, b) for _, a, b, _ in parts if b >= 0]).T
    rows, columns = np.concatenate([ends, ends[::-1]], axis=1).astype(np.int32)
    pattern = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)) + eye_array(n)
    name = "random network" if random else "diode ladder"
    return Large(f"{name} of {n}", circuit, 0.02, np.zeros(n), pattern, band=0 if random else 1)


def chain(n: int) -> Large:
    """A chain of n rods as Newton and Lagrange give it, of index 3."""

    def rods(t: float, y: Any, yp: Any) -> Any:
        x, z, u, w, pull = (y[k * n : (k + 1) * n] for k in range(5))
        dx, dz = (np.concatenate([v[:1], v[1:] - v[:-1]]) for v in (x, z))
        above = pull * dx, pull * dz
        below = [np.concatenate([force[1:], [0.0]]) for force in above]
        return np.concatenate([
            yp[:n] - u, yp[n : 2 * n] - w, yp[2 * n : 3 * n] + above[0] - below[0],
            yp[3 * n : 4 * n] + above[1] - below[1] + 9.81, dx**2 + dz**2 - 1.0 / n**2,
        ])

    along = np.arange(1, n + 1) / n
    start = np.concatenate([along * np.cos(0.7), -along * np.sin(0.7), np.zeros(3 * n)])
    return Large(f"chain of {n} rods, index 3", rods, 0.3, start, None, index=3)


Values = tuple[np.ndarray, np.ndarray | None]


def consistent(problem: Large) -> Values:
    """Values and slopes that both begin at; at index 3 IDA does not take part."""
    if problem.index > 1:
        return problem.y0, None
    found = solve_dae(problem.fun, (0, 1e-9 * problem.t_end), problem.y0, trace="never",
                      start="quiet", jac_sparsity=problem.pattern).start
    return found.y, found.yp


def by_tether(problem: Large, start: Values, **options: Any) -> tuple[float, Any]:
    """Processor time and solution."""
    began = time.process_time()
    sol = solve_dae(
        problem.fun, (0, problem.t_end), *start, rtol=RTOL, atol=ATOL, start="quiet",
        t_eval=[problem.t_end], **options,
    )
    return time.process_time() - began, sol


def by_ida(problem: Large, start: Values) -> Callable[[], tuple[float, Any]] | None:
    """Make runs of IDA with the band or the pattern."""
    try:
        from sksundae.ida import IDA
    except ImportError:
        return None
    if problem.index > 1:
        return None

    def residual(t: float, y: Any, yp: Any, out: Any) -> None:
        out[:] = problem.fun(t, y, yp)

    given: dict[str, Any] = {"linsolver": "sparse", "sparsity": problem.pattern.tocsc()}
    if problem.band == 1:
        given = {"linsolver": "band", "lband": 1, "uband": 1}
    solver = IDA(residual, rtol=RTOL, atol=ATOL, max_num_steps=100_000, **given)

    def run() -> tuple[float, Any]:
        began = time.process_time()
        sol = solver.solve(np.array([0.0, problem.t_end]), *start)
        return time.process_time() - began, sol

    return run


def measured(problem: Large, rounds: int) -> tuple[str, float]:
    """One row of the table, and microseconds of a step."""
    start = consistent(problem)
    first, sol = by_tether(problem, start)
    ida = by_ida(problem, start)
    called_options = {"trace": "never", "jac_sparsity": problem.pattern}
    with_called, with_krylov = problem.index == 1, problem.band > 1
    times: dict[str, list[float]] = {"warm": [], "called": [], "krylov": [], "ida": []}
    other = None
    for _ in range(rounds):
        seconds, sol = by_tether(problem, start)
        times["warm"].append(seconds)
        if with_called:
            times["called"].append(by_tether(problem, start, **called_options)[0])
        if with_krylov:
            by_krylov = by_tether(problem, start, options={"linear_solver": "krylov"})
            times["krylov"].append(by_krylov[0])
        if ida is not None:
            seconds, other = ida()
            times["ida"].append(seconds)
    best = {name: min(values) for name, values in times.items() if values}
    stored = sol.how.split("sparse matrices of ")[-1] if "sparse" in sol.how else "full"
    errors = "-"
    if problem.exact is not None:
        ours = np.abs(sol.y[:, -1] - problem.exact).max()
        theirs = np.abs(other.y[-1] - problem.exact).max() if other is not None else np.nan
        errors = f"{ours:.0e} / {theirs:.0e}"
    elif other is not None:
        errors = f"{np.abs(sol.y[:, -1] - other.y[-1]).max():.0e} apart"
    per_step = 1e6 * best["warm"] / sol.stats.steps

    def ratio(name: str, seconds: float) -> str:
        return f"{seconds / best['ida']:.2f}" if "ida" in best and name in best else "-"

    others = (ratio(name, best.get(name, 0.0)) for name in ("called", "krylov"))
    row = [
        problem.name, ratio("warm", best["warm"]), *others, ratio("warm", first), errors,
        sol.stats.steps, sol.nfev, sol.stats.nlu, f"{per_step:.0f}", stored,
    ]
    return f"| {' | '.join(map(str, row))} |", per_step


def exponents(found: list[tuple[Large, float]]) -> list[str]:
    """Make the table of powers of n that the time of a step grows with."""
    lines = [
        "", "Powers of the number of unknowns that the time of a step grows with:", "",
        "| from | to | power |", "|---|---|---|",
    ]
    families: dict[str, list[tuple[Large, float]]] = {}
    for problem, per_step in found:
        families.setdefault(problem.name.split(" of ")[0], []).append((problem, per_step))
    for family in families.values():
        family.sort(key=lambda entry: len(entry[0].y0))
        for (small, before), (large, after) in pairwise(family):
            power = np.log(after / before) / np.log(len(large.y0) / len(small.y0))
            lines.append(f"| {small.name} | {large.name} | {power:.2f} |")
    return lines


class BySines:
    """Preconditioner of `square` without a matrix: heat on a square is diagonal in sines."""

    def __init__(self, k: int) -> None:
        rates = (2 * (k + 1) * np.sin(np.pi * np.arange(1, k + 1) / (2 * (k + 1)))) ** 2
        self.rates = rates[:, None] + rates

    def setup(self, t: float, y: np.ndarray, yp: np.ndarray, c: float) -> None:
        """Take c of c y' - f(y)."""
        self.factor_of = 1.0 / (c + self.rates)

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Solve in the space of sines."""
        from scipy.fft import dstn, idstn

        found = idstn(dstn(b.reshape(self.rates.shape), type=1) * self.factor_of, type=1)
        return np.asarray(found).reshape(-1)


MILLIONS: dict[str, tuple[Callable[[], Large], dict[str, Any], bool]] = {
    "line": (lambda: line(1_000_000), {"linear_solver": "auto"}, True),
    "square": (lambda: square(1000), {"linear_solver": "krylov"}, True),
    "square without a matrix": (
        lambda: square(1000), {"linear_solver": "krylov", "preconditioner": BySines(1000)}, False,
    ),
}


def million(name: str) -> str:
    """Row for a million unknowns, of which only the end is kept."""
    make, options, with_pattern = MILLIONS[name]
    problem = make()
    began = time.process_time()
    sol = solve_dae(
        problem.fun, (0, problem.t_end), problem.y0, rtol=1e-4, atol=1e-7, start="quiet",
        t_eval=[problem.t_end], options=options,
        jac_sparsity=problem.pattern if with_pattern else None,
    )
    seconds = time.process_time() - began
    error = np.abs(sol.y[:, -1] - problem.exact).max()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"| {problem.name} | {sol.success} | {error:.0e} | {sol.stats.steps} | {sol.nfev} | "
        f"{memory:.1f} GB | {seconds:.0f} s | {sol.how.split('; ')[-1]} |"
    )


def main() -> None:
    """Print the table and write it to `results/large.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="smaller systems only")
    parser.add_argument("--million", choices=MILLIONS, help="print one row only")
    options = parser.parse_args()
    if options.million:
        print(million(options.million))
        return
    problems = [
        line(1000), square(50), netlist(1000, random=False), netlist(1000, random=True),
        chain(20), chain(50), chain(100),
    ]
    if not options.quick:
        problems += [
            line(10_000), line(100_000), square(100), square(200), netlist(10_000, random=False),
            netlist(10_000, random=True), chain(200),
        ]
    lines = [
        "# Large systems", "", conditions(), "",
        f"Processor time over that of IDA in the same run, at rtol {RTOL:g}: with the plan made, "
        "with the function called and its pattern given, by iteration (GMRES), and for the first "
        "time, tracing included. "
        "IDA has the band of ladders and lines, and the pattern of the rest (SuperLU). Both begin "
        "at the same consistent values and keep the end alone. Errors are those of tether / IDA.",
        "",
        "| problem | warm | called | GMRES | first | error | steps | calls | LU | us/step | kept |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    found = []
    for problem in problems:
        row, per_step = measured(problem, options.rounds)
        found.append((problem, per_step))
        lines.append(row)
        print(row, flush=True)
    lines += exponents(found)
    if not options.quick:
        lines += [
            "", "A million unknowns, called with their pattern or without, at rtol 1e-4:", "",
            "| problem | success | error | steps | calls | memory | time | how |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name in MILLIONS:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.large", "--million", name],
                capture_output=True, text=True, check=True,
            )
            lines.append(done.stdout.strip())
        (RESULTS / "large.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
