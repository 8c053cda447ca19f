"""Ways to write a residual that cannot be traced: refused with their line, or as a whole."""

import enum
import functools
import inspect
import math
import os
import random
import sys
import time

import numpy as np
import pytest
import scipy.sparse
import scipy.special
from scipy.interpolate import CubicSpline, PPoly

from tether import Problem, analyze, solve_dae
from tether.problem.problem import prepared
from tether.trace import TraceFailure, evaluate, trace, verify

counter = 0
log = []
buffer = np.zeros(3)
generator = np.random.default_rng(1)
SPLINE = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0])


def name_of(value):
    return getattr(value, "__name__", type(value).__name__) if callable(value) else ""


# --- refused, each with the line marked "here" --------------------------------------------------


def needs_int(t, y, yp):
    return [yp[0] + int(y[0]), yp[1], yp[2]]  # here


def index_by_value(t, y, yp):
    i = math.floor(y[0])
    return [yp[0] + [1.0, 2.0][i], yp[1], yp[2]]  # here


def float_array_from_outside(t, y, yp):
    buffer[0] = y[0]  # here
    return yp + buffer


def constant_to_array_from_outside(t, y, yp):
    buffer[0] = 1.0  # here
    return yp + y


def endless_loop(t, y, yp):
    x = y[0]
    while x > 0.001:  # here
        x = x / 2
    return [yp[0] + x, yp[1], yp[2]]


def as_integers(t, y, yp):
    return yp + y.astype(int)  # here


def picks_by_mask(t, y, yp):
    return [yp[0] + y[y > 0.5].sum(), yp[1], yp[2]]  # here


def unknown_function(t, y, yp):
    return yp + scipy.special.zeta(y)  # here


def unknown_math(t, y, yp):
    return [yp[0] + math.ulp(y[0]), yp[1], yp[2]]  # here


def reads_a_file(t, y, yp):
    with open(os.devnull) as file:  # here
        file.read()
    return yp + y


def draws_numbers(t, y, yp):
    return yp + y + random.random()  # here


def draws_with_numpy(t, y, yp):
    return yp + y * np.random.rand()  # here  # noqa: NPY002


def draws_with_generator(t, y, yp):
    return yp + y * generator.normal()  # here


def asks_the_clock(t, y, yp):
    return yp + y + time.time()  # here


def prints_to_a_file(t, y, yp):
    print(t, file=log)  # here
    return yp


def rounds(t, y, yp):
    return [round(y[0], 3) + yp[0], yp[1], yp[2]]  # here


def uses_fft(t, y, yp):
    return yp + np.fft.fft(y).real  # here


def formats(t, y, yp):
    label = f"{y[0]:.3f}"  # here
    return yp + len(label)


def dictionary_key(t, y, yp):
    return [{y[0]: 1.0}[y[0]], yp[1], yp[2]]  # here


def complex_number(t, y, yp):
    return [abs(complex(y[0], y[1])), yp[1], yp[2]]  # here


@functools.cache
def cached_by_value(x):
    return math.sin(x)


REFUSED = [
    (needs_int, "int"),
    (index_by_value, "integer"),
    (float_array_from_outside, "outside"),
    (constant_to_array_from_outside, "outside"),
    (endless_loop, "branches more than"),
    (as_integers, "int"),
    (picks_by_mask, "condition"),
    (unknown_function, "zeta"),
    (unknown_math, "math.ulp"),
    (reads_a_file, "opens a file"),
    (draws_numbers, "random"),
    (draws_with_numpy, "random"),
    (draws_with_generator, "Generator"),
    (asks_the_clock, "time"),
    (prints_to_a_file, "prints to a file"),
    (rounds, "rounds a traced number"),
    (uses_fft, "fft"),
    (formats, "makes text of a traced number"),
    (dictionary_key, "unhashable"),
    (complex_number, "complex"),
]


