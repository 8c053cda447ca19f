"""The studies in short forms, and the example of projection."""

import math
from itertools import pairwise

import numpy as np
import pytest
from support.helpers import ROOT, start_python

from tether import solve_dae
from tether.base.status import Status
from tether.gallery.formulations import FORMULATIONS
from tether.run import kinds
from tether.studies import (
    conditioning,
    estimates,
    formulations,
    nilpotency,
    orders,
    pendulum,
    steep,
)
from tether.studies import hanson_krogh as hk
from tether.studies.loader import load_library

EXAMPLE = ROOT / "examples" / "projection.py"
needs_compiler = pytest.mark.skipif(not pendulum.has_compiler(), reason="no C compiler")


def elliptic_pendulum(mpmath, t):
    """The five unknowns with 40 digits, for the decimal values of length and gravity."""
    with mpmath.workdps(40):
        length, gravity, half = mpmath.mpf("1.1"), mpmath.mpf("9.80665"), mpmath.mpf("0.5")
        frequency = mpmath.sqrt(gravity / length)
        sn, cn, dn = (mpmath.ellipfun(name, frequency * t, m=half) for name in ("sn", "cn", "dn"))
        x, z = length * cn / dn**2, length * ((cn / dn) ** 2 - 1)
        rate = -frequency * sn / dn
        return np.array(
            [float(v) for v in (x, z, -z * rate, x * rate, -3 * gravity / length**2 * z)]
        )


def distance(error):
    return float(np.hypot(*error))


