"""Consistent starts of index 0 and 1, and the modes of solve_dae."""
import math

import numpy as np
import pytest
from support.helpers import circle, relax

from tether import ConsistencyWarning, Status, consistent_start, solve_dae


def test_inconsistent_y0_is_repaired_with_a_warning():
    with pytest.warns(ConsistencyWarning, match=r"y0\[1\] was changed, and") as caught:
        sol = solve_dae(relax, (0, 1), [1.5, 1.0])
    assert caught[0].filename == __file__
    assert sol.success
    assert sol.start.success
    assert set(sol.start.moved) == {1}
    assert sol.start.moved[1] == pytest.approx(0.5)
    assert sol.start.residual[0] > 0.4
    assert sol.start.residual[1] < 1e-12
    assert sol.y[:, 0] == pytest.approx([1.5, 1.5])
    assert sol.yp[:, 0] == pytest.approx([-1.5, -0.5], abs=1e-5)


def test_nonlinear_constraint_is_solved_for_the_nearest_root():
    with pytest.warns(ConsistencyWarning):
        sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 - y[0]], (0, 1), [4.0, 5.0])
    assert sol.y[:, 0] == pytest.approx([4.0, 2.0])


def test_inconsistent_yp0_is_repaired_without_a_warning():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5], [7.0, 7.0])
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([-1.5, -0.5], abs=1e-5)


@pytest.mark.parametrize("trace", ["never", "always"])
@pytest.mark.parametrize("t_end", [1e-6, 1.0, 1e6, 1e12, -1e12])
def test_a_long_interval_hides_no_derivative(t_end, trace):
    """The differences that tell y' from y must be seen beside the residual at any length."""
    sol = solve_dae(circle, (0, t_end), [1.0, 0.0], max_steps=30, trace=trace)
    assert sol.start.success
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([0.0, -1.0], abs=1e-6)
    np.testing.assert_allclose(sol.y, [np.cos(sol.t), -np.sin(sol.t)], atol=1e-4)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-12, 1e-15, 1e-20, 1e-30, 1e-100, 1e-300])
@pytest.mark.parametrize("trace", ["never", "always"])
def test_a_tiny_guess_of_the_derivative_hides_no_derivative(size, trace):
    """The size of yp0 says nothing about that of y'."""
    sol = solve_dae(circle, (0, 1), [1.0, 0.0], [0.0, size], trace=trace)
    assert sol.start.moved == {}
    assert sol.yp[:, 0] == pytest.approx([0.0, -1.0], abs=1e-6)
    assert sol.y[:, -1] == pytest.approx([math.cos(1), -math.sin(1)], abs=1e-4)


