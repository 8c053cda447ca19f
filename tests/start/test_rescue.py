"""Starts that Newton's method does not find by itself: from guesses far away."""

import warnings

import numpy as np
import pytest

from tether import consistent_start, solve_dae

THERMAL = 0.02585


def junction(v):
    return 1e-14 * (np.exp(v / THERMAL) - 1)


def diode(t, y, yp):
    vc, vd = y
    return [1e-6 * yp[0] - (5 - vc) / 1e3, (5 - vd) / 1e3 - junction(vd)]


def bridge(t, y, yp):
    """Four diodes between a source and a capacitor, and nothing beside them."""
    vp, va, vb = y
    i = (10 * np.cos(314 * t) - (va - vb)) / 5.0
    return [1e-4 * yp[0] - (junction(va - vp) + junction(vb - vp) - vp / 1e3),
            i - junction(va - vp) + junction(-va), -i - junction(vb - vp) + junction(-vb)]


def transistors(t, y, yp):
    """A differential pair after Ebers and Moll."""
    vo, c1, c2, e, b1, b2 = y

    def currents(b, c):
        forward, reverse = junction(b - e), junction(b - c)
        return forward - 1.5 * reverse, forward / 100 + reverse / 2

    (ic1, ib1), (ic2, ib2) = currents(b1, c1), currents(b2, c2)
    through = (c1 - c2 - vo) / 100.0
    return [1e-9 * yp[0] - through, (12 - c1) / 4.7e3 - ic1 - through,
            (12 - c2) / 4.7e3 - ic2 + through, ic1 + ib1 + ic2 + ib2 - (e + 12) / 1e4,
            (0.05 - b1) / 1e3 - ib1, -b2 / 1e3 - ib2]


def acid(t, y, yp):
    """A weak acid and a base: pH from the balance of charges."""
    total, base, h, oh, a, ha = y
    return [yp[0] - 0.1 * (0.1 - total), yp[1] - 0.1 * (0.08 - base), h * oh - 1e-14,
            h * a - 1.8e-5 * ha, a + ha - total, h + base - oh - a]


ANTOINE = ((9.0, 1800.0), (9.6, 2800.0), (10.2, 3900.0))


def flash(t, y, yp):
    """Three components in two phases, with their amounts and the energy given."""
    m, energy, x, v, liquid, vapour, temperature = y[:3], y[3], y[4:7], y[7:10], *y[10:]
    r = [yp[k] - 0.01 * (0.33 - m[k]) for k in range(3)]
    r.append(yp[3] - 0.01 * (1.1 - energy))
    r += [m[k] - liquid * x[k] - vapour * v[k] for k in range(3)]
    r += [v[k] - np.exp(a - b / temperature) * x[k] for k, (a, b) in enumerate(ANTOINE)]
    r += [x[0] + x[1] + x[2] - v[0] - v[1] - v[2], m[0] + m[1] + m[2] - liquid - vapour,
          energy - liquid * temperature / 300 - vapour * (0.8 * temperature / 300 + 1.5)]
    return r


PROBLEMS = {
    "diode": (diode, [0.0], lambda rng: rng.uniform(-20, 20, 1), {}),
    "bridge": (bridge, [5.0], lambda rng: rng.uniform(-20, 20, 2), {}),
    "transistors": (transistors, [0.5], lambda rng: rng.uniform(-15, 15, 5), {}),
    "acid": (acid, [0.1, 0.06], lambda rng: 10.0 ** rng.uniform(-14, 0, 4), {"atol": 1e-16}),
    "flash": (flash, [0.3, 0.4, 0.3, 1.6], lambda rng: np.concatenate(
        [rng.uniform(0, 1, 6), rng.uniform(0, 2, 2), rng.uniform(200, 600, 1)]), {}),
}
EXACT = {
    "diode": [0.692490], "bridge": [5.822984, -0.822984],
    "transistors": [9.579022, 9.121937, -0.612700, 0.040557, -0.001832],
    "acid": [1.19940e-05, 8.33750e-10, 0.060012, 0.039988],
    "flash": [0.035149, 0.405698, 0.559153, 0.583593, 0.393899, 0.022508, 0.517087, 0.482913,
              290.772681],
}


