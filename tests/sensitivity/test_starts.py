"""Starts: how consistent values depend on what they were made from."""

import numpy as np
import pytest
from support.derivatives import FINE, TIGHT, adjoint_error, differences, largest_error, relaxing

from tether import solve_dae

QUIET = {"start": "quiet"}


def compare(fun, t_span, y0, args, t_eval=(0.0, 0.4, 1.0), step=1e-3, **options):
    """Largest error of all derivatives against differences of tight runs; the way back too."""
    n, options = len(y0), {**QUIET, **options}

    def values(x):
        return solve_dae(
            fun, t_span, x[:n], args=tuple(x[n:]), t_eval=t_eval, **options, **TIGHT
        ).y

    x = [*y0, *args]
    right = differences(values, x, step)
    sol = solve_dae(
        fun, t_span, y0, args=args, t_eval=t_eval, sensitivity=["y0", "args"], **options, **FINE
    )
    assert sol.success
    assert adjoint_error(
        fun, t_span, y0, ["y0", "args"], args=args, t_eval=t_eval, **options, **FINE
    ) < 1e-10
    return largest_error(sol.sens, right)


# --- index 0 and 1 ------------------------------------------------------------------------------


def test_guesses_of_algebraic_unknowns_do_not_count():
    sol = solve_dae(
        relaxing, (0, 1), [1.0, 77.0], args=(0.9, 0.3), sensitivity="all", t_eval=[0.0], **QUIET
    )
    k, c, y, z = sol.sens[:, :, 0]
    assert np.allclose(k, 0.0)
    assert np.allclose(c, [0.0, 1.0])
    assert np.allclose(y, [1.0, 0.6])
    assert np.allclose(z, 0.0)


def test_the_branch_near_the_guess():
    """The sign of the root is that of the guess."""
    for sign in (1.0, -1.0):
        sol = solve_dae(
            lambda t, y, yp, c: [yp[0] + y[1], y[1] ** 2 - c - y[0]], (0, 0.1), [1.0, 1.5 * sign],
            args=(3.0,), sensitivity=["c"], t_eval=[0.0], **QUIET,
        )
        assert abs(sol.sens[0, 1, 0] - sign / 4) < 1e-9


def test_combinations_of_derivatives():
    """An inconsistent start moves along what E does not see, and E depends on a parameter."""
    def fun(t, y, yp, c, d):
        return [yp[0] + d * yp[1] - c * y[0], y[0] - d * y[1] - np.sin(c * t)]

    assert compare(fun, (0, 1), [1.0, 0.5], (0.7, 0.6)) < 1e-6


def test_slopes_in_nonlinear_equations():
    def fun(t, y, yp, c):
        return [yp[0] ** 3 + yp[0] - c * y[0] - y[1], y[1] - 0.1 * np.sin(c * yp[0])]

    assert compare(fun, (0, 1), [1.0, 0.0], (0.7,)) < 1e-6


def test_assumed_values_are_what_they_are():
    y0, yp0 = [1.0, 0.3], [-0.6, -0.36]
    for n_more in (0, 110):                    # by full matrices and by sparse ones
        def fun(t, y, yp, k, c, n_more=n_more):
            more = [yp[2 + j] + y[2 + j] for j in range(n_more)]
            return [*relaxing(t, y, yp, k, c), *more]

        rest = [0.0] * n_more
        sol = solve_dae(
            fun, (0, 1), y0 + rest, yp0 + rest, args=(0.9, 0.3), start="assume", t_eval=[0.0, 1.0],
            sensitivity=["c", "y0[0]", "y0[1]"], **FINE,
        )
        assert np.allclose(sol.sens[:, :2, 0], [[0, 0], [1, 0], [0, 1]], atol=1e-12)
        auto = solve_dae(
            relaxing, (0, 1), y0, args=(0.9, 0.3), t_eval=[0.0, 1.0],
            sensitivity=["c", "y0[0]", "y0[1]"], **FINE,
        )
        assert np.allclose(sol.sens[:, :2, 1], auto.sens[:, :, 1], atol=1e-5)


# --- higher index -------------------------------------------------------------------------------


def rod(t, y, yp, g, length, m):
    x, z, u, v, tension = y
    return [
        yp[0] - u, yp[1] - v, m * yp[2] + tension * x, m * yp[3] + tension * z + m * g,
        x * x + z * z - length**2,
    ]


@pytest.mark.parametrize("y0", [[0.6, -0.8, 0.0, 0.0, 0.0], [0.65, -0.85, 0.3, 0.1, 0.0]])
def test_index_3(y0):
    """On the constraints, and off them in position and speed."""
    assert compare(rod, (0, 1), y0, (9.81, 1.0, 1.3)) < 3e-6


