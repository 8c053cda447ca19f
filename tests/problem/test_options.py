"""Options: what is passed, what is left out, and which of both wins."""
import inspect
import math

import numpy as np
import pytest
from support.front_door import SPAN, assert_same, van_der_pol
from support.helpers import RELAX_START, circle, decay, relax

from tether import Bdf, Options, Status, solve_dae
from tether.problem.options import DEFAULTS, Default


@pytest.mark.parametrize("options", [{"rtol": 1e-3}, Options(rtol=1e-3)])
def test_a_tolerance_that_is_passed_wins_over_options(options):
    usual = solve_dae(decay, (0, 1), [1.0])
    passed = solve_dae(decay, (0, 1), [1.0], rtol=1e-6, options=options)
    left_out = solve_dae(decay, (0, 1), [1.0], options=options)
    assert passed.stats.steps == usual.stats.steps
    assert left_out.stats.steps < usual.stats.steps


@pytest.mark.parametrize(
    ("name", "other", "passed"),
    [("form", "given", "auto"), ("trace", "never", "auto"), ("max_order", 1, 6),
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


@pytest.mark.parametrize("first_step", [1e-8, 1e-4, 0.01])
def test_first_step(first_step):
    sol = solve_dae(decay, (0, 1), [1.0], first_step=first_step, rtol=1e-2, atol=1e-2)
    assert sol.t[1] - sol.t[0] == pytest.approx(first_step, rel=1e-12)
    backward = solve_dae(decay, (1, 0), [1.0], first_step=first_step, rtol=1e-2, atol=1e-2)
    assert backward.t[0] - backward.t[1] == pytest.approx(first_step, rel=1e-6)


def test_first_step_of_the_whole_interval():
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 1), [0.0], first_step=1.0)
    assert sol.t.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("max_step", [0.01, 0.25])
def test_max_step(max_step):
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0], (0, 3), [0.0], max_step=max_step)
    assert sol.success
    assert np.max(np.diff(sol.t)) <= max_step * (1 + 1e-12)
    assert np.max(np.diff(sol.t)) > 0.9 * max_step
    assert len(sol.t) - 1 >= 3 / max_step


@pytest.mark.parametrize("max_order", [1, 2, 3, 4, 5, 6])
def test_max_order(max_order):
    sol = solve_dae(circle, (0, 20), [1.0, 0.0], max_order=max_order, rtol=1e-7, atol=1e-7,
                    max_steps=3000)
    assert sol.stats.order.max() == max_order
    assert sol.stats.order[0] == 1


def test_max_order_pays():
    steps = [solve_dae(circle, (0, 5), [1.0, 0.0], max_order=k).stats.steps for k in (1, 2, 5)]
    assert steps[0] > 5 * steps[1]
    assert steps[1] > 1.5 * steps[2]


@pytest.mark.parametrize("option", [{"controller": "dassl"}, {"error_norm": "rms"},
                                    {"newton_norm": "rms"}, {"newton_tolerance": 0.01}])
def test_other_options_reach_the_core(option):
    usual = solve_dae(van_der_pol, (0, 100), [2.0, 0.0])
    sol = solve_dae(van_der_pol, (0, 100), [2.0, 0.0], options=option)
    assert sol.success
    assert sol.nfev != usual.nfev
    np.testing.assert_allclose(sol.y[:, -1], usual.y[:, -1], rtol=1e-2)


def test_arguments_override_options():
    tight = solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, max_order=3)
    for options in (Options(rtol=1e-3, max_order=3), {"rtol": 1e-3, "max_order": 3}):
        assert_same(solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, options=options), tight)
    loose = solve_dae(relax, SPAN, RELAX_START, rtol=1e-3)
    assert_same(solve_dae(relax, SPAN, RELAX_START, options={"rtol": 1e-3}), loose)


def test_tolerance_per_component():
    """A component that asks for less is solved with less work."""
    both = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=0, atol=1e-9)
    same = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=[0, 0], atol=[1e-9, 1e-9])
    one = solve_dae(circle, (0, 20), [1.0, 0.0], rtol=0, atol=[1e-3, 1e-3])
    assert_same(same, both)
    assert one.stats.steps < 0.6 * both.stats.steps
    mixed = solve_dae(lambda t, y, yp: [*circle(t, y, yp), yp[2] - 50 * np.cos(50 * t)], (0, 3),
                      [1.0, 0.0, 0.0], rtol=0, atol=[1e-8, 1e-8, 1e3])
    assert np.max(np.abs(mixed.y[0] - np.cos(mixed.t))) < 1e-5
    assert mixed.stats.steps < 200
