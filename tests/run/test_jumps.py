"""Jumps in runs keep what the equations conserve: momentum, charge, flux, species."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tether import solve_dae

ORDERS = ["as written", "reversed", "shuffled"]
TRACE = ["auto", "never"]


def arranged(fun, n, order, units=None):
    """Return the same system with its unknowns and equations in another order, in other units."""
    rng = np.random.default_rng(1)
    places = {
        "as written": np.arange(n), "reversed": np.arange(n)[::-1], "shuffled": rng.permutation(n)
    }[order]
    rows = rng.permutation(n) if order == "shuffled" else places
    inverse, units = np.argsort(places), np.ones(n) if units is None else np.asarray(units)

    def inside(t, y, yp):
        r = fun(t, [units[j] * y[inverse[j]] for j in range(n)],
                [units[j] * yp[inverse[j]] for j in range(n)])
        return [r[i] for i in rows]

    def into(y):
        return (np.asarray(y, float) / units)[places]

    def back(y):
        return (units * np.asarray(y).T[..., inverse]).T

    return inside, into, back


def solve(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve_dae(*args, **options)


# --- impacts ------------------------------------------------------------------------------------


def train(masses, gap):
    """Cars on a track that stick together once the first one has reached the second."""
    n, stuck = len(masses), [False]

    def cars(t, y, yp):
        x, v, f = y[:n], y[n : 2 * n], y[2 * n :]
        r = [yp[k] - v[k] for k in range(n)]
        for k in range(n):
            pull = (f[k] if k < n - 1 else 0.0) - (f[k - 1] if k > 0 else 0.0)
            r.append(masses[k] * yp[n + k] + pull)
        for k in range(n - 1):
            r.append(x[k + 1] - x[k] - 1.0 if stuck[0] else f[k])
        return r

    y0 = np.zeros(3 * n - 1)
    y0[1:n] = gap + np.arange(1.0, n)
    return cars, stuck, y0


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bodies", [2, 3, 20])
def test_bodies_that_stick_together_keep_their_momentum(bodies, order, trace):
    if bodies == 20 and (trace == "never" or order == "reversed"):
        pytest.skip("said by the smaller ones, and slow")
    masses = 10.0 ** np.random.default_rng(bodies).uniform(-2, 2, bodies)
    cars, stuck, y0 = train(masses, gap=2.0)
    n = bodies
    y0[n] = 10.0
    fun, into, back = arranged(cars, len(y0), order)

    def hit(t, y, yp):
        x = back(y)
        return 1.0 if stuck[0] else x[1] - x[0] - 1.0

    def stick(t, y, yp):
        stuck[0] = True
        return y

    hit.apply, hit.direction = stick, -1
    sol = solve(fun, (0, 1), into(y0), events=hit, trace=trace)
    assert sol.success
    assert trace == "never" or not sol.warnings
    y = back(sol.y)
    momentum = masses @ y[n : 2 * n]
    exact = 1e-12 if trace == "auto" else 1e-10
    np.testing.assert_allclose(momentum, 10.0 * masses[0], rtol=exact)
    np.testing.assert_allclose(y[n : 2 * n, -1], 10.0 * masses[0] / masses.sum(), rtol=1e-9)
    assert len(sol.jumps) == 1
    # the first coupling gives all the others their momentum
    impulse = np.zeros(len(y0))
    impulse[list(sol.jumps[0].impulses)] = list(sol.jumps[0].impulses.values())
    expected = masses[1:].sum() * 10.0 * masses[0] / masses.sum()
    assert abs(back(impulse)[2 * n]) == pytest.approx(expected, rel=1e-9)


def test_two_cars_stick_together():
    stuck = [False]

    def cars(t, y, yp):
        x1, x2, v1, v2, f = y
        return [yp[0] - v1, yp[1] - v2, yp[2] + f, 9 * yp[3] - f,
                (x2 - x1 - 1) if stuck[0] else f]

    def hit(t, y, yp):
        return y[1] - y[0] - 1

    def stick(t, y, yp):
        stuck[0] = True
        return y

    hit.apply, hit.direction = stick, -1
    sol = solve_dae(cars, (0, 3), [0, 10, 10, 0, 0], events=hit)
    np.testing.assert_allclose(sol.y[:, -1], [11.1, 12.1, 1, 1, 0], rtol=1e-12, atol=1e-12)
    jump = sol.jumps[0]
    assert jump.t == pytest.approx(0.9)
    assert jump.by_law
    assert not jump.open_equations
    assert jump.changes == pytest.approx({2: -9.0, 3: 1.0})
    assert jump.impulses == pytest.approx({4: 9.0})


def test_bodies_collide_one_after_the_other():
    """Three cars, two impacts: each is a change of structure found on the way."""
    masses, joined = np.array([1.0, 2.0, 5.0]), [False, False]

    def cars(t, y, yp):
        x, v, f = y[:3], y[3:6], y[6:]
        return [
            yp[0] - v[0], yp[1] - v[1], yp[2] - v[2],
            masses[0] * yp[3] + f[0], masses[1] * yp[4] - f[0] + f[1], masses[2] * yp[5] - f[1],
            x[1] - x[0] - 1 if joined[0] else f[0], x[2] - x[1] - 1 if joined[1] else f[1],
        ]

    def meeting(k):
        def event(t, y, yp):
            return y[k + 1] - y[k] - 1

        def join(t, y, yp):
            joined[k] = True
            return y

        event.apply, event.direction = join, -1
        return event

    sol = solve(cars, (0, 3), [0, 3, 6, 8, 0, 0, 0, 0], events=[meeting(0), meeting(1)])
    assert sol.success
    assert len(sol.jumps) == 2
    np.testing.assert_allclose(masses @ sol.y[3:6], 8.0, rtol=1e-12)
    np.testing.assert_allclose(sol.y[3:6, -1], 1.0, rtol=1e-12)


def cradle(balls, masses):
    """Balls on rods side by side; the outer one swings in and all move on together."""
    n, together = balls, [False]

    def fun(t, y, yp):
        x, z, u, w = (y[k * n : (k + 1) * n] for k in range(4))
        rod, push = y[4 * n : 5 * n], y[5 * n :]
        r = [yp[k] - u[k] for k in range(n)] + [yp[n + k] - w[k] for k in range(n)]
        for k in range(n):
            contact = (push[k] if k < n - 1 else 0.0) - (push[k - 1] if k > 0 else 0.0)
            r.append(masses[k] * yp[2 * n + k] + rod[k] * x[k] + contact)
        r += [masses[k] * (yp[3 * n + k] + 9.81) + rod[k] * z[k] for k in range(n)]
        r += [x[k] * x[k] + z[k] * z[k] - 1 for k in range(n)]
        r += [x[k + 1] - x[k] if together[0] else push[k] for k in range(n - 1)]
        return r

    angle = -0.6
    y0 = np.zeros(6 * n - 1)
    y0[n : 2 * n] = -1.0
    y0[0], y0[n] = np.sin(angle), -np.cos(angle)
    return fun, together, y0


@pytest.mark.parametrize("balls", [2, 3])
def test_cradle_of_balls_that_move_on_together(balls):
    n, masses = balls, np.linspace(1.0, 2.0, balls)
    fun, together, y0 = cradle(balls, masses)

    def touch(t, y, yp):
        return y[1] - y[0]

    def join(t, y, yp):
        together[0] = True
        return y

    touch.apply, touch.direction = join, -1
    sol = solve(fun, (0, 0.8), y0, events=touch, rtol=1e-9, atol=1e-12)
    assert sol.success
    assert len(sol.jumps) == 1
    t_hit = sol.t_events[0][0]
    behind = np.flatnonzero(sol.t == t_hit)[-1]
    before, after = sol.y[:, behind - 1], sol.y[:, behind]
    # at the bottom the rods take nothing of the horizontal momentum
    u = slice(2 * n, 3 * n)
    assert masses @ after[u] == pytest.approx(masses @ before[u], rel=1e-8)
    np.testing.assert_allclose(after[u], masses @ before[u] / masses.sum(), rtol=1e-8)


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
def test_elastic_cradle_keeps_momentum_along_the_rods_directions(order, trace):
    """Unequal balls off the bottom: what the rods cannot follow is lost, each by its own rod."""
    def fun(t, y, yp):
        x, z, u, w, f = y[:2], y[2:4], y[4:6], y[6:8], y[8:]
        r = []
        for k in range(2):
            r += [yp[k] - u[k], yp[2 + k] - w[k], (1 + k) * yp[4 + k] + f[k] * x[k],
                  (1 + k) * (yp[6 + k] + 9.81) + f[k] * z[k], x[k] ** 2 + z[k] ** 2 - 1]
        return r

    inside, into, back = arranged(fun, 10, order)
    x, z = np.sin([0.3, -0.5]), -np.cos([0.3, -0.5])
    given = np.array([1.5, -0.7, 0.2, 0.4])
    sol = solve(inside, (0, 0.01), into([*x, *z, *given, 0, 0]), trace=trace)
    y = back(sol.start.y)
    for k in range(2):
        tangent = np.array([-z[k], x[k]])
        assert y[[4 + k, 6 + k]] @ tangent == pytest.approx(given[[k, 2 + k]] @ tangent, abs=1e-9)
        assert y[[4 + k, 6 + k]] @ [x[k], z[k]] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(y[:4], [*x, *z], rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("metre", [1.0, 1e-3, 1e3])
def test_rope_that_goes_taut_takes_the_radial_momentum(order, metre):
    length, taut = 2.0, [False]

    def fun(t, y, yp):
        x, z, u, w, pull = y
        return [yp[0] - u, yp[1] - w, 3 * yp[2] + pull * x, 3 * (yp[3] + 9.81) + pull * z,
                x * x + z * z - length**2 if taut[0] else pull]

    inside, into, back = arranged(fun, 5, order, [metre, metre, metre, metre, 1.0])

    def reach(t, y, yp):
        x = back(y)
        return -1.0 if taut[0] else x[0] ** 2 + x[1] ** 2 - length**2

    def tighten(t, y, yp):
        taut[0] = True
        return y

    reach.apply, reach.direction = tighten, 1
    sol = solve(inside, (0, 1.0), into([0.5, 0.0, 1.0, 1.0, 0.0]), events=reach, rtol=1e-8,
                atol=1e-10)
    assert sol.success
    assert len(sol.jumps) == 1
    behind = np.flatnonzero(sol.t == sol.t_events[0][0])[-1]
    y = back(sol.y)
    before, after = y[:4, behind - 1], y[:4, behind]
    radial = after[:2] / length
    tangent = np.array([-radial[1], radial[0]])
    assert after[2:] @ radial == pytest.approx(0.0, abs=1e-9)
    assert before[2:] @ radial > 0.5
    assert after[2:] @ tangent == pytest.approx(before[2:] @ tangent, rel=1e-9)


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
def test_joint_that_locks_keeps_momentum_with_masses_that_depend_on_angles(order, trace):
    locked = [False]

    def double_pendulum(t, y, yp):
        a, b, u, w, couple = y
        c, s = np.cos(a - b), np.sin(a - b)
        return [yp[0] - u, yp[1] - w,
                2 * yp[2] + c * yp[3] + s * w * w + 2 * 9.81 * np.sin(a) - couple,
                c * yp[2] + yp[3] - s * u * u + 9.81 * np.sin(b) + couple,
                a - b - 0.3 if locked[0] else couple]

    fun, into, back = arranged(double_pendulum, 5, order)

    def reach(t, y, yp):
        a, b = back(y)[:2]
        return -1.0 if locked[0] else a - b - 0.3

    def lock(t, y, yp):
        locked[0] = True
        return y

    reach.apply = lock
    sol = solve(fun, (0, 2.0), into([1.0, 1.0, 0.0, -1.0, 0.0]), events=reach, trace=trace,
                rtol=1e-8, atol=1e-10)
    assert sol.success
    assert len(sol.jumps) == 1
    assert not sol.jumps[0].open_equations
    behind = np.flatnonzero(sol.t == sol.t_events[0][0])[-1]
    before, after = back(sol.y)[:, behind - 1], back(sol.y)[:, behind]
    c = np.cos(before[0] - before[1])
    change = np.array([[2.0, c], [c, 1.0]]) @ (after - before)[2:4]
    assert change[0] == pytest.approx(-change[1], rel=1e-9)        # the couple has two ends
    assert abs(change[0]) > 0.1
    assert after[2] == pytest.approx(after[3], rel=1e-9)


# --- circuits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
def test_capacitors_that_are_connected_share_their_charge(order, trace):
    def caps(t, y, yp):
        v1, v2, i = y
        return [1e-6 * yp[0] + i, 9e-6 * yp[1] - i, v1 - v2 if t > 1e-3 else i]

    fun, into, back = arranged(caps, 3, order)
    breaks = {"t_breaks": [1e-3]} if trace == "never" else {}
    sol = solve(fun, (0, 2e-3), into([10, 0, 0]), trace=trace, **breaks)
    assert sol.success
    np.testing.assert_allclose(back(sol.y)[:2, -1], 1.0, rtol=1e-12 if trace == "auto" else 1e-10)


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
def test_capacitors_that_begin_connected_share_their_charge(order, trace):
    def caps(t, y, yp):
        v1, v2, i = y
        return [1e-6 * yp[0] + i, 9e-6 * yp[1] - i, v1 - v2]

    fun, into, back = arranged(caps, 3, order)
    sol = solve(fun, (0, 2e-3), into([10, 0, 0]), trace=trace)
    np.testing.assert_allclose(back(sol.y)[:2, -1], 1.0, rtol=1e-12 if trace == "auto" else 1e-10)
    assert back(list(map(sol.jumps[0].impulses.get, range(3), [0.0] * 3)))[2] == pytest.approx(9e-6)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stages", [3, 8])
def test_ladder_of_switched_capacitors_keeps_its_charge(stages, order):
    """Neighbours are connected in pairs, by turns: first the even, then the odd ones."""
    capacity = 10.0 ** np.random.default_rng(stages).uniform(-9, -6, stages)

    def ladder(t, y, yp):
        v, i = y[:stages], y[stages:]
        r = []
        for k in range(stages):
            flow = (i[k] if k < stages - 1 else 0.0) - (i[k - 1] if k > 0 else 0.0)
            r.append(capacity[k] * yp[k] + flow)
        first = t < 1e-3
        for k in range(stages - 1):
            closed = first if k % 2 == 0 else not first
            r.append(v[k] - v[k + 1] if closed else i[k])
        return r

    fun, into, back = arranged(ladder, 2 * stages - 1, order)
    v0 = np.linspace(5.0, -1.0, stages)
    sol = solve(fun, (0, 2e-3), into([*v0, *np.zeros(stages - 1)]))
    assert sol.success
    charge = capacity @ back(sol.y)[:stages]
    np.testing.assert_allclose(charge, capacity @ v0, rtol=1e-12)
    # by hand: pairs share their charge
    v = v0.copy()
    for first in (0, 1):
        for k in range(first, stages - 1, 2):
            pair = slice(k, k + 2)
            v[pair] = capacity[pair] @ v[pair] / capacity[pair].sum()
    np.testing.assert_allclose(back(sol.y)[:stages, -1], v, rtol=1e-10)


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("order", ORDERS)
def test_inductors_in_series_keep_their_flux_when_a_switch_opens(order, trace):
    def circuit(t, y, yp):
        i1, i2, v = y
        return [1e-3 * yp[0] - (5.0 - v - i1), 4e-3 * yp[1] - (v - 2.0 * i2),
                i1 - i2 if t > 1e-3 else v]

    fun, into, back = arranged(circuit, 3, order)
    breaks = {"t_breaks": [1e-3]} if trace == "never" else {}
    sol = solve(fun, (0, 1.5e-3), into([1.0, 0.2, 0.0]), trace=trace, **breaks)
    assert sol.success
    assert len(sol.jumps) == 1
    before, after = (back(sol.y)[:, k] for k in np.flatnonzero(np.isclose(sol.t, 1e-3))[:2])
    assert after[0] == pytest.approx(after[1], rel=1e-12)
    flux = [1e-3 * y[0] + 4e-3 * y[1] for y in (before, after)]
    assert flux[0] == pytest.approx(flux[1], rel=1e-10)


def test_capacitor_whose_capacity_depends_on_its_voltage_keeps_its_charge():
    def circuit(t, y, yp):
        v, w, i = y
        return [(1 + v * v) * yp[0] + i, 2 * yp[1] - i, v - w]

    sol = solve(circuit, (0, 1), [3.0, 0.0, 0.0])
    assert not sol.warnings
    v, w = sol.y[:2, -1]
    assert v == pytest.approx(w, rel=1e-12)
    assert v + v**3 / 3 + 2 * w == pytest.approx(12.0, rel=1e-11)


def test_law_that_is_not_unique_is_told():
    """The second row is no rate of anything: its integral depends on the way."""
    def fun(t, y, yp):
        a, b, p = y
        return [yp[0] + p, (1 + a) * yp[1] - p, a - b]

    sol = solve(fun, (0, 0.1), [3.0, 0.0, 0.0])
    assert sol.success
    why = "the equations do not determine how: coefficients in equation 1 change in the jump"
    assert any(why in text for text in sol.warnings)
    assert sol.jumps[0].open_equations == (1,)


# --- reactors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", TRACE)
@pytest.mark.parametrize("constant", [0.2, 1.62, 50.0])
@pytest.mark.parametrize("order", ORDERS)
def test_reaction_at_equilibrium_keeps_the_species(order, constant, trace):
    def reactor(t, y, yp):
        a, b, rate = y
        return [yp[0] + rate, yp[1] - rate, constant * a - b]

    fun, into, back = arranged(reactor, 3, order)
    sol = solve(fun, (0, 1), into([1.0, 0.0, 0.0]), trace=trace)
    a, b, _ = back(sol.y)[:, -1]
    assert a + b == pytest.approx(1.0, rel=1e-10)
    assert b == pytest.approx(constant * a, rel=1e-9)


@pytest.mark.parametrize("trace", TRACE)
def test_two_reactions_at_equilibrium_keep_the_atoms(trace):
    """A + B = C and 2 C = D, nonlinear: A + C + 2 D and B + C + 2 D are kept."""
    def reactor(t, y, yp):
        a, b, c, d, r, s = y
        return [yp[0] + r, yp[1] + r, yp[2] - r + 2 * s, yp[3] - s, a * b - 0.3 * c,
                c * c - 0.8 * d]

    y0 = np.array([1.0, 1.4, 0.1, 0.05, 0.0, 0.0])
    sol = solve(reactor, (0, 1), y0, trace=trace)
    assert sol.success
    y = sol.y[:, -1]
    for weights in ([1, 0, 1, 2], [0, 1, 1, 2]):
        assert weights @ y[:4] == pytest.approx(weights @ y0[:4], rel=1e-9)


# --- the record of what happened ----------------------------------------------------------------


def test_what_an_event_changes_is_a_jump():
    def ball(t, y, yp):
        return [yp[0] - y[1], yp[1] + 9.81]

    def ground(t, y, yp):
        return y[0]

    ground.apply, ground.direction = lambda t, y, yp: [0.0, -0.5 * y[1]], -1
    sol = solve_dae(ball, (0, 0.6), [1.0, 0.0], events=ground)
    jump = sol.jumps[0]
    assert jump.t == sol.t_events[0][0]
    assert not jump.impulses
    assert jump.changes[1] == pytest.approx(1.5 * np.sqrt(2 * 9.81), rel=1e-6)


def test_start_that_is_consistent_does_not_jump():
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1]

    sol = solve_dae(pendulum, (0, 1), [1, 0, 0, 0, 0])
    assert sol.jumps == ()
    assert sol.start.jump is None
    assert sol.start.lawful


def test_algebraic_guess_is_no_jump():
    sol = solve(lambda t, y, yp: [yp[0] + y[1], y[1] - y[0]], (0, 1), [1.0, 5.0])
    assert sol.jumps == ()
    assert sol.y[0, 0] == 1.0


@pytest.mark.parametrize(("rtol", "atol"), [(1e-3, 1e-6), (1e-9, 1e-12)])
def test_setting_zero_what_is_zero_makes_no_jump(rtol, atol):
    """The event finds the place up to round-off, which is what is left of the unknown there."""
    def falling(t, y, yp):
        _, speed = y
        return [yp[0] - speed, yp[1] + 9.81]

    def ground(t, y):
        return y[0]

    ground.direction = -1
    ground.apply = lambda t, y, yp: [0.0, -0.8 * y[1]]
    sol = solve_dae(falling, (0, 2), [1.0, -1.0], events=ground, rtol=rtol, atol=atol)
    assert [sorted(jump.changes) for jump in sol.jumps] == [[1]] * len(sol.t_events[0])
    assert len(sol.jumps) >= 3


def test_small_jumps_are_listed_if_the_tolerance_is_smaller():
    def rest(t, y, yp):
        return [yp[0]]

    def now(t, y):
        return t - 0.5

    now.apply = lambda t, y, yp: y + 1e-8
    changes = [
        [list(jump.changes.values()) for jump in
         solve_dae(rest, (0, 1), [1.0], events=now, rtol=tol, atol=tol).jumps]
        for tol in (1e-7, 1e-3)
    ]
    assert changes == [[[pytest.approx(1e-8)]], []]
