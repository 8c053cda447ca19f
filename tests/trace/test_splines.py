"""Interpolants of SciPy and NumPy as piecewise polynomials that programs carry with them."""

import math

import numpy as np
import pytest
from scipy.interpolate import (
    Akima1DInterpolator,
    BPoly,
    BSpline,
    CubicHermiteSpline,
    CubicSpline,
    InterpolatedUnivariateSpline,
    PchipInterpolator,
    PPoly,
    UnivariateSpline,
    interp1d,
    make_interp_spline,
)
from support.helpers import count_entries

from tether import analyze, solve_dae
from tether.trace import (
    cache_key,
    evaluate,
    formula,
    jacobian,
    switching_function,
    total_derivative,
    trace,
    verify,
)
from tether.trace.backend import prepare
from tether.trace.compile_c import find_compiler
from tether.trace.derive import switches

RNG = np.random.default_rng(7)
X = np.sort(RNG.uniform(0.0, 3.0, 12))
Y = RNG.normal(size=12)
CLOSED = np.append(Y[:-1], Y[0])
ORDERS = range(5)
POINTS = np.concatenate([X, RNG.uniform(X[0], X[-1], 60), [-1.0, X[0] - 1e-9, 3.1, 6.0]])

pytestmark = pytest.mark.usefixtures("nothing_is_known")


SPLINES = {
    "CubicSpline": CubicSpline(X, Y),
    "natural": CubicSpline(X, Y, bc_type="natural"),
    "not outside": CubicSpline(X, Y, extrapolate=False),
    "periodic": CubicSpline(X, CLOSED, bc_type="periodic"),
    "derivative": CubicSpline(X, Y).derivative(),
    "antiderivative": CubicSpline(X, Y).antiderivative(2),
    "pchip": PchipInterpolator(X, Y),
    "akima": Akima1DInterpolator(X, Y),
    "hermite": CubicHermiteSpline(X, Y, -Y),
    "jumps": PPoly(RNG.normal(size=(3, 11)), X),
    "bernstein": BPoly.from_derivatives(X, np.column_stack([Y, -Y])),
    "k=1": make_interp_spline(X, Y, k=1),
    "k=3": make_interp_spline(X, Y),
    "k=5": make_interp_spline(X, Y, k=5),
    "k=5'": make_interp_spline(X, Y, k=5).derivative(),
    "knots that are not repeated": BSpline(np.arange(12.0) / 4, Y[:8], 3),
    "a double knot": BSpline([0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3], Y[:7], 3),
    "B-spline not outside": BSpline(*make_interp_spline(X, Y).tck, extrapolate=False),
    "periodic B-spline": make_interp_spline(X, CLOSED, bc_type="periodic"),
    "smoothing": UnivariateSpline(X, Y, s=1.0),
    "interpolating": InterpolatedUnivariateSpline(X, Y, k=4),
    "zero outside": UnivariateSpline(X, Y, s=0.5, ext=1),
    "fit'": UnivariateSpline(X, Y, s=0.5).derivative(),
}
# Without derivatives of their own, or with others than those of the function.
VALUES_ONLY = {
    "constant outside": UnivariateSpline(X, Y, s=0.5, ext="const"),
    "linear": interp1d(X, Y, fill_value="extrapolate"),
    "linear or NaN": interp1d(X, Y, bounds_error=False),
    "cubic and fill": interp1d(X, Y, kind="cubic", bounds_error=False, fill_value=(1.0, 2.0)),
    "staircase": interp1d(X, Y, kind="zero", fill_value="extrapolate"),
    "np.interp": lambda x: np.interp(x, X, Y),
    "np.interp with ends": lambda x: np.interp(x, X, Y, left=-1.0, right=5.0),
    "np.interp, periodic": lambda x: np.interp(x, X, Y, period=2.0),
    "np.interp with a jump": lambda x: np.interp(x, [0.0, 1.0, 1.0, 3.0, 3.0], [0, 1, 2, 3, 4]),
    "np.interp of many": lambda x: np.interp(x, np.linspace(0, 3, 5000), np.sin(np.arange(5000))),
    "polyval": lambda x: np.polyval([1.0, 2.0, 3.0], x),
    "Polynomial": np.polynomial.Polynomial([1.0, 2.0, 3.0], domain=[-2, 2]),
    "poly1d": np.poly1d([1.0, 2.0, 3.0]),
}
BACKENDS = ("machine", "c") if find_compiler() else ("machine",)


