"""A pendulum of index 3 with friction, and what was measured of it, for fits."""

import numpy as np

from tether import solve_dae

TIMES = np.linspace(0.1, 1.5, 15)
START = [1.0, 0.0, 0.0, 0.0, 0.0]
TRUE = {"gravity": 9.81, "friction": 0.7}
GUESS = {"gravity": 9.0, "friction": 0.2}
OPTIONS = {"t_eval": TIMES, "rtol": 1e-8, "atol": 1e-10}
SPAN = (0.0, 1.5)


def swing(t, y, yp, p):
    x, z, u, w, tension = y
    return [
        yp[0] - u, yp[1] - w, yp[2] + tension * x + p["friction"] * u,
        yp[3] + tension * z + p["friction"] * w + p["gravity"], x * x + z * z - 1.0,
    ]


def measured():
    return solve_dae(swing, SPAN, START, args=(TRUE,), **OPTIONS).y[:2]
