"""Problems of which many members are solved."""

import numpy as np

from tether import solve_dae

MACHINE = {"backend": "machine"}               # as ensembles run


def decay(t, y, yp, rate):
    return [yp[0] + rate * y[0]]


def robertson(t, y, yp, k1, k2, k3):
    a, b, c = y
    return [yp[0] + k1 * a - k2 * b * c, yp[1] - k1 * a + k2 * b * c + k3 * b * b, a + b + c - 1.0]


def pendulum(t, y, yp, g, length):
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, yp[2] + tension * x, yp[3] + tension * z + g,
        x * x + z * z - length * length,
    ]


def oscillator(t, y, yp, stiffness):
    x, v = y
    return [yp[0] - v, yp[1] + stiffness * x]


def energy(t, y, stiffness):
    return 0.5 * y[1] ** 2 + 0.5 * stiffness * y[0] ** 2


def ball(t, y, yp, g):
    return [yp[0] - y[1], yp[1] + g]


def ground(t, y, yp, g):
    return y[0]


ground.direction = -1
ground.terminal = True


def rates(count):
    factors = 1.0 + 0.3 * np.random.default_rng(5).random((count, 3))
    return tuple(np.array([0.04, 1e4, 3e7])[:, None] * factors.T)


def alone(fun, t_span, y0, args, **settings):
    """Solve one member by itself, as an ensemble does it."""
    return solve_dae(fun, t_span, y0, args=args, options=MACHINE, start="quiet", **settings)


def assert_same(result, i, sol):
    """Compare a member to the last bit with a run of its own."""
    assert result.status[i] == sol.status
    if result.t.size == 1 and result.t[0] != sol.t[0]:
        expected = sol.y[:, -1:], sol.yp[:, -1:]
    else:
        expected = sol.y, sol.yp
    reached = expected[0].shape[1]
    np.testing.assert_array_equal(result.y[i][:, :reached], expected[0])
    np.testing.assert_array_equal(result.yp[i][:, :reached], expected[1])
    assert np.isnan(result.y[i][:, reached:]).all()
    if sol.t_events is not None:
        member = result[i]
        for name in ("t_events", "y_events", "yp_events"):
            for found, wanted in zip(getattr(member, name), getattr(sol, name), strict=True):
                np.testing.assert_array_equal(found, wanted)
    for name in ("steps", "nfev", "njev", "nlu", "iterations", "projections"):
        assert result.stats[name][i] == getattr(sol.stats, name), name
