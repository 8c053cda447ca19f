"""A member gives the same bits alone, in threads, in processes and in any chunks."""

import ctypes

import numpy as np
import pytest
from support.ensembles import (
    alone,
    assert_same,
    ball,
    decay,
    energy,
    ground,
    oscillator,
    pendulum,
    rates,
    robertson,
)
from support.helpers import RELAX_START, has_compiler

from tether import Problem, solve_dae, solve_ensemble
from tether.ensemble import engines, schedule
from tether.ensemble.members import read_members
from tether.ensemble.task import read_task
from tether.ensemble.worker import Worker
from tether.plan.shelf import shelf

GRAVITY = np.linspace(5.0, 15.0, 7)
SPANS = {
    "robertson": (robertson, (0.0, 1e3), [1.0, 0.0, 0.0], rates(7), {}),
    "pendulum": (pendulum, (0.0, 1.0), [1.0, 0.0, 0.0, 0.0, 0.0], (GRAVITY, 1.0), {}),
    "backwards": (decay, (1.0, -1.0), [1.0], (GRAVITY / 5,), {}),
    "slopes given": (decay, (0.0, 1.0), [1.0], (GRAVITY / 5,), {"yp0": [-1.0]}),
    "tight": (robertson, (0.0, 40.0), [1.0, 0.0, 0.0], rates(7), {"rtol": 1e-9, "atol": 1e-12}),
    "tolerances of each": (oscillator, (0.0, 5.0), [1.0, 0.0], (GRAVITY,), {"atol": [1e-6, 1e-8]}),
    "first step": (oscillator, (0.0, 5.0), [1.0, 0.0], (GRAVITY,), {"first_step": 1e-3}),
    "short steps": (oscillator, (0.0, 2.0), [1.0, 0.0], (GRAVITY,), {"max_step": 0.01}),
    "low order": (oscillator, (0.0, 1.0), [1.0, 0.0], (GRAVITY,), {"max_order": 1}),
    "invariant": (oscillator, (0.0, 5.0), [1.0, 0.0], (GRAVITY,), {"invariants": energy}),
    "as written": (pendulum, (0.0, 0.3), [1.0, 0.0, 0.0, 0.0, 0.0], (GRAVITY, 1.0),
                   {"form": "given"}),
    "index 2": (pendulum, (0.0, 0.5), [1.0, 0.0, 0.0, 0.0, 0.0], (GRAVITY, 1.0), {"form": 2}),
    "called": (decay, (0.0, 1.0), [1.0], (GRAVITY,), {"trace": "never"}),
    "events": (ball, (0.0, 5.0), [10.0, 0.0], (GRAVITY,), {"events": ground}),
}
IN_CORE = {
    "robertson", "pendulum", "backwards", "slopes given", "tight", "tolerances of each",
    "first step", "short steps", "low order", "invariant", "events",
}


def args_of(args, i):
    return tuple(float(a[i]) if isinstance(a, np.ndarray) else a for a in args)


@pytest.mark.parametrize("times", [None, 5], ids=["final", "t_eval"])
@pytest.mark.parametrize("case", SPANS)
def test_members_are_those_of_solve_dae(case, times):
    fun, span, y0, args, more = SPANS[case]
    t_eval = None if times is None else np.linspace(*span, times)
    result = solve_ensemble(fun, span, y0, args=args, t_eval=t_eval, engine="threads", workers=2,
                            start="quiet", **more)
    for i in range(len(result)):
        assert_same(result, i, alone(fun, span, y0, args_of(args, i), t_eval=t_eval, **more))
    assert result.in_core == (7 if case in IN_CORE else 0)


@pytest.mark.parametrize("case", ["robertson", "pendulum", "events"])
def test_chunks_make_no_difference(case):
    fun, span, y0, args, more = SPANS[case]
    members = read_members(fun, args, y0, None)
    task = read_task(fun, span, None, "final", members, more | {"start": "quiet"})
    worker = Worker(task, members)
    whole = worker.solve(members)
    for size in (1, 2, 3):
        for first in range(0, 7, size):
            last = min(7, first + size)
            part = worker.solve(members.part(first, last), first)
            np.testing.assert_array_equal(part.y, whole.y[first:last])
            np.testing.assert_array_equal(part.yp, whole.yp[first:last])
            np.testing.assert_array_equal(part.counts, whole.counts[first:last])


