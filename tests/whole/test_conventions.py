"""What users write without thinking about it, and what they are told."""

import warnings

import numpy as np
import pytest

from tether import (
    Bdf,
    ConsistencyWarning,
    Problem,
    analyze,
    consistent_start,
    solve_dae,
    solve_fixed,
)

# --- one value need not stand in a list --------------------------------------------------------


@pytest.mark.parametrize("trace", ["always", "never"])
@pytest.mark.parametrize("fun", [
    lambda t, y, yp: yp[0] + y[0],
    lambda t, y, yp: np.sin(yp[0] + y[0]),
    lambda t, y, yp: (yp + y).sum(),
], ids=["number", "of NumPy", "sum"])
def test_a_scalar_residual(fun, trace):
    sol = solve_dae(fun, (0, 1), [1.0], trace=trace)
    assert sol.success
    assert sol.y[0, -1] == pytest.approx(np.exp(-1), abs=1e-5)


def test_a_scalar_residual_elsewhere():
    def fun(t, y, yp):
        return yp[0] + y[0]

    assert analyze(fun, 0, [1.0]).traced
    assert consistent_start(fun, 0, [1.0]).yp == pytest.approx([-1.0])
    assert Bdf(Problem(fun), 0.0, [1.0]).status == 3
    assert solve_fixed(fun, (0, 1), [1.0], order=2, step=0.01).success
    for matrix in ([[1.0]], lambda t, y: [[1.0]]):
        sol = solve_dae(Problem.mass_matrix(matrix, lambda t, y: -y[0]), (0, 1), [1.0],
                        trace="always")
        assert sol.y[0, -1] == pytest.approx(np.exp(-1), abs=1e-5)


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_scalar_is_no_residual_of_two_unknowns(trace):
    with pytest.raises(ValueError, match=r"fun must return 2 values, .* of shape \(\)$"):
        solve_dae(lambda t, y, yp: yp[0] + y[0], (0, 1), [1.0, 1.0], trace=trace)


# --- hints -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("fun", [
    lambda t, y, yp: [yp[:2] + y[:2], yp[2:] + y[2:]],
    lambda t, y, yp: [yp[:1], yp[1:]],
    lambda t, y, yp: [yp[0], yp[1:] + y[1:]],
    lambda t, y, yp: [[value] for value in yp],
    lambda t, y, yp: (yp + y).reshape(1, -1),
])
def test_nested_results_are_to_be_joined(fun, trace):
    with pytest.raises(ValueError, match=r"must return .*np\.concatenate"):
        solve_dae(fun, (0, 1), np.ones(4), trace=trace)


def test_a_right_hand_side_belongs_to_a_mass_matrix():
    with pytest.raises(TypeError, match=r"\(t, y\); for M y' = f\(t, y\) use Problem.mass_matrix"):
        solve_dae(lambda t, y: -y, (0, 1), [1.0])
    with pytest.raises(TypeError, match=r"signature is \(t\)$"):
        solve_dae(lambda t: t, (0, 1), [1.0])
    with pytest.raises(ValueError, match=r"f must return 4 values.*np\.concatenate"):
        solve_dae(Problem.mass_matrix(np.eye(4), lambda t, y: [y[:2], y[2:]]), (0, 1), np.ones(4))


def test_further_parameters_point_at_args():
    with pytest.raises(TypeError, match=r"give the value of k, m by args=$"):
        solve_dae(lambda t, y, yp, k, m: [yp[0] + k * m * y[0]], (0, 1), [1.0])
    with pytest.raises(TypeError, match=r"f must accept .*give the value of k by args=$"):
        Problem.semi_explicit(lambda t, x, z, k: k * z, lambda t, x, z: x - z)
    with pytest.raises(TypeError, match=r"followed by the 1 values of args.*\)$"):
        Problem.mass_matrix(np.eye(1), lambda t, y, k, m: -k * m * y, args=(1.0,))


