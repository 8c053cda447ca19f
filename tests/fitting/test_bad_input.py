"""Arguments that are wrong raise at once, and are named."""

import numpy as np
import pytest
from support.fits import ENZYME, ENZYME_START, decay, enzyme, enzyme_data

from tether import fit

T = np.linspace(0.0, 2.0, 5)
Y = np.exp(-T)


def model(t, y, yp, rate, k, size):
    return [yp[0] + rate * k[0] * y[0]]


ARGS = {"k": np.array([1.0, 2.0]), "size": 3}


@pytest.mark.parametrize(("p0", "error", "text"), [
    ({}, ValueError, "p0 is empty"),
    ([], ValueError, "p0 is empty"),
    ({"rats": 1.0, "rate": 1.0}, ValueError, "p0: there is no parameter 'rats'"),
    ({"rate": 1.0, "y0[7]": 1.0}, ValueError, r"p0: 'y0\[7\]', but there are 1 unknowns"),
    ({"rate": 1.0, "y0[speed]": 1.0}, ValueError, r"p0: 'y0\[speed\]' names no unknown"),
    ({"rate": 1.0, "k[5]": 1.0}, ValueError, r"p0: there is no parameter 'k\[5\]'"),
    ({"rate": "fast"}, TypeError, "p0: rate must be a number"),
    ({"rate": np.nan}, ValueError, "p0: rate must be finite"),
    ({1: 1.0}, TypeError, "p0 must have names as its keys, got 1"),
    ("rate", TypeError, "p0 must be a dict"),
    (3.0, TypeError, "p0 must be a dict"),
    ([1.0], ValueError, "p0 must be a dict .* if args are given"),
    ({"rate": 1.0, "k": [1.0, 2.0], "k[0]": 3.0}, ValueError, r"p0 names 'k\[0\]' twice"),
])
def test_p0(p0, error, text):
    args = {} if isinstance(p0, list) and not p0 else ARGS
    with pytest.raises(error, match=text):
        fit(model, (T, Y), p0, args=args, y0=[1.0])


def test_floats_outside_of_args_are_not_fitted():
    class Model:
        mass = 2.0

        def __call__(self, t, y, yp):
            return [self.mass * yp[0] + y[0]]

    with pytest.raises(ValueError, match="pass it in args to fit it"):
        fit(Model(), (T, Y), {"Model.mass": 1.0}, y0=[1.0])


@pytest.mark.parametrize(("args", "text"), [
    ({"k": np.ones(2)}, "args: fun needs a value of 'size', in args or in p0"),
    ({**ARGS, "speed": 1.0}, "args: 'speed' is not an argument of fun; it has rate, k, size"),
])
def test_args(args, text):
    with pytest.raises(ValueError, match=text):
        fit(model, (T, Y), {"rate": 1.0}, args=args, y0=[1.0])


@pytest.mark.parametrize(("data", "error", "text"), [
    ((T, Y * np.nan), ValueError, "data has no values: all are NaN"),
    ({"t": T}, ValueError, "data has no values"),
    ([], ValueError, "data is empty"),
    (None, TypeError, "data must be a data frame, a dict or a pair"),
    ((T, Y[:3]), ValueError, "data must have a row of 5 values"),
    ((T, np.ones((2, 5))), ValueError, "data has 2 rows, but there are 1 unknowns"),
    ({"t": T, "speed": Y}, ValueError, r"there is no unknown 'speed'; the unknowns are y\[0\]"),
    ({"t": T, 3: Y}, ValueError, "data has 4 rows|data: row 3, but there are 1 unknowns"),
    ({"t": T, 0: Y[:2]}, ValueError, "data of row 0 must have 5 values"),
    ({"t": T, 0: ["a"] * 5}, TypeError, "data of row 0 must be numbers"),
    ({"t": T, 0: [1.0, np.inf, 1.0, 1.0, 1.0]}, ValueError, "data of row 0 must be finite, or NaN"),
    ({"t": T, 1.5: Y}, TypeError, "data: unknowns must be names or numbers, got 1.5"),
    ({"t": T * np.nan, 0: Y}, ValueError, "data: times must be finite"),
    ({"t": "now", 0: Y}, TypeError, "data: times must be a vector"),
    ({0: Y}, ValueError, "data must have times, as 't' or in pairs"),
    ([{"y0": [1.0]}], ValueError, r"data\[0\] is an experiment without 'data'"),
    ([{"data": (T, Y), "speed": 1.0}], ValueError, r"data\[0\] has 'speed'"),
])
def test_data(data, error, text):
    with pytest.raises(error, match=text):
        fit(decay, data, {"rate": 1.0}, y0=[1.0])


def test_times_outside_of_t_span():
    with pytest.raises(ValueError, match=r"data: t = 2 is outside t_span \[0, 1\]"):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[1.0], t_span=(0, 1))
    with pytest.raises(ValueError, match=r"b: data: t = 0 is outside t_span \[1, 3\]"):
        fit(decay, [{"data": (T, Y), "t_span": (1, 3), "name": "b"}], {"rate": 1.0}, y0=[1.0])


