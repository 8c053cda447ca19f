"""A lithium-ion cell of Doyle, Fuller and Newman, in PyBaMM's discretisation, against IDAKLU.

    python -m benchmarks.cell [--rounds 3]

PyBaMM (``pip install pybamm``) discretises the cell to 962 equations M y' = f(t, y) and hands them
to its own solver, IDA with KLU in C++. tether gets the same f in two forms: as the function of
NumPy that PyBaMM writes, which is traced, and as compiled functions f and df/dy, which are called.
All are compared at tolerances at which they have the same digits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import conditions
from tether import Problem, solve_dae

RESULTS = Path(__file__).parent / "results"
SPAN = (0.0, 3600.0)
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
REFERENCE = 1e-10


def built_cell() -> Any:
    """Discretise the model, and let PyBaMM make its functions."""
    import pybamm

    model = pybamm.lithium_ion.DFN()
    simulation = pybamm.Simulation(model, solver=pybamm.IDAKLUSolver())
    simulation.build()
    simulation.solver.solve(simulation.built_model, np.array([0.0, 1.0]))
    return simulation.built_model


class Buffered:
    """A function of CasADi's of t and y that reads and writes arrays in place."""

    def __init__(self, function: Any) -> None:
        self.t, self.y = np.zeros(1), np.zeros(function.nnz_in(1))
        self.out = np.zeros(function.nnz_out(0))
        self.buffer, self.call = function.buffer()
        self.buffer.set_arg(0, memoryview(self.t))
        self.buffer.set_arg(1, memoryview(self.y))
        self.buffer.set_res(0, memoryview(self.out))

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        self.t[0], self.y[:] = t, y
        self.call()
        return self.out


def as_function(model: Any) -> Callable[..., Any]:
    """Give M y' - f(t, y) as PyBaMM writes it in Python."""
    import pybamm

    parts = [model.concatenated_rhs, model.concatenated_algebraic]
    written = [pybamm.EvaluatorPython(part) for part in parts]
    functions = [part._evaluate for part in written]
    constants = [list(map(without_model, part._constants)) for part in written]
    diagonal = model.mass_matrix.entries.diagonal()

    def residual(t: float, y: Any, yp: Any) -> Any:
        column = y.reshape(-1, 1)
        values = [f(given, t, column) for f, given in zip(functions, constants, strict=True)]
        return diagonal * yp - np.concatenate(values)[:, 0]

    return residual


def without_model(constant: Any) -> Any:
    """Write powers made regular at zero as functions: their methods hold the whole model."""
    if not callable(constant):
        return constant
    delta = constant.__self__.delta

    def regular_power(base: Any, exponent: Any, scale: Any) -> Any:
        x = base / scale
        return x * (x**2 + delta**2) ** ((exponent - 1) / 2) * scale**exponent

    return regular_power


def as_problem(model: Any) -> tuple[Problem, np.ndarray]:
    """Give M y' - f(t, y) and its derivatives as functions of Python."""
    from scipy.sparse import csc_array

    mass = csc_array(model.mass_matrix.entries)
    diagonal = mass.diagonal()
    assert abs(mass - csc_array(np.diag(diagonal))).max() == 0.0
    f, slopes = Buffered(model.rhs_algebraic_eval), Buffered(model.jac_rhs_algebraic_eval)
    stored = model.jac_rhs_algebraic_eval.sparsity_out(0).get_ccs()
    start, row = (np.array(part, np.intc) for part in stored)
    matrix = csc_array((np.zeros(len(row)), row, start), shape=mass.shape)

    def residual(t: float, y: Any, yp: Any) -> Any:
        return diagonal * yp - f(t, y)

    def jacobian(t: float, y: Any, yp: Any) -> Any:
        np.negative(slopes(t, y), out=matrix.data)
        return matrix, mass

    return Problem(residual, jac=jacobian), np.asarray(model.y0).reshape(-1)


def by_idaklu(model: Any, tolerance: float) -> tuple[float, np.ndarray, int]:
    """Processor time of IDAKLU, the values at the end and the number of its steps."""
    import pybamm

    solver = pybamm.IDAKLUSolver(rtol=tolerance, atol=tolerance)
    solver.solve(model, np.array(SPAN))                # what it makes ready is not counted
    began = time.process_time()
    found = solver.solve(model, np.array(SPAN))
    return time.process_time() - began, np.asarray(found.y)[:, -1], np.asarray(found.y).shape[1]


def by_tether(fun: Any, y0: np.ndarray, tolerance: float) -> tuple[float, Any]:
    """Processor time of tether, and its solution."""
    began = time.process_time()
    sol = solve_dae(fun, SPAN, y0, rtol=tolerance, atol=tolerance, start="quiet", t_eval=[SPAN[1]])
    return time.process_time() - began, sol


def digits(y: np.ndarray, exact: np.ndarray) -> float:
    """Digits of all unknowns that are right, by the largest of each kind."""
    return float(-np.log10(np.abs(y - exact).max() / np.abs(exact).max()))


def ratios(theirs: list[tuple[float, float]], ours: list[tuple[float, float]]) -> str:
    """Compare times at equal digits, of ours between the tolerances."""
    known, times = zip(*sorted(ours), strict=True)
    return ", ".join(
        f"{np.exp(np.interp(found, known, np.log(times))) / seconds:.2f} at {found:.1f}"
        for found, seconds in theirs if found >= known[0]
    )


def main() -> None:
    """Print the table and write it to `results/cell.md`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    model = built_cell()
    called, y0 = as_problem(model)
    forms = {"traced": as_function(model), "called": called}
    reference = by_idaklu(model, REFERENCE)[1]
    for fun in forms.values():
        by_tether(fun, y0, TOLERANCES[0])              # plans are made once
    columns = "| digits | steps | calls | J | LU "
    lines = [
        "# A cell", "", conditions(), "",
        f"{len(y0)} unknowns; digits against IDAKLU at {REFERENCE:g}; processor time, the least of "
        f"{rounds} interleaved rounds.", "",
        f"| tolerance | IDAKLU ms | digits | points | traced, ms {columns}| called, ms {columns}|",
        "|---" * 16 + "|",
    ]
    print("\n".join(lines))
    theirs: list[tuple[float, float]] = []
    ours: dict[str, list[tuple[float, float]]] = {form: [] for form in forms}
    for tolerance in TOLERANCES:
        found, runs = [], {form: [] for form in forms}
        for _ in range(rounds):
            found.append(by_idaklu(model, tolerance))
            for form, fun in forms.items():
                runs[form].append(by_tether(fun, y0, tolerance))
        theirs.append((digits(found[0][1], reference), min(run[0] for run in found)))
        row = [f"{tolerance:g}", f"{1e3 * theirs[-1][1]:.1f}", f"{theirs[-1][0]:.1f}", found[0][2]]
        for form in forms:
            sol = runs[form][-1][1]
            ours[form].append((
                digits(sol.y[:, -1], reference), min(run[0] for run in runs[form])
            ))
            right, seconds = ours[form][-1]
            row += [f"{1e3 * seconds:.1f}", f"{right:.1f}"]
            row += [sol.stats.steps, sol.nfev, sol.njev, sol.stats.nlu]
        lines.append(f"| {' | '.join(map(str, row))} |")
        print(lines[-1], flush=True)
    lines.append("")
    for form in forms:
        lines += [f"Time of tether over that of IDAKLU at equal digits, {form}: "
                  f"{ratios(theirs, ours[form])}.", ""]
        print(lines[-2])
    (RESULTS / "cell.md").write_text("\n".join(lines[:-1]) + "\n")


if __name__ == "__main__":
    main()
