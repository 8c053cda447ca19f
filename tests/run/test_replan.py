"""The structure of the equations changes on the way, and the run goes on with another plan."""

import math

import numpy as np
import pytest
from support.events import crossing

from tether import Bdf, Status, solve_dae
from tether.plan import choose

G = 9.81


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