def test_order_of_members_makes_no_difference():
    k = rates(9)
    one = solve_ensemble(robertson, (0.0, 1e4), [1.0, 0.0, 0.0], args=k)
    other = solve_ensemble(robertson, (0.0, 1e4), [1.0, 0.0, 0.0], args=tuple(a[::-1] for a in k))
    np.testing.assert_array_equal(one.y, other.y[::-1])


@pytest.mark.parametrize("case", ["robertson", "pendulum", "called", "events"])
def test_processes(case):
    fun, span, y0, args, more = SPANS[case]
    near, far = (
        solve_ensemble(fun, span, y0, args=args, engine=engine, workers=2, start="quiet", **more)
        for engine in ("threads", "processes")
    )
    assert far.engine == "processes"
    np.testing.assert_array_equal(near.y, far.y)
    np.testing.assert_array_equal(near.stats["nfev"], far.stats["nfev"])
    assert [near.message(i) for i in range(7)] == [far.message(i) for i in range(7)]


def test_starting_values_vary():
    starts = np.array([[1.0, 0.0, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.2, 0.1, 0.6]])
    k = 0.04, 1e4, 3e7
    result = solve_ensemble(robertson, (0.0, 100.0), starts, args=k, start="quiet")
    for i, y0 in enumerate(starts):
        assert_same(result, i, alone(robertson, (0.0, 100.0), y0, k))


def test_guesses_of_multipliers():
    # the tension is a guess: of another sign it is another question for a run of its own
    starts = np.tile([1.0, 0.0, 0.0, 1.0, 0.0], (5, 1))
    starts[:, 4] = [0.0, 1.0, 50.0, -3.0, -1e-12]
    result = solve_ensemble(pendulum, (0.0, 1.0), starts, args=(9.81, 1.0))
    for i, y0 in enumerate(starts):
        assert_same(result, i, alone(pendulum, (0.0, 1.0), y0, (9.81, 1.0)))


def test_vectors_as_arguments():
    def chain(t, y, yp, k, shift):
        return [yp[0] + k[0] * y[0] - shift, yp[1] + k[1] * y[1] - k[0] * y[0]]

    k = np.array([[1.0, 2.0], [3.0, 0.5], [0.1, 0.2]])
    result = solve_ensemble(chain, (0.0, 1.0), [1.0, 0.0], args=(k, 0.25))
    assert result.in_core == 3
    for i in range(3):
        assert_same(result, i, alone(chain, (0.0, 1.0), [1.0, 0.0], (k[i], 0.25)))


def test_larger_systems_by_lapack():
    n = 25

    def line(t, y, yp, d):
        return [
            yp[i] - d * ((y[i - 1] if i else 1.0) - 2 * y[i] + (y[i + 1] if i < n - 1 else 0.0))
            for i in range(n)
        ]

    d = np.array([1.0, 10.0, 100.0])
    result = solve_ensemble(line, (0.0, 1.0), np.zeros(n), args=(d,))
    assert result.in_core == 3
    for i in range(3):
        assert_same(result, i, alone(line, (0.0, 1.0), np.zeros(n), (float(d[i]),)))


def test_integers_stay_integers():
    def power(t, y, yp, k):
        return [yp[0] + y[0] ** k]

    result = solve_ensemble(power, (0.0, 1.0), [1.0], args=(np.array([1, 2, 3]),))
    assert result.in_core == 0
    for i, k in enumerate((1, 2, 3)):
        assert_same(result, i, alone(power, (0.0, 1.0), [1.0], (k,)))


