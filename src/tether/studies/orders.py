"""Lötstedt and Petzold (1986), part I, retold: the order of the BDF at index 1, 2 and 3.

    python -m tether.studies.orders

Prints the orders that `solve_fixed` shows for k = 1 ... 6, all unknowns taken together, on a
circuit (index 1), a flow (index 2) and a mechanism (index 3), and the loss in the first steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tether.fixed import solve_fixed
from tether.studies import arevalo
from tether.studies.command import parse
from tether.studies.hanson_krogh import markdown

ORDERS = range(1, 7)
STEPS = (80, 160)                     # numbers of steps on [0, 1]; errors count from t = 1/2 on
# k by LP1, less the distance from that limit with 80 and 160 steps.
LEAST_ORDER = {1: 0.8, 2: 1.9, 3: 2.7, 4: 3.8, 5: 4.8, 6: 5.6}


# --- the three problems -------------------------------------------------------------------------


def circuit(t: float, y: Any, yp: Any) -> list[float]:
    """Evaluate a capacitor between two nodes with resistors to ground, one cubic: index 1.

    No column of F_y' vanishes, as with the node voltages of any circuit.
    """
    through = yp[0] - yp[1]
    v1, v2 = circuit_exact(t)
    s1 = 2 * math.cos(2 * t) + 3 * math.sin(3 * t)
    return [through - s1 + y[0] - v1, s1 - through + (y[1] + y[1] ** 3) - (v2 + v2**3)]


def circuit_exact(t: Any) -> np.ndarray:
    """Return the voltages at a time, or in columns at several."""
    t = np.asarray(t, float)
    return np.array([1 + np.sin(2 * t), np.cos(3 * t)])


FLOW_DIVERGENCE = np.array([1.0, -2.0, 0.5])


def flow(t: float, y: Any, yp: Any) -> list[float]:
    """Evaluate quadratic momentum equations, a pressure and a prescribed inflow: index 2."""
    u, p = y[:3], y[3]
    exact, slope = flow_exact(t), flow_slope(t)
    balance = [
        yp[i] - slope[i] + u[i] * u[(i + 1) % 3] - exact[i] * exact[(i + 1) % 3]
        + FLOW_DIVERGENCE[i] * (p - exact[3])
        for i in range(3)
    ]
    return [*balance, float(FLOW_DIVERGENCE @ (u - exact[:3]))]


def flow_exact(t: Any) -> np.ndarray:
    """Return three velocities and the pressure at a time, or in columns at several."""
    t = np.asarray(t, float)
    return np.array([np.sin(4 * t), np.cos(3 * t), np.exp(-t), 2 + np.sin(5 * t)])


def flow_slope(t: float) -> np.ndarray:
    """Return the derivatives of the velocities."""
    return np.array([4 * math.cos(4 * t), -3 * math.sin(3 * t), -math.exp(-t)])


@dataclass(frozen=True)
class Example:
    """A problem with its solution: ``exact(t)``, in columns for several times."""

    index: int
    residual: Callable[..., Any]
    exact: Callable[[Any], np.ndarray]


PROBLEMS = {
    "circuit": Example(1, circuit, circuit_exact),
    "flow": Example(2, flow, flow_exact),
    "mechanism": Example(3, arevalo.circle, arevalo.circle_exact),
}


# --- measurements -------------------------------------------------------------------------------


def errors(name: str, k: int, n: int, with_history: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of n steps on [0, 1] and the errors of all unknowns there.

    Parameters
    ----------
    name : str
        One of `PROBLEMS`.
    k : int
        Order of the BDF.
    n : int
        Number of steps.
    with_history : bool
        Whether to begin with exact values at the first k times, or to find them from y0.
    """
    problem = PROBLEMS[name]
    history = problem.exact(np.arange(k) / n) if with_history else None
    sol = solve_fixed(
        problem.residual, (0, 1), problem.exact(0.0), order=k, step=1 / n, history=history
    )
    if not sol.success:
        raise RuntimeError(sol.message)
    return sol.t, np.abs(sol.y - problem.exact(sol.t))


def late_error(name: str, k: int, n: int, with_history: bool = True) -> float:
    """Return the largest error of any unknown on [1/2, 1].

    Examples
    --------
    >>> from tether.studies.orders import late_error
    >>> print(round(late_error("flow", 2, 80) / late_error("flow", 2, 160), 1))
    4.0
    """
    t, error = errors(name, k, n, with_history)
    return float(error[:, t >= 0.5 - 1e-12].max())


def first_error(k: int, n: int) -> float:
    """Return the largest error of the mechanism's multiplier in the first k steps."""
    _, error = errors("mechanism", k, n)
    return float(error[4, k : 2 * k].max())


def observed(error: Callable[[int], float]) -> float:
    """Order observed with the two numbers of steps."""
    coarse, fine = (error(n) for n in STEPS)
    return math.log2(coarse / fine)


def measure(orders: Sequence[int]) -> dict[str, dict[int, float]]:
    """Observed orders by problem and k, and those of the multiplier in the first k steps."""
    table = {
        name: {k: observed(partial(late_error, name, k)) for k in orders} for name in PROBLEMS
    }
    table["first steps"] = {k: observed(partial(first_error, k)) for k in orders}
    return table


# --- the command ----------------------------------------------------------------------------------


def order_table(found: dict[str, dict[int, float]]) -> str:
    """Observed orders, one column per k."""
    rows = [
        [f"{name}, index {problem.index}", *(f"{order:.2f}" for order in found[name].values())]
        for name, problem in PROBLEMS.items()
    ]
    rows.append([
        "multiplier of the mechanism, first k steps",
        *(f"{order:.2f}" for order in found["first steps"].values()),
    ])
    rows.append(["required", *(f"{LEAST_ORDER[k]:g}" for k in found["circuit"])])
    return markdown(["k", *map(str, found["circuit"])], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parse("orders", "Retell Lötstedt and Petzold (1986): orders of the BDF.", arguments)
    print(f"# Observed orders from {STEPS[0]} to {STEPS[1]} steps on [0, 1], errors on [1/2, 1]\n")
    print(order_table(measure(ORDERS)))


if __name__ == "__main__":
    main()
