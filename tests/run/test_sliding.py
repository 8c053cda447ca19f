"""Runs along surfaces that both sides point at, against exact solutions."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import Bdf, Status, solve_dae
from tether.plan import choose

MU = 0.3


def oscillator(t, y, yp):
    """x'' + x = -mu sign(v): half waves around -mu sign(v), each smaller by 2 mu."""
    x, v = y
    return [yp[0] - v, yp[1] + x + MU * np.sign(v)]


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_dry_friction_brings_to_rest(tol):
    sol = solve_dae(oscillator, (0, 20), [2.0, 0.0], rtol=tol, atol=tol)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([-0.2, 0.0], abs=100 * tol)
    assert abs(sol.y[1, -1]) < 1e-12
    resting = sol.t > 3 * math.pi + 0.1
    assert np.ptp(sol.y[0, resting]) < 1e-12
    assert sol.stats.steps < 400


@pytest.mark.parametrize("way", ["sign", "if", "where", "copysign by hand", "algebraic"])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_friction_however_it_is_written(way, unit):
    ways = {
        "sign": np.sign,
        "if": lambda v: 1.0 if v > 0 else -1.0,
        "where": lambda v: np.where(v <= 0, -1.0, 1.0),
        "copysign by hand": lambda v: 1.0 - 2.0 * (v < 0),
    }

    def plain(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x + MU * unit * ways[way](v)]

    def algebraic(t, y, yp):
        force, v, x = y
        return [yp[2] - v, yp[1] + x + force, force - MU * unit * np.sign(v)]

    if way == "algebraic":
        fun, start, place = algebraic, [-MU * unit, 0.0, 2.0 * unit], 2
    else:
        fun, start, place = plain, [2.0 * unit, 0.0], 0
    sol = solve_dae(fun, (0, 20), start, rtol=1e-7, atol=1e-7 * unit)
    assert sol.success, sol.message
    assert sol.y[place, -1] / unit == pytest.approx(-0.2, abs=1e-4)


def test_it_sticks_from_the_start_until_it_is_pulled_off():
    """Pulled by t: it sticks until t = mu; then x'' = t - mu."""
    def pulled(t, y, yp):
        v = y[1]
        return [yp[0] - v, yp[1] + MU * np.sign(v) - t]

    sol = solve_dae(pulled, (0, 2), [0.0, 0.0], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    assert np.abs(sol.y[:, sol.t < MU - 1e-6]).max() < 1e-25
    gone = 2 - MU
    assert sol.y[:, -1] == pytest.approx([gone**3 / 6, gone**2 / 2], abs=1e-7)


def test_stick_slip_on_a_belt():
    """Static friction above the kinetic one: sticks until x = 0.5, slips along a cosine, sticks."""
    belt, kinetic, static, width = 0.1, 0.2, 0.5, 1e-4

    def block(t, y, yp):
        x, v = y
        slip = belt - v
        friction = np.where(abs(slip) < width, static, kinetic)
        return [yp[0] - v, yp[1] + x - friction * np.sign(slip)]

    sol = solve_dae(block, (0, 30), [0.0, belt], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    slipping = sol.t[(np.abs(sol.y[1] - belt) > 1e-3)]
    assert slipping[0] == pytest.approx(static / belt, abs=0.05)
    last = static + belt * math.sqrt(2 * width / belt)       # where the slip is the width
    assert sol.y[0].max() == pytest.approx(
        kinetic + math.hypot(last - kinetic, belt - width), abs=2e-4
    )


def test_a_relay_holds_what_it_controls():
    def thermostat(t, y, yp):
        return [yp[0] + 0.1 * (y[0] - 300) - (10.0 if y[0] < 352 else 0.0)]

    sol = solve_dae(thermostat, (0, 40), [300.0])
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(352.0, abs=1e-10)
    assert sol.stats.steps < 60


def test_a_sliding_mode_controller():
    """On v + 2 x = 0 the motion is x' = -2 x, whatever disturbs it."""
    def plant(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] - np.sin(t) + 3 * np.sign(v + 2 * x)]

    sol = solve_dae(plant, (0, 6), [1.0, 0.0], rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    held = np.flatnonzero(np.abs(sol.y[1] + 2 * sol.y[0]) < 1e-9)
    first = held[3]
    expected = sol.y[0, first] * np.exp(-2 * (sol.t[held[3:]] - sol.t[first]))
    assert sol.y[0, held[3:]] == pytest.approx(expected, abs=1e-7)
    assert sol.t[first] < 3.0


def test_two_blocks_on_each_other():
    """Both slide together, the upper comes off and is caught again; momentum tells."""
    def stack(t, y, yp):
        lower, upper = y
        between = 0.2 * np.sign(upper - lower)
        return [yp[0] - between + 0.1 * np.sign(lower), yp[1] + between - np.sin(t)]

    sol = solve_dae(stack, (0, 3), [0.0, 0.0], rtol=1e-9, atol=1e-11)
    assert sol.success, sol.message
    # stuck to each other and to the ground until sin t = 0.1, then together with half the force
    together = math.asin(0.1)
    apart = math.asin(0.3)             # the lower needs more than the friction between them
    before = (sol.t > together + 1e-3) & (sol.t < apart - 1e-3)
    speed = 0.5 * (math.cos(together) - np.cos(sol.t[before]) - 0.1 * (sol.t[before] - together))
    assert sol.y[:, before] == pytest.approx(np.array([speed, speed]), abs=1e-7)
    begin = 0.5 * (math.cos(together) - math.cos(apart) - 0.1 * (apart - together))
    left = 3.0 - apart
    assert sol.y[:, -1] == pytest.approx([
        begin + 0.1 * left, begin + math.cos(apart) - math.cos(3.0) - 0.2 * left
    ], abs=1e-7)


@pytest.mark.parametrize("trace", ["auto", "always"])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_stack_of_blocks_on_a_belt(unit, trace):
    """The belt takes the lower of two blocks along, which takes the upper one; then it turns back.

    The belt pulls with up to 10, the blocks hold each other with up to 2, both masses are 1.
    """
    def stack(t, y, yp):
        _, _, lower, upper = y
        belt = unit if t < 1.0 else -0.5 * unit
        pull = 10.0 * unit * np.sign(belt - lower)
        between = 2.0 * unit * np.sign(lower - upper)
        return [yp[0] - lower, yp[1] - upper, yp[2] - pull + between, yp[3] - between]

    sol = solve_dae(
        stack, (0, 3), np.zeros(4), rtol=1e-9, atol=1e-11 * unit, trace=trace,
        t_eval=[0.1, 0.125, 0.3, 0.5, 0.8, 1.1, 1.125, 1.5, 1.75, 3.0],
    )
    assert sol.success, sol.message
    # 8 and 2 until the lower one has the speed of the belt; held there, the upper one follows;
    # back with -12 and -2: through the upper one's speed at once
    lower = [0.8, 1, 1, 1, 1, 1 - 12 * 0.1, -0.5, -0.5, -0.5, -0.5]
    upper = [0.2, 0.25, 0.6, 1, 1, 1 - 2 * 0.1, 0.75, 0.0, -0.5, -0.5]
    lower[5] = 1 - 8 * 0.1
    lower[6] = 1 - 8 * 0.125
    assert sol.y[2:] / unit == pytest.approx(np.array([lower, upper]), abs=1e-7)


@pytest.mark.parametrize("speed", [0.3, 0.33, -0.5, 0.1])
def test_two_surfaces_of_which_one_does_not_matter_yet(speed):
    """Two belts with the same speed: the block is put on the second one later."""
    def block(t, y, yp, later, first, second):
        lower, upper = y
        belt = first if t < later else second
        between = 2.0 * np.sign(lower - upper)
        return [yp[0] - 10.0 * np.sign(belt - lower) + between, yp[1] - between]

    for later in (10.0, 1.0):
        args = later, speed, speed
        sol = solve_dae(block, (0, 4), [0.0, 0.9], args=args, rtol=1e-8, atol=1e-10)
        assert sol.success, sol.message
        assert sol.y[:, -1] == pytest.approx([speed, speed], abs=1e-8)


@pytest.mark.parametrize("count", [3, 10])
def test_a_row_of_blocks_comes_to_rest(count):
    """Blocks between springs, each with its own friction: in the end every force is held."""
    def row(t, y, yp):
        x, v = y[:count], y[count:]
        pull = [
            (x[i - 1] if i else 0.0) - 2 * x[i] + (x[i + 1] if i < count - 1 else 0.0)
            for i in range(count)
        ]
        return [yp[i] - v[i] for i in range(count)] + [
            yp[count + i] - pull[i] + 0.2 * np.sign(v[i]) for i in range(count)
        ]

    start = np.append(np.sin(np.arange(count) + 1.0), np.zeros(count))
    sol = solve_dae(row, (0, 60), start)
    assert sol.success, sol.message
    assert np.abs(sol.y[count:, -1]).max() < 1e-9
    x = np.concatenate([[0.0], sol.y[:count, -1], [0.0]])
    assert np.abs(np.diff(x, 2)).max() < 0.2 + 1e-6


def test_an_event_pushes_it_off():
    def push(t, y, yp):
        return t - 15.0

    push.apply = lambda t, y, yp: [y[0], y[1] + 1.0]
    sol = solve_dae(oscillator, (0, 40), [2.0, 0.0], events=push, rtol=1e-8, atol=1e-10)
    assert sol.success, sol.message
    pushed = sol.t > 15.0 + 1e-9
    assert sol.y[1, pushed].max() > 0.9
    assert abs(sol.y[1, -1]) < 1e-12
    assert abs(sol.y[0, -1]) < MU


def test_a_pulse_pushes_it_off():
    """Breaks of time while it sticks: a force of 1 from t = 12 to 12.5, which it cannot hold."""
    def pushed(t, y, yp):
        x, v = y
        return [yp[0] - v, yp[1] + x + MU * np.sign(v) - (1.0 if 12.0 < t < 12.5 else 0.0)]

    sol = solve_dae(pushed, (0, 13), [2.0, 0.0], rtol=1e-8, atol=1e-10)
    ref = solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0] + MU - (1.0 if t < 12.5 else 0.0)],
        (12, 13), [-0.2, 0.0], rtol=1e-10, atol=1e-12,
    )
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx(ref.y[:, -1], abs=1e-6)


