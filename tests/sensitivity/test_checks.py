"""What cannot be differentiated is refused in words."""

import numpy as np
import pytest
from support.derivatives import decay

from tether import solve_dae
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
    with pytest.raises(ValueError, match=r"depends on more than|not the same in every call"):
        solve_dae(decay, (0, 1.2), [1.0], args=(1.0,), events=[event], sensitivity="args")


def test_functions_that_are_called_with_too_many_unknowns(monkeypatch):
    monkeypatch.setattr(checks, "MOST_CALLED", 5)
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
