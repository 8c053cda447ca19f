"""Steps that are held short from some times on."""

import numpy as np
import pytest

from tether import solve_dae
from tether.sensitivity.tape import Tape


def fun(t, y, yp, k):
    return [yp[0] - y[1], yp[1] + k * y[0]]


def steps_below(ceilings, t_span, **options):
    """Return the times of a run whose steps are held below ceilings, times and lengths."""
    times, lengths = (np.array(part, float) for part in ceilings)
    method = Tape.method

    def held(self, run):
        self.ceilings = times, lengths
        return method(self, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tape, "method", held)
        sol = solve_dae(
            fun, t_span, [1.0, 0.0], args=(4.0,), sensitivity="args", rtol=1e-5, atol=1e-7,
            **options,
        )
    assert sol.success
    exact = np.cos(2.0 * (sol.t - sol.t[0]))
    return sol.t, np.abs(sol.y[0] - exact).max()


def allowed(t, times, lengths):
    """Return the least ceiling at the places that steps pass, but for what leads up to them."""
    begins, ends = (t[:-1], t[1:]) if t[-1] > t[0] else (-t[:-1], -t[1:])
    times = times if t[-1] > t[0] else -times
    most = np.full(len(begins), np.inf)
    for k, start in enumerate(times):
        end = times[k + 1] if k + 1 < len(times) else np.inf
        inside = (begins >= start - 1e-12) & (begins < end - 1e-12)
        most[inside] = np.minimum(most[inside], lengths[k])
        ahead = (begins < start - 1e-12) & (ends > start + 1e-12)
        most[ahead] = np.minimum(most[ahead], np.maximum(lengths[k], (start - begins)[ahead]))
    return most


@pytest.mark.parametrize("backwards", [False, True])
def test_no_step_is_longer_than_it_may_be(backwards):
    sign = -1.0 if backwards else 1.0
    times = sign * np.array([0.0, 0.5, 0.8, 0.81, 1.6])
    lengths = np.array([np.inf, 0.003, 0.05, 0.002, np.inf])
    t, error = steps_below((times, lengths), (0.0, sign * 3.0))
    h = np.abs(np.diff(t))
    assert np.all(h <= allowed(t, times, lengths) * (1 + 1e-9))
    held = (np.abs(t[:-1]) >= 0.82) & (np.abs(t[:-1]) < 1.6)
    assert np.median(h[held]) > 0.0019         # and not shorter than it has to be
    assert h[np.abs(t[:-1]) > 2.5].max() > 0.02            # free again
    assert error < 1e-3


def test_ceilings_hold_behind_an_event_that_cuts_a_step():
    def event(t, y, yp, k):
        return y[0] + 0.3

    event.apply = lambda t, y, yp, k: [y[0], y[1]]
    times, lengths = np.array([0.0, 0.9, 1.2]), np.array([0.02, 0.004, 0.03])
    t, error = steps_below((times, lengths), (0.0, 2.0), events=event)
    assert np.all(np.abs(np.diff(t)) <= allowed(t, times, lengths) * (1 + 1e-9) + 1e-300)
    assert error < 1e-3