def test_step_by_step():
    bdf = Bdf(oscillator, 0.0, [2.0, 0.0], t_bound=20.0)
    while bdf.status == Status.RUNNING:
        before = bdf.t
        bdf.step()
        assert bdf.t > before
        assert len(bdf.y) == 2
    assert bdf.y == pytest.approx([-0.2, 0.0], abs=1e-3)


def test_dense_output_and_output_times():
    sol = solve_dae(
        oscillator, (0, 20), [2.0, 0.0], t_eval=np.linspace(0, 20, 41), rtol=1e-7, atol=1e-9
    )
    exact = np.where(
        sol.t < math.pi, MU + 1.7 * np.cos(sol.t), np.where(
            sol.t < 2 * math.pi, -MU + 1.1 * np.cos(sol.t), np.where(
                sol.t < 3 * math.pi, MU + 0.5 * np.cos(sol.t), -0.2)))
    assert sol.y[0] == pytest.approx(exact, abs=1e-5)
    assert sol.y.shape == (2, 41)


@pytest.mark.parametrize(
    "direction",
    [np.sign, lambda v: -1.0 if v < 0 else 1.0, lambda v: np.where(v > 0, 1.0, -1.0)],
    ids=["sign", "if", "where"],
)
@pytest.mark.parametrize(
    "fall",
    [
        lambda v: 1 / (1 + 3 * abs(v)),
        lambda v: 1 / (1 + 3 * max(v, -v)),
        lambda v: 1 / (1 + abs(3 * v)) ** 2,
        lambda v: np.exp(-abs(v)) / (2 + abs(v)),
    ],
    ids=["size", "max", "square", "exponential"],
)
def test_friction_that_falls_with_speed_sticks(direction, fall):
    """A size in a divisor is not held on its side, but the sign of the same speed is."""
    force = 2.0 + fall(0.0)

    def belt(t, y, yp):
        x, v = y
        sliding = 0.2 - v
        return [yp[0] - v, yp[1] + 10 * x - direction(sliding) * (2.0 + fall(sliding))]

    torn_off = (force - 0.5) / 2.0
    sol = solve_dae(belt, (0, torn_off), [0.05, 0.2], rtol=1e-6)
    assert sol.success, sol.message
    assert sol.y[:, -1] == pytest.approx([force / 10, 0.2], abs=1e-9)
    assert sol.stats.steps < 100