@pytest.mark.parametrize(("fun", "words"), REFUSED, ids=name_of)
def test_refused_with_its_line(fun, words):
    before = buffer.copy(), generator.bit_generator.state, list(log), counter
    with pytest.raises(TraceFailure, match=words) as caught:
        trace(fun, 3)
    lines, first = inspect.getsourcelines(fun)
    (line,) = [first + i for i, text in enumerate(lines) if "# here" in text]
    assert caught.value.line == line
    assert f"line {line}: " in str(caught.value)
    assert caught.value.file == __file__
    np.testing.assert_array_equal(buffer, before[0])
    assert (generator.bit_generator.state, log, counter) == before[1:]


# --- refused as a whole -------------------------------------------------------------------------


def counts_calls(t, y, yp):
    global counter
    counter += 1
    return yp + y


def appends(t, y, yp):
    log.append(t)
    return yp + y


class Counting:
    def __init__(self):
        self.calls = 0

    def __call__(self, t, y, yp):
        self.calls += 1
        return yp + y


class Slotted:
    __slots__ = ("calls", "k")

    def __init__(self, k):
        self.calls, self.k = 0, k

    def rate(self, x):
        return self.k * math.sin(x)

    def residual(self, t, y, yp):
        return [yp[i] + self.rate(y[i]) for i in range(3)]

    def counting(self, t, y, yp):
        self.calls += 1
        return yp + y


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


MODE = Mode.FAST
SLOTTED = Slotted(2.0)
NESTED = {"log": [], "data": {"buffer": np.zeros(3)}}


def enumeration(t, y, yp):
    return yp + y if MODE is Mode.FAST else yp


def nested_log(t, y, yp):
    NESTED["log"].append(t)
    return yp


def nested_buffer(t, y, yp):
    NESTED["data"]["buffer"][:] = 1.0
    return yp


def class_attribute(t, y, yp):
    Slotted.total = 1
    return yp


def writes_to_y(t, y, yp):
    y[0] = 0.0
    return yp + y


def swallows(t, y, yp):
    try:
        k = int(y[0])
    except:  # noqa: E722
        k = 3
    return yp + k


def exits(t, y, yp):
    if y[0] > 2:
        raise SystemExit
    return yp


def newton(t, y, yp):
    x = y[0]
    while True:
        step = (x * x - y[1]) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            return [yp[0] - x, yp[1], yp[2]]


def counting_closure():
    calls = 0

    def residual(t, y, yp):
        nonlocal calls
        calls += 1
        return yp + y

    return residual


def attribute_of_the_function(t, y, yp):
    attribute_of_the_function.calls += 1
    return yp + y


attribute_of_the_function.calls = 0


OFF, ON = 0.0, 1.0
heating = [ON]


def hysteresis(t, y, yp):
    """Writes on one branch what it writes back on another."""
    if y[0] > 21.0:
        heating[0] = OFF
    if y[0] < 19.0:
        heating[0] = ON
    return yp + y - heating[0]


def too_short(t, y, yp):
    return [yp[0], yp[1]]


def different_lengths(t, y, yp):
    return [yp[0], yp[1]] if y[0] > 0 else [yp[0], yp[1], yp[2]]


def forgets_one(t, y, yp, out):
    out[0] = yp[0]
    out[2] = yp[2]


def reads_out(t, y, yp, out):
    out += yp


def returns_a_number(t, y, yp):
    return y[0]


def returns_text(t, y, yp):
    return [yp[0], "a", yp[1]]


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (counts_calls, "global variable 'counter'"),
        (appends, "list from outside"),
        (Counting(), "attribute of a Counting"),
        (counting_closure(), "variable 'calls'"),
        (SLOTTED.counting, "attribute of a Slotted"),
        (nested_log, "list from outside"),
        (nested_buffer, "array from outside"),
        (class_attribute, "the class Slotted"),
        (writes_to_y, "writes to y"),
        (swallows, "needs a number"),
        (exits, "SystemExit"),
        (newton, "more than 64 paths"),
        (attribute_of_the_function, "attribute of attribute_of_the_function"),
        (hysteresis, "list from outside"),
        (too_short, "2 values instead of 3"),
        (different_lengths, "2 values instead of 3"),
        (forgets_one, r"does not set equation 1, out\[1\]"),
        (reads_out, "before it is set"),
        (returns_a_number, "not a list or an array"),
        (returns_text, "equation 1 is a str"),
    ],
    ids=name_of,
)
def test_refused_without_effects(fun, words):
    with pytest.raises(TraceFailure, match=words):
        trace(fun, 3, fills=fun in (forgets_one, reads_out))
    assert (counter, log, attribute_of_the_function.calls) == (0, [], 0)
    assert (SLOTTED.calls, NESTED["log"], NESTED["data"]["buffer"].sum()) == (0, [], 0.0)
    assert not hasattr(Slotted, "total")
    assert heating == [ON]


