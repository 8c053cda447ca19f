"""A run that cannot go on: a failure that says why and keeps everything computed so far."""

import ctypes
import math
import re
import signal
import sys

import numpy as np
import pytest
from support.helpers import (
    C_SOURCE,
    c_function,
    circle,
    compile_c,
    decay,
    has_compiler,
    relax,
    start_python,
)

from tether import Bdf, Cause, ConsistencyWarning, Status, solve_dae


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd):
    """No run writes a word, whether it fails or not."""
    yield
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def assert_kept(sol, exact, tolerance):
    """Assert that a failed run returned its steps, and that they are right."""
    assert not sol.success
    assert sol.status.failed
    assert sol.message.startswith(sol.status.happened)
    assert sol.status == Status.INTERRUPTED or sol.diagnosis.summary in sol.message
    assert len(sol.t) > 5
    assert sol.stats.steps <= len(sol.t) <= sol.stats.steps + 1
    assert sol.y.shape == sol.yp.shape == (sol.y.shape[0], len(sol.t))
    assert np.all(np.isfinite(sol.y))
    assert np.all(np.diff(sol.t) > 0)
    np.testing.assert_allclose(sol.y, exact(sol.t), rtol=tolerance, atol=tolerance)


# --- non-finite residuals -------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_residual_that_leaves_its_domain_shortens_the_step(bad):
    """Straight lines down to a bend near zero: predictions overshoot into y < 0."""
    visits = []

    def fun(t, y, yp):
        if y[0] < 0:
            visits.append(t)
            return [bad]
        return [yp[0] + math.tanh(1e3 * y[0])]

    sol = solve_dae(fun, (0, 1.5), [1.0])
    assert visits
    assert sol.success
    assert sol.stats.convergence_failures > 0
    # arsinh(sinh(1e3 y)) falls with slope 1e3: y = arsinh(sinh(1e3) exp(-1e3 t)) / 1e3
    assert sol.y[0, -1] == pytest.approx(0.0, abs=1e-5)
    before = sol.t < 0.99
    np.testing.assert_allclose(sol.y[0, before], 1 - sol.t[before], rtol=1e-4)


@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_square_root_of_numpy_shortens_the_step(trace):
    """y' = -2 sqrt(y) y is never zero, but its predictions may be negative."""
    with np.errstate(invalid="ignore"):
        sol = solve_dae(
            lambda t, y, yp: yp + 2 * np.sqrt(y) * y, (0, 1e6), [1.0], rtol=1e-3, atol=1e-12,
            trace=trace,
        )
    assert sol.success
    assert sol.y[0, -1] == pytest.approx(1 / (1 + 1e6) ** 2, rel=0.1)


def test_c_function_that_refuses_by_its_status(library):
    """y' = -sqrt(y) reaches zero at t = 2; the C function returns 1 for y < 0."""
    fun = c_function(library, "root", ctypes.c_int)
    sol = solve_dae(fun, (0, 1.999), [1.0])
    assert sol.success
    assert sol.y[0, -1] == pytest.approx((1 - 1.999 / 2) ** 2, rel=1e-2)


@pytest.mark.parametrize("trace", ["never", "always"])
@pytest.mark.parametrize("in_place", [False, True])
def test_nan_from_a_time_on(in_place, trace):
    edge = 0.7

    def fun(t, y, yp):
        return [yp[0] + y[0] if t <= edge else math.nan]

    def fills(t, y, yp, out):
        out[0] = fun(t, y, yp)[0]

    sol = solve_dae(fills if in_place else fun, (0, 1), [1.0], trace=trace)
    assert sol.status == Status.NON_FINITE
    assert_kept(sol, lambda t: np.exp(-t)[None], 1e-5)
    assert edge - 1e-6 < sol.t[-1] <= edge
    assert sol.stats.convergence_failures > 3


def test_nan_from_a_time_on_in_c(library):
    """The same behind a status: y' = -sqrt(y) cannot go beyond t = 2."""
    sol = solve_dae(c_function(library, "root", ctypes.c_int), (0, 3), [1.0], atol=1e-14)
    assert_kept(sol, lambda t: ((1 - t / 2) ** 2)[None], 1e-5)
    assert sol.t[-1] == pytest.approx(2.0, abs=1e-2)


def test_nan_at_the_start():
    sol = solve_dae(lambda t, y, yp: [math.nan], (0, 1), [1.0])
    assert not sol.success
    assert sol.status in (Status.NON_FINITE, Status.NO_CONSISTENT_START)
    assert "equation 0 is nan" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y.tolist() == [[1.0]]


