"""Starting values for a model: one way for every kind of model and every mode."""

import numpy as np
import pytest

from tether import Problem, gallery
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.options import Options
from tether.start.find import StartFinder, kinds_at
from tether.start.references import References
from tether.structure.scaling import Units

PENDULUM = gallery.get("pend-i3")
AT_AN_ANGLE = np.array([0.6, -0.8, 0.5, 0.0, 0.0])


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]


def relaxation(t, y, yp):
    return [yp[0] + y[1], y[0] - y[1]]


def finder(fun, y0, form="auto", trace=True, **problem):
    y, problem, options = np.array(y0, float), Problem(fun, **problem), Options()
    model = AsWritten(problem, len(y))
    if trace:
        units = Units.of_options(options, y, 1.0)
        model, _ = find_model(problem, 0.0, y, None, form, "machine", units)
    state = new_state(model, options)
    state.t_end = 1.0
    model.constraints.attach(state, 0.0, y, (), options)
    return StartFinder(model, state, options, References())


@pytest.mark.parametrize("trace", [False, True])
def test_algebraic_values_and_slopes_are_found(trace):
    y0 = np.array([2.0, 0.0])
    start = finder(relaxation, y0, trace=trace).find(0.0, y0, None, "auto")
    assert start.success
    assert start.y == pytest.approx([2.0, 2.0])
    assert start.yp[0] == pytest.approx(-2.0)
    assert start.moved == pytest.approx({1: 2.0})


@pytest.mark.parametrize("trace", [False, True])
def test_a_check_refuses_what_it_would_change(trace):
    found = finder(relaxation, [2.0, 0.0], trace=trace)
    assert not found.find(0.0, np.array([2.0, 0.0]), None, "check").success
    assert found.find(0.0, np.array([2.0, 2.0]), np.array([-2.0, 0.0]), "check").success


@pytest.mark.parametrize("trace", [False, True])
def test_what_is_assumed_is_not_looked_at(trace):
    found = finder(relaxation, [2.0, 0.0], trace=trace)
    start = found.find(0.0, np.array([2.0, 0.0]), None, "assume")
    assert start.success
    assert start.y.tolist() == [2.0, 0.0]
    assert start.yp.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("how", ["reduced", "as written", "called"])
def test_hidden_constraints_are_kept_whatever_the_model(how):
    """The speed in y0 has a part along the rod, which must go."""
    found = finder(pendulum, AT_AN_ANGLE, "auto" if how == "reduced" else "given",
                   trace=how != "called")
    start = found.find(0.0, AT_AN_ANGLE, None, "auto")
    assert start.success, start.message
    x, z, u, w, lam = start.y[:5]
    assert x * x + z * z == pytest.approx(1.0, abs=1e-10)
    assert x * u + z * w == pytest.approx(0.0, abs=1e-8)
    assert lam == pytest.approx(u * u + w * w - 9.81 * z, rel=1e-5)
    assert (u, w) == pytest.approx((0.32, 0.24), abs=1e-6)


def test_values_that_nothing_makes_consistent_are_a_failure():
    start = finder(lambda t, y, yp: [yp[0], y[1] ** 2 + 1.0], [1.0, 1.0]).find(
        0.0, np.ones(2), None, "auto")
    assert not start.success
    assert start.reason.equations == (1,)


def test_invariants_keep_the_values_of_the_first_start():
    """After a jump of the state the point moves back to them, unless they are forgotten."""
    def fun(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0]]

    found = finder(fun, [1.0, 0.0], invariants=lambda t, y: y[0] ** 2 + y[1] ** 2)
    first = found.find(0.0, np.array([1.0, 0.0]), None, "auto")
    assert first.success
    found.references.keep(found.model.constraints.references(found.state))
    moved = np.array([0.6001, 0.8001])
    start = found.find(0.5, moved, None, "auto")
    assert start.success
    assert start.y @ start.y == pytest.approx(1.0, abs=1e-9)
    found.references.forget()
    start = found.find(0.5, moved, None, "auto")
    assert start.y == pytest.approx(moved, abs=1e-14)


def test_kinds_are_found_above_index_1_only():
    for name, kinds in [("robertson", None), ("pend-i2", [0, 0, 0, 0, 2]),
                        ("pend-i3", [0, 0, 2, 2, 3])]:
        given = gallery.get(name)
        model = AsWritten(Problem(given.fun), given.n)
        pencil = kinds_at(new_state(model, Options()), model, 0.0, given.y0, given.yp0)
        assert (None if pencil is None else pencil.var_index.tolist()) == kinds
    model = AsWritten(Problem(PENDULUM.fun, var_index=[0, 0, 2, 2, 3]), 5)
    assert kinds_at(new_state(model, Options()), model, 0.0, PENDULUM.y0, PENDULUM.yp0) is None


def test_no_kinds_where_the_residual_has_no_value():
    model = AsWritten(Problem(lambda t, y, yp: [yp[0] + np.log(y[0])]), 1)
    state = new_state(model, Options())
    with np.errstate(invalid="ignore"):
        assert kinds_at(state, model, 0.0, np.array([-1.0]), np.zeros(1)) is None
