"""Index 2 and 3 as written: what differences of the residual tell about the start."""

import math
import warnings
from math import asin, cos, exp, log, log10, sin, sqrt

import numpy as np
import pytest

from tether import Bdf, ConsistencyWarning, Status, gallery, solve_dae

HOW = [{"trace": "never"}, {"form": "given"}]


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]


def pendulum_2(t, y, yp):
    x, z, u, w, _ = y
    return [*pendulum(t, y, yp)[:4], x * u + z * w]


def tension(y):
    x, z, u, w = y[:4]
    return (u * u + w * w - 9.81 * z) / (x * x + z * z)


# --- multipliers, velocities, positions --------------------------------------------------------


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("guess", [0.0, -3.0, 1e3])
@pytest.mark.parametrize("fun", [pendulum, pendulum_2])
def test_a_wrong_multiplier_is_corrected_without_a_word(fun, guess, how):
    y0 = [0.6, -0.8, 0.4, 0.3, guess]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConsistencyWarning)
        sol = solve_dae(fun, (0, 1), y0, **how)
    assert sol.success, sol.message
    assert sol.y[:4, 0].tolist() == y0[:4]
    assert sol.y[4, 0] == pytest.approx(tension(y0), rel=1e-7)
    assert list(sol.start.moved) == [4]
    assert sol.start.yp[2] == pytest.approx(-tension(y0) * 0.6, rel=1e-7)
    right = solve_dae(fun, (0, 1), y0, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(sol.y[:4, -1], right.y[:4, -1], atol=2e-5)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("y0", [[0.6, -0.8, 0.0, 0.0], [1.0, 0.0, 0.0, -2.0], [-0.8, 0.6, 3.0, 4.0],
                                [0.0, -1.0, 1.0, 0.0], [1e-4, -math.sqrt(1 - 1e-8), 0.0, 0.0]])
def test_what_is_right_is_kept(y0, how):
    y0 = [*y0, tension(y0)]
    sol = solve_dae(pendulum, (0, 0.1), y0, **how)
    assert sol.success
    assert sol.y[:, 0].tolist() == y0
    assert sol.start.moved == {}


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("y0", [[0.66, -0.88, 1.0, 0.0, 0.0], [0.59, -0.81, 0.1, 0.2, 50.0],
                                [1.1, 0.0, 0.3, 0.0, 1.0], [1.0, 1e-2, 1e-3, 0.0, 0.0]])
def test_positions_and_velocities_are_moved_onto_their_constraints(y0, how):
    with pytest.warns(ConsistencyWarning, match="was changed"):
        sol = solve_dae(pendulum, (0, 0.5), y0, **how)
    assert sol.success, sol.message
    x, z, u, w, lam = sol.y[:, 0]
    assert x * x + z * z == pytest.approx(1.0, abs=1e-10)
    assert x * u + z * w == pytest.approx(0.0, abs=1e-8)
    assert lam == pytest.approx(tension(sol.y[:, 0]), abs=1e-6)
    assert np.hypot(x - y0[0], z - y0[1]) < 1.01 * abs(np.hypot(*y0[:2]) - 1.0)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_check_and_assume_leave_everything_alone(how):
    y0 = [0.6, -0.8, 0.0, 0.0, 0.0]
    refused = solve_dae(pendulum, (0, 1), y0, start="check", **how)
    assert refused.status == Status.NO_CONSISTENT_START
    assert "lam" in refused.message
    assert "7.848" in refused.message
    assumed = solve_dae(pendulum, (0, 0.1), y0, start="assume", **how)
    assert assumed.y[:, 0].tolist() == y0


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("name", ["pend-i2", "pend-ggl", "caraxis-i2", "andrews-i2",
                                  "pend-i3", "caraxis-i3", "andrews-i3"])
def test_the_gallery_with_random_multipliers(name, how):
    problem = gallery.get(name)
    span = problem.t_span

    def start(y0):
        return Bdf(problem.fun, span[0], y0, None, how, t_bound=span[1]).start

    kinds = start(problem.y0).pencil.var_index
    multipliers = kinds == kinds.max()
    y0 = np.array(problem.y0, float)
    y0[multipliers] += np.random.default_rng(3).normal(size=multipliers.sum())
    found = start(y0)
    assert found.success, found.message
    scale = np.abs(problem.y0).max()
    np.testing.assert_allclose(found.y, problem.y0, rtol=1e-7, atol=1e-7 * scale)
    assert found.y[~multipliers].tolist() == np.asarray(problem.y0)[~multipliers].tolist()


@pytest.mark.parametrize("off", [1e-3, 1e-8, 1e-11])
def test_a_refusal_shows_what_is_different(off):
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] - y[0]]

    sol = solve_dae(fun, (0, 1), [1.0, 1.0 + off], start="check", rtol=1e-12, atol=1e-14)
    wanted, given = sol.start.message.split("would have to be ")[1].split(" instead of ")
    assert wanted != given