def test_switches_and_breaks_in_members():
    def relay(t, y, yp, level):
        heating = 1.0 if y[0] < level else -1.0
        pulse = 2.0 if t > 1.0 else 0.0
        return [yp[0] - heating + 0.1 * y[0] - pulse]

    levels = np.array([0.3, 1.0, 5.0])
    result = solve_ensemble(relay, (0.0, 2.0), [0.0], args=(levels,))
    for i, level in enumerate(levels):
        assert_same(result, i, alone(relay, (0.0, 2.0), [0.0], (float(level),)))


def test_a_structure_that_depends_on_the_argument():
    def circuit(t, y, yp, c):
        return [c * yp[0] + y[0] - y[1], y[1] - 1.0]

    c = np.array([1.0, 0.0, 2.0])
    result = solve_ensemble(circuit, (0.0, 1.0), [0.0, 1.0], args=(c,), start="quiet")
    for i, value in enumerate(c):
        assert_same(result, i, alone(circuit, (0.0, 1.0), [0.0, 1.0], (float(value),)))
    assert result.y[1, 0, 0] == pytest.approx(1.0)


def test_exact_solutions():
    k = np.linspace(0.5, 3.0, 11)
    result = solve_ensemble(decay, (0.0, 2.0), [1.0], args=(k,), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.y[:, 0, 0], np.exp(-2 * k), rtol=1e-7)


def test_a_function_that_changes_after_it_was_traced():
    """The trace is compared with the function in every chunk; the function is right."""
    def fickle(t, y, yp, k):
        return [yp[0] + k * y[0] + hidden[0]]

    hidden = [0.0]
    k = np.array([1.0, 2.0, 3.0])
    members = read_members(fickle, (k,), [1.0], None)
    task = read_task(fickle, (0.0, 1.0), None, "final", members, {})
    worker = Worker(task, members)
    assert worker.note == ""
    hidden[0] = 5.0
    chunk = worker.solve(members)
    assert chunk.in_core == 0
    expected = solve_dae(fickle, (0.0, 1.0), [1.0], args=(2.0,), options={"backend": "machine"})
    np.testing.assert_array_equal(chunk.y[1, 0], expected.y[:, -1])


def test_chunks_grow_with_what_members_cost():
    plan = schedule.Schedule([(0, 100_000)], seconds=0.05, workers=2, largest=10**6)
    assert plan.next() == (0, 1)
    plan.measured(1, 1e-3)
    first, last = plan.next()
    assert last - first == 16
    plan.measured(16, 16e-3)
    first, last = plan.next()
    assert 40 <= last - first <= 50
    assert engines.cores() >= 1


def test_members_from_before_are_solved_again_where_a_trace_is_wrong():
    """What ran by a program that turns out to be wrong is not believed, whenever that was."""
    def fickle(t, y, yp, k):
        return [yp[0] + k * y[0] + hidden[0]]

    hidden, seen = [0.0], []

    def change(done, total, seconds_left):
        seen.append(done)
        hidden[0] = 5.0

    k = np.linspace(1.0, 3.0, 200)
    result = solve_ensemble(fickle, (0.0, 1.0), [1.0], args=(k,), workers=1, engine="threads",
                            progress=change)
    assert result.in_core <= 200
    np.testing.assert_allclose(
        result.y[:, 0, 0], (1 + 5 / k) * np.exp(-k) - 5 / k, rtol=1e-4, atol=1e-5
    )


def test_programs_in_c():
    if not has_compiler():
        pytest.skip("no C compiler")
    k = rates(4)
    result = solve_ensemble(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], args=k,
                            options={"backend": "c"})
    assert result.in_core == 4
    for i in range(4):
        sol = solve_dae(robertson, (0.0, 1e3), [1.0, 0.0, 0.0], args=args_of(k, i),
                        options={"backend": "c"})
        assert sol.how.endswith(" C")
        assert_same(result, i, sol)


