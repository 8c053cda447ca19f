"""Functions that have no value at a point that the solver tries."""

import gc
import math
import traceback
import weakref

import numpy as np
import pytest

from tether import Bdf, Cause, Problem, Status, consistent_start, solve_dae, solve_fixed
from tether._core import codes, probe
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.options import Options

FAMILY = [ValueError, ZeroDivisionError, OverflowError, FloatingPointError]


def called(fun, *arguments, **options):
    return solve_dae(fun, *arguments, trace="never", **options)


# --- a smaller step, a shorter way ------------------------------------------------------------


def test_newtons_iterates_for_a_start_may_leave_the_domain():
    def fun(t, y, yp):
        return [yp[0] + y[1], math.log(y[1]) - y[0]]

    with pytest.warns(match="was changed"):
        sol = called(fun, (0, 1), [0.0, 5.0])
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], [-math.log(2), 0.5], rtol=1e-6)
    assert sol.start.moved == pytest.approx({1: -4.0})
    start = consistent_start(fun, 0.0, [0.0, 5.0], free=[1], fixed=[0])
    assert start.success
    np.testing.assert_allclose(start.y, [0.0, 1.0], rtol=1e-9)


DOMAINS = {
    "log": (math.log, math.exp),                       # a function and its inverse
    "sqrt": (math.sqrt, lambda z: z * z),
    "power": (lambda x: (x if x >= 0 else math.log(x)) ** 0.5, lambda z: z * z),
    "asin": (math.asin, math.sin),
    "division": (lambda x: 1.0 / x if x > 0 else 1 // 0, lambda z: 1.0 / z),
    "overflow": (lambda x: math.exp(math.exp(x)), lambda z: math.log(math.log(z))),
}


@pytest.mark.parametrize("edge", [1e-2, 1e-6])
@pytest.mark.parametrize("name", DOMAINS)
def test_solutions_next_to_the_edge_of_a_domain(name, edge):
    """x moves within a domain of its own, down to next to its edge, and z = f(x) is an unknown."""
    f, inverse = DOMAINS[name]
    if name == "asin":
        def x_at(t):
            return 1.0 - edge - 0.5 * (1.0 + math.cos(t))
    else:
        def x_at(t):
            return edge + 0.5 * (1.0 + math.cos(t))

    def fun(t, y, yp):
        x, z = y
        return [yp[0] + (0.5 if name != "asin" else -0.5) * math.sin(t), f(x) - z]

    for end in (3.0, math.pi, 5.0):
        sol = called(fun, (0, end), [x_at(0.0), f(x_at(0.0))], rtol=1e-9, atol=1e-10)
        assert sol.success, sol.message
        assert sol.y[0, -1] == pytest.approx(x_at(end), abs=1e-7)
        assert inverse(sol.y[1, -1]) == pytest.approx(x_at(end), abs=1e-7)


def test_numpy_that_raises():
    def fun(t, y, yp):
        with np.errstate(all="raise"):
            return [yp[0] + y[1], np.log(y[1]) - y[0]]

    with pytest.warns(match="was changed"):
        assert called(fun, (0, 1), [0.0, 5.0]).success


def test_a_run_under_errstate_raise():
    with np.errstate(all="raise"):
        sol = called(lambda t, y, yp: [yp[0] + np.sqrt(y[0]) - 0.01], (0, 30), [1.0])
        assert sol.success
        sol = called(lambda t, y, yp: [yp[0] + np.sqrt(y[0])], (0, 30), [1.0])
        assert sol.status == Status.NON_FINITE
        assert type(sol.diagnosis.exception) is FloatingPointError


@pytest.mark.parametrize("error", FAMILY)
@pytest.mark.parametrize("who", ["fun", "jac", "constraint", "invariant", "event"])
def test_whoever_raises_once_is_asked_again(who, error):
    """One exception at any call but those at the start changes nothing but the steps."""
    calls = {"count": 0, "last": math.inf, "raised": 0}

    def moody(function):
        def asked(t, *rest):
            calls["count"] += 1
            located = who == "event" and abs(rest[0][0]) < 0.4       # there it would pass through
            if calls["count"] > calls["last"] and t > 0.0 and not located:
                calls["last"] = math.inf
                calls["raised"] += 1
                raise error("not now")
            return function(t, *rest)
        return asked

    def swing(t, y, yp):
        return [yp[0] - y[1], yp[1] + y[0]]

    functions = {
        "fun": swing,
        "jac": lambda t, y, yp: (np.array([[0.0, -1.0], [1.0, 0.0]]), np.eye(2)),
        "constraint": lambda t, y: y[0] - math.cos(t),
        "invariant": lambda t, y: y[0] ** 2 + y[1] ** 2,
        "event": lambda t, y, yp: y[0],
    }

    def run(last):
        calls.update(count=0, last=last, raised=0)
        f = functions | {who: moody(functions[who])}
        extra = {"invariants": f["invariant"]} if who == "invariant" else (
            {"constraints": f["constraint"]} if who == "constraint" else {}
        )
        return called(f["fun"], (0, 4), [1.0, 0.0], jac=f["jac"], events=f["event"], **extra)

    run(math.inf)
    for last in np.unique(np.linspace(3, calls["count"] - 2, 12).astype(int)).tolist():
        sol = run(last)
        assert sol.success, sol.message
        assert sol.diagnosis.exception is None
        np.testing.assert_allclose(sol.y[:, -1], [math.cos(4), -math.sin(4)], atol=1e-4)
        np.testing.assert_allclose(sol.t_events[0], [math.pi / 2], atol=1e-4)


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_differences_try_the_other_side(slope):
    """At y = 0 one of the sides is outside, and y' has the wrong sign for forward differences."""
    def fun(t, y, yp):
        math.sqrt(slope * y[0])
        return [yp[0] - slope - 1e-3 * (y[0] - slope * t)]

    sol = called(fun, (0, 1), [0.0], [slope])
    assert sol.success, sol.message
    assert sol.y[0, -1] == pytest.approx(slope)
    sol = called(lambda t, y, yp: [math.sqrt(yp[0]) - 0.0 * y[0]], (0, 1), [1.0], [0.0])
    assert sol.success, sol.message


def test_constraints_next_to_the_edge_of_their_domain():
    def fun(t, y, yp):
        return [yp[0] + y[0], yp[1] + 2.0 * y[1]]

    sol = called(fun, (0, 12), [1.0, 1.0], constraints=lambda t, y: math.sqrt(y[1]) - y[0])
    assert sol.success, sol.message
    np.testing.assert_allclose(sol.y[0, -1], math.exp(-12), atol=1e-8)


def test_an_event_before_the_end_of_its_domain_is_found():
    def event(t, y, yp):
        return math.sqrt(y[0]) - 0.1

    event.terminal = True
    for trace in ("never", "auto"):
        sol = solve_dae(lambda t, y, yp: [yp[0] + 1.0], (0, 5), [1.0], events=event, trace=trace)
        assert sol.status == Status.EVENT
        assert sol.t[-1] == pytest.approx(0.99)


# --- where nothing helps ------------------------------------------------------------------------


def tank(t, y, yp):
    return [yp[0] + math.sqrt(y[0])]      # the tank is empty at t = 2


def test_the_end_of_a_domain_ends_the_run_with_all_that_was_computed():
    sol = called(tank, (0, 3), [1.0], t_eval=np.linspace(0, 3, 31), dense_output=True)
    assert sol.status == Status.NON_FINITE
    np.testing.assert_allclose(sol.y[0], (1 - sol.t / 2) ** 2, atol=1e-5)
    assert len(sol.t) == 20 or sol.t[-1] == pytest.approx(2.0)
    assert sol.sol(1.0)[0][0] == pytest.approx(0.25, rel=1e-4)
    found = sol.diagnosis
    assert found.cause == Cause.EXCEPTION
    assert type(found.exception) is ValueError
    assert "ValueError" in sol.message
    assert "test_adapters.py: return [yp[0] + math.sqrt(y[0])]" in sol.message
    frames = [frame.name for frame in traceback.extract_tb(found.exception.__traceback__)]
    assert frames[-1] == "tank"


def test_the_same_object_is_in_the_diagnosis():
    class DomainError(ValueError):
        pass

    mine = DomainError("mine")

    def fun(t, y, yp):
        if t > 0.5:
            raise mine
        return [yp[0] + y[0]]

    for trace in ("never", "auto"):
        sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
        assert sol.status == Status.NON_FINITE
        assert sol.diagnosis.exception is mine
        assert sol.t[-1] == pytest.approx(0.5, abs=1e-6)
    bdf = Bdf(fun, 0.0, [1.0], t_bound=1.0)
    while bdf.step() == Status.RUNNING:
        assert bdf.exception is None
    assert bdf.exception is mine


def test_an_exception_at_the_last_step():
    def fun(t, y, yp):
        return [yp[0] + y[0] + 0.0 / (1.0 - t)]

    sol = called(fun, (0, 1), [1.0], t_eval=[0.5, 1.0])
    assert sol.status == Status.NON_FINITE
    assert sol.t.tolist() == [0.5]
    assert type(sol.diagnosis.exception) is ZeroDivisionError


@pytest.mark.parametrize("error", FAMILY)
def test_an_apply_that_leads_outside(error):
    def fun(t, y, yp):
        if y[0] < 0.0:
            raise error("below")
        return [yp[0] + 1.0]

    def event(t, y, yp):
        return y[0] - 0.5

    event.apply = lambda t, y, yp: [-1.0]
    sol = called(fun, (0, 2), [1.0], events=event)
    assert sol.status == Status.NO_CONSISTENT_START
    assert sol.t[-1] == pytest.approx(0.5)
    assert sol.diagnosis.cause == Cause.EXCEPTION
    assert type(sol.diagnosis.exception) is error


# --- what passes through ----------------------------------------------------------------------


@pytest.mark.parametrize("error", FAMILY)
@pytest.mark.parametrize("who", ["fun", "jac", "constraint", "event"])
def test_at_the_start_they_pass_through(who, error):
    mine = error("mine")

    def raising(*_):
        raise mine

    functions = {"fun": lambda t, y, yp: [yp[0] + y[0]],
                 "jac": lambda t, y, yp: (np.eye(1), np.eye(1)),
                 "constraint": lambda t, y: y[0] - math.exp(-t), "event": lambda t, y, yp: y[0]}
    functions[who] = raising
    for slopes in (None, [-1.0]):
        with pytest.raises(error) as caught:
            called(functions["fun"], (0, 1), [1.0], slopes, jac=functions["jac"],
                   constraints=functions["constraint"], events=functions["event"])
        assert caught.value is mine
    if who == "fun":
        with pytest.raises(error) as caught:
            consistent_start(raising, 0.0, [1.0])
        assert caught.value is mine


@pytest.mark.parametrize("error", FAMILY)
@pytest.mark.parametrize("who", ["callback", "apply"])
def test_at_accepted_points_they_pass_through(who, error):
    mine = error("mine")

    def raising(*_):
        raise mine

    def event(t, y, yp):
        return y[0] - 0.5

    if who == "apply":
        event.apply = raising
    with pytest.raises(error) as caught:
        called(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], events=event,
               callback=raising if who == "callback" else None)
    assert caught.value is mine


