"""Floats that change between calls and during runs are inputs of a program."""

import copy
import dataclasses
import functools
import math
import operator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum

import numpy as np
import pytest
from scipy import interpolate, sparse
from support.hidden_floats import MAKERS, Parameters

from tether import Bdf, solve_dae
from tether.plan import choose, functions
from tether.plan.shelf import shelf
from tether.run.integration import Integration


@pytest.fixture
def traces(monkeypatch):
    """Count traces, from an empty shelf on."""
    counts = []
    for module in (choose, functions):
        def counted(*args, real=module.trace, **options):
            counts.append(args[0])
            return real(*args, **options)

        monkeypatch.setattr(module, "trace", counted)
    shelf.empty()
    return counts


def solve(fun, t_end=1.0, y0=1.0, **options):
    return solve_dae(fun, (0.0, t_end), [y0], rtol=1e-8, atol=1e-10, **options)


def last(found):
    assert found.success, found.message
    return found.y[:, -1]


VALUES = (2.0, 3.0, 0.5, 2.0, 7.25, -0.5)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_value_that_changes_between_calls_is_traced_once_more(make, traces):
    fun, write = make()
    for value in VALUES:
        write(value)
        found = solve(fun)
        assert found.how.startswith("traced"), found.how
        assert last(found)[0] == pytest.approx(math.exp(-value), rel=1e-6)
    assert len(traces) == 2                      # as a constant, and as an input


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_value_that_an_event_writes_is_traced_once_more(make, traces):
    fun, write = make()
    times, rates = np.arange(1, 11) / 11.0, np.linspace(0.5, 4.0, 11)

    def strike(t, y, yp):
        return math.prod(t - time for time in times.tolist()) * 1e6

    def apply(t, y, yp):
        write(float(rates[np.argmin(np.abs(times - t)) + 1]))
        return y

    strike.apply = apply
    write(0.5)
    found = solve(fun, events=strike)
    assert len(found.t_events[0]) == 10
    assert last(found)[0] == pytest.approx(math.exp(-np.sum(rates) / 11.0), rel=1e-6)
    assert len([one for one in traces if one is fun]) <= 2
    traces.clear()
    write(0.5)
    again = solve(fun, events=strike)
    assert last(again)[0] == pytest.approx(last(found)[0], rel=1e-9)
    assert not [one for one in traces if one is fun]


def test_a_threshold_that_an_event_moves(traces):
    level = [0.9]

    def below(t, y, yp):
        return y[0] - level[0]

    def apply(t, y, yp):
        level[0] *= 0.9
        return y

    below.apply, below.direction = apply, -1
    found = solve(lambda t, y, yp: [yp[0] + y[0]], t_end=2.0, events=below)
    expected = -np.log(0.9) * np.arange(1, 19)
    assert np.allclose(found.t_events[0], expected, rtol=1e-5)
    assert len(traces) <= 3


def test_an_invariant_and_a_constraint_read_what_changes(traces):
    size = [1.0]

    def pendulum(t, y, yp):
        x, v, u, w, m = y
        return [yp[0] - u, yp[1] - w, yp[2] + m * x, yp[3] + m * v + 9.81,
                x**2 + v**2 - size[0] ** 2]

    def invariant(t, y):
        return 0.5 * (y[2] ** 2 + y[3] ** 2) / size[0] + 9.81 * y[1] / size[0]

    for length in (1.0, 2.0, 1.5, 0.5):
        size[0] = length
        found = solve_dae(pendulum, (0.0, 0.5), [length, 0, 0, 0, 0], invariants=[invariant],
                          rtol=1e-7, atol=1e-9)
        x, v, u, w, _ = last(found)
        assert "index 3" in found.how
        assert x**2 + v**2 == pytest.approx(length**2, rel=1e-9)
        assert 0.5 * (u**2 + w**2) + 9.81 * v == pytest.approx(0.0, abs=1e-7)
    assert len(traces) == 4


# --- values that decide ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0.0, 1.0, 0.0, 2.0), (1.0, 2.0, 0.0, 1.0, 0.0, 0.5)])
def test_a_coefficient_that_decides_about_the_index(order):
    holder = Parameters()

    def fun(t, y, yp):
        a, b = y
        return [yp[0] - b, holder.k * b + a - np.sin(t)]

    for c in order:
        holder.k = c
        found = solve_dae(fun, (0.0, 2.0), [0.0, 0.0], rtol=1e-8, atol=1e-10)
        expected = np.sin(2.0)
        if c:
            expected = (np.sin(2.0) - c * np.cos(2.0) + c * np.exp(-2.0 / c)) / (1.0 + c * c)
        assert last(found)[0] == pytest.approx(expected, rel=1e-5)
        assert ("index 2" in found.how) == (c == 0.0)


