"""A mass that lands on one of two walls, with the force of the other at rest."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tether import solve_dae


def floor(t):
    return 0.18 * np.sin(1.07 * t)


def push(t):
    return 8.6 * np.sin(5.6 * t + 4.84)


def cage(t, y, yp):
    g, f, x, v = y
    return [yp[2] - v, yp[3] - push(t) + 0.32 * v - f + g, min(x - floor(t), f), min(0.83 - x, g)]


def expected(start, t, t_end):
    """Fly from wall to wall: each takes away the speed against it and lets the mass go at once."""
    def landing(t, z):
        return z[0] - floor(t)

    def ceiling(t, z):
        return 0.83 - z[0]

    landing.terminal = ceiling.terminal = True
    landing.direction = ceiling.direction = -1
    z, hits = start, 0
    while t < t_end:
        flight = solve_ivp(lambda t, z: [z[1], push(t) - 0.32 * z[1]], (t, t_end), z,
                           events=[landing, ceiling], rtol=1e-12, atol=1e-13, method="DOP853")
        t, z = flight.t[-1], flight.y[:, -1]
        if len(flight.t_events[0]):
            z, hits = [floor(t), 0.18 * 1.07 * np.cos(1.07 * t)], hits + 1
            assert push(t) - 0.32 * z[1] > -(1.07**2) * floor(t)
        elif len(flight.t_events[1]):
            z, hits = [0.83, 0.0], hits + 1
            assert push(t) < 0
    assert hits
    return z


@pytest.mark.parametrize("max_order", [4, 5])
@pytest.mark.parametrize("rtol", [1e-6, 1.5e-9])
def test_a_mass_lands_while_the_force_of_the_other_wall_is_zero(rtol, max_order):
    sol = solve_dae(cage, (0.1, 1.2), [0, 0, 0.4375, -0.7566], rtol=rtol, atol=rtol / 5,
                    max_order=max_order)
    assert sol.success, sol.message
    wanted = expected([0.4375, -0.7566], 0.1, 1.2)
    np.testing.assert_allclose(sol.y[2:, -1], wanted, atol=100 * rtol)
    np.testing.assert_allclose(sol.y[:2, -1], 0, atol=1e-9)
