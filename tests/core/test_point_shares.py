"""Weights of points in formulas and polynomials."""

import numpy as np
import pytest

from tether._core import point_shares

WIDTH = 8


def both(t, order, first):
    """Coefficients of steps, and shares of points in what is predicted for them."""
    found, predictor = np.full((2, len(order), WIDTH), np.nan)
    point_shares.coefficients(t, np.array(order, np.intc), first, found, predictor)
    return found, predictor


def coefficients(t, order, first):
    return both(t, order, first)[0]


def test_equal_steps_have_the_known_coefficients():
    t = 0.1 * np.arange(10)
    c = coefficients(t, [1, 2, 3], 7)
    assert np.allclose(0.1 * c[0, :3], [1, -1, 0], atol=1e-13)
    assert np.allclose(0.1 * c[1, :4], [3 / 2, -2, 1 / 2, 0], atol=1e-13)
    assert np.allclose(0.1 * c[2, :5], [11 / 6, -3, 3 / 2, -1 / 3, 0], atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_slopes_of_polynomials_are_exact(order):
    """On steps of any lengths, for polynomials up to the order."""
    t = np.cumsum(np.random.default_rng(order).uniform(0.1, 1.0, 9))
    c = coefficients(t, [order], 8)[0]
    for power in range(order + 1):
        slope = c @ t[8 : 8 - WIDTH : -1] ** power
        exact = power * t[8] ** max(power - 1, 0)
        assert abs(slope - exact) < 1e-9 * np.abs(c).max() * t[8] ** power


@pytest.mark.parametrize("order", [1, 3, 6])
def test_predictions_of_polynomials_are_exact(order):
    t = np.cumsum(np.random.default_rng(order).uniform(0.1, 1.0, 9))
    _, predictor = both(t, [order], 8)
    for power in range(order + 1):
        foreseen = predictor[0] @ t[8 : 8 - WIDTH : -1] ** power
        assert abs(foreseen - t[8] ** power) < 1e-9 * np.abs(predictor).max() * t[8] ** power
    assert predictor[0, 0] == 0.0


def test_coefficients_go_backwards_in_time():
    t = np.cumsum(np.random.default_rng(1).uniform(0.1, 1.0, 9))
    assert np.allclose(coefficients(t, [4], 8), -coefficients(-t, [4], 8), rtol=1e-12)


def test_shares_reproduce_polynomials():
    t = np.cumsum(np.random.default_rng(2).uniform(0.1, 1.0, 9))
    for degree in range(7):
        shares = np.empty(degree + 1)
        point_shares.shares_at(t, 7, degree, 2.2, shares)
        values = t[7 - degree : 8][::-1] ** degree
        assert abs(shares @ values - 2.2**degree) < 1e-9 * np.abs(shares * values).sum()
        point_shares.shares_at(t, 7, degree, t[7], shares)
        assert np.array_equal(shares, np.eye(degree + 1)[0])


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_values_are_located_in_the_steps_of_a_leg(way):
    t = np.cumsum(np.random.default_rng(2).uniform(0.1, 1.0, 12))
    order = np.array([1, 2, 1, 3], np.intc)    # of steps from t[7] on
    inside = 0.5 * (t[9] + t[10]), t[10], t[11], 0.9 * t[11] + 0.1 * t[10]
    at = np.array([t[7], *inside, t[7] - 1e-9])
    row, shares = np.empty(6, np.intc), np.empty((6, 7))
    point_shares.locate(way * t, 7, order, way * at, row, shares)
    assert row.tolist() == [0, 3, 3, 4, 4, 0]
    for k, degree in enumerate((0, 1, 0, 0, 3, 0)):
        expected = np.zeros(7)
        point_shares.shares_at(t, 7 + row[k], degree, at[k], expected[: degree + 1])
        assert np.allclose(shares[k], expected, rtol=1e-13)
        assert np.count_nonzero(shares[k]) == degree + 1


def test_scattering_is_the_transposed_of_gathering():
    rng = np.random.default_rng(3)
    points, shares = rng.standard_normal((12, 3, 2)), rng.standard_normal((5, 7))
    shares[1, 2:], shares[4, 1] = 0.0, 0.0
    rows, numbers = np.array([6, 7, 11, 9, 6], np.intc), np.array([3, 0, 5, 2, 1], np.intc)
    gathered = np.zeros((6, 4, 2))             # of which another leg has more unknowns
    point_shares.gather(points, rows, shares, numbers, gathered)
    expected = np.zeros_like(gathered)
    for row, share, number in zip(rows, shares, numbers, strict=True):
        expected[number, :3] = np.tensordot(share, points[row - 6 : row + 1][::-1], 1)
    assert np.allclose(gathered, expected, rtol=1e-13, atol=0.0)
    weights, scattered = rng.standard_normal((5, 3, 2)), np.zeros_like(points)
    point_shares.scatter(weights, rows, shares, scattered)
    assert np.isclose((weights * gathered[numbers, :3]).sum(), (scattered * points).sum())