def test_a_coefficient_that_decides_and_changes_during_the_run():
    holder = Parameters(k=1.0)

    def fun(t, y, yp):
        a, b = y
        return [yp[0] - b, holder.k * b + a - 2.0]

    def strike(t, y, yp):
        return (t - 1.0) * (t - 2.0) * (t - 3.0)

    def apply(t, y, yp):
        holder.k = {1: 0.5, 2: 0.0, 3: 0.25}[round(t)]
        return y

    strike.apply = apply
    found = solve_dae(fun, (0.0, 4.0), [0.0, 2.0], events=strike, rtol=1e-8, atol=1e-10)
    a, b = last(found)
    assert (a, b) == (pytest.approx(2.0, abs=1e-7), pytest.approx(0.0, abs=1e-6))
    assert "structure changed" in found.how


def test_a_switch_by_a_float_is_a_branch_of_the_program(traces):
    mode = [1.0]

    def fun(t, y, yp):
        return [yp[0] + (2.0 * y[0] if mode[0] > 0.5 else -y[0])]

    for value in (1.0, 0.25, 0.75, 0.0, 0.6):
        mode[0] = value
        expected = math.exp(-2.0 if value > 0.5 else 1.0)
        assert last(solve(fun))[0] == pytest.approx(expected, rel=1e-6)
    assert len(traces) <= 3


