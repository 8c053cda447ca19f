"""Every kind of constraint and invariant, and those that are refused."""

import ctypes
import math

import numpy as np
import pytest
from support.hanson_krogh import (
    START,
    G,
    Library,
    called_or_traced,
    pendulum,
    rod,
    solve_pendulum,
    with_jacobian,
)

from tether import Constraint, Problem, solve_dae
from tether.gallery.compiled import find_compiler


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if find_compiler() is None:
        pytest.skip("no C compiler")
    return Library(tmp_path_factory.mktemp("hk"))


# --- every kind of constraint -----------------------------------------------------------------


def test_python_constraints_alike():
    """List of callables, one callable, with Jacobian or without."""
    jac = with_jacobian(rod, lambda t, y: [[y[0], y[1], 0, 0, 0], [y[2], y[3], y[0], y[1], 0]])
    forms = [
        rod,
        [rod],
        (lambda t, y: rod(t, y)[0], lambda t, y: np.array([rod(t, y)[1]])),
        jac,
        Constraint(rod, jac=jac.jac),
    ]
    ends = [
        solve_pendulum(t_end=2.0, constraints=form, trace=trace).y[:, -1]
        for form in forms
        for trace in ("never", "auto")
    ]
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], atol=1e-5)


def test_c_constraints_alike(library):
    factor = ctypes.c_double(3.0)
    from scipy import LowLevelCallable

    with_data = LowLevelCallable(
        library.function("scaled", 2, ctypes.c_void_p), ctypes.cast(ctypes.byref(factor),
                                                                    ctypes.c_void_p))
    python = solve_pendulum(t_end=2.0, constraints=rod)
    for constraint in (library.constraint("rod", 2), library.constraint("rod", 2, jac=False),
                       [lambda t, y: rod(t, y)[1], Constraint(with_data, size=1)]):
        sol = solve_pendulum(t_end=2.0, constraints=constraint)
        assert np.abs(sol.drift).max() < 1e-13
        np.testing.assert_allclose(sol.y[:, -1], python.y[:, -1], atol=1e-5)


@called_or_traced
def test_args_reach_the_constraints(trace):
    sol = solve_dae(lambda t, y, yp, r: [yp[0] + y[1], yp[1] - y[0]], (0, 10), [2.0, 0.0],
                    args=(2.0,), constraints=lambda t, y, r: y[0] ** 2 + y[1] ** 2 - r * r,
                    trace=trace)
    assert np.abs(np.hypot(*sol.y) - 2.0).max() < 1e-14


@called_or_traced
def test_twenty_copies_of_one_constraint(trace):
    one = solve_pendulum(t_end=2.0, constraints=rod, trace=trace)
    many = solve_pendulum(t_end=2.0, constraints=[rod] * 20, trace=trace)
    assert many.drift.shape[0] == 40
    assert np.abs(many.drift).max() < 1e-13
    np.testing.assert_allclose(many.y[:, -1], one.y[:, -1], atol=1e-6)


@called_or_traced
def test_more_constraints_than_unknowns(trace):
    def circle(t, y):
        r = y[0] ** 2 + y[1] ** 2 - 1.0
        return [r, 2 * r, r * (1 + y[0] ** 2)]

    sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], yp[1] - y[0]], (0, 50), [1.0, 0.0],
                    constraints=circle, trace=trace)
    assert np.abs(sol.drift).max() < 1e-14


@called_or_traced
def test_time_dependent_constraint(trace):
    """x' = x cos t with x = exp(sin t) as a constraint."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - y[0] * math.cos(t)], (0, 30), [1.0], rtol=1e-4,
                    constraints=lambda t, y: y[0] - math.exp(math.sin(t)), trace=trace)
    np.testing.assert_allclose(sol.y[0], np.exp(np.sin(sol.t)), rtol=1e-14)


@called_or_traced
def test_a_constraint_whose_jacobian_loses_rank_on_the_way(trace):
    """G = y0^2 + y1^2 - 2 t^2... is flat at t = 0, which the solution y = (t, t) passes."""
    sol = solve_dae(lambda t, y, yp: [yp[0] - 1.0, yp[1] - 1.0], (-1, 1), [-1.0, -1.0],
                    constraints=lambda t, y: y[0] ** 2 + y[1] ** 2 - 2 * t * t, trace=trace)
    assert sol.success
    np.testing.assert_allclose(sol.y, np.array([sol.t, sol.t]), atol=1e-7)


def test_kepler_orbit_over_a_thousand_revolutions():
    """Energy and angular momentum keep the orbit's shape; without them it spirals."""
    def orbit(t, y, yp):
        x, z, u, w = y
        r3 = (x * x + z * z) ** 1.5
        return [yp[0] - u, yp[1] - w, yp[2] + x / r3, yp[3] + z / r3]

    def shape(t, y):
        x, z, u, w = y
        return [0.5 * (u * u + w * w) - (x * x + z * z) ** -0.5, x * w - z * u]

    e = 0.3
    y0 = [1 - e, 0.0, 0.0, math.sqrt((1 + e) / (1 - e))]
    span = (0.0, 2 * math.pi * 1000)
    kept, free = (
        solve_dae(orbit, span, y0, rtol=1e-7, atol=1e-7, t_eval=[span[1]], **options)
        for options in ({"invariants": shape}, {})
    )
    reference = shape(0, y0)
    assert np.abs(np.subtract(shape(0, kept.y[:, -1]), reference)).max() < 1e-13
    assert np.abs(np.subtract(shape(0, free.y[:, -1]), reference)).max() > 1e-4
    assert kept.stats.worst_drift < 1e-12


