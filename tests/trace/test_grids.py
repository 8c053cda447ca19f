"""Tables of several variables against SciPy."""

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline, RegularGridInterpolator

from tether import solve_dae
from tether.trace import cache_key, evaluate, trace

RNG = np.random.default_rng(4)
X = np.array([0.0, 0.5, 0.7, 1.5, 2.0])
Y = np.array([-1.0, 0.0, 0.25, 2.0])
Z = np.array([0.0, 1.0, 3.0])
TABLE = RNG.normal(size=(5, 4))
CUBE = RNG.normal(size=(5, 4, 3))

LINEAR = RegularGridInterpolator((X, Y), TABLE)
FILLED = RegularGridInterpolator((X, Y), TABLE, bounds_error=False, fill_value=7.0)
NOWHERE = RegularGridInterpolator((X, Y), TABLE, bounds_error=False)
GOES_ON = RegularGridInterpolator((X, Y), TABLE, bounds_error=False, fill_value=None)
SOLID = RegularGridInterpolator((X, Y, Z), CUBE, bounds_error=False, fill_value=None)
LINE = RegularGridInterpolator((X,), TABLE[:, 0], bounds_error=False, fill_value=None)
DESCENDING = RegularGridInterpolator((X[::-1], Y), TABLE, bounds_error=False)
BILINEAR = RectBivariateSpline(X, Y, TABLE, kx=1, ky=1)
CUBIC = RectBivariateSpline(X, Y, TABLE, kx=3, ky=2)

WAYS = {
    "pair": lambda y: [LINEAR((y[0], y[1]))],
    "point": lambda y: LINEAR([y[0], y[1]]),
    "points": lambda y: LINEAR([[y[0], y[1]], [0.5, y[1]]]) * 2.0,
    "points in an array": lambda y: LINEAR(np.array([[y[0], y[1]]])),
    "one number given": lambda y: [LINEAR((y[0], 0.1))],
    "many": lambda y: LINEAR((y[0] * np.array([0.1, 0.5]), y[1])),
    "the vector itself": lambda y: LINEAR(y[:2]),
    "filled": lambda y: [FILLED((y[0], y[1]))],
    "nowhere": lambda y: [NOWHERE((y[0], y[1]))],
    "goes on": lambda y: [GOES_ON((y[0], y[1]))],
    "solid": lambda y: [SOLID((y[0], y[1], y[2]))],
    "line": lambda y: LINE([y[0]]),
    "descending": lambda y: [DESCENDING((y[0], y[1]))],
    "given numbers": lambda y: [LINEAR((0.3, 0.4)) * y[0], LINEAR([0.3, 0.4])[0] + y[1]],
    "bilinear": lambda y: BILINEAR(y[0], y[1])[0],
    "single points": lambda y: [BILINEAR.ev(y[0], y[1]), CUBIC(y[0], 0.1, grid=False)],
    "cubic": lambda y: [CUBIC(y[0], y[1])[0, 0]],
    "slopes": lambda y: [CUBIC.ev(y[0], y[1], dx=1), CUBIC(y[0], y[1], dy=1)[0, 0]],
    "several points": lambda y: CUBIC.ev(y[:2], y[1]),
}
INSIDE = [(0.3, 0.1, 0.5), (1.9, 1.9, 2.5), (0.5, 0.25, 1.0), (0.0, -1.0, 0.0), (2.0, 2.0, 3.0),
          (0.7, -0.5, 1.5)]
OUTSIDE = [(-0.4, 0.1, 0.5), (2.5, 3.0, 4.0), (0.3, -2.0, -1.0), (np.nan, 0.0, 0.0)]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_values_are_those_of_scipy(way):
    size = len(np.atleast_1d(way(np.array(INSIDE[0]))))

    def fun(t, y, yp):
        return way(y)

    traced = trace(fun, 3, size=size)
    for y in map(np.array, INSIDE + OUTSIDE):
        found = evaluate(traced.reference, 0.0, y, y)
        try:
            expected = np.array(way(y), float)
        except ValueError:                     # out of bounds
            assert np.isnan(found).any()
            continue
        if np.isnan(y).any() and way is WAYS["filled"]:
            continue                           # SciPy versions differ
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("spline", [BILINEAR, CUBIC], ids=["bilinear", "cubic"])
def test_derivatives_are_those_of_scipy(spline):
    traced = trace(lambda t, y, yp: [spline.ev(y[0], y[1])], 2, size=1)
    program = traced.program(traced.f_y.nodes)
    for x, z in np.array(INSIDE)[:2, :2]:
        h = 1e-5
        expected = [(spline.ev(x + h, z) - spline.ev(x - h, z)) / (2 * h),
                    (spline.ev(x, z + h) - spline.ev(x, z - h)) / (2 * h)]
        found = evaluate(program, 0.0, np.array([x, z]), np.zeros(2))
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def test_a_table_in_a_run():
    speed, load = np.linspace(0.0, 4.0, 9), np.linspace(0.0, 2.0, 5)
    torque = RegularGridInterpolator((speed, load), np.add.outer(3.0 - 0.5 * speed, load))

    def engine(t, y, yp):
        return [yp[0] - torque((y[0], 0.5)), yp[1] - torque([y[0], 1.0])[0]]

    found = solve_dae(engine, (0.0, 2.0), [0.0, 0.0], rtol=1e-8, atol=1e-10)
    assert found.how.startswith("traced")
    expected = 7.0 * (1.0 - np.exp(-1.0))
    assert found.success == (expected <= 4.0)  # beyond the table there is no torque
    assert found.t[-1] == pytest.approx(-2.0 * np.log(3.0 / 7.0), abs=1e-3)


def test_a_table_that_is_changed_is_read_anew():
    table = RectBivariateSpline(X, Y, TABLE, kx=1, ky=1)

    def fun(t, y, yp):
        return [yp[0] - table.ev(y[0], t)]

    before = cache_key(fun, 1)
    assert cache_key(fun, 1) == before
    table.tck[2][:] *= 2.0
    assert cache_key(fun, 1) != before


def test_large_tables_and_other_methods_are_called():
    large = np.linspace(0.0, 1.0, 300)
    grid = RegularGridInterpolator((large, large), np.zeros((300, 300)))
    nearest = RegularGridInterpolator((X, Y), TABLE, method="nearest")
    for table in (grid, nearest):
        found = solve_dae(lambda t, y, yp, f=table: [yp[0] + f((y[0], 0.5))], (0.0, 0.1), [0.5])
        assert "RegularGridInterpolator, which is not known" in found.how
