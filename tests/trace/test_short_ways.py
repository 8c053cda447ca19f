"""Short ways through the tracer give what the long ones give."""

import operator

import numpy as np
import pytest

from tether.trace import TraceFailure, trace
from tether.trace.arrays import apply_ufunc
from tether.trace.branches import BranchRecorder
from tether.trace.functions import UNARY
from tether.trace.graph import Graph
from tether.trace.refusal import Untraceable
from tether.trace.scalar import _ARITHMETIC, _BITWISE, _COMPARISON, Scalar, _operate
from tether.trace.shims import UfuncShim

OPERATIONS = _ARITHMETIC | _COMPARISON | _BITWISE
OPERATORS = {name: getattr(operator, f"{name}_" if name in ("and", "or") else name)
             for name in OPERATIONS}  # fmt: skip
NUMBERS = [2.5, 0.0, 3, 0, True, np.float64(1.5), np.int64(2), np.True_]
UFUNCS = [name for name in UNARY if isinstance(getattr(np, name, None), np.ufunc)]


def outcome(function, *args):
    """Node and kind of the result, or what is raised."""
    try:
        result = function(*args)
    except (Untraceable, TypeError) as problem:
        return type(problem)
    return (result.node, result.kind) if type(result) is Scalar else result


@pytest.fixture
def recorder():
    return BranchRecorder(Graph())


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_on_numbers_of_all_kinds(recorder, name):
    x, y = recorder.graph.y(0), recorder.graph.y(1)
    long, short = OPERATIONS[name], OPERATORS[name]
    for first in range(12):
        a = Scalar(recorder, x, first)
        for second in range(12):
            b = Scalar(recorder, y, second)
            assert outcome(short, a, b) == outcome(_operate, long, a, b)
        for number in NUMBERS:
            assert outcome(short, a, number) == outcome(_operate, long, a, number)
            # NumPy's numbers do not ask the other one, and comparisons swap the operands
            if type(number) in (float, int, bool) and name not in _COMPARISON:
                assert outcome(short, number, a) == outcome(_operate, long, number, a)


@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions_of_numbers_of_all_kinds(recorder, name):
    ufunc = getattr(np, name)
    for kind in range(12):
        x = Scalar(recorder, recorder.graph.y(0), kind)
        assert outcome(UfuncShim(ufunc), x) == outcome(apply_ufunc, ufunc, "__call__", (x,), {})


def test_universal_functions_take_no_attributes():
    def fun(t, y, yp):
        np.sin.calls = 1
        return [yp[0] + np.sin(y[0])]

    with pytest.raises(TraceFailure, match="sets calls"):
        trace(fun, 1)
