"""What a first call does: every piece of work once, and not more than the operations say."""

import numpy as np
import pytest
from support import adder as circuit
from support.pleiades import END, SPAN, pleiades
from support.pleiades import START as STARS
from support.wheelset import START as ON_RAILS
from support.wheelset import wheelset

from tether import gallery, solve_dae
from tether._core import schedule
from tether.plan import choose
from tether.plan.shelf import shelf
from tether.structure import array, equations, hidden
from tether.structure import reduced_start as start
from tether.structure.scaling import Units
from tether.trace import backend, compile_c, evaluate, trace, tracer
from tether.trace.emit import emit


class Counts:
    """Notes what is done, by the names of functions."""

    def __init__(self, monkeypatch):
        self.calls = {}
        self._monkeypatch = monkeypatch
        shelf.empty()

    def watch(self, function, *places, of=lambda *args, **options: None):
        """Count calls of a function that stands in some modules."""
        name = function.__name__
        self.calls[name] = []

        def counted(*args, **options):
            self.calls[name].append(of(*args, **options))
            return function(*args, **options)

        for place in places:
            self._monkeypatch.setattr(place, name, counted)

    def __getitem__(self, name):
        return self.calls[name]


@pytest.fixture
def counts(monkeypatch):
    found = Counts(monkeypatch)
    found.watch(schedule.schedule, backend)
    found.watch(start._find_start, start)
    found.watch(compile_c.build, compile_c)
    found.watch(
        emit, array, choose, equations, hidden, tracer,
        of=lambda graph, nodes, *_, **__: tuple(nodes),
    )
    return found


@pytest.mark.parametrize("index", [2, 3])
def test_every_piece_of_work_is_done_once(counts, index):
    def on_rails(t, y, yp):
        return wheelset(t, y, yp, index)

    with pytest.warns(match="y0 does not satisfy"):
        sol = solve_dae(on_rails, (0, 1e-6), ON_RAILS)
    assert sol.success
    assert sol.how.startswith(f"traced; index {index} reduced to 1")
    assert len(counts["schedule"]) == 3        # system, constraints, conditions
    assert len(counts["_find_start"]) == 1
    flattened = counts["emit"]
    assert len(set(flattened)) == len(flattened) <= 9
    assert not counts["build"]                 # no compiler is called


@pytest.mark.parametrize("name", ["robertson", "transamp", "pend-i3", "andrews-i3"])
def test_a_first_call_makes_few_schedules(counts, name):
    p = gallery.get(name)
    assert solve_dae(p.fun, p.t_span, p.y0, p.yp0, max_steps=5).how.startswith("traced")
    reduced = p.index > 1
    assert len(counts["schedule"]) == 1 + reduced
    assert len(counts["_find_start"]) == reduced
    # nothing twice, but for the equations, once by the trace and once by the analysis
    assert len(counts["emit"]) - len(set(counts["emit"])) <= 1


@pytest.mark.parametrize("name", ["pend-i3", "caraxis-i3", "andrews-i3"])
def test_the_start_is_solved_once_in_every_form(counts, name):
    p = gallery.get(name)
    sol = solve_dae(p.fun, p.t_span, p.y0, p.yp0, form=2, max_steps=5)
    assert "reduced to 2" in sol.how
    assert len(counts["_find_start"]) == 1


def test_a_plan_for_one_start_is_made_once(counts):
    counts.watch(trace, choose)

    def floating(t, y, yp):
        slope = yp[0] - yp[1]                  # cancels between two equations
        return [slope + y[0] - np.sin(t), y[1] - slope, yp[2] - y[3], yp[3] + y[4] + y[0], y[2]]

    def run(x):
        sol = solve_dae(floating, (0, 0.1), [x, -x, 0.0, 0.0, -x])
        assert sol.success
        assert sol.how.startswith("traced; index 3")
        return sol.y

    first = run(0.0)
    assert len(counts["trace"]) == 1
    np.testing.assert_array_equal(run(0.0), first)
    assert len(counts["trace"]) == 1
    run(0.1)
    assert len(counts["trace"]) == 2           # another start, another look


def test_a_start_is_found_again_where_anything_is_new(counts):
    def pendulum(t, y, yp, g):
        x, z, u, w, lam = y
        rod = x * x + z * z - 1.0 - 0.1 * t
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + g, rod]

    system = equations.Equations.of_trace(trace(pendulum, 5, (9.81,)), (9.81,))
    reduced = hidden.reduce_index(system, system.signature)
    given = {
        "t0": 0.0, "y0": np.array([1.1, 0.0, 0.0, 0.5, 0.0]), "yp0": None,
        "args": np.array([9.81]), "units": Units.alike(5),
    }
    first = start.reduced_start(reduced, **given)
    expected = first.y.copy()
    first.y[:] = 0.0                           # nobody's but the caller's
    np.testing.assert_array_equal(start.reduced_start(reduced, **given).y, expected)
    assert len(counts["_find_start"]) == 1
    for name, value in {
        "t0": 1.0, "y0": np.array([1.1, 0.1, 0.0, 0.5, 0.0]), "yp0": np.ones(5),
        "args": np.array([1.0]), "units": Units(np.array([1.0, 10.0, 1.0, 1.0, 1.0])),
    }.items():
        other = {**given, name: value}
        found = start.reduced_start(reduced, **other)
        fresh = start.reduced_start(hidden.reduce_index(system, system.signature), **other)
        np.testing.assert_array_equal(found.y, fresh.y)
        np.testing.assert_array_equal(found.yp, fresh.yp)
    assert len(counts["_find_start"]) == 11


# --- the problems ------------------------------------------------------------------------------


def test_two_bit_adder():
    traced = trace(circuit.adder, 350)
    rng = np.random.default_rng(2)
    for _ in range(4):
        t, y, yp = rng.uniform(0, 80), rng.uniform(-1, 5, 350), rng.uniform(-1, 1, 350)
        y[175:] = rng.uniform(0.0, 0.8, 175)   # where all roots are real
        found = evaluate(traced.reference, t, y, yp)
        np.testing.assert_allclose(found, circuit.adder(t, y, yp), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("t_end", "sums"), [(12.0, [1, 1]), pytest.param(34.0, [0, 0], marks=pytest.mark.slow)]
)
def test_the_adder_adds(t_end, sums):
    """0 + 2 and a carry, later 3 + 1, modulo four."""
    sol = solve_dae(circuit.adder, (0, t_end), circuit.START, rtol=1e-3, atol=1e-5)
    assert sol.success
    assert sol.how.startswith("traced, as written")
    volts = sol.y[175:, -1]
    high = [int(volts[node] > 2.5) for node in circuit.OUTPUTS]
    assert high == sums
    assert np.all(np.abs(volts[list(circuit.OUTPUTS)] - 5.0 * np.array(sums)) < 0.5)


def test_pleiades():
    sol = solve_dae(pleiades, SPAN, STARS, rtol=1e-9, atol=1e-12)
    assert sol.how.startswith("traced, as written")
    np.testing.assert_allclose(sol.y[:14, -1], END, rtol=1e-5, atol=1e-5)
