"""Accuracy against exact and trusted values, with bounds on the work it may take."""

import math

import numpy as np
import pytest

from tether import gallery, solve_dae

RTOLS = 10.0 ** -np.arange(3.0, 10.1)


def solve(problem, rtol, **options):
    options.setdefault("t_eval", [problem.t_span[1]])
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                    atol=problem.atol(rtol), **options)
    assert sol.success, sol.message
    return sol


# name, rtol, digits at least, and at most: steps, residuals, Jacobians, factorisations if the
# function is called, so that a second residual is dearer than factors, and if it is traced; the
# digits of transamp at 1e-4 are 4.3 to 7, by round-off
CASES = [
    ("robertson", 1e-4, 5.2, 570, 1300, 22, 430, 120),
    ("robertson", 1e-6, 6.5, 980, 2300, 24, 640, 125),
    ("robertson", 1e-8, 8.2, 1750, 3900, 32, 780, 125),
    ("akzo", 1e-4, 4.6, 145, 370, 10, 97, 31),
    ("akzo", 1e-6, 6.3, 260, 600, 10, 140, 36),
    ("akzo", 1e-8, 8.3, 430, 960, 11, 170, 40),
    ("transamp", 1e-4, 4.3, 2100, 6200, 340, 1350, 510),
    ("transamp", 1e-6, 7.5, 3700, 9700, 460, 1850, 660),
    ("transamp", 1e-8, 8.8, 6800, 17000, 570, 2400, 800),
    ("vdpol", 1e-4, 3.4, 660, 1650, 62, 520, 220),
    ("vdpol", 1e-6, 5.5, 1250, 2900, 54, 730, 235),
    ("vdpol", 1e-8, 7.0, 2300, 5300, 53, 1050, 250),
    ("pend-i1", 1e-6, 3.6, 870, 2200, 110, 100, 125),
    ("pend-i1", 1e-8, 5.6, 1700, 3800, 105, 100, 125),
    ("caraxis-i1", 1e-6, 4.2, 1450, 3150, 6, 36, 16),
    ("caraxis-i1", 1e-8, 5.8, 2600, 5700, 6, 45, 25),
    ("heat1d", 1e-6, 7.0, 130, 290, 6, 94, 22),
]


@pytest.mark.parametrize("trace", ["never", "always"])
@pytest.mark.parametrize(
    ("name", "rtol", "digits", "steps", "nfev", "njev", "called", "traced"), CASES,
    ids=[f"{case[0]}-{case[1]:.0e}" for case in CASES],
)
def test_digits_and_work(name, rtol, digits, steps, nfev, njev, called, traced, trace):
    problem = gallery.get(name)
    sol = solve(problem, rtol, trace=trace)
    assert problem.digits(sol.y[:, -1]) >= digits
    assert sol.stats.steps <= steps
    assert sol.nfev <= nfev
    assert sol.njev <= njev
    assert sol.nlu <= (called if trace == "never" else traced)


def test_robertson_spans_thirteen_orders_of_magnitude_in_h():
    problem = gallery.get("robertson")
    sol = solve(problem, 1e-6, t_eval=None)
    assert sol.stats.h.max() / sol.stats.h.min() > 1e13
    assert np.abs(sol.y.sum(axis=0) - 1.0).max() < 1e-12


@pytest.mark.parametrize(
    "name", ["rotor", "implicit-oscillator", "harmonic", "pend-i1"]
)
def test_error_is_proportional_to_the_tolerance(name):
    """Over seven decades the error follows rtol with a slope near one."""
    problem = gallery.get(name)
    compare = list(problem.compare)
    # The largest error on the way: the error at the end alone may pass through zero.
    times = np.linspace(*problem.t_span, 101)
    exact = np.array([problem.exact(t) for t in times]).T[compare]
    errors = [
        np.abs(solve(problem, rtol, t_eval=times).y[compare] - exact).max() for rtol in RTOLS
    ]
    slope = np.polyfit(np.log10(RTOLS), np.log10(errors), 1)[0]
    assert 0.75 < slope < 1.15
    assert all(finer < coarser for coarser, finer in zip(errors, errors[2:], strict=False))


