"""What a run with derivatives returns: at output times, at steps, between them, at events."""

import numpy as np
import pytest
from support.derivatives import FINE, bouncing, decay, falling, relaxing

from tether import solve_dae

BALL = {"args": (9.81, 0.8), "rtol": 1e-9, "atol": 1e-11}


def test_shapes():
    sol = solve_dae(relaxing, (0, 1), [1.0, 0.3], args=(0.9, 0.3), sensitivity="all")
    assert sol.sens.shape == (4, 2, len(sol.t))
    assert sol.sensitivities.names == ("k", "c", "y0[0]", "y0[1]")
    assert sol.sensitivities.t_events is None
    sol = solve_dae(
        falling, (0, 1), [1.0, 0.0], events=[bouncing()], sensitivity="args", t_eval=[0.5], **BALL
    )
    assert sol.sens.shape == (2, 2, 1)
    assert sol.sensitivities.t_events[0].shape == (1, 2)
    assert sol.sensitivities.y_events[0].shape == (1, 2, 2)


def test_nothing_without_the_word():
    sol = solve_dae(decay, (0, 1), [1.0], args=(1.0,))
    assert sol.sens is None
    with pytest.raises(ValueError, match="solve with sensitivity="):
        sol.sens_at(0.5)
    sol = solve_dae(decay, (0, 1), [1.0], args=(1.0,), sensitivity="args")
    with pytest.raises(ValueError, match="dense_output=True"):
        sol.sens_at(0.5)


def test_dense_output_is_that_of_output_times():
    """Across events, to round-off."""
    times = np.array([0.1, 0.45, 0.452, 0.6, 1.17, 1.18, 1.5, 1.9])
    case = {"events": [bouncing()], "sensitivity": "all", **BALL}
    dense = solve_dae(falling, (0, 2), [1.0, 0.0], dense_output=True, **case)
    at_times = solve_dae(falling, (0, 2), [1.0, 0.0], t_eval=times, **case)
    assert np.allclose(dense.sens_at(times), at_times.sens, atol=1e-11)
    assert dense.sens_at(0.3).shape == (4, 2)
    both = solve_dae(falling, (0, 2), [1.0, 0.0], t_eval=times, dense_output=True, **case)
    assert np.array_equal(both.sens, at_times.sens)
    assert np.allclose(both.sens_at(times), both.sens, atol=1e-11)


def test_rows_on_both_sides_of_an_event():
    """The row before belongs to the fall, the one behind to the rise."""
    g, e = BALL["args"]
    sol = solve_dae(falling, (0, 0.8), [1.0, 0.0], events=[bouncing()], sensitivity="all", **BALL)
    hit = sol.t_events[0][0]
    before, behind = np.flatnonzero(sol.t == hit)
    assert np.allclose(sol.sens[0, :, before], [-hit**2 / 2, -hit], rtol=1e-7)
    assert np.allclose(sol.sens[2, :, before], [1.0, 0.0], atol=1e-9)
    # behind: y = e g hit (t - hit) - ..., hit = sqrt(2 y0 / g), at a fixed time
    by_height = hit / 2.0
    assert np.allclose(
        sol.sens[2, :, behind], [-e * g * hit * by_height, e * g * by_height + g * by_height],
        rtol=1e-6,
    )
    assert np.allclose(sol.sens[1, :, behind], [0.0, g * hit], rtol=1e-6, atol=1e-9)


def test_times_of_events_and_of_breaks_as_output_times():
    """The values returned are those before, and so are their derivatives."""
    def late(t, y, yp, k, ts):
        return [yp[0] + k * y[0] - (1.0 if t > ts else 0.0)]

    sol = solve_dae(
        late, (0, 2), [0.3], args=(0.7, 0.9), sensitivity=["ts"], t_eval=[0.9, 0.9 + 1e-9], **FINE
    )
    assert np.allclose(sol.sens[0, 0], [0.0, -1.0], atol=1e-6)
    hit = np.sqrt(2 / 9.81)
    sol = solve_dae(
        falling, (0, 1), [1.0, 0.0], events=[bouncing()], sensitivity=["e"],
        t_eval=[hit - 1e-6, hit + 1e-6], **BALL,
    )
    assert np.allclose(sol.sens[0, 1], [0.0, 9.81 * hit], atol=1e-4)


