"""The structure of the equations changes on the way, and the run goes on with another plan."""

import math
import re

import numpy as np
import pytest

from tether import Bdf, Status, analyze, solve_dae
from tether.plan import choose

G = 9.81

pytestmark = pytest.mark.usefixtures("nothing_is_known")


def crossing(fun, apply=None, direction=0, terminal=False):
    """An event."""
    def event(t, y, yp, *args):
        return fun(t, y)

    event.direction, event.terminal = direction, terminal
    if apply is not None:
        event.apply = apply
    return event


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


def test_a_condition_on_the_state():
    """A mass that falls onto a moving platform takes its speed on, and stays."""
    def fun(t, y, yp):
        x, v, force, hit = y
        return [yp[0] - v, yp[1] + G - force, x + 1.0 - t if hit > 0 else force, yp[3]]

    def land(t, y, yp):
        return [y[0], y[1], 0.0, 1.0]

    lands = crossing(lambda t, y: y[0] + 1.0 - t, land)
    sol = solve_dae(fun, (0, 2), [0.0, 0.0, 0.0, -1.0], events=lands)
    assert sol.success, sol.message
    t_hit = (-1 + math.sqrt(1 + 2 * G)) / G
    assert sol.t_events[0][0] == pytest.approx(t_hit, rel=1e-6)
    assert sol.y[:3, -1] == pytest.approx([1.0, 1.0, G], rel=1e-6)


def test_a_clutch_that_locks():
    """Two discs rub until their speeds are equal, then turn as one."""
    def fun(t, y, yp):
        first, second, torque, locked = y
        return [yp[0] - 1.0 + torque, 2.0 * yp[1] - torque,
                first - second if locked > 0.5 else torque - 3.0, yp[3]]

    locks = crossing(lambda t, y: y[0] - y[1] - 1e3 * (y[3] > 0.5),
                     lambda t, y, yp: [*y[:3], 1.0], direction=-1)
    sol = solve_dae(fun, (0, 4), [7.0, 0.0, 3.0, 0.0], events=locks)
    assert sol.success, sol.message
    t_lock = 7.0 / 3.5
    assert sol.t_events[0] == pytest.approx([t_lock])
    speed = 7.0 - 2.0 * t_lock
    assert sol.y[:3, -1] == pytest.approx([speed + (4 - t_lock) / 3] * 2 + [2 / 3], rel=1e-5)


def stop_and_go(force_of, mode):
    """A mass that sticks to a stop at x = 1 where it hits it, until it is pulled off."""
    def fun(t, y, yp):
        x, v, hold = y
        return [yp[0] - v, yp[1] - force_of(t) - hold, x - 1.0 if mode["held"] else hold]

    return fun


def test_a_mass_that_sticks_and_is_pulled_off():
    """Index 1, 3 and 1: what changes is in a closure."""
    mode = {"held": False}

    def force_of(t):
        return np.where(t < 3.0, 1.0, -2.0)

    def stick(t, y, yp):
        mode["held"] = True
        return [1.0, 0.0, -1.0]

    def release(t, y, yp):
        mode["held"] = False
        return y

    hits = crossing(lambda t, y: y[0] - 1.0 - (1e3 if mode["held"] else 0.0), stick, direction=1)
    pulled = crossing(lambda t, y: t - 3.0, release)
    sol = solve_dae(stop_and_go(force_of, mode), (0, 5), [0.0, 0.0, 0.0], events=[hits, pulled])
    assert sol.success, sol.message
    t_hit = math.sqrt(2.0)
    assert sol.t_events[0] == pytest.approx([t_hit], rel=1e-5)
    held = (sol.t > t_hit) & (sol.t < 3.0)
    np.testing.assert_allclose(sol.y[:, held].T, [[1.0, 0.0, -1.0]] * held.sum(), atol=1e-6)
    late = sol.t > 3.0
    np.testing.assert_allclose(sol.y[0, late], 1.0 - (sol.t[late] - 3.0) ** 2, atol=1e-5)
    drift = sol.drift
    assert drift.shape == (2, len(sol.t))
    assert np.nanmax(np.abs(drift)) < 1e-12
    assert np.isfinite(drift[:, held]).all()
    assert np.isnan(drift[:, sol.t < t_hit - 1e-6]).all()
    assert np.isnan(drift[:, late]).all()


