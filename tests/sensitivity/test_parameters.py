"""Parameters by name: which there are, and what is said about those that are not."""

import numpy as np
import pytest
from support.derivatives import FINE, decay, relaxing
from support.helpers import C_ARGUMENTS

from tether import Problem, solve_dae
from tether.sensitivity.parameters import find_parameters


def names(sensitivity, fun=relaxing, args=(0.9, 0.3), n=2, variables=None):
    return find_parameters(sensitivity, Problem(fun, args=args), n, variables).names


def nested(t, y, yp, p):
    return [yp[0] + p["a"]["k"] * y[0] - p["b"][1] * p["c"][0, 1]]


NESTED = ({"a": {"k": 0.7}, "b": (1.0, 2.0), "c": np.array([[1.0, 3.0], [1.0, 1.0]])},)


def test_words():
    assert names("args") == ("k", "c")
    assert names("y0") == ("y0[0]", "y0[1]")
    assert names("all") == ("k", "c", "y0[0]", "y0[1]")
    assert names("c") == ("c",)


def test_lists():
    assert names(["c", "y0[1]"]) == ("c", "y0[1]")
    assert names(("y0", "k")) == ("y0[0]", "y0[1]", "k")
    assert names(["args[1]"]) == ("c",)
    assert names(["y0[voltage]"], variables=["voltage", "current"])[0].startswith("y0[")
    found = find_parameters(["c", "y0[-1]"], Problem(relaxing, args=(0.9, 0.3)), 2)
    assert found.inputs.tolist() == [1, -1]
    assert found.starts.tolist() == [-1, 1]


def test_containers():
    assert names(["p['b']"], nested, NESTED, 1) == ("p['b'][0]", "p['b'][1]")
    assert names("args", nested, NESTED, 1) == (
        "p['a']['k']", "p['b'][0]", "p['b'][1]", "p['c'][0, 0]", "p['c'][0, 1]", "p['c'][1, 0]",
        "p['c'][1, 1]",
    )


def test_containers_have_the_right_values():
    """y = y0 exp(-k t) + b c (1 - exp(-k t)) / k."""
    sol = solve_dae(nested, (0, 1), [0.9], args=NESTED, sensitivity="args", t_eval=[1.0], **FINE)
    k, b, c, decayed = 0.7, 2.0, 3.0, np.exp(-0.7)
    by_k = -0.9 * decayed + b * c * (decayed / k - (1 - decayed) / k**2)
    share = (1 - decayed) / k
    right = [by_k, 0.0, c * share, 0.0, b * share, 0.0, 0.0]
    assert np.allclose(sol.sens[:, 0, 0], right, rtol=1e-6, atol=1e-12)


class Oscillator:
    """Reads its parameters from attributes."""

    def __init__(self):
        self.mass, self.rates = 2.0, np.array([1.0, 0.5])

    def residual(self, t, y, yp):
        return [yp[0] + self.mass * self.rates[0] * y[0], yp[1] + self.rates[1] * y[1]]


def test_floats_outside_of_args():
    held = Oscillator()
    sol = solve_dae(
        held.residual, (0, 1), [1.0, 1.0], sensitivity=["self.mass", "self.rates"], t_eval=[1.0],
        **FINE,
    )
    assert sol.sensitivities.names == ("self.mass", "self.rates[0]", "self.rates[1]")
    fast, slow = np.exp(-2.0), np.exp(-0.5)
    assert np.allclose(sol.sens[:, :, 0], [[-fast, 0], [-2 * fast, 0], [0, -slow]], atol=1e-6)
    assert held.mass == 2.0


def test_floats_of_a_closure():
    def made(a):
        return lambda t, y, yp: [yp[0] + a * y[0]]

    sol = solve_dae(made(1.5), (0, 1), [1.0], sensitivity=["a"], t_eval=[1.0], **FINE)
    assert abs(sol.sens[0, 0, 0] + np.exp(-1.5)) < 1e-6


def test_parameters_that_are_zero():
    sol = solve_dae(
        lambda t, y, yp, k, z: [yp[0] + k * y[0] + z * y[0] ** 2], (0, 1), [1.0], args=(1.0, 0.0),
        sensitivity=["z"], t_eval=[1.0], **FINE,
    )
    decayed = np.exp(-1.0)                     # y = e^-t - z e^-t (1 - e^-t) + ...
    assert abs(sol.sens[0, 0, 0] + decayed * (1 - decayed)) < 1e-6


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("wanted", "error", "words"), [
    (5, TypeError, "must be 'args', 'y0', 'all' or a list of names, got int"),
    ([3], TypeError, "must be a list of names, but it contains 3"),
    ([], ValueError, "an empty list"),
    (["k", "k"], ValueError, "names 'k' twice"),
    (["args", "k"], ValueError, "names 'k' twice"),
    (["all"], ValueError, "'all' must be passed alone"),
    ("kk", ValueError, "no parameter 'kk'; did you mean 'k'?"),
    ("velocity", ValueError, "no parameter 'velocity'; there are k, c, y0"),
    (["y0[7]"], ValueError, "'y0[7]', but there are 2 unknowns"),
    (["y0[-3]"], ValueError, "'y0[-3]', but there are 2 unknowns"),
    (["y0[zz]"], ValueError, "'y0[zz]' names no unknown"),
    (["k[0]"], ValueError, "no parameter 'k[0]'"),
])
def test_wrong_names(wanted, error, words):
    with pytest.raises(error) as caught:
        solve_dae(relaxing, (0, 1), [1.0, 0.3], args=(0.9, 0.3), sensitivity=wanted)
    assert words in str(caught.value)


@pytest.mark.parametrize(("value", "words"), [
    (1, "k is 1, an integer, and integers are taken for sizes and indices; pass 1.0"),
    (True, "k is True, an integer"),
    ("x", "k is a str, in which there are no floats"),
    (np.array([1, 2]), "k is an array of integers; pass it as an array of floats"),
])
def test_arguments_that_are_no_parameters(value, words):
    with pytest.raises(ValueError, match="sensitivity") as caught:
        find_parameters(["k"], Problem(decay, args=(value,)), 1)
    assert words in str(caught.value)


def test_no_floats_in_args():
    with pytest.raises(ValueError, match="no float in args"):
        solve_dae(decay, (0, 1), [1.0], args=(1,), sensitivity="args")


def test_c_functions_have_no_parameters(library):
    fun = library.relax
    fun.argtypes, fun.restype = C_ARGUMENTS, None
    with pytest.raises(ValueError, match="C function, whose parameters are not known"):
        solve_dae(fun, (0, 1), [1.0, 1.0], sensitivity="y0")
