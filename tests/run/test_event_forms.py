"""Events: their arguments, and what they may return."""

import math

import numpy as np
import pytest
from support.helpers import decay

from tether import solve_dae
from tether.run import watch

BOTH = pytest.mark.parametrize("trace", ["auto", "never"])
HALF = math.log(2.0)

FORMS = {
    "number": lambda x: x,
    "zero-dimensional": np.array,
    "vector": lambda x: np.array([x]),
    "matrix": lambda x: np.array([[x]]),
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "nested": lambda x: [[x]],
    "vector in a list": lambda x: [np.array([x])],
    "slice": lambda x: np.atleast_1d(x)[:1],
}


@BOTH
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_one_number_in_any_form(form, trace, monkeypatch):
    made = []

    def traced_events(*arguments):
        made.append(original(*arguments))
        return made[-1]

    original = watch.traced_events
    monkeypatch.setattr("tether.run.watch.traced_events", traced_events)

    def half(t, y, yp):
        return form(y[0] - 0.5)

    half.apply = lambda t, y, yp: y + 0.5
    sol = solve_dae(decay, (0, 1.0), [1.0], events=half, trace=trace, rtol=1e-8, atol=1e-10)
    assert sol.t_events[0] == pytest.approx([HALF], abs=1e-6)
    assert sol.y[0, -1] == pytest.approx(math.exp(HALF - 1.0), abs=1e-6)
    assert bool(made) == (trace == "auto")
    assert None not in made                    # a program, where there may be one


@BOTH
@pytest.mark.parametrize("value", [
    lambda x: np.array([x, x]), lambda x: [x, x], lambda x: np.zeros((1, 2)), lambda x: [],
    lambda x: np.zeros(0), lambda x: [[x], [x, x]], lambda x: [x, None], lambda x: [1j],
])
def test_more_than_one_number_is_refused_by_name(value, trace):
    steps = []
    with pytest.raises(TypeError, match=r"events\[1\] must return one real number"):
        solve_dae(decay, (0, 1), [1.0], events=[lambda t, y: y[0], lambda t, y, yp: value(y[0])],
                  trace=trace, callback=lambda t, y, yp: steps.append(t))
    assert not steps


def of_two(t, y):
    return y[0] - 0.5


def with_a_default(t, y, level=0.5):
    return y[0] - level


def with_optional_slopes(t, y, yp=None):
    return y[0] - 0.5 if yp is not None else math.nan


def of_the_slope(t, y, yp):
    return yp[0] + 0.5


def of_any_number(*everything):
    return everything[2][0] + 0.5


class Level:
    def __init__(self, level):
        self.level = level

    def __call__(self, t, y):
        return y[0] - self.level

    def of_slopes(self, t, y, yp):
        return yp[0] + self.level


@BOTH
@pytest.mark.parametrize("event", [
    of_two, with_a_default, with_optional_slopes, of_the_slope, of_any_number, Level(0.5),
    Level(0.5).of_slopes, lambda t, y: y[0] - 0.5,
])
def test_two_arguments_or_three(event, trace):
    sol = solve_dae(decay, (0, 1), [1.0], events=event, trace=trace, rtol=1e-8, atol=1e-10)
    assert sol.t_events[0] == pytest.approx([HALF], abs=1e-5)


def falling(t, y, yp, rate, level):
    return [yp[0] + rate * y[0]]


def two_and_args(t, y, rate, level):
    return y[0] - level


def three_and_args(t, y, yp, rate, level):
    return yp[0] + rate * level


@BOTH
@pytest.mark.parametrize("event", [two_and_args, three_and_args])
def test_args_follow(event, trace):
    sol = solve_dae(falling, (0, 1), [1.0], args=(2.0, 0.5), events=event, trace=trace, rtol=1e-8,
                    atol=1e-10)
    assert sol.t_events[0] == pytest.approx([HALF / 2.0], abs=1e-5)


@BOTH
def test_apply_of_two_arguments(trace):
    def half(t, y, rate, level):
        return y[0] - level

    half.apply = lambda t, y, rate, level: y + level
    sol = solve_dae(falling, (0, 0.5), [1.0], args=(2.0, 0.5), events=half, trace=trace)
    assert sol.y[0, -1] == pytest.approx(math.exp(HALF - 1.0), rel=1e-3)


@pytest.mark.parametrize(("event", "args"), [
    (lambda t: t, ()), (lambda t, y, yp, more: t, ()), (lambda: 1.0, ()),
    (lambda t, y, yp: t, (2.0, 0.5)), (lambda t, y: t, (2.0, 0.5)),
    (lambda t, y, yp, rate: t, (2.0, 0.5)), (lambda t, y, *, yp: t, ()),
])
def test_other_signatures_are_refused(event, args):
    fun = falling if args else decay
    with pytest.raises(TypeError, match=r"events\[0\] must accept \(t, y, yp\) or \(t, y\)"):
        solve_dae(fun, (0, 1), [1.0], args=args, events=event)

    def with_apply(t, y, *rest):
        return y[0] - 0.5

    with_apply.apply = event
    with pytest.raises(TypeError, match=r"events\[0\]\.apply must accept"):
        solve_dae(fun, (0, 1), [1.0], args=args, events=with_apply)