def test_speeds_are_made_to_fit():
    """Nobody stops the mass: the hidden constraint does, by the least change."""
    mode = {"held": False}

    def stick(t, y, yp):
        mode["held"] = True
        return y

    hits = crossing(lambda t, y: y[0] - 1.0 - (1e3 if mode["held"] else 0.0), stick, direction=1)
    sol = solve_dae(stop_and_go(lambda t: 1.0, mode), (0, 3), [0.0, 0.0, 0.0], events=hits)
    assert sol.success, sol.message
    assert sol.y_events[0][0][1] == pytest.approx(math.sqrt(2.0), rel=1e-5)
    assert sol.y[:, -1] == pytest.approx([1.0, 0.0, -1.0], abs=1e-9)
    assert sol.start.y.tolist() == [0.0, 0.0, 0.0]


def test_a_pendulum_whose_string_goes_slack():
    """Index 3 on the circle, 1 in free flight, 3 again when the string is taut."""
    mode = {"taut": True}

    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G,
                x * x + z * z - 1.0 if mode["taut"] else lam]

    def slack(t, y, yp):
        mode.update(taut=False, since=t)
        return y

    def outside(t, y):
        """Leaving the circle takes a while: the flight begins along it."""
        near = mode["taut"] or t < mode["since"] + 0.1
        return -1.0 if near else y[0] ** 2 + y[1] ** 2 - 1.0

    def taut(t, y, yp):
        mode["taut"] = True
        x, z, u, w, _ = y
        along = x * u + z * w              # the string takes this part of the speed
        return [x, z, u - along * x, w - along * z, 0.0]

    events = [crossing(lambda t, y: y[4] if mode["taut"] else -1.0, slack, direction=-1),
              crossing(outside, taut, direction=1)]
    speed = math.sqrt(3.5 * G)             # enough to pass the middle, not the top
    sol = solve_dae(fun, (0, 1.4), [0.0, -1.0, speed, 0.0, 0.0], events=events, rtol=1e-8,
                    atol=1e-11)
    assert sol.success, sol.message
    # the string is slack at height z with v^2 = g z: v0^2 - 2 g (z + 1) = g z
    z = (3.5 - 2.0) / 3.0
    assert sol.y_events[0][0][1] == pytest.approx(z, rel=1e-5)
    v = math.sqrt(G * z)
    x, u, w = math.sqrt(1 - z * z), -z * v, math.sqrt(1 - z * z) * v
    # on a parabola that meets the circle again after s = 4 w / g, which is exact
    s = 4.0 * w / G
    assert sol.t_events[1][0] - sol.t_events[0][0] == pytest.approx(s, rel=1e-5)
    meets = [x + u * s, z + w * s - G * s * s / 2]
    assert sol.y_events[1][0][:2] == pytest.approx(meets, rel=1e-5, abs=1e-6)
    assert math.hypot(*meets) == pytest.approx(1.0)
    # afterwards energy and circle are kept
    late = sol.t > sol.t_events[1][0] + 1e-9
    assert late.sum() > 10
    np.testing.assert_allclose(np.hypot(*sol.y[:2, late]), 1.0, atol=1e-12)
    energy = (sol.y[2, late]**2 + sol.y[3, late]**2) / 2 + G * sol.y[1, late]
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    assert sol.stats.steps == np.count_nonzero(np.diff(sol.t) != 0)


@pytest.mark.parametrize("kind", ["closure", "args"])
def test_a_gearbox(kind):
    """The ratio of two shafts is prescribed, another from t = 1 on; in neutral they are free."""
    gears = [2.0]

    def fun(t, y, yp, *args):
        ratio = (args or (gears,))[0][0]
        first, second, torque = y
        coupled = first - ratio * second
        return [yp[0] - 1.0 + torque, yp[1] - ratio * torque,
                coupled if ratio > 0 else torque]

    def shift(ratio):
        def apply(t, y, yp, *args):
            gears[0] = ratio
            return y

        return apply

    events = [crossing(lambda t, y: t - 1.0, shift(0.0)),
              crossing(lambda t, y: t - 2.0, shift(3.0))]
    sol = solve_dae(fun, (0, 3), [0.0, 0.0, 0.0], events=events,
                    args=(gears,) if kind == "args" else ())
    assert sol.success, sol.message
    # coupled: momentum first + second / ratio grows with t
    second = 2.0 / 5.0
    first = 2.0 * second
    at = {1.0: (first, second), 2.0: (first + 1.0, second)}
    for t, exact in at.items():
        k = np.flatnonzero(np.isclose(sol.t, t))[0]
        assert sol.y[:2, k] == pytest.approx(exact, rel=1e-5)
    k = np.flatnonzero(np.isclose(sol.t, 2.0))[-1]
    assert sol.y[0, k] == pytest.approx(3.0 * sol.y[1, k])
    assert sol.y[0, -1] - sol.y[0, k] == pytest.approx(9.0 / 10.0, rel=1e-5)


