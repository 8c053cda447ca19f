"""Calls that differ in everything a caller may change between them, against exact solutions."""

import numpy as np
from scipy.linalg import expm

from tether import solve_dae


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def residual(self, t, y, yp):
        return [yp[0] - y[1], yp[1] + self.stiffness * y[0] + shared["damping"] * y[1] - load[0]]


shared, load = {"damping": 0.1}, [0.0]


def with_args(t, y, yp, stiffness=1.0):
    return [yp[0] - y[1], yp[1] + stiffness * y[0] + shared["damping"] * y[1] - load[0]]


def exact(stiffness, y0, t):
    matrix = np.array([[0, 1, 0], [-stiffness, -shared["damping"], load[0]], [0, 0, 0]])
    return (expm(matrix * t) @ [*y0, 1.0])[:2]


def test_no_call_sees_what_an_earlier_one_saw():
    rng = np.random.default_rng(3)
    spring = Spring(2.0)
    for _ in range(150):
        change = rng.integers(6)
        if change == 0:
            shared["damping"] = float(rng.uniform(0, 0.5))
        elif change == 1:
            load[0] = float(rng.normal())
        elif change == 2:
            spring.stiffness = float(rng.uniform(0.5, 3))
        elif change == 3:
            spring = Spring(float(rng.uniform(0.5, 3)))
        end, rtol = float(rng.uniform(0.1, 3)), 10.0 ** -rng.integers(4, 9)
        y0, options = rng.standard_normal(2), {"rtol": rtol, "atol": 1e-3 * rtol}
        if rng.random() < 0.5:
            fun, stiffness = spring.residual, spring.stiffness
        else:
            fun, stiffness = with_args, float(rng.uniform(0.5, 3))
            options["args"] = (stiffness,)
        if rng.random() < 0.3:
            options["t_eval"] = [*np.sort(rng.uniform(0, end, 3)), end]
        if rng.random() < 0.2:
            options["trace"] = "never"
        slopes = [y0[1], load[0] - stiffness * y0[0] - shared["damping"] * y0[1]]
        sol = solve_dae(fun, (0, end), y0, slopes if rng.random() < 0.3 else None, **options)
        assert sol.success, sol.message
        assert sol.t[-1] == end
        allowed = 3000 * rtol * (1 + np.abs(y0).max())
        np.testing.assert_allclose(sol.y[:, -1], exact(stiffness, y0, end), atol=allowed)
