"""Independent branches are joined one by one: their number adds up, it does not multiply."""
# ruff: noqa: SIM108 (statements are what is tested)

import linecache
import math

import numpy as np
import pytest
from support.joined import N, agrees, gates, independent

from tether import solve_dae
from tether.trace import TraceFailure, evaluate, trace
from tether.trace.branches import BranchRecorder

# --- a circuit, as one would write it ------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 4])
def test_a_circuit_of_nand_gates(count):
    agrees(gates(count), 3 * count)
    start = np.tile([5.0, 0.1, 0.0], count)
    traced = solve_dae(gates(count), (0, 18), start, trace="always")
    called = solve_dae(gates(count), (0, 18), start, trace="never")
    assert traced.success
    assert called.success
    np.testing.assert_allclose(traced.y[:, -1], called.y[:, -1], rtol=1e-4, atol=1e-5)


def test_the_work_grows_with_the_number_of_branches(monkeypatch):
    decisions = []
    decide = BranchRecorder.decide
    monkeypatch.setattr(
        BranchRecorder, "decide", lambda self, node: decisions.append(node) or decide(self, node)
    )
    counts, nodes = [], []
    for count in (10, 20, 40):
        decisions.clear()
        nodes.append(len(agrees(independent(count), count, points=10).graph.nodes))
        counts.append(len(decisions))
    assert counts[0] < 200
    assert counts[2] - counts[1] <= 2 * (counts[1] - counts[0]) + 10
    assert nodes[2] - nodes[1] <= 2 * (nodes[1] - nodes[0]) + 10


def test_the_slopes_are_those_of_the_branch():
    traced = agrees(independent(N))
    y = np.linspace(-1.0, 1.2, N)
    entries = evaluate(traced.program(traced.f_y.nodes), 0.0, y, y)
    assert traced.f_y.rows == traced.f_y.cols == list(range(N))
    np.testing.assert_allclose(entries, np.where(y > 0.0, 2.0, 3.0 * y**2), rtol=1e-14)


# --- idioms, each repeated often enough to make thousands of paths -------------------------------


def early_return(v, w):
    if v > 1.0:
        return v * w, 1
    if w < 0.0:
        return -v, 2.5
    return w, 0


def with_out(t, y, yp, out):
    for i in range(N):
        out[i] = yp[i]
        if y[i] > 0.5:
            out[i] += y[i] ** 2
        elif y[i] > -0.5:
            out[i] -= 1.0
            if yp[i] > 0.0:
                out[i] *= 2.0
        else:
            out[i] = out[i] + out[max(i - 1, 0)]


def helper_that_fills(values, i, v):
    if v > 0.0:
        values[i] = v
    else:
        values[i - 1] += 1.0


def filled_by_a_helper(t, y, yp):
    values = [0.0] * N
    for i in range(N):
        helper_that_fills(values, i, y[i])
    return [yp[i] + values[i] for i in range(N)]


def filled_array(t, y, yp):
    values = np.zeros(N)
    for i in range(N):
        if y[i] > yp[i]:
            values[i] = y[i]
        else:
            values[: i + 1] += 0.5
    return yp + values


def ternaries(t, y, yp):
    forces = [y[i] ** 2 if y[i] > 0 else (-1 if yp[i] > 0 else 0.25) for i in range(N)]
    return [yp[i] + forces[i] * (1 if t > 0 else 2) for i in range(N)]


def chained(t, y, yp):
    inside = [-1.0 < y[i] < 1.0 for i in range(N)]
    either = [y[i] > 1.0 or yp[i] < -1.0 for i in range(N)]
    both = [y[i] > 0.0 and not yp[i] > 0.0 for i in range(N)]
    return [yp[i] + 2.0 * inside[i] + either[i] * y[i] + (3 if both[i] else y[i])
            for i in range(N)]


def defined_on_one_path(t, y, yp):
    result = []
    for i in range(N):
        if y[i] > 0.0:
            square = y[i] * y[i]
            size = square + 1.0
        else:
            size = -y[i]
        result.append(yp[i] + size)
    return result


def one_condition_twice(t, y, yp):
    result = []
    for i in range(N):
        slow = y[i] < 0.0
        if slow:
            a = 1.0
        else:
            a = y[i]
        b = 2.0 if slow else a * a
        result.append(yp[i] + a * b)
    return result