def test_an_event_at_the_start():
    def event(t, y, yp, k):
        return y[0] - 1.0

    sol = solve_dae(decay, (0, 1), [1.0], args=(0.7,), events=[event], sensitivity="all", **FINE)
    assert np.allclose(sol.sensitivities.t_events[0], 0.0)
    assert np.allclose(sol.sensitivities.y_events[0], [[[0.0], [1.0]]])


def test_values_at_events_move_with_their_time():
    """y(tau) = 0.5, whatever the rate is."""
    def event(t, y, yp, k):
        return y[0] - 0.5

    sol = solve_dae(decay, (0, 2), [1.0], args=(0.7,), events=[event], sensitivity="args", **FINE)
    tau = np.log(2.0) / 0.7
    assert np.allclose(sol.sensitivities.t_events[0], -tau / 0.7, rtol=1e-6)
    assert np.allclose(sol.sensitivities.y_events[0], 0.0, atol=1e-7)


def test_runs_that_do_not_reach_the_end():
    """y = 1 / (1 - k t): what was computed has its derivatives."""
    def blows_up(t, y, yp, k):
        return [yp[0] - k * y[0] ** 2]

    sol = solve_dae(
        blows_up, (0, 3), [1.0], args=(1.0,), sensitivity="args", t_eval=[0, 0.5, 0.9, 2.0], **FINE
    )
    assert not sol.success
    assert sol.sens.shape == (1, 1, 3)
    assert np.allclose(sol.sens[0, 0], [0.0, 0.5 / 0.25, 0.9 / 0.01], rtol=1e-5)
    short = solve_dae(blows_up, (0, 0.5), [1.0], args=(1.0,), sensitivity="args", max_steps=5)
    assert short.sens.shape == (1, *short.y.shape)
    stopped = solve_dae(
        blows_up, (0, 0.5), [1.0], args=(1.0,), sensitivity="args",
        callback=lambda t, y, yp: t > 0.2, **FINE,
    )
    assert stopped.sens.shape == (1, *stopped.y.shape)
    t, y = stopped.t[-1], stopped.y[0, -1]
    assert abs(stopped.sens[0, 0, -1] - t * y**2) < 1e-6


def test_a_start_that_fails():
    sol = solve_dae(
        lambda t, y, yp, k: [yp[0] - k * y[1], y[1] - y[0]], (0, 1), [1.0, 2.0], args=(1.0,),
        start="check", sensitivity="args",
    )
    assert not sol.success
    assert sol.sens.shape == (1, *sol.y.shape)
    assert np.isnan(sol.sens).all()


def test_the_solution_is_that_of_a_run_without():
    """Bits of an ordinary run; within the tolerances where one begins at order 1 instead of 2."""
    plain = solve_dae(relaxing, (0, 1), [1.0, 0.3], args=(0.9, 0.3), **FINE)
    sol = solve_dae(relaxing, (0, 1), [1.0, 0.3], args=(0.9, 0.3), sensitivity="all", **FINE)
    end = np.abs(sol.y[:, -1] - plain.y[:, -1]).max()
    assert end < 1e-6
    again = solve_dae(relaxing, (0, 1), [1.0, 0.3], args=(0.9, 0.3), **FINE)
    assert np.array_equal(plain.y, again.y)    # the derivatives have left nothing behind


def test_errors_of_tangents_are_kept_within_tolerances_on_request():
    """The solution is smoother than its derivatives, which a slow drift of the phase makes."""
    def fun(t, y, yp, w):
        return [yp[0] - y[1], yp[1] + w * w * y[0] - w * w]

    errors = []
    for test in (False, True):
        sol = solve_dae(
            fun, (0, 3), [1.0 + 1e-4, 0.0], args=(3.0,), sensitivity=["y0[0]"], t_eval=[1.7, 3.0],
            rtol=1e-5, atol=1e-7, options={"sensitivity_test": test},
        )
        assert sol.success
        errors.append(np.abs(sol.sens[0, 0] - np.cos(3 * sol.t)).max())
    assert errors[1] < 1e-2
    assert errors[1] < errors[0] / 3


def test_the_request_needs_derivatives():
    with pytest.raises(ValueError, match="sensitivity_test needs sensitivity="):
        solve_dae(decay, (0, 1), [1.0], args=(1.0,), options={"sensitivity_test": True})
