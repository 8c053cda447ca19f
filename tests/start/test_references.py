"""Values that invariants are to keep, where the structure changes."""

import numpy as np
import pytest

from tether import solve_dae


def sticking(t, y, yp):
    """Two bodies, of masses 1 and 10, that stay together once they have met."""
    x1, x2, u1, u2, N = y
    return [yp[0] - u1, yp[1] - u2, yp[2] + N, 10 * yp[3] - N, min(N, x2 - x1)]


def momentum(t, y):
    return y[2] + 10 * y[3]


def energy(t, y):
    return y[2] ** 2 / 2 + 5 * y[3] ** 2


def stick(**options):
    return solve_dae(sticking, (0, 2), [0.0, 1.0, 1.0, 0.0, 0.0], **options)


TIMES = [None, np.linspace(0, 2, 9)]


@pytest.mark.parametrize("t_eval", TIMES, ids=["steps", "t_eval"])
def test_an_invariant_is_kept_where_the_structure_changes(t_eval):
    sol = stick(invariants=momentum, t_eval=t_eval)
    assert sol.success
    assert sol.warnings == ()
    assert sol.y[2:4, -1] == pytest.approx([1 / 11, 1 / 11])
    assert momentum(0, sol.y) == pytest.approx(1.0, abs=1e-9)
    assert np.nanmax(np.abs(sol.drift)) < 1e-9


@pytest.mark.parametrize("t_eval", TIMES, ids=["steps", "t_eval"])
def test_an_invariant_that_cannot_be_kept_shows_its_jump(t_eval):
    sol = stick(invariants=[momentum, energy], t_eval=t_eval)
    assert sol.success
    assert sol.y[2:4, -1] == pytest.approx([1 / 11, 1 / 11])
    (warning,) = sol.warnings
    assert "invariants[1]" in warning
    assert "jumped by -0.455 at t = 1" in warning
    assert sol.drift[-1] == pytest.approx(energy(0, sol.y) - 0.5, abs=1e-9)
    assert sol.drift[-2] == pytest.approx(0.0, abs=1e-9)


def test_an_event_that_changes_the_state_changes_the_invariant_on_purpose():
    def bang(t, y, yp):
        return t - 0.5

    bang.apply = lambda t, y, yp: [y[0], y[1], 2 * y[2], y[3], y[4]]
    sol = stick(invariants=momentum, events=bang)
    assert sol.success
    assert sol.warnings == ()
    assert sol.y[2:4, -1] == pytest.approx([2 / 11, 2 / 11])
    assert np.nanmax(np.abs(sol.drift)) < 1e-9
    outputs = stick(invariants=momentum, events=bang, t_eval=np.linspace(0, 2, 9))
    assert np.nanmax(np.abs(outputs.drift)) < 1e-9