def dependent(t, y, yp):
    mode, result = 0, []
    for i in range(N):
        if y[i] > 0.0:
            mode = 1
        if mode == 1 and yp[i] > 0.0:
            result.append(yp[i] + y[i])
        else:
            result.append(yp[i] - mode)
    return result


def tuples(t, y, yp):
    total, result = 0.0, []
    for i in range(N):
        value, weight = early_return(y[i], yp[i])
        if value > 1.0:
            value, total = total, value
        result.append(yp[i] + weight * value + total)
    return result


def inner_functions(t, y, yp):
    def limited(v):
        if v > 1.0:
            return 1.0
        return v if v > -1.0 else -1.0

    pick = lambda v: v if v > 0.0 else -2.0 * v  # noqa: E731
    return [yp[i] + limited(y[i]) * pick(yp[i]) for i in range(N)]


def loops_that_are_left(t, y, yp):
    result = []
    for i in range(N):
        total = 0.0
        for k in range(3):
            if k > 1:
                break
            if y[i] > k:
                total += y[i] - k
            else:
                total -= 0.1
        result.append(yp[i] + total)
    return result


def early_end(t, y, yp):
    result = [yp[i] + (y[i] if y[i] > 0.0 else 0.0) for i in range(N)]
    if t < 0.0:
        return result
    for i in range(N):
        if yp[i] > 1.0:
            result[i] = result[i] + 1.0
    return result


def walrus(t, y, yp):
    result = []
    for i in range(N):
        if (gap := y[i] - yp[i]) > 0.0:
            gap = gap * gap
        result.append(yp[i] + gap)
    return result


def arrays_made_on_the_paths(t, y, yp):
    total = np.zeros(3)
    for i in range(N):
        if y[i] > 0.0:
            part = np.array([y[i], 1.0, t])
        else:
            part = np.array([0.0, -y[i], 2.0])
        total = total + part
    return [yp[i] + total[i % 3] for i in range(N)]


def two_names_for_one(t, y, yp):
    result = []
    for i in range(N):
        if y[i] > 0.0:
            first = second = [y[i], 1.0]
        else:
            first = second = [0.0, y[i]]
        first[0] = first[0] + 3.0
        result.append(yp[i] + second[0] * second[1])
    return result


def one_name_or_two(t, y, yp):
    result = []
    for i in range(N):
        first = [y[i], 2.0]
        if y[i] > 0.0:
            second = first
        else:
            second = [1.0, y[i]]
        second[0] = 7.0
        result.append(yp[i] + first[0])
    return result[:N]


def parts_of_an_array(t, y, yp):
    values, result = np.zeros(4), []
    for i in range(N):
        if y[i] > 0.0:
            part = values[:2]
        else:
            part = values[2:]
        part[0] = y[i]
        result.append(yp[i] + values[0] - 2.0 * values[2])
    return result


def grows(t, y, yp):
    kept, result = [], []
    for i in range(N):
        if y[i] > 0.0:
            kept.append(y[i])
        result.append(yp[i] + len(kept))
    return result


def iterators(t, y, yp):
    numbers, result = iter(range(100)), []
    for i in range(N):
        if y[i] > 0.0:
            number = next(numbers)
        else:
            number = 0.5
        result.append(yp[i] + number + next(numbers))
    return result


def by_identity(t, y, yp):
    result = []
    for i in range(N):
        if y[i] > 0.0:
            chosen = y
        else:
            chosen = yp
        result.append(yp[i] + (1.0 if chosen is y else 2.0))
    return result


def sizes(t, y, yp):
    result = []
    for i in range(N):
        count = 2 if y[i] > 0.0 else 3
        result.append(yp[i] + sum(y[:count]))
    return result


def words(t, y, yp):
    result = []
    for i in range(N):
        if y[i] > 0.0:
            mode = "up"
        else:
            mode = "down"
        result.append(yp[i] + (1.0 if mode == "up" else y[i]))
    return result


class Friction:
    """Forces with a law for each direction."""

    def __init__(self, limit):
        self.limit = limit

    def law(self, v):
        """Return the force."""
        if v > self.limit:
            return self.limit
        if v < -self.limit:
            return -self.limit
        return v

    def residual(self, t, y, yp):
        """Return the equations."""
        return [yp[i] + self.law(y[i]) for i in range(N)]


class Counting(Friction):
    """The same, with an object that remembers."""

    def residual(self, t, y, yp):
        """Return the equations."""
        box, result = Friction(1.0), []
        for i in range(N):
            if y[i] > 0.0:
                box.limit = box.limit + 1.0
            result.append(yp[i] + box.limit)
        return result


