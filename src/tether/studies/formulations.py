"""Petzold and Lötstedt (1986), part II, section 2, retold: how to write down a mechanism.

    python -m tether.studies.formulations [--full] [--plot FILE]

Solves a pendulum and a double pendulum in the formulations of `tether.gallery.formulations` and
prints their work, their errors and how far they drift off the constraints. The short form has one
tolerance and takes a few seconds; ``--full`` has three, longer intervals, and the work at equal
errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from tether import gallery, solve_dae
from tether.base.status import Status
from tether.gallery.formulations import FORMULATIONS, Mechanism
from tether.result.solution import Statistics
from tether.studies.command import keep, new_figure, parse
from tether.studies.hanson_krogh import markdown

GRAVITY = 9.8
# Tolerances of the runs, and errors, for the work at equal errors.
RTOLS = 10.0 ** -np.arange(3.0, 9.01, 0.5)
ERRORS = {"pendulum": (1e-2, 1e-4, 1e-6), "double pendulum": (1e-3, 1e-5, 1e-7)}


# --- the mechanisms -------------------------------------------------------------------------------


def pendulum() -> Mechanism:
    """Return the pendulum of the gallery: length and mass 1."""
    return Mechanism(
        mass=[1.0, 1.0],
        force=lambda t, q, v: [0.0, -GRAVITY],
        constraint=lambda t, q: [(q[0] * q[0] + q[1] * q[1] - 1.0) / 2],
        constraint_jac=lambda t, q: [[q[0], q[1]]],
        constraint_rate=lambda t, q: [0.0],
        curvature=lambda t, q, v: [v[0] * v[0] + v[1] * v[1]],
    )


def pendulum_exact(t: float) -> np.ndarray:
    """Return position, velocity and multiplier after a release from the horizontal."""
    exact = gallery.pendulum().exact
    assert exact is not None
    return exact(t)


# Double pendulum: bobs of 1.5 and 0.5 on rods of 1 and 0.5; angles and their rates at the start.
HEAVY, LIGHT, SHORT_ROD = 1.5, 0.5, 0.5
ANGLES = (1.0, math.pi / 2)
RATES = (0.3, -1.5)


def double_pendulum() -> Mechanism:
    """Return two bobs in Cartesian coordinates, one hanging from the other."""

    def constraint(t: float, q: Any) -> list[float]:
        dx, dz = q[2] - q[0], q[3] - q[1]
        return [
            (q[0] * q[0] + q[1] * q[1] - 1.0) / 2,
            (dx * dx + dz * dz - SHORT_ROD**2) / 2,
        ]

    def constraint_jac(t: float, q: Any) -> list[list[float]]:
        dx, dz = q[2] - q[0], q[3] - q[1]
        return [[q[0], q[1], 0.0, 0.0], [-dx, -dz, dx, dz]]

    def curvature(t: float, q: Any, v: Any) -> list[float]:
        du, dw = v[2] - v[0], v[3] - v[1]
        return [v[0] * v[0] + v[1] * v[1], du * du + dw * dw]

    return Mechanism(
        mass=[HEAVY, HEAVY, LIGHT, LIGHT],
        force=lambda t, q, v: [0.0, -HEAVY * GRAVITY, 0.0, -LIGHT * GRAVITY],
        constraint=constraint,
        constraint_jac=constraint_jac,
        constraint_rate=lambda t, q: [0.0, 0.0],
        curvature=curvature,
    )


def double_pendulum_motion(a: float, b: float, da: float, db: float) -> np.ndarray:
    """Return positions and velocities of the bobs from the angles of the rods and their rates."""
    x, z, u, w = math.sin(a), -math.cos(a), da * math.cos(a), da * math.sin(a)
    return np.array([
        x, z, x + SHORT_ROD * math.sin(b), z - SHORT_ROD * math.cos(b),
        u, w, u + SHORT_ROD * db * math.cos(b), w + SHORT_ROD * db * math.sin(b),
    ])


def double_pendulum_exact(t: float) -> np.ndarray:
    """Return positions, velocities and multipliers from Lagrange's equations in the angles."""

    def rates(t: float, x: np.ndarray) -> list[float]:
        a, b, da, db = x
        coupling = LIGHT * SHORT_ROD * math.cos(a - b)
        twist = LIGHT * SHORT_ROD * math.sin(a - b)
        inertia = [[HEAVY + LIGHT, coupling], [coupling, LIGHT * SHORT_ROD**2]]
        moment = [
            -twist * db**2 - (HEAVY + LIGHT) * GRAVITY * math.sin(a),
            twist * da**2 - LIGHT * SHORT_ROD * GRAVITY * math.sin(b),
        ]
        return [da, db, *np.linalg.solve(inertia, moment)]

    start = [*ANGLES, *RATES]
    angles = start if t == 0.0 else solve_ivp(
        rates, (0.0, t), start, "DOP853", rtol=1e-13, atol=1e-13
    ).y[:, -1]
    motion = double_pendulum_motion(*angles)
    return np.append(motion, double_pendulum().accelerations(t, motion[:4], motion[4:])[1])


