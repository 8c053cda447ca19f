"""A run from its start to its end: limits, what a failed run keeps, Ctrl-C."""

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
    start_python,
)
from support.kept import assert_kept

from tether import Status, solve_dae

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
