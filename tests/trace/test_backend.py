"""Programs behind the seams of the core, by the machine and in C: values, threads, whole runs."""

import ctypes
import math
import sys
import threading
import tracemalloc

import numpy as np
import pytest
from support.programs import (
    EXACT,
    SPLIT,
    assemble,
    backends,
    needs_compiler,
    random_program,
    split_value,
)

import tether
from tether import Problem, Status, gallery
from tether._core import events, machine, probe
from tether._core.dense import Dense
from tether._core.schedule import schedule
from tether._core.state import State
from tether.plan.shelf import shelf
from tether.run.integration import Integration
from tether.trace import compile_c, library_cache, trace
from tether.trace import opcodes as op
from tether.trace.backend import prepare, prepare_system
from tether.trace.compile_c import find_compiler

# --- arguments --------------------------------------------------------------------------------


def test_wrong_numbers_of_args_and_positions_are_refused():
    with pytest.raises(ValueError, match="1 args, got 2"):
        machine.Machine(schedule(SPLIT), [1.0, 2.0])
    with pytest.raises(ValueError, match="0 entries, but there are 1"):
        machine.Machine(schedule(SPLIT), [1.0], [0])
    with pytest.raises(ValueError, match="backend must be"):
        prepare(SPLIT, backend="fortran")
    with pytest.raises(ValueError, match="layout must be"):
        prepare(SPLIT, layout="diagonals")
    with pytest.raises(ValueError, match="not in a matrix of shape"):
        prepare(SYSTEM, 2, ([0, 0, 2], [0, 1, 1]), ENTRIES[1])


def test_entries_as_a_list():
    for backend in backends(SYSTEM, 2, *ENTRIES, layout="list"):
        fy, fyp = np.zeros(3), np.zeros(3)
        backend.new([4.0]).entries_into(0.3, [2.0, 3.0], [5.0, 7.0], fy, fyp)
        assert fy.tolist() == [-3.0, -2.0, 1.0]
        assert fyp.tolist() == [4.0, 1.0, 0.0]
        assert (backend.fy, backend.fyp) == ENTRIES


def test_memory_of_the_wrong_size_is_refused():
    for backend in backends(SYSTEM, 2, *ENTRIES):
        runner = backend.new([1.0])
        with pytest.raises(ValueError, match="expected 2 values"):
            runner.values(0.0, [1.0], [1.0, 2.0])
        with pytest.raises(ValueError, match="room for 4 numbers"):
            runner.entries_into(0.0, [1.0, 1.0], [1.0, 2.0], np.zeros(4), np.zeros(3))
        with pytest.raises(ValueError, match="does not fit"):
            backend.attach(new_state(3), [1.0])
        with pytest.raises(ValueError, match="does not fit"):
            backend.attach_events(new_state(2), [1.0])


# --- behind the core's seams ------------------------------------------------------------------


def new_state(n):
    return State(Dense(n), np.full(n, 1e-6), np.full(n, 1e-6))


# F = (arg * yp0 - y0 * y1, y1 - sin(t) + yp1): F_y = [[-y1, -y0], [0, 1]], F_y' = diag(arg, 1)
# slots: 0 constant 1, 1 t, 2-3 y, 4-5 yp, 6 arg, then the instructions from 7 on
SYSTEM = assemble(
    2, 1, [1.0],
    [(op.MUL, 6, 4), (op.MUL, 2, 3), (op.SUB, 7, 8), (op.SIN, 1), (op.SUB, 3, 10),
     (op.ADD, 11, 5), (op.NEG, 3), (op.NEG, 2)],
    [9, 12, 13, 14, 0, 6, 0],
)
ENTRIES = (([0, 0, 1], [0, 1, 1]), ([0, 1], [0, 1]))


def test_residual_and_jacobian_of_a_state():
    t, y, yp = 0.3, np.array([2.0, 3.0]), np.array([5.0, 7.0])
    for backend in backends(SYSTEM, 2, *ENTRIES):
        s = new_state(2)
        backend.attach(s, [4.0])
        assert s.fyp_known
        assert not s.python_residual
        probe.move_to(s, t, y, yp)
        status, r = probe.residual_at(s, t, y, yp)
        assert status == 0
        np.testing.assert_allclose(r, [4 * 5 - 6, 3 - math.sin(t) + 7], rtol=1e-15)
        _, fy, fyp = probe.jacobian_at(s, t, y, yp)
        assert fy.tolist() == [[-3.0, -2.0], [0.0, 1.0]]
        assert fyp.tolist() == [[4.0, 0.0], [0.0, 1.0]]
        backend.attach(s, [0.5])
        _, _, fyp = probe.jacobian_at(s, t, y, yp)
        assert fyp.tolist() == [[0.5, 0.0], [0.0, 1.0]]
        assert probe.residual_at(s, t, y, yp)[1][0] == 0.5 * 5 - 6


