"""Sparse factors: tether's own against KLU and SuperLU, on matrices of circuits, bands and grids.

    python -m benchmarks.linear_solvers [--rounds 9]

A factorisation that chooses pivots (anew), one that takes them over (again), and a solution are
measured in turns in one process; the medians of the ratios are reported. KLU has to be on the
machine (`linear_solver="klu"` says how).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array, eye_array, kron
from scipy.sparse.linalg import splu

from benchmarks.measure import conditions
from tether._core.band import BandLU
from tether._core.sparse import Sparse
from tether.base.pattern import Pattern
from tether.plan.libraries import find_klu

RESULTS = Path(__file__).parent / "results"


def circuit(nodes: int, long: float = 0.05, seed: int = 0) -> csc_array:
    """Nodal analysis of a random network, at one step of an integration.

    Every node has a capacitor and resistors to nodes near it, a share of them to one anywhere; a
    tenth has an inductor, whose current is an unknown, and another tenth a transistor.
    """
    draw = np.random.default_rng(seed)
    k = np.arange(1, nodes)
    near = k - draw.integers(1, np.minimum(k, 20) + 1)
    second = k - draw.integers(1, np.minimum(k, 20) + 1)
    far = draw.integers(0, k)
    second = np.where(draw.random(nodes - 1) < long, far, second)
    rows, columns = [np.arange(nodes)], [np.arange(nodes)]
    values = [10 ** draw.uniform(-6, 0, nodes)]

    def stamp(row: Any, column: Any, value: Any) -> None:
        rows.append(row), columns.append(column), values.append(value)

    for other in (near, second):
        g = 10 ** draw.uniform(-4, 1, nodes - 1)
        for row, column, sign in ((k, k, 1), (other, other, 1), (k, other, -1), (other, k, -1)):
            stamp(row, column, sign * g)
    gates = draw.choice(k, nodes // 10, replace=False)
    stamp(gates, near[gates - 1], 10 ** draw.uniform(-3, 0, len(gates)))
    stamp(second[gates - 1], near[gates - 1], -(10 ** draw.uniform(-3, 0, len(gates))))
    coils = draw.choice(k, nodes // 10, replace=False)
    current = nodes + np.arange(len(coils))
    stamp(coils, current, np.ones(len(coils)))
    stamp(current, coils, np.ones(len(coils)))
    stamp(current, near[coils - 1], -np.ones(len(coils)))
    stamp(current, current, -(10 ** draw.uniform(-2, 2, len(coils))))
    n = nodes + len(coils)
    places = np.concatenate(rows), np.concatenate(columns)
    return coo_array((np.concatenate(values), places), shape=(n, n)).tocsc()


def ladder(nodes: int) -> csc_array:
    """A chain of resistors with capacitors and diodes, numbered at random."""
    draw = np.random.default_rng(0)
    g = 10 ** draw.uniform(-3, 0, nodes - 1)
    own = 10 ** draw.uniform(-3, 1, nodes)
    own[1:] += g
    own[:-1] += g
    order = draw.permutation(nodes)
    return diags_array([-g, own, -g], offsets=[-1, 0, 1]).tocsr()[order][:, order].tocsc()


def band(n: int, width: int = 2) -> csc_array:
    """A full band with so many diagonals on both sides."""
    draw = np.random.default_rng(0)
    offsets = range(-width, width + 1)
    parts = [draw.uniform(0.1, 1, n - abs(k)) + (4 * width if k == 0 else 0) for k in offsets]
    return diags_array(parts, offsets=list(offsets)).tocsc()


def brusselator(side: int) -> csc_array:
    """Two substances on a square of side by side points, one beside the other in each."""
    line = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(side, side))
    diffusion = kron(line, eye_array(side)) + kron(eye_array(side), line)
    reaction = np.array([[3.0, 1.0], [-2.0, -1.5]])
    point = reaction - 9.0 * np.eye(2)
    return csc_array(kron(diffusion, 0.2 * np.eye(2)) + kron(eye_array(side * side), point))


MATRICES = {
    "circuit, 1,100": partial(circuit, 1000),
    "circuit, 22,000": partial(circuit, 20_000),
    "ladder, 20,000, numbered at random": partial(ladder, 20_000),
    "five diagonals, 100,000": partial(band, 100_000),
    "Brusselator, 100 x 100": partial(brusselator, 100),
}


def tasks(matrix: csc_array, way: Any) -> dict[str, Callable[[], Any]]:
    """Return what is measured of one of tether's ways or KLU's, ready to be called."""
    pattern = Pattern(matrix.shape[0], matrix.tocoo().coords)
    assert matrix.has_sorted_indices
    stored = Sparse(pattern, way)
    factors = stored.open_factors()
    b = np.ones(pattern.n)
    values = [matrix.data * (1 + 0.01 * k) for k in range(2)]

    def anew() -> None:
        factors.forget()
        assert factors.take(values[0])

    def again() -> None:
        assert factors.take(values[1])

    anew()
    return {"anew": anew, "again": again, "solution": lambda: stored.solution(b),
            "fill": lambda: factors.entries}


def superlu(matrix: csc_array) -> dict[str, Callable[[], Any]]:
    """Return the same for SuperLU, which has nothing to take over."""
    found = [splu(matrix)]
    b = np.ones(matrix.shape[0])

    def anew() -> None:
        found[0] = splu(matrix)

    return {"anew": anew, "again": anew, "solution": lambda: found[0].solve(b),
            "fill": lambda: found[0].nnz - matrix.shape[0]}


def seconds(task: Callable[[], Any]) -> float:
    """Time of a task, of many calls where it is short."""
    calls, least = 1, 2e-3
    while True:
        began = time.perf_counter()
        for _ in range(calls):
            task()
        taken = time.perf_counter() - began
        if taken >= least:
            return taken / calls
        calls = max(2 * calls, int(calls * least / max(taken, 1e-7)) + 1)


def measured(name: str, matrix: csc_array, rounds: int) -> list[str]:
    """Return a row for every task: milliseconds, and ratios to the others."""
    solvers = {"tether": tasks(matrix, None), "SuperLU": superlu(matrix)}
    library = find_klu()
    if library is not None:
        from tether._core.klu import KluFactors

        solvers["KLU"] = tasks(matrix, partial(KluFactors, library))
    if "diagonals" in name:
        solvers["band"] = tasks(matrix, BandLU)
    rows = []
    for task in ("anew", "again", "solution"):
        times: dict[str, list[float]] = {solver: [] for solver in solvers}
        for _ in range(rounds):
            for solver, has in solvers.items():
                times[solver].append(seconds(has[task]))
        own = np.array(times["tether"])
        cells = [f"{1e3 * np.median(own):.3g}"]
        for other in ("KLU", "SuperLU", "band"):
            if other in times:
                cells.append(f"{np.median(own / np.array(times[other])):.2f}")
            else:
                cells.append("")
        rows.append(f"| {name} | {task} | " + " | ".join(cells) + " |")
        name = ""
    fill = [f"{has['fill']() / matrix.nnz:.2f}" for has in (
        solvers[key] for key in ("tether", "KLU", "SuperLU", "band") if key in solvers)]
    rows.append("| | fill: tether, KLU, SuperLU, band | " + ", ".join(fill) + " | | | |")
    return rows


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    lines = [
        "# Sparse factors", "", conditions(), "",
        "Time of tether's factors over that of others on the same matrix, medians of ratios. "
        "*Anew* chooses pivots, *again* takes them over and looks whether entries have grown "
        "(SuperLU cannot: the same as anew). *Fill* is the number of entries of the factors over "
        "that of the matrix. *Band* is tether's other way, within a band.", "",
        "| Matrix | Task | ms | over KLU | over SuperLU | over band |",
        "|---|---|---|---|---|---|",
    ]
    for name, make in MATRICES.items():
        if arguments.only in name:
            rows = measured(name, make(), arguments.rounds)
            print("\n".join(rows), flush=True)
            lines += rows
    if not arguments.only:
        (RESULTS / "linear_solvers.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
