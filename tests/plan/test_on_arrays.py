"""Runs of functions of whole arrays: which they are, and that they are right."""

import numpy as np
import pytest

from tether import Bdf, Problem, consistent_start, solve_dae
from tether.plan import memory
from tether.plan.functions import traced_values

N = 600
X = np.linspace(0.0, 1.0, N + 2)[1:-1]
AS_ARRAYS = "traced as arrays"


def heat(t, y, yp):
    u = np.concatenate([[0.0], y, [0.0]])
    return yp - (u[2:] - 2.0 * u[1:-1] + u[:-2]) * 0.1 * (N + 1) ** 2


def equilibrium(t, y, yp):
    """Diffusion of one species, in equilibrium with another: index 1."""
    half = N // 2
    u, w = y[:half], y[half:]
    p = np.pad(u, 1, mode="edge")
    rate = (p[2:] - 2 * p[1:-1] + p[:-2]) * 0.01 * half**2 - u * w
    return np.concatenate([yp[:half] - rate, w + w**3 - u])


def start_of_equilibrium():
    u = 1.0 + 0.5 * np.cos(3.0 * np.linspace(0, 1, N // 2))
    return np.concatenate([u, 0.5 * u])


def test_heat_is_right_and_says_how():
    mode = np.sin(np.pi * X)
    sol = solve_dae(heat, (0, 1), mode, rtol=1e-7, atol=1e-9)
    assert sol.how.startswith(f"{AS_ARRAYS}: 3 templates for {N} equations")
    rate = 0.4 * (N + 1) ** 2 * np.sin(np.pi / (2 * (N + 1))) ** 2
    np.testing.assert_allclose(sol.y[:, -1], mode * np.exp(-rate), rtol=2e-5, atol=1e-8)


def test_index_1_is_that_of_the_function_called():
    options = {"rtol": 1e-7, "atol": 1e-9, "start": "quiet"}
    y0 = start_of_equilibrium()
    found = solve_dae(equilibrium, (0, 1), y0, **options)
    called = solve_dae(equilibrium, (0, 1), y0, trace="never", **options)
    assert found.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(found.y[:, -1], called.y[:, -1], rtol=1e-6)
    w = found.y[N // 2 :, -1]
    np.testing.assert_allclose(w + w**3, found.y[: N // 2, -1], rtol=1e-6)


def test_a_consistent_start_is_the_same():
    y0 = start_of_equilibrium()
    found = consistent_start(equilibrium, 0.0, y0)
    u, w = found.y[: N // 2], found.y[N // 2 :]
    np.testing.assert_allclose(w + w**3, u, rtol=1e-9)


def test_arguments_and_closures_are_inputs():
    rate = [2.0]

    def decay(t, y, yp, weights):
        return yp + rate[0] * weights * y

    for k, scale in enumerate((1.0, 3.0)):
        rate[0] = 2.0 - k
        weights = scale * np.linspace(0.5, 1.0, N)
        sol = solve_dae(decay, (0, 1), np.ones(N), args=(weights,), rtol=1e-8, atol=1e-10)
        assert sol.how.startswith(AS_ARRAYS)
        np.testing.assert_allclose(sol.y[:, -1], np.exp(-rate[0] * weights), rtol=1e-6)


def test_an_array_that_is_changed_between_runs_is_noticed():
    weights = np.linspace(0.5, 1.0, N)

    def decay(t, y, yp):
        return yp + weights * y

    for _ in range(3):
        sol = solve_dae(decay, (0, 1), np.ones(N), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(sol.y[:, -1], np.exp(-weights), rtol=1e-6)
        weights += 0.25


def test_what_a_callback_changes_counts_from_then_on():
    ends = []
    for trace in ("auto", "never"):
        weights = np.linspace(0.5, 1.0, N)
        changed = []

        def decay(t, y, yp, weights=weights):
            return yp + weights * y

        def stop(t, y, yp, weights=weights, changed=changed):
            if t >= 0.5:
                changed.append(t)
                weights[:] = 0.0

        sol = solve_dae(
            decay, (0, 1), np.ones(N), rtol=1e-8, atol=1e-10, callback=stop, trace=trace
        )
        expected = np.exp(-changed[0] * np.linspace(0.5, 1.0, N))
        np.testing.assert_allclose(sol.y[:, -1], expected, rtol=1e-6)
        ends.append(sol.y[:, -1])
    np.testing.assert_allclose(*ends, rtol=5e-8)     # tolerances of the runs


def test_state_that_no_trace_sees_is_noticed():
    class Counter:
        calls = 0

    def fun(t, y, yp):
        Counter.calls += 1
        return yp + (1.0 + Counter.calls) * y

    sol = solve_dae(fun, (0, 1e-3), np.ones(N), options={"max_seconds": 20})
    assert not sol.how.startswith(AS_ARRAYS)


def test_a_function_that_lies_to_tracing_is_called():
    def fun(t, y, yp):
        return yp + (y if type(y) is np.ndarray else 2.0 * y)

    sol = solve_dae(fun, (0, 1), np.ones(N), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-6)


def test_kinks_and_jumps_stay_arrays():
    y0 = np.linspace(0, 1, N)
    kinked = solve_dae(lambda t, y, yp: yp + np.maximum(y, 0.5), (0, 1), y0, rtol=1e-6, atol=1e-8)
    assert kinked.how.startswith(AS_ARRAYS)
    decay = np.minimum(np.log(np.maximum(y0, 0.5) / 0.5), 1.0)     # so long it is above 1/2
    expected = np.where(y0 > 0.5, y0 * np.exp(-decay), y0) - 0.5 * (1.0 - decay)
    np.testing.assert_allclose(kinked.y[:, -1], expected, atol=1e-5)
    jumping = solve_dae(lambda t, y, yp: yp + np.where(y > 0.5, y, 1.0), (0, 1), y0, rtol=1e-6)
    assert jumping.how.startswith(AS_ARRAYS)
    above = np.where(y0 > 0.5, np.log(np.maximum(y0, 0.5) / 0.5), 0.0)     # so long it is above 1/2
    late = np.minimum(y0, 0.5) - (1.0 - above)
    np.testing.assert_allclose(jumping.y[:, -1], late, atol=1e-4)


def test_jumps_in_two_equations_are_traced_by_numbers():
    def fun(t, y, yp):
        between = np.sign(np.diff(y))
        return yp - np.append(between, 0.0) + np.append(0.0, between)

    sol = solve_dae(fun, (0, 1e-4), np.linspace(0, 1, N))
    assert not sol.how.startswith(AS_ARRAYS)


def test_high_index_that_says_no_velocities_is_reduced():
    half = N // 2

    def held(t, y, yp):
        x, force = y[:half], y[half:]
        return np.concatenate([yp[:half] - force, x - np.sin(t)])

    sol = solve_dae(held, (0, 1), np.zeros(N), start="quiet")
    assert "index 2 reduced" in sol.how
    np.testing.assert_allclose(sol.y[half:, -1], np.cos(1.0), atol=1e-4)


def test_events_invariants_and_output():
    ring = np.roll

    def turning(t, y, yp):
        a, b = y[: N // 2], y[N // 2 :]
        return np.concatenate([yp[: N // 2] - b, yp[N // 2 :] + a + 0.0 * ring(a, 1)])

    y0 = np.concatenate([np.ones(N // 2), np.zeros(N // 2)])
    sol = solve_dae(
        turning, (0, 10), y0, events=lambda t, y, yp: y[0], dense_output=True,
        invariants=lambda t, y: y[0] ** 2 + y[N // 2] ** 2, rtol=1e-6, atol=1e-8,
    )
    assert sol.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(sol.t_events[0], np.pi * np.arange(0.5, 3.0), rtol=1e-5)
    np.testing.assert_allclose(sol.y[0] ** 2 + sol.y[N // 2] ** 2, 1.0, atol=1e-9)
    np.testing.assert_allclose(sol.sol(3.3)[0][0], np.cos(3.3), atol=1e-4)


def test_one_step_at_a_time():
    run = Bdf(heat, 0.0, np.sin(np.pi * X), t_bound=0.1)
    while run.status.name == "RUNNING":
        run.step()
    assert run.t == 0.1
    assert np.isfinite(run.y).all()


def test_a_failure_names_its_equation():
    def fun(t, y, yp):
        r = yp - np.sqrt(1.0 - y)
        r[7] = yp[7] - np.sqrt(0.5 - t)
        return r

    sol = solve_dae(fun, (0, 1), np.linspace(0, 0.2, N))
    assert not sol.success
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-3)
    assert "equation 7" in str(sol.diagnosis) or "7" in sol.message


def test_exceptions_pass():
    def fun(t, y, yp):
        if y.shape != (N,):
            raise RuntimeError("cannot be")
        if np.isnan(t):
            raise KeyError("nan")
        return yp + y

    sol = solve_dae(fun, (0, 1), np.ones(N))
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-1.0), rtol=1e-2)

    def broken(t, y, yp):
        raise RuntimeError("my own")

    with pytest.raises(RuntimeError, match="my own"):
        solve_dae(broken, (0, 1), np.ones(N))


def test_out_is_filled():
    def fun(t, y, yp, out):
        out[:] = yp + y
        out[0] = y[0] - np.cos(t)

    sol = solve_dae(Problem(fun), (0, 1), np.ones(N), rtol=1e-7, atol=1e-9)
    assert sol.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(sol.y[0, -1], np.cos(1.0), rtol=1e-6)
    np.testing.assert_allclose(sol.y[1:, -1], np.exp(-1.0), rtol=1e-5)


def test_a_narrow_pulse_is_not_stepped_over():
    shape = np.linspace(0.0, 1.0, N)

    def pulse(t, y, yp):
        power = 1e3 if 5.0 < t < 5.001 else 0.0
        return yp - power * shape

    sol = solve_dae(pulse, (0, 10), np.zeros(N), rtol=1e-8, atol=1e-10)
    assert sol.how.startswith(AS_ARRAYS)
    np.testing.assert_allclose(sol.y[:, -1], shape, rtol=1e-8, atol=1e-10)


def test_a_switch_that_an_argument_times():
    def fun(t, y, yp, on):
        r = yp + y
        if t > on:
            r[: N // 2] -= 1.0
        return r

    for on in (0.25, 0.6):
        sol = solve_dae(fun, (0, 1), np.zeros(N), args=(on,), rtol=1e-8, atol=1e-10)
        assert sol.how.startswith(AS_ARRAYS)
        np.testing.assert_allclose(sol.y[0, -1], 1.0 - np.exp(on - 1.0), rtol=1e-6)
        np.testing.assert_allclose(sol.y[-1, -1], 0.0, atol=1e-12)


def test_constraints_and_invariants_are_arrays_too():
    def pairs(t, y):
        return y[:200] * y[200:400] - np.cos(t) * y[400:600]

    y = np.linspace(1.0, 2.0, N)
    found = traced_values(pairs, 0.0, y, 200, ())
    assert found.backend.name == "rows"
    assert len(found.backend.fy[0]) == 600
    runner = found.backend.new(found.inputs)
    np.testing.assert_array_equal(runner.values(0.3, y, y), pairs(0.3, y))
    assert found.pair().difference(0.3, y, y) is None
    slopes = np.zeros(600)
    runner.entries_into(0.3, y, y, slopes, slopes)
    at = dict(zip(zip(*(part.tolist() for part in found.backend.fy), strict=True), slopes,
                  strict=True))
    assert at[7, 7] == y[207]
    assert at[7, 207] == y[7]
    assert at[7, 407] == -np.cos(0.3)


def test_a_constraint_with_a_kink_is_traced_number_by_number():
    found = traced_values(lambda t, y: np.abs(y[:3]), 0.0, np.ones(N), 3, ())
    assert found.backend.name == "machine"


def test_an_invariant_of_a_large_system_is_kept():
    def closed(t, y, yp):
        flux = np.diff(y) * (1.0 + y[1:] ** 2)
        return yp - np.diff(np.concatenate([[0.0], flux, [0.0]]))

    y0 = 1.0 + np.sin(7.0 * X) ** 2
    sol = solve_dae(closed, (0, 5), y0, invariants=[lambda t, y: np.sum(y**2 / 2 + y)], rtol=1e-3)
    total = np.sum(sol.y**2 / 2 + sol.y, axis=0)
    np.testing.assert_allclose(total, total[0], rtol=1e-13)
    assert sol.how.startswith(AS_ARRAYS)


def test_iterations_take_the_entries_that_templates_have(monkeypatch):
    """However many unknowns there are: without entries there would be no incomplete factors."""
    monkeypatch.setattr(memory, "PATTERN_UP_TO", 100)
    mode = np.sin(np.pi * X)
    sol = solve_dae(heat, (0, 1), mode, rtol=1e-6, options={"linear_solver": "krylov"})
    assert sol.success, sol.message
    assert sol.how.startswith(AS_ARRAYS)
    assert "incomplete factors" in sol.how
    rate = 0.4 * (N + 1) ** 2 * np.sin(np.pi / (2 * (N + 1))) ** 2
    np.testing.assert_allclose(sol.y[:, -1], mode * np.exp(-rate), rtol=2e-4, atol=1e-6)
