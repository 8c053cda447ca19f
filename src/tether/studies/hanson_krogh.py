"""Hanson and Krogh (2008) retold: a pendulum held on its constraints for 10000 seconds.

    python -m tether.studies.hanson_krogh [--full] [--output FOLDER]

Prints their Figures 1 to 4 as Markdown tables, our numbers next to theirs, with the measurements
behind two defaults of tether, and draws Figures 5 and 6 if matplotlib is installed. The short form
stops at t = 1000 and takes a few seconds; ``--full`` goes to t = 10000 and takes under a minute.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tether import solve_dae
from tether.base.status import Status
from tether.result.solution import DaeResult
from tether.run.statistics import Statistics
from tether.studies.pendulum import (
    LARGEST_SPEED,
    LENGTH,
    START,
    TRUE,
    exact,
    has_compiler,
    lowest_points,
    model,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Index and whether the energy is kept, in HK's order of columns and figures.
CASES = ((1, False), (0, False), (1, True), (0, True))

# HK Figures 1 (without energy) and 2 (with): errors of y1 and y2 at t = 1000.
PUBLISHED_ERRORS = {
    (1, False): {5: (0.1514, -0.3142), 6: (-0.0458, 0.3015), 8: (-7.2162e-4, 0.0024),
                 10: (-5.1636e-6, 1.7319e-5)},
    (0, False): {5: (-0.0451, 0.3555), 6: (-0.0459, 0.3126), 8: (-0.0017, 0.0059),
                 10: (-1.2437e-5, 4.1718e-5)},
    (1, True): {5: (0.0033, -0.0108), 6: (1.6784e-4, -5.6240e-4), 8: (5.2148e-7, -1.7492e-6),
                10: (2.1445e-9, -7.1927e-9)},
    (0, True): {5: (-0.002, 0.0069), 6: (-9.5761e-5, 3.2136e-4), 8: (-4.8723e-7, 1.6341e-6),
                10: (-1.6767e-9, 5.6236e-9)},
}

# HK Figures 3 (without energy) and 4 (with): residuals, factorisations, projections and seconds
# on [0, 10000] with NDIG = 10.
PUBLISHED_WORK = {
    (1, False): (12_217_441, 24_210, 4_638_767, 80.3),
    (0, False): (9_277_646, 54, 4_638_770, 80.0),
    (1, True): (12_393_836, 24_208, 4_638_759, 81.0),
    (0, True): (9_281_550, 549, 4_640_488, 79.8),
}

POWERS = (-1.0, -0.5, 0.0, 0.5, 1.0)
PLACEMENTS = ("before", "after")


@dataclass(frozen=True)
class Plan:
    """How far and how accurately a run of the study goes."""

    digits: tuple[int, ...]           # NDIG of the error tables
    t_long: float                     # end of the runs for work and growth of the error
    long_digits: int                  # NDIG of these runs
    choices: tuple[float, ...]        # NDIG over which the choices are averaged


SHORT = Plan(digits=(6, 8), t_long=1000.0, long_digits=8, choices=(8.0,))
FULL = Plan(digits=(5, 6, 8, 10), t_long=10000.0, long_digits=10, choices=(8.0, 8.5, 9.0, 9.5))


def solve_pendulum(
    index: int,
    ndig: float,
    t_end: float,
    *,
    projected: bool = True,
    energy: bool = False,
    t_eval: Any = None,
    max_steps: int | None = None,
    compiled: bool | None = None,
    **options: Any,
) -> DaeResult:
    """Solve one form of the pendulum on [0, t_end] with rtol = atol = 10^-ndig.

    Parameters
    ----------
    index : {1, 0}
        HK eq. 9 with the constraints eq. 10, or eq. 11 with eq. 12.
    ndig : float
        Number of digits asked for.
    t_end : float
        End of the interval.
    projected : bool
        Whether to keep the solution on the constraints.
    energy : bool
        Whether to keep the energy.
    t_eval, max_steps
        As in `solve_dae`.
    compiled : bool, optional
        C functions or Python functions; C where there is a compiler.
    **options
        Further options of the integration.

    Examples
    --------
    >>> from tether.studies.hanson_krogh import solve_pendulum
    >>> sol = solve_pendulum(1, 6, 2.0, energy=True, compiled=False)
    >>> bool(abs(sol.drift).max() < 1e-13)
    True
    """
    form = model(index, has_compiler() if compiled is None else compiled)
    tolerance = 10.0**-ndig
    return solve_dae(
        form.residual, (0.0, t_end), START, rtol=tolerance, atol=tolerance, t_eval=t_eval,
        constraints=form.constraints if projected else None,
        invariants=form.energy if energy else None,
        max_steps=max_steps, options=options,
    )


# --- Figures 1 and 2: errors at t = 1000 ------------------------------------------------------


def position_errors(
    digits: Sequence[int], t_end: float = 1000.0
) -> dict[tuple[int, bool], dict[int, np.ndarray]]:
    """Errors of y1 and y2 at the end, by case (index, energy) and NDIG."""
    truth = exact(t_end) if t_end not in TRUE else np.array(TRUE[t_end])
    return {
        (index, energy): {
            ndig: (solve_pendulum(index, ndig, t_end, energy=energy, t_eval=[t_end]).y[:, -1]
                   - truth)[:2]
            for ndig in digits
        }
        for index, energy in CASES
    }


# --- Figures 3 to 6: work, and growth of the error --------------------------------------------


@dataclass(frozen=True)
class LongRun:
    """One case over the long interval."""

    t: np.ndarray            # passages of the lowest point
    error: np.ndarray        # distance from the true position there
    off_circle: float        # |y1^2 + y2^2 - L^2| / 2 at the end
    stats: Statistics

    def at(self, t: float) -> float:
        """Phase error in seconds at the passage nearest to t: distance over speed."""
        return float(self.error[np.argmin(np.abs(self.t - t))] / LARGEST_SPEED)

    @property
    def growth(self) -> float:
        """Factor by which the phase error grew in the last decade of time."""
        return self.at(self.t[-1]) / self.at(self.t[-1] / 10)

    @property
    def exponent(self) -> float:
        """Slope of log(error) over log(t) in the last decade."""
        late = self.t > self.t[-1] / 10
        return float(np.polyfit(np.log(self.t[late]), np.log(self.error[late]), 1)[0])


def long_run(index: int, energy: bool, t_end: float, ndig: float, points: int = 400) -> LongRun:
    """Integrate to t_end; compare with the exact solution where the bob is fastest.

    At the lowest point the error of the position is the phase error times the largest speed;
    where the bob is at rest it would vanish for any phase error.
    """
    t = lowest_points(t_end, points)
    sol = solve_pendulum(index, ndig, t_end, energy=energy, t_eval=[*t, t_end])
    if not sol.success:
        raise RuntimeError(sol.message)
    error = np.hypot(*(sol.y[:2, :-1] - exact(t)[:2]))
    off_circle = abs(0.5 * (sol.y[0, -1] ** 2 + sol.y[1, -1] ** 2 - LENGTH**2))
    return LongRun(t, error, float(off_circle), sol.stats)


def long_runs(t_end: float, ndig: float) -> dict[tuple[int, bool], LongRun]:
    """All four cases over the long interval."""
    return {(index, energy): long_run(index, energy, t_end, ndig) for index, energy in CASES}


# --- without projection -----------------------------------------------------------------------


@dataclass(frozen=True)
class FreeRun:
    """A run without projection onto the circle."""

    index: int
    ndig: int
    t: np.ndarray
    off_circle: np.ndarray   # |y1^2 + y2^2 - L^2| / 2 at every step
    status: Status

    def time_beyond(self, size: float) -> float | None:
        """Time at which the solution was first off by more than `size`; None if it never was."""
        beyond = np.flatnonzero(self.off_circle > size)
        return float(self.t[beyond[0]]) if len(beyond) else None


def free_run(index: int, ndig: int, t_end: float = 1000.0, max_steps: int = 500_000) -> FreeRun:
    """Integrate without projection to the end, or until it fails or takes too many steps."""
    sol = solve_pendulum(index, ndig, t_end, projected=False, max_steps=max_steps)
    off_circle = np.abs(0.5 * (sol.y[0] ** 2 + sol.y[1] ** 2 - LENGTH**2))
    return FreeRun(index, ndig, sol.t, off_circle, sol.status)


def free_runs(digits: Sequence[int]) -> list[FreeRun]:
    """Both forms without projection."""
    return [free_run(index, ndig) for index in (1, 0) for ndig in digits]


# --- cost and choices -------------------------------------------------------------------------


# Not projected; projected onto the constraints; onto the energy as well.
KINDS = ((False, False), (True, False), (True, True))


def cost_per_step(
    t_end: float = 100.0, ndig: float = 10, repeats: int = 7
) -> dict[int, tuple[float, ...]]:
    """Measure seconds per step by index: not projected, onto the constraints, and the energy too.

    The best of several runs is taken; the interval ends before the free run has left the circle.
    """
    best = {(index, kind): np.inf for index in (1, 0) for kind in KINDS}
    for _, (index, kind) in product(range(repeats), best):
        projected, energy = kind
        stats = solve_pendulum(
            index, ndig, t_end, projected=projected, energy=energy, t_eval=[t_end]
        ).stats
        best[index, kind] = min(best[index, kind], stats.seconds / stats.steps)
    return {index: tuple(best[index, kind] for kind in KINDS) for index in (1, 0)}


@dataclass(frozen=True)
class Choice:
    """A power and a placement of the projection, measured in the four cases."""

    power: float
    placement: str
    errors: tuple[float | None, ...]     # geometric means by case; None if a run failed
    steps: int                           # of all runs together
    worst_drift: float                   # after any accepted step

    @property
    def score(self) -> float | None:
        """Geometric mean over the cases."""
        if None in self.errors:
            return None
        return float(np.exp(np.mean(np.log(np.array(self.errors, float)))))


def compare_choices(
    digits: Sequence[float] = (8.0,),
    t_end: float = 1000.0,
    powers: Sequence[float] = POWERS,
    placements: Sequence[str] = PLACEMENTS,
) -> list[Choice]:
    """Measure the position error at t_end for every power p and both placements.

    Parameters
    ----------
    digits : sequence of float
        The errors are geometric means over these NDIG, since the error of a single run depends
        strongly on the history of the steps.
    t_end : float
        End of the interval.
    powers, placements : sequences
        The values compared of `projection_power` and `projection_placement` of `tether.Options`.
    """
    return [
        _choice(power, placement, digits, t_end)
        for placement, power in product(placements, powers)
    ]


def _choice(power: float, placement: str, digits: Sequence[float], t_end: float) -> Choice:
    truth = exact(t_end)[:2]
    errors: list[float | None] = []
    steps, worst_drift = 0, 0.0
    for index, energy in CASES:
        logarithms = []
        for ndig in digits:
            sol = solve_pendulum(
                index, ndig, t_end, energy=energy,
                projection_power=power, projection_placement=placement,
            )
            steps += sol.stats.steps
            if sol.drift is not None:
                worst_drift = max(worst_drift, float(np.abs(sol.drift).max()))
            if sol.success:
                logarithms.append(np.log(np.hypot(*(sol.y[:2, -1] - truth))))
        complete = len(logarithms) == len(digits)
        errors.append(float(np.exp(np.mean(logarithms))) if complete else None)
    return Choice(power, placement, tuple(errors), steps, worst_drift)


# --- tables -----------------------------------------------------------------------------------


def markdown(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table; numbers are aligned to the right."""
    lines = [list(head), ["---:"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def error_table(
    errors: dict[tuple[int, bool], dict[int, np.ndarray]], energy: bool, published: bool = True
) -> str:
    """Figure 1 (without energy) or 2 (with) of HK."""
    head = ["NDIG"]
    for index in (1, 0):
        head += [f"index {index}: y1", "y2"] + ["HK y1", "HK y2"] * published
    rows = []
    for ndig in errors[1, energy]:
        row: list[Any] = [ndig]
        for index in (1, 0):
            row += [f"{value:.1e}" for value in errors[index, energy][ndig]]
            if published:
                row += [f"{value:.1e}" for value in PUBLISHED_ERRORS[index, energy][ndig]]
        rows.append(row)
    return markdown(head, rows)


def work_table(runs: dict[tuple[int, bool], LongRun], energy: bool, published: bool) -> str:
    """Figure 3 (without energy) or 4 (with) of HK, with the drift off the constraints."""
    head = ["", "residuals", "factorisations", "projections", "seconds", "worst drift",
            "off the circle at the end"]
    rows: list[list[Any]] = []
    for index in (1, 0):
        run, stats = runs[index, energy], runs[index, energy].stats
        rows.append([
            f"index {index}", f"{stats.nfev:,}", f"{stats.nlu:,}", f"{stats.projections:,}",
            f"{stats.seconds:.2f}", f"{stats.worst_drift:.0e}", f"{run.off_circle:.0e}",
        ])
        if published:
            residuals, factors, projections, seconds = PUBLISHED_WORK[index, energy]
            rows.append([f"HK, index {index}", f"{residuals:,}", f"{factors:,}",
                         f"{projections:,}", f"{seconds:.1f}", "", ""])
    return markdown(head, rows)


def growth_table(runs: dict[tuple[int, bool], LongRun]) -> str:
    """Phase errors at the end and a decade before, and their growth."""
    t_end = next(iter(runs.values())).t[-1]
    head = ["", f"phase error at t = {t_end / 10:.0f}, s", f"at t = {t_end:.0f}, s", "growth",
            "exponent"]
    rows = [
        [f"index {index}{', energy' * energy}", f"{run.at(t_end / 10):.2e}",
         f"{run.at(t_end):.2e}", f"x{run.growth:.1f}", f"{run.exponent:.2f}"]
        for (index, energy), run in runs.items()
    ]
    return markdown(head, rows)


def free_table(runs: Sequence[FreeRun]) -> str:
    """When runs without projection leave the circle, and how they end."""
    sizes = (1e-3, 1e-2, 1e-1)
    head = ["index", "NDIG", *(f"off by {size:g} at t" for size in sizes), "ended at t", "by"]
    rows = []
    for run in runs:
        times = [run.time_beyond(size) for size in sizes]
        shown = ["never" if time is None else f"{time:.1f}" for time in times]
        rows.append([run.index, run.ndig, *shown, f"{run.t[-1]:.1f}", run.status.name])
    return markdown(head, rows)


def cost_table(costs: dict[int, tuple[float, ...]]) -> str:
    """Microseconds per step, and relative to the step without projection."""
    head = ["index", "no projection, µs", "constraints, µs", "with energy, µs"]
    return markdown(head, [
        [index, f"{1e6 * free:.3f}", *(f"{1e6 * cost:.3f} (x{cost / free:.2f})" for cost in others)]
        for index, (free, *others) in costs.items()
    ])


def choice_table(choices: Sequence[Choice]) -> str:
    """Errors of every power and placement."""
    head = ["placement", "p", *(f"index {index}{', energy' * energy}" for index, energy in CASES),
            "mean", "steps", "worst drift"]
    rows = [
        [choice.placement, f"{choice.power:g}",
         *("failed" if error is None else f"{error:.1e}" for error in choice.errors),
         "" if choice.score is None else f"{choice.score:.1e}",
         f"{choice.steps:,}", f"{choice.worst_drift:.0e}"]
        for choice in choices
    ]
    return markdown(head, rows)


# --- pictures ---------------------------------------------------------------------------------


def draw_growth(runs: dict[tuple[int, bool], LongRun], energy: bool) -> Figure:
    """Figure 5 (without energy) or 6 (with) of HK."""
    figure, axis = _figure()
    for index in (1, 0):
        run = runs[index, energy]
        axis.loglog(run.t, run.error, label=f"index {index}")
    power, words = (1, "linear") if energy else (2, "quadratic")
    t = np.array([run.t[-1] / 30, run.t[-1]])
    axis.loglog(t, 0.2 * run.error[-1] * (t / t[-1]) ** power, "k--", linewidth=1, label=words)
    axis.set(xlabel="t", ylabel="error of the position at the lowest point",
             title="Energy kept" if energy else "Energy not kept")
    axis.legend()
    return figure


def draw_free(runs: Sequence[FreeRun]) -> Figure:
    """Drift of the index-1 form without projection."""
    figure, axis = _figure()
    for run in runs:
        if run.index == 1:
            t, size = _highest(run.t, run.off_circle)
            axis.semilogy(t, size, label=f"NDIG = {run.ndig}")
            axis.semilogy(t[-1:], size[-1:], "kx")
    axis.set(xlabel="t", ylabel="|x² + z² - L²| / 2", title="Index 1 without projection",
             ylim=(1e-11, 1e5))
    axis.legend()
    return figure


def _highest(t: np.ndarray, size: np.ndarray, windows: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Thin out a long curve to the largest value in each window of time."""
    window = np.minimum((windows * t / t[-1]).astype(int), windows - 1)
    starts = np.flatnonzero(np.diff(window, prepend=-1))
    return t[starts], np.maximum.reduceat(size, starts)


def _figure() -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.add_subplot()
    axis.grid(alpha=0.3)
    return figure, axis


def has_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


# --- the command ------------------------------------------------------------------------------


def report(plan: Plan, save: Callable[[str, Figure], str] | None = None) -> Iterator[str]:
    """Run the study; yield its parts as Markdown when they are ready.

    Parameters
    ----------
    plan : Plan
        `SHORT` or `FULL`.
    save : callable, optional
        ``save(name, figure) -> text`` keeps a picture; without it no pictures are drawn.
    """
    errors = position_errors(plan.digits)
    yield "## Figure 1: errors at t = 1000, energy not kept\n\n" + error_table(errors, False)
    yield "## Figure 2: errors at t = 1000, energy kept\n\n" + error_table(errors, True)

    runs = long_runs(plan.t_long, plan.long_digits)
    where = f"on [0, {plan.t_long:g}], NDIG = {plan.long_digits}"
    comparable = plan == FULL
    yield f"## Figure 3: work {where}, energy not kept\n\n" + work_table(runs, False, comparable)
    yield f"## Figure 4: work {where}, energy kept\n\n" + work_table(runs, True, comparable)
    yield f"## Figures 5 and 6: growth of the error {where}\n\n" + growth_table(runs)
    free = free_runs(plan.digits)
    yield "## Without projection\n\n" + free_table(free)
    if save is not None:
        yield "\n".join([
            save("hk-figure-5.png", draw_growth(runs, False)),
            save("hk-figure-6.png", draw_growth(runs, True)),
            save("hk-no-projection.png", draw_free(free)),
        ])
    yield "## Cost of a step\n\n" + cost_table(cost_per_step())
    digits = ", ".join(f"{ndig:g}" for ndig in plan.choices)
    yield (f"## Power and placement: error at t = 1000, NDIG = {digits}\n\n"
           + choice_table(compare_choices(plan.choices)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables and write the pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m tether.studies.hanson_krogh",
        description="Retell Hanson and Krogh (2008) with numbers of this machine.",
    )
    parser.add_argument("--full", action="store_true", help="to t = 10000, NDIG up to 10")
    parser.add_argument("--output", type=Path, metavar="FOLDER",
                        help="folder for the pictures (default: the current one)", default=Path())
    options = parser.parse_args(arguments)
    if not has_compiler():
        print("no C compiler: with Python functions this takes many minutes", file=sys.stderr)

    def save(name: str, figure: Figure) -> str:
        options.output.mkdir(parents=True, exist_ok=True)
        figure.savefig(options.output / name, dpi=100)
        return f"![{name}]({(options.output / name).as_posix()})"

    drawing = has_matplotlib()
    for part in report(FULL if options.full else SHORT, save if drawing else None):
        print(part, end="\n\n", flush=True)
    if not drawing:
        print("no pictures: they need matplotlib (pip install matplotlib)", file=sys.stderr)


if __name__ == "__main__":
    main()