def test_t_span_is_needed_where_y0_may_belong_elsewhere():
    with pytest.raises(ValueError, match=r"t_span is missing: .* first time in data is 0\.5"):
        fit(decay, (T[1:], Y[1:]), {"rate": 1.0}, y0=[1.0])
    with pytest.raises(ValueError, match="t_span must have two different times"):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[1.0], t_span=(1, 1))


def test_y0():
    with pytest.raises(ValueError, match="y0 is missing: the starting values at t = 0"):
        fit(decay, (T, Y), {"rate": 1.0})
    with pytest.raises(ValueError, match="experiment 1: y0 is missing"):
        fit(decay, [{"data": (T, Y), "y0": [1.0]}, {"data": (T, Y)}], {"rate": 1.0})
    with pytest.raises(ValueError, match="y0 must be finite"):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[np.nan])
    with pytest.raises(ValueError, match="yp0 must have 1 values"):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[1.0], yp0=[1.0, 2.0])


@pytest.mark.parametrize(("bounds", "text"), [
    ({"rate": (2.0, 3.0)}, r"bounds of 'rate' are \(2, 3\), but p0 is 1"),
    ({"rate": (3.0, 2.0)}, "bounds of 'rate' must be low < high"),
    ({"speed": (0.0, 1.0)}, "bounds: 'speed' is not in p0"),
    ({"rate": 3.0}, r"bounds of 'rate' must be a pair \(low, high\)"),
    ((0.0, 1.0, 2.0), r"bounds must be a pair \(low, high\)"),
    (([0.0, 0.0], [1.0, 1.0]), "bounds must have 1 values, got 2"),
])
def test_bounds(bounds, text):
    with pytest.raises(ValueError, match=text):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[1.0], bounds=bounds)


@pytest.mark.parametrize(("options", "error", "text"), [
    ({"sigma": 0.0}, ValueError, "sigma of row 0 must be positive and finite"),
    ({"sigma": -1.0}, ValueError, "sigma of row 0 must be positive and finite"),
    ({"sigma": np.ones(3)}, ValueError, "sigma must be a number, one for every unknown"),
    ({"sigma": {"speed": 1.0}}, ValueError, "sigma: 'speed' is not in data"),
    ({"sigma": {}}, ValueError, "sigma: row 0 is missing"),
    ({"sigma": "small"}, TypeError, "sigma must be numbers"),
    ({"weights": 0.0}, ValueError, "weights of row 0 must be positive and finite"),
    ({"sigma": 1.0, "weights": 1.0}, ValueError, "either sigma or weights, not both"),
    ({"loss": "square"}, ValueError, "loss must be one of linear, soft_l1"),
    ({"tol": 0.0}, ValueError, "tol must be positive"),
    ({"f_scale": -1.0}, ValueError, "f_scale must be positive"),
    ({"log": "speed"}, ValueError, "log: 'speed' is not in p0"),
    ({"workers": 0}, ValueError, "workers must be a positive integer"),
    ({"t_eval": T}, TypeError, "t_eval cannot be passed to fit"),
    ({"sensitivity": "args"}, TypeError, "sensitivity cannot be passed to fit"),
    ({"observe": 3.0}, TypeError, "observe must be callable"),
    ({"observe": lambda t: t}, TypeError, r"observe must accept \(t, y\)"),
    ({"observe": lambda t, y: 3.0}, ValueError, "observe must return a row of 5 values"),
    ({"speed": 3.0}, TypeError, "speed"),
])
def test_other_arguments(options, error, text):
    with pytest.raises(error, match=text):
        fit(decay, (T, Y), {"rate": 1.0}, y0=[1.0], **options)


def test_logarithms_need_positive_values():
    with pytest.raises(ValueError, match="log: p0 of 'rate' is -1, which has no logarithm"):
        fit(decay, (T, Y), {"rate": -1.0}, y0=[1.0], log=True)


def test_wrong_number_of_values():
    with pytest.raises(ValueError, match=r"p0: k has shape \(3,\), but in args \(2,\)"):
        fit(model, (T, Y), {"k": [1.0, 2.0, 3.0]}, args=(1.0, np.ones(2), 3), y0=[1.0])
    nested = {"k": {"a": 1.0, "b": 2.0}, "size": 3, "rate": 1.0}
    with pytest.raises(ValueError, match=r"p0: args\[1\] has 3 values for 2 parameters"):
        fit(model, (T, Y), {"args[1]": [1.0, 2.0, 3.0]}, args=nested, y0=[1.0])


def test_arguments_by_name_do_not_mix_with_a_sequence():
    data = [{"data": enzyme_data(T), "args": {"feed": 0.1}}]
    with pytest.raises(ValueError, match="so the shared args must be as well"):
        fit(enzyme, data, {"catalysis": 1.0}, args=tuple(ENZYME.values()), y0=ENZYME_START)