def derivatives(spline, count):
    """A spline of y[0] and its derivatives at the points, by all that runs programs."""
    traced = trace(lambda t, y, yp: [spline(y[0])], 1)
    nodes = list(traced.outputs)
    while len(nodes) < count:
        slopes = jacobian(traced.graph, nodes[-1:], traced.unknowns()).nodes
        nodes += slopes or [traced.graph.zero]
    program = traced.program(nodes)
    found = [evaluate(program, 0.0 * POINTS, POINTS[np.newaxis], POINTS[np.newaxis]).T]
    for backend in BACKENDS:
        made = prepare(program, backend=backend)
        assert made.name == backend, made.reason
        runner = made.new()
        found.append(np.array([runner.values(0.0, [x], [0.0]) for x in POINTS]))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    return found[0].T


@pytest.mark.parametrize("name", SPLINES)
def test_values_and_derivatives_are_those_of_scipy(name):
    spline = SPLINES[name]
    if isinstance(spline, (PPoly, BPoly)):
        degree = len(spline.c) - 1
    elif isinstance(spline, BSpline):
        degree = spline.k
    else:
        degree = len(spline.get_coeffs()) - len(spline.get_knots()) + 1
    for order, found in enumerate(derivatives(spline, len(ORDERS))):
        if order > degree:             # SciPy refuses some of them; NaN outside is not kept
            assert not found[: len(X) + 60].any()
            continue
        expected = np.array([spline(x, order) for x in POINTS])
        np.testing.assert_allclose(found, expected, rtol=2e-13,
                                   atol=1e-13 * np.nanmax(np.abs(expected)), err_msg=str(order))


@pytest.mark.parametrize("name", VALUES_ONLY)
def test_values_are_those_of_scipy_and_numpy(name):
    found = derivatives(VALUES_ONLY[name], 1)[0]
    expected = [float(VALUES_ONLY[name](x)) for x in POINTS]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_piecewise_polynomials_have_the_roundings_of_scipy():
    np.testing.assert_array_equal(derivatives(SPLINES["CubicSpline"], 1)[0],
                                  SPLINES["CubicSpline"](POINTS))


@pytest.mark.parametrize("name", [*SPLINES, *VALUES_ONLY])
def test_the_check_accepts_them_and_nothing_else(name):
    spline = (SPLINES | VALUES_ONLY)[name]

    def fun(t, y, yp):
        return [yp[0] - spline(t) * spline(y[0])]

    traced = trace(fun, 1)
    for t, y in ((0.7, 1.3), (X[3], X[4]), (1.0, 2.0)):
        verify(traced, fun, t, [y], [0.0])
    with pytest.raises(Exception, match="traced to something else"):
        verify(traced, lambda t, y, yp: np.asarray(fun(t, y, yp)) * (1 + 1e-9), 0.7, [1.3], [0.0])


def test_what_is_not_a_number_stays_so():
    for spline in (SPLINES["CubicSpline"], VALUES_ONLY["np.interp"], VALUES_ONLY["staircase"]):
        for backend in BACKENDS:
            program = trace(lambda t, y, yp, s=spline: [s(y[0])], 1).program()
            assert np.isnan(prepare(program, backend=backend).new().values(0, [math.nan], [0]))[0]
    program = trace(lambda t, y, yp: [np.interp(y[0], X, Y)], 1).program()
    assert prepare(program).new().values(0, [math.inf], [0])[0] == Y[-1]


# --- how they are written -------------------------------------------------------------------------

CURVE = CubicSpline(X, np.column_stack([Y, -Y, Y**2]))
ALONG = CubicSpline(X, np.vstack([Y, -Y]), axis=1)


def unpacked(t, y, yp):
    a, b, c = CURVE(t)
    return [yp[0] - a * c, yp[1] - b]


def indexed(t, y, yp):
    return [yp[0] - CURVE(t)[0], yp[1] - CURVE.derivative()(y[0])[2]]


def numbered(t, y, yp):
    return [yp[0] - CURVE(t, 1)[0], yp[1] - SPLINES["k=5"](t, nu=2)]


def whole(t, y, yp):
    return yp - SPLINES["CubicSpline"](y) - CURVE(np.array([t, y[0]]))[:, 1]


def on_a_grid(t, y, yp):
    grid = SPLINES["pchip"](np.linspace(0.5, 1.5, 2))
    grid[0] = y[0]
    return yp - grid - SPLINES["smoothing"](np.array([9.0, t]), ext=1)


def along(t, y, yp):
    return yp - ALONG(t)


def otherwise(t, y, yp):
    return [yp[0] - SPLINES["CubicSpline"](5 + t, extrapolate="periodic"),
            yp[1] - SPLINES["smoothing"](t - 9, ext=1) + SPLINES["k=3"](y[0], 1, True)]


def kept(t, y, yp, curves):
    return [yp[0] - curves["x"](t), yp[1] - curves["list"][0](y[0])]


