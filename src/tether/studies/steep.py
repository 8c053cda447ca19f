"""Petzold (1982), sections 3 and 4, retold: error estimates for an unknown of index 2.

    python -m tether.studies.steep [--full] [--plot FILE]

Solves y2' = y1, 0 = y2 - g(t) for a steep g and for a g with a kink. y1 is the slope of g and
not known before it is computed; the difference of corrector and predictor, on which codes for ODEs
rely, says little about its error, unlike the estimate of P82 eq. 4.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tether import Bdf, Problem, solve_dae
from tether.base.status import Status
from tether.fixed import solve_fixed
from tether.studies.command import keep, new_figure, parse
from tether.studies.hanson_krogh import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTAS = (0.1, 0.01, 0.001)
ESTIMATES = ("classical", "exclude", "local", "auto")
TOLERANCE = 1e-6
MAX_STEPS = 20_000
# Sizes of one step after a fixed history, relative to the past steps.
RATIOS = 4.0 ** -np.arange(0.0, 6.0)
PAST_STEP = 0.02


# --- the problem --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """A function g with its slope; `kink` is the time at which the slope jumps, if it does."""

    name: str
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    kink: float | None = None

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> list[float]:
        """Evaluate y2' = y1, 0 = y2 - g(t)."""
        return [yp[1] - y[0], y[1] - self.value(t)]

    def exact(self, t: Any) -> np.ndarray:
        """Return y1 and y2 at a time, or in columns at several."""
        return np.array([self.slope(t), self.value(t)])


def steep(delta: float) -> Curve:
    """Return g = tanh((t - 1/2) / delta)."""

    def slope(t: Any) -> Any:
        return (1.0 - np.tanh((t - 0.5) / delta) ** 2) / delta

    return Curve(f"tanh, delta = {delta:g}", lambda t: np.tanh((t - 0.5) / delta), slope)


def kinked(jump: float = 1.0, level: bool = True, at: float = 0.4371) -> Curve:
    """Return g = 0, or sin t, with a slope that is larger by `jump` from time `at` on.

    With `level`, g = 0 before the kink: this is the example of P82 eq. 3.2.
    """

    def value(t: Any) -> Any:
        return (0.0 if level else np.sin(t)) + jump * np.maximum(t - at, 0.0)

    def slope(t: Any) -> Any:
        return (0.0 if level else np.cos(t)) + jump * np.greater(t, at)

    return Curve(f"kink, slope + {jump:g}", value, slope, at)


# --- whole runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One run over [0, 1]; `error` is the largest of any unknown at any step, in tolerances."""

    curve: Curve
    estimate: str
    status: Status
    t_end: float
    steps: int
    order: float                      # mean of all steps
    failures: int
    error: float


def run(
    curve: Curve, estimate: str, tolerance: float = TOLERANCE, max_steps: int = MAX_STEPS
) -> Run:
    """Solve on [0, 1] with rtol = atol and one of the error estimates.

    Parameters
    ----------
    curve : Curve
        The function g.
    estimate : str
        As in `tether.Options`.
    tolerance : float
        Both tolerances.
    max_steps : int
        The run is given up after this many steps.

    Examples
    --------
    >>> from tether.studies.steep import run, steep
    >>> run(steep(0.1), "local").error < 20
    True
    """
    sol = solve_dae(
        curve.residual, (0.0, 1.0), curve.exact(0.0), rtol=tolerance, atol=tolerance,
        max_steps=max_steps, form="given", options={"estimate": estimate},
        trace="auto" if curve.kink is None else "never",       # a trace would know of the kink
    )
    exact = curve.exact(sol.t)
    error = np.max(np.abs(sol.y - exact) / (tolerance * (1.0 + np.abs(exact))))
    orders = sol.stats.order
    assert orders is not None
    return Run(
        curve, estimate, sol.status, float(sol.t[-1]), sol.stats.steps,
        float(orders.mean()), sol.stats.error_test_failures, float(error),
    )


def steep_runs(deltas: Sequence[float], max_steps: int) -> list[Run]:
    """All estimates on all steep curves."""
    return [
        run(steep(delta), estimate, max_steps=max_steps)
        for delta in deltas
        for estimate in ESTIMATES
    ]