def read_by_an_inner_function(t, y, yp):
    gain = 1.0

    def scaled(v):
        return gain * v

    result = []
    for i in range(N):
        if y[i] > 0.0:
            gain = gain + y[i]
        result.append(yp[i] + scaled(y[i]))
    return result


def written_by_an_inner_function(t, y, yp):
    count = 0

    def note(v):
        nonlocal count
        if v > 0.0:
            count += 1
        return count

    return [yp[i] + note(y[i]) for i in range(N)]


def generators(t, y, yp):
    total = sum(y[i] if y[i] > 0.0 else 0.5 for i in range(N))
    return [yp[i] + total for i in range(N)]


def around(t_break):
    square, weights = math.sqrt, np.array([0.5, "text", 2.0], object)

    def residual(t, y, yp):
        result = []
        for i in range(N):
            if t > t_break:
                force = square(1.0 + y[i] ** 2) if y[i] > 0.0 else weights[0]
            else:
                force = weights[2] * y[i] if yp[i] > 0.0 else 0.0
            result.append(yp[i] + force)
        return result

    return residual


JOINED = [
    read_by_an_inner_function, written_by_an_inner_function, generators, around(0.3),
    filled_by_a_helper, filled_array, ternaries, chained, defined_on_one_path, one_condition_twice,
    dependent, tuples, inner_functions, loops_that_are_left, early_end, walrus,
    arrays_made_on_the_paths, two_names_for_one, Friction(0.7).residual,
]
# Functions whose blocks cannot be joined have too many paths.
HARD = [
    one_name_or_two, parts_of_an_array, grows, iterators, by_identity, sizes, words,
    Counting(0.7).residual,
]


@pytest.mark.parametrize("fun", JOINED, ids=lambda fun: fun.__qualname__)
def test_idioms_are_joined(fun):
    agrees(fun)


def test_values_set_in_out_are_joined():
    agrees(with_out, fills=True)


@pytest.mark.parametrize("fun", HARD, ids=lambda fun: fun.__qualname__)
def test_what_cannot_be_joined_is_refused_or_right(fun):
    try:
        agrees(fun)
    except TraceFailure as failure:
        assert "more than 64 paths" in str(failure) or "is not known" in str(failure)  # noqa: PT017


def test_floats_among_the_arguments_stay_inputs():
    def residual(t, y, yp, gains):
        result = []
        for i in range(N):
            if y[i] > gains[i]:
                force = gains[i] * y[i]
            else:
                force = 1.0
            result.append(yp[i] + force)
        return result

    gains = np.linspace(-1.0, 1.0, N)
    traced = trace(residual, N, (gains,))
    assert traced.args.size == N
    rng = np.random.default_rng(1)
    for _ in range(20):
        y, yp, other = rng.uniform(-2, 2, (3, N))
        expected = residual(0.0, y, yp, other)
        found = evaluate(traced.reference, 0.0, y, yp, traced.args.flatten((other,)))
        np.testing.assert_allclose(found, expected, rtol=1e-14)


# --- what is left alone ---------------------------------------------------------------------------


def test_writing_to_something_outside_on_one_path_is_refused():
    log = []

    def residual(t, y, yp):
        for i in range(N):
            if y[i] > 0.0:
                log.append(i)
        return [yp[i] + y[i] for i in range(N)]

    with pytest.raises(TraceFailure):
        trace(residual, N)
    assert not log


TEXT = """
def residual(t, y, yp):
    result = []
    for i in range(12):
        if y[i] > 0.0:
            force = 2.0 * y[i]
        else:
            force = {}
        result.append(yp[i] + force)
    return result
"""


def function_of(text, file):
    space = {}
    exec(compile(text, file, "exec"), space)
    return space["residual"]


def test_a_function_without_its_text_has_too_many_paths():
    with pytest.raises(TraceFailure, match="more than 64 paths"):
        trace(function_of(TEXT.format(1.0), "<nowhere>"), N)


def test_the_text_of_another_function_is_not_believed():
    file = "<another text>"
    fun = function_of(TEXT.format(1.0), file)
    for value, is_joined in ((1.0, True), (2.0, False)):
        lines = TEXT.format(value).splitlines(True)
        linecache.cache[file] = (len(lines), None, lines, file)
        try:
            if is_joined:
                agrees(fun)
            else:
                with pytest.raises(TraceFailure, match="more than 64 paths"):
                    trace(fun, N)
        finally:
            del linecache.cache[file]