def test_two_modes_by_a_bool_find_both_plans(traces):
    class Valve:
        is_open = False
        flow = 1.0

        def fun(self, t, y, yp):
            return [yp[0] + (self.flow if self.is_open else 0.5) * y[0]]

    valve = Valve()
    for i in range(8):
        valve.is_open, valve.flow = bool(i % 2), 1.0 + 0.1 * (i // 2)
        expected = math.exp(-valve.flow if valve.is_open else -0.5)
        assert last(solve(valve.fun))[0] == pytest.approx(expected, rel=1e-6)
    assert len(traces) <= 4


# --- what cannot be an input ----------------------------------------------------------------------


def number(k):
    return [int(k)]


def in_a_range(k):
    return [sum(1 for _ in range(round(k)))]


def as_an_index(k):
    return [(0, 1, 2, 3, 4, 5, 6, 7)[int(k)]]


def as_text(k):
    return [float(f"{k:.1f}")]


def by_identity(k):
    same = k
    return [k if same is k else 0.0]


def as_a_key(k):
    return [{2.0: 2.0, 3.0: 3.0, 5.0: 5.0}[k]]


def in_a_size(k):
    return [np.ones(int(k)).sum()]


@pytest.mark.parametrize(
    "use", [number, in_a_range, as_an_index, as_text, by_identity, as_a_key, in_a_size],
    ids=lambda use: use.__name__,
)
def test_what_is_needed_as_a_number_is_a_constant(use, traces):
    holder = Parameters()

    def fun(t, y, yp):
        return [yp[0] + use(holder.k)[0] * y[0] * holder.one]

    for k, one in ((2.0, 1.0), (3.0, 1.0), (5.0, 0.5), (2.0, 0.25), (3.0, 1.0)):
        holder.k, holder.one = k, one
        found = solve(fun)
        assert found.how.startswith("traced"), found.how
        assert last(found)[0] == pytest.approx(math.exp(-k * one), rel=1e-6)


class Rate(float):
    pass


def subclass(k):
    return Rate(k)


def in_a_set(k):
    return {k}


def in_a_frozen_set(k):
    return frozenset((k,))


def in_an_array_of_objects(k):
    return np.array([k], object)


def without_dimensions(k):
    return np.array(k)


def rational(k):
    return np.float32(k)


def as_a_spline(k):
    return interpolate.make_interp_spline([0.0, 1.0], [k, k], k=1)


def as_a_sparse_matrix(k):
    return sparse.csr_matrix(np.array([[k]]))


def as_a_polynomial(k):
    return np.polynomial.Polynomial([k])


def as_an_old_polynomial(k):
    return np.poly1d([k])


def as_an_enumeration(k):
    return Enum("Kind", {"ONE": (k, 1.0)}).ONE


def take(thing):
    """Read the number that was hidden."""
    if isinstance(thing, (set, frozenset)):
        return next(iter(thing))
    if isinstance(thing, np.ndarray):
        return thing.reshape(-1)[0]
    if isinstance(thing, interpolate.BSpline):
        return thing(0.5)
    if sparse.issparse(thing):
        return (thing @ np.ones(1))[0]
    if isinstance(thing, Enum):
        return thing.value[0]
    if isinstance(thing, (np.polynomial.Polynomial, np.poly1d)):
        return thing(0.0)
    return thing * 1.0


@pytest.mark.parametrize(
    "hide",
    [subclass, in_a_set, in_a_frozen_set, in_an_array_of_objects, without_dimensions, rational,
     as_a_spline, as_a_sparse_matrix, as_a_polynomial, as_an_old_polynomial, as_an_enumeration],
    ids=lambda hide: hide.__name__,
)
def test_whatever_else_holds_a_number_is_never_out_of_date(hide):
    things = [None, 1.0]

    def fun(t, y, yp):
        return [yp[0] + take(things[0]) * things[1] * y[0]]

    for k, more in ((2.0, 1.0), (3.0, 1.0), (5.0, 0.5), (0.5, 2.0), (3.0, 0.25)):
        things[:] = hide(k), more
        assert last(solve(fun))[0] == pytest.approx(math.exp(-k * more), rel=1e-6)


def test_a_sparse_matrix_that_shares_its_numbers_with_an_array():
    data = np.array([1.0])
    matrix = sparse.csr_matrix((data, [0], [0, 1]), copy=False)
    assert np.shares_memory(matrix.data, data)
    for held in (data, matrix.data):                 # the same memory; the very same array
        for k in (2.0, 3.0, 0.5, 4.0):
            data[0] = k

            def fun(t, y, yp, held=held):
                return [yp[0] + 0.5 * (matrix @ np.ones(1))[0] * y[0] + 0.5 * held[0] * y[0]]

            assert last(solve(fun))[0] == pytest.approx(math.exp(-k), rel=1e-6)


def test_values_that_are_no_numbers():
    limit = [math.inf]

    def fun(t, y, yp):
        return [yp[0] + min(y[0], limit[0])]

    for value in (math.inf, 0.5, math.inf, 0.25, math.nan):
        limit[0] = value
        expected = solve(fun, y0=0.2, trace="never")
        assert last(solve(fun, y0=0.2))[0] == pytest.approx(last(expected)[0], rel=1e-6)


def test_zeros_have_signs():
    k = [1.0]

    def fun(t, y, yp):
        return [yp[0] + np.copysign(1.0, k[0]) * y[0]]

    for value in (1.0, -1.0, 0.0, -0.0, 2.0, -0.0, 0.0):
        k[0] = value
        sign = math.copysign(1.0, value)
        assert last(solve(fun))[0] == pytest.approx(math.exp(-sign), rel=1e-6)


def test_many_sets_of_zeros(traces):
    valves = np.ones(6)

    def fun(t, y, yp):
        return [yp[0] + np.sum(valves) * y[0]]

    rng = np.random.default_rng(3)
    for _ in range(40):
        valves[:] = rng.integers(0, 2, 6)
        assert last(solve(fun))[0] == pytest.approx(math.exp(-valves.sum()), rel=1e-6)
    assert len(traces) < 30                      # of 64 sets


def test_elements_that_change_one_after_the_other(traces):
    rates = np.ones(40)

    def fun(t, y, yp):
        return [yp[0] + np.mean(rates) * y[0]]

    for i in range(40):
        rates[i] = 2.0 + 0.01 * i
        assert last(solve(fun))[0] == pytest.approx(math.exp(-rates.mean()), rel=1e-6)
    assert len(traces) < 10


def test_a_list_among_the_arguments_and_in_the_closure():
    k = [1.0, 2.0]

    def fun(t, y, yp, own):
        return [yp[0] + (own[0] + k[0]) / 2.0 * y[0] * (k[1] / own[1])]

    for value in (1.0, 3.0, 0.5, 2.0):
        k[0] = k[1] = value
        assert last(solve(fun, args=(k,)))[0] == pytest.approx(math.exp(-value), rel=1e-6)


def test_an_object_among_the_arguments(traces):
    def fun(t, y, yp, own, scale):
        return [yp[0] + scale * own.k * y[0]]

    for value in (1.0, 3.0, 0.5, 2.0):
        found = solve(fun, args=(Parameters(k=value), 0.5 * value))
        assert last(found)[0] == pytest.approx(math.exp(-0.5 * value**2), rel=1e-6)
    assert len(traces) == 2


def test_what_the_function_writes_itself():
    class Model:
        calls = 0.0
        k = 1.0

        def fun(self, t, y, yp):
            self.calls += 1.0
            return [yp[0] + self.k * y[0]]

    model = Model()
    for k in (1.0, 2.0, 3.0):
        model.k, before = k, model.calls
        found = solve(model.fun)
        assert found.how.startswith("called"), found.how
        assert last(found)[0] == pytest.approx(math.exp(-k), rel=1e-6)
        assert model.calls > before


def test_a_cache_that_is_out_of_date():
    k = [1.0]

    @functools.lru_cache
    def rate(factor):
        return factor * k[0]

    def fun(t, y, yp):
        return [yp[0] + rate(2) * y[0]]

    for value in (1.0, 3.0, 0.5):
        k[0] = value                              # but the cache keeps what it has
        assert last(solve(fun))[0] == pytest.approx(math.exp(-2.0), rel=1e-6)


def test_two_runs_at_the_same_time_with_values_of_their_own():
    def rate(k):
        def fun(t, y, yp):
            return [yp[0] + k * y[0]]

        return fun

    values = np.linspace(0.1, 3.0, 60).tolist()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: last(solve(rate(k)))[0], values))
    assert np.allclose(found, np.exp(-np.array(values)), rtol=1e-6)