SWAPPED = [
    lambda t, yp, y: yp + y,
    lambda t, dy, y: dy + y,
    lambda t, ydot, y: ydot + y,
    lambda t, x_dot, x: x_dot + x,
    lambda t, dxdt, x: dxdt + x,
    lambda t, yprime, y, out: None,
    lambda t, yp, y, k=1.0: yp + y,
]


@pytest.mark.parametrize("fun", SWAPPED)
def test_derivatives_before_unknowns_are_noticed(fun):
    first, second = fun.__code__.co_varnames[1:3]
    with pytest.raises(TypeError, match=f"fun must take .*'{first}' and '{second}' are the wrong"):
        solve_dae(fun, (0, 1), [1.0])


def test_derivatives_before_unknowns_are_noticed_everywhere():
    class Model:
        def __call__(self, t, yp, y):
            return yp + y

    with pytest.raises(TypeError, match="fun must take"):
        solve_dae(Model(), (0, 1), [1.0])
    fun = lambda t, y, yp: yp + y  # noqa: E731
    for options in (
        {"jac": lambda t, yp, y: (1, 1)}, {"events": lambda t, yp, y: y[0]},
        {"callback": lambda t, yp, y: None},
    ):
        with pytest.raises(TypeError, match="'yp' and 'y' are the wrong way round"):
            solve_dae(fun, (0, 1), [1.0], **options)


@pytest.mark.parametrize("fun", [
    lambda t, y, yp: yp + y, lambda t, x, v: v + x, lambda t, u, du: du + u,
    lambda t, p, pp: pp + p, lambda t, a, b: b + a,
])
def test_other_names_are_left_alone(fun):
    assert solve_dae(fun, (0, 1), [1.0]).success


# --- warnings ----------------------------------------------------------------------------------


def guess(t, y, yp):
    return [yp[0] + y[1], y[0] - y[1]]


def test_a_fit_with_guesses_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for value in (0.0, 0.25, 3.0):
            solve_dae(guess, (0, 1), [1.0 + value, 9.0])
    assert [type(warning.message) for warning in caught] == [ConsistencyWarning]
    text = str(caught[0].message)
    assert "y0[1]" in text
    assert "sol.start.moved" in text
    assert "start='quiet'" in text


@pytest.mark.parametrize("options", [{"start": "quiet"}, {"options": {"start": "quiet"}}])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_quiet_start_is_an_ordinary_one(options, trace):
    with pytest.warns(ConsistencyWarning):
        ordinary = solve_dae(guess, (0, 1), [1.0, 9.0], trace=trace)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = solve_dae(guess, (0, 1), [1.0, 9.0], trace=trace, **options)
    assert quiet.start.moved == ordinary.start.moved
    np.testing.assert_array_equal(quiet.y, ordinary.y)


def test_a_quiet_start_is_looked_for_as_far_away_as_others():
    def diode(t, y, yp):
        vc, vd = y
        return [1e-6 * yp[0] - (5 - vc) / 1e3, (5 - vd) / 1e3 - 1e-14 * (np.exp(vd / 0.02585) - 1)]

    sol = solve_dae(diode, (0, 1e-3), [0.0, 20.0], start="quiet")
    assert sol.success
    assert sol.start.y[1] == pytest.approx(0.6925, abs=1e-3)


# --- remedies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [
    lambda: solve_dae(lambda t, y, yp: [yp[0] - y[0] ** 2], (0, 2), [1.0]),
    lambda: solve_dae(lambda t, y, yp: [y[0] + y[1] - 2.0] * 2, (0, 1), [1.0, 1.0]),
    lambda: solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], max_steps=3),
    lambda: solve_dae(lambda t, y, yp: [yp[0] - np.sqrt(-1 - y[0] ** 2)], (0, 1), [1.0]),
])
def test_remedies_are_printed_once(run):
    sol = run()
    assert not sol.success
    assert sol.diagnosis.remedies
    text = str(sol)
    for remedy in sol.diagnosis.remedies:
        assert text.count(remedy) == 1
    assert "Try:" not in text