WAYS = [unpacked, indexed, numbered, whole, on_a_grid, along, otherwise, kept]


@pytest.mark.parametrize("fun", WAYS, ids=lambda fun: fun.__name__)
def test_ways_to_write_them(fun):
    args = ({"x": SPLINES["akima"], "list": [SPLINES["pchip"]]},) if fun is kept else ()
    y, yp = np.array([0.8, 1.1]), np.array([0.1, 0.2])
    traced = trace(fun, 2, args)
    verify(traced, fun, 0.9, y, yp, args)
    np.testing.assert_allclose(evaluate(traced.program(), 0.9, y, yp), fun(0.9, y, yp, *args),
                               rtol=1e-12)


def test_equal_splines_are_one_table():
    again = CubicSpline(X, Y)
    traced = trace(lambda t, y, yp: [yp[0] - again(t) * SPLINES["CubicSpline"](t)], 1)
    assert len(traced.graph.tables) == 1
    (rate,) = total_derivative(traced.graph, [trace_node(traced)])
    assert formula(traced.graph, rate, ["x"]) == "CubicSpline'(t)"


def trace_node(traced):
    return traced.graph.table(traced.graph.tables[0], traced.graph.time())


def test_derivatives_beyond_the_degree_are_zero():
    traced = trace(lambda t, y, yp: [SPLINES["CubicSpline"](t)], 1)
    assert total_derivative(traced.graph, traced.outputs, 4) == [traced.graph.zero]


# --- where they are not smooth --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "smoothness"),
    [("CubicSpline", 2), ("pchip", 1), ("k=1", 0), ("k=5", 4), ("jumps", -1),
     ("natural", 2), ("a double knot", 1)],
)
def test_switches_are_where_a_derivative_jumps(name, smoothness):
    traced = trace(lambda t, y, yp: [SPLINES[name](y[0])], 1)
    for order in range(6):
        assert bool(switches(traced.graph, traced.outputs, order)) == (smoothness < order)
    assert switches(traced.graph, traced.outputs, math.inf)


@pytest.mark.parametrize("count", [3, 4, 12])
def test_switching_function_passes_zero_at_the_breakpoints(count):
    spline = make_interp_spline(X[:count], Y[:count], k=1)
    traced = trace(lambda t, y, yp: [spline(t)], 1)
    (switch,) = traced.switches
    program = traced.program([switching_function(traced.graph, switch)])
    t = np.linspace(-20.0, 20.0, 100_001)
    sign = np.sign(evaluate(program, t, np.zeros((1, len(t))), np.zeros((1, len(t))))[0])
    turns = t[1:][sign[1:] != sign[:-1]]
    np.testing.assert_allclose(turns, X[1 : count - 1], atol=1e-3)


def test_reports_of_kinks_look_at_the_order():
    def moved(spline):
        return analyze(lambda t, y, yp: [yp[0] - y[1], yp[1] - y[2], y[0] - spline(t)], 0.5,
                       [0.0, 0.0, 0.0])

    assert not any("kinks" in note for note in moved(SPLINES["CubicSpline"]).notes)
    assert any("kinks" in note for note in moved(SPLINES["pchip"]).notes)


# --- runs -----------------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 3.0, 13)
SMOOTH = {
    "C2": CubicSpline(TIMES, np.sin(TIMES)),
    "C4": make_interp_spline(TIMES, np.sin(TIMES), k=5),
    "C1": PchipInterpolator(TIMES, np.sin(TIMES)),
    "fit": UnivariateSpline(TIMES, np.sin(TIMES), s=0.0, k=4),
    "linear": interp1d(TIMES, np.sin(TIMES)),
    "np.interp": lambda t: np.interp(t, TIMES, np.sin(TIMES)),
}


def count_calls(run):
    """How often the residual is entered in run(), and its result."""
    return count_entries(lambda code: code.co_name == "fun", run)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SMOOTH)
def test_runs_do_not_come_back_to_python(name, backend):
    spline = SMOOTH[name]

    def fun(t, y, yp):
        return [yp[0] + y[0] * y[1] - spline(t), y[1] - 2.0 - spline(y[0])]

    start = [0.5, 2.0 + spline(0.5)]

    def run(t_end, trace="auto"):
        return solve_dae(fun, (0.0, t_end), start, trace=trace, rtol=1e-8, atol=1e-10,
                         options={"backend": backend})

    run(0.1)
    calls, traced = count_calls(lambda: run(3.0))
    assert calls <= 0.1 * traced.nfev                  # to compare
    assert traced.nfev > 100
    assert traced.how.startswith("traced")
    calls, called = count_calls(lambda: run(3.0, "never"))
    assert calls > 100
    np.testing.assert_allclose(traced.y[:, -1], called.y[:, -1], rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["C2", "C4"])
