"""Sweep: runs are gone through in pieces, forwards and backwards."""

import numpy as np
import pytest
from support.derivatives import FINE, at_wall, pendulum, stick_slip

from tether import solve_dae, vjp
from tether.sensitivity import sweep
from tether.sensitivity.later import Later
from tether.sensitivity.slopes import Linearised


def swinging(t, y, yp, w, a):
    return [yp[0] - y[1], yp[1] + w * w * np.sin(y[0]) * a]


def energy(t, y, w, a):
    return y[1] ** 2 / 2 - w * w * a * np.cos(y[0])


CASES = {
    "impacts": (pendulum, (0, 3), [0.6, -0.8, 0.0, 0.0, 0.0], {
        "args": (9.81, 1.0, 1.3, 0.8, -0.3), "events": [at_wall()], "start": "quiet"}),
    "sliding": (stick_slip, (0, 4), [1.0, 0.0], {"args": (1.0, 4.0, 1.0, 0.5)}),
    "invariants": (swinging, (0, 3), [1.0, 0.3], {"args": (1.3, 0.8), "invariants": energy}),
}


@pytest.mark.parametrize("times", [None, [0.4, 1.0, 2.9]])
@pytest.mark.parametrize("name", CASES)
def test_pieces_of_any_length_give_the_same(monkeypatch, name, times):
    fun, t_span, y0, options = CASES[name]
    found = []
    for numbers in (sweep.CHUNK, 300, 1):      # all steps, some, one by one
        monkeypatch.setattr(sweep, "CHUNK", numbers)
        sol = solve_dae(fun, t_span, y0, sensitivity="all", t_eval=times, **options, **FINE)
        _, pullback = vjp(fun, t_span, y0, wrt="all", t_eval=times, **options, **FINE)
        weights = np.random.default_rng(1).standard_normal(sol.y.shape)
        found.append((sol.sens, pullback(weights)))
    whole, back = found[0]
    allowed = 1e-9
    assert np.allclose(np.einsum("nt,pnt->p", weights, whole), back, rtol=allowed, atol=allowed)
    for sens, gradient in found[1:]:
        assert np.allclose(sens, whole, rtol=1e-12, atol=1e-3 * allowed * np.abs(whole).max())
        assert np.allclose(gradient, back, rtol=1e-10, atol=0.1 * allowed * np.abs(back).max())


def test_looking_twice_asks_for_slopes_once(monkeypatch):
    """Invariants are compared with other values in one direction, which leaves the slopes alone."""
    asked, at = [], Linearised.at

    def counted(self, t, *points):
        asked.append(len(t))
        return at(self, t, *points)

    monkeypatch.setattr(Linearised, "at", counted)
    fun, t_span, y0, options = CASES["invariants"]
    sol, pullback = vjp(fun, t_span, y0, wrt="all", **options, **FINE)
    asked.clear()
    direction, weights = np.array([1.0, -0.5, 0.3, 0.2]), np.ones_like(sol.y)
    first = pullback(weights)
    along = pullback.push(direction)
    again = pullback(weights)
    assert asked.count(max(asked)) == 1
    assert np.array_equal(first, again)
    assert abs(along.sum() - first @ direction) < 1e-9 * np.abs(first).max()


def test_few_slopes_are_kept(monkeypatch):
    monkeypatch.setattr(sweep, "CHUNK", 300)
    fun, t_span, y0, options = CASES["sliding"]
    later = Later("args")
    solve_dae(fun, t_span, y0, sensitivity=later, **options, **FINE)
    run = later.sweep
    found = [run.slopes(path, *part) for path in run.paths for part in run.chunks(path)]
    assert len(found) > 10
    kept = sum(slopes.values.size for slopes in run._slopes.values())
    assert 0 < kept <= 300


def test_invariants_hold_for_derivatives():
    """dE/dp keeps its value at the start along the run."""
    sol = solve_dae(
        swinging, (0, 5), [1.0, 0.3], args=(1.3, 0.8), invariants=energy, sensitivity="all",
        t_eval=np.linspace(0, 5, 6), **FINE,
    )
    w, a = 1.3, 0.8
    of_angle = w * w * a * np.sin(sol.y[0])
    total = of_angle * sol.sens[:, 0] + sol.y[1] * sol.sens[:, 1]
    total[0] -= 2 * w * a * np.cos(sol.y[0])
    total[1] -= w * w * np.cos(sol.y[0])
    assert np.abs(total - total[:, :1]).max() < 1e-7


def test_a_tape_on_disk_gives_the_same():
    fun, t_span, y0, options = CASES["impacts"]
    found = [
        solve_dae(
            fun, t_span, y0, sensitivity="all", options={"tape_memory": limit}, **options, **FINE
        )
        for limit in (1e9, 1.0)
    ]
    assert np.array_equal(found[0].y, found[1].y)
    assert np.array_equal(found[0].sens, found[1].sens)


def test_functions_of_the_user_are_traced_once():
    fun, t_span, y0, options = CASES["impacts"]
    _, pullback = vjp(fun, t_span, y0, wrt="all", **options, **FINE)
    made = pullback._sweep
    event = made.events[0]
    assert made.function(event.fun, 1) is made.function(event.fun, 1)
    assert made.function(event.fun, 1) is not made.function(event.apply, 5)


def test_a_gradient_is_added_to_what_there_is():
    from tether.sensitivity.backward import backwards

    fun, t_span, y0, options = CASES["sliding"]
    _, pullback = vjp(fun, t_span, y0, wrt="all", t_eval=[4.0], **options, **FINE)
    weights = np.ones((1, 2, 1))
    start = np.arange(6.0)[None]
    found = backwards(pullback._sweep, [pullback._seeds(weights)], start.copy())
    assert np.allclose(found - start, pullback(weights), rtol=1e-10, atol=1e-12)
