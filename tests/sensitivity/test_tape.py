"""Tape and route: the legs of a run, and its steps as formulas."""

import gc
from itertools import pairwise
from weakref import ref

import numpy as np
import pytest
from support.derivatives import FINE, at_wall, bouncing, decay, falling, pendulum, stick_slip

from tether import solve_dae, vjp
from tether.sensitivity.route import PAST
from tether.sensitivity.tape import Tape


def paths_of(fun, t_span, y0, **options):
    _, pullback = vjp(fun, t_span, y0, wrt="y0", **options, **FINE)
    return pullback._sweep.paths


def test_an_ordinary_run_is_one_leg():
    path, = paths_of(decay, (0, 1), [1.0], args=(1.0,))
    assert path.t[PAST] == 0.0
    assert path.t[-1] == 1.0
    assert path.kept == path.steps == len(path.order)
    assert path.leg.overshoot is None
    assert path.leg.happening is None


def test_events_cut_steps():
    paths = paths_of(falling, (0, 1.3), [1.0, 0.0], args=(9.81, 0.8), events=[bouncing()])
    assert len(paths) == 3
    for before, after in pairwise(paths):
        assert after.leg.happening.acting == (0,)
        assert after.leg.happening.decides
        assert before.leg.overshoot is not None
        assert before.kept == before.steps - 1
        assert before.t[-1] > after.t[PAST] > before.t[-2]     # the cut step went further
        assert after.leg.begin.before[1] < 0 < after.leg.begin.given[1]
    assert paths[-1].leg.overshoot is None


def test_events_that_only_look_cut_nothing():
    def event(t, y, yp, g, e):
        return y[0] - 0.5

    path, = paths_of(falling, (0, 0.4), [1.0, 0.0], args=(9.81, 0.8), events=[event])
    assert path.kept == path.steps


def test_breaks_begin_legs():
    first, second = paths_of(
        lambda t, y, yp, ts: [yp[0] + (1.0 if t < ts else 0.2) * y[0]], (0, 2), [1.0], args=(0.9,)
    )
    assert second.leg.happening.is_break
    assert abs(second.t[PAST] - 0.9) < 1e-12
    assert abs(first.t[-1] - 0.9) < 1e-12


@pytest.mark.parametrize("case", [
    (decay, [1.0], (1.3,), None),
    (lambda t, y, yp, k: [yp[0] - y[1], yp[1] + k * y[0]], [1.0, 0.0], (4.0,), None),
    (falling, [1.0, 0.5], (9.81, 0.8), "bouncing"),
    (stick_slip, [1.0, 0.0], (1.0, 4.0, 1.0, 0.5), None),
])
def test_steps_satisfy_their_formula(case):
    """y' = c_0 y + c_1 y_(i-1) + ... holds for the numbers of the run itself."""
    fun, y0, args, events = case
    events = [bouncing()] if events else None
    checked = 0
    for path in paths_of(fun, (0, 2), y0, args=args, events=events):
        for step in range(PAST, path.kept):
            points = path.y[step + 1 - PAST : step + 2][::-1]
            slope = path.c[step] @ points
            size = np.abs(path.c[step]).max() * np.abs(points).max(axis=0)
            assert np.all(np.abs(slope - path.yp[step + 1]) < 1e-9 * size + 1e-12)
            checked += 1
    assert checked > 10


def test_the_past_of_a_begin_is_its_tangent():
    path = paths_of(pendulum, (0, 0.1), [0.6, -0.8, 0, 0, 0], args=(9.81, 1.0, 1.3, 0.8, -2.0),
                    events=[at_wall()], start="quiet")[0]
    distance = np.diff(path.t[: PAST + 1])
    assert np.allclose(distance, path.leg.begin.h)
    assert np.all(path.order[:1] == 1)


def test_backwards_in_time():
    path, = paths_of(decay, (1, 0), [1.0], args=(1.0,))
    assert np.all(np.diff(path.t) < 0)
    assert path.step_at(0.5 * (path.t[PAST] + path.t[PAST + 1])) == 1
    assert path.step_at(0.0) == path.steps


def test_shares_of_points():
    path, = paths_of(decay, (0, 1), [1.0], args=(1.0,))
    row = path.steps // 2
    t = 0.5 * (path.t[PAST + row] + path.t[PAST + row - 1])
    assert path.step_at(t) == row
    shares = path.shares(t, row, path.degree(row))
    value = shares @ path.y[row - len(shares) + 1 : row + 1][::-1]
    assert abs(value[0] - np.exp(-t)) < 1e-7


@pytest.mark.parametrize("events", [None, bouncing()])
def test_a_run_is_gone_as_soon_as_nobody_needs_it(monkeypatch, events):
    """In a circle with its tape its memory would wait for Python's collector of garbage."""
    runs, method = [], Tape.method

    def noted(self, run):
        runs.append(ref(run))
        return method(self, run)

    monkeypatch.setattr(Tape, "method", noted)
    gc.disable()
    try:
        sol = solve_dae(falling, (0, 1), [1.0, 0.0], args=(9.81, 0.8), events=events,
                        sensitivity="args")
        assert sol.success
        del sol
        assert [run() for run in runs] == [None]
        taped, pullback = vjp(falling, (0, 1), [1.0, 0.0], args=(9.81, 0.8), events=events,
                              wrt="args")
        legs = [ref(path.leg) for path in pullback._sweep.paths]
        assert pullback(np.ones_like(taped.y)).shape == (2,)
        del pullback, taped
        assert {leg() for leg in legs} == {None}
    finally:
        gc.enable()
