"""Healthy but hard problems: nothing is said about them."""

import math

import numpy as np
import pytest
from support.helpers import circle, decay, relax

from tether import Cause, gallery, solve_dae


def van_der_pol(mu):
    return solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] - mu * ((1 - y[0] ** 2) * y[1]) + mu * y[0] / 1.0],
        (0, 5), [2.0, -2.0 / 3.0],
    )


def switching(t, y, yp):
    """A right-hand side that jumps ten times a second."""
    return [yp[0] + y[0] - (1.0 if t % 0.2 < 0.1 else -1.0)]


def friction(t, y, yp):
    """Sliding that changes its direction but never sticks."""
    return [yp[0] - y[1], yp[1] + 0.1 * np.sign(y[1]) + y[0] - 5.0 * np.sin(1.3 * t)]


def thermostat():
    """A relay with a gap between its thresholds."""
    def cold(t, y, yp):
        return y[0] - 19.0

    def warm(t, y, yp):
        return y[0] - 21.0

    def turn(on):
        def apply(t, y, yp):
            return [y[0], on]
        return apply

    cold.direction, cold.apply = -1, turn(1.0)
    warm.direction, warm.apply = 1, turn(0.0)
    return solve_dae(
        lambda t, y, yp: [yp[0] + 0.1 * (y[0] - 10.0) - 3.0 * y[1], yp[1]], (0, 300), [15.0, 1.0],
        events=[cold, warm],
    )


def bounces_that_last():
    """A ball that does not come to rest before the end."""
    def floor(t, y, yp):
        return y[0]

    floor.direction = -1
    floor.apply = lambda t, y, yp: [0.0, -0.95 * y[1]]
    return solve_dae(lambda t, y, yp: [yp[0] - y[1], yp[1] + 9.81], (0, 8), [1.0, 0.0],
                     events=floor)


def robertson(scale=1.0):
    def fun(t, y, yp):
        a, b, c = y[0] / scale, y[1] / scale, y[2] / scale
        return [yp[0] / scale + 0.04 * a - 1e4 * b * c,
                yp[1] / scale - 0.04 * a + 1e4 * b * c + 3e7 * b * b, a + b + c - 1.0]

    return solve_dae(fun, (0, 1e8), [scale, 0.0, 0.0], atol=[1e-8 * scale, 1e-12 * scale,
                                                            1e-8 * scale])


def oscillator(frequency):
    w = 2 * math.pi * frequency
    return solve_dae(lambda t, y, yp: [yp[0] / w - y[1], yp[1] / w + y[0]], (0, 10 / frequency),
                     [1.0, 0.0])


def piecewise_by_events():
    """A rate that doubles and halves where the solution passes a threshold."""
    def threshold(t, y, yp):
        return y[0] - 0.5

    threshold.apply = lambda t, y, yp: [y[0], 2.0 if y[1] < 1.5 else 1.0]
    return solve_dae(lambda t, y, yp: [yp[0] + y[1] * y[0], yp[1]], (0, 5), [1.0, 1.0],
                     events=threshold)


def remembers_its_last_call():
    last = [0.0]

    def fun(t, y, yp):
        last[0] = 1.0 - last[0]
        return [yp[0] + y[0] * (1.0 + 1e-15 * last[0])]

    return solve_dae(fun, (0, 5), [1.0], trace="never")


def diode(t, y, yp):
    """A capacitor charged over a diode, whose current is an exponential."""
    voltage, current = y
    return [1e-6 * yp[0] + current,
            current - 1e-14 * (np.exp(voltage / 0.026) - 1.0) + 1e-3 * np.sin(300.0 * t)]


def heavy_pendulum():
    """Index 3 as written, with a mass of 1e9 and its multiplier."""
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, 1e9 * yp[2] + lam * x, 1e9 * yp[3] + lam * z + 9.81e9,
                x * x + z * z - 1.0]

    return solve_dae(fun, (0, 1), [0.6, -0.8, 0.0, 0.0, 0.8 * 9.81e9], form="given")