def a_chain_that_is_pulled(count, friction):
    """Blocks between springs that begin with any velocities; they stop and are pulled off."""
    def chain(t, y, yp):
        x, v = y[:count], y[count:]
        left, right = np.append(0.1 * t, x[:-1]), np.append(x[1:], x[-1])
        return np.concatenate([
            yp[:count] - v, yp[count:] - 100.0 * (left - 2.0 * x + right) + friction(v)
        ])

    start = np.append(np.zeros(count), np.random.default_rng(1).standard_normal(count))
    return chain, start


def test_blocks_come_off_while_others_stay():
    """The side that a block comes off to is known, though its velocity is round-off."""
    ends = []
    for friction in (np.sign, lambda v: np.where(v > 0.0, 1.0, -1.0)):
        fun, start = a_chain_that_is_pulled(20, friction)
        sol = solve_dae(fun, (0, 1), start, rtol=1e-6, atol=1e-8)
        assert sol.success, sol.message
        assert sol.stats.steps < 2000
        ends.append(sol.y[:, -1])
    np.testing.assert_allclose(*ends, atol=1e-7)
    assert np.count_nonzero(np.abs(ends[0][20:]) < 1e-9) == 13
    # friction that rises steeply, for an independent solver
    fun, start = a_chain_that_is_pulled(20, lambda v: np.tanh(v / 1e-6))
    smooth = solve_ivp(lambda t, y: -fun(t, y, np.zeros(40)), (0, 1), start, method="Radau",
                       rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ends[0], smooth.y[:, -1], atol=3e-5)


def test_what_passes_a_surface_while_others_stay_needs_no_other_plan(monkeypatch):
    made = []
    monkeypatch.setattr(choose, "MANY_JUMPS", 1000)        # not as arrays
    original = choose.__dict__["_make_plan_of_sliding"]
    monkeypatch.setattr(choose, "_make_plan_of_sliding",
                        lambda *given, **named: made.append(1) or original(*given, **named))
    fun, start = a_chain_that_is_pulled(100, np.sign)
    sol = solve_dae(fun, (0, 0.2), start, rtol=1e-6, atol=1e-8)
    assert sol.success, sol.message
    passed = np.count_nonzero(np.diff(np.sign(sol.y[100:]), axis=1))
    assert 0 < len(made) < 0.03 * passed