def cells(table):
    """Rows of a Markdown table without head and rule."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


# --- constants and exact solution -------------------------------------------------------------


@pytest.mark.parametrize("t", [1000.0, 10000.0])
def test_true_values_are_those_of_elliptic_functions(t):
    mpmath = pytest.importorskip("mpmath")
    assert np.array_equal(pendulum.TRUE[t], elliptic_pendulum(mpmath, t))


def test_exact_solution_keeps_its_accuracy_to_the_end():
    mpmath = pytest.importorskip("mpmath")
    times = np.concatenate(
        [pendulum.lowest_points(1e4, 12), np.random.default_rng(1).uniform(0, 1e4, 20), [0.0]]
    )
    expected = np.array([elliptic_pendulum(mpmath, t) for t in times.tolist()]).T
    np.testing.assert_allclose(pendulum.exact(times), expected, rtol=0, atol=1e-13)


def test_period_is_split_without_loss():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(40):
        period = 4 * mpmath.ellipk(0.5) / mpmath.sqrt(mpmath.mpf("9.80665") / mpmath.mpf("1.1"))
        rest = period - mpmath.mpf(pendulum.PERIOD_HIGH)
        assert float(rest) == pendulum.PERIOD_LOW
    assert (pendulum.PERIOD_HIGH * 2**30).is_integer()


def test_exact_solution_satisfies_equations_and_constraints():
    times = np.linspace(0.0, 3.0, 7)
    y = pendulum.exact(times)
    h = 1e-5
    yp = (pendulum.exact(times + h) - pendulum.exact(times - h)) / (2 * h)
    for i in range(len(times)):
        for residual in (pendulum.index0, pendulum.index1):
            assert np.abs(residual(0.0, y[:, i], yp[:, i])).max() < 1e-7
        assert np.abs(pendulum.constraints0(0.0, y[:, i])).max() < 1e-13
        assert abs(pendulum.energy(0.0, y[:, i])) < 1e-13


def test_lowest_points_are_the_lowest():
    t = pendulum.lowest_points(1000.0, 50)
    assert np.all(np.diff(t) > 0)
    assert 990.0 < t[-1] <= 1000.0
    np.testing.assert_allclose(pendulum.exact(t)[1], -pendulum.LENGTH, rtol=1e-14)
    np.testing.assert_allclose(np.hypot(*pendulum.exact(t)[2:4]), pendulum.LARGEST_SPEED)


# --- the functions, in C and in Python --------------------------------------------------------


@needs_compiler
@pytest.mark.parametrize("index", [1, 0])
def test_c_and_python_functions_agree(index):
    rng = np.random.default_rng(index)
    y, yp = rng.uniform(0.5, 2.0, (2, 5))
    c, python = pendulum.model(index, True), pendulum.model(index, False)

    def call(function, size, *vectors):
        out = np.zeros(size)
        pointers = [v.ctypes.data_as(function.argtypes[1]) for v in (*vectors, out)]
        function(0.0, *pointers)
        return out

    np.testing.assert_allclose(call(c.residual, 5, y, yp), python.residual(0.0, y, yp), rtol=1e-14)
    for one, other in ((c.constraints, python.constraints), (c.energy, python.energy)):
        values = np.atleast_1d(other.fun(0.0, y))
        np.testing.assert_allclose(call(one.fun, one.size, y), values, rtol=1e-14)
        rows = np.ravel(other.jac(0.0, y))
        np.testing.assert_allclose(call(one.jac, 5 * one.size, y), rows, rtol=1e-14)


@pytest.mark.parametrize("index", [1, 0])
def test_jacobians_are_those_of_the_constraints(index):
    form = pendulum.model(index, False)
    y = np.array([0.7, -0.8, 1.1, 0.4, 3.0])
    for item in (form.constraints, form.energy):
        columns = [
            (np.atleast_1d(item.fun(0.0, y + step)) - np.atleast_1d(item.fun(0.0, y - step))) / 2e-6
            for step in 1e-6 * np.eye(5)
        ]
        np.testing.assert_allclose(
            np.atleast_2d(item.jac(0.0, y)), np.array(columns).T, rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("index", [1, 0])
def test_python_functions_give_the_same_solution(index):
    sol = hk.solve_pendulum(index, 6, 5.0, energy=True, compiled=False)
    assert distance(sol.y[:2, -1] - pendulum.exact(5.0)[:2]) < 1e-4
    assert sol.stats.worst_drift < 1e-13


@needs_compiler
def test_refused_text_is_reported():
    with pytest.raises(RuntimeError, match=r"refused wrong\.c"):
        load_library("wrong", "this is not C")


# --- tables -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def errors():
    if not pendulum.has_compiler():
        pytest.skip("no C compiler")
    return hk.position_errors((6, 8))


def test_errors_are_of_the_published_size_or_smaller(errors):
    for case, rows in errors.items():
        for ndig, error in rows.items():
            assert distance(error) < 20 * distance(hk.PUBLISHED_ERRORS[case][ndig])


def test_energy_makes_the_error_a_hundred_times_smaller(errors):
    for index in (1, 0):
        assert distance(errors[index, True][8]) < distance(errors[index, False][8]) / 100


def test_error_points_along_the_circle(errors):
    """A small error is one of phase: it has the direction of the velocity."""
    u, v = pendulum.TRUE[1000.0][2:4]
    for index, energy in hk.CASES:
        error = errors[index, energy][8]
        assert abs(error[0] * v - error[1] * u) < 0.02 * distance(error) * np.hypot(u, v)


@pytest.mark.parametrize("energy", [False, True])
def test_error_table_has_a_row_for_each_tolerance(errors, energy):
    rows = cells(hk.error_table(errors, energy))
    assert [row[0] for row in rows] == ["6", "8"]
    assert all(len(row) == 9 for row in rows)
    assert float(rows[1][2]) == pytest.approx(errors[1, energy][8][1], rel=0.06)
    assert float(rows[1][8]) == pytest.approx(hk.PUBLISHED_ERRORS[0, energy][8][1], rel=0.06)
    assert len(cells(hk.error_table(errors, energy, published=False))[0]) == 5


@pytest.fixture(scope="module")
def runs():
    if not pendulum.has_compiler():
        pytest.skip("no C compiler")
    return hk.long_runs(1000.0, 8)


def test_error_grows_quadratically_without_energy_and_linearly_with_it(runs):
    for index in (1, 0):
        assert 80 < runs[index, False].growth < 120
        assert 1.9 < runs[index, False].exponent < 2.1
    # index 0 has a start-up error of the other sign, which hides the growth up to here
    assert runs[1, True].growth < 20
    assert 0.8 < runs[1, True].exponent < 1.3


def test_long_runs_stay_on_the_circle(runs):
    for run in runs.values():
        assert run.off_circle < 1e-13
        assert run.stats.worst_drift < 1e-13


def test_work_table_counts_every_step(runs):
    rows = cells(hk.work_table(runs, energy=False, published=False))
    for row, index in zip(rows, (1, 0), strict=True):
        stats = runs[index, False].stats
        assert int(row[3].replace(",", "")) >= stats.steps
        assert int(row[1].replace(",", "")) < 4 * stats.steps
    assert len(cells(hk.work_table(runs, energy=True, published=True))) == 4


def test_growth_table_has_all_cases(runs):
    rows = cells(hk.growth_table(runs))
    assert [row[0] for row in rows] == ["index 1", "index 0", "index 1, energy", "index 0, energy"]


@needs_compiler
def test_index_1_leaves_the_circle_without_projection():
    run = hk.free_run(1, 6)
    assert run.status == Status.ERROR_TEST_FAILED
    assert 20 < run.t[-1] < 100
    assert run.time_beyond(1e-3) < run.time_beyond(0.1) < run.t[-1]
    assert cells(hk.free_table([run]))[0][-1] == "ERROR_TEST_FAILED"


@needs_compiler
def test_index_0_drifts_without_projection():
    run = hk.free_run(0, 6, t_end=100.0)
    assert run.status == Status.REACHED_END
    assert run.time_beyond(0.01) is not None
    assert run.time_beyond(1e9) is None


@needs_compiler
def test_defaults_are_the_best_choice_that_stays_on_the_constraints():
    choices = hk.compare_choices((8.0,), t_end=200.0, powers=(-1.0, 0.0, 1.0))
    assert len(choices) == 6
    default = next(c for c in choices if (c.power, c.placement) == (1.0, "before"))
    assert default.worst_drift < 1e-13
    # index 0 with energy tells the powers apart
    assert default.errors[3] == min(c.errors[3] for c in choices if c.errors[3] is not None)
    assert len(cells(hk.choice_table(choices))) == 6


def test_failed_choice_is_shown():
    choice = hk.Choice(-1.0, "after", (1e-2, 1e-3, 1e-5, None), 1000, 1e-4)
    assert choice.score is None
    row = cells(hk.choice_table([choice]))[0]
    assert row == ["after", "-1", "1.0e-02", "1.0e-03", "1.0e-05", "failed", "", "1,000", "1e-04"]


@needs_compiler
def test_cost_is_measured_for_both_forms():
    costs = hk.cost_per_step(t_end=5.0, repeats=1)
    assert list(costs) == [1, 0]
    assert all(0 < cost < 1e-3 for row in costs.values() for cost in row)
    assert len(cells(hk.cost_table(costs))) == 2


def test_pictures_thin_out_to_the_highest_values():
    t = np.linspace(0.0, 10.0, 10_001)
    size = np.zeros_like(t)
    size[4321] = 7.0
    thin_t, thin = hk._highest(t, size, windows=100)
    assert len(thin) == len(thin_t) == 100
    assert thin.max() == 7.0


# --- the command and the example --------------------------------------------------------------


def check_output(text, folder):
    for number in range(1, 5):
        assert f"## Figure {number}: " in text
    for heading in ("## Figures 5 and 6", "## Without projection", "## Cost", "## Power"):
        assert heading in text
    assert {path.name for path in folder.iterdir()} == {
        "hk-figure-5.png", "hk-figure-6.png", "hk-no-projection.png"
    }


@needs_compiler
def test_command_prints_tables_and_draws(tmp_path):
    pytest.importorskip("matplotlib")
    process = start_python(
        "import runpy, sys\n"
        "runpy.run_module('tether.studies.hanson_krogh', run_name='__main__')\n",
        "--output", str(tmp_path / "pictures"),
    )
    out, err = process.communicate()
    assert err == ""
    assert process.returncode == 0
    check_output(out, tmp_path / "pictures")


@needs_compiler
def test_without_matplotlib_there_are_tables_only(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(hk, "has_matplotlib", lambda: False)
    monkeypatch.setattr(hk, "SHORT", hk.Plan((6,), 50.0, 6, (6.0,)))
    monkeypatch.setattr(hk, "compare_choices", lambda digits: [])
    hk.main(["--output", str(tmp_path)])
    printed = capsys.readouterr()
    assert "## Figure 4" in printed.out
    assert "matplotlib" in printed.err
    assert not list(tmp_path.iterdir())


def test_example_runs(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "orbit.png"
    process = start_python(
        "import runpy, sys\nrunpy.run_path(sys.argv.pop(1), run_name='__main__')\n",
        str(EXAMPLE), str(picture),
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    missed = [float(line.split()[-1]) for line in out.splitlines() if "missed" in line]
    assert missed[1] < missed[0] / 10
    assert picture.stat().st_size > 1000


@pytest.mark.slow
@needs_compiler
def test_full_study(tmp_path, capsys):
    """What HK found, at their length and accuracy."""
    pytest.importorskip("matplotlib")
    hk.main(["--full", "--output", str(tmp_path)])
    check_output(capsys.readouterr().out, tmp_path)
    runs = hk.long_runs(hk.FULL.t_long, hk.FULL.long_digits)
    for (_, energy), run in runs.items():
        assert run.off_circle < 1e-13
        assert run.stats.worst_drift < 1e-13
        assert run.stats.projections < 4_640_000
        if energy:
            assert run.growth < 20
        else:
            assert 80 < run.growth < 120


# --- conditioning (PL2 section 3) -------------------------------------------------------------

UNSCALED = {0: 0, 1: -1, 2: -2, 3: -3}
# algebraic rows divided by h; index 0 has none
ROW_SCALED = {0: 0, 1: 0, 2: -1, 3: -2}


@pytest.mark.parametrize("name", conditioning.PENDULA)
def test_condition_grows_with_the_index_and_scaling_takes_it_back(name):
    index = conditioning.FORMS[name].index
    expected = {"none": UNSCALED[index], "rows": ROW_SCALED[index],
                "kinds, rows": ROW_SCALED[index], "kinds": 0}
    for scaling, slope in expected.items():
        assert conditioning.measure(name, scaling).slope == pytest.approx(slope, abs=0.05)


def test_scaling_by_kinds_bounds_the_condition_of_a_flow():
    assert conditioning.measure("flow, index 2", "kinds").slope == pytest.approx(0, abs=0.05)


def test_scaling_cannot_help_where_no_row_is_algebraic():
    for scaling in conditioning.SCALINGS:
        found = conditioning.measure("circuit, index 1", scaling)
        assert found.slope == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize("scaling", ["none", "rows", "kinds"])
def test_estimate_of_the_condition_is_close(scaling):
    """It is a lower bound, and rarely far below."""
    for name in conditioning.FORMS:
        found = conditioning.measure(name, scaling)
        assert np.all(found.estimate < 1.05 * found.exact)
        assert np.all(found.estimate > 0.5 * found.exact)


# --- orders (LP1) -------------------------------------------------------------------------------


def test_orders_table():
    """The orders themselves are asked for in test_fixed.py."""
    found = orders.measure((1, 2))
    rows = cells(orders.order_table(found))
    assert [row[0] for row in rows[:3]] == [
        "circuit, index 1", "flow, index 2", "mechanism, index 3"
    ]
    assert all(float(row[2]) >= orders.LEAST_ORDER[2] for row in rows[:3])
    assert float(rows[3][1]) == pytest.approx(0, abs=0.1)
    assert float(rows[3][2]) == pytest.approx(1, abs=0.1)


# --- error estimates at index 2 (P82 sections 3 and 4) -------------------------------------------


def test_difference_stays_while_the_new_estimate_follows_the_error():
    last = steep.smooth_steps()[2:]
    for one, other in pairwise(last):
        assert one.difference == pytest.approx(other.difference, rel=0.1)
        assert one.error / other.error == pytest.approx(4, rel=0.05)
    for step in last:
        assert step.local == pytest.approx(step.error, rel=0.1)
        assert step.difference > 5 * step.error


def test_estimate_after_a_kink():
    """The solution is right again, the difference stays at half the jump for ever."""
    steps = steep.kink_steps()
    for step in steps:
        assert step.error < 1e-12
        assert step.difference == pytest.approx(0.495, rel=0.02)
    for one, other in pairwise(steps[2:]):
        assert one.local / other.local == pytest.approx(4, rel=0.1)


def test_error_at_order_2_does_not_vanish_with_the_step():
    """The leading coefficient belongs to equal steps; the estimate knows."""
    last = steep.smooth_steps(2)[-1]
    assert last.error > 1e-3
    assert 1 < last.local / last.error < 2


@pytest.mark.parametrize("delta", steep.DELTAS)
def test_steep_curve(delta):
    curve = steep.steep(delta)
    old = steep.run(curve, "classical", max_steps=5000)
    assert old.status in (Status.MAX_STEPS, Status.ERROR_TEST_FAILED)
    assert old.t_end < 0.5
    for estimate, most in (("local", 600), ("auto", 1500)):
        new = steep.run(curve, estimate)
        assert new.status == Status.REACHED_END
        assert new.error < 20
        assert new.steps < most


def test_leaving_the_unknown_out_says_nothing_about_its_error():
    for delta in steep.DELTAS[1:]:
        assert steep.run(steep.steep(delta), "exclude").error > 300


@pytest.mark.parametrize("estimate", ["classical", "local", "auto"])
def test_trouble_comes_one_step_after_the_kink(estimate):
    over, after = steep.failures_at_kink(estimate)
    assert over == 0
    assert after >= 4


def test_kink_is_found_to_round_off():
    found = steep.run(steep.kinked(100.0, level=False), "local", 1e-4)
    assert found.status == Status.ERROR_TEST_FAILED
    assert abs(found.t_end - found.curve.kink) < 1e-12
    assert cells(steep.kink_table([found]))[0][2] == "ERROR_TEST_FAILED"


# --- nilpotency 3 (P82 section 3) -----------------------------------------------------------------


@pytest.mark.parametrize("ratio", nilpotency.RATIOS)
def test_error_after_a_change_of_step_is_that_of_the_formula(ratio):
    expected = nilpotency.predicted_error(ratio)
    errors = [abs(nilpotency.error_after_change(ratio, h) - expected) for h in (1e-3, 1e-4)]
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)


def test_constant_step_recovers_after_two_steps():
    for h in nilpotency.STEPS:
        errors = nilpotency.constant_step_errors(h)
        assert errors[0] == pytest.approx(math.sin(0.5) / 2, rel=0.1)
        assert np.all(errors[1:] < 2 * h)


def test_estimate_tends_to_a_constant():
    steps = nilpotency.estimates()
    assert steps[-1].local == pytest.approx(steps[-2].local, rel=0.02)
    assert steps[-1].local > 0.2
    assert steps[-1].error > 100


def test_nilpotency_3_is_refused_and_says_why():
    message = nilpotency.refusal()
    for words in ("index is 3", "y[0]", "when the step changes", "Differentiate the constraint"):
        assert words in message


def test_given_kinds_are_trusted_at_ones_own_risk():
    """At order 2 and above a change of the step leaves an error that shrinks with it."""
    found = nilpotency.trusting_run("auto", 1e-6)
    assert found.y1_after_change < 1e-3
    assert found.y1_elsewhere < 1e-5
    assert found.y2 < 1e-6
    assert found.y3 < 1e-12


def test_given_kinds_at_order_one_are_warned_about():
    sol = solve_dae(
        nilpotency.residual, nilpotency.SPAN, nilpotency.exact(0.5), form="given", max_order=1,
        var_index=nilpotency.VAR_INDEX, rtol=1e-3, atol=1e-3,
    )
    off = np.abs(sol.y[0] - nilpotency.exact(sol.t)[0])
    assert sol.success
    assert off.max() > 0.1
    assert any("errors of y[0], y[1] could not be controlled" in text for text in sol.warnings)


# --- formulations (PL2 section 2) -----------------------------------------------------------------


def test_double_pendulum_in_angles_obeys_the_equations_in_coordinates():
    h = 1e-4
    before, here, ahead = (formulations.double_pendulum_exact(t) for t in (0.5 - h, 0.5, 0.5 + h))
    yp = (ahead - before) / (2 * h)
    for formulation in ("index 3", "index 2", "index 1"):
        fun = formulations.double_pendulum().problem(formulation).fun
        assert np.abs(fun(0.5, here, yp)).max() < 1e-5


@pytest.mark.parametrize("name", formulations.EXAMPLES)
def test_formulations(name):
    runs = {run.formulation: run for run in formulations.compare(name, 1e-5, t_end=3.0)}
    assert list(runs) == list(FORMULATIONS)
    for run in runs.values():
        assert run.status == Status.REACHED_END
        assert run.error < 5e-3
    assert runs["projection"].position_drift < 1e-13
    assert runs["projection"].velocity_drift < 1e-12
    # the constraint that is solved for holds as well as Newton's method does
    assert runs["index 3"].position_drift < 1e-8
    assert runs["index 2"].velocity_drift < 1e-5
    assert runs["index 2"].position_drift > 3 * runs["ggl"].position_drift
    assert runs["index 1"].position_drift > 2 * runs["baumgarte"].position_drift
    rows = cells(formulations.run_table(list(runs.values())))
    assert [row[0] for row in rows] == list(FORMULATIONS)


def test_work_at_equal_errors():
    runs = [formulations.run("pendulum", "projection", rtol, 3.0) for rtol in (1e-4, 1e-5, 1e-6)]
    middle = formulations.work_at_error(runs, [runs[1].error])[0]
    assert runs[0].residuals < middle < runs[2].residuals
    rows = cells(formulations.work_table({"projection": runs}, [runs[1].error]))
    assert rows == [["projection", f"{middle:,.0f}"]]


# --- estimates and the share of the tolerance ---------------------------------------------------


def test_share_is_put_back():
    usual = kinds.HIGH_INDEX_SHARE
    with estimates.share_of_tolerance(0.5):
        assert kinds.HIGH_INDEX_SHARE == 0.5
    assert usual == kinds.HIGH_INDEX_SHARE


def test_smaller_shares_bring_digits():
    found = estimates.compare_shares(estimates.QUICK)
    for name in estimates.QUICK:
        digits = [found[name, share].digits for share in estimates.SHARES]
        assert np.all(np.diff(digits) > -0.2)  # single runs scatter by that
        assert digits[-1] > digits[0]
        assert digits[-1] > 4.5
    assert min(found[name, 1.0].digits for name in estimates.QUICK) < 3.5


def test_default_estimate_is_the_most_accurate_that_always_finishes():
    found = estimates.compare_estimates(estimates.QUICK)
    for name in estimates.QUICK:
        assert found[name, "auto"].digits > max(
            found[name, "exclude"].digits, found[name, "scaled"].digits
        )
    failed = {(name, estimate) for (name, estimate), run in found.items() if run.digits is None}
    assert {estimate for _, estimate in failed} == {"classical", "local"}
    assert ("pend-i3", "classical") in failed


def test_residuals_at_equal_digits():
    count = estimates.residuals_at_digits("pend-i3", 4.5, (1e-5, 1e-6, 1e-7))
    assert 3000 < count < 12000
    assert estimates.residuals_at_digits("pend-i3", 4.5, (1e-5,), estimate="classical") is None
    ratios = dict.fromkeys([("pend-i3", choice) for choice in estimates.CHOICES], 2.0)
    ratios["pend-i3", "local"] = None
    rows = cells(estimates.ratio_table({**ratios, ("pend-i2", "local"): 3.0}))
    assert rows[0][-1] == "failed"
    assert rows[-1][-2:] == ["2.00", "3.00"]


# --- the commands of these ------------------------------------------------------------------------

COMMANDS = {
    conditioning: ("Slopes of the condition number", True),
    orders: ("Observed orders", False),
    steep: ("Steep curves", True),
    nilpotency: ("What solve_dae says", False),
    formulations: ("double pendulum on", True),
    estimates: ("Share of the tolerance", False),
}


@pytest.mark.parametrize("study", COMMANDS, ids=lambda study: study.__name__.split(".")[-1])
def test_command(study, capsys, monkeypatch, tmp_path):
    heading, draws = COMMANDS[study]
    picture = tmp_path / "pictures" / "study.png"
    if draws:
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(formulations, "RTOLS", np.array([1e-3, 1e-4]))
    monkeypatch.setattr(steep, "MAX_STEPS", 2000)
    monkeypatch.setattr(orders, "ORDERS", (1, 2))
    study.main(["--plot", str(picture)] if draws else [])
    printed = capsys.readouterr()
    assert heading in printed.out
    assert "| ---: |" in printed.out
    assert printed.err == ""
    assert picture.exists() == draws


@pytest.mark.slow
def test_full_study_of_the_formulations(capsys):
    formulations.main(["--full"])
    out = capsys.readouterr().out
    assert out.count("# pendulum on [0, 100]") == 3
    assert out.count("residuals at equal errors") == 2


@pytest.mark.slow
def test_full_study_of_the_estimates():
    """At equal digits no share and no other estimate is much cheaper than the default."""
    ratios = estimates.compare_at_digits()
    for ratio in ratios.values():
        assert ratio is None or ratio > 0.8
