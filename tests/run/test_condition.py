"""The condition number of the iteration matrix."""

import math

import numpy as np
from support.high_index import PENDULUM, GivenOptions

from tether import Bdf
from tether.run.condition import condition_number


def test_condition_number_is_that_of_the_factored_matrix():
    for scaling in ("none", "rows", "kinds"):
        bdf = Bdf(
            PENDULUM.fun, 0.0, PENDULUM.y0, PENDULUM.yp0, GivenOptions(scaling=scaling), t_bound=1.0
        )
        assert math.isnan(bdf.condition())
        for _ in range(20):
            bdf.step()
        s = bdf._integration.state
        matrix = (s.array("fy") + s.cj_factored * s.array("fyp")).reshape(5, 5).T
        if scaling != "none":
            matrix = s.array("row_scale")[:, None] * matrix * s.array("column_scale")
        exact = np.linalg.cond(matrix, 1)
        assert 0.3 * exact < condition_number(s) <= 1.01 * exact
        assert bdf.condition() == condition_number(s)
