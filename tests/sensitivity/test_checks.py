"""What cannot be differentiated is refused in words."""

import numpy as np
import pytest
from support.derivatives import FINE, decay

from tether import Constraint, solve_dae
from tether.sensitivity import checks


@pytest.mark.parametrize("fun", [
    lambda t, y, yp, a: [yp[0] + int(a) * y[0]],
    lambda t, y, yp, a: [yp[0] + a * y[int(a)]],
    lambda t, y, yp, a: [yp[0] + float(str(a)) * y[0]],
])
def test_parameters_that_serve_as_plain_numbers(fun):
    with pytest.raises(ValueError, match="needs floats of args as plain numbers"):
        solve_dae(fun, (0, 1), [1.0], args=(0.7,), sensitivity="args")


def test_floats_that_events_read_as_well():
    def made(a):
        def event(t, y, yp):
            return y[0] - 0.3 * a

        return (lambda t, y, yp: [yp[0] + a * y[0]]), event

    fun, event = made(1.5)
    with pytest.raises(ValueError, match="a is read outside of args, by event event too"):
        solve_dae(fun, (0, 1), [1.0], events=[event], sensitivity=["a"])


def test_floats_outside_of_args_of_a_called_function():
    class Held:
        k = 2.0

        def fun(self, t, y, yp):
            return [yp[0] + self.k * y[0]]

    held = Held()
    held.k = 1.5
    with pytest.raises(ValueError, match=r"no parameter|called, not traced"):
        solve_dae(held.fun, (0, 1), [1.0], sensitivity=["self.k"], trace="never")


def test_floats_that_events_change():
    class Held:
        def __init__(self):
            self.k = 1.5

        def fun(self, t, y, yp, c):
            return [yp[0] + self.k * y[0] - c]

    held = Held()

    def event(t, y, yp, c):
        return y[0] - 0.5

    def faster(t, y, yp, c):
        held.k *= 2.0
        return y + 0.2

    event.apply, event.direction = faster, -1
    with pytest.raises(ValueError, match="were changed during the run"):
        solve_dae(held.fun, (0, 1), [1.0], args=(0.0,), events=[event], sensitivity="args")


def test_what_apply_gives_must_not_depend_on_more():
    calls = []

    def event(t, y, yp, k):
        return y[0] - 0.5

    def drawn(t, y, yp, k):
        calls.append(1)
        return [y[0] + 0.3 * len(calls)]

    event.apply = drawn
    with pytest.raises(ValueError, match=r"depends on more than|not return the same in every call"):
        solve_dae(decay, (0, 1.2), [1.0], args=(1.0,), events=[event], sensitivity="args")


def test_functions_that_are_called_with_too_many_unknowns(monkeypatch):
    monkeypatch.setattr(checks, "MAX_CALLED_UNKNOWNS", 5)
    with pytest.raises(ValueError, match="has 6 unknowns, more than 5"):
        solve_dae(
            lambda t, y, yp, k: yp + k * y, (0, 1), np.ones(6), args=(1.0,), sensitivity="args",
            trace="never",
        )


def test_kinks_in_functions_that_are_called():
    """Differences across a jump would be anything."""
    def fun(t, y, yp, k, c):
        return [yp[0] + (k if y[0] - 0.2 * t > c else 0.2) * y[0]]

    with pytest.raises(ValueError, match="has a kink or a jump"):
        solve_dae(
            fun, (0, 2), [1.0], args=(0.7, 0.5), sensitivity="args", trace="never", rtol=1e-8,
            atol=1e-10,
        )


def test_cancellation_in_apply_is_no_memory():
    """What is zero but for round-off may come out differently when it is traced."""
    normal = np.array([0.3, 1.0]) / np.sqrt(1.09)

    def event(t, y, yp, e):
        return 0.3 * y[0] + y[1]

    def reflected(t, y, yp, e):
        v = y[2:]
        across = np.dot(normal, v)
        along = v - normal * across            # nothing is left of it
        return np.concatenate([y[:2], along * 1e6 - e * across * normal])

    event.apply, event.direction = reflected, -1
    start = np.array([0.3, 1.0])
    sol = solve_dae(
        lambda t, y, yp, e: [yp[0] - y[2], yp[1] - y[3], yp[2], yp[3]], (0, 1.5),
        [*start, *(-2.0 * normal)], args=(0.5,), events=[event], sensitivity=["e"], t_eval=[1.5],
        rtol=1e-8, atol=1e-10,
    )
    hit = np.linalg.norm(start) / 2.0
    assert np.allclose(sol.sens[0, 2:, 0], 2.0 * normal, atol=1e-6)
    assert np.allclose(sol.sens[0, :2, 0], 2.0 * normal * (1.5 - hit), atol=1e-6)


def plain(x):
    """Return a number that a trace does not see through."""
    return float(np.float64(str(float(x))))


def growing(t, y, yp, k, c):
    """Called, since a trace does not see through `plain`."""
    x, z = (plain(value) for value in y)
    return [plain(yp[0]) + k * x * z, z - c * x**2]


@pytest.mark.parametrize("given", [0.0, 0.99, 1.0])
def test_a_jacobian_that_is_an_approximation(given):
    """It serves for the run, but derivatives made with it would be wrong."""
    def jac(t, y, yp, k, c):
        return [[k * y[1], given * k * y[0]], [-2 * c * y[0], 1.0]], [[1.0, 0.0], [0.0, 0.0]]

    run = {"args": (0.7, 0.5), "jac": jac, **FINE}
    assert solve_dae(growing, (0, 2), [1.0, 0.5], **run).success
    if given < 1.0:
        with pytest.raises(ValueError, match="jac is not the derivative of its function"):
            solve_dae(growing, (0, 2), [1.0, 0.5], sensitivity="args", **run)
        return
    sol = solve_dae(growing, (0, 2), [1.0, 0.5], sensitivity="args", **run)
    # x' = -k c x^3
    x = 1.0 / np.sqrt(1.0 + 2.0 * 0.7 * 0.5 * sol.t)
    assert np.allclose(sol.sens[0, 0], -0.5 * sol.t * x**3, atol=1e-6)


def test_a_jacobian_of_a_constraint_that_is_an_approximation():
    def circling(t, y, yp, w):
        return [yp[0] - w * plain(y[1]), yp[1] + w * plain(y[0])]

    circle = Constraint(
        lambda t, y, w: plain(y[0]) ** 2 + y[1] ** 2 - 1, jac=lambda t, y, w: [2 * y[0], y[1]]
    )
    with pytest.raises(ValueError, match="jac of a constraint is not the derivative"):
        solve_dae(
            circling, (0, 1), [0.6, 0.8], args=(1.3,), constraints=circle, sensitivity="args",
            **FINE,
        )
