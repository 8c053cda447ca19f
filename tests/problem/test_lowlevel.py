"""C functions of every kind: they take the steps of the same function in Python when it is traced.

Functions in Python that are called take others, as every residual of theirs is dear.
"""

import ctypes
import math
import threading
import time

import numpy as np
import pytest
from scipy import LowLevelCallable
from support.front_door import JACOBIAN, SPAN, assert_same
from support.helpers import C_ARGUMENTS, RELAX_START, c_function, relax

from tether import solve_dae

# What is left of iterations with Jacobians by differences.
AS_TRACED = 2e-7


@pytest.mark.parametrize("wrapped", [False, True], ids=["ctypes", "LowLevelCallable"])
@pytest.mark.parametrize("returns", [None, ctypes.c_int], ids=["void", "int"])
def test_c_functions(library, reference, returns, wrapped):
    fun = c_function(library, "relax_status" if returns else "relax", returns)
    sol = solve_dae(LowLevelCallable(fun) if wrapped else fun, SPAN, RELAX_START)
    assert_same(sol, reference, AS_TRACED)
    assert sol.stats.steps == reference.stats.steps


@pytest.mark.parametrize("returns", [None, ctypes.c_int], ids=["void", "int"])
def test_c_functions_with_user_data(library, reference, returns):
    name = "relax_status_data" if returns else "relax_data"
    fun = c_function(library, name, returns, data=True)
    one, five = ctypes.c_double(1.0), ctypes.c_double(5.0)

    def solve(number):
        data = ctypes.cast(ctypes.pointer(number), ctypes.c_void_p)
        return solve_dae(LowLevelCallable(fun, data), SPAN, RELAX_START)

    assert_same(solve(one), reference, AS_TRACED)
    faster = solve_dae(
        lambda t, y, yp: [yp[0] + 5.0 * y[1], y[0] - y[1] + np.sin(t)], SPAN, RELAX_START
    )
    assert_same(solve(five), faster, 1e-5)


def test_c_function_with_python_jacobian_and_event(library):
    def event(t, y, yp):
        return y[0]

    fun = c_function(library, "relax")
    sol = solve_dae(fun, SPAN, RELAX_START, jac=JACOBIAN, events=event)
    same = solve_dae(relax, SPAN, RELAX_START, jac=JACOBIAN, events=event)
    assert_same(sol, same, AS_TRACED)
    assert sol.t_events[0] == pytest.approx(same.t_events[0], rel=1e-9)
    assert len(sol.t_events[0]) == 1


def test_python_function_behind_a_c_pointer(reference):
    @ctypes.CFUNCTYPE(None, *C_ARGUMENTS)
    def pointer(t, y, yp, out):
        out[0], out[1] = relax(t, y, yp)

    assert_same(solve_dae(pointer, SPAN, RELAX_START), reference, AS_TRACED)


def test_numba_cfunc(reference):
    numba = pytest.importorskip("numba")
    vector = numba.types.CPointer(numba.float64)

    @numba.cfunc(numba.void(numba.float64, vector, vector, vector))
    def fun(t, y, yp, out):
        out[0] = yp[0] + y[1]
        out[1] = y[0] - y[1] + math.sin(t)

    @numba.cfunc(numba.int32(numba.float64, vector, vector, vector))
    def fun_with_status(t, y, yp, out):
        out[0] = yp[0] + y[1]
        out[1] = y[0] - y[1] + math.sin(t)
        return 0

    assert_same(solve_dae(fun, SPAN, RELAX_START), reference, AS_TRACED)
    assert_same(solve_dae(fun_with_status, SPAN, RELAX_START), reference, AS_TRACED)
    assert_same(solve_dae(LowLevelCallable(fun.ctypes), SPAN, RELAX_START), reference, AS_TRACED)


def test_c_function_runs_without_the_gil(library, reference):
    """The residual waits for what only another Python thread can do."""
    counter = ctypes.c_int.in_dll(library, "counter")
    results = []
    thread = threading.Thread(
        target=lambda: results.append(
            solve_dae(c_function(library, "waiting"), SPAN, RELAX_START)
        )
    )
    thread.start()
    while thread.is_alive() and counter.value < 1000:
        counter.value += 1
        time.sleep(1e-5)
    thread.join()
    assert not ctypes.c_int.in_dll(library, "gave_up").value
    assert_same(results[0], reference, AS_TRACED)