def test_a_run_goes_on_while_another_one_finds_out_what_changes():
    k = [2.0]

    def fun(t, y, yp):
        return [yp[0] + k[0] * y[0]]

    run = Bdf(fun, 0.0, [1.0], t_bound=1.0, options={"rtol": 1e-8, "atol": 1e-10})
    for _ in range(10):
        run.step()
    k[0] = 3.0
    solve(fun)
    k[0] = 2.0
    while run.t < 1.0:
        run.step()
    assert run.y[0] == pytest.approx(math.exp(-2.0), rel=1e-6)


def test_formulas_name_hidden_inputs():
    class Plant:
        def __init__(self):
            self.gains, self.table, self.u = [1.0, 2.0], {"tau": 1.0}, 1.0

        def fun(self, t, y, yp):
            return [self.table["tau"] * yp[0] + self.gains[1] * y[0] - self.u]

    plant = Plant()
    for k in (1.0, 2.0):
        plant.table["tau"], plant.gains[1], plant.u = k, 2.0 * k, 3.0 * k
        run = Integration(plant.fun, 0.0, [1.0], t_bound=1.0)
    names = run.model.plan.traced.args.names
    assert set(names) == {"self.table['tau']", "self.gains[1]", "self.u"}


# --- what nobody reads ----------------------------------------------------------------------------


class Logger:
    """A controller that takes notes."""

    def __init__(self):
        self.u, self.count, self.log, self.mode, self.last = 1.0, 0, [], "auto", None

    def fun(self, t, y, yp):
        return [yp[0] + self.u * y[0]]

    def act(self, u):
        self.u, self.last = u, object()
        self.count += 1
        self.log.append((self.count, u))
        self.mode = f"step {self.count}"


class Slots(Logger):
    __slots__ = ("count", "last", "log", "mode", "u")


@pytest.mark.parametrize("kind", [Logger, Slots])
def test_attributes_that_no_code_names_do_not_count(kind, traces):
    controller = kind()
    for i in range(6):
        controller.act(1.0 + 0.1 * i)
        found = solve(controller.fun)
        assert found.how.startswith("traced"), found.how
        assert last(found)[0] == pytest.approx(math.exp(-controller.u), rel=1e-6)
    assert len(traces) == 2


@dataclasses.dataclass
class Two:
    a: float
    b: float


def by_getattr(two):
    return getattr(two, "".join("b"))


def by_vars(two):
    return vars(two)["b"]


def by_dictionary(two):
    return two.__dict__["b"]


def as_a_dictionary(two):
    return dataclasses.asdict(two)["b"]


def as_a_tuple(two):
    return dataclasses.astuple(two)[1]


def by_a_pattern(two):
    match two:
        case Two(_, value):
            return value


def by_a_named_pattern(two):
    match two:
        case Two(b=value):
            return value


def in_a_copy(two):
    return copy.copy(two).b


def in_a_deep_copy(two):
    return copy.deepcopy(two).__dict__["b"]


def replaced(two):
    return dataclasses.replace(two, a=3.0).b


GET_B = operator.attrgetter("b")


def by_a_getter(two):
    return GET_B(two)


def by_equality(two):
    return 2.0 if two == Two(1.0, 2.0) else 3.0 if two == Two(1.0, 3.0) else 5.0


@pytest.mark.parametrize(
    "read",
    [by_getattr, by_vars, by_dictionary, as_a_dictionary, as_a_tuple, by_a_pattern,
     by_a_named_pattern, in_a_copy, in_a_deep_copy, replaced, by_a_getter, by_equality],
    ids=lambda read: read.__name__,
)
def test_attributes_that_are_reached_without_their_names(read):
    two = Two(1.0, 2.0)

    def fun(t, y, yp):
        return [yp[0] + read(two) * y[0]]

    for value in (2.0, 3.0, 5.0, 2.0):
        two.b = value
        found = solve(fun)
        assert last(found)[0] == pytest.approx(math.exp(-value), rel=1e-6)
        assert found.how.startswith("traced") or read in (by_vars, by_a_getter), found.how
