"""What a run with derivatives returns: at output times, at steps, between them, at events."""

import numpy as np
import pytest
from support.derivatives import FINE, bouncing, decay, falling, relaxing

from tether import gradient, solve_dae, vjp

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


def chain():
    """x passes 1 and is set back, which takes v past 1.6, which is set back in turn."""
    def first(t, y, yp, a, b):
        return y[0] - 1.0

    def second(t, y, yp, a, b):
        return y[1] - 1.6

    def third(t, y, yp, a, b):
        return y[1] - y[0] - 0.8

    first.apply = lambda t, y, yp, a, b: [y[0] - 1.5 * b, y[1] + 2.0 * b + 0.1 * yp[1]]
    second.apply = lambda t, y, yp, a, b: [y[0] - 0.1 * b, y[1] - a]
    first.direction = second.direction = 1
    return [first, second, third]


def test_values_at_events_that_others_have_set_off():
    """They are those between the two changes of the state, and so are their derivatives."""
    def fun(t, y, yp, a, b):
        return [yp[0] - a, yp[1] + b * y[1]]

    run = {"t_span": (0, 4), "y0": [0.2, 0.5], "t_eval": [1.0, 4.0], **FINE}
    sol = solve_dae(fun, args=(0.9, 0.7), events=chain(), sensitivity="args", **run)
    assert sol.y_events[1][:, 1].min() > 1.6
    assert len(sol.t_events[0]) == 3
    found = sol.sensitivities
    for k, change in enumerate(np.eye(2) * 1e-5):
        args = [tuple(np.array([0.9, 0.7]) + way * change) for way in (1.0, -1.0)]
        sides = [solve_dae(fun, args=moved, events=chain(), **run) for moved in args]
        for event in range(3):
            t, y = ([getattr(x, name)[event] for x in sides] for name in ("t_events", "y_events"))
            assert np.allclose(found.t_events[event][:, k], (t[0] - t[1]) / 2e-5, atol=1e-6)
            assert np.allclose(found.y_events[event][:, k], (y[0] - y[1]) / 2e-5, atol=1e-6)
    for event in range(3):
        weights = np.arange(1.0, 1.0 + sol.y_events[event].size).reshape(-1, 2)
        gradient_of = gradient(
            lambda x, event=event, weights=weights: np.sum(weights * x.y_events[event]),
            fun, args=(0.9, 0.7), events=chain(), **run,
        )
        expected = np.einsum("kj,kpj->p", weights, found.y_events[event])
        assert np.allclose(gradient_of.grad, expected, rtol=1e-10)


def test_values_between_changes_of_the_state_at_one_time():
    """Every row of the solution has its own derivatives, and the adjoint has the same."""
    def fun(t, y, yp, a, b):
        return [yp[0] - a, yp[1] + b * y[1]]

    run = {"t_span": (0, 1.5), "y0": [0.2, 0.5], "args": (0.9, 0.7), "events": chain(), **FINE}
    sol = solve_dae(fun, sensitivity="args", **run)
    rows = np.flatnonzero(np.abs(sol.t - 8 / 9) < 1e-9)
    assert sol.y[0, rows].round(6).tolist() == [1.0, -0.05, -0.12]
    # the time of the events changes by -8 / 9 / a, and x goes on at the rate a
    assert np.allclose(sol.sens[:, 0, rows], [[8 / 9] * 3, [0.0, -1.5, -1.6]], atol=1e-6)
    assert np.allclose(sol.sens[1, 1, rows[1]], sol.sens[1, 1, rows[2]])
    other, pullback = vjp(fun, **run)
    weights = np.random.default_rng(1).standard_normal((3, *other.y.shape))
    assert np.allclose(
        pullback(weights), np.einsum("kjt,pjt->kp", weights, sol.sens), rtol=1e-9, atol=1e-9
    )