# --- one step -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneStep:
    """Estimated errors of y1 after one step of size h, and the true one.

    `difference` is corrector minus predictor with the factor 1 / (k + 1) that belongs to equal
    steps, `classical` the same with the coefficient of the true steps, math (8), and `local`
    the estimate of P82 eq. 4.5.
    """

    h: float
    error: float
    difference: float
    classical: float
    local: float


def one_step(
    residual: Callable[..., Any],
    exact: Callable[[Any], np.ndarray],
    past: np.ndarray,
    h: float,
    order: int = 1,
    var_index: Sequence[int] | None = None,
) -> OneStep:
    """Take a step of h after equal steps at the times `past`, all computed but the first `order`.

    Parameters
    ----------
    residual : callable
        The equations, with y1 as the first unknown.
    exact : callable
        ``exact(t)``, the solution at a vector of times.
    past : ndarray
        Times of the equal steps so far.
    h : float
        Size of the next step.
    order : int
        Order k of all of them.
    var_index : sequence of int, optional
        As in `tether.solve_dae`.
    """
    sol = solve_fixed(
        residual, (past[0], past[-1]), None, order=order, step=past[1] - past[0],
        history=exact(past[:order]),
    )
    t, y = sol.t[-order - 1 :], sol.y[:, -order - 1 :]
    bdf = Bdf(
        Problem(residual, var_index=var_index), t[-1], y[:, -1], sol.yp[:, -1],
        t_bound=t[-1] + 1.0,
        options={"rtol": 1e9, "atol": 1e9, "first_step": h, "max_order": order,
                 "estimate": "local", "start": "assume", "form": "given"},
        history=(t[:-1], y[:, :-1]), dense_output=False,
    )
    bdf.step()
    s = bdf._integration.state
    correction = float(s.array("phi")[(order + 1) * s.n])
    constant = error_constant(h / (bdf.t - t[::-1]))
    return OneStep(
        h=h,
        error=float(abs(bdf.y[0] - exact(np.array([bdf.t]))[0, 0])),
        difference=abs(correction) / (order + 1),
        classical=constant * abs(correction),
        local=constant * abs(float(s.array("filtered")[0])),
    )


def error_constant(alpha: np.ndarray) -> float:
    """Return C_k of math (8) for alpha_1 ... alpha_{k+1}.

    Examples
    --------
    For equal steps it is 1 / (k + 1):

    >>> import numpy as np
    >>> from tether.studies.steep import error_constant
    >>> print(round(error_constant(1 / np.array([1.0, 2.0, 3.0])), 4))
    0.3333
    """
    k = len(alpha) - 1
    return max(float(alpha[-1]), 1.0 / (k + 1)) if k > 1 else float(alpha[-1])


def smooth_steps(order: int = 1, ratios: np.ndarray = RATIOS) -> list[OneStep]:
    """One step of every size after steps of 0.02 on the flank of tanh(10 t - 5)."""
    past = 0.45 + PAST_STEP * np.arange(-2 * order - 2, 1)
    curve = steep(0.1)
    return [
        one_step(curve.residual, curve.exact, past, PAST_STEP * ratio, order) for ratio in ratios
    ]


def kink_steps(ratios: np.ndarray = RATIOS, passed: float = 0.01) -> list[OneStep]:
    """One step of every size when the last one has just passed a kink, by a share `passed`."""
    curve = kinked()
    assert curve.kink is not None
    past = curve.kink + passed * PAST_STEP + PAST_STEP * np.arange(-4, 1)
    return [one_step(curve.residual, curve.exact, past, PAST_STEP * ratio) for ratio in ratios]


# --- failures at a kink -------------------------------------------------------------------------


def failures_at_kink(
    estimate: str, tolerance: float = 1e-3, passed: float = 1e-6
) -> tuple[int, int]:
    """Count failed error tests of the step that passes a kink, and of the step after it.

    The step before is of the same size, and the kink lies a small share `passed` before the
    end of the step, so that the slope has hardly changed yet: the step passes the test.
    """
    curve = kinked()
    assert curve.kink is not None
    t = curve.kink + PAST_STEP * (passed + np.arange(-2, 0))
    y = np.zeros((2, 2))
    bdf = Bdf(
        Problem(curve.residual), t[1], y[:, 1], t_bound=1.0,
        options={"rtol": tolerance, "atol": tolerance, "first_step": PAST_STEP, "max_order": 1,
                 "estimate": estimate, "start": "assume", "form": "given",
                 "trace": "never"},            # a trace would know of the kink
        history=(t[:1], y[:, :1]), dense_output=False,
    )
    failures = [0]
    for steps in (1, 2):
        while bdf.stats.steps < steps and not bdf.status.failed:
            bdf.step()
        failures.append(bdf.stats.error_test_failures)
    return failures[1], failures[2] - failures[1]


