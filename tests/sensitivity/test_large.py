"""Systems with many unknowns: the same as by full matrices, on both sides of the switch."""

import numpy as np
import pytest
from support.derivatives import FINE, TIGHT, adjoint_error, differences, largest_error

from tether import solve_dae, vjp
from tether.sensitivity import large, slopes
from tether.sensitivity.slopes import SPARSE_ABOVE


def chain(n):
    """Conduction along a chain whose last link is algebraic."""
    def fun(t, y, yp, k, g):
        inner = [yp[i] - k * (y[i - 1] - 2 * y[i] + y[i + 1]) for i in range(1, n - 1)]
        return [yp[0] + k * y[0] - y[1], *inner, y[n - 1] - g * y[0] ** 2]

    return fun, np.append(np.full(n - 1, 0.5), 0.5)


def field(n):
    """The same for whole arrays."""
    def fun(t, y, yp, k, w):
        d = k * (y[:-2] - 2 * y[1:-1] + y[2:])
        return np.concatenate([
            [y[0] - np.sin(w * t)], yp[1:-1] - d - 0.1 * y[1:-1] ** 2, [y[-1] - y[-2]]
        ])

    return fun


def of_chain(n, **options):
    fun, y0 = chain(n)
    return solve_dae(
        fun, (0, 1), y0, args=(1.5, 2.0), sensitivity=["k", "g", "y0[0]"], t_eval=[0.0, 0.5, 1.0],
        **options, **FINE,
    )


def test_both_sides_of_the_switch():
    """The far end of a long chain does not matter for the near one, but for its last link."""
    few, many = of_chain(SPARSE_ABOVE - 1), of_chain(SPARSE_ABOVE + 1)
    near = list(range(10))
    assert np.abs(few.sens[:, near] - many.sens[:, near]).max() < 1e-6
    assert np.abs(few.sens[:, -1] - many.sens[:, -1]).max() < 1e-6


def test_sparse_matrices_give_what_full_ones_do(monkeypatch):
    sparse = of_chain(SPARSE_ABOVE + 1)
    calls = []
    monkeypatch.setattr(slopes, "SPARSE_ABOVE", 10 * SPARSE_ABOVE)
    monkeypatch.setattr(large, "forwards", lambda *args: calls.append(args))
    full = of_chain(SPARSE_ABOVE + 1)
    assert not calls
    assert np.allclose(sparse.sens, full.sens, rtol=1e-9, atol=1e-12)


def test_functions_that_are_called():
    traced, called = of_chain(SPARSE_ABOVE + 1), of_chain(SPARSE_ABOVE + 1, trace="never")
    assert np.abs(traced.sens - called.sens).max() < 1e-6


@pytest.mark.parametrize("n", [SPARSE_ABOVE + 1, 300])
def test_the_way_back(n):
    fun, y0 = chain(n)
    names = ["k", "g", "y0[0]", "y0[7]", f"y0[{n - 1}]"]  # the last is a guess
    assert adjoint_error(
        fun, (0, 1), y0, names, args=(1.5, 2.0), t_eval=[0.0, 0.5, 1.0], **FINE
    ) < 1e-10


def test_whole_arrays():
    n, args = 300, (3.0, 10.0)

    def values(x):
        return solve_dae(
            field(n), (0, 1), np.zeros(n), args=tuple(x), t_eval=[0.3, 1.0], **TIGHT
        ).y

    sol = solve_dae(
        field(n), (0, 1), np.zeros(n), args=args, sensitivity="args", t_eval=[0.3, 1.0], **FINE
    )
    right = differences(values, args, 1e-3)
    assert largest_error(sol.sens[:, :20], right[:, :20]) < 1e-6
    assert adjoint_error(
        field(n), (0, 1), np.zeros(n), "args", args=args, t_eval=[0.3, 1.0], **FINE
    ) < 1e-10


def test_parameters_that_make_fast_oscillations_of_whole_arrays():
    """Their derivatives are found by differences, whose steps must not be too long."""
    n, w = 150, 200.0
    sol = solve_dae(
        field(n), (9.6, 9.7), np.zeros(n), args=(3.0, w), sensitivity=["w"], t_eval=[9.7],
        start="quiet", **FINE,
    )
    assert abs(sol.sens[0, 0, 0] - 9.7 * np.cos(9.7 * w)) < 1e-5 * 9.7