@dataclass(frozen=True)
class Example:
    """A mechanism, its motion, and the ends of the intervals, short and full."""

    mechanism: Callable[[], Mechanism]
    exact: Callable[[float], np.ndarray]
    t_end: float
    t_full: float


EXAMPLES = {
    "pendulum": Example(pendulum, pendulum_exact, 20.0, 100.0),
    "double pendulum": Example(double_pendulum, double_pendulum_exact, 5.0, 10.0),
}


# --- measurements ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One run: work, largest errors at the end, largest drift at any step."""

    formulation: str
    status: Status
    stats: Statistics
    error: float                      # of positions and velocities
    multiplier_error: float           # relative to the largest multiplier at the end
    position_drift: float             # |Phi|
    velocity_drift: float             # |dPhi/dt|

    @property
    def residuals(self) -> int:
        """Residuals of Newton's iterations, without those of differences."""
        return self.stats.iterations


def run(
    name: str,
    formulation: str,
    rtol: float,
    t_end: float | None = None,
    truth: np.ndarray | None = None,
) -> Run:
    """Solve one mechanism in one formulation with rtol = atol.

    Parameters
    ----------
    name : str
        One of `EXAMPLES`.
    formulation : str
        One of `tether.gallery.formulations.FORMULATIONS`.
    rtol : float
        Both tolerances.
    t_end : float, optional
        End of the interval.
    truth : ndarray, optional
        The motion at t_end, if it is already known.

    Examples
    --------
    >>> from tether.studies.formulations import run
    >>> run("pendulum", "projection", 1e-4, 2.0).position_drift < 1e-14
    True
    """
    example = EXAMPLES[name]
    t_end = example.t_end if t_end is None else t_end
    truth = example.exact(t_end) if truth is None else truth
    mechanism, n = example.mechanism(), example.mechanism().n
    begin = example.exact(0.0)
    y0, yp0 = mechanism.start(begin[:n], begin[n : 2 * n], formulation)
    sol = solve_dae(
        mechanism.problem(formulation), (0.0, t_end), y0, yp0, rtol=rtol, atol=rtol, form="given"
    )
    error = np.abs(sol.y[: len(truth), -1] - truth) if sol.success else np.full(len(truth), np.inf)
    drift = [
        (np.abs(mechanism._constraint.values(t, y[:n])).max(),
         np.abs(mechanism._constraint.velocity(t, y[:n], y[n : 2 * n])).max())
        for t, y in zip(sol.t, sol.y.T, strict=True)
    ]
    return Run(
        formulation, sol.status, sol.stats, float(error[: 2 * n].max()),
        float(error[2 * n :].max() / np.abs(truth[2 * n :]).max()), *map(float, np.max(drift, 0)),
    )


