"""Functions of whole arrays: tracing, residual, Jacobian, and whole runs against IDA.

    python -m benchmarks.arrays [--rounds 3]

The first table says what tracing a Brusselator of any size takes, in seconds and memory, and what a
residual and a Jacobian cost after that, over NumPy's own residual and over a residual: all entries,
as a run writes them once, and those that change from point to point. The second
compares runs with IDA (scikit-sundae, if it is installed), which calls the same function and is
told its pattern or band. All runs of a row take turns in one process; errors are those at the end
against tether at tolerances a thousand times smaller.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from benchmarks.array_models import MODELS, Model, brusselator
from benchmarks.measure import conditions
from tether import solve_dae
from tether._core.rows import Rows
from tether.trace.array_tracer import trace_arrays

RESULTS = Path(__file__).parent / "results"
RTOL, ATOL = 1e-6, 1e-8


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

    numpys = best(repeated(lambda: model.fun(0.0, y, yp)), 5 * rounds)
    residual = best(repeated(lambda: rows.values_into(0.0, y, yp, out)), 5 * rounds)
    jacobian = best(repeated(lambda: rows.entries_into(0.0, y, yp, *entries)), 5 * rounds)
    changing = best(repeated(lambda: rows.changing_into(0.0, y, yp, *entries)), 5 * rounds)
    cost = " | ".join([
        f"{residual / numpys:.2f}", f"{jacobian / residual:.1f}", f"{changing / residual:.1f}"
    ])  # fmt: skip
    operations = len(table.code)
    return f"| {n} | {seconds:.2f} s | {peak:.0f} | {table.templates} | {operations} | {cost} |"


def by_tether(model: Model, tight: float = 1.0, **options: Any) -> Any:
    """Solve with tether."""
    return solve_dae(
        model.fun, (0, model.t_end), model.y0, rtol=RTOL * tight, atol=ATOL * tight,
        t_eval=[model.t_end], start="quiet", **options,
    )


def by_ida(model: Model) -> Callable[[], Any] | None:
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

    start = by_tether(model).start
    solver = IDA(
        residual, rtol=RTOL, atol=ATOL, max_num_steps=100_000,
        algebraic_idx=list(model.algebraic) or None, **given,
    )
    return lambda: solver.solve(np.array([0.0, model.t_end]), start.y, start.yp)


def run(model: Model, rounds: int) -> str:
    """One row of the second table."""
    began = time.process_time()
    sol = by_tether(model)
    first = time.process_time() - began
    exact = by_tether(model, 1e-3).y[:, -1]
    ida = by_ida(model)
    seconds: dict[str, list[float]] = {"tether": [], "called": [], "IDA": []}
    error, theirs = np.abs(sol.y[:, -1] - exact).max(), np.nan
    for _ in range(rounds):
        seconds["tether"].append(best(lambda: by_tether(model), 1))
        seconds["called"].append(best(lambda: by_tether(model, trace="never"), 1))
        if ida is not None:
            other: list[Any] = []
            seconds["IDA"].append(best(lambda: other.append(ida()), 1))  # noqa: B023
            theirs = np.abs(other[0].y[-1] - exact).max()
    if ida is None:
        return f"| {model.name} | - | - | - | {error:.0e} | {sol.stats.steps} |"
    over = min(seconds["IDA"])
    ratios = (min(seconds["tether"]) / over, first / over, min(seconds["called"]) / over)
    cells = " | ".join(f"{x:.2f}" for x in ratios)
    return f"| {model.name} | {cells} | {error:.0e} / {theirs:.0e} | {sol.stats.steps} |"


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
        "", f"Processor time over that of IDA at rtol {RTOL:g}: with the plan made, for the first "
        "time, and with the function called. Errors at the end are those of tether / IDA.", "",
        "| model, unknowns | warm | first | called | error | steps |", "|---|---|---|---|---|---|",
    ]
    print("\n".join(header))
    lines += header
    for make in MODELS:
        lines.append(run(make(), rounds))
        print(lines[-1], flush=True)
    (RESULTS / "arrays.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