def test_an_event_and_a_break():
    """Of a field whose boundary is switched at ts, and which is cut down at a level."""
    n = SPARSE_ABOVE + 1

    def fun(t, y, yp, k, ts):
        d = k * (y[:-2] - 2 * y[1:-1] + y[2:])
        left = 1.0 if t < ts else 0.2
        return np.concatenate([[y[0] - left * np.cos(2 * t)], yp[1:-1] - d, [y[-1] - y[-2]]])

    def event(t, y, yp, k, ts):
        return y[5] - 0.7

    event.apply, event.direction = lambda t, y, yp, k, ts: 0.9 * y, 1
    y0 = 0.5 + 0.3 * np.sin(0.7 * np.arange(n))
    options = {"t_eval": [0.3, 0.8, 1.5], "events": [event], "start": "quiet"}

    def values(x):
        return solve_dae(fun, (0, 1.5), y0, args=tuple(x), **options, **TIGHT).y

    sol = solve_dae(fun, (0, 1.5), y0, args=(3.0, 0.71), sensitivity="args", **options, **FINE)
    right = differences(values, (3.0, 0.71), 1e-5)
    assert largest_error(sol.sens[:, :20], right[:, :20]) < 1e-5


def test_slopes_in_combinations_are_refused():
    n = SPARSE_ABOVE + 20

    def fun(t, y, yp, k):
        return [*(yp[i] + yp[i + 1] + k * y[i] for i in range(n - 1)), y[n - 1] - y[0] * k]

    with pytest.raises(ValueError, match="determine only combinations of derivatives"):
        solve_dae(
            fun, (0, 0.1), np.linspace(1, 2, n), args=(1.5,), sensitivity="args", start="quiet"
        )


def test_many_constraints():
    """An index-3 chain of rods with more than a hundred unknowns."""
    m = 21

    def rods(t, y, yp, g, length):
        x, z, u, v, tension = (y[i * m : (i + 1) * m] for i in range(5))
        found = []
        for i in range(m):
            a, b = (x[i - 1], z[i - 1]) if i else (0.0, 0.0)
            fx, fz = -tension[i] * (x[i] - a), -tension[i] * (z[i] - b) - g
            if i + 1 < m:
                fx = fx + tension[i + 1] * (x[i + 1] - x[i])
                fz = fz + tension[i + 1] * (z[i + 1] - z[i])
            found += [
                yp[i] - u[i], yp[m + i] - v[i], yp[2 * m + i] - fx, yp[3 * m + i] - fz,
                (x[i] - a) ** 2 + (z[i] - b) ** 2 - length**2,
            ]
        return found

    y0 = np.zeros(5 * m)
    y0[:m], y0[m : 2 * m] = 0.3 * np.sin(0.6) * np.arange(1, m + 1), -0.3 * np.cos(0.6) * np.arange(
        1, m + 1)
    sol = solve_dae(
        rods, (0, 0.2), y0, args=(9.81, 0.3), sensitivity="args", t_eval=[0.2], start="quiet",
        rtol=1e-7, atol=1e-9,
    )
    # the constraints hold for the derivatives as well
    x, z = sol.y[:m, 0], sol.y[m : 2 * m, 0]
    dx, dz = np.diff(x, prepend=0.0), np.diff(z, prepend=0.0)
    for s, right in zip(sol.sens[:, :, 0], (0.0, 2 * 0.3), strict=True):
        sx, sz = np.diff(s[:m], prepend=0.0), np.diff(s[m : 2 * m], prepend=0.0)
        assert np.allclose(2 * dx * sx + 2 * dz * sz, right, atol=1e-8)
    # all of it scales: lengths by length, times by sqrt(length / g), so that
    # y(t; g, c length) = c y(t; g / c, length)
    first, second = sol.sens[:, :, 0]
    assert np.allclose(
        0.3 * second[: 2 * m], sol.y[: 2 * m, 0] - 9.81 * first[: 2 * m], atol=1e-4
    )


def test_a_switch_of_whole_arrays_at_a_time_that_is_a_parameter():
    """Right before the switch and behind it derivatives are those of one side."""
    n, k, ts = 600, 1.3, 0.4

    def fun(t, y, yp, k, ts):
        return yp + k * y - np.where(t < ts, 1.0, 0.2)

    run = {"args": (k, ts), "t_eval": [0.4, 0.9], **FINE}
    sol = solve_dae(fun, (0, 1), np.linspace(0.0, 1.0, n), sensitivity="args", **run)
    assert "arrays" in sol.how
    assert np.allclose(sol.sens[1, :, 1], 0.8 * np.exp(-k * (0.9 - ts)), rtol=1e-6)
    taped, pullback = vjp(fun, (0, 1), np.linspace(0.0, 1.0, n), wrt="args", **run)
    weights = np.random.default_rng(0).standard_normal(taped.y.shape)
    assert np.allclose(pullback(weights), np.einsum("nt,pnt->p", weights, sol.sens), rtol=1e-9)
