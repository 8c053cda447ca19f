"""Messages and exceptions of a function's own: what a program leaves out, and where it is NaN."""

import logging
import math
import warnings

import numpy as np
import pytest
from support import asserting

from tether import Cause, Status, solve_dae
from tether.trace import TraceFailure, evaluate, trace

pytestmark = pytest.mark.usefixtures("nothing_is_known")

log = logging.getLogger("a residual")


def prints(t, y, yp):
    print("at", t, y, sep="; ", flush=True)
    return [yp[0] + y[0]]


def prints_text(t, y, yp):
    if y[0] < 0.5:
        print(f"{y[0]:.3f} is small at ", t, str(y), repr(yp[0]))
    return [yp[0] + y[0]]


def logs(t, y, yp):
    log.debug("at %s: %s", t, y[0])
    logging.info(f"{t:.2f}")
    if y[0] > 0.9:
        log.log(10, "still large")
    return [yp[0] + y[0]]


def warns(t, y, yp):
    if y[0] < -1.0:
        warnings.warn(f"negative: {y[0]}", stacklevel=2)
    return [yp[0] + y[0]]


@pytest.mark.parametrize("fun", [prints, prints_text, logs, warns], ids=lambda fun: fun.__name__)
def test_messages_are_left_out_and_said_to_be(fun):
    with warnings.catch_warnings():
        warnings.resetwarnings()
        found = solve_dae(fun, (0.0, 1.0), [1.0], rtol=1e-7, atol=1e-9)
    assert found.how.startswith("traced")
    assert "left out: " in found.how
    assert "test_left_out.py, line " in found.how
    assert found.y[0, -1] == pytest.approx(math.exp(-1.0), rel=1e-5)


def test_a_warning_that_is_an_error_is_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert solve_dae(warns, (0.0, 1.0), [1.0]).how.startswith("called")


def text_as_a_number(t, y, yp):
    text = f"{y[0]:.1f}"
    print(text)
    return [yp[0] + float(text)]


def text_in_a_list(t, y, yp):
    texts = []
    texts.append(f"{y[0]:.1f}")
    print("done")
    return [yp[0] + (texts[0] == "1.0")]


class Notes:
    def __init__(self):
        self.texts = []

    def info(self, text):
        self.texts.append(text)


def notes_of_its_own(t, y, yp):
    notes = Notes()
    notes.info(f"{y[0]:.0f}")
    return [yp[0] + (notes.texts[0] == "1")]


@pytest.mark.parametrize(
    "fun", [text_as_a_number, text_in_a_list, asserting.text_in_a_condition, notes_of_its_own],
    ids=lambda fun: fun.__name__,
)
def test_text_that_is_more_than_a_message(fun):
    with pytest.raises(TraceFailure, match="makes text of a traced number"):
        trace(fun, 1)


# --- exceptions -----------------------------------------------------------------------------------


def test_a_condition_that_holds_is_no_branch():
    found = solve_dae(asserting.holds, (0.0, 3.0), [1.0], rtol=1e-7, atol=1e-9)
    assert found.how == "traced, as written"
    assert found.y[0, -1] == pytest.approx(math.exp(-3.0), rel=1e-4)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_condition_that_ceases_to_hold(trace):
    with pytest.raises(AssertionError, match=r"too small: 0\.4"):
        solve_dae(asserting.ends, (0.0, 3.0), [1.0], trace=trace)


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, ArithmeticError])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_function_that_ends_by_raising(error, trace):
    def fun(t, y, yp):
        if y[0] < 0.5:
            raise error(f"too small: {y[0]}")
        return [yp[0] + y[0]]

    if not issubclass(error, (ValueError, ZeroDivisionError)):
        with pytest.raises(error, match=r"too small: 0\.4"):
            solve_dae(fun, (0.0, 2.0), [1.0], trace=trace)
        return
    found = solve_dae(fun, (0.0, 2.0), [1.0], trace=trace, rtol=1e-6, atol=1e-8)
    assert found.how.startswith("traced" if trace == "auto" else "called")
    assert found.status == Status.NON_FINITE
    assert found.t[-1] == pytest.approx(math.log(2.0), abs=1e-4)
    assert found.diagnosis.cause == Cause.EXCEPTION
    assert isinstance(found.diagnosis.exception, error)


def test_an_argument_that_is_refused_later():
    def fun(t, y, yp, k):
        if k < 0.0:
            raise ValueError(f"k must not be negative, got {k}")
        return [yp[0] + k * y[0]]

    assert solve_dae(fun, (0.0, 1.0), [1.0], args=(1.0,)).how.startswith("traced")
    with pytest.raises(ValueError, match="k must not be negative"):
        solve_dae(fun, (0.0, 1.0), [1.0], args=(-1.0,))


def test_what_is_written_before_raising_is_noticed():
    failures = []

    def fun(t, y, yp):
        if y[0] < -1.0:
            failures.append(t)
            raise ValueError("negative")
        return [yp[0] + y[0]]

    with pytest.raises(TraceFailure, match="writes to a list"):
        trace(fun, 1)
    assert failures == []


def test_conditions_that_must_hold_add_up():
    n, fun = asserting.MANY, asserting.many
    traced = trace(fun, n)
    assert traced.raises
    assert len(traced.graph.nodes) < 30 * n
    y0 = np.linspace(0.0, 1.0, n)
    ends = [solve_dae(fun, (0.0, 2.0), y0, trace=mode, rtol=1e-7, atol=1e-9).y[:, -1]
            for mode in ("auto", "never")]
    assert np.allclose(*ends, rtol=1e-4)


def test_a_program_is_nan_exactly_where_its_function_raises():
    n, fun = asserting.N, asserting.nested
    traced, rng = trace(fun, n), np.random.default_rng(1)
    raised = 0
    for _ in range(200):
        y = rng.choice([-3.0, -1.5, 0.0, 1.0], n, p=[0.05, 0.15, 0.4, 0.4])
        got = evaluate(traced.reference, 0.0, y, np.ones(n))
        try:
            expected = np.array(fun(0.0, y, np.ones(n)))
        except (ValueError, AssertionError):
            expected, raised = np.full(n, np.nan), raised + 1
        np.testing.assert_array_equal(got, expected)
    assert 20 < raised < 180
