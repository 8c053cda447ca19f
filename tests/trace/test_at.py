"""`np.add.at` and its like, element by element."""

import numpy as np

from tether.trace import trace, verify

FROM, TO = np.array([0, 1, 2, 2, 0]), np.array([1, 2, 0, 1, 2])


def test_elements_are_changed_one_after_the_other():
    def fun(t, y, yp):
        current = np.sinh(y[FROM] - y[TO])
        r = yp.copy()
        np.add.at(r, FROM, current)
        np.subtract.at(r, TO, current)
        np.negative.at(r, [1])
        np.multiply.at(r, [2, 2], y[0])
        return r

    traced = trace(fun, 3)
    verify(traced, fun, 0.0, [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    assert set(zip(traced.f_yp.rows, traced.f_yp.cols, strict=True)) == {(0, 0), (1, 1), (2, 2)}
