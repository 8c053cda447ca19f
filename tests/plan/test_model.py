"""What is integrated for a problem: as written, as a program, or reduced."""

import numpy as np
import pytest

from tether import Constraint, Problem
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import SLACK_PER_ORDER, AsWritten, ReducedModel, TracedModel
from tether.problem.options import Options
from tether.structure.scaling import Units

pytestmark = pytest.mark.usefixtures("nothing_is_known")

START = [1.0, 0.0, 0.0, 0.0, 0.0]


def pendulum(t, y, yp):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.0]


def decay(t, y, yp, rate=1.0):
    return [yp[0] + rate * y[0], y[1] - y[0]]


def made(fun, y0, form="auto", **options):
    """Model of a problem, and the note that comes with it."""
    y, problem = np.array(y0, float), Problem(fun, **options)
    return find_model(problem, 0.0, y, None, form, "machine", Units.of_options(Options(), y, 1.0))


def test_the_kinds_of_models():
    model, note = made(decay, [1.0, 1.0])
    assert (type(model), note) == (TracedModel, "")
    model, note = made(pendulum, START)
    assert (type(model), note) == (ReducedModel, "")
    assert type(made(pendulum, START, form="given")[0]) is TracedModel
    model, note = made(lambda t, y, yp: [yp[0] + float(f"{y[0]}")], [1.0])
    assert type(model) is AsWritten
    assert "text" in note


def test_a_model_as_written_has_the_users_unknowns():
    for model in (AsWritten(Problem(decay), 2), made(decay, [1.0, 1.0])[0]):
        assert model.size == model.n == 2
        assert model.owner.tolist() == [0, 1]
        assert model.slack.tolist() == [1.0, 1.0]
        assert model.determined.tolist() == [False, False]
        assert model.reduced is None
        assert not model.is_index_1
        assert not model.rows_were_chosen
        assert not model.is_worn(0.0, np.ones(2), np.ones(2))


def test_a_reduced_model_determines_multipliers():
    model = made(pendulum, START)[0]
    assert model.is_index_1
    assert model.size == len(model.owner) == len(model.slack) >= model.n == 5
    assert model.owner[:5].tolist() == [0, 1, 2, 3, 4]
    assert np.all(model.slack[:5] == 1.0)
    assert model.determined.tolist() == [False, False, False, False, True]
    assert "index 3 reduced to 1" in model.how


def test_further_unknowns_belong_to_the_users():
    """Reduced by its derivative array: derivatives become unknowns, and need fewer digits."""
    def fun(t, y, yp):
        x, z, w = y
        h = -np.sin(t) - np.exp(-np.cos(t) + (2 + np.cos(t)) * np.cos(t))
        k = -np.sin(t) + (2 + np.cos(t)) * np.sin(t) - (2 + np.cos(t)) ** 2
        return [yp[1] - w, x + np.exp(-yp[0] - z * yp[2]) + h, x + z * w + z * z + k]

    model = made(fun, [0.0, 3.0, 0.0])[0]
    assert type(model) is ReducedModel
    assert model.rows_were_chosen
    assert model.size == len(model.owner) == len(model.slack) > model.n == 3
    assert model.owner[:3].tolist() == [0, 1, 2]
    assert set(model.owner[3:]) <= {0, 1, 2}
    assert model.slack[:3].tolist() == [1.0, 1.0, 1.0]
    assert min(model.slack[3:]) == SLACK_PER_ORDER
    state = new_state(model, Options(rtol=1e-6, atol=[1e-8, 1e-9, 1e-7]))
    atol = np.array([1e-8, 1e-9, 1e-7])[model.owner]
    np.testing.assert_allclose(state.atols, atol * model.slack)


def test_what_may_have_effects_in_a_step():
    def circle(t, y):
        return y[0] ** 2 + y[1] ** 2 - 2.0

    def jac(t, y, yp):
        return np.array([[1.0, 0.0], [-1.0, 1.0]]), np.diag([1.0, 0.0])

    assert AsWritten(Problem(decay), 2).calls_back
    assert not made(decay, [1.0, 1.0])[0].calls_back
    assert not made(pendulum, START)[0].calls_back
    assert made(decay, [1.0, 1.0], jac=jac)[0].calls_back
    model = made(decay, [1.0, 1.0], constraints=Constraint(circle))[0]
    new = new_state(model, Options())
    model.constraints.attach(new, 0.0, np.ones(2), (), Options(trace="never"))
    assert model.calls_back
    model.constraints.attach(new, 0.0, np.ones(2), (), Options())
    assert not model.calls_back


def test_structures_are_compared():
    def driven(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + np.sin(t),
                x * x + z * z - 1.0]

    def free(t, y, yp):
        _, _, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2], yp[3] + 9.81, lam]

    reduced, same, other = (made(fun, START)[0] for fun in (pendulum, driven, free))
    assert reduced.has_structure_of(same)
    assert same.has_structure_of(reduced)
    assert not reduced.has_structure_of(other)
    assert not other.has_structure_of(reduced)
    assert other.has_structure_of(AsWritten(Problem(free), 5))


def test_a_model_is_current_until_somebody_changes_what_it_reads():
    table, rates = {"k": 1.0}, np.ones(1)

    def fun(t, y, yp, rates):
        return [yp[0] + table["k"] * rates[0] * y[0]]

    model = made(fun, [1.0], args=(rates,))[0]
    assert model.is_current
    rates[0] = 2.0
    assert not model.is_current
    rates[0] = 1.0
    assert model.is_current
    table["k"] = 2.0
    assert not model.is_current
    assert AsWritten(Problem(fun, args=(rates,)), 1).is_current


def test_work_is_noted_in_the_plan():
    model = made(decay, [1.0, 1.0])[0]
    state = new_state(model, Options())
    state.nfev = 17
    model.count(state)
    model.count(state)
    assert model.plan.evaluations == 34
    AsWritten(Problem(decay), 2).count(state)              # has nobody to tell
