"""Tables of two variables, and places in tables, as people look them up."""

import bisect
import math

import numpy as np
import pytest
from scipy.interpolate import RectBivariateSpline, RegularGridInterpolator, interpn

from tether import solve_dae
from tether._core.plain import Plain
from tether.trace import trace
from tether.trace.tracer import TraceFailure

X = np.linspace(-2.0, 3.0, 6)
Y = np.array([-1.0, 0.0, 0.5, 2.0, 4.0])
Z = np.sin(X)[:, None] * np.cos(Y) + 0.3 * X[:, None]
GRID = RegularGridInterpolator((X, Y), Z)
BEYOND = RegularGridInterpolator((X, Y), Z, bounds_error=False, fill_value=None)
SPLINE = RectBivariateSpline(X, Y, Z, kx=1, ky=1)
LIST_X, LIST_Y = X.tolist(), Y.tolist()


def blend(i, j, a, b):
    """Interpolate in a cell."""
    u, v = (a - X[i]) / (X[i + 1] - X[i]), (b - Y[j]) / (Y[j + 1] - Y[j])
    return ((1 - u) * (1 - v) * Z[i, j] + u * (1 - v) * Z[i + 1, j]
            + (1 - u) * v * Z[i, j + 1] + u * v * Z[i + 1, j + 1])


def by_searchsorted(a, b):
    i = np.clip(np.searchsorted(X, a) - 1, 0, len(X) - 2)
    j = np.clip(np.searchsorted(Y, b, side="right") - 1, 0, len(Y) - 2)
    return blend(i, j, a, b)


def by_integers(a, b):
    i = min(max(int(np.searchsorted(X, a)) - 1, 0), len(X) - 2)
    j = min(max(int(np.digitize(b, Y)) - 1, 0), len(Y) - 2)
    return blend(i, j, a, b)


def by_bisection(a, b):
    i = min(max(bisect.bisect(LIST_X, a) - 1, 0), len(X) - 2)
    j = min(max(bisect.bisect_left(LIST_Y, b) - 1, 0), len(Y) - 2)
    return blend(i, j, a, b)


TABLES = {
    "grid": lambda a, b: GRID((a, b)),
    "grid of rows": lambda a, b: GRID([[a, b]])[0],
    "grid beyond": lambda a, b: BEYOND(np.array([a, b]))[0],
    "interpn": lambda a, b: interpn((X, Y), Z, (a, b))[0],
    "interpn of rows": lambda a, b: interpn((X, Y), Z, np.array([[a, b], [0.3, 0.2]]))[0],
    "interpn beyond": lambda a, b: interpn(
        (X, Y), Z, [[a, b]], bounds_error=False, fill_value=None)[0],
    "interpn filled": lambda a, b: interpn(
        (X, Y), Z, [[a, b + 2.0]], bounds_error=False, fill_value=-3.0)[0],
    "spline": lambda a, b: SPLINE(a, b)[0, 0],
    "spline at points": lambda a, b: SPLINE.ev(a, b),
    "searchsorted": by_searchsorted,
    "integers": by_integers,
    "bisection": by_bisection,
    "np.interp twice": lambda a, b: np.interp(b, Y, [np.interp(a, X, z) for z in Z.T]),
    "searchsorted without limits": lambda a, b: blend(
        np.searchsorted(X, a) - 1, np.searchsorted(Y, b) - 1, a, b),
}


def residual_of(table):
    def fun(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0] - table(y[0], 1.0 + y[1])]

    return fun


@pytest.mark.parametrize("name", TABLES)
def test_values_and_derivatives(name):
    table = TABLES[name]
    fun = residual_of(table)
    traced = trace(fun, 2)
    slopes = Plain(traced.program([*traced.f_y.nodes]), np.zeros(0))
    values = Plain(traced.reference, np.zeros(0))
    rng = np.random.default_rng(3)
    for a, b in rng.uniform((-1.9, -0.9), (2.9, 3.9), (40, 2)):
        y, yp, h = np.array([a, b - 1.0]), np.zeros(2), 1e-7
        if min(np.abs(X - a).min(), np.abs(Y - b).min()) < 10 * h:
            continue
        assert values.values(0.0, y, yp) == pytest.approx(fun(0.0, y, yp), rel=1e-13, abs=1e-13)
        found = dict(zip(zip(traced.f_y.rows, traced.f_y.cols, strict=True),
                         slopes.values(0.0, y, yp), strict=True))
        for j in range(2):
            step = h * np.eye(2)[j]
            expected = (fun(0.0, y + step, yp)[1] - fun(0.0, y - step, yp)[1]) / (2 * h)
            assert found.get((1, j), 0.0) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["interpn", "searchsorted", "integers", "bisection"])
def test_runs(name):
    fun = residual_of(TABLES[name])
    ends = [solve_dae(fun, (0.0, 3.0), [1.0, 0.3], rtol=1e-7, atol=1e-9, trace=how)
            for how in ("auto", "never")]
    assert ends[0].how.startswith("traced")
    assert ends[0].y[:, -1] == pytest.approx(ends[1].y[:, -1], abs=1e-6)


@pytest.mark.parametrize(("side", "right"), [("left", True), ("right", False)])
def test_places_on_the_edges(side, right):
    def fun(t, y, yp):
        places = np.searchsorted(X, y, side=side)
        return [yp[0] - float(places[0]) * y[0], yp[1] - np.digitize(y[1], X, right=right) * 1.0]

    program = Plain(trace(fun, 2).reference, np.zeros(0))
    for x in (*X, *(X + 0.5), -9.0, 9.0):
        y = np.array([x, x])
        assert program.values(0.0, y, y) == pytest.approx(fun(0.0, y, y))


def test_edges_out_of_order():
    def fun(t, y, yp):
        return [yp[0] - np.searchsorted(np.array([2.0, 1.0]), y[0])]

    with pytest.raises(TraceFailure, match="not sorted"):
        trace(fun, 1)


def test_an_edge_that_changes():
    edges = np.array([0.0, 1.0, 2.0])

    def fun(t, y, yp):
        return [yp[0] - 1.0 - np.searchsorted(edges, y[0])]

    for last in (1.5, 1.25, 1.75, 1.1):
        edges[1] = last
        found, expected = (
            solve_dae(fun, (0.0, 1.0), [0.5], trace=how, max_step=step).y[0, -1]
            for how, step in (("auto", math.inf), ("never", 1e-3)))
        assert found == pytest.approx(expected, abs=1e-3)