def test_nan_in_one_component_at_the_start():
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0], math.log(y[1]) if y[1] > 0 else math.nan],
                    (0, 1), [1.0, -1.0], [-1.0, 0.0])
    assert not sol.success
    assert sol.t.tolist() == [0.0]


# --- failures of the solution ---------------------------------------------------------------


@pytest.mark.parametrize("trace", ["never", "always"])
def test_blow_up(trace):
    """y' = y^2 from 1 has its pole at t = 1."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0], trace=trace)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-4)
    early = sol.t < 0.9
    assert np.count_nonzero(early) > 10
    np.testing.assert_allclose(sol.y[0, early], 1 / (1 - sol.t[early]), rtol=1e-3)
    assert f"t = {sol.t[-1]:.10g}" in sol.message


@pytest.mark.parametrize("trace", ["never", "auto"])
@pytest.mark.parametrize("yp0", [None, [0.0, 0.0]])
def test_an_equation_written_twice(yp0, trace):
    sol = solve_dae(lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, (0, 1), [1.0, 1.0], yp0, trace=trace)
    assert not sol.success
    assert sol.status == Status.SINGULAR_SYSTEM
    assert "equations 0, 1" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y.tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_turning_point(trace):
    """z^2 = 1 - t has no solution beyond t = 1, where its Jacobian becomes singular."""
    sol = solve_dae(lambda t, y, yp: [y[0] ** 2 - 1.0 + t], (0, 2), [1.0], trace=trace)
    assert_kept(sol, lambda t: np.sqrt(1.0 - t)[None], 1e-4)
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-4)
    assert sol.diagnosis.cause == Cause.FOLD


@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_jump_that_no_step_is_small_enough_for(trace):
    sol = solve_dae(lambda t, y, yp: [y[0] - (t > 0.5)], (0, 1), [0.0], trace=trace)
    assert not sol.success
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-8)


def test_a_wrong_jacobian():
    sol = solve_dae(circle, (0, 10), [1.0, 0.0], jac=(1e3 * np.eye(2), -np.eye(2)))
    assert not sol.success
    assert len(sol.t) == sol.stats.steps + 1


# --- limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 7, 300])
def test_max_steps(limit):
    sol = solve_dae(circle, (0, 1e4), [1.0, 0.0], max_steps=limit)
    assert sol.status == Status.MAX_STEPS
    assert sol.stats.steps == limit
    assert len(sol.t) == limit + 1


def test_max_steps_that_suffice():
    steps = solve_dae(circle, (0, 10), [1.0, 0.0]).stats.steps
    assert solve_dae(circle, (0, 10), [1.0, 0.0], max_steps=steps).success
    assert not solve_dae(circle, (0, 10), [1.0, 0.0], max_steps=steps - 1).success


def test_max_seconds():
    sol = solve_dae(circle, (0, 1e12), [1.0, 0.0], max_seconds=0.05)
    assert sol.status == Status.MAX_SECONDS
    assert len(sol.t) == sol.stats.steps + 1 > 1


def test_max_seconds_with_c(library):
    sol = solve_dae(c_function(library, "spin"), (0, 1e12), [1.0, 0.0], max_seconds=0.05,
                    t_eval=[0.0, 1e12])
    assert sol.status == Status.MAX_SECONDS
    assert sol.t.tolist() == [0.0]


# --- tolerances -----------------------------------------------------------------------------


def test_tolerance_beyond_double_precision():
    sol = solve_dae(decay, (0, 1), [1.0], rtol=1e-17, atol=0)
    assert sol.status == Status.TOO_ACCURATE
    assert sol.t.tolist() == [0.0]


def test_component_without_atol_that_starts_at_zero():
    sol = solve_dae(circle, (0, 1), [1.0, 0.0], atol=[1e-9, 0.0])
    assert sol.status == Status.ZERO_WEIGHT
    assert sol.t.tolist() == [0.0]


def test_component_without_atol_that_becomes_zero():
    """y[1] falls to zero at t = 1 and stays there."""
    def fun(t, y, yp):
        return [yp[0] + y[0], y[1] - max(1.0 - t, 0.0)]

    sol = solve_dae(fun, (0, 2), [1.0, 1.0], atol=[1e-9, 0.0])
    assert not sol.success
    assert sol.status in (Status.ZERO_WEIGHT, Status.ERROR_TEST_FAILED)
    assert sol.t[-1] == pytest.approx(1.0, abs=1e-2)


# --- the start ------------------------------------------------------------------------------


def test_inconsistent_y0_is_repaired_with_a_warning():
    with pytest.warns(ConsistencyWarning, match=r"y0\[1\] was changed by 0\.5 to 1\.5") as caught:
        sol = solve_dae(relax, (0, 1), [1.5, 1.0])
    assert caught[0].filename == __file__
    assert sol.success
    assert sol.start.success
    assert set(sol.start.moved) == {1}
    assert sol.start.moved[1] == pytest.approx(0.5)
    assert sol.start.residual[0] > 0.4
    assert sol.start.residual[1] < 1e-12
    assert sol.y[:, 0] == pytest.approx([1.5, 1.5])
    assert sol.yp[:, 0] == pytest.approx([-1.5, -0.5], abs=1e-5)


def test_nonlinear_constraint_is_solved_for_the_nearest_root():
    with pytest.warns(ConsistencyWarning):
        sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 - y[0]], (0, 1), [4.0, 5.0])
    assert sol.y[:, 0] == pytest.approx([4.0, 2.0])


def test_inconsistent_yp0_is_repaired_without_a_warning():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5], [7.0, 7.0])
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([-1.5, -0.5], abs=1e-5)


@pytest.mark.parametrize("trace", ["never", "always"])
@pytest.mark.parametrize("t_end", [1e-6, 1.0, 1e6, 1e12, -1e12])
def test_a_long_interval_hides_no_derivative(t_end, trace):
    """The differences that tell y' from y must be seen beside the residual at any length."""
    sol = solve_dae(circle, (0, t_end), [1.0, 0.0], max_steps=30, trace=trace)
    assert sol.start.success
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([0.0, -1.0], abs=1e-6)
    np.testing.assert_allclose(sol.y, [np.cos(sol.t), -np.sin(sol.t)], atol=1e-4)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-12, 1e-15, 1e-20, 1e-30, 1e-100, 1e-300])