# --- tables and picture ---------------------------------------------------------------------------


def run_table(runs: Sequence[Run]) -> str:
    """Work and errors of the runs, and how they ended."""
    head = ["g", "estimate", "ended by", "at t", "steps", "mean order", "failed tests",
            "error / tolerance"]
    rows = [
        [r.curve.name, r.estimate, r.status.name, f"{r.t_end:.2f}", f"{r.steps:,}",
         f"{r.order:.1f}", f"{r.failures:,}", f"{r.error:.2g}"]
        for r in runs
    ]
    return markdown(head, rows)


def kink_table(runs: Sequence[Run]) -> str:
    """How far from the kink the runs ended, with their steps and failed error tests."""
    head = ["g", "estimate", "ended by", "at t - kink", "steps", "failed tests"]
    rows = [
        [r.curve.name, r.estimate, r.status.name,
         "" if r.t_end == 1.0 else f"{r.t_end - (r.curve.kink or 0.0):.0e}",
         f"{r.steps:,}", f"{r.failures:,}"]
        for r in runs
    ]
    return markdown(head, rows)


def step_table(steps: Sequence[OneStep], last: float = PAST_STEP) -> str:
    """Estimates and true error of y1, one row per step size."""
    head = ["h / last h", "true error", "(4.5)", "classical", "difference / (k + 1)"]
    rows = [
        [f"1/{last / s.h:.0f}", f"{s.error:.1e}", f"{s.local:.1e}", f"{s.classical:.1e}",
         f"{s.difference:.1e}"]
        for s in steps
    ]
    return markdown(head, rows)


def draw(order: int = 1) -> Figure:
    """Estimates over h after a smooth history and after a kink."""
    figure, axes = new_figure(2)
    ratios = 2.0 ** -np.arange(0.0, 13.0)
    cases = (("after smooth steps", smooth_steps(order, ratios)),
             ("after a kink", kink_steps(ratios)))
    for axis, (title, steps) in zip(axes, cases, strict=True):
        h = [s.h for s in steps]
        for name, style in (("difference", "s-"), ("local", "o-"), ("error", "k--")):
            label = {"local": "(4.5)", "error": "true error"}.get(name, "difference / 2")
            values = np.maximum([getattr(s, name) for s in steps], 1e-16)
            axis.loglog(h, values, style, markersize=3, label=label)
        axis.set(xlabel="h", ylabel="y1", title=title, ylim=(1e-5, 2))
    axes[0].legend()
    return figure


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    options = parse(
        "steep", "Retell Petzold (1982), sections 3 and 4.", arguments,
        full="runs over kinks of several sizes", plot=True,
    )
    print("# One step after equal steps on a steep flank, order 1: y1\n")
    print(step_table(smooth_steps()))
    print("\n# One step after a step that has just passed a kink, order 1: y1\n")
    print(step_table(kink_steps()))
    print("\n# One step after equal steps on a steep flank, order 2: y1\n")
    print(step_table(smooth_steps(2)))
    print(f"\n# Steep curves, rtol = atol = {TOLERANCE:g}, at most {MAX_STEPS:,} steps\n")
    print(run_table(steep_runs(DELTAS, MAX_STEPS)))
    print("\n# A kink just before the end of a step, order 1: failed error tests\n")
    print(markdown(
        ["estimate", "step over the kink", "step after it"],
        [[estimate, *failures_at_kink(estimate)] for estimate in ESTIMATES],
    ))
    jumps = (0.01, 1.0, 100.0) if options.full else (1.0,)
    print("\n# Runs over a kink, rtol = atol = 1e-4\n")
    print(kink_table([
        run(kinked(jump, level=False), estimate, 1e-4) for jump in jumps for estimate in ESTIMATES
    ]))
    if options.plot:
        keep(draw(), options.plot)


if __name__ == "__main__":
    main()
