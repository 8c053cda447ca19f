"""Slopes: derivatives of equations and constraints at points of a run."""

import numpy as np
import pytest
from support.derivatives import FINE, pendulum, relaxing

from tether import Constraint, vjp


def linear_of(fun, y0, **options):
    _, pullback = vjp(fun, (0, 0.1), y0, wrt=options.pop("wrt", "args"), **options, **FINE)
    return pullback._sweep.paths[0].linear


def at(linear, t, y, yp):
    return linear.at(np.array([t]), np.array([y], float), np.array([yp], float)).matrices()


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_equations(trace):
    linear = linear_of(relaxing, [1.0, 0.3], args=(0.9, 0.3), wrt=["c", "y0[0]", "k"], trace=trace)
    fy, fyp, fp, gy, gp = at(linear, 0.0, [2.0, 5.0], [1.0, 1.0])
    assert np.allclose(fy, [[0.9, -1.0], [-1.2, 1.0]], atol=1e-6)
    assert np.allclose(fyp, [[1.0, 0.0], [0.0, 0.0]], atol=1e-6)
    assert np.allclose(fp, [[0.0, -4.0], [0.0, 0.0], [2.0, 0.0]], atol=1e-8)
    assert gy.shape == (0, 2)
    assert gp.shape == (3, 0)


def test_functions_that_fill_an_array():
    def fun(t, y, yp, out, k, c):
        out[:] = relaxing(t, y, yp, k, c)

    found = [
        at(linear_of(fun, [1.0, 0.3], args=(0.9, 0.3), trace=trace), 0.1, [2.0, 5.0], [1.0, 1.0])
        for trace in ("auto", "never")
    ]
    for traced, called in zip(*found, strict=True):
        assert np.allclose(traced, called, atol=1e-6)


def test_constraints_of_reduced_equations():
    """Position and speed of a pendulum, and their derivatives by its length."""
    linear = linear_of(
        pendulum, [0.6, -0.8, 0.0, 0.0, 0.0], args=(9.81, 1.0, 1.3, 0.8, -2.0), start="quiet"
    )
    assert linear.m == 2
    x, z, u, v = 0.6, -0.8, 0.4, 0.3
    y = np.zeros(linear.n)
    y[:4] = x, z, u, v
    *_, gy, gp = at(linear, 0.0, y, np.zeros(linear.n))
    rows = {tuple(np.sign(row[:4]).astype(int)): row for row in gy}
    position = next(row for row in gy if not row[2:4].any())
    assert np.allclose(position[:2] / position[0], [1.0, z / x])
    speed = next(row for row in gy if row[2:4].any())
    assert np.allclose(speed[:4] / speed[2], [u / x, v / x, 1.0, z / x])
    assert len(rows) == 2
    number = int(np.flatnonzero([not row[2:4].any() for row in gy])[0])
    assert np.allclose(gp[1, number] / position[0], -1.0 / x)      # -2 length / (2 x)
    assert np.allclose(np.delete(gp, 1, axis=0), 0.0)


def test_constraints_of_the_user():
    def circle(t, y, w, r):
        return y[0] ** 2 + y[1] ** 2 - r**2

    def energy(t, y, w, r):
        return w * y[0]

    linear = linear_of(
        lambda t, y, yp, w, r: [yp[0] - w * y[1], yp[1] + w * y[0]], [1.0, 0.0], args=(1.3, 1.0),
        constraints=[Constraint(circle)], invariants=[energy],
    )
    assert linear.m == 2
    assert linear.n_invariants == 1
    fy, _, fp, gy, gp = at(linear, 0.0, [0.6, 0.8], [0.0, 0.0])
    assert np.allclose(fy, [[0.0, -1.3], [1.3, 0.0]])
    assert np.allclose(fp, [[-0.8, 0.6], [0.0, 0.0]])
    assert np.allclose(gy, [[1.2, 1.6], [1.3, 0.0]], atol=1e-6)
    assert np.allclose(gp, [[0.0, 0.6], [-2.0, 0.0]], atol=1e-8)


def test_whole_arrays():
    """Templates give the derivatives that the equations one by one do."""
    n = 400

    def field(t, y, yp, k, w):
        d = k * (y[:-2] - 2 * y[1:-1] + y[2:])
        return np.concatenate([[y[0] - np.sin(w)], yp[1:-1] - d, [y[-1] - w * y[-2]]])

    linear = linear_of(field, np.zeros(n), args=(3.0, 0.4), start="quiet")
    y, yp = np.sin(np.arange(n)), np.cos(np.arange(n))
    fy, fyp, fp, _, _ = at(linear, 0.0, y, yp)
    assert np.allclose(np.diag(fyp)[1:-1], 1.0)
    assert np.count_nonzero(fyp) == n - 2
    assert np.allclose(fy[5, 4:7], [-3.0, 6.0, -3.0])
    assert np.allclose(fy[-1, -2:], [-0.4, 1.0])
    assert np.allclose(fp[0, 1:-1], -(y[:-2] - 2 * y[1:-1] + y[2:]), atol=1e-7)
    assert np.allclose(fp[1, [0, -1]], [-np.cos(0.4), -y[-2]], atol=1e-7)
    assert np.allclose(fp[1, 1:-1], 0.0, atol=1e-9)


def test_several_points_at_once():
    linear = linear_of(relaxing, [1.0, 0.3], args=(0.9, 0.3))
    points = np.array([[2.0, 5.0], [3.0, 1.0], [-1.0, 0.5]])
    found = linear.at(np.zeros(3), points, np.zeros((3, 2)))
    for k, y in enumerate(points):
        for one, other in zip(found.matrices(k), at(linear, 0.0, y, [0.0, 0.0]), strict=True):
            assert np.array_equal(one, other)
