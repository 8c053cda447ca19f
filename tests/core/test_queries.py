"""Questions asked in the midst of a run leave the state as it was, to the bit."""

import math

import numpy as np
import pytest
from support.memory import changed, memory_of

from tether import Constraint, Options, Problem
from tether._core import codes, constraints, probe, project
from tether.run.drive import Driver
from tether.run.integration import Integration
from tether.run.record import Record
from tether.run.recover import kinds_here

# What a projection finds out about the constraints, and what it works with.
OF_PROJECTIONS = {
    "gy", "g_saved", "scaling", "shift", "row_whole", "row_left", "row_mask", "basis", "triangle",
    "multiplier", "row_order", "projection_size", "drift",
}


def circle(t, y, yp):
    return [yp[0] - y[1], yp[1] + y[0]]


def pendulum(t, y, yp):
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + 9.81,
            x * x + z * z - 1.0]


def energy(t, y):
    return y[0] ** 2 + y[1] ** 2 - 1.0


def slopes_of_energy(t, y):
    return [[2.0 * y[0], 2.0 * y[1]]]


ON_CIRCLE, ON_PENDULUM = [0.0, 1.0], [0.6, -0.8, 0.0, 0.0, 0.0]
CASES = {
    "called": (Problem(circle), ON_CIRCLE, "never"),
    "traced": (Problem(circle), ON_CIRCLE, "auto"),
    "constraint": (Problem(circle, constraints=[energy]), ON_CIRCLE, "never"),
    "constraint with slopes": (
        Problem(circle, constraints=[Constraint(energy, jac=slopes_of_energy)]), ON_CIRCLE, "never",
    ),
    "constraint, traced": (Problem(circle, constraints=[energy]), ON_CIRCLE, "auto"),
    "reduced": (Problem(pendulum), ON_PENDULUM, "auto"),
}
CONSTRAINED = [name for name in CASES if name not in ("called", "traced")]


def midway(name, t_bound=10.0):
    """A run that has taken some steps."""
    problem, y0, trace = CASES[name]
    run = Integration(problem, 0.0, y0, None, Options(trace=trace), t_bound=t_bound)
    for _ in range(25):
        run.step()
    assert run.state.steps >= 25
    return run


def asked(run, question):
    """What a question changes."""
    before = memory_of(run.state)
    question()
    return changed(before, memory_of(run.state))


def elsewhere(run):
    return run.t + 0.1, 1.01 * run.state.y_now + 0.02, 0.9 * run.state.yp_now


@pytest.mark.parametrize("name", CASES)
def test_the_residual_at_a_point(name):
    run = midway(name)
    t, y, yp = elsewhere(run)
    assert asked(run, lambda: probe.residual_at(run.state, t, y, yp)) == set()


@pytest.mark.parametrize("name", CASES)
def test_the_change_that_is_left(name):
    run = midway(name)
    assert asked(run, lambda: probe.next_change(run.state)) == set()
    assert np.all(np.abs(probe.next_change(run.state)[1]) < 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_the_size_of_a_vector(name):
    run = midway(name)
    vector = np.ones(run.state.n)
    assert asked(run, lambda: probe.weighted_size(run.state, vector)) == set()


@pytest.mark.parametrize("name", CONSTRAINED)
def test_what_is_left_of_the_constraints(name):
    run = midway(name)
    t, y, _ = elsewhere(run)
    assert asked(run, lambda: constraints.constraints_at(run.state, t, y)) == set()
    status, values = constraints.constraints_at(run.state, t, y)
    assert status == codes.OK
    assert values[0] == pytest.approx(y[0] ** 2 + y[1] ** 2 - 1.0, rel=1e-9)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_slopes_of_the_constraints(name):
    run = midway(name)
    t, y, _ = elsewhere(run)
    assert asked(run, lambda: constraints.jacobian_of_constraints_at(run.state, t, y)) == set()
    status, slopes = constraints.jacobian_of_constraints_at(run.state, t, y)
    assert status == codes.OK
    np.testing.assert_allclose(slopes[0, :2], 2 * y[:2], rtol=1e-6)


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_nearest_point_on_the_constraints(name):
    run = midway(name)
    t, y, _ = elsewhere(run)
    assert asked(run, lambda: project.projected(run.state, t, y)) <= OF_PROJECTIONS
    status, found = project.projected(run.state, t, y)
    assert status == codes.OK
    assert found[0] ** 2 + found[1] ** 2 == pytest.approx(1.0, abs=1e-12)


def test_a_constraint_that_raises_leaves_everything_as_it_was():
    def fragile(t, y):
        if y[0] > 5.0:
            raise KeyError("too far")
        return y[0] ** 2 + y[1] ** 2 - 1.0

    problem = Problem(circle, constraints=[fragile])
    run = Integration(problem, 0.0, ON_CIRCLE, None, Options(trace="never"), t_bound=10.0)
    run.step()
    far = np.array([6.0, 0.0])

    def ask():
        for query in (constraints.constraints_at, constraints.jacobian_of_constraints_at):
            assert query(run.state, run.t, far)[0] != codes.OK
            assert isinstance(run.state.error, KeyError)
            run.state.error = None

    assert asked(run, ask) == set()


@pytest.mark.parametrize("name", CASES)
def test_the_kinds_of_the_unknowns(name):
    run = midway(name)
    before = run.state.nfev
    assert asked(run, lambda: kinds_here(run)) == set()
    assert run.state.nfev > before                 # what was evaluated is counted


@pytest.mark.parametrize("name", CASES)
def test_the_polynomial_and_the_values_of_a_run(name):
    run = midway(name)
    assert asked(run, lambda: (run.polynomial()(run.t - 1e-3), run.y, run.yp, run.how)) == set()


@pytest.mark.parametrize("name", CONSTRAINED)
def test_the_record_of_constraints(name):
    problem, y0, trace = CASES[name]
    run = Integration(problem, 0.0, y0, None, Options(trace=trace), t_bound=1.0)
    record = Record(run.state, keep_steps=False, t_eval=np.linspace(0.0, 1.0, 7))
    Driver(run, record, [], None, None).run()
    assert asked(run, record.drift) == set()
    assert np.all(np.abs(record.drift()) < 1e-5)
    assert math.isclose(run.t, 1.0)


@pytest.mark.parametrize("name", CASES)
def test_the_comparison_sees_what_a_command_does(name):
    run = midway(name)
    point = elsewhere(run)
    assert asked(run, lambda: probe.move_to(run.state, *point)) >= {"t", "y", "yp", "phi", "weight"}
    assert "matrix 0" in asked(run, lambda: run.state.matrix.get(codes.OF_Y).fill(7.0))
