"""Models and data for tests of fits."""

import numpy as np

from tether import solve_dae


def decay(t, y, yp, rate):
    return [yp[0] + rate * y[0]]


def line(t, y, yp, slope):
    return [yp[0] - slope]


def enzyme(t, y, yp, binding, release, catalysis, total, feed):
    substrate, complex_, product, free = y  # noqa: RUF059 (a name for the data)
    bound = binding * free * substrate - release * complex_
    return [
        yp[0] + bound - feed,
        yp[1] - bound + catalysis * complex_,
        yp[2] - catalysis * complex_,
        free + complex_ - total,
    ]


def pendulum(t, y, yp, mass, height, friction, drag, wind):
    """A rod from (0, height) to the bob, which starts at (1, 0): index 3."""
    x, z, u, w, force = y
    speed = u * u + w * w
    return [
        yp[0] - u,
        yp[1] - w,
        mass * yp[2] + force * x + friction * u + drag * speed * u - wind,
        mass * yp[3] + force * (z - height) + mass * 9.81 + friction * w + drag * speed * w,
        x * x + (z - height) ** 2 - 1.0 - height**2,
    ]


ENZYME = {"binding": 1.0, "release": 0.5, "catalysis": 2.0, "total": 1.0, "feed": 0.1}
ENZYME_START = [10.0, 0.0, 0.0, 1.0]
PENDULUM = {"mass": 1.2, "height": 0.3, "friction": 0.05, "drag": 0.02, "wind": 0.3}
PENDULUM_START = [1.0, 0.0, 0.0, 0.0, 0.0]


def exact(fun, t, y0, args, **options):
    """Return a solution at times, to eleven digits."""
    return solve_dae(
        fun, (0.0, t[-1]), y0, t_eval=t, args=tuple(args), rtol=1e-11, atol=1e-13, start="quiet",
        **options,
    )


def enzyme_data(t, noise=0.0, seed=0, names=("substrate", "product")):
    sol = exact(enzyme, t, ENZYME_START, ENZYME.values())
    rng = np.random.default_rng(seed)
    return {"t": t} | {
        name: sol[name] + noise * rng.standard_normal(len(t)) for name in names
    }
