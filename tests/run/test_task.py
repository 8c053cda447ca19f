"""Arguments of a run are checked once, before anything runs."""

import math

import numpy as np
import pytest

from tether.run.integration import Integration
from tether.run.task import Task


def decay(t, y, yp):
    height, speed = y
    return [yp[0] - speed, yp[1] + height]


def task(**arguments):
    given = {"problem": decay, "t0": 0.0, "y0": [1.0, 0.0], "t_bound": 2.0}
    return Task(**given | arguments)


def test_arguments_become_numbers_and_vectors():
    found = task(y0=[1, 0], yp0=(0, -1), t0=0, t_bound=math.inf)
    assert (found.n, found.t0, found.t_bound) == (2, 0.0, math.inf)
    assert found.y.dtype == found.yp.dtype == float
    np.testing.assert_array_equal(found.yp, [0.0, -1.0])


def test_names_are_read_off_the_function_unless_given():
    assert task().names.variables == ("height", "speed")
    assert task(names=["x", "v"]).names.variables == ("x", "v")


@pytest.mark.parametrize(("wrong", "argument"), [
    ({"t_bound": 0.0}, "t_bound"),
    ({"t0": math.nan}, "t0"),
    ({"y0": [1.0, math.inf]}, "y0"),
    ({"yp0": [1.0]}, "yp0"),
    ({"names": ["x"]}, "names"),
    ({"equation_names": ["x"]}, "equation_names"),
    ({"variable_units": {"weight": "N"}}, "weight"),
    ({"options": {"first_step": 3.0}}, "first_step"),
])
def test_what_is_wrong_is_refused_and_named(wrong, argument):
    with pytest.raises(ValueError, match=argument):
        task(**wrong)


def test_an_integration_takes_over_its_task():
    run = Integration(decay, 0.0, [1.0, 0.0], options={"rtol": 1e-5}, t_bound=2.0)
    assert run.problem is run.task.problem
    assert run.options is run.task.options
    assert (run.options.rtol, run.t_bound, run.n) == (1e-5, 2.0, 2)
    assert run.names is run.task.names