@pytest.mark.parametrize("error", [KeyError, TypeError, RuntimeError, ArithmeticError,
                                   MemoryError, KeyboardInterrupt, GeneratorExit])
def test_other_exceptions_pass_through(error):
    mine = error("mine")

    def fun(t, y, yp):
        if t > 0.5:
            raise mine
        return [yp[0] + y[0]]

    with pytest.raises(error) as caught:
        called(fun, (0, 1), [1.0])
    assert caught.value is mine


def test_wrong_results_pass_through_wherever_they_are_noticed():
    def late(value, wrong):
        return lambda t, y, *_: wrong if t > 0.5 else value(t, y, *_)

    def decay(t, y, yp):
        return [yp[0] + y[0]]

    with pytest.raises(ValueError, match="fun must return 1 values"):
        called(late(decay, [1.0, 2.0]), (0, 1), [1.0])
    with pytest.raises(ValueError, match="constraint or invariant returned 1"):
        called(decay, (0, 1), [1.0],
               constraints=late(lambda t, y: y[0] - math.exp(-t), [1.0, 2.0]))
    problem = Problem.mass_matrix(np.eye(1), late(lambda t, y: -y, np.ones(2)))
    with pytest.raises(ValueError, match="f must return 1 values"):
        called(problem, (0, 1), [1.0])