@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_tiny_guess_of_the_derivative_hides_no_derivative(size, trace):
    """The size of yp0 says nothing about that of y'."""
    sol = solve_dae(circle, (0, 1), [1.0, 0.0], [0.0, size], trace=trace)
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([0.0, -1.0], abs=1e-6)
    assert sol.y[:, -1] == pytest.approx([math.cos(1), -math.sin(1)], abs=1e-4)


def test_an_equilibrium_is_not_taken_for_a_constraint():
    """y' = u(t) - y rests at u = 1 and must lag behind when u begins to rise at t = 1."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0] - 1.0 - max(t - 1.0, 0.0)], (0, 1e9), [1.0],
                    max_step=0.1, callback=lambda t, y, yp: t > 3.0)
    assert sol.y[0, -1] == pytest.approx(sol.t[-1] - 1 + np.exp(1 - sol.t[-1]), abs=1e-4)


def test_change_below_the_tolerance_is_silent():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5 + 1e-8])
    assert sol.start.success


def test_consistent_start_is_left_untouched():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5], [-1.5, -0.5])
    assert sol.start.moved == {}
    assert sol.y[:, 0].tolist() == [1.5, 1.5]
    assert sol.yp[:, 0].tolist() == [-1.5, -0.5]


@pytest.mark.parametrize("dense_output", [False, True])
@pytest.mark.parametrize("t_eval", [None, [0.0, 0.5, 1.0]])
def test_hopeless_start(t_eval, dense_output):
    """No real z satisfies z^2 + 1 = 0."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 + 1.0], (0, 1), [1.0, 1.0],
                    t_eval=t_eval, dense_output=dense_output)
    assert sol.status == Status.NO_CONSISTENT_START
    assert not sol.start.success
    assert "equation 1" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y[0].tolist() == [1.0]
    assert sol.sol is None
    with pytest.raises(ValueError, match="dense_output"):
        sol(0.0)
    assert "FAILED" in str(sol)


def test_bdf_that_failed_stays_where_it_is():
    bdf = Bdf(lambda t, y, yp: [yp[0] + y[0] if t <= 0.7 else math.nan], 0.0, [1.0], t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        pass
    t = bdf.t
    assert bdf.step() == bdf.status == Status.NON_FINITE
    assert bdf.t == t
    assert bdf.y[0] == pytest.approx(math.exp(-t), rel=1e-5)


# --- output of a failed run -------------------------------------------------------------------


def test_outputs_reached_before_a_failure_are_kept():
    times = np.linspace(0, 1, 11)
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0] if t <= 0.65 else math.nan], (0, 1), [1.0],
                    t_eval=times, dense_output=True)
    assert not sol.success
    np.testing.assert_array_equal(sol.t, times[:7])
    np.testing.assert_allclose(sol.y[0], np.exp(-times[:7]), rtol=1e-5)
    assert sol.sol.t_max == pytest.approx(0.65, abs=1e-6)
    np.testing.assert_allclose(sol.sol(sol.t)[0], sol.y, rtol=1e-12)