def test_values_at_the_start_of_index_3_stay_on_the_constraints():
    y0 = [0.65, -0.85, 0.3, 0.1, 0.0]
    sol = solve_dae(
        rod, (0, 1), y0, args=(9.81, 1.0, 1.3), sensitivity="all", t_eval=[0.0], **QUIET
    )
    x, z, u, v, _ = sol.y[:, 0]
    s = sol.sens[:, :, 0]
    right = np.zeros(len(s))
    right[1] = 2.0                             # by the length, which is 1
    assert np.allclose(2 * x * s[:, 0] + 2 * z * s[:, 1], right, atol=1e-9)
    assert np.allclose(s[:, :4] @ [u, v, x, z], 0.0, atol=1e-9)


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_index_2(shift):
    def fun(t, y, yp, k, w):
        x, z, force = y
        return [yp[0] - z + force * k, yp[1] + x - force, x * k + z - np.sin(w * t)]

    assert compare(fun, (0, 1), [0.4, -0.28 + shift, 0.0], (0.7, 1.3)) < 1e-6


def test_capacitors_share_their_charge():
    """Two capacitors are joined at the start: a jump by the law of the equations."""
    def fun(t, y, yp, c1, c2, r):
        return [c1 * yp[0] + y[0] / r + y[2], c2 * yp[1] - y[2], y[0] - y[1]]

    sol = solve_dae(
        fun, (0, 1), [1.0, 0.3, 0.0], args=(1.0, 2.0, 1.5), sensitivity=["y0", "c1", "c2"],
        t_eval=[0.0], **QUIET,
    )
    v = (1.0 * 1.0 + 2.0 * 0.3) / 3.0          # the charge stays
    assert np.allclose(sol.y[:2, 0], v)
    assert np.allclose(sol.sens[:2, 0, 0], [1 / 3, 2 / 3], atol=1e-8)
    assert np.allclose(sol.sens[3:, 0, 0], [(1.0 - v) / 3, (0.3 - v) / 3], atol=1e-8)
    assert compare(fun, (0, 1), [1.0, 0.3, 0.0], (1.0, 2.0, 1.5)) < 1e-6


def test_redundant_constraints():
    def fun(t, y, yp, g, length):
        x, z, u, v, a, b = y
        return [
            yp[0] - u, yp[1] - v, yp[2] + (a + b) * x, yp[3] + (a + b) * z + g,
            x * x + z * z - length**2, 2 * x * x + 2 * z * z - 2 * length**2,
        ]

    assert compare(fun, (0, 1), [0.6, -0.8, 0.0, 0.0, 0.0, 0.0], (9.81, 1.0)) < 3e-6


def test_form_2_is_refused():
    def fun(t, y, yp, k):
        return [yp[0] + k * y[1], y[0] - np.sin(k * t)]

    for options in ({"form": "given"}, {"form": 2}, {"trace": "never"}, {"var_index": [1, 2]}):
        with pytest.raises(ValueError, match="differentiated when they are reduced"):
            solve_dae(
                fun, (0, 1), [0.0, -1.0], args=(0.7,), sensitivity="args", **QUIET, **options
            )


# --- the user's constraints ---------------------------------------------------------------------


def circle(t, y, yp, w, r):
    return [yp[0] - w * y[1], yp[1] + w * y[0]]


def test_constraints_of_the_user():
    """A radius that stands in a constraint alone moves the start and all steps."""
    sol = solve_dae(
        circle, (0, 2), [1.0, 0.0], args=(1.3, 1.0), sensitivity="args", t_eval=[0.0, 2.0],
        constraints=lambda t, y, w, r: y[0] ** 2 + y[1] ** 2 - r**2, **FINE,
    )
    c, s = np.cos(2.6), np.sin(2.6)
    assert np.allclose(sol.sens[0, :, 1], [-2 * s, -2 * c], atol=1e-6)
    assert np.allclose(sol.sens[1, :, 0], [1.0, 0.0], atol=1e-6)
    assert np.allclose(sol.sens[1, :, 1], [c, -s], atol=1e-6)


def test_invariants_keep_the_value_of_the_start():
    def swing(t, y, yp, w, a):
        return [yp[0] - y[1], yp[1] + w * w * np.sin(y[0]) * a]

    def energy(t, y, w, a):
        return y[1] ** 2 / 2 - w * w * a * np.cos(y[0])

    assert compare(swing, (0, 2), [1.0, 0.3], (1.3, 0.8), invariants=energy) < 3e-6
