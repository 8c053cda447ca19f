"""A key contains all that was read: whatever changes between two runs, the second one notices."""
import math
import types
import typing
from collections import deque

import numpy as np
import pytest
import scipy.sparse
from support.changing_rates import KEYS

from tether import solve_dae
from tether.trace import cache_key, emit, evaluate, trace
from tether.trace.cache import Reader

pytestmark = pytest.mark.usefixtures("nothing_is_known")


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
def test_a_change_is_noticed(make):
    try:
        rate, change = make()
    except TypeError:
        pytest.skip("Python cannot do that")

    def fun(t, y, yp):
        return [yp[0] + rate() * y[0]]

    for k in (1.0, 3.0):
        for _ in range(2):
            for how in ("auto", "never"):
                sol = solve_dae(fun, (0, 1), [1.0], trace=how)
                assert sol.y[0, -1] == pytest.approx(math.exp(-k), rel=1e-3)
        if k == 1.0:
            change()


class Params(typing.NamedTuple):
    k: float
    shape: tuple = (1.0,)


@pytest.mark.parametrize("pack", [lambda k: Params(k), lambda k: Params(1.0, (k,)),
                                  lambda k: {"k": Params(k)}], ids=["field", "inside", "in a dict"])
def test_named_tuples_of_floats_are_inputs(pack, traces):
    def fun(t, y, yp, p):
        p = p["k"] if isinstance(p, dict) else p
        return [yp[0] + p.k * p.shape[0] * y[0]]

    for k in (1.0, 2.0, 3.0):
        sol = solve_dae(fun, (0, 1), [1.0], args=(pack(k),))
        assert sol.y[0, -1] == pytest.approx(math.exp(-k), rel=1e-3)
    assert len(traces) == 1


class Number(float):
    factor = 1.0


@pytest.mark.parametrize(
    ("pack", "change"),
    [(lambda: Number(1.0), lambda p: setattr(p, "factor", 3.0)),
     (lambda: [Number(1.0)], lambda p: setattr(p[0], "factor", 3.0)),
     (lambda: types.SimpleNamespace(factor=1.0), lambda p: setattr(p, "factor", 3.0))],
    ids=["float", "list", "object"],
)
def test_arguments_with_attributes(pack, change):
    p = pack()

    def fun(t, y, yp, p):
        p = p[0] if isinstance(p, list) else p
        return [yp[0] + p.factor * y[0]]

    for k in (1.0, 3.0):
        sol = solve_dae(fun, (0, 1), [1.0], args=(p,))
        assert sol.y[0, -1] == pytest.approx(math.exp(-k), rel=1e-3)
        change(p)


@pytest.mark.parametrize("p", [[1.0], {"k": 1.0}, np.ones(1), ([1.0],), [[1.0]],
                               {"k": np.ones(1)}, types.SimpleNamespace(k=1.0)], ids=repr)
def test_arguments_that_are_written_to(p):
    """What one call leaves in an argument the next one finds."""
    def fun(t, y, yp, p):
        if y[0] < 0.5:
            if isinstance(p, types.SimpleNamespace):
                p.k = -1.0
            elif isinstance(p, dict):
                p["k"] = -1.0
            elif isinstance(p, tuple):
                p[0][0] = -1.0
            else:
                p[0] = -1.0
        k = p.k if isinstance(p, types.SimpleNamespace) else p["k"] if isinstance(p, dict) else p[0]
        k = k if isinstance(k, float) else k[0]
        return [yp[0] + k * y[0]]

    import copy

    ends = [solve_dae(fun, (0, 2), [1.0], args=(copy.deepcopy(p),), trace=how).y[0, -1]
            for how in ("never", "auto")]
    assert ends[0] == ends[1] > 0.9


def value(graph, node, t=0.7, y=(0.3, 0.6), yp=(1.1, -0.4)):
    return evaluate(emit(graph, [node], len(y)), t, y, yp)[0]


RATE = 2.0
TABLE = np.array([1.0, 2.0])


def helper(x):
    return RATE * x + TABLE[0]


def uses_helper(t, y, yp):
    return [yp[0] + helper(y[0])]


def test_key_notices_what_the_function_depends_on(monkeypatch):
    keys = [cache_key(uses_helper, 1)]
    monkeypatch.setitem(globals(), "RATE", 3.0)
    keys.append(cache_key(uses_helper, 1))
    monkeypatch.setitem(globals(), "TABLE", np.array([5.0, 2.0]))
    keys.append(cache_key(uses_helper, 1))
    TABLE[0] = 6.0
    keys.append(cache_key(uses_helper, 1))
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    keys.append(cache_key(uses_helper, 1))
    keys.append(cache_key(uses_helper, 2))
    assert len(set(keys)) == len(keys)
    assert cache_key(uses_helper, 2) == keys[-1]