def test_equations_that_change_at_a_break():
    """By a closure that nobody but the equations and a break know of."""
    law = {"fixed": False}

    def fun(t, y, yp):
        _, v, force = y
        return [yp[0] - v, yp[1] - force, v if law["fixed"] else force - 1.0]

    def callback(t, y, yp):
        law["fixed"] = t >= 1.0 - 1e-9

    sol = solve_dae(fun, (0, 2), [0.0, 0.0, 1.0], t_breaks=[1.0], callback=callback)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([0.5, 0.0, 0.0], abs=1e-5)


def test_a_break_where_the_index_changes():
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, WAYS["if"](t, *held_then_free(t, x, v, force))]

    sol = solve_dae(fun, (0, 2), [0.0, 1.0, 0.0], t_breaks=[0.7, 1.0])
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(path_of_held_then_free(2.0)[0], rel=1e-6)


def test_a_callback_may_change_the_index():
    law = {"fixed": False}

    def fun(t, y, yp):
        _, v, force = y
        return [yp[0] - v, yp[1] - force, v - 2.0 if law["fixed"] else force - 1.0]

    def callback(t, y, yp):
        law["fixed"] = t >= 1.0
        assert len(y) == 3

    sol = solve_dae(fun, (0, 2), [0.0, 0.0, 1.0], callback=callback, max_step=1e-2)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([2.5, 2.0, 0.0], abs=5e-2)


def test_between_the_steps_of_bdf():
    law = {"fixed": False}

    def fun(t, y, yp):
        _, v, force = y
        return [yp[0] - v, yp[1] - force, v - 2.0 if law["fixed"] else force - 1.0]

    bdf = Bdf(fun, 0.0, [0.0, 0.0, 1.0], t_bound=2.0, options={"max_step": 1e-2})
    while bdf.step() == Status.RUNNING:
        law["fixed"] = bdf.t >= 1.0
    assert bdf.status == Status.REACHED_END
    assert bdf.y == pytest.approx([2.5, 2.0, 0.0], abs=5e-2)


def untraceable_later(mode):
    def fun(t, y, yp):
        x, z = y
        if mode["opaque"]:
            return [yp[0] + z, float(f"{z - x:.17g}")]
        return [yp[0] + z, x - np.cos(t)]

    return fun


def test_what_can_no_longer_be_traced_is_called():
    mode = {"opaque": False}

    def change(t, y, yp):
        mode["opaque"] = True
        return y

    half = crossing(lambda t, y: t - 0.5, change)
    sol = solve_dae(untraceable_later(mode), (0, 1), [1.0, 0.0], events=half)
    assert sol.success, sol.message
    assert "called" in sol.how
    assert sol.y[0, -1] == pytest.approx(math.cos(0.5) * math.exp(-0.5), rel=1e-5)


def test_what_must_be_traced_and_cannot_ends_the_run():
    mode = {"opaque": False}

    def change(t, y, yp):
        mode["opaque"] = True
        return y

    half = crossing(lambda t, y: t - 0.5, change)
    sol = solve_dae(untraceable_later(mode), (0, 1), [1.0, 0.0], events=half, trace="always")
    assert sol.status == Status.EQUATIONS_CHANGED
    assert sol.t[-1] == pytest.approx(0.5)
    assert "trace" in sol.message


# --- one run --------------------------------------------------------------------------------------


def test_it_looks_like_one_run():
    """Counters, order of times, events and dense output."""
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, x - np.sin(t) if np.sin(5 * t) > -0.5 else force]

    half = crossing(lambda t, y: y[0] - 0.5)
    sol = solve_dae(fun, (0, 3), [0.0, 1.0, 0.0], events=half, dense_output=True)
    assert sol.success, sol.message
    assert np.all(np.diff(sol.t) >= 0)
    assert sol.stats.steps == len(sol.stats.h) == np.count_nonzero(sol.stats.order)
    assert np.all(sol.stats.h > 0)
    assert sol.y.shape == (3, len(sol.t))
    found = sol.t_events[0]
    assert len(found) >= 1
    np.testing.assert_allclose(sol.sol(found)[0][0], 0.5, atol=1e-7)
    assert len(sol.diagnosis.steps) == 64


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