def test_prescribed_motion_of_index_3(name, backend):
    """A mass is moved along a spline; the force follows from its second derivative."""
    spline = SMOOTH[name]

    def fun(t, y, yp):
        x, v, force = y
        return [yp[0] - v, 2.0 * yp[1] + 3.0 * x - force, x - spline(t)]

    start = [spline(0.0), spline(0.0, 1), 2.0 * spline(0.0, 2) + 3.0 * spline(0.0)]
    report = analyze(fun, 0.0, start)
    assert report.index == 3
    assert report.how.startswith("reduced to index 1")
    sol = solve_dae(fun, (0.0, 2.9), start, options={"backend": backend})
    assert sol.success
    assert "index 3 reduced to 1" in sol.how
    exact = [spline(2.9), spline(2.9, 1), 2.0 * spline(2.9, 2) + 3.0 * spline(2.9)]
    np.testing.assert_allclose(sol.y[:, -1], exact, rtol=2e-8, atol=2e-8)


def test_outside_of_a_spline_that_ends_the_run_stops():
    spline = CubicSpline(TIMES, np.sin(TIMES), extrapolate=False)
    sol = solve_dae(lambda t, y, yp: [yp[0] - spline(t)], (0.0, 4.0), [0.0])
    assert sol.how.startswith("traced")
    assert sol.status.name == "NON_FINITE"
    assert sol.t[-1] == pytest.approx(3.0, abs=1e-6)


def by_coefficients():
    spline = CubicSpline(TIMES, np.ones(13))
    return spline, lambda: spline.c.__imul__(3.0)


def by_basis():
    spline = make_interp_spline(TIMES, np.ones(13))
    return spline, lambda: spline.c.__imul__(3.0)


def by_values():
    values = np.ones(13)
    return (lambda t: np.interp(t, TIMES, values)), lambda: values.fill(3.0)


def by_polynomial():
    polynomial = np.polynomial.Polynomial([1.0, 0.0])
    return polynomial, lambda: polynomial.coef.fill(3.0) or polynomial.coef.__setitem__(1, 0.0)


@pytest.mark.parametrize("make", [by_coefficients, by_basis, by_values, by_polynomial],
                         ids=lambda make: make.__name__)
def test_changes_of_a_spline_are_noticed(make):
    spline, change = make()

    def fun(t, y, yp):
        return [yp[0] + spline(t) * y[0]]

    assert solve_dae(fun, (0, 1), [1.0]).y[0, -1] == pytest.approx(math.exp(-1), rel=1e-4)
    assert cache_key(fun, 1) == cache_key(fun, 1)
    change()
    for trace_mode in ("never", "auto"):
        sol = solve_dae(fun, (0, 1), [1.0], trace=trace_mode)
        assert sol.y[0, -1] == pytest.approx(math.exp(-3), rel=1e-4)
    assert sol.how.startswith("traced")


def test_a_spline_made_anew_is_traced_once():
    def make():
        spline = CubicSpline(TIMES, np.sin(TIMES))
        return lambda t, y, yp: [yp[0] + spline(t) * y[0]]

    assert cache_key(make(), 1) == cache_key(make(), 1) is not None


def test_a_library_serves_other_splines_of_the_same_size():
    if "c" not in BACKENDS:
        pytest.skip("no C compiler")
    paths, values = [], []
    for size in (1.0, 2.0):
        spline = CubicSpline(X, size * Y)
        program = trace(lambda t, y, yp, s=spline: [yp[0] - s(y[0])], 1).program()
        made = prepare(program, backend="c")
        paths.append(made.new().library.path)
        values.append(made.new().values(0.0, [1.0], [0.0])[0])
    assert paths[0] == paths[1]
    assert values[1] == pytest.approx(2 * values[0])


@pytest.mark.parametrize("seed", [12, 58, 73])
def test_a_step_over_knots_that_misses_the_path_is_repeated(seed):
    knots = np.sort(np.random.default_rng(seed).uniform(-0.5, 5.5, 24))
    knots[[0, -1]] = -0.6, 5.6
    path = CubicHermiteSpline(
        knots, np.sin(knots) + 0.3 * np.cos(2.3 * knots), np.cos(knots) - 0.69 * np.sin(2.3 * knots)
    )

    def along(t, y, yp):
        x, v = y
        return [yp[0] - v, x - path(t)]

    sol = solve_dae(along, (0, 5), [float(path(0.0)), 0.0], atol=1e-8)
    assert sol.success, sol.message
    assert np.abs(sol.y[0] - path(sol.t)).max() < 1e-9