HEALTHY = {
    "stiff, with kinks": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1e4 * (y[0] - abs(np.sin(3 * t)))], (0, 5), [0.0]),
    "coefficients switched by events": piecewise_by_events,
    "unknowns forty decades apart": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1e-20 * y[1], y[1] - 1e20 * y[0]], (0, 5), [1.0, 1e20],
        atol=[1e-9, 1e11]),
    "fast beside slow": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1e4 * y[1], yp[1] + 1e4 * y[0], yp[2] + y[2]], (0, 0.05),
        [1.0, 0.0, 1.0], t_eval=[0.05]),
    "reaches zero in finite time": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + np.sqrt(abs(y[0])) * np.sign(y[0])], (0, 1.99), [1.0]),
    "spike of a slope": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1.0 / ((t - 0.5) ** 2 + 1e-6)], (0, 1), [0.0]),
    "spike of an algebraic unknown": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1.0, y[1] - 1.0 / ((y[0] - 0.5) ** 2 + 1e-8)], (0, 1),
        [0.0, 1.0 / (0.25 + 1e-8)]),
    "Brusselator": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1 - y[0] ** 2 * y[1] + 4 * y[0],
                          yp[1] - 3 * y[0] + y[0] ** 2 * y[1]], (0, 50), [1.5, 3.0]),
    "the only branch of a cubic": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1, y[1] ** 3 + y[1] - y[0]], (-5, 5),
        [-5.0, float(np.roots([1.0, 0.0, 1.0, 5.0])[np.argmin(
            abs(np.roots([1.0, 0.0, 1.0, 5.0]).imag))].real)]),
    "diode": lambda: solve_dae(diode, (0, 0.02), [0.0, 0.0]),
    "remembers its last call": remembers_its_last_call,
    "heavy pendulum": heavy_pendulum,
    "an event in every step": lambda: solve_dae(
        circle, (0, 10), [1.0, 0.0], events=lambda t, y, yp: math.sin(200 * t)),
    "tiny pendulum": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0],
                          yp[3] + y[4] * y[1] + 9.81e-6, y[0] ** 2 + y[1] ** 2 - 1e-12],
        (0, 1), [1e-6, 0.0, 0.0, 0.0, 0.0]),
    "van der Pol, mild": lambda: van_der_pol(1.0),
    "van der Pol, stiff": lambda: van_der_pol(1e3),
    "van der Pol, very stiff": lambda: van_der_pol(1e6),
    "switching forcing": lambda: solve_dae(switching, (0, 3), [0.0]),
    "dry friction without sticking": lambda: solve_dae(friction, (0, 20), [0.0, 1.0]),
    "thermostat": thermostat,
    "bounces that last": bounces_that_last,
    "Robertson": robertson,
    "Robertson in tiny units": lambda: robertson(1e-12),
    "Robertson in huge units": lambda: robertson(1e12),
    "1 GHz": lambda: oscillator(1e9),
    "1 nHz": lambda: oscillator(1e-9),
    "ten thousand periods": lambda: solve_dae(
        circle, (0, 6e4), [1.0, 0.0], rtol=1e-4, atol=1e-6, t_eval=[6e4]),
    "zero solution": lambda: solve_dae(decay, (0, 100), [0.0]),
    "constant solution": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[1]], (0, 1e6), [3.0, 0.0]),
    "at rest, then moved": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[0] - max(t - 1.0, 0.0) ** 2], (0, 3), [0.0]),
    "backward": lambda: solve_dae(circle, (0, -30), [1.0, 0.0]),
    "decay over sixty decades": lambda: solve_dae(decay, (0, 140), [1.0], atol=1e-30),
    "growth over forty decades": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[0]], (0, 100), [1.0]),
    "narrow layer": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - 1e4 / np.cosh(1e4 * (t - 0.5)) ** 2], (0, 1), [-1.0],
        max_step=1e-2),
    "nearly a pole": lambda: solve_dae(
        lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 0.999), [1.0]),
    "nearly a fold": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + 1.0, y[1] ** 2 - y[0]], (0, 0.9999), [1.0, 1.0]),
    "nearly singular": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[0] - y[1] + 1e-9 * (y[1] - 1)], (0, 5), [1.0, 1.0]),
    "algebraic loop": lambda: solve_dae(
        lambda t, y, yp: [yp[0] + y[1], y[1] - np.tanh(y[0] + 0.9 * y[1])], (0, 5), [1.0, 1.0],
        options={"accept_projected_start": True}),
    "index 2": lambda: solve_dae(
        lambda t, y, yp: [yp[1] - y[0], y[1] - np.sin(t)], (0, 10), [1.0, 0.0]),
    "index 2 as written": lambda: solve_dae(
        lambda t, y, yp: [yp[1] - y[0], y[1] - np.sin(t)], (0, 10), [1.0, 0.0], form="given"),
    "loose tolerances": lambda: solve_dae(relax, (0, 50), [1.5, 1.5], rtol=1e-2, atol=1e-2),
    "tight tolerances": lambda: solve_dae(relax, (0, 5), [1.5, 1.5], rtol=1e-12, atol=1e-13),
    "order one": lambda: solve_dae(circle, (0, 1), [1.0, 0.0], max_order=1, rtol=1e-4),
    "late start": lambda: solve_dae(circle, (1e6, 1e6 + 20), [1.0, 0.0]),
    "wrong but harmless Jacobian": lambda: solve_dae(
        decay, (0, 1), [1.0], jac=(np.array([[1.1]]), np.array([[1.0]]))),
    "matched start, assumed": lambda: solve_dae(
        relax, (0, 5), [1.5, 1.5], [-1.5, -0.5], start="assume"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy(name):
    sol = HEALTHY[name]()
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE, str(sol.diagnosis)
    assert sol.warnings == ()
    assert str(sol.diagnosis) == "Nothing is wrong."


@pytest.mark.parametrize("rtol", [1e-4, 1e-7])
@pytest.mark.parametrize("name", gallery.names("classic"))
def test_gallery_is_healthy(name, rtol):
    problem = gallery.get(name)
    sol = solve_dae(problem.fun, problem.t_span, problem.y0, problem.yp0, rtol=rtol,
                    atol=problem.atol(rtol), t_eval=problem.t_span)
    assert sol.success, sol.message
    assert sol.diagnosis.cause == Cause.NONE, str(sol.diagnosis)