# --- systems with known solutions ---------------------------------------------------------------


@pytest.mark.parametrize("units", [1.0, 1e6, 1e-6])
@pytest.mark.parametrize("seed", range(4))
def test_random_systems_of_index_2_with_known_solution(seed, units):
    """x' = f + B z, 0 = C (x - known): z follows, whatever was given."""
    rng = np.random.default_rng(seed)
    n, m = 4, 2
    B, C = rng.normal(size=(n, m)), rng.normal(size=(m, n))
    shape = np.array([units] * n + [1.0 / units] * m)

    def known(t):
        x = np.array([sin((i + 1) * t + i) for i in range(n)])
        z = np.array([cos(2 * t), exp(-t)])
        slope = np.array([(i + 1) * cos((i + 1) * t + i) for i in range(n)])
        return x, z, slope

    def fun(t, y, yp):
        Y, Yp = y / shape, yp / shape
        x, z, slope = known(t)
        return np.concatenate([
            Yp[:n] - slope - B @ (Y[n:] - z), C @ (Y[:n] - x),
        ])

    x, z, _ = known(0.3)
    y0 = shape * np.append(x, z + rng.normal(size=m))
    sol = solve_dae(fun, (0.3, 1.0), y0, atol=1e-9 * shape, trace="never", max_steps=200)
    np.testing.assert_allclose(sol.y[:n, 0] / shape[:n], x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(sol.y[n:, 0] / shape[n:], z, atol=1e-7)
    if seed in (1, 2):             # the others take many steps
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.y[:, -1] / shape, np.append(*known(1.0)[:2]), atol=1e-4)


def test_the_direction_of_time():
    """Only times within the interval are looked at."""
    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - sqrt(t) ** 3 if side > 0 else y[0] - sqrt(1.0 - t) ** 3]

    for side, span in ((1, (1e-3, 1.0)), (-1, (1.0 - 1e-3, 0.0))):
        value = fun(span[0], [0.0, 0.0], [0.0, 0.0])[1]
        sol = solve_dae(fun, span, [-value, 0.0], trace="never")
        assert sol.success, sol.message
        assert sol.y[1, 0] == pytest.approx(-side * 1.5 * sqrt(1e-3), rel=1e-6)


# --- where a run begins anew ---------------------------------------------------------------------


@pytest.mark.parametrize("slope", [2.0, -300.0, 1e-6])
@pytest.mark.parametrize("at", [0.5, 1 / 3])
def test_a_kink_at_a_break(at, slope):
    def fun(t, y, yp):
        return [yp[0] + y[1], y[0] - (0.0 if t < at else slope * (t - at))]

    sol = solve_dae(fun, (0, 1), [0.0, 0.0], t_breaks=[at], trace="never", dense_output=True)
    assert sol.success, sol.message
    after = sol.t > at
    np.testing.assert_allclose(sol.y[1, after], -slope, rtol=1e-5)
    np.testing.assert_allclose(sol.y[0], np.where(after, slope * (sol.t - at), 0.0), atol=1e-8)


def test_an_event_that_throws_the_pendulum_back():
    def event(t, y, yp):
        return y[0]

    def apply(t, y, yp):
        return [y[0], y[1], -0.5 * y[2], -0.5 * y[3], 0.0]

    event.apply = apply
    ends = [
        solve_dae(pendulum, (0, 1.5), [0.6, -0.8, 0, 0, 0], events=event, rtol=1e-7, atol=1e-8,
                  **how)
        for how in ({}, *HOW)
    ]
    for sol in ends:
        assert sol.success, sol.message
        np.testing.assert_allclose(sol.t_events[0], ends[0].t_events[0], atol=1e-5)
        np.testing.assert_allclose(sol.y[:4, -1], ends[0].y[:4, -1], atol=1e-4)


