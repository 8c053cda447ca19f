"""Runs over surfaces where conditions on unknowns change, against exact solutions."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import Bdf, Status, solve_dae

TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10)


def bang_bang(t, y, yp):
    """x'' = -sign(x): parabolas, with the period 4 sqrt(2) from x = 1 at rest."""
    x, v = y
    return [yp[0] - v, yp[1] + np.sign(x)]


@pytest.mark.parametrize("tol", TOLERANCES)
def test_a_jump_of_the_force(tol):
    sol = solve_dae(bang_bang, (0, 12 * math.sqrt(2)), [1.0, 0.0], rtol=tol, atol=tol)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([1.0, 0.0], abs=100 * tol)
    assert sol.stats.steps < 250


@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
def test_a_kink_of_the_force(tol, unit):
    """A spring that is four times as stiff on one side: half periods of pi and pi / 2."""
    def spring(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + (4 * x if x < 0 else x)]

    sol = solve_dae(spring, (0, 3 * math.pi), [unit, 0.0], rtol=tol, atol=tol * unit)
    assert sol.success, sol.message
    assert sol.y[:, -1] / unit == pytest.approx([1.0, 0.0], abs=300 * tol)


def test_an_algebraic_unknown_jumps():
    def fun(t, y, yp):
        position, force = y
        return [yp[0] - 2.0, force - np.where(position > 1.0, 5.0, 0.0)]

    sol = solve_dae(fun, (0, 1), [0.0, 0.0])
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([2.0, 5.0])
    assert np.all(sol.y[1][sol.t < 0.5 - 1e-9] == 0.0)
    assert np.all(sol.y[1][sol.t > 0.5 + 1e-9] == pytest.approx(5.0))
    assert sol.stats.steps < 40


def test_backwards():
    there = solve_dae(bang_bang, (0, 7), [1.0, 0.0], rtol=1e-9, atol=1e-10)
    back = solve_dae(bang_bang, (7, 0), there.y[:, -1], rtol=1e-9, atol=1e-10)
    assert back.y[:, -1] == pytest.approx([1.0, 0.0], abs=1e-7)


def test_step_by_step():
    bdf = Bdf(bang_bang, 0.0, [1.0, 0.0], t_bound=4 * math.sqrt(2))
    while bdf.status == Status.RUNNING:
        before = bdf.t
        bdf.step()
        assert bdf.t > before
    assert bdf.y == pytest.approx([1.0, 0.0], abs=1e-4)


@pytest.mark.parametrize("count", [1, 30])
def test_conditions_cost_no_steps_while_nothing_switches(count):
    def plain(t, y, yp):
        return [yp[i] + (i + 1) * y[i] for i in range(count)]

    def with_conditions(t, y, yp):
        return [yp[i] + (i + 1) * (y[i] if y[i] > -1.0 else 5.0) for i in range(count)]

    one, other = (solve_dae(fun, (0, 1), np.ones(count)) for fun in (plain, with_conditions))
    assert one.stats.steps == other.stats.steps
    assert one.stats.nfev == other.stats.nfev
    assert one.y == pytest.approx(other.y, rel=1e-12)


def test_two_surfaces_at_once_and_one_after_the_other():
    """All of it is piecewise linear."""
    def fun(t, y, yp):
        a, b = y[:2]
        return [yp[0] - (1 if a < 1 else 2), yp[1] - (1 if a < 1 else 3) * (1 if b < 1 else 0.5),
                yp[2] - (1 if a + b < 2 else 4)]

    sol = solve_dae(fun, (0, 2), [0.0, 0.0, 0.0])
    assert sol.y[:, -1] == pytest.approx([3.0, 2.5, 5.0], abs=1e-6)
    assert sol.stats.steps < 80


def test_a_start_on_a_surface():
    """At rest at the turning point, and at the origin with a velocity."""
    def friction(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x + 0.3 * np.sign(v)]

    sol = solve_dae(friction, (0, math.pi), [2.0, 0.0], rtol=1e-8, atol=1e-10)
    assert sol.y[:, -1] == pytest.approx([-1.4, 0.0], abs=1e-6)
    sol = solve_dae(bang_bang, (0, 2.0), [0.0, 1.0], rtol=1e-8, atol=1e-10)
    assert sol.y[:, -1] == pytest.approx([0.0, -1.0], abs=1e-6)


def test_events_and_switches_in_one_step():
    seen = []

    def before(t, y, yp):
        return y[0] - 1e-5

    def behind(t, y, yp):
        return y[0] + 1e-5

    def at(t, y, yp):
        return y[0]

    def note(t, y, yp):
        seen.append(t)
        return y

    at.apply = note
    sol = solve_dae(bang_bang, (0, 2), [1.0, 0.0], events=[before, behind, at], rtol=1e-6)
    when = math.sqrt(2)
    assert [len(times) for times in sol.t_events] == [1, 1, 1]
    assert sol.t_events[0][0] < sol.t_events[2][0] < sol.t_events[1][0]
    assert seen == pytest.approx([when], abs=1e-5)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_dead_zone_and_a_limit(trace):
    """x' = 1 - clip(3 (x - 1), 0, 2): rises to where the drain takes all."""
    def fun(t, y, yp):
        return [yp[0] - 1 + np.clip(3 * (y[0] - 1), 0, 2)]

    sol = solve_dae(fun, (0, 3), [0.0], rtol=1e-8, atol=1e-9, trace=trace)
    exact = 4 / 3 - math.exp(-3 * 2.0) / 3
    assert sol.y[0, -1] == pytest.approx(exact, abs=1e-7)