def arrive(name, trace, count):
    fun, kept, guess, options = PROBLEMS[name]
    rng = np.random.default_rng(7)
    arrived = 0
    for _ in range(count):
        y0 = [*kept, *guess(rng)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sol = solve_dae(fun, (0, 1e-6), y0, trace=trace, max_steps=1, **options)
        start = sol.start
        if start.success:
            np.testing.assert_array_equal(start.y[: len(kept)], kept)
            assert np.abs(fun(0.0, start.y, start.yp)).max() < 1e-9
            arrived += np.allclose(start.y[len(kept) :], EXACT[name], rtol=1e-4, atol=1e-6)
    return arrived


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_from_any_guess(name, trace):
    assert arrive(name, trace, 4) == 4


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_from_two_hundred_guesses(name, trace):
    assert arrive(name, trace, 200) >= 190


@pytest.mark.parametrize("guess", [2.0, 20.0, -20.0, 1e4])
@pytest.mark.parametrize("fixed", [None, [0]])
def test_consistent_start_goes_the_same_way(guess, fixed):
    start = consistent_start(diode, 0.0, [0.0, guess], fixed=fixed)
    assert start.success, start.message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = solve_dae(diode, (0, 1e-3), [0.0, guess]).start
    np.testing.assert_allclose(start.y, run.y, rtol=1e-12)
    assert start.moved[1] == pytest.approx(start.y[1] - guess)
    assert run.moved[1] == pytest.approx(run.y[1] - guess)


def test_what_has_no_solution_is_refused():
    """x**2 + 1 has no root, whatever is tried."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0], y[1] ** 2 + 1 + y[0] ** 2], (0, 1), [1.0, 0.5])
    assert not sol.success
    assert "equation 1" in sol.message
    np.testing.assert_array_equal(sol.start.y[0], 1.0)


def test_signs_of_guesses_choose_among_solutions():
    """Both roots of z**2 = x are consistent; Newton's method would jump over to the other one."""
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] ** 3 - 3 * y[1] - y[0]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for guess in (1.001, 1.1, 3.0):        # next to where the cubic turns
            z = solve_dae(fun, (0, 0.1), [0.5, guess]).start.y[1]
            assert z == pytest.approx(1.8099, abs=1e-3)


def test_derivative_that_is_not_seen_beside_huge_terms_keeps_its_unknown():
    """The capacitor keeps its voltage, though differences show no derivative where diodes blow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = solve_dae(
            bridge, (0, 1e-3), [5.0, 12.53080957, 16.51022309], trace="never", max_steps=1
        ).start
    assert start.success
    assert start.y[0] == 5.0


@pytest.mark.parametrize("kind", ["log", "sqrt", "power"])
def test_functions_that_end(kind):
    """From guesses where the functions have no value."""
    functions = {"log": lambda z: np.log(z) + z, "sqrt": lambda z: np.sqrt(z) + z,
                 "power": lambda z: z**1.5 + z}

    def fun(t, y, yp):
        return [yp[0] + y[0], functions[kind](y[1]) - 3.0 * y[0]]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = solve_dae(fun, (0, 0.1), [1.0, -4.0]).start
    assert start.success, start.message
    assert functions[kind](start.y[1]) == pytest.approx(3.0)


@pytest.mark.parametrize("fun", [
    lambda t, y, yp, a: [yp[0] + y[1], np.tanh(5.0 * (y[1] - a))],
    lambda t, y, yp, a: [yp[0] + y[1], np.exp(-(y[1] - a) ** 2) * (y[1] - a)],
])
@pytest.mark.parametrize("a", [7.0, 27.0, 37.0])
def test_equations_that_are_flat_where_they_are_asked(fun, a):
    """Derivatives that are zero, or next to zero, end a run in words and not by an exception."""
    sol = solve_dae(fun, (0.0, 1.0), [1.0, 0.0], args=(a,), start="quiet")
    if not sol.success:
        assert "equation" in sol.message