def test_the_same_plans_are_used_again(monkeypatch):
    """A run with many changes analyses two systems."""
    analysed = []
    analyze_trace = choose.analyze_trace

    def counted(*args, **options):
        analysed.append(args[0])
        return analyze_trace(*args, **options)

    monkeypatch.setattr(choose, "analyze_trace", counted)

    def fun(t, y, yp):
        _, v, force = y
        return [yp[0] - v, yp[1] - force, v - 1.0 if np.sin(20 * t) > 0 else force]

    sol = solve_dae(fun, (0, 3), [0.0, 1.0, 0.0])
    assert sol.success, sol.message
    assert len(analysed) == 2
    assert sol.y[0, -1] == pytest.approx(3.0)


def test_branches_that_leave_the_structure_alone_are_left_alone():
    """No surface is looked for where friction changes its sign."""
    def fun(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x + (0.1 if v > 0 else -0.1) + max(x, 0.0)]

    bdf = Bdf(fun, 0.0, [1.0, 0.0], t_bound=1.0)
    assert bdf._integration.model.modes is None


def test_a_jump_into_another_mode():
    """What is made consistent may lie on the other side again."""
    def fun(t, y, yp):
        x, z = y
        return [yp[0] - z, z + 1.0 if x > 0 else x - t]

    sol = solve_dae(fun, (0, 1.5), [0.5, -1.0])
    assert sol.success, sol.message
    for t, x in ((0.25, 0.25), (0.75, 0.25), (1.25, 0.75)):
        assert np.interp(t, sol.t, sol.y[0]) == pytest.approx(x, abs=1e-6)


def test_a_condition_that_its_own_consequence_holds():
    """A mass that falls to the ground is held there, at the edge of the condition."""
    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] + G - force, force if x > 0 else x]

    sol = solve_dae(fun, (0, 2), [1.0, 0.0, 0.0])
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([0.0, 0.0, G], abs=1e-6)
    t_hit = math.sqrt(2.0 / G)
    late = sol.t > t_hit + 1e-6
    assert np.abs(sol.y[0, late]).max() < 1e-6
    np.testing.assert_allclose(sol.y[0, ~late], 1.0 - G * sol.t[~late] ** 2 / 2, atol=1e-5)


def test_chattering_ends():
    """On both sides the way leads back to the surface: no solution in the ordinary sense."""
    def fun(t, y, yp):
        x, z, w = y
        return [yp[0] - z, z + 1.0 if x > 0 else w, yp[2] - z + 1.0 if x > 0 else z - 1.0]

    sol = solve_dae(fun, (0, 2), [0.5, -1.0, 0.0], max_steps=20_000)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-2)


# --- singular configurations ----------------------------------------------------------------------


def four_bar(t, y, yp):
    """Parallelogram with point masses at its joints: folded flat twice in a turn."""
    x1, z1, x2, z2, u1, w1, u2, w2, a, b, c = y
    return [yp[0] - u1, yp[1] - w1, yp[2] - u2, yp[3] - w2,
            yp[4] + a * x1 - c * (x2 - x1), yp[5] + a * z1 - c * (z2 - z1),
            yp[6] + b * (x2 - 2.0) + c * (x2 - x1), yp[7] + b * z2 + c * (z2 - z1),
            x1**2 + z1**2 - 1.0, (x2 - 2.0) ** 2 + z2**2 - 1.0,
            (x2 - x1) ** 2 + (z2 - z1) ** 2 - 4.0]


def four_bar_at(angle):
    x, z = math.cos(angle), math.sin(angle)
    return [x, z, 2.0 + x, z, -z, x, -z, x, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_a_mechanism_that_folds(rtol):
    """The rank of its constraints drops where it is flat; it passes, or says why it does not."""
    sol = solve_dae(four_bar, (0, 10), four_bar_at(1.0), rtol=rtol, atol=1e-3 * rtol,
                    max_steps=20_000)
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[:2], [np.cos(1 + sol.t), np.sin(1 + sol.t)], atol=100 * rtol)


def test_a_fold_at_a_tight_tolerance_is_named():
    """To begin anew right there is too much to ask; the run ends, and says why."""
    sol = solve_dae(four_bar, (0, 4), four_bar_at(1.0), t_breaks=[math.pi - 1.0], rtol=1e-8,
                    atol=1e-11, max_steps=20_000)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(math.pi - 1.0, abs=1e-2)
    assert "only 5 of 6 constraints are independent" in sol.message


