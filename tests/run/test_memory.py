"""A run lets go of its memory when its result is forgotten, without the collector's help."""

import gc

import numpy as np
import pytest

from tether import solve_dae
from tether._core.state import State
from tether.base import blocks
from tether.run.integration import Integration


def heat(t, y, yp):
    u = np.concatenate([[0.0], y, [0.0]])
    return yp - 100.0 * (u[2:] - 2 * u[1:-1] + u[:-2])


def alive():
    return [found for found in gc.get_objects() if type(found) in (State, Integration)]


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_nothing_is_left_for_the_collector(trace):
    gc.collect()
    before = len(alive())
    gc.disable()
    try:
        sol = solve_dae(heat, (0, 0.1), np.ones(200), trace=trace, lband=1, uband=1)
        assert sol.success
        del sol
        assert len(alive()) == before
    finally:
        gc.enable()


def pendulum(t, y, yp):
    x, z, u, w, tension = y
    return [yp[0] - u, yp[1] - w, yp[2] + tension * x, yp[3] + tension * z + 9.81,
            x * x + z * z - 1.0]


def height(t, y, yp):
    return y[1] + 0.5


def energy(t, y):
    return y[2] ** 2 + y[3] ** 2 + 2 * 9.81 * y[1]


@pytest.mark.parametrize("more", [
    {}, {"events": height}, {"invariants": energy}, {"dense_output": True},
    {"t_eval": [0.5]}, {"t_breaks": [0.3]}, {"trace": "never", "form": "given"},
])
def test_no_object_of_a_call_is_left_for_the_collector(more):
    """Neither in a run that is compared with its function nor in one that is not.

    Only the first one, which traces it, may leave something behind.
    """
    def run():
        solve_dae(pendulum, (0, 1), [1.0, 0.0, 0.0, 0.0, 0.0], start="quiet", **more)

    run()
    for _ in range(5):
        gc.collect()
        gc.disable()
        try:
            run()
            assert gc.collect() == 0
        finally:
            gc.enable()


def test_the_next_run_takes_the_memory_of_the_last(monkeypatch):
    monkeypatch.setattr(blocks, "_spare", {})
    y0 = np.ones(4000)

    def run():
        return solve_dae(heat, (0, 1e-3), y0, lband=1, uband=1, t_eval=[1e-3])

    first = run().y.copy()
    kept = set(blocks._spare)
    assert kept
    second = run()
    assert np.array_equal(second.y, first)
    del second
    assert set(blocks._spare) == kept
