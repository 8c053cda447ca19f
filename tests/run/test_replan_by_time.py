"""The structure of the equations changes with time."""

import math

import numpy as np
import pytest

from tether import Bdf, Status, analyze, solve_dae

# --- by time ------------------------------------------------------------------------------------

STEPS = {
    "sign": lambda t: (1.0 + np.sign(t - 0.7)) / 2,
    "floor": lambda t: np.floor(t + 0.3),
    "ceil": lambda t: np.ceil(t - 0.7),
    "remainder": lambda t: t + 0.3 - (t + 0.3) % 1.0,
}

WAYS = {
    "if": lambda t, early, late: early if t < 0.7 else late,
    "not": lambda t, early, late: late if t >= 0.7 else early,
    "where": lambda t, early, late: np.where(t < 0.7, early, late),
    "factor": lambda t, early, late: (t < 0.7) * early + (t >= 0.7) * late,
    "and": lambda t, early, late: np.where((t > -1.0) & (t < 0.7), early, late),
}


def held_then_free(t, x, v, force):
    """A mass on a prescribed path, x = sin t, that is let go."""
    return x - np.sin(t), force


def path_of_held_then_free(t):
    late = np.maximum(t - 0.7, 0.0)
    early = np.minimum(t, 0.7)
    return np.sin(early) + math.cos(0.7) * late, np.cos(early)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
def test_index_3_to_1_by_time(way, rtol):
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, way(t, *held_then_free(t, x, v, force))]

    sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0], rtol=rtol, atol=1e-3 * rtol, dense_output=True)
    assert sol.success, sol.message
    x, v = path_of_held_then_free(sol.t)
    np.testing.assert_allclose(sol.y[0], x, atol=20 * rtol)
    np.testing.assert_allclose(sol.y[1], v, atol=20 * rtol)
    sure = np.abs(sol.t - 0.7) > 1e-9
    force = np.where(sol.t > 0.7, 0.0, -np.sin(sol.t))
    np.testing.assert_allclose(sol.y[2, sure], force[sure], atol=200 * rtol)
    between = np.linspace(0.0, 2.0, 57)
    np.testing.assert_allclose(sol.sol(between)[0][0], path_of_held_then_free(between)[0],
                               atol=50 * rtol)
    assert np.count_nonzero(np.isclose(sol.t, 0.7, atol=1e-13)) == 2


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_step_functions(step):
    """Those with many steps are no conditions: no step of the run passes the time, so it stalls."""
    def fun(t, y, yp):
        x, v, force = y
        held, free = held_then_free(t, x, v, force)
        late = step(t)
        return [yp[0] - v, yp[1] - force, (1.0 - late) * held + late * free]

    sol = solve_dae(fun, (0, 1.6), [0.0, 1.0, 0.0])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[0], path_of_held_then_free(sol.t)[0], atol=1e-5)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_index_1_to_3_by_time(way):
    """A mass that falls freely is caught and carried along from where it is, at its speed."""
    x_c, v_c = -0.5 * 0.7**2, -0.7

    def fun(t, y, yp):
        x, v, force = y
        caught = x - (x_c + v_c * (t - 0.7) + 0.5 * (t - 0.7) ** 2)
        return [yp[0] - v, yp[1] + 1.0 - force, way(t, force, caught)]

    sol = solve_dae(fun, (0, 2), [0.0, 0.0, 0.0])
    assert sol.success, sol.message
    late = np.maximum(sol.t - 0.7, 0.0)
    exact = np.where(late > 0, x_c + v_c * late + 0.5 * late**2, -0.5 * sol.t**2)
    np.testing.assert_allclose(sol.y[0], exact, atol=1e-5)
    assert sol.y[2, -1] == pytest.approx(2.0)
    assert "index 3" in sol.how


def test_index_up_and_down_again():
    """Held in a window of time, twice."""
    def fun(t, y, yp):
        _, v, force = y
        return [yp[0] - v, yp[1] - force, v - 1.0 if np.cos(t) > 0.5 else force - 1.0]

    sol = solve_dae(fun, (0, 10), [0.0, 1.0, 0.0], rtol=1e-7)
    assert sol.success, sol.message
    free = [(math.pi / 3, 5 * math.pi / 3), (7 * math.pi / 3, 10.0)]
    v = np.ones_like(sol.t)
    for first, last in free:
        v += np.where((sol.t > first) & (sol.t < last), sol.t - first, 0.0)
    same = ~np.isin(np.round(sol.t, 9), np.round(np.array(free).ravel(), 9))
    np.testing.assert_allclose(sol.y[1, same], v[same], atol=1e-5)
    length = 10.0 + sum((b - a) ** 2 / 2 for a, b in free)
    assert sol.y[0, -1] == pytest.approx(length, rel=1e-5)