def compare(name: str, rtol: float, t_end: float | None = None) -> list[Run]:
    """All formulations of one mechanism."""
    t_end = EXAMPLES[name].t_end if t_end is None else t_end
    truth = EXAMPLES[name].exact(t_end)
    return [run(name, formulation, rtol, t_end, truth) for formulation in FORMULATIONS]


def sweep(name: str, rtols: Sequence[float] | np.ndarray) -> dict[str, list[Run]]:
    """All formulations of one mechanism over a range of tolerances."""
    truth = EXAMPLES[name].exact(EXAMPLES[name].t_end)
    return {
        formulation: [run(name, formulation, rtol, truth=truth) for rtol in rtols]
        for formulation in FORMULATIONS
    }


def work_at_error(runs: Sequence[Run], errors: Sequence[float]) -> list[float]:
    """Residuals needed for given errors, from runs over a range of tolerances.

    A straight line through the logarithms evens out the scatter of single runs.
    """
    finished = [r for r in runs if math.isfinite(r.error)]
    line = np.polyfit(
        np.log([r.error for r in finished]), np.log([r.residuals for r in finished]), 1
    )
    return [float(np.exp(np.polyval(line, math.log(error)))) for error in errors]


# --- tables and picture ---------------------------------------------------------------------------


def run_table(runs: Sequence[Run]) -> str:
    """Work, error and drift, one row per formulation."""
    head = ["formulation", "steps", "residuals", "Jacobians", "error", "of multipliers",
            "position drift", "velocity drift"]
    rows = []
    for r in runs:
        if r.status.failed:
            rows.append([r.formulation, r.status.name, *[""] * 6])
            continue
        rows.append([
            r.formulation, f"{r.stats.steps:,}", f"{r.residuals:,}", f"{r.stats.njev:,}",
            f"{r.error:.0e}", f"{r.multiplier_error:.0e}", f"{r.position_drift:.0e}",
            f"{r.velocity_drift:.0e}",
        ])
    return markdown(head, rows)


def work_table(by_formulation: dict[str, list[Run]], errors: Sequence[float]) -> str:
    """Residuals at equal errors."""
    rows = [
        [formulation, *(f"{count:,.0f}" for count in work_at_error(runs, errors))]
        for formulation, runs in by_formulation.items()
    ]
    return markdown(["formulation", *(f"error {error:g}" for error in errors)], rows)


def draw(axis: Any, name: str, by_formulation: dict[str, list[Run]]) -> None:
    """Draw residuals against errors."""
    for formulation, runs in by_formulation.items():
        axis.loglog([r.error for r in runs], [r.residuals for r in runs], "o-", markersize=3,
                    label=formulation)
    axis.set(xlabel="error of positions and velocities", ylabel="residuals", title=name)
    axis.invert_xaxis()
    axis.legend()


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = parse(
        "formulations", "Retell Petzold and Lötstedt (1986), section 2.", arguments,
        full="three tolerances, longer intervals, work at equal errors", plot=True,
    )
    for name, example in EXAMPLES.items():
        t_end = example.t_full if options.full else example.t_end
        for rtol in (1e-4, 1e-6, 1e-8) if options.full else (1e-6,):
            print(f"# {name} on [0, {t_end:g}], rtol = atol = {rtol:g}\n")
            print(run_table(compare(name, rtol, t_end)) + "\n")
    if not options.full and not options.plot:
        return
    figure, axes = new_figure(len(EXAMPLES)) if options.plot else (None, EXAMPLES)
    for (name, example), axis in zip(EXAMPLES.items(), axes, strict=True):
        runs = sweep(name, RTOLS)
        print(f"# {name} on [0, {example.t_end:g}]: residuals at equal errors\n")
        print(work_table(runs, ERRORS[name]) + "\n")
        if figure is not None:
            draw(axis, name, runs)
    if figure is not None:
        keep(figure, options.plot)


if __name__ == "__main__":
    main()
