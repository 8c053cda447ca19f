"""solve_dae: times, callback, threads."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
from support.front_door import SPAN, assert_same, called_or_traced
from support.helpers import RELAX_START, c_function, circle, decay, relax, relax_exact

from tether import Status, solve_dae

# --- direction and output times ----------------------------------------------------------------


def test_backward():
    end = solve_dae(relax, SPAN, RELAX_START, rtol=1e-9, atol=1e-11).y[:, -1]
    sol = solve_dae(relax, SPAN[::-1], end, rtol=1e-8, atol=1e-10, dense_output=True)
    assert sol.success
    assert sol.t[0] == 2.0
    assert sol.t[-1] == 0.0
    assert np.all(np.diff(sol.t) < 0)
    assert np.all(sol.stats.h < 0)
    assert sol.y[:, -1] == pytest.approx(RELAX_START, abs=1e-5)
    times = np.linspace(0, 2, 7)
    np.testing.assert_allclose(sol.sol(times)[0], relax_exact(times), atol=1e-5)


def test_backward_is_the_mirror_of_forward():
    forward = solve_dae(decay, (0, 1), [1.0])
    mirrored = solve_dae(lambda t, y, yp: [yp[0] - y[0]], (0, -1), [1.0])
    np.testing.assert_allclose(mirrored.t, -forward.t, rtol=1e-12)
    np.testing.assert_allclose(mirrored.y, forward.y, rtol=1e-9)
    np.testing.assert_allclose(mirrored.yp, -forward.yp, rtol=1e-7)


@pytest.mark.parametrize("dense_output", [False, True])
def test_t_eval(reference, dense_output):
    times = np.linspace(*SPAN, 57)
    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=times, dense_output=dense_output)
    dense = solve_dae(relax, SPAN, RELAX_START, dense_output=True)
    np.testing.assert_array_equal(sol.t, times)
    assert sol.y.shape == sol.yp.shape == (2, 57)
    y, yp = dense.sol(times)
    np.testing.assert_allclose(sol.y, y, rtol=1e-11)
    # at the start y' is that of the start, not of the first step's straight line
    np.testing.assert_allclose(sol.yp[:, 1:], yp[:, 1:], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(sol.yp[:, 0], [-1.5, -0.5], atol=1e-6)
    np.testing.assert_array_equal(sol.y[:, 0], RELAX_START)
    np.testing.assert_allclose(sol.y[:, -1], reference.y[:, -1], rtol=1e-13)
    assert sol.stats.steps == reference.stats.steps
    assert (sol.stats.t is None) is not dense_output
    assert (sol.sol is None) is not dense_output
    if dense_output:
        np.testing.assert_allclose(sol.sol(times)[0], y, rtol=1e-13)


@pytest.mark.parametrize("times", [[], [0.0], [2.0], [0.0, 2.0], [0.3], (0.1, 1), np.array([1])])
def test_few_output_times(times):
    sol = solve_dae(relax, SPAN, RELAX_START, t_eval=times)
    np.testing.assert_array_equal(sol.t, np.asarray(times, float))
    assert sol.y.shape == (2, len(times))
    assert str(sol).startswith("success")
    if len(times):
        np.testing.assert_allclose(sol.y, relax_exact(sol.t), atol=2e-5)


def test_more_output_times_than_steps_and_backward():
    times = np.linspace(2, 0, 1001)
    end = relax_exact(2.0)
    sol = solve_dae(relax, (2, 0), end, t_eval=times)
    np.testing.assert_array_equal(sol.t, times)
    np.testing.assert_allclose(sol.y, relax_exact(times), atol=1e-4)


def test_unreached_output_times_are_left_out():
    times = np.linspace(0, 100, 11)
    sol = solve_dae(circle, (0, 100), [1.0, 0.0], t_eval=times, max_steps=500)
    assert not sol.success
    assert 1 < len(sol.t) < 11
    np.testing.assert_array_equal(sol.t, times[: len(sol.t)])
    np.testing.assert_allclose(sol.y, [np.cos(sol.t), -np.sin(sol.t)], atol=1e-3)


# --- callback and progress ---------------------------------------------------------------------


def test_callback_sees_every_step(reference):
    seen = []
    sol = solve_dae(relax, SPAN, RELAX_START, callback=lambda t, y, yp: seen.append((t, *y, *yp)))
    assert_same(sol, reference)
    np.testing.assert_array_equal(np.array(seen).T, np.vstack([sol.t, sol.y, sol.yp])[:, 1:])


def test_callback_stops():
    sol = solve_dae(decay, (0, 10), [1.0], callback=lambda t, y, yp: y[0] < 0.5)
    assert sol.status == Status.STOPPED
    assert sol.success
    assert np.all(sol.y[0, :-1] >= 0.5)
    assert sol.y[0, -1] < 0.5


def test_callback_cannot_undo_the_end():
    sol = solve_dae(decay, (0, 1), [1.0], callback=lambda t, y, yp: t == 1.0)
    assert sol.status == Status.REACHED_END


def test_callback_with_t_eval_and_failure():
    steps = []
    sol = solve_dae(decay, (0, 1), [1.0], t_eval=[0.5], max_steps=9,
                    callback=lambda t, y, yp: steps.append(t))
    assert sol.status == Status.MAX_STEPS
    assert len(steps) == 9


# --- Bdf ---------------------------------------------------------------------------------------


@called_or_traced
def test_runs_in_threads_agree(library, trace):
    fun = c_function(library, "spin")
    results = {}

    def run(name, problem):
        results[name] = solve_dae(problem, (0, 5), [1.0, 0.0], trace=trace)

    threads = [threading.Thread(target=run, args=(i, fun if i % 2 else circle)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2, 6):
        np.testing.assert_array_equal(results[i].y, results[i % 2].y)


@called_or_traced
def test_runs_in_threads_do_not_disturb_each_other(trace):
    from concurrent.futures import ThreadPoolExecutor

    def run(rtol):
        return solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 20), [1.0, 0.0],
                         rtol=rtol, trace=trace)

    rtols = [1e-4, 1e-5, 1e-6, 1e-7] * 3
    alone = [run(rtol) for rtol in rtols]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, rtols))
    for one, other in zip(alone, together, strict=True):
        assert one.nfev == other.nfev
        np.testing.assert_array_equal(one.y, other.y)


@pytest.mark.parametrize("n", [1, 2, 40])
def test_large_values_are_finite_and_infinite_ones_are_named(n):
    large = np.full(n, 1e200)
    sol = solve_dae(lambda t, y, yp: [yp[i] for i in range(n)], (0, 1), large, large * 0)
    assert sol.success
    assert (sol.y == 1e200).all()
    large[-1] = np.inf
    with pytest.raises(ValueError, match=rf"y0\[{n - 1}\] is inf"):
        solve_dae(lambda t, y, yp: [yp[i] for i in range(n)], (0, 1), large)


@dataclass(frozen=True)
class NoAttributesError(Exception):
    code: int


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_an_exception_that_takes_no_attributes_passes_through(trace):
    def fails(t, y, yp):
        if t > 0.5:
            raise NoAttributesError(3)
        return yp + y

    with pytest.raises(NoAttributesError) as caught:
        solve_dae(fails, (0, 1), [1.0], trace=trace)
    assert caught.value.code == 3
