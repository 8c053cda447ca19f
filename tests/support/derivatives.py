"""Systems and comparisons for the tests of derivatives of solutions."""

import numpy as np

from tether import solve_dae, vjp

TIGHT = {"rtol": 1e-11, "atol": 1e-13}
FINE = {"rtol": 1e-8, "atol": 1e-10}


def differences(values, x, step):
    """Differentiate values(x) by every number of x, by differences of fourth order."""
    found = []
    for j in range(len(x)):
        def moved(places, j=j):
            changed = np.array(x, float)
            changed[j] += places * step
            return values(changed)

        found.append((8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step))
    return np.array(found)


def largest_error(found, right):
    """Largest difference of derivatives, of each parameter and unknown by its own size.

    What is smaller than a hundredth of the largest is compared with that: differences have noise.
    """
    size = np.max(np.abs(right), axis=-1, keepdims=True)
    return float(np.max(np.abs(found - right) / np.maximum(size, 1e-2 * size.max())))


def adjoint_error(fun, t_span, y0, names, **options):
    """Largest difference between vjp and sens for some scalars, relative to their terms."""
    sol = solve_dae(fun, t_span, y0, sensitivity=names, **options)
    taped, pullback = vjp(fun, t_span, y0, wrt=names, **options)
    assert np.array_equal(taped.y, sol.y)
    weights = np.random.default_rng(3).standard_normal((3, *sol.y.shape))
    weights /= np.abs(sol.y).max(axis=1, initial=0.0)[:, None] + 1e-3
    right = np.einsum("snt,pnt->sp", weights, sol.sens)
    terms = np.einsum("snt,pnt->sp", np.abs(weights), np.abs(sol.sens))
    error = np.abs(pullback(weights) - right) / (terms + 1e-6 * terms.max() + 1e-9)
    return float(error.max())


# --- systems ------------------------------------------------------------------------------------


def decay(t, y, yp, k):
    """y = y0 exp(-k t)."""
    return [yp[0] + k * y[0]]


def relaxing(t, y, yp, k, c):
    """An algebraic unknown that feeds back."""
    return [yp[0] + k * y[0] - y[1], y[1] - c * y[0] ** 2]


def falling(t, y, yp, g, e):
    """A ball in the air; `bouncing` makes the floor."""
    return [yp[0] - y[1], yp[1] + g]


def bouncing(terminal=False):
    """An event: the ball hits the floor and keeps a share e of its speed."""
    def floor(t, y, yp, g, e):
        return y[0]

    def rebound(t, y, yp, g, e):
        return [0.0 * y[0], -e * y[1]]

    floor.apply, floor.direction, floor.terminal = rebound, -1, terminal
    return floor


def pendulum(t, y, yp, g, length, m, e, wall):
    """A pendulum in Cartesian coordinates, index 3."""
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, m * yp[2] + tension * x, m * yp[3] + tension * z + m * g,
        x * x + z * z - length**2,
    ]


def at_wall():
    """An event: the pendulum hits a wall, and comes back with a share e of its speed."""
    def hit(t, y, yp, g, length, m, e, wall):
        return y[0] - wall

    def back(t, y, yp, g, length, m, e, wall):
        return [y[0], y[1], -e * y[2], -e * y[3], y[4]]

    hit.apply, hit.direction = back, -1
    return hit


def slider_crank(t, y, yp, r, rod, m1, m2, torque, k):
    """A crank with a mass at its pin, a rod without one, and a slider on a spring: index 3."""
    x, z, s, u, v, w, on_crank, on_rod = y
    turn = torque / r**2
    return [
        yp[0] - u, yp[1] - v, yp[2] - w,
        m1 * yp[3] + turn * z + on_crank * x + on_rod * (x - s),
        m1 * yp[4] - turn * x + on_crank * z + on_rod * z,
        m2 * yp[5] + k * s - on_rod * (x - s),
        x * x + z * z - r * r,
        (x - s) ** 2 + z * z - rod * rod,
    ]


def stick_slip(t, y, yp, m, k, mu, belt):
    """A block on a spring, dragged by a belt with dry friction."""
    x, v = y
    return [yp[0] - v, m * yp[1] + k * x + mu * np.sign(v - belt)]


def amplifier(t, y, yp, beta, supply, r, ts, high):
    """A transistor amplifier of five nodes whose source is switched on at ts (index 1)."""
    y1, y2, y3, y4, y5 = y
    source = high * np.sin(200 * np.pi * t) if t > ts else 0.0
    gate = beta * (np.exp((y2 - y3) / 0.026) - 1)
    c1, c2, c3 = 1e-6, 2e-6, 3e-6
    return [
        (source - y1) / r + c1 * (yp[1] - yp[0]),
        supply / 9000 - y2 * (2 / 9000) + c1 * (yp[0] - yp[1]) - 0.01 * gate,
        gate - y3 / 9000 - c2 * yp[2],
        (supply - y4) / 9000 + c3 * (yp[4] - yp[3]) - 0.99 * gate,
        -y5 / 9000 + c3 * (yp[3] - yp[4]),
    ]


def bridge(t, y, yp, r, c, top, omega):
    """A rectifier with two ideal diodes, each of which conducts or blocks."""
    v, i, j = y
    e = top * np.sin(omega * t)
    return [
        c * yp[0] + v / r - i - j, np.minimum(i, v + 0.01 * i - e), np.minimum(j, v + 0.01 * j + e),
    ]