def test_non_finite_values_are_a_recoverable_failure():
    program = assemble(1, 0, [], [(op.SQRT, 1), (op.ADD, 2, 3)], [4])
    for backend in backends(program):
        s = new_state(1)
        backend.attach(s)
        assert probe.residual_at(s, 0.0, [-1.0], [0.0])[0] == tether._core.codes.NON_FINITE
        assert probe.residual_at(s, 0.0, [4.0], [0.0]) == (0, 2.0)


def test_events_and_constraints():
    program = assemble(2, 0, [1.0], [(op.MUL, 2, 2), (op.MUL, 3, 3), (op.ADD, 6, 7),
                                     (op.SUB, 8, 0), (op.ADD, 2, 2), (op.ADD, 3, 3)], [9, 10, 11])
    value_t = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * 3)
    for backend in backends(program, 1, ([0, 0], [0, 1]), layout="rows"):
        s = new_state(2)
        s.watch_events([0])
        backend.attach_events(s)
        s.array("y")[:] = [2.0, 3.0]
        assert events.evaluate_events(s) == 0
        assert s.array("g_old").tolist() == [12.0]
        s.array("y")[:] = [2.0, math.nan]
        assert events.evaluate_events(s) == tether._core.codes.NO_EVENT_VALUE
        runner = backend.new()
        function, jacobian, data = runner.constraint_addresses()
        y, g, gy = np.array([2.0, 3.0]), np.zeros(1), np.full(2, np.nan)
        value_t(function)(0.0, y.ctypes.data, g.ctypes.data, data)
        value_t(jacobian)(0.0, y.ctypes.data, gy.ctypes.data, data)
        assert g.tolist() == [12.0]
        assert gy.tolist() == [4.0, 6.0]


def test_threads_share_a_plan_but_not_a_memory():
    rng = np.random.default_rng(5)
    program = random_program(rng, 300, EXACT, n=4)
    plan = schedule(program)
    points = rng.standard_normal((4, 200, 4))
    expected = [[machine.Machine(plan, [1, 2]).values(0.5, y, y) for y in part] for part in points]
    found = [None] * 4

    def work(k):
        runner = machine.Machine(plan, [1, 2])
        found[k] = [runner.values(0.5, y, y) for y in points[k]]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found, expected)


# --- whole integrations -------------------------------------------------------------------------


class RunOf(Integration):
    """A run of a problem, or of a backend in its place."""

    def __init__(self, problem, y0, yp0, options, t_end, backend=None):
        self.backend = backend
        super().__init__(problem, 0.0, y0, yp0, {**options, "trace": "never"}, t_bound=t_end)

    @property
    def model(self):
        return self._model

    @model.setter
    def model(self, model):
        self._model = model
        if self.backend is not None:
            model.attach = self.backend.attach

    @property
    def counts(self):
        return [getattr(self.state, name) for name in ("steps", "nfev", "njev", "nlu")]


def solve(problem, given, backend=None, rtol=1e-6):
    """Integrate a problem of the gallery."""
    options = {"rtol": rtol, "atol": rtol * given.atol_scale}
    run = RunOf(problem, given.y0, given.yp0, options, given.t_span[1], backend)
    run.state.guesses = False      # a residual in Python is not dear: the same method for all
    while run.status == Status.RUNNING:
        run.advance(1000)
    assert run.status == Status.REACHED_END
    return run


@pytest.mark.parametrize("name", ["robertson", "pend-i1", "akzo", "transamp", "caraxis-i1"])
def test_programs_integrate_as_callbacks_do(name):
    """With the same Jacobian in Python the same steps are made."""
    given = gallery.get(name)
    traced = trace(given.fun, given.n)
    made = backends_of(traced)
    runner = made[0].new()

    def jacobian(t, y, yp):
        fy, fyp = np.zeros(given.n**2), np.zeros(given.n**2)
        runner.entries_into(t, y, yp, fy, fyp)
        return fy.reshape(given.n, -1).T, fyp.reshape(given.n, -1).T

    by_runner = solve(Problem(lambda t, y, yp: runner.values(t, y, yp), jac=jacobian), given)
    by_python = solve(Problem(given.fun, jac=jacobian), given)
    for backend in made:
        found = solve(Problem(given.fun), given, backend)
        assert found.counts == by_runner.counts
        # other roundings of the same equations
        assert abs(found.state.steps - by_python.state.steps) <= 0.09 * by_python.state.steps
        assert given.digits(found.y) > 3