def test_bad_objects_are_left_as_they_were():
    fun = Counting()
    with pytest.raises(TraceFailure):
        trace(fun, 3)
    assert fun.calls == 0


def test_argument_that_is_needed_as_a_number_is_taken_as_constant():
    def fun(t, y, yp, size):
        return yp[:3] + np.ones(int(size)) * y

    traced = trace(fun, 3, (3.0,))
    assert traced.args.size == 0
    assert "traced for these arguments only" in traced.notes[0]
    assert "needs a number" in traced.notes[0]


def test_what_has_a_derivative_only_python_can_call():
    """Breakpoints that descend: not one of the piecewise polynomials that a program may have."""
    from tether.trace import NoProgram

    spline = PPoly(SPLINE.c, SPLINE.x[::-1])

    def fun(t, y, yp):
        return [yp[0] - spline(t), yp[1] + spline(y[0]), yp[2] - spline.derivative()(y[1])]

    traced = trace(fun, 3)
    with pytest.raises(NoProgram, match="PPoly can only be called from Python"):
        traced.program()
    y, yp = np.array([0.3, 1.4, 2.0]), np.ones(3)
    values = evaluate(traced.program(opaque=True), 0.7, y, yp)
    np.testing.assert_allclose(values, fun(0.7, y, yp), rtol=1e-14)
    slopes = evaluate(traced.program(traced.f_y.nodes, opaque=True), 0.7, y, yp)
    np.testing.assert_allclose(slopes, [spline(0.3, 1), -spline(1.4, 2)], rtol=1e-14)
    verify(traced, fun, 0.7, y, yp)
    sol = solve_dae(fun, (0.0, 0.5), y)
    assert sol.success
    assert sol.how == "called as it is: PPoly can only be called from Python"
    assert "PPoly can only be called from Python" in analyze(fun, 0.0, y).how


@pytest.mark.parametrize("fun", [SLOTTED.residual, enumeration], ids=name_of)
def test_objects_keep_their_meaning(fun):
    y, yp = np.array([0.3, 0.4, 0.5]), np.ones(3)
    traced = trace(fun, 3)
    np.testing.assert_array_equal(evaluate(traced.program(), 0.0, y, yp), fun(0.0, y, yp))


def test_semi_explicit_problem():
    problem = Problem.semi_explicit(
        lambda t, x, z: -z * np.sin(x), lambda t, x, z: [x[0] - z[0] - x[1]]
    )
    y, yp = np.array([0.4, 0.6, 0.7]), np.array([1.0, 2.0, 3.0])
    problem = prepared(problem, 0.0, y)
    traced = trace(problem.fun, 3, fills=True)
    out = np.empty(3)
    problem.fun(0.0, y, yp, out)
    np.testing.assert_array_equal(evaluate(traced.program(), 0.0, y, yp), out)


def test_modules_of_the_user_are_followed(tmp_path, monkeypatch):
    (tmp_path / "my_rates.py").write_text(
        "import math\nK = 2.0\ndef rate(x):\n    return K * math.sin(x)\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_rates

    def fun(t, y, yp):
        return [yp[0] + my_rates.rate(y[0]) * my_rates.K]

    program = trace(fun, 1).program()
    assert evaluate(program, 0.0, [0.3], [1.0])[0] == 1 + 2 * math.sin(0.3) * 2
    sys.modules.pop("my_rates")