def test_key_notices_closures_defaults_attributes_and_classes():
    class Model:
        factor = 1.0

        def __init__(self, k):
            self.k = k

        def residual(self, t, y, yp):
            return [yp[0] + self.factor * self.k * y[0]]

    def make(k, settings):
        return lambda t, y, yp, shift=k: [yp[0] + settings["k"] * y[0] + shift]

    settings = {"k": 1.0}
    keys = [cache_key(make(k, settings), 1) for k in (1.0, 2.0, 0.0, -0.0)]
    settings["k"] = 2.0
    keys.append(cache_key(make(1.0, settings), 1))
    model = Model(2.0)
    keys.append(cache_key(model.residual, 1))
    model.k = 3.0
    keys.append(cache_key(model.residual, 1))
    Model.factor = 5.0
    keys.append(cache_key(model.residual, 1))
    assert len(set(keys)) == len(keys)
    assert cache_key(Model(3.0).residual, 1) == keys[-1]


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def __call__(self, t, y, yp):
        return [yp[0] + self.k * y[0]]


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: [1.0], lambda x: x.append(2.0)),
        (lambda: {1.0}, lambda x: x.add(2.0)),
        (lambda: deque([1.0]), lambda x: x.append(2.0)),
        (lambda: {"a": [1.0]}, lambda x: x["a"].append(2.0)),
        (lambda: types.SimpleNamespace(k=1.0), lambda x: setattr(x, "k", 2.0)),
        (lambda: Slotted(1.0), lambda x: setattr(x, "k", 2.0)),
        (lambda: np.zeros(2000), lambda x: x.__setitem__(1999, 1.0)),
        (lambda: scipy.sparse.eye_array(3).tocsr(), lambda x: x.data.__setitem__(1, 1.5)),
        (lambda: np.float64(2.0), None),
    ],
)
def test_key_notices_changes_inside_captured_objects(make, change):
    def capture(thing):
        return lambda t, y, yp: [yp[0] + y[0], thing, lambda x: x.k]

    thing = make()
    before = cache_key(capture(thing), 1)
    assert cache_key(capture(make()), 1) == before
    if change is not None:
        change(thing)
        assert cache_key(capture(thing), 1) != before


def test_key_takes_floats_by_shape_and_the_rest_by_value():
    def fun(t, y, yp, *args):
        return yp

    assert cache_key(fun, 1, (2.0, np.ones(3))) == cache_key(fun, 1, (5.0, np.zeros(3)))
    assert cache_key(fun, 1, (2.0,)) != cache_key(fun, 1, (2,))
    assert cache_key(fun, 1, (2,)) != cache_key(fun, 1, (3,))
    assert cache_key(fun, 1, (np.ones(3),)) != cache_key(fun, 1, (np.ones(4),))
    assert cache_key(fun, 1, ("a",)) != cache_key(fun, 1, ("b",))


def test_key_of_recursive_functions():
    def power(x, k):
        return x if k == 1 else x * power(x, k - 1)

    def fun(t, y, yp):
        return [yp[0] + power(y[0], 3)]

    assert cache_key(fun, 1) == cache_key(fun, 1)
    assert value(trace(fun, 1).graph, trace(fun, 1).outputs[0], y=[2.0], yp=[1.0]) == 9.0


class Library:
    """Everything of a large package hangs together; its methods are reached by name."""

    def __init__(self, size):
        self.symbols = [[float(i)] for i in range(size)]

    def share(self, x):
        return len(self.symbols) * x

    def rate(self, x):
        return self.share(x)


def test_the_variable_that_leads_to_too_much_is_named_once(monkeypatch):
    """What is too large may be reached by names that the user has never heard of."""
    monkeypatch.setattr("tether.trace.cache._MOST_PARTS", 5000)
    library, k = Library(20_000), 2.0

    def fun(t, y, yp):
        return [yp[0] + k * library.rate(y[0]) / 20_000]

    reads = []
    monkeypatch.setattr("tether.trace.tracer.Reader", lambda: reads.append(1) or Reader())
    for _ in range(3):
        sol = solve_dae(fun, (0, 1), [1.0])
        assert "reads library, of type Library, which is too large to be compared" in sol.how
        assert abs(sol.y[0, -1] - np.exp(-2.0)) < 1e-3
    assert len(reads) == 1


def test_objects_that_lead_to_thousands_of_functions_are_not_read_to_the_end():
    """As those of large packages do; a model of some hundred functions is read."""
    def rate(x):
        return 2.0 * x

    def fun(t, y, yp):
        return [yp[0] + rates[0](y[0])]

    for count in (300, 2000):
        rates = [types.FunctionType(rate.__code__, {}, f"rate_{k}") for k in range(count)]
        assert (cache_key(fun, 1) is None) == (count == 2000)


def test_classes_without_the_name_of_a_module():
    """As those of functions that were compiled with Cython: `__module__` is then a descriptor."""
    @property
    def nowhere(self):
        return "nowhere"

    compiled = type("compiled", (), {"__module__": nowhere, "__call__": lambda self, x: -2 * x})()

    def fun(t, y, yp):
        return [yp[0] - compiled(y[0])]

    assert abs(solve_dae(fun, (0, 1), [1.0]).y[0, -1] - np.exp(-2.0)) < 1e-3
