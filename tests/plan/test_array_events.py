"""Events of whole arrays: templates in the core, the same events as of called functions."""

import numpy as np
import pytest
from support.helpers import count_calls

from tether import solve_dae
from tether.plan.functions import traced_events
from tether.run.watch import check_events

N = 700
W = np.linspace(0.5, 1.0, N)


def rising(t, y, yp):
    """y = w sin t."""
    return yp - W * np.cos(t) + 0.0 * y


def attributed(fun, **attributes):
    for name, value in attributes.items():
        setattr(fun, name, value)
    return fun


def events():
    return {
        "largest": [lambda t, y: np.max(y) - 0.3],
        "smallest": [lambda t, y: y.min() - 0.1],
        "sum": [lambda t, y: np.sum(y * W) - 100.0],
        "norm": [lambda t, y: np.linalg.norm(y) - 10.0],
        "mean of slopes": [lambda t, y, yp: np.mean(yp) - 0.6],
        "one": [lambda t, y: y[3] - 0.1],
        "size 1": [lambda t, y: [y[3:4] - 0.1]],
        "spread": [lambda t, y: np.max(np.abs(np.diff(y))) - 4e-4],
        "any": [lambda t, y: np.any(y > 0.4) - 0.5],
        "several": [lambda t, y: np.max(y) - 0.3, lambda t, y: np.dot(W, y) - 100.0,
                    attributed(lambda t, y: t - 0.85, terminal=True)],
        "kick": [attributed(lambda t, y: np.max(y) - 0.3, direction=1,
                            apply=lambda t, y, yp: 0.5 * y)],
    }


@pytest.mark.parametrize("name", events())
def test_they_are_those_of_called_functions(name):
    def run():
        return solve_dae(rising, (0, 1), np.zeros(N), rtol=1e-7, atol=1e-9, events=events()[name])

    found = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tether.run.watch.traced_events", lambda *args: None)
        called = run()
    assert found.how.startswith("traced as arrays")
    assert found.status == called.status
    for mine, theirs in zip(found.t_events, called.t_events, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        assert len(mine) > 0
    np.testing.assert_allclose(found.y[:, -1], called.y[:, -1], rtol=1e-10)


@pytest.mark.parametrize("name", [name for name in events() if name != "any"])
def test_values_and_derivatives(name):
    functions = [event.fun for event in check_events(events()[name], ())]
    rng = np.random.default_rng(5)
    y, yp = rng.normal(size=N), rng.normal(size=N)
    found = traced_events(functions, N, 0.2, y, yp, ())
    assert found.plan.arrays is not None
    table, runner = found.plan.arrays.table, found.plan.system.new()
    expected = [np.ravel(fun(0.2, y, yp))[0] for fun in functions]
    np.testing.assert_allclose(runner.values(0.2, y, yp), expected, rtol=1e-13)
    entries, way = np.zeros((2, max(runner.reach, 1))), rng.normal(size=(2, N))
    runner.entries_into(0.2, y, yp, *entries)
    slope = np.zeros(len(functions))
    for (rows, columns), values, direction in zip((table.fy, table.fyp), entries, way, strict=True):
        np.add.at(slope, rows, values[: len(rows)] * direction[columns])
    h = 1e-6
    ahead, back = (np.array([np.ravel(fun(0.2, y + s * way[0], yp + s * way[1]))[0]
                             for fun in functions]) for s in (h, -h))
    np.testing.assert_allclose(slope, (ahead - back) / (2 * h), rtol=1e-5, atol=1e-5)
    depends = np.zeros(N, bool)
    depends[table.fy[1]] = depends[table.fyp[1]] = True
    np.testing.assert_array_equal(found.unknowns(N), depends)


def test_they_are_not_called_in_the_steps():
    def event(t, y, yp):
        return np.max(y) - 0.3

    calls, sol = count_calls([event], lambda: solve_dae(
        rising, (0, 1), np.zeros(N), rtol=1e-8, atol=1e-9, events=event
    ))
    assert len(sol.t_events[0]) == 1
    assert sol.stats.steps > 40
    assert calls < 30                          # those that compare it with its templates


def test_many_unknowns_and_arguments():
    n, level = 30_000, [0.3]

    def grow(t, y, yp, rate):
        return yp - rate * np.cos(t) + 0.0 * y

    def reached(t, y, yp, rate):
        return np.max(y / rate) - level[0]

    for rate in (np.linspace(1.0, 2.0, n), np.linspace(2.0, 3.0, n)):
        for level[0] in (0.3, 0.4):
            sol = solve_dae(grow, (0, 1), np.zeros(n), args=(rate,), events=reached, rtol=1e-6,
                            atol=1e-8, t_eval=[1.0])
            assert sol.t_events[0] == pytest.approx([np.arcsin(level[0])], rel=1e-4)


def test_what_decides_by_unknowns_is_no_worse():
    def event(t, y):
        return np.max(y) - (0.3 if y[0] > 0.0 else 0.2)

    sol = solve_dae(rising, (0, 1), np.zeros(N), rtol=1e-7, atol=1e-9, events=event)
    assert sol.t_events[0][-1] == pytest.approx(np.arcsin(0.3), rel=1e-5)