def test_stiff_error_stays_below_the_tolerance():
    problem = gallery.get("prothero-robinson")
    for rtol in RTOLS:
        assert problem.digits(solve(problem, rtol).y[:, -1]) >= -math.log10(10 * rtol)


@pytest.mark.parametrize("name", ["akzo", "pend-i1", "robertson"])
@pytest.mark.parametrize("options", [
    {"controller": "dassl"},
    {"error_norm": "rms"},
    {"error_norm": "rms", "newton_norm": "rms"},
    {"newton_tolerance": 0.01},
], ids=str)
def test_every_variant_of_the_method_is_as_accurate(name, options):
    problem = gallery.get(name)
    default, variant = solve(problem, 1e-7), solve(problem, 1e-7, options=options)
    counts = [(run.stats.steps, run.nfev) for run in (default, variant)]
    assert counts[0] != counts[1]                          # the option is not ignored
    assert (problem.digits(variant.y[:, -1])
            >= min(problem.digits(default.y[:, -1]), 7.0) - 0.9)
    assert variant.stats.steps < 1.7 * default.stats.steps


@pytest.mark.parametrize("exact", ["user", "user and traced", "traced"])
@pytest.mark.parametrize("name", ["robertson", "transamp", "pend-i1", "heat1d"])
def test_an_exact_jacobian_gives_the_same_and_saves_residuals(name, exact):
    problem = gallery.get(name)
    differences = solve(problem, 1e-6, trace="never")
    given = solve(problem, 1e-6, jac=None if exact == "traced" else problem.jac,
                  trace="never" if exact == "user" else "always")
    assert problem.digits(given.y[:, -1]) >= min(problem.digits(differences.y[:, -1]), 7.0) - 1.0
    beside = [run.nfev - run.stats.iterations for run in (given, differences)]
    assert beside[0] < beside[1]
    if exact == "user":                # a program begins its iterations at the prediction
        assert given.nfev < differences.nfev
    assert given.njev <= given.nlu


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
@pytest.mark.parametrize("name", ["rotor", "implicit-oscillator"])
def test_between_the_steps_the_error_is_that_of_the_steps(name, rtol):
    problem = gallery.get(name)
    sol = solve(problem, rtol, t_eval=None, dense_output=True)
    at_steps = np.abs(sol.y - np.array([problem.exact(t) for t in sol.t]).T).max()
    times = np.linspace(*problem.t_span, 997)
    y = sol.sol(times)[0]
    exact = np.array([problem.exact(t) for t in times]).T
    assert np.abs(y - exact).max() < 3.0 * at_steps + 10 * rtol
    step = 1e-5 * (problem.t_span[1] - problem.t_span[0])
    inner = times[(times > times[0] + step) & (times < times[-1] - step)]
    slope = (np.array([problem.exact(t + step) for t in inner])
             - np.array([problem.exact(t - step) for t in inner])).T / (2 * step)
    assert np.abs(sol.sol(inner)[1] - slope).max() < 300 * (at_steps + 10 * rtol)


def test_order_rises_although_the_step_changes_every_time():
    """Robertson's step grows all the way; DASSL's rule for raising the order would stall."""
    sol = solve(gallery.get("robertson"), 1e-7, t_eval=None)
    middle = sol.stats.order[len(sol.stats.order) // 3 :]
    assert np.mean(middle >= 4) > 0.5


def test_a_linear_problem_needs_few_jacobians():
    sol = solve(gallery.get("trivial"), 1e-6)
    assert sol.njev < 0.005 * sol.stats.steps
    assert sol.nlu < 0.007 * sol.stats.steps
    assert sol.nfev < 2.3 * sol.stats.steps


def test_returned_slope_satisfies_the_residual():
    """y and y' come from the final correction: their residual is that of a converged step."""
    problem = gallery.get("pend-i1")
    sol = solve(problem, 1e-8, t_eval=None)
    for t, y, yp in zip(sol.t[5:], sol.y.T[5:], sol.yp.T[5:], strict=True):
        assert np.abs(problem.fun(t, y, yp)).max() < 1e-5
