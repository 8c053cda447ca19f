"""Equations that are not linear in y'."""

import numpy as np
import pytest

from tether import consistent_start, solve_dae
from tether.base.reason import Kind


def squared(t, y, yp):
    return [yp[0] ** 2 - 4]


def product(t, y, yp):
    return [yp[0] * yp[1] - 2, yp[0] - yp[1] - 1]


def beside_others(t, y, yp):
    return [yp[0] + y[0], yp[1] ** 2 - y[0]]


@pytest.mark.parametrize(("fun", "y0", "unknowns"), [
    (squared, [0.0], (0,)), (product, [0.0, 0.0], (0, 1)), (beside_others, [1.0, 0.0], (1,)),
])
def test_asks_for_slopes(fun, y0, unknowns):
    sol = solve_dae(fun, (0, 1), y0)
    assert not sol.success
    assert "pass yp0" in sol.message
    assert "determines nothing" not in sol.message
    for found in (sol.start, consistent_start(fun, 0.0, y0)):
        assert found.reason.kind is Kind.SLOPES_NOT_UNIQUE
        assert found.reason.columns == unknowns


def test_asks_for_slopes_of_a_function_that_is_called():
    sol = solve_dae(product, (0, 1), [0.0, 0.0], trace="never")
    assert "pass yp0" in sol.message


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("guess", [1.5, -1.5, 30.0])
def test_slopes_that_are_guessed_tell_the_solutions_apart(guess, trace):
    sol = solve_dae(squared, (0, 1), [0.0], [guess], trace=trace)
    assert sol.y[0, -1] == pytest.approx(2.0 * np.sign(guess))


def test_equation_that_determines_nothing_is_told_as_before():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0], 0.0 * y[1]], (0, 1), [1.0, 0.0])
    assert "yp0" not in sol.message
