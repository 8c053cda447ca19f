"""A solve as a function of numbers, with its gradient."""

from collections import namedtuple

import numpy as np
import pytest
from support.helpers import start_python

from tether import Problem, solve_dae
from tether.bridge import RunError, Solve, pairs, replaced

Pair = namedtuple("Pair", "a b")


def decay(t, y, yp, p):
    return [yp[0] + p["rates"][0] * y[0], yp[1] + p["rates"][1] * y[1] - p["flow"] * y[0]]


def blow(t, y, yp, k):
    return [yp[0] - k * y[0] ** 2]


def make(fun=decay, span=(0, 1), times=(0.5, 1.0), on_failure="raise", **options):
    return Solve(fun, span, times, on_failure, {"rtol": 1e-9, "atol": 1e-11} | options)


def test_gradients_are_those_of_the_forward_derivatives():
    args = ({"flow": 0.5, "rates": np.array([1.0, 2.0]), "count": 3},)
    solve = make()
    run = solve.taped(np.array([1.0, 2.0]), args)
    np.testing.assert_array_equal(run.y, solve.values(np.array([1.0, 2.0]), args))
    y_bar = np.array([[1.0, -2.0], [0.5, 3.0]])
    y0_bar, (bars,) = run.pull(y_bar)
    sol = solve_dae(decay, (0, 1), [1.0, 2.0], args=args, t_eval=[0.5, 1.0], sensitivity="all",
                    rtol=1e-9, atol=1e-11)
    expected = np.einsum("pij,ij->p", sol.sens, y_bar)
    found = [bars["flow"], *bars["rates"], *y0_bar]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert bars["count"] == 3                  # nothing to differentiate by
    y0_bar, (again,) = solve.taped(np.array([1.0, 2.0]), args, by_y0=False).pull(y_bar)
    assert (y0_bar == 0.0).all()
    assert again["flow"] == pytest.approx(bars["flow"], rel=1e-12)


def test_without_arguments_there_are_starting_values():
    run = make(lambda t, y, yp: [yp[0] + y[0]]).taped(np.array([1.0]), ())
    y0_bar, args_bar = run.pull(np.array([[0.0, 1.0]]))
    assert y0_bar == pytest.approx([np.exp(-1)], abs=1e-7)
    assert args_bar == ()
    problem = Problem(lambda t, y, yp, k: [yp[0] + k * y[0]], args=(2.0,))
    y0_bar, _ = make(problem).taped(np.array([1.0]), ()).pull(np.array([[0.0, 1.0]]))
    assert y0_bar == pytest.approx([np.exp(-2)], abs=1e-7)


def test_failures_raise_or_are_nan():
    solve = make(blow, (0, 2), [1.0, 2.0])
    for method in (solve.values, solve.taped):
        with pytest.raises(RunError, match=r"the run failed: .* grows without bound"):
            method(np.array([1.0]), (1.0,))
    solve = make(blow, (0, 2), [1.0, 2.0], on_failure="nan")
    with pytest.warns(RuntimeWarning, match="the run failed"):
        run = solve.taped(np.array([1.0]), (1.0,))
    assert run.y.shape == (1, 2)
    assert np.isnan(run.y).all()
    y0_bar, args_bar = run.pull(np.ones((1, 2)))
    assert np.isnan([*y0_bar, *args_bar]).all()


def test_a_start_that_is_not_found_fails_as_well():
    solve = make(lambda t, y, yp, k: [yp[0] + y[0], y[1] ** 2 + k])
    with pytest.raises(RunError, match="the run failed"):
        solve.taped(np.array([1.0, 1.0]), (1.0,))


def test_a_run_that_an_event_ends_early():
    def half(t, y, k):
        return y[0] - 0.5

    half.terminal = True
    solve = make(lambda t, y, yp, k: [yp[0] + k * y[0]], events=half)
    with pytest.raises(RunError, match="the run ended before the last time of t_eval, 1"):
        solve.values(np.array([1.0]), (2.0,))


def test_weights_that_are_not_finite():
    bad = np.array([[np.nan, 0.0]])
    fun = lambda t, y, yp, k: [yp[0] + k * y[0]]  # noqa: E731
    with pytest.raises(ValueError, match="y_bar must be finite"):
        make(fun).taped(np.array([1.0]), (2.0,)).pull(bad)
    y0_bar, args_bar = make(fun, on_failure="nan").taped(np.array([1.0]), (2.0,)).pull(bad)
    assert np.isnan([*y0_bar, *args_bar]).all()


def test_bad_input():
    with pytest.raises(ValueError, match="on_failure must be one of"):
        make(on_failure="ignore")
    with pytest.raises(ValueError, match="write the integral of q as a further unknown"):
        make(quadratures=lambda t, y: y[0])
    with pytest.raises(ValueError, match="t_eval must be given"):
        make(times=None)
    with pytest.raises(ValueError, match="t_eval must lie within t_span"):
        make(times=[3.0])


def test_structures_are_gone_through_in_order():
    form = {"b": [1.0, "x"], "a": Pair(2.0, (3, 4.0))}
    assert [x for x, _ in pairs(form, form, float)] == [1.0, 2.0, 4.0]
    new = replaced(form, float, iter([10, 20, 40]))
    assert new == {"b": [10, "x"], "a": Pair(20, (3, 40))}
    assert type(new["a"]) is Pair


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_a_missing_package_is_named(name):
    process = start_python(
        f"import sys\nsys.modules[{name!r}] = None\nimport tether.{name}\ntry:\n"
        f"    tether.{name}.solve(lambda t, y, yp: yp, (0, 1), [1.0], t_eval=[1.0])\n"
        "except ImportError as error:\n    print(error)\n"
    )
    out, err = process.communicate()
    assert err == ""
    assert out.strip() == f"tether.{name} needs {name}: pip install {name}"