def test_a_reduced_system_with_a_condition():
    """A pendulum in a wind that blows on one side only, against the angle's own equation."""
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x - (2.0 if x > 0 else 0.0),
                yp[3] + lam * z + 9.81, x * x + z * z - 1]

    def angle(t, y, yp):
        a, rate = y
        return [yp[0] - rate, yp[1] + 9.81 * np.sin(a) - (2 * np.cos(a) if np.sin(a) > 0 else 0.0)]

    tight = {"rtol": 1e-8, "atol": 1e-9}
    sol = solve_dae(pendulum, (0, 4), [1.0, 0.0, 0.0, 0.0, 0.0], **tight)
    ref = solve_dae(angle, (0, 4), [math.pi / 2, 0.0], rtol=1e-11, atol=1e-12)
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(math.sin(ref.y[0, -1]), abs=1e-5)


# --- what the conditions read changes on the way ----------------------------------------------


class Settings:
    limit = 1.0


def change_at(t_change, value, settings, way):
    """Let an event or a callback change the limit."""
    def clock(t, y, yp):
        return t - t_change

    def act(t, y, yp):
        settings.limit = value
        return y

    def call(t, y, yp):
        if t >= t_change:
            settings.limit = value

    clock.apply = act
    return {"events": clock} if way == "event" else {"callback": call, "t_breaks": [t_change]}


@pytest.mark.parametrize("way", ["event", "callback"])
@pytest.mark.parametrize("again", range(3))
def test_a_limit_that_is_moved(way, again):
    """Fast below the limit, slow above; again, with a plan that knows the limit as an input."""
    settings = Settings()

    def fill(t, y, yp):
        return [yp[0] - (1.0 if y[0] < settings.limit else 0.25)]

    for moved in (2.0, 3.0 + again, 1.5):
        settings.limit = 1.0
        sol = solve_dae(fill, (0, 4), [0.0], **change_at(0.5, moved, settings, way))
        assert sol.y[0, -1] == pytest.approx(
            min(4.0, moved + 0.25 * (4 - moved)), abs=2e-2 if way == "callback" else 1e-6
        )


@pytest.mark.parametrize("way", ["event", "callback"])
def test_a_set_point_that_is_moved_while_a_relay_holds_it(way):
    """It is held at 1, then heats up at the rate 1 to the new one."""
    settings = Settings()

    def heated(t, y, yp):
        return [yp[0] - (1.0 if y[0] < settings.limit else -1.0)]

    for moved in (2.0, 2.5, 0.4):
        settings.limit = 1.0
        more = change_at(2.0, moved, settings, way)
        sol = solve_dae(heated, (0, 2.5), [0.0], **more)
        assert sol.success, sol.message
        expected = 1.5 if moved > 1 else 0.5
        assert sol.y[0, -1] == pytest.approx(expected, abs=2e-2 if way == "callback" else 1e-6)


def test_a_controller_that_samples():
    """Every 0.1 it moves the limit of a drain to the level plus 0.05: always half of each."""
    settings = Settings()
    times = np.arange(1, 20) * 0.1

    def tank(t, y, yp):
        return [yp[0] - (1.0 if y[0] < settings.limit else 0.5)]

    def sample(t, y, yp):
        return np.sin(np.pi * t / 0.1)

    def act(t, y, yp):
        settings.limit = y[0] + 0.05
        return y

    sample.apply = act
    settings.limit = 0.05
    sol = solve_dae(tank, (0, 2.0), [0.0], events=sample)
    assert sol.t_events[0][1:20] == pytest.approx(times, abs=1e-9)
    assert sol.y[0, -1] == pytest.approx(20 * (0.05 + 0.05 * 0.5), abs=1e-6)