def test_invariants_beside_constraints_of_the_equations():
    def energy_of_pendulum(t, y, g, length):
        return 0.5 * (y[2] ** 2 + y[3] ** 2) + g * y[1]

    result = solve_ensemble(pendulum, (0.0, 2.0), [1.0, 0.0, 0.0, 0.0, 0.0], args=(GRAVITY, 1.0),
                            invariants=energy_of_pendulum)
    assert result.in_core == 7
    for i, g in enumerate(GRAVITY):
        assert_same(result, i, alone(pendulum, (0.0, 2.0), [1.0, 0.0, 0.0, 0.0, 0.0],
                                     (float(g), 1.0), invariants=energy_of_pendulum))


def test_constraints_that_are_called():
    def length_kept(t, y, g, length):
        return float(str(y[0] ** 2 + y[1] ** 2 - length**2))       # nobody can trace this

    result = solve_ensemble(pendulum, (0.0, 0.5), [1.0, 0.0, 0.0, 0.0, 0.0],
                            args=(GRAVITY[:2], 1.0), constraints=length_kept)
    assert result.in_core == 0
    for i in range(2):
        assert_same(result, i, alone(pendulum, (0.0, 0.5), [1.0, 0.0, 0.0, 0.0, 0.0],
                                     (float(GRAVITY[i]), 1.0), constraints=length_kept))


def test_residuals_that_fill_and_problems():
    def fills(t, y, yp, out, k):
        out[0] = yp[0] + k * y[0]

    result = solve_ensemble(fills, (0.0, 1.0), [1.0], args={"k": GRAVITY})
    assert result.in_core == 7
    for i, k in enumerate(GRAVITY):
        assert_same(result, i, alone(fills, (0.0, 1.0), [1.0], (float(k),)))
    problem = Problem.semi_explicit(lambda t, x, z: [-z[0]], lambda t, x, z: [z[0] - 2 * x[0]])
    starts = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 1.0]])
    found = solve_ensemble(problem, (0.0, 1.0), starts, start="quiet")
    for i, y0 in enumerate(starts):
        assert_same(found, i, solve_dae(problem, (0.0, 1.0), y0, options={"backend": "machine"},
                                        start="quiet"))


def test_compiled_residuals(library):
    numbers = ctypes.POINTER(ctypes.c_double)
    fun = library.relax
    fun.argtypes, fun.restype = [ctypes.c_double, numbers, numbers, numbers], None
    starts = np.asarray(RELAX_START) * np.array([[1.0], [1.1], [0.9]])
    result = solve_ensemble(fun, (0.0, 1.0), starts, start="quiet")
    for i, y0 in enumerate(starts):
        assert_same(result, i, solve_dae(fun, (0.0, 1.0), y0, start="quiet"))


def test_no_output_times():
    result = solve_ensemble(decay, (0.0, 1.0), [1.0], args=(GRAVITY,), t_eval=[])
    assert result.y.shape == (7, 1, 0)
    assert result.success.all()


@pytest.mark.parametrize("more", [
    {"start": "check"}, {"start": "assume"}, {"max_seconds": 60.0}, {"t_breaks": [0.5]},
    {"options": {"estimate": "classical"}}, {"options": {"controller": "dassl"}},
    {"options": {"scaling": "rows"}}, {"options": {"error_norm": "rms", "newton_test": "yp"}},
    {"options": {"projection_placement": "after"}}, {"options": {"projection_power": 0.5}},
    {"options": {"projection_solver": "cholesky"}}, {"options": {"linear_solver": "sparse"}},
])
def test_options(more):
    more = {"start": "quiet"} | more
    y0 = [1.0, 0.0, 0.0, 0.0, 0.0]
    result = solve_ensemble(pendulum, (0.0, 1.0), y0, yp0=[0.0, 0.0, 0.0, -9.81, 0.0],
                            args=(np.full(2, 9.81), 1.0), **more)
    options = {"backend": "machine"} | more.pop("options", {})
    sol = solve_dae(pendulum, (0.0, 1.0), y0, [0.0, 0.0, 0.0, -9.81, 0.0], args=(9.81, 1.0),
                    options=options, **more)
    for i in range(2):
        assert_same(result, i, sol)