def test_an_equilibrium_is_not_taken_for_a_constraint():
    """y' = u(t) - y rests at u = 1 and must lag behind when u begins to rise at t = 1."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[0] - 1.0 - max(t - 1.0, 0.0)], (0, 1e9), [1.0],
                    max_step=0.1, callback=lambda t, y, yp: t > 3.0)
    assert sol.y[0, -1] == pytest.approx(sol.t[-1] - 1 + np.exp(1 - sol.t[-1]), abs=1e-4)


def test_change_below_the_tolerance_is_silent():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5 + 1e-8])
    assert sol.start.success


def test_consistent_start_is_left_untouched():
    sol = solve_dae(relax, (0, 1), [1.5, 1.5], [-1.5, -0.5])
    assert sol.start.moved == {}
    assert sol.y[:, 0].tolist() == [1.5, 1.5]
    assert sol.yp[:, 0].tolist() == [-1.5, -0.5]


@pytest.mark.parametrize("dense_output", [False, True])
@pytest.mark.parametrize("t_eval", [None, [0.0, 0.5, 1.0]])
def test_hopeless_start(t_eval, dense_output):
    """No real z satisfies z^2 + 1 = 0."""
    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[1] ** 2 + 1.0], (0, 1), [1.0, 1.0],
                    t_eval=t_eval, dense_output=dense_output)
    assert sol.status == Status.NO_CONSISTENT_START
    assert not sol.start.success
    assert "equation 1" in sol.message
    assert sol.t.tolist() == [0.0]
    assert sol.y[0].tolist() == [1.0]
    assert sol.sol is None
    with pytest.raises(ValueError, match="dense_output"):
        sol(0.0)
    assert "FAILED" in str(sol)


def circuit(t, y, yp):
    return [yp[0] + y[1], y[0] - 2.0 * y[1]]


def test_auto_repairs_and_warns():
    with pytest.warns(ConsistencyWarning, match=r"y0\[1\]"):
        sol = solve_dae(circuit, (0, 1), [1.0, 7.0])
    assert sol.success
    assert sol.start.fixed == (0,)
    assert sol.start.moved == {1: pytest.approx(-6.5)}
    assert sol.start.residual[1] < 1e-12


def test_assume_takes_what_is_given():
    sol = solve_dae(circuit, (0, 1), [1.0, 0.5], [-0.5, -0.25], start="assume")
    assert sol.success
    assert "assumed" in sol.start.message
    without = solve_dae(circuit, (0, 1), [1.0, 0.5], [-0.5, -0.25])
    assert sol.y[0, -1] == pytest.approx(without.y[0, -1], abs=1e-6)
    assert sol.nfev < without.nfev + 20


def test_check_refuses_what_is_inconsistent():
    sol = solve_dae(circuit, (0, 1), [1.0, 0.7], start="check")
    assert sol.status == Status.NO_CONSISTENT_START
    assert "y0[1] would have to be 0.5" in sol.message
    sol = solve_dae(circuit, (0, 1), [1.0, 0.5], [3.0, 0.0], start="check")
    assert sol.status == Status.NO_CONSISTENT_START
    assert "yp0[0] would have to be -0.5" in sol.message


def test_check_accepts_what_is_consistent():
    for yp0 in (None, [-0.5, -0.25]):
        assert solve_dae(circuit, (0, 1), [1.0, 0.5], yp0, start="check").success


def test_unknown_mode():
    with pytest.raises(ValueError, match="start"):
        solve_dae(circuit, (0, 1), [1.0, 0.5], start="maybe")


def test_round_off_in_directions_is_no_equation():
    """Index 2 with a row of F_y that the directions without slopes meet in round-off alone."""
    def network(t, y, yp):
        a, b, c, d = y
        return [-0.25 * yp[2] + 0.48 * yp[3] - 0.07 * a + 0.1 * b + 0.18 * d,
                3.28 * yp[2] - 2.5 * yp[3] + 0.4 * c,
                0.15 * a - 0.07 * d - 0.1 * math.sin(t),
                -100.0 * d + 30.0 * math.cos(t)]

    y0 = [0.14, 0.0, 0.9, 0.3]
    for options in ({"form": "given"}, {"trace": "never"}):
        sol = solve_dae(network, (0, 1), y0, **options)
        assert sol.success, sol.message
        assert np.abs(sol.yp[:, 0]).max() < 10
        assert sol.stats.h.min() > 1e-12
        reduced = solve_dae(network, (0, 1), y0, t_eval=sol.t)
        np.testing.assert_allclose(sol.y[:, 5:], reduced.y[:, 5:], rtol=1e-3, atol=1e-3)


def test_a_change_by_round_off_is_none():
    def pendulum(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + 9.81, x * x + z * z - 1.7]

    guess = [0.7, -0.9, 0.3, 0.2, 0.0]
    found = consistent_start(pendulum, 0.0, guess)
    assert "NO_CONSISTENT_START" not in repr(found)
    start = solve_dae(pendulum, (0.0, 0.1), found.y).start
    assert start.moved == {}
    assert "moved" not in start.message
    assert "changed" not in start.message