def backends_of(traced):
    made = [prepare_system(traced, backend="machine")]
    if find_compiler() is not None:
        made.append(prepare_system(traced, backend="c"))
        assert made[1].name == "c", made[1].reason
    return made


def test_an_exact_jacobian_needs_fewer_residuals():
    given = gallery.get("akzo")
    exact = solve(Problem(given.fun), given, prepare_system(trace(given.fun, given.n)))
    differenced = solve(Problem(given.fun), given)
    beside = [run.state.nfev - run.state.iterations for run in (exact, differenced)]
    assert beside[0] < beside[1]
    assert exact.state.steps < 1.1 * differenced.state.steps


def test_other_threads_run_meanwhile():
    """The machine runs without the GIL: a thread counts while the steps are made."""
    given = gallery.get("trivial")
    backend = prepare_system(trace(given.fun, given.n))
    options = {"rtol": 1e-9, "atol": 1e-9}
    run = RunOf(Problem(given.fun), given.y0, given.yp0, options, 1e9, backend)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            stop.wait(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        while ticks[0] < 1:
            pass
        before = ticks[0]
        run.advance(500_000)
        after = ticks[0]
    finally:
        stop.set()
        thread.join()
    assert after - before > 2


def test_steps_allocate_no_python_memory():
    given = gallery.get("trivial")
    backend = prepare_system(trace(given.fun, given.n))
    options = {"rtol": 1e-8, "atol": 1e-8}
    run = RunOf(Problem(given.fun), given.y0, given.yp0, options, 1e6, backend)
    run.advance(1000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run.advance(20_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 2_000


@pytest.mark.parametrize("row", [(op.ADD, 1), (op.ADD, 1, 9), (op.SIN, -1), (99, 1, 1),
                                 (op.SELECT, 1, 1), (op.SIN, 3), (op.NEG, 1, 2)])
def test_a_wrong_program_is_refused(row):
    for backend in ("machine", "c"):
        with pytest.raises(ValueError, match="instruction 0 is not valid"):
            prepare(assemble(1, 0, [], [row], [3]), backend=backend)
        with pytest.raises(ValueError, match="output"):
            prepare(assemble(1, 0, [], [], [3]), backend=backend)


# --- which backend ----------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["no C compiler found", "did not compile", "too many"])
def test_without_c_the_machine_does_the_work(reason, empty_cache, monkeypatch, tmp_path):
    if reason == "no C compiler found":
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("CC", raising=False)
    elif reason == "did not compile":
        if sys.platform == "win32":
            pytest.skip("scripts are no programs there")
        failing = tmp_path / "failing"
        failing.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
        failing.chmod(0o755)
        monkeypatch.setenv("CC", str(failing))
    else:
        monkeypatch.setattr(compile_c, "MOST_INSTRUCTIONS", 3)
        monkeypatch.setattr(compile_c, "find_compiler", lambda: "cc")
    made = prepare(SPLIT, backend="c")
    assert made.name == "machine"
    assert reason in made.reason
    assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)


@needs_compiler
def test_auto_takes_a_library_that_is_there(empty_cache, monkeypatch):
    monkeypatch.setattr(library_cache, "_temporary_folders", [])     # as in a new process
    made = prepare(SPLIT, backend="auto")
    assert (made.name, made.reason) == ("machine", "")
    assert not empty_cache.exists()                       # looking leaves nothing behind
    assert prepare(SPLIT, backend="c").name == "c"
    assert prepare(SPLIT, backend="auto").name == "c"
    assert prepare(SPLIT).name == prepare(SPLIT, backend="machine").name == "machine"


def run_of(backend):
    def fun(t, y, yp):
        return [yp[0] + y[0] ** 2]

    return tether.solve_dae(fun, (0.0, 1.0), [1.0], options={"backend": backend})


def test_the_result_says_what_ran_the_program(empty_cache, monkeypatch):
    shelf.empty()
    assert run_of("machine").how == "traced, as written"
    assert run_of("auto").how == "traced, as written"
    if find_compiler() is not None:
        assert run_of("c").how == "traced, as written; compiled to C"
        shelf.empty()
        assert run_of("auto").how == "traced, as written; compiled to C"      # it is there
        assert run_of("machine").how == "traced, as written"
    shelf.empty()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    for _ in range(2):
        how = run_of("c").how
        assert how.startswith("traced, as written; not compiled to C: no C compiler")
    assert run_of("auto").how == "traced, as written"
