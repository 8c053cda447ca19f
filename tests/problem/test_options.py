"""Options: what is passed, what is left out, and which of both wins."""

import inspect
import math

import pytest

from tether import Bdf, Options, Status, solve_dae
from tether.problem.options import DEFAULTS, Default


def decay(t, y, yp):
    return [yp[0] + y[0]]


@pytest.mark.parametrize("options", [{"rtol": 1e-3}, Options(rtol=1e-3)])
def test_a_tolerance_that_is_passed_wins_over_options(options):
    usual = solve_dae(decay, (0, 1), [1.0])
    passed = solve_dae(decay, (0, 1), [1.0], rtol=1e-6, options=options)
    left_out = solve_dae(decay, (0, 1), [1.0], options=options)
    assert passed.stats.steps == usual.stats.steps
    assert left_out.stats.steps < usual.stats.steps


@pytest.mark.parametrize(
    ("name", "other", "passed"),
    [("form", "given", "auto"), ("trace", "never", "auto"), ("max_order", 1, 5),
     ("max_steps", 3, None), ("max_step", 1e-2, math.inf), ("first_step", 1e-9, None)],
)
def test_what_is_passed_wins_though_it_is_the_default(name, other, passed):
    usual = solve_dae(decay, (0, 1), [1.0])
    sol = solve_dae(decay, (0, 1), [1.0], options={name: other}, **{name: passed})
    assert (sol.stats.steps, sol.how, sol.status) == (usual.stats.steps, usual.how, usual.status)


def test_the_signature_shows_the_defaults():
    for name, parameter in inspect.signature(solve_dae).parameters.items():
        if isinstance(parameter.default, Default):
            assert repr(parameter.default) == repr(DEFAULTS[name])


def test_bdf_keeps_the_limit_of_steps():
    bdf = Bdf(decay, 0.0, [1.0], options={"max_steps": 5}, t_bound=10.0)
    while bdf.step() == Status.RUNNING:
        pass
    assert (bdf.status, bdf.stats.steps) == (Status.MAX_STEPS, 5)
    assert bdf.step() == Status.MAX_STEPS
    assert bdf.stats.steps == 5


def test_bdf_keeps_the_limit_of_seconds():
    bdf = Bdf(decay, 0.0, [1.0], options={"max_seconds": 1e-9}, t_bound=10.0)
    assert bdf.step() == Status.MAX_SECONDS
