"""Functions that work on whole arrays are called where a program would be slower."""

import numpy as np
import pytest

from tether import Problem
from tether.plan.whole_arrays import works_on_arrays


def by_slices(t, y, yp):
    u = np.concatenate([[0.0], y, [0.0]])
    return yp - (u[2:] - 2 * u[1:-1] + u[:-2])


def in_place(t, y, yp, out):
    np.multiply(y, y, out=out)
    out += yp


def by_numbers(t, y, yp):
    return [slope + value * value for slope, value in zip(yp, y, strict=True)]


def in_short_arrays(t, y, yp):
    return np.concatenate([yp[k:k + 10] * y[k:k + 10] for k in range(0, len(y), 10)])


def on_a_grid(t, y, yp):
    u = np.zeros((42, 52), dtype=y.dtype)
    u[1:-1, 1:-1] = y.reshape(40, 50)
    return yp - (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1]).reshape(-1)


def by_numbers_from_an_array(t, y, yp):
    return yp - np.array([y[k] * y[k - 1] for k in range(len(y))])


def by_a_list(t, y, yp):
    return yp - np.array([value * value for value in y.tolist()])


def raising(t, y, yp):
    raise ArithmeticError


@pytest.mark.parametrize(("fun", "expected"), [
    (by_slices, True), (in_place, True), (by_numbers, False), (in_short_arrays, False),
    (on_a_grid, True), (by_numbers_from_an_array, False), (by_a_list, False), (raising, False),
])
def test_what_is_done_with_whole_arrays_is_told_from_loops(fun, expected):
    y = np.ones(2000)
    assert works_on_arrays(Problem(fun), 0.0, y, y) is expected
    assert np.array_equal(y, np.ones(2000))