# --- problems of the literature, written with math --------------------------------------------


def both(fun, t_span, y0, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConsistencyWarning)
        called, traced = (
            solve_dae(fun, t_span, y0, trace=trace, **options) for trace in ("never", "auto")
        )
    assert called.success, called.message
    assert traced.success, traced.message
    return called, traced


def slider_crank(t, y, yp, form):
    """The example of SUNDIALS: crank angle q, slider x, rod angle p; a spring and a damper."""
    a = 0.5
    q, x, p, qd, xd, pd, l1, l2 = y[:8]
    m1, m2 = y[8:] if form == "stabilised" else (0.0, 0.0)
    s1, c1, s2, c2 = sin(q), cos(q), sin(p), cos(p)
    s21, c21 = s2 * c1 - c2 * s1, c2 * c1 + s2 * s1
    length = sqrt(x * x - x * (c2 + a * c1) + (1 + a * a) / 4 + a * c21 / 2)
    rate = (2 * x * xd - xd * (c2 + a * c1) + x * (s2 * pd + a * s1 * qd)
            - a * s21 * (pd - qd) / 2) / (2 * length)
    f = (length - 1.0 + rate) / length
    motion = [
        yp[0] - qd + a * s1 * m1 - a * c1 * m2, yp[1] - xd + m1, yp[2] - pd + s2 * m1 - c2 * m2,
        yp[3] + f * a * (s21 / 2 + x * s1) / 2 + a * s1 * l1 - a * c1 * l2,
        yp[4] - f * (c2 / 2 - x + a * c1 / 2) - 1.0 + l1,
        2.0 * yp[5] + f * (x * s2 - a * s21 / 2) / 2 + s2 + s2 * l1 - c2 * l2,
    ]
    positions = [x - c2 - a * c1, -s2 - a * s1]
    velocities = [a * s1 * qd + xd + s2 * pd, -a * c1 * qd - c2 * pd]
    return motion + {"stabilised": positions + velocities, "index 2": velocities,
                     "index 3": positions}[form]


@pytest.mark.parametrize("form", ["stabilised", "index 2", "index 3"])
def test_slider_crank_of_sundials(form):
    p = asin(-0.5)
    y0 = [math.pi / 2, cos(p), p, *[0.0] * (7 if form == "stabilised" else 5)]
    called, traced = both(lambda t, y, yp: slider_crank(t, y, yp, form), (0, 10), y0)
    assert "called" in called.how
    assert "reduced" in traced.how
    np.testing.assert_allclose(called.y[6:8, 0], [1.3102885, -1.1701705], atol=1e-6)
    np.testing.assert_allclose(called.y[:3, -1], traced.y[:3, -1], atol=1e-5)
    np.testing.assert_allclose(called.y[:, -1], traced.y[:, -1], atol=2e-4)


def condenser(t, y, yp):
    """Vapour at saturation in a closed volume: the rate at which it condenses has index 2."""
    moles, temperature, pressure, rate = y
    feed, heat, coolant = 1.0, 5.0, 0.5 + 0.05 * sin(t)
    return [
        yp[0] - feed + rate,
        moles * yp[1] - feed * (1.5 - temperature) - heat * rate + 10.0 * (temperature - coolant),
        pressure - moles * temperature,
        log(pressure) - 5.0 + 5.0 / temperature,
    ]


@pytest.mark.parametrize("guess", [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 3.0, 9.0],
                                   [1.1, 1.0, 1.0, 0.0]])
def test_condenser(guess):
    called, traced = both(condenser, (0, 5), guess)
    assert called.start.pencil.var_index[3] == 2
    moles, temperature, pressure, _ = called.y[:, 0]
    assert pressure == pytest.approx(moles * temperature, rel=1e-9)
    assert log(pressure) == pytest.approx(5.0 - 5.0 / temperature, abs=1e-9)
    if guess[0] == 1.0:            # what evolves was right and is kept
        assert [moles, temperature] == guess[:2]
        np.testing.assert_allclose(called.y[:, -1], traced.y[:, -1], rtol=1e-4)


PIPES = [(1, 2), (2, 3), (2, 6), (3, 4), (3, 5), (4, 5), (5, 10), (6, 5), (7, 4), (7, 8), (8, 5),
         (8, 10), (9, 8), (11, 9), (11, 12), (12, 7), (12, 8), (13, 11)]