def test_constraints_that_no_longer_repeat_each_other():
    """Twice the same circle, then a circle and a line: the pendulum is stopped."""
    def fun(t, y, yp):
        x, z, u, w, lam, mu = y
        twice = t < 1.0
        second = np.where(twice, x * x + z * z - 1.0, z + 0.8)
        by_x, by_z = np.where(twice, 2 * x, 0.0 * x), np.where(twice, 2 * z, 1.0 + 0.0 * z)
        return [yp[0] - u, yp[1] - w, yp[2] + 2 * lam * x + mu * by_x,
                yp[3] + 2 * lam * z + mu * by_z + G, x * x + z * z - 1.0, second]

    sol = solve_dae(fun, (0, 2), [0.6, -0.8, 0.0, 0.0, 0.0, 0.0])
    assert sol.success, sol.message
    late = sol.t > 1.0 + 1e-9
    assert late.any()
    np.testing.assert_allclose(np.abs(sol.y[0, late]), 0.6, atol=1e-9)
    np.testing.assert_allclose(sol.y[1, late], -0.8, atol=1e-9)
    assert sol.y[5, -1] == pytest.approx(-G)


@pytest.mark.parametrize("beside", [0.0, 1e-12, 1e-9, 1e-6, -1e-7])
@pytest.mark.parametrize("how", ["start", "break", "event"])
def test_a_mechanism_that_begins_anew_where_it_is_folded(how, beside):
    t_fold = math.pi - 1.0 + beside
    options = {}
    if how == "start":
        sol = solve_dae(four_bar, (t_fold, 4), four_bar_at(1.0 + t_fold), max_steps=20_000)
    elif how == "break":
        options["t_breaks"] = [t_fold]
    else:
        options["events"] = crossing(lambda t, y: t - t_fold, lambda t, y, yp: y)
    if how != "start":
        sol = solve_dae(four_bar, (0, 4), four_bar_at(1.0), max_steps=20_000, **options)
    if sol.success and not sol.warnings:
        np.testing.assert_allclose(sol.y[:2, -1], [math.cos(5), math.sin(5)], atol=1e-3)
    else:
        text = sol.message + " ".join(sol.warnings)
        assert re.search("depend|singular|rank", text), text


def test_dense_output_goes_on_over_a_smooth_change():
    def fun(t, y, yp):             # x is held on a curve that it follows anyway
        x, force = y
        return [yp[0] + x - force, force if math.sin(3 * t) > 0 else x - math.exp(-t)]

    sol = solve_dae(fun, (0, 4), [1.0, 0.0], dense_output=True)
    assert sol.success
    assert "the structure changed" in sol.how
    times = np.linspace(0, 4, 1001)
    np.testing.assert_allclose(sol.sol(times)[0][0], np.exp(-times), atol=1e-5)


@pytest.mark.parametrize("t_end", [1.0, 2.0])
def test_an_event_at_the_time_of_a_change(t_end):
    def carried(t, y, yp):
        x, v, force = y
        return [yp[0] - v, yp[1] - force, x - np.sin(t) if t < 0.7 else force]

    def whistle(t, y, yp):
        return t - 0.7

    sol = solve_dae(carried, (0, t_end), [0.0, 1.0, 0.0], events=whistle)
    assert sol.t_events[0] == pytest.approx([0.7], abs=1e-12)


@pytest.mark.parametrize("modes", [(0, 1), (1, 0), (1, 2), (2, 0)])
@pytest.mark.parametrize("level", [-0.4, 0.1, 0.5])
def test_a_condition_on_a_slope_is_passed_once(level, modes):
    # x = sin(t) whichever equation holds: for the force, the velocity or the position
    def fun(t, y, yp):
        x, v, force = y
        ways = [force + math.sin(t), v - math.cos(t), x - math.sin(t)]
        return [yp[0] - v, yp[1] - force + 0.7 * (v - math.cos(t)) + 0.5 * (x - math.sin(t)),
                ways[modes[0]] if yp[0] < level else ways[modes[1]]]

    def half(t, y, yp):
        return y[0] - 0.5

    sol = solve_dae(fun, (0, 4), [0.0, 1.0, 0.0], dense_output=True, events=half)
    assert sol.success, sol.message
    assert "the structure changed once" in sol.how
    assert sol.t_events[0] == pytest.approx([math.pi / 6, 5 * math.pi / 6], abs=1e-5)
    assert len(sol.stats.h) == sol.stats.steps
    assert np.all(sol.stats.h > 0)
    times = np.linspace(0, 4, 501)
    np.testing.assert_allclose(sol.sol(times)[0][0], np.sin(times), atol=1e-4)


def test_a_start_without_slopes_belongs_to_the_mode_of_those_found():
    def fun(t, y, yp):             # it moves at 1 either way, so that the first one holds
        x, force = y
        return [yp[0] - 1 - force, force if yp[0] > 0.5 else x - 5 - t]

    sol = solve_dae(fun, (0, 1), [0.0, 0.0])
    assert sol.start.moved == {}
    assert sol.y[0, -1] == pytest.approx(1.0)