def test_constant_steps_have_nothing_to_try():
    with pytest.raises(ValueError, match="domain"):
        solve_fixed(tank, (0, 3), [1.0], order=1, step=0.1)


# --- memory --------------------------------------------------------------------------------------


def test_refused_points_leave_nothing_behind():
    class DomainError(ValueError):
        pass

    alive = weakref.WeakSet()

    def fun(t, y, yp):
        error = DomainError("here")
        alive.add(error)
        raise error

    mine = ValueError("always the same")

    def again(t, y, yp):
        raise mine

    for residual in (fun, again):
        s = new_state(AsWritten(Problem(residual), 1), Options())
        for _ in range(5000):
            assert probe.residual_at(s, 0.0, [1.0], [0.0])[0] == codes.NON_FINITE
    gc.collect()
    assert len(alive) <= 1
    assert len(list(traceback.walk_tb(mine.__traceback__))) == 0
    sol = called(tank, (0, 3), [1.0])
    assert len(list(traceback.walk_tb(sol.diagnosis.exception.__traceback__))) < 5


def test_a_run_that_succeeds_keeps_no_exception():
    class DomainError(ValueError):
        pass

    alive = weakref.WeakSet()
    bad = {"calls": 0}

    def fun(t, y, yp):
        bad["calls"] += 1
        if bad["calls"] % 40 == 0:
            error = DomainError("now and then")
            alive.add(error)
            raise error
        return [yp[0] + y[0]]

    bdf = Bdf(fun, 0.0, [1.0], t_bound=10.0, options={"trace": "never"})
    while bdf.step() == Status.RUNNING:
        pass
    assert bdf.status == Status.REACHED_END
    gc.collect()
    assert not alive
