"""Functions of whole arrays: tracing, residual, Jacobian, and whole runs against IDA.

    python -m benchmarks.arrays [--rounds 3]

The first table says what tracing a Brusselator of any size takes, in seconds and memory, and what a
residual and a Jacobian cost after that, over NumPy's own residual and over a residual: all entries,
as a run writes them once, and those that change from point to point. The second
compares runs with IDA (scikit-sundae, if it is installed), which calls the same function and is
told its pattern or band: at equal digits, read off the work-precision curves of both
(`benchmarks/curves.py`), and at equal tolerances. All runs of a row take turns in one process;
errors are those at the end against tether with rtol = 1e-11, and the row says to how many digits
IDA with the same tolerance agrees with that.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from benchmarks.array_models import MODELS, Model, brusselator
from benchmarks.curves import common_levels, monotone_curve
from benchmarks.measure import conditions
from tether import solve_dae
from tether._core.rows import Rows
from tether.trace.array_tracer import trace_arrays

RESULTS = Path(__file__).parent / "results"
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(6, 19))       # 1e-3 to 1e-9
RTOL, TIGHT = 1e-6, 1e-11
ATOL = 1e-2                        # over rtol
SLOT = 0.02                        # seconds; shorter runs are repeated


def best(run: Callable[[], Any], rounds: int) -> float:
    """Return the shortest processor time of several runs."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def tracing(cells: int, rounds: int) -> str:
    """One row of the first table."""
    model = brusselator(cells)
    n = len(model.y0)
    seconds = best(lambda: trace_arrays(model.fun, n), rounds)
    tracemalloc.start()
    table = trace_arrays(model.fun, n).table
    peak = tracemalloc.get_traced_memory()[1] / 8 / n
    tracemalloc.stop()
    rows, yp = Rows(table), np.zeros(n)
    y, out, entries = model.y0 + 0.5, np.zeros(n), np.zeros((2, rows.reach))
    repeats = max(1, 400_000 // n)

    def repeated(run: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: [run() for _ in range(repeats)]

    runs = [
        repeated(lambda: model.fun(0.0, y, yp)),
        repeated(lambda: rows.values_into(0.0, y, yp, out)),
        repeated(lambda: rows.entries_into(0.0, y, yp, *entries)),
        repeated(lambda: rows.changing_into(0.0, y, yp, *entries)),
    ]
    turns = [[best(run, 1) for run in runs] for _ in range(5 * rounds)]
    numpys, residual, jacobian, changing = np.min(turns, axis=0)
    cost = " | ".join([
        f"{residual / numpys:.2f}", f"{jacobian / residual:.1f}", f"{changing / residual:.1f}"
    ])  # fmt: skip
    operations = len(table.code)
    return f"| {n} | {seconds:.2f} s | {peak:.0f} | {table.templates} | {operations} | {cost} |"


def by_tether(model: Model, rtol: float = RTOL, **options: Any) -> Any:
    """Solve with tether."""
    return solve_dae(
        model.fun, (0, model.t_end), model.y0, rtol=rtol, atol=ATOL * rtol,
        t_eval=[model.t_end], start="quiet", **options,
    )


def by_ida(model: Model, start: Any) -> Callable[[float], Any] | None:
    """Make runs of IDA from consistent values, with the band or the pattern of the function."""
    try:
        from sksundae.ida import IDA
    except ImportError:
        return None
    n = len(model.y0)
    table = trace_arrays(model.fun, n).table
    rows, columns = (np.concatenate(pair) for pair in zip(table.fy, table.fyp, strict=True))
    pattern = csc_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    given: dict[str, Any] = {"linsolver": "sparse", "sparsity": pattern}
    if model.band:
        given = {"linsolver": "band", "lband": model.band, "uband": model.band}

    def residual(t: float, y: Any, yp: Any, out: Any) -> None:
        out[:] = model.fun(t, y, yp)

    @cache
    def solver(rtol: float) -> Any:
        return IDA(
            residual, rtol=rtol, atol=ATOL * rtol, max_num_steps=1_000_000,
            algebraic_idx=list(model.algebraic) or None, **given,
        )

    return lambda rtol: solver(rtol).solve(np.array([0.0, model.t_end]), start.y, start.yp)


class Runs:
    """Runs of one solver on one model, at one tolerance after the other."""

    def __init__(self, solve: Callable[[float], np.ndarray], tolerances: tuple[float, ...]) -> None:
        self.solve, self.tolerances = solve, tolerances
        self.ends: dict[float, np.ndarray] = {}
        self.seconds = dict.fromkeys(tolerances, np.inf)

    def take_turn(self) -> None:
        """Run at every tolerance, and keep the shortest times."""
        for rtol in self.tolerances:
            left = SLOT
            while left > 0.0:
                began = time.process_time()
                self.ends[rtol] = self.solve(rtol)
                spent = time.process_time() - began
                self.seconds[rtol] = min(self.seconds[rtol], spent)
                left -= spent

    def error(self, rtol: float, exact: np.ndarray) -> float:
        """Error at the end of the run at a tolerance."""
        return float(np.abs(self.ends[rtol] - exact).max())

    def curve(self, exact: np.ndarray) -> Any:
        """Digits and time at all tolerances."""
        digits = [-np.log10(self.error(rtol, exact)) for rtol in self.tolerances]
        return monotone_curve(digits, [self.seconds[rtol] for rtol in self.tolerances])


def at_equal_digits(ours: Runs, theirs: Runs, exact: np.ndarray, known: float) -> str:
    """Geometric mean and largest of the ratios of time, and the digits they were compared at.

    They are compared up to one digit less than those to which the solution is known.
    """
    one, other = ours.curve(exact), theirs.curve(exact)
    levels = [level for level in common_levels(one, other) if level <= known - 1.0]
    if not levels:
        return "- | - | -"
    ratios = [one.seconds_at(level) / other.seconds_at(level) for level in levels]
    mean = np.exp(np.mean(np.log(ratios)))
    return f"{mean:.2f} | {max(ratios):.2f} | {levels[0]:g} to {levels[-1]:g}"


def run(model: Model, rounds: int) -> str:
    """One row of the second table."""
    began = time.process_time()
    sol = by_tether(model)
    first = time.process_time() - began
    tight = by_tether(model, TIGHT)
    exact, ida = tight.y[:, -1], by_ida(model, tight.start)
    ours = Runs(lambda rtol: by_tether(model, rtol).y[:, -1], TOLERANCES)
    called = Runs(lambda rtol: by_tether(model, rtol, trace="never").y[:, -1], (RTOL,))
    if ida is None:
        ours.take_turn()
        return f"| {model.name}{7 * ' | -'} | {ours.error(RTOL, exact):.0e} | {sol.stats.steps} |"
    theirs = Runs(lambda rtol: ida(rtol).y[-1], TOLERANCES)
    agreed = -np.log10(np.abs(ida(TIGHT).y[-1] - exact).max())
    for _ in range(rounds):
        for runs in (ours, theirs, called):
            runs.take_turn()
    over = theirs.seconds[RTOL]
    ratios = (ours.seconds[RTOL] / over, first / over, called.seconds[RTOL] / over)
    cells = " | ".join(f"{x:.2f}" for x in ratios)
    errors = f"{ours.error(RTOL, exact):.0e} / {theirs.error(RTOL, exact):.0e}"
    equal = at_equal_digits(ours, theirs, exact, agreed)
    return f"| {model.name} | {equal} | {agreed:.1f} | {cells} | {errors} | {sol.stats.steps} |"


def main() -> None:
    """Print both tables and write them to `results/arrays.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    lines = [
        "# Functions of whole arrays", "", conditions(), "",
        "A Brusselator in plain NumPy: time and peak memory (doubles for each unknown) of tracing, "
        "number of templates and of their operations, residual over NumPy's own, Jacobian over "
        "residual: all entries, and those that change, which are what a run writes again.", "",
        "| unknowns | traced in | memory | templates | operations | residual | Jacobian | again |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for cells in (50, 100, 500):
        lines.append(tracing(cells, rounds))
        print(lines[-1], flush=True)
    header = [
        "", "Processor time over that of IDA at equal digits, from both solvers' runs at rtol = "
        f"{TOLERANCES[0]:g} to {TOLERANCES[-1]:g}: geometric mean and largest at the half digits "
        "that both reach, and to how many digits the solutions of both agree at rtol = "
        f"{TIGHT:g}. Then the same at rtol = {RTOL:g}: with the plan made, for the first time, and "
        "with the function called; errors at the end of tether / IDA, and steps of tether.", "",
        "| model, unknowns | equal digits | largest | digits | agree | warm | first | called "
        "| error | steps |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(header))
    lines += header
    for make in MODELS:
        lines.append(run(make(), rounds))
        print(lines[-1], flush=True)
    (RESULTS / "arrays.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