@pytest.mark.parametrize("way", ["event", "callback"])
def test_a_time_that_is_moved(way):
    """A pulse of 1 / 100 that somebody puts off while the run is on its way."""
    settings = Settings()

    def pulse(t, y, yp):
        on = settings.limit < t < settings.limit + 0.01
        return [yp[0] - (100.0 if on else 0.0)]

    for moved in (3.0, 4.5, 2.5):
        settings.limit = 2.0
        sol = solve_dae(pulse, (0, 6), [0.0], **change_at(0.5, moved, settings, way))
        assert sol.y[0, -1] == pytest.approx(1.0, abs=1e-9)
        assert sol.y[0, sol.t < moved].max() == 0.0


@pytest.mark.parametrize("kick", [-0.5, 0.0, 0.5])
def test_an_event_on_a_surface_changes_the_state(kick):
    """Where the force changes its sign the velocity is kicked; or the position is put back."""
    def cross(t, y, yp):
        return y[0]

    cross.apply = lambda t, y, yp: [y[0] + kick, y[1]]
    cross.direction, cross.terminal = -1, 2
    sol = solve_dae(bang_bang, (0, 1.6), [1.0, 0.0], events=cross, rtol=1e-8, atol=1e-10)
    when, speed = math.sqrt(2), -math.sqrt(2)
    left = 1.6 - when
    force = -1.0 if kick > 0 else 1.0
    assert sol.y[:, -1] == pytest.approx(
        [kick + speed * left + 0.5 * force * left**2, speed + force * left], abs=1e-6
    )


@pytest.mark.parametrize("levels", [(0.5,), (0.5, 0.2), (-5.0,), (0.5, 0.2, -5.0, -3.0)])
def test_conditions_that_turn_at_a_pole(levels):
    """1 / (a - 1/2) becomes infinite; behind the pole some of the levels are passed once more."""
    def fun(t, y, yp):
        a = y[0]
        x = 1.0 / (a - 0.5)
        return [yp[0] + a - 0.1, yp[1] - sum(1.0 if x > level else 0.0 for level in levels)]

    sol = solve_dae(fun, (0, 2), [1.2, 0.0], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    pole = math.log(1.1 / 0.4)
    exact = len(levels) * pole
    for level in levels:
        if level < 0.0:                        # passed again at a = 1/2 + 1/level
            again = math.log(1.1 / (0.4 + 1.0 / level))
            exact += max(0.0, 2.0 - again)
    assert sol.y[1, -1] == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("start", [[0.0, 0.0], [1.0, 0.0], [5.0, 0.0], [0.0, -0.5], [1.0, -0.5]])
def test_a_start_that_is_found_on_a_surface_for_good(start):
    """Like a transistor whose gate is at its threshold: neither side is chosen, ever."""
    def transistor(t, y, yp):
        gate, drain = y
        flow = np.maximum(gate - 1.0, 0.0) ** 2 - np.maximum(gate - drain - 1.0, 0.0) ** 2
        return [gate - 1.0, yp[1] + drain + 2.0 + flow]

    sol = solve_dae(transistor, (0.0, 1.0), start, start="quiet", rtol=1e-8, atol=1e-10)
    assert sol.success
    expected = solve_ivp(lambda t, d: -d - 2.0 + np.maximum(-d, 0.0) ** 2, (0.0, 1.0), start[1:],
                         rtol=1e-10, atol=1e-12).y[0, -1]
    np.testing.assert_allclose(sol.y[:, -1], [1.0, expected], rtol=1e-6)
    assert len(sol.t) < 150


@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("root", [
    lambda level: np.sqrt(max(level, 0.0)), lambda level: np.clip(level, 0.0, 9.0) ** 0.5,
])
def test_a_tank_runs_empty(root, tol):
    """Torricelli: (1 - t / 2)^2 until t = 2; then nothing flows, at a level just below zero."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + root(y[0])], (0, 5), [1.0], rtol=tol, atol=tol)
    assert sol.success, sol.message
    assert sol.y[0] == pytest.approx(np.maximum(1 - sol.t / 2, 0) ** 2, abs=100 * tol)


@pytest.mark.parametrize("tol", TOLERANCES)
def test_a_tank_that_begins_empty(tol):
    """With the flow q = sqrt(level): level' = 1/2 - q, so t = -2 q - ln(1 - 2 q)."""
    sol = solve_dae(
        lambda t, y, yp: [yp[0] + y[1] - 0.5, y[1] - np.sqrt(np.maximum(y[0], 0.0))], (0, 1),
        [0.0, 0.0], rtol=tol, atol=tol,
    )
    assert sol.success, sol.message
    flow = sol.y[1, sol.t > 0.1]
    assert -2 * flow - np.log(1 - 2 * flow) == pytest.approx(sol.t[sol.t > 0.1], abs=1000 * tol)