NODES = [5, 8, 1, 2, 3, 4, 6, 7, 9, 10, 11, 12, 13]         # the first two have a tank


def water_tubes(t, y, yp):
    """The network of the Test Set for IVP solvers: flows, friction factors, pressures."""
    hours, area = t / 3600.0, math.pi / 4.0
    net = dict.fromkeys(range(1, 14), 0.0)
    net[1] = (1 - cos(exp(-hours) - 1)) / 200
    net[13] = (1 - cos(exp(-hours) - 1)) / 80
    net[10] = -(hours**2) * (3 * hours**2 - 92 * hours + 720) / 1e6
    pressure = {node: y[36 + k] for k, node in enumerate(NODES)}
    motion, friction = [], []
    for k, (a, b) in enumerate(PIPES):
        flow, factor = y[k], y[18 + k]
        root, reynolds = sqrt(factor), abs(flow / (1.31e-6 * area))
        drop = pressure[a] - pressure[b]
        drop -= factor * 1e6 * (flow / area) ** 2 if reynolds > 2300 else 32 * 1.31 * flow / area
        motion.append(1e6 / area * yp[k] - drop)
        friction.append(1 / root - 1.74 + 2 * log10(4e-4 + 18.7 / (max(reynolds, 2300.0) * root)))
        net[a] -= flow
        net[b] += flow
    stored = [200.0 / 9800.0 * yp[36], 200.0 / 9800.0 * yp[37]] + [0.0] * 11
    return motion + friction + [s - net[node] for s, node in zip(stored, NODES, strict=True)]


def test_water_tubes():
    y0 = [0.0] * 18 + [0.047519404529185289807] * 18 + [109800.0] * 13
    tolerance = {"atol": [1e-9] * 36 + [1e-3] * 13, "trace": "never"}
    sol = solve_dae(water_tubes, (0, 17 * 3600.0), y0, **tolerance)
    assert sol.success, sol.message
    # the first flows, and a pressure, of the Test Set
    np.testing.assert_allclose(
        sol.y[[0, 1, 3, 17, 36], -1],
        [2.298488296477430e-3, 1.188984650746585e-3, 1.589620100314825e-4, 5.746220741193575e-3,
         1.111268591478108e5], rtol=1e-4)
    wild = np.array(y0)
    wild[18:36] = 0.02             # friction factors are found, and no iterate leaves the domain
    wild[[38, 45]] += 1e3          # so are pressures without a tank
    with pytest.warns(ConsistencyWarning):
        again = solve_dae(water_tubes, (0, 600.0), wild, **tolerance)
    assert again.success, again.message
    np.testing.assert_allclose(again.y[:, 0], y0, rtol=1e-6, atol=1e-9)


def inverter(t, y, yp):
    """A depletion load and an enhancement transistor: roots of the body effect, and junctions."""
    out, body, well = y
    rising = 5.0 * min(max((t - 5.0) / 5.0, 0.0), 1.0)
    threshold = 0.2 + 0.035 * (sqrt(1.01 - body) - sqrt(1.01))
    load = -2.43 + 0.2 * (sqrt(1.28 + out - body) - sqrt(1.28))

    def current(over, across, beta):
        over = max(over, 0.0)
        return beta * (over**2 if over < across else across * (2 * over - across))

    def capacity(v):
        return 2.4e-5 / sqrt(1.0 - min(v, 0.0) / 0.87)

    junction = 1e-14 * (exp(min(body / 0.02585, 30.0)) - 1.0)
    return [
        5e-5 * yp[0] + current(rising - threshold, out, 1.748e-3)
        - current(-load, 5.0 - out, 5.35e-4),
        capacity(body) * yp[1] + (body + 2.5) / 10.0 + junction,
        well - exp(-sqrt(1.01 - body)) * log(5.5 - out),
    ]


def test_inverter():
    y0 = [5.0, -2.5, exp(-sqrt(3.51)) * log(0.5)]
    called, traced = both(inverter, (0, 20), y0, t_breaks=[5.0, 10.0])
    np.testing.assert_allclose(called.y[:, -1], traced.y[:, -1], rtol=1e-4)
    assert called.y[0, -1] < 1.0