def heater(t, y, yp, level, gain):
    """Heating below a level; members may pass it, begin on it, or stay on one side."""
    return [yp[0] - max(level - y[0], 0.0) * gain + 0.1 * abs(y[0] - 5.0)]


def drag(t, y, yp, g, c):
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, yp[2] + tension * x + c * abs(u) * u,
        yp[3] + tension * z + c * abs(v) * v + g, x * x + z * z - 1.0,
    ]


LEVELS = np.array([0.1, 1.0, 2.0, 3.0, 5.0, 6.0, 8.0, 9.0])


@pytest.mark.parametrize("backend", ["machine", "c"])
@pytest.mark.parametrize("times", [None, np.linspace(0.0, 3.0, 7)], ids=["final", "t_eval"])
def test_conditions_that_may_turn_on_the_way(times, backend):
    if backend == "c" and not has_compiler():
        pytest.skip("no C compiler")
    starts = np.array([[1.0], [1.0], [1.0], [2.5], [2.5], [2.5], [7.0], [9.0]])
    # traced with its branches, and compared on each
    result = solve_ensemble(heater, (0.0, 3.0), starts, args=(LEVELS, 0.3), t_eval=times,
                            workers=1, options={"backend": backend})
    assert 3 <= result.in_core < 8
    for i, level in enumerate(LEVELS):
        assert_same(result, i, solve_dae(heater, (0.0, 3.0), starts[i], args=(float(level), 0.3),
                                         t_eval=times, options={"backend": backend}))


@pytest.mark.parametrize("end", [0.1, 2.0])
def test_conditions_of_reduced_equations(end):
    y0 = [np.sin(0.5), -np.cos(0.5), np.cos(0.5), np.sin(0.5), 0.0]
    result = solve_ensemble(drag, (0.0, end), y0, args=(GRAVITY, 0.3), t_eval=[0.5 * end, end])
    for i, g in enumerate(GRAVITY):
        assert_same(result, i, alone(drag, (0.0, end), y0, (float(g), 0.3),
                                     t_eval=[0.5 * end, end]))
    if end < 1.0:
        assert result.in_core >= 5             # the first ones meet branches for the first time


def test_members_that_all_switch_are_not_tried_in_vain():
    def relay(t, y, yp, level):
        return [yp[0] - (2.0 if y[0] < level else 0.5)]

    levels = np.linspace(2.0, 3.0, 60)
    members = read_members(relay, (levels,), [1.0], None)
    task = read_task(relay, (0.0, 3.0), None, "final", members, {})
    worker = Worker(task, members)
    assert worker.note == ""
    for first in range(0, 60, 20):
        chunk = worker.solve(members.part(first, first + 20), first)
        assert chunk.is_complete
    assert worker.note == "most members need a run of their own"


def weighted(t, y, yp, m, g):
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, m * yp[2] + tension * x, m * yp[3] + tension * z + m * g,
        x * x + z * z - 1.0,
    ]


def test_coefficients_of_derivatives_vary():
    """With such arguments the structure might be another: it is asked for every member."""
    masses = np.array([1.0, 0.5, 2.0, 0.0, 1e-3, 7.0])
    y0 = [1.0, 0.0, 0.0, 0.0, 0.0]
    result = solve_ensemble(weighted, (0.0, 1.0), y0, args=(masses, 9.81), start="quiet")
    assert result.in_core == 5
    for i, m in enumerate(masses):
        assert_same(result, i, alone(weighted, (0.0, 1.0), y0, (float(m), 9.81)))


def test_a_template_with_another_structure():
    masses = np.array([0.0, 0.0, 1.0, 2.0])
    y0 = [1.0, 0.0, 0.0, 0.0, 0.0]
    shelf.empty()
    result = solve_ensemble(weighted, (0.0, 1.0), y0, args=(masses, 9.81), start="quiet")
    for i, m in enumerate(masses):
        assert_same(result, i, alone(weighted, (0.0, 1.0), y0, (float(m), 9.81)))
