"""Unknowns and fields of a result by name."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import Problem, solve_dae, solve_fixed


def circuit(t, y, yp):
    va, i = y
    return [yp[0] + i, va - 2.0 * i]


def plain(t, y, yp):
    return [yp[0] + y[1], y[0] - 2.0 * y[1]]


START = [1.0, 0.5]


@pytest.mark.parametrize(("fun", "names", "expected"), [
    (circuit, None, ("va", "i")),
    (circuit, ["node a", "Strom in Ω"], ("node a", "Strom in Ω")),
    (plain, None, ("y[0]", "y[1]")),
    (plain, ["ü", "電流"], ("ü", "電流")),
    (plain, ["", " "], ("", " ")),
])
def test_unknowns_by_name_and_by_number(fun, names, expected):
    sol = solve_dae(fun, (0, 1), START, names=names)
    assert sol.names == expected
    for j, name in enumerate(expected):
        assert np.shares_memory(sol[name], sol.y)
        np.testing.assert_array_equal(sol[name], sol.y[j])
        np.testing.assert_array_equal(sol[j], sol.y[j])
        np.testing.assert_array_equal(sol[np.int64(j) - 2], sol.y[j])
        np.testing.assert_array_equal(sol[name + "'"], sol.yp[j])
        np.testing.assert_array_equal(sol.unknowns[name], sol.y[j])
        assert name in sol
    assert list(sol.unknowns) == list(expected)


def test_a_unit_may_be_left_out():
    sol = solve_dae(plain, (0, 1), START, names=["voltage [V]", "current (A)"])
    np.testing.assert_array_equal(sol["voltage"], sol.y[0])
    np.testing.assert_array_equal(sol["current'"], sol.yp[1])
    np.testing.assert_array_equal(sol["current (A)'"], sol.yp[1])
    assert "voltage" in sol
    assert "volt" not in sol
    assert 0 not in sol


def test_a_unit_that_tells_two_unknowns_apart_may_not_be_left_out():
    sol = solve_dae(plain, (0, 1), START, names=["side [V]", "side [A]"])
    assert "side" not in sol
    with pytest.raises(KeyError, match="no unknown called 'side'"):
        sol["side"]
    exact = solve_dae(plain, (0, 1), START, names=["side [V]", "side"])
    np.testing.assert_array_equal(exact["side"], exact.y[1])


def test_names_of_problems_made_of_parts():
    def f(t, y):
        x, z = y
        return [-z, x - z]

    def slope(t, x, z):
        (level,) = x
        return [-level]

    def balance(t, x, z):
        (flow,) = z
        return [x[0] - flow]

    mass = np.diag([1.0, 0.0])
    for problem, names in [
        (Problem.mass_matrix(mass, f), ("x", "z")),
        (Problem.mass_matrix(lambda t, y: mass, f), ("x", "z")),
        (Problem.split(lambda t, y, yp: [yp[0], 0.0], f), ("x", "z")),
        (Problem.semi_explicit(slope, balance), ("level", "flow")),
        (Problem.semi_explicit(slope, lambda t, x, z: x - z), ("level", "y[1]")),
    ]:
        assert solve_dae(problem, (0, 1), [1.0, 1.0]).names == names


def test_names_of_constant_steps():
    assert solve_fixed(circuit, (0, 1), START, order=1, step=0.1).names == ("va", "i")
    named = solve_fixed(circuit, (0, 1), START, order=1, step=0.1, names=["p", "q"])
    assert named["q"][0] == 0.5
    with pytest.raises(ValueError, match="names must be different"):
        solve_fixed(circuit, (0, 1), START, order=1, step=0.1, names=["p", "p"])


def test_two_unknowns_cannot_have_one_name():
    with pytest.raises(ValueError, match="names must be different"):
        solve_dae(plain, (0, 1), START, names=["a", "a"])


def test_names_reach_the_index_report():
    assert "va" in str(solve_dae(plain, (0, 1), START, names=["va", "i"]).index.names)


def test_a_wrong_key_says_what_there_is():
    sol = solve_dae(circuit, (0, 1), START, names=["voltage", "current"])
    with pytest.raises(KeyError, match="no unknown called 'volage'; did you mean 'voltage'"):
        sol["volage"]
    with pytest.raises(KeyError, match="the unknowns are 'voltage', 'current'"):
        sol["Q"]
    with pytest.raises(IndexError, match="no unknown 2"):
        sol[2]
    with pytest.raises(TypeError, match="by name or by number"):
        sol[0.5]
    with pytest.raises(TypeError, match="by name or by number"):
        sol[True]
    assert "Q" not in sol
    assert sol.get("Q") is None
    assert sol.get("Q", 3) == 3
    assert sol.get("t") is sol.t


def test_fields_as_in_scipy():
    sol = solve_dae(circuit, (0, 1), START)
    scipys = solve_ivp(lambda t, y: -y, (0, 1), [1.0])
    assert set(scipys.keys()) <= set(sol.keys())
    assert list(sol) == list(sol.keys())
    for key in sol:
        assert key in sol
        assert sol[key] is getattr(sol, key) or sol[key] == getattr(sol, key)
    assert dict(sol)["y"] is sol.y
    assert dict(sol.items()).keys() == dict(sol).keys()
    assert {**sol}["t"] is sol.t


@pytest.mark.parametrize("name", ["t", "y", "status", "index"])
def test_an_unknown_that_is_called_like_a_field(name):
    sol = solve_dae(plain, (0, 1), START, names=["x", name])
    with pytest.warns(UserWarning, match=f"the unknown called '{name}' is sol.unknowns"):
        assert sol[name] is getattr(sol, name) or sol[name] == getattr(sol, name)
    np.testing.assert_array_equal(sol.unknowns[name], sol.y[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(sol[1], sol.y[1])
        assert sol["x"][0] == 1.0


def test_a_name_with_a_prime_is_that_unknown():
    sol = solve_dae(plain, (0, 1), START, names=["x", "x'"])
    np.testing.assert_array_equal(sol["x'"], sol.y[1])
    np.testing.assert_array_equal(sol["x''"], sol.yp[1])


def test_names_are_pickled():
    copy = pickle.loads(pickle.dumps(solve_dae(circuit, (0, 1), START)))
    assert copy.names == ("va", "i")