def test_a_factor_that_fades_in():
    """The coefficient of z becomes positive: index 2, then 1.

    Behind t = 1/2 there are many solutions, x = cos t + c (t - 1/2); the one that goes on
    smoothly has c = 0.
    """
    def fun(t, y, yp):
        return [yp[0] + y[1], max(t - 0.5, 0.0) * (y[1] - np.sin(t)) + y[0] - np.cos(t)]

    sol = solve_dae(fun, (0, 2), [1.0, 0.0], rtol=1e-7)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y, [np.cos(sol.t), np.sin(sol.t)], atol=1e-5)
    assert sol.stats.steps < 150


def test_a_short_window_is_not_missed():
    """Though steps would be longer, and the root in the branch ends with the window."""
    def fun(t, y, yp):
        x, v, force = y
        held = v - 1.0 - np.sqrt(np.where(t < 1.25, 1.25 - t, np.nan)) ** 2
        return [yp[0] - v, yp[1] - force, held if 1.24 < t < 1.25 else force + x * 0.0]

    sol = solve_dae(fun, (0, 4), [0.0, 0.0, 0.0])
    assert sol.success, sol.message
    assert sol.y[1, -1] == pytest.approx(1.0, rel=1e-6)
    assert sol.y[0, -1] == pytest.approx(2.75 + 0.01 + 0.01**2 / 2, rel=1e-5)


def test_the_times_asked_for():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    times = np.linspace(0.0, 2.0, 41)
    sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0], t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.y[0], path_of_held_then_free(times)[0], atol=1e-5)
    assert sol.drift.shape == (2, 41)
    assert np.isnan(sol.drift[:, times > 0.75]).all()
    assert np.abs(sol.drift[:, times < 0.7]).max() < 1e-12


def test_backwards():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    sol = solve_dae(fun, (2, 0), [1.0, math.cos(0.7), 0.0])
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(0.0, abs=1e-9)
    assert sol.y[1, -1] == pytest.approx(1.0)


def test_one_step_at_a_time():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    bdf = Bdf(fun, 0.0, [0.0, 1.0, 0.0], t_bound=2.0)
    steps = 0
    while bdf.step() == Status.RUNNING:
        steps += 1
        assert bdf.stats.steps == steps
        assert bdf.y[0] == pytest.approx(path_of_held_then_free(bdf.t)[0], abs=1e-5)
    assert bdf.status == Status.REACHED_END
    assert bdf.t == 2.0


def test_arguments_that_decide_where():
    def fun(t, y, yp, t_free):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, x - np.sin(t) if t < t_free else force]

    for t_free in (0.3, 0.7, 5.0):
        sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0], args=(t_free,))
        end = min(t_free, 2.0)
        assert sol.y[0, -1] == pytest.approx(math.sin(end) + (2 - end) * math.cos(end), rel=1e-5)


def test_the_report_is_that_of_the_start():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    assert analyze(fun, 0.699, [0.0, 1.0, 0.0]).index == 3
    assert analyze(fun, 0.701, [0.0, 1.0, 0.0]).index == 1


def test_an_argument_that_decides_about_the_index():
    """A plan that was made for other arguments does not hold, though the pattern is the same."""
    def fun(t, y, yp, k):
        x, v, force = y
        return [yp[0] - v, yp[1] + force, k * force + 1.0 + t - x]

    for k in (1.0, 0.0, 1.0):
        sol = solve_dae(fun, (0, 2), [1.0, 1.0, 0.0], args=(k,))
        assert sol.success, sol.message
        assert sol.y[:, -1] == pytest.approx([3.0, 1.0, 0.0], abs=1e-6)
        assert ("index 3" in sol.how) == (k == 0.0)


# --- by what the solution does --------------------------------------------------------------------


def test_a_break_where_the_index_changes():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0], t_breaks=[0.7, 1.0])
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(path_of_held_then_free(2.0)[0], rel=1e-6)


# --- one run --------------------------------------------------------------------------------------


def test_it_can_be_shown():
    pytest.importorskip("matplotlib").use("Agg")

    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0])
    axis = sol.plot().axes[-1]
    assert axis.get_ylabel() == "drift"
    assert np.isfinite(axis.lines[0].get_ydata()[0])
    assert "the structure changed once" in str(sol)
    assert "off 2 constraints" in str(sol)
