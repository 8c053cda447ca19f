"""Nilpotency 3 (P82 section 3)."""

import math

import numpy as np
import pytest

from tether import solve_dae
from tether.studies import nilpotency


@pytest.mark.parametrize("ratio", nilpotency.RATIOS)
def test_error_after_a_change_of_step_is_that_of_the_formula(ratio):
    expected = nilpotency.predicted_error(ratio)
    errors = [abs(nilpotency.error_after_change(ratio, h) - expected) for h in (1e-3, 1e-4)]
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)


def test_constant_step_recovers_after_two_steps():
    for h in nilpotency.STEPS:
        errors = nilpotency.constant_step_errors(h)
        assert errors[0] == pytest.approx(math.sin(0.5) / 2, rel=0.1)
        assert np.all(errors[1:] < 2 * h)


def test_estimate_tends_to_a_constant():
    steps = nilpotency.estimates()
    assert steps[-1].local == pytest.approx(steps[-2].local, rel=0.02)
    assert steps[-1].local > 0.2
    assert steps[-1].error > 100


def test_nilpotency_3_is_refused_and_says_why():
    message = nilpotency.refusal()
    for words in ("index is 3", "y[0]", "when the step changes", "Differentiate the constraint"):
        assert words in message


def test_given_kinds_are_trusted_at_ones_own_risk():
    """At order 2 and above a change of the step leaves an error that shrinks with it."""
    found = nilpotency.trusting_run("auto", 1e-6)
    assert found.y1_after_change < 1e-3
    assert found.y1_elsewhere < 1e-5
    assert found.y2 < 1e-6
    assert found.y3 < 1e-12


def test_given_kinds_at_order_one_are_warned_about():
    sol = solve_dae(
        nilpotency.residual, nilpotency.SPAN, nilpotency.exact(0.5), form="given", max_order=1,
        var_index=nilpotency.VAR_INDEX, rtol=1e-3, atol=1e-3,
    )
    off = np.abs(sol.y[0] - nilpotency.exact(sol.t)[0])
    assert sol.success
    assert off.max() > 0.1
    assert any("errors of y[0], y[1] could not be controlled" in text for text in sol.warnings)