def test_rigid_body_with_its_two_invariants():
    inertia = np.array([1.0, 2.0, 3.0])

    def body(t, y, yp):
        a, b, c = y
        return [yp[0] - (2 - 3) / 1 * b * c, yp[1] - (3 - 1) / 2 * c * a,
                yp[2] - (1 - 2) / 3 * a * b]

    def momentum_and_energy(t, y):
        return [np.sum((inertia * y) ** 2), np.sum(inertia * y * y)]

    y0 = np.array([0.1, 1.0, 0.1])
    sol = solve_dae(body, (0, 200), y0, rtol=1e-6, atol=1e-9, invariants=momentum_and_energy)
    assert np.abs(sol.drift).max() < 1e-14
    start, end = (momentum_and_energy(0, y) for y in (y0, sol.y[:, -1]))
    np.testing.assert_allclose(end, start, rtol=1e-14)


def test_double_pendulum_keeps_its_energy():
    """Equal masses and lengths, in angles; chaotic, so only the invariant is compared."""
    def double(t, y, yp):
        a, b, u, w = y
        d = a - b
        return [yp[0] - u, yp[1] - w,
                2 * yp[2] + yp[3] * math.cos(d) + w * w * math.sin(d) + 2 * G * math.sin(a),
                yp[3] + yp[2] * math.cos(d) - u * u * math.sin(d) + G * math.sin(b)]

    def double_energy(t, y):
        a, b, u, w = y
        return (u * u + 0.5 * w * w + u * w * math.cos(a - b)
                - 2 * G * math.cos(a) - G * math.cos(b))

    kept, free = (
        solve_dae(double, (0, 50), [2.0, 2.5, 0.0, 0.0], rtol=1e-6, atol=1e-8, **options)
        for options in ({"invariants": double_energy}, {})
    )
    reference = double_energy(0, [2.0, 2.5, 0.0, 0.0])
    assert np.abs(kept.drift).max() < 1e-12
    assert abs(double_energy(0, free.y[:, -1]) - reference) > 1e-4


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["constraints", "invariants"])
@pytest.mark.parametrize("value", [3.0, "rod", [rod, None], [3]])
def test_not_callable(name, value):
    with pytest.raises(TypeError, match=name):
        solve_dae(pendulum, (0, 1), START, **{name: value})


@pytest.mark.parametrize("values", [None, "a", [], [[0.0]], 1j])
def test_constraint_that_returns_nonsense(values):
    with pytest.raises((ValueError, TypeError), match=r"constraints\[0\]"):
        solve_dae(pendulum, (0, 1), START, constraints=lambda t, y: values)


@called_or_traced
def test_constraint_of_changing_length(trace):
    with pytest.raises(ValueError, match="constraint"):
        solve_dae(pendulum, (0, 1), START, trace=trace,
                  constraints=lambda t, y: rod(t, y) if t < 0.5 else rod(t, y)[:1])


def test_jacobian_of_wrong_shape():
    with pytest.raises(ValueError, match=r"\(2, 5\)"):
        solve_dae(pendulum, (0, 1), START,
                  constraints=with_jacobian(rod, lambda t, y: np.zeros((2, 4))))


def test_c_constraints_need_a_size(library):
    with pytest.raises(ValueError, match="size"):
        Constraint(library.function("rod", 2))
    with pytest.raises(ValueError, match="signature"):
        solve_dae(pendulum, (0, 1), START, constraints=Constraint(library.function("index1", 3),
                                                                  size=2))
    with pytest.raises(TypeError, match="C function"):
        Constraint(library.function("rod", 2), size=2, jac=lambda t, y: None)


def test_c_constraints_of_another_kind_are_refused(library):
    """A status that nobody reads, and a Jacobian that does not take its function's user data."""
    counted = library.function("counted", 2)
    counted.restype = ctypes.c_int
    with pytest.raises(ValueError, match=r"constraints\[0\] returns an int"):
        solve_dae(pendulum, (0, 1), START, constraints=Constraint(counted, size=1))
    pair = Constraint(library.function("scaled", 2, ctypes.c_void_p), size=1,
                      jac=library.function("scaled_jac", 2))
    with pytest.raises(ValueError, match=r"constraints\[0\]\.jac must take the same user data"):
        solve_dae(pendulum, (0, 1), START, constraints=pair)


def test_constraints_belong_to_the_problem():
    with pytest.raises(ValueError, match="constraints"):
        solve_dae(Problem(pendulum), (0, 1), START, constraints=rod)
