"""Petzold (1982), section 3, retold: why a system of nilpotency 3 is refused.

    python -m tether.studies.nilpotency

Solves y2' = y1, y3' = y2, 0 = y3 - g(t) with g = sin t: y1 is the second derivative of something
given. At constant step implicit Euler finds it; each change of the step causes an error in it that
does not shrink with the steps.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether import solve_dae
from tether.base.status import Status
from tether.studies.command import parse
from tether.studies.hanson_krogh import markdown
from tether.studies.steep import OneStep, one_step, step_table

SPAN = (0.5, 2.0)
VAR_INDEX = (3, 2, 0)
RATIOS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)      # of each step to the one before
STEPS = (1e-2, 1e-3, 1e-4)
ESTIMATES = ("auto", "local", "exclude")


def residual(t: float, y: Any, yp: Any) -> list[float]:
    """Evaluate P82 eq. 3.10 with g = sin t."""
    return [yp[1] - y[0], yp[2] - y[1], y[2] - np.sin(t)]


def exact(t: Any) -> np.ndarray:
    """Return the solution at a time, or in columns at several."""
    return np.array([-np.sin(t), np.cos(t), np.sin(t)])


# --- implicit Euler -------------------------------------------------------------------------------


def implicit_euler(t: np.ndarray) -> np.ndarray:
    """Solve with implicit Euler on given times, P82 eq. 3.12, from exact values at the first.

    Examples
    --------
    The first step is wrong by half the second derivative, whatever its size:

    >>> import numpy as np
    >>> from tether.studies.nilpotency import exact, implicit_euler
    >>> t = 0.5 + 1e-5 * np.arange(3)
    >>> errors = (implicit_euler(t) - exact(t))[0]
    >>> [round(float(error / np.sin(0.5)), 3) for error in errors]
    [0.0, 0.5, 0.0]
    """
    y = np.empty((3, len(t)))
    y[:, 0] = exact(t[0])
    y[2, 1:] = np.sin(t[1:])
    for row in (1, 0):
        for n in range(1, len(t)):
            y[row, n] = (y[row + 1, n] - y[row + 1, n - 1]) / (t[n] - t[n - 1])
    return y


def error_after_change(ratio: float, h: float) -> float:
    """Error of y1, computed minus exact, after four steps of h and one of ratio * h."""
    t = SPAN[0] + np.append(h * np.arange(5), h * (4 + ratio))
    return float(implicit_euler(t)[0, -1] - exact(t[-1])[0])


def predicted_error(ratio: float) -> float:
    """Return the limit for h -> 0 by P82: -(1 - h_n / h_{n+1}) g'' / 2."""
    return 0.5 * (1.0 - 1.0 / ratio) * float(np.sin(SPAN[0]))


def constant_step_errors(h: float, count: int = 4) -> np.ndarray:
    """Errors of y1 after each of the first steps, all of size h."""
    t = SPAN[0] + h * np.arange(count + 1)
    return np.abs(implicit_euler(t) - exact(t))[0, 1:]


def estimates(h: float = 0.02) -> list[OneStep]:
    """One step of sizes h, h/4, h/16 ... after four equal steps of h: estimates (4.5) for y1."""
    past = SPAN[0] + h * np.arange(5)
    return [
        one_step(residual, exact, past, h * ratio, var_index=VAR_INDEX)
        for ratio in 4.0 ** -np.arange(0.0, 6.0)
    ]


# --- solve_dae ------------------------------------------------------------------------------------


def refusal() -> str:
    """Return the message with which solve_dae refuses the system."""
    sol = solve_dae(residual, SPAN, exact(SPAN[0]), form="given")
    if sol.success:
        raise RuntimeError("the system was not refused")
    return " ".join(str(sol.diagnosis).split())


@dataclass(frozen=True)
class Run:
    """A run with `var_index` given: largest errors of the unknowns at the steps.

    Errors of y1 are separate for steps where step or order has just changed, and elsewhere (NaN if
    there is no such step).
    """

    estimate: str
    tolerance: float
    status: Status
    steps: int
    y1_after_change: float
    y1_elsewhere: float
    y2: float
    y3: float


def trusting_run(estimate: str, tolerance: float, max_steps: int = 20_000) -> Run:
    """Solve with ``var_index=[3, 2, 0]``, which switches the refusal off.

    Parameters
    ----------
    estimate : str
        As in `tether.Options`.
    tolerance : float
        rtol and atol.
    max_steps : int
        The run is given up after this many steps.
    """
    sol = solve_dae(
        residual, SPAN, exact(SPAN[0]), var_index=VAR_INDEX, rtol=tolerance, atol=tolerance,
        max_steps=max_steps, form="given", options={"estimate": estimate},
    )
    error = np.abs(sol.y - exact(sol.t))[:, 1:]
    h, order = sol.stats.h, sol.stats.order
    assert h is not None
    assert order is not None
    changed = (np.abs(np.diff(h)) > 1e-6 * h[1:]) | (np.diff(order) != 0)
    last_change = np.maximum.accumulate(np.where(np.append(True, changed), np.arange(len(h)), 0))
    # y1 is found from y2, and y2 from y3, by formulas that reach back k steps each.
    settled = np.arange(len(h)) - last_change >= 2 * order
    return Run(
        estimate, tolerance, sol.status, sol.stats.steps,
        float(error[0, ~settled].max()),
        float(error[0, settled].max()) if settled.any() else np.nan,
        float(error[1].max()), float(error[2].max()),
    )


# --- the command ----------------------------------------------------------------------------------


def change_table() -> str:
    """Error after a change of step: formula, and computed with smaller and smaller steps."""
    head = ["h_{n+1} / h_n", "formula", *(f"h_n = {h:g}" for h in STEPS)]
    rows = [
        [f"{ratio:g}", f"{predicted_error(ratio):.4f}",
         *(f"{error_after_change(ratio, h):.4f}" for h in STEPS)]
        for ratio in RATIOS
    ]
    return markdown(head, rows)


def constant_table() -> str:
    """Errors of the first steps at constant step."""
    errors = {h: constant_step_errors(h) for h in STEPS}
    return markdown(
        ["h", *(f"step {n + 1}" for n in range(4))],
        [[f"{h:g}", *(f"{error:.1e}" for error in row)] for h, row in errors.items()],
    )


def run_table(runs: Sequence[Run]) -> str:
    """Errors of runs that were not refused."""
    head = ["estimate", "rtol = atol", "ended by", "steps", "y1 after a change", "y1 elsewhere",
            "y2", "y3"]
    rows = [
        [r.estimate, f"{r.tolerance:g}", r.status.name, f"{r.steps:,}", f"{r.y1_after_change:.1e}",
         "" if np.isnan(r.y1_elsewhere) else f"{r.y1_elsewhere:.1e}", f"{r.y2:.1e}", f"{r.y3:.1e}"]
        for r in runs
    ]
    return markdown(head, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parse("nilpotency", "Retell Petzold (1982) on systems of nilpotency 3.", arguments)
    print("# Implicit Euler: error of y1 after a change of step\n")
    print(change_table())
    print("\n# Implicit Euler at constant step: error of y1 in the first steps\n")
    print(constant_table())
    print("\n# One step of h after steps of 0.02, order 1: y1\n")
    print(step_table(estimates()))
    print("\n# What solve_dae says\n")
    print(textwrap.fill(refusal(), 100))
    print("\n# Runs with var_index=[3, 2, 0]: largest errors\n")
    print(run_table([
        trusting_run(estimate, tolerance) for tolerance in (1e-3, 1e-6) for estimate in ESTIMATES
    ]))


if __name__ == "__main__":
    main()
