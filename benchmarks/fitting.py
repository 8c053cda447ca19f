"""Fits of five parameters: exact derivatives against finite differences.

    python -m benchmarks.fitting [--rounds 5]

Both search with `scipy.optimize.least_squares` for logarithms, from the same starting values.
`tether.fit` solves once per trial, with derivatives. Finite differences solve once per trial and
once per parameter and iteration. Errors of the integrator are divided by the change of a parameter
there, so they are run with several tolerances and changes, and with a search that ends earlier.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from benchmarks.measure import conditions
from tether import FitResult, fit, solve_dae

RESULTS = Path(__file__).parent / "results"
# Tolerances, relative changes of parameters (SciPy's own is 1.5e-8), and when the search ends:
# relative changes of the sum of squares (SciPy's own is 1e-8).
WAYS = (
    (1e-9, None, 1e-8), (1e-10, None, 1e-8), (1e-11, None, 1e-8), (1e-7, 1e-4, 1e-8),
    (1e-8, 1e-4, 1e-8), (1e-9, 1e-5, 1e-8), (1e-8, 1e-4, 1e-6),
)
# Distance in standard errors from which a result is another one.
SAME = 0.01
SHELLS = 30


def enzyme(t, y, yp, binding, release, catalysis, enzyme_total, feed):
    substrate, complex_, _, free = y
    bound = binding * free * substrate - release * complex_
    return [
        yp[0] + bound - feed,
        yp[1] - bound + catalysis * complex_,
        yp[2] - catalysis * complex_,
        free + complex_ - enzyme_total,
    ]


def battery(t, y, yp, diffusion, exchange, resistance, capacity, voltage_0):
    """A particle in shells, the reaction at its surface, and the voltage; the current is given."""
    c, (voltage, overpotential, current) = y[:SHELLS], y[SHELLS:]
    faces = np.arange(1, SHELLS) / SHELLS
    middles = (np.arange(SHELLS) + 0.5) / SHELLS
    flux = np.concatenate([
        [0.0], diffusion * SHELLS * faces**2 * (c[1:] - c[:-1]), [-current / capacity]
    ])
    surface = c[-1]
    return np.concatenate([
        yp[:SHELLS] - SHELLS * (flux[1:] - flux[:-1]) / middles**2,
        [
            current - exchange * np.sqrt(surface * (1.0 - surface)) * np.sinh(overpotential),
            voltage - voltage_0 - 0.3 * surface + 0.05 * np.log((1.0 - surface) / surface)
            + resistance * current + 0.05 * overpotential,
            current - 0.4 - 0.3 * np.sin(3.0 * t),
        ],
    ])


def pendulum(t, y, yp, mass, height, friction, drag, wind):
    """A rod from an unknown height to the bob, which starts at (1, 0): index 3."""
    x, z, u, w, force = y
    speed = u * u + w * w
    return [
        yp[0] - u,
        yp[1] - w,
        mass * yp[2] + force * x + friction * u + drag * speed * u - wind,
        mass * yp[3] + force * (z - height) + mass * 9.81 + friction * w + drag * speed * w,
        x * x + (z - height) ** 2 - 1.0 - height**2,
    ]


@dataclass(frozen=True)
class Case:
    name: str
    fun: Callable[..., Any]
    y0: list[float]
    true: dict[str, float]
    span: tuple[float, float]
    measured: tuple[int, ...]
    noise: float
    off: float                             # factor between starting values and true ones

    @property
    def times(self) -> np.ndarray:
        return np.linspace(*self.span, 81)[1:]

    @property
    def start(self) -> dict[str, float]:
        signs = (1, -1, 1, -1, 1)
        return {
            name: value * self.off**sign
            for (name, value), sign in zip(self.true.items(), signs, strict=True)
        }

    def data(self) -> dict[Any, np.ndarray]:
        sol = self.solve(tuple(self.true.values()), 1e-11)
        rng = np.random.default_rng(1)
        noise = self.noise * rng.standard_normal((len(self.measured), len(self.times)))
        return {row: sol.y[row] + noise[k] for k, row in enumerate(self.measured)}

    def solve(self, args: tuple, tolerance: float) -> Any:
        return solve_dae(
            self.fun, self.span, self.y0, t_eval=self.times, args=args, rtol=tolerance,
            atol=1e-3 * tolerance, start="quiet",
        )


CASES = (
    Case(
        "enzyme kinetics", enzyme, [10.0, 0.0, 0.0, 1.0],
        {"binding": 1.0, "release": 0.5, "catalysis": 2.0, "enzyme_total": 1.0, "feed": 0.1},
        (0.0, 10.0), (0, 2), 0.02, 1.5,
    ),
    Case(
        "battery", battery, [0.8] * SHELLS + [3.7, 0.1, 0.4],
        {"diffusion": 0.2, "exchange": 1.0, "resistance": 0.1, "capacity": 12.0, "voltage_0": 3.7},
        (0.0, 4.0), (SHELLS, SHELLS + 1), 0.002, 1.2,
    ),
    Case(
        "pendulum, index 3", pendulum, [1.0, 0.0, 0.0, 0.0, 0.0],
        {"mass": 1.0, "height": 0.3, "friction": 0.05, "drag": 0.02, "wind": 0.3},
        (0.0, 10.0), (0, 4), 0.02, 1.05,
    ),
)


@dataclass
class Outcome:
    solves: int
    rounds: int
    seconds: float
    x: np.ndarray


def by_fit(case: Case, data: dict, **options: float) -> tuple[Outcome, FitResult]:
    began = time.process_time()
    found = fit(
        case.fun, {"t": case.times, **data}, case.start, y0=case.y0, t_span=case.span,
        sigma=case.noise, log=True, **options,
    )
    seconds = time.process_time() - began
    return Outcome(found.solves, found.nfev, seconds, found.x), found


def by_differences(
    case: Case, data: dict, tolerance: float, change: float | None, ends: float
) -> Outcome:
    solves = 0

    def misfit(p: np.ndarray) -> np.ndarray:
        nonlocal solves
        solves += 1
        sol = case.solve(tuple(np.exp(p).tolist()), tolerance)
        if not sol.success:
            return np.full(len(data) * len(case.times), 1e3)
        return np.concatenate([(sol.y[row] - values) / case.noise for row, values in data.items()])

    began = time.process_time()
    found = least_squares(misfit, np.log(list(case.start.values())), x_scale="jac",
                          diff_step=change, ftol=ends)
    return Outcome(solves, found.nfev, time.process_time() - began, np.exp(found.x))


def rows_of(case: Case, rounds: int) -> list[str]:
    data = case.data()
    own: list[Outcome] = []
    theirs: dict[Any, list[Outcome]] = {way: [] for way in WAYS}
    _, reference = by_fit(case, data, rtol=1e-11, atol=1e-14)
    for _ in range(rounds):
        for way in WAYS:
            theirs[way].append(by_differences(case, data, *way))
        own.append(by_fit(case, data)[0])
    best = min(one.seconds for one in own)

    def apart(x: np.ndarray) -> str:
        distance = np.max(np.abs(x - reference.x) / reference.stderr)
        return f"{distance:.1g}" + ("" if distance < SAME else ", another")

    lines = [f"| {case.name} | exact, 1e-7, - | {own[0].solves} | {own[0].rounds} | "
             f"{1e3 * best:.0f} | {apart(own[0].x)} | | |"]
    for (tolerance, change, ends), outcomes in theirs.items():
        first, seconds = outcomes[0], min(one.seconds for one in outcomes)
        lines.append(
            f"| | differences of {change or 1.5e-8:g}, {tolerance:g}, {ends:g} | {first.solves} | "
            f"{first.rounds} | {1e3 * seconds:.0f} | {apart(first.x)} | "
            f"{own[0].solves / first.solves:.2f} | {best / seconds:.2f} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    lines = [
        "# Fits of five parameters", "", conditions(), "",
        f"Processor time, the best of {rounds} interleaved rounds. The distance is that "
        "from the result of `fit` with rtol = 1e-11, in standard errors; from "
        f"{SAME:g} on it is another result. Ratios are exact over differences. "
        "`fit` ends where the next step would be a thousandth of the standard errors, SciPy where "
        "the sum of squares changes by a share `ftol`.", "",
        "| problem | derivatives, rtol, ftol | solves | trials | ms | distance | solves, ratio | "
        "time, ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for case in CASES:
        rows = rows_of(case, rounds)
        print("\n".join(rows), flush=True)
        lines += rows
    (RESULTS / "fitting.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