@pytest.mark.parametrize("rate", [1e3, 1e6])
def test_a_late_start_still_moves_in_time(rate):
    """At t = 1e9 a step has to be longer than the 1e-7 between two doubles.

    That suffices for the slower of the two; the faster may fail, but not go wrong.
    """
    sol = solve_dae(lambda t, y, yp: [yp[0] + rate * y[0]], (1e9, 1e9 + 1), [1.0], first_step=1e-9,
                    dense_output=True)
    assert np.all(np.diff(sol.t) > 0)
    assert sol.success or rate > 1e3
    if sol.sol is not None:
        np.testing.assert_allclose(sol.y[0], np.exp(-rate * (sol.t - 1e9)), atol=1e-4)
        assert np.all(np.isfinite(sol.sol(sol.t)[1]))


def test_an_interval_of_a_few_bits():
    sol = solve_dae(decay, (1.0, 1.0 + 8 * np.finfo(float).eps), [1.0], dense_output=True)
    assert sol.success
    assert np.all(np.diff(sol.t) > 0)
    assert np.all(np.isfinite(sol.sol(sol.t)))


# --- Ctrl-C -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "trace"),
    [("fun", "auto"), ("fun", "never"), ("event", "auto"), ("event", "never"),
     ("callback", "auto"), ("callback", "never")],
)
def test_keyboard_interrupt_brings_the_solution_so_far(where, trace):
    interrupt = KeyboardInterrupt()

    def interrupted(t, y, yp):
        if t > 0.5:
            raise interrupt
        return [yp[0] + y[0]] if where == "fun" else 0.0

    more = {} if where == "fun" else {{"event": "events"}.get(where, where): interrupted}
    with pytest.raises(KeyboardInterrupt) as caught:
        solve_dae(interrupted if where == "fun" else decay, (0, 1), [1.0], trace=trace, **more)
    assert caught.value is interrupt
    sol = interrupt.result
    assert sol.status == Status.INTERRUPTED
    assert_kept(sol, lambda t: np.exp(-t)[None], 1e-5)
    assert 0.3 < sol.t[-1] < 0.7
    named = re.search(r"t = (\S+),", sol.message)
    assert sol.t[-1] - 1e-9 <= float(named[1]) < 0.7


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_keyboard_interrupt_before_the_first_step(trace):
    interrupt = KeyboardInterrupt()

    def interrupted(t, y, yp):
        raise interrupt

    with pytest.raises(KeyboardInterrupt):
        solve_dae(interrupted, (0, 1), [1.0], trace=trace)
    assert interrupt.result is None


INTERRUPTED_RUN = """
import ctypes, signal, sys, threading, time
import numpy as np
from support.helpers import c_function
from tether import Status, solve_dae

def python(t, y, yp):
    if t > 0.1:
        tell()
    return [yp[0] - 40.0 * y[1], yp[1] + 40.0 * y[0]]

def plain(t, y, yp):
    return [yp[0] - 40.0 * y[1], yp[1] + 40.0 * y[0]]

def tell(told=[]):
    if not told:
        told.append(True)
        print("running", flush=True)

def tell_when_spinning():
    while ctypes.c_int.in_dll(library, "spins").value < 10_000:
        time.sleep(1e-3)
    tell()

# a process started in the background ignores Ctrl-C until told otherwise
signal.signal(signal.SIGINT, signal.default_int_handler)
kind, path = sys.argv[1:]
options = {}
if kind == "c":
    library = ctypes.CDLL(path)
    fun = c_function(library, "spin")
    threading.Thread(target=tell_when_spinning, daemon=True).start()
elif kind == "traced":
    fun = plain
    options["trace"] = "always"
    solve_dae(fun, (0, 1), [1.0, 0.0], **options)          # what is prepared once is prepared
    threading.Timer(0.5, tell).start()
else:
    fun = python
if kind != "steps":
    options["t_eval"] = [0.0, 0.01, 1e9]
try:
    solve_dae(fun, (0, 1e9), [1.0, 0.0], **options)
except KeyboardInterrupt as interrupt:
    sol = interrupt.result
    assert sol.status == Status.INTERRUPTED and not sol.success, sol
    assert sol.stats.steps > 0 and np.all(np.isfinite(sol.y)), sol
    if kind == "steps":
        assert len(sol.t) == sol.stats.steps + 1
    else:
        assert sol.t[0] == 0.0
    print("caught")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
@pytest.mark.parametrize("kind", ["c", "python", "steps", "traced"])
def test_ctrl_c(kind, tmp_path):
    if kind == "c":
        if not has_compiler():
            pytest.skip("no C compiler")
        compile_c(C_SOURCE, tmp_path)
    process = start_python(INTERRUPTED_RUN, kind, str(tmp_path / "functions.so"))
    try:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (out, err, process.returncode) == ("caught\n", "", 0)
