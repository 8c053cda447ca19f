"""The words of print(sol)."""

import numpy as np
from support.helpers import decay

from tether import solve_dae


def test_print_of_a_success(reference):
    text = str(reference)
    stats = reference.stats
    assert text.startswith("success: The end of the interval was reached.")
    assert f"{stats.steps} accepted" in text
    assert f"{stats.nfev} residuals, {stats.njev} Jacobians, {stats.nlu} factorisations" in text
    assert f"order up to {stats.order.max()}" in text
    assert "2 unknowns" in text
    assert f"{reference.y[0, -1]:.6g}" in text
    assert all(len(line) < 110 for line in text.splitlines())


def test_print_of_a_failure():
    sol = solve_dae(decay, (0, 1), [1.0], max_steps=3)
    text = str(sol)
    assert text.startswith("FAILED: The limit of steps was reached.")
    assert "3 accepted" in text
    assert "residuals" in text


def test_print_of_events_and_many_unknowns():
    events = [lambda t, y, yp: y[0] - 0.5, lambda t, y, yp: 1.0]
    sol = solve_dae(lambda t, y, yp: yp + y, (0, 1), np.ones(30), events=events)
    text = str(sol)
    assert "event    0: 1 time, last at 0.69314" in text
    assert "event    1: 0 times" in text
    assert "..." in text
