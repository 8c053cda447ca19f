"""Runs that ask for what they need."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from tether import Bdf, Problem, Status

Y0 = [1.0, 0.7]


def circuit(t, y, yp):
    return [yp[0] + y[0] - y[1], y[1] ** 3 + y[1] - np.cos(t) - y[0]]


def slopes(t, y, yp):
    return np.array([[1.0, -1.0], [-1.0, 3.0 * y[1] ** 2 + 1.0]]), np.diag([1.0, 0.0])


def threads():
    return [t for t in threading.enumerate() if t.name == "tether requests"]


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    gc.collect()
    assert threads() == []


def answered(run, fun=circuit, jac=slopes):
    """Serve a run to its end; return its steps and how many requests of each kind there were."""
    steps, kinds, factors = [], {}, None
    for request in run:
        kinds[request.kind] = kinds.get(request.kind, 0) + 1
        if request.kind == "residual":
            request.answer = fun(request.t, request.y, request.yp)
        elif request.kind == "jacobian":
            request.answer = jac(request.t, request.y, request.yp)
        elif request.kind == "factor":
            factors = splu(request.matrix)
        elif request.kind == "solve":
            request.answer = factors.solve(request.b)
        else:
            steps.append(request)
    return steps, kinds


def called(fun=circuit, jac=None, t_bound=5.0, y0=Y0, **options):
    run = Bdf(Problem(fun, jac=jac), 0.0, y0, options={"trace": "never", **options},
              t_bound=t_bound)
    points = []
    while run.status == Status.RUNNING:
        run.step()
        points.append((run.t, *run.y))
    return np.array(points), run


@pytest.mark.parametrize("jacobian", [False, True])
def test_a_run_by_requests_is_the_run_of_a_function(jacobian):
    points, run = called(jac=slopes if jacobian else None)
    steps, kinds = answered(Bdf.requests(0.0, Y0, t_bound=5.0, jacobian=jacobian))
    np.testing.assert_array_equal([(step.t, *step.y) for step in steps], points)
    assert steps[-1].status == Status.REACHED_END
    assert kinds["residual"] == run.stats.nfev
    assert ("jacobian" in kinds) == jacobian
    assert steps[-1].run.stats.steps == run.stats.steps


def test_linear_algebra_is_asked_for():
    points, _ = called(jac=slopes)
    steps, kinds = answered(
        Bdf.requests(0.0, Y0, t_bound=5.0, jacobian=True, linear_algebra=True)
    )
    np.testing.assert_allclose(steps[-1].y, points[-1, 1:], rtol=1e-5)
    assert kinds["solve"] > kinds["factor"] > 5
    assert "answers to requests" in steps[-1].run.how


def test_answers_may_be_sent():
    run = Bdf.requests(0.0, Y0, t_bound=5.0)
    request, seen = next(run), []

    def serve():
        nonlocal request
        while True:
            seen.append(request)
            asked = request.kind == "residual"
            request = run.send(circuit(request.t, request.y, request.yp) if asked else None)

    with pytest.raises(StopIteration) as end:
        serve()
    assert end.value.value == Status.REACHED_END
    np.testing.assert_array_equal(seen[-1].y, called()[0][-1, 1:])


def test_runs_may_take_turns():
    alone, _ = answered(Bdf.requests(0.0, Y0, t_bound=5.0))
    runs = [Bdf.requests(0.0, Y0, t_bound=5.0) for _ in range(3)]
    going, ends = {run: next(run) for run in runs}, []
    while going:
        for run, request in list(going.items()):
            answer = None
            if request.kind == "residual":
                answer = circuit(request.t, request.y, request.yp)
            elif request.status != Status.RUNNING:
                ends.append(request.y)
            try:
                going[run] = run.send(answer)
            except StopIteration:
                del going[run]
    np.testing.assert_array_equal(ends, [alone[-1].y] * 3)


def test_a_matrix_that_is_said_to_be_singular_is_tried_again():
    run = Bdf.requests(0.0, Y0, t_bound=5.0, linear_algebra=True)
    count, factors = 0, None
    for request in run:
        if request.kind == "residual":
            request.answer = circuit(request.t, request.y, request.yp)
        elif request.kind == "factor":
            count += 1
            factors = splu(request.matrix)
            request.answer = count != 7
        elif request.kind == "solve":
            assert isinstance(request.matrix, csc_array)
            request.answer = factors.solve(request.b)
    assert request.status == Status.REACHED_END


def test_an_exception_that_is_thrown_is_that_of_a_function():
    # a point that is refused: the step gets smaller
    run = Bdf.requests(0.0, [1.0], t_bound=3.0)
    request, refused, last = next(run), 0, None
    while last is None or last.status == Status.RUNNING:
        if request.kind == "residual" and request.y[0] < 0.0:
            refused += 1
            request = run.throw(ValueError("no roots of negative numbers"))
        elif request.kind == "residual":
            request = run.send(request.yp + 2.0 * np.sqrt(request.y))
        else:
            last = request
            request = next(run, None)
    assert refused
    assert last.status.failed
    assert 0.9 < last.t < 1.01

    class MineError(Exception):
        pass

    run = Bdf.requests(0.0, [1.0], t_bound=3.0)
    next(run)
    error = MineError("stop")
    with pytest.raises(MineError) as caught:
        run.throw(error)
    assert caught.value is error
    with pytest.raises(StopIteration):
        next(run)


@pytest.mark.parametrize(("kind", "wrong", "error", "words"), [
    ("residual", [1.0], ValueError, r"residual at t = .* shape \(2,\), got \(1,\)"),
    ("residual", np.eye(2), ValueError, "residual at t"),
    ("residual", "text", TypeError, "residual at t = .* 2 real numbers"),
    ("residual", None, TypeError, "residual at t = .* was not answered"),
    ("residual", [1.0, 2j], TypeError, "residual at t"),
    ("jacobian", np.eye(2), TypeError, r"jacobian at t = .* must be \(F_y, F_yp\)"),
    ("jacobian", (np.eye(2), np.eye(3)), ValueError, r"jacobian at t = .* \(2, 2\), got \(3, 3\)"),
    ("jacobian", None, TypeError, "jacobian at t = .* was not answered"),
    ("factor", "done", TypeError, "factor takes None"),
    ("factor", np.eye(2), TypeError, "factor takes None"),
    ("solve", [1.0, 2.0, 3.0], ValueError, r"solve must have shape \(2,\), got \(3,\)"),
    ("solve", None, TypeError, "solve was not answered"),
    ("solve", [np.nan, 0.0], ValueError, "answers to requests: .* not finite"),
])
def test_wrong_answers_raise_and_name_the_request(kind, wrong, error, words):
    run = Bdf.requests(0.0, Y0, t_bound=5.0, jacobian=True, linear_algebra=True)
    factors, request = None, next(run)

    def serve():
        nonlocal factors, request
        while True:
            answer = None
            if request.kind == kind:
                answer = wrong
            elif request.kind == "residual":
                answer = circuit(request.t, request.y, request.yp)
            elif request.kind == "jacobian":
                answer = slopes(request.t, request.y, request.yp)
            elif request.kind == "factor":
                factors = splu(request.matrix)
            elif request.kind == "solve":
                answer = factors.solve(request.b)
            request = run.send(answer)

    with pytest.raises(error, match=words):
        serve()


def test_values_that_are_not_finite_are_no_wrong_answer():
    run = Bdf.requests(0.0, [1.0], t_bound=3.0)
    with np.errstate(invalid="ignore"):
        for request in run:
            if request.kind == "residual":
                request.answer = request.yp + 2.0 * np.sqrt(request.y)
    assert request.status == Status.NON_FINITE


@pytest.mark.parametrize("end", ["close", "forget", "cycle", "leave", "before it begins"])
def test_no_thread_outlives_its_generator(end):
    run = Bdf.requests(0.0, Y0, t_bound=5.0)
    if end != "before it begins":
        for count, request in enumerate(run):
            if request.kind == "residual":
                request.answer = circuit(request.t, request.y, request.yp)
            if count == 50:
                break
        assert len(threads()) == 1
    if end == "close":
        run.close()
        assert threads() == []
    elif end == "cycle":
        holder = [run]
        holder.append(holder)
        del holder
    request = None
    del run
    gc.collect()
    assert threads() == []


def test_a_program_may_end_while_a_run_waits():
    text = (
        "from tether import Bdf\n"
        "run = Bdf.requests(0.0, [1.0], t_bound=1.0)\n"
        "print(next(run).kind)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "residual\n", "")


def test_the_end_may_be_moved_and_the_run_looked_at():
    ends, run = [2.0, 3.0], Bdf.requests(0.0, Y0, t_bound=1.0)
    times = []
    for request in run:
        if request.kind == "residual":
            request.answer = circuit(request.t, request.y, request.yp)
        else:
            y, _ = request.run.dense_output()(request.t)
            np.testing.assert_allclose(y, request.y)
            if request.status == Status.RUNNING:
                with pytest.raises(RuntimeError, match="takes its steps itself"):
                    request.run.step()
            if request.status == Status.REACHED_END and ends:
                times.append(request.t)
                request.run.t_bound = ends.pop(0)
    assert [*times, request.t] == [1.0, 2.0, 3.0]


def test_a_start_that_fails_is_told_by_the_first_step():
    run = Bdf.requests(0.0, [1.0, 1.0], t_bound=1.0)
    steps, _ = answered(run, lambda t, y, yp: [yp[0] - y[1], y[0] ** 2 + 1.0 + 0.0 * y[1]])
    assert len(steps) == 1
    assert steps[0].status.failed


def test_constraints_and_patterns_are_passed_on():
    def oscillator(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0]]

    steps, _ = answered(
        Bdf.requests(0.0, [1.0, 0.0], t_bound=20.0, options={"rtol": 1e-4},
                     invariants=lambda t, y: [y[0] ** 2 + y[1] ** 2],
                     jac_sparsity=np.ones((2, 2))),
        oscillator,
    )
    assert abs(np.sum(steps[-1].y ** 2) - 1.0) < 1e-8


@pytest.mark.parametrize(("wrong", "error", "words"), [
    ({"options": {"trace": "always"}}, ValueError, "cannot be traced"),
    ({"options": {"rtoll": 1}}, TypeError, "rtoll"),
    ({"args": (1,)}, TypeError, "args"),
    ({"fun": circuit}, TypeError, "fun"),
    ({"y0": "text"}, TypeError, "y0"),
    ({"jac_sparsity": np.ones(3)}, TypeError, "jac_sparsity"),
])
def test_bad_arguments_raise_at_once(wrong, error, words):
    arguments = {"y0": Y0, "t_bound": 1.0} | wrong
    with pytest.raises(error, match=words):
        Bdf.requests(0.0, arguments.pop("y0"), **arguments)


@pytest.mark.parametrize(("wrong", "words"), [
    ({"t_bound": 0.0}, "t_bound"), ({"yp0": [1.0]}, "yp0"), ({"names": ["a"]}, "names"),
])
def test_others_raise_with_the_first_request(wrong, words):
    run = Bdf.requests(0.0, Y0, **{"t_bound": 1.0} | wrong)
    with pytest.raises(ValueError, match=words):
        next(run)
