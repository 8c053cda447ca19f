"""Hidden constraints, reduced systems, and what their solutions are."""

import math

import numpy as np
import pytest
from support.reduced import G, analysis_of, dense, jacobians_at, pendulum, reduced_of, solve

from tether import gallery
from tether.gallery import raw_mechanisms as raw
from tether.structure.analysis import analyze_trace
from tether.structure.pencil import local_pencil
from tether.structure.reduced_start import reduced_start
from tether.trace import evaluate, formula, trace

# --- equations --------------------------------------------------------------------------------


def test_a_pendulum_keeps_its_five_unknowns():
    reduced = reduced_of(pendulum, 5)
    assert reduced.unknowns == tuple((j, 0) for j in range(5))
    written = [formula(reduced.graph, node, "xzuwl") for node in reduced.equations]
    assert written[:4] == ["x' - u", "z' - w", "u' + x*l", "w' + z*l + 9.81"]
    assert "'" not in written[4]


def test_constraints_of_a_pendulum_as_derived_by_hand():
    reduced = reduced_of(pendulum, 5)
    rng = np.random.default_rng(0)
    for _ in range(5):
        y = rng.normal(size=5)
        x, z, u, w, lam = y
        values = evaluate(reduced.programs.constraints, 0.3, y, y)
        assert values == pytest.approx([x * x + z * z - 1, 2 * (x * u + z * w)], abs=1e-14)
        top = evaluate(reduced.programs.residual, 0.3, y, y)[4]
        assert top == pytest.approx(
            2 * (u * u + w * w - lam * (x * x + z * z) - G * z), abs=1e-13
        )


@pytest.mark.parametrize(
    ("name", "rows", "factors"),
    [("andrews", range(21, 27), [1.0] * 6), ("caraxis", (8, 9), [1.0, 2.0])],
)
def test_constraints_of_the_gallery_as_differentiated_there(name, rows, factors):
    given, velocity, acceleration = (gallery.get(f"{name}-i{index}").fun for index in (3, 2, 1))
    n = gallery.get(f"{name}-i3").n
    reduced = reduced_of(given, n)
    rng = np.random.default_rng(2)
    for t in (0.0, 0.17):
        y, yp = rng.normal(size=(2, n))
        values = dict(zip(
            [(level.equation, level.order) for level in reduced.levels],
            evaluate(reduced.programs.constraints, t, y, y), strict=True,
        ))
        tops = evaluate(reduced.programs.residual, t, y, yp)
        for row, factor in zip(rows, factors, strict=True):
            assert values[row, 0] == pytest.approx(given(t, y, yp)[row], abs=1e-12)
            assert values[row, 1] == pytest.approx(factor * velocity(t, y, yp)[row], abs=1e-12)
            assert tops[row] == pytest.approx(factor * acceleration(t, y, yp)[row], rel=1e-10)


@pytest.mark.parametrize("t", [0.0, 0.4, 1.3])
def test_constraints_hold_along_the_exact_solution(t):
    problem = gallery.get("pend-i3")
    reduced = reduced_of(problem.fun, 5)
    y = problem.exact(t)
    assert np.abs(evaluate(reduced.programs.constraints, t, y, y)).max() < 1e-12
    assert abs(evaluate(reduced.programs.residual, t, y, y)[4]) < 1e-10


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda x, u: x - u, lambda w, rest: w + rest),
        (lambda x, u: u - x, lambda w, rest: -(w + rest)),
        (lambda x, u: 3 * x - 3 * u, lambda w, rest: 0.5 * w + rest / 2),
        (lambda x, u: -(2 * u - 2 * x), lambda w, rest: rest - (-w)),
    ],
)
def test_slopes_are_eliminated_however_they_are_written(first, second):
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [first(yp[0], u), first(yp[1], w), second(yp[2], lam * x),
                second(yp[3], lam * z + G), x * x + z * z - 1]

    reduced = reduced_of(fun, 5)
    assert reduced.n == 5
    y = np.array([0.3, -0.4, 1.2, 0.7, 2.0])
    plain = reduced_of(pendulum, 5)
    for program in ("constraints", "residual"):
        ours, theirs = (
            evaluate(getattr(part.programs, program), 0.0, y, np.zeros(5))[-1]
            for part in (reduced, plain)
        )
        assert ours == pytest.approx(theirs, abs=1e-14)


def test_an_implicit_slope_becomes_a_further_unknown():
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] + 0.1 * yp[0] ** 3 - u, yp[1] - w, yp[2] + lam * x, yp[3] + lam * z + G,
                x * x + z * z - 1]

    reduced = reduced_of(fun, 5)
    assert reduced.unknowns[5:] == ((0, 1),)
    assert reduced.names(["x", "z", "u", "w", "lam"])[5] == "x'"
    sol, _ = solve(fun, [0.6, -0.8, 0.3, 0.0, 0.0], 1.0, rtol=1e-8, atol=1e-10)
    assert sol.success
    assert np.abs(sol.drift).max() < 1e-12
    assert np.abs(fun(1.0, sol.y[:5, -1], sol.yp[:5, -1])).max() < 1e-6


def test_a_mass_matrix_that_changes_stays_implicit():
    def fun(t, y, yp):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, (1 + x * x) * yp[2] + 0.2 * z * yp[3] + lam * x,
                0.2 * z * yp[2] + yp[3] + lam * z + G, x * x + z * z - 1]

    reduced = reduced_of(fun, 5)
    assert reduced.n == 5
    assert len(reduced.constraints) == 2
    sol, _ = solve(fun, [1.0, 0.0, 0.0, 0.0, 0.0], 1.0, rtol=1e-8, atol=1e-10)
    x, z, u, w, _ = sol.y[:, -1]
    energy = (u * u * (1 + x * x) + 2 * 0.2 * z * u * w + w * w) / 2 + G * z
    assert sol.success
    assert np.isfinite(energy)
    assert np.abs(sol.drift).max() < 1e-12


@pytest.mark.parametrize(
    "name", ["robertson", "akzo", "vdpol", "pend-i1", "andrews-i1", "transamp", "heat1d"]
)
def test_index_0_and_1_stay_as_they_are(name):
    problem = gallery.get(name)
    traced = trace(problem.fun, problem.n)
    found = analyze_trace(traced, 0.0, problem.y0, problem.yp0)
    assert found.reduced.as_given
    assert found.reduced.equations == tuple(traced.outputs)
    assert found.reduced.constraints == ()
    assert found.start is None


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize(
    "problem",
    [raw.double_pendulum(), raw.slider_crank(), raw.closed_chain(5), raw.prescribed(3),
     raw.prescribed(5)],
    ids=lambda problem: problem.name,
)
def test_the_reduced_system_has_the_index_it_says(problem, form):
    found = analysis_of(problem.fun, problem.rough, form=form)
    start = reduced_start(found.reduced, 0.0, problem.rough)
    A, E = jacobians_at(found.reduced, 0.0, start.y, start.yp)
    assert local_pencil(E, A).index == form
    assert len(found.reduced.constraints) == problem.constraints


def test_reduced_jacobians_are_derivatives():
    problem = raw.slider_crank()
    reduced = reduced_of(problem.fun, problem.n)
    rng = np.random.default_rng(1)
    y, yp, dy, dyp = rng.normal(size=(4, reduced.n))
    A, E = jacobians_at(reduced, 0.0, y, yp)
    h = 1e-6
    ahead, behind = (
        evaluate(reduced.programs.residual, 0.0, y + s * dy, yp + s * dyp) for s in (h, -h)
    )
    assert (ahead - behind) / (2 * h) == pytest.approx(A @ dy + E @ dyp, rel=1e-6, abs=1e-6)


def test_constraint_jacobian_and_rate_are_derivatives():
    def fun(t, y, yp):
        x, v, f = y
        return [yp[0] - v, yp[1] - f, x * x - math.sin(t) * (2 + x)]

    reduced = reduced_of(fun, 3)
    programs = reduced.programs
    rng = np.random.default_rng(1)
    y, dy = rng.normal(size=(2, 3))
    values = evaluate(programs.constraint_jacobian, 0.4, y, y)
    G_y, G_t = dense(programs.g_y, values), values[len(programs.g_y.nodes) :]
    h = 1e-6
    ahead, behind = (
        evaluate(programs.constraints, 0.4 + s, y + s * dy, y) for s in (h, -h)
    )
    assert (ahead - behind) / (2 * h) == pytest.approx(G_y @ dy + G_t, rel=1e-6, abs=1e-6)


def test_arguments_stay_inputs():
    def fun(t, y, yp, mass, length):
        x, z, u, w, lam = y
        return [yp[0] - u, yp[1] - w, mass * yp[2] + lam * x, mass * (yp[3] + G) + lam * z,
                x * x + z * z - length**2]

    traced = trace(fun, 5, (2.0, 1.1))
    found = analyze_trace(traced, 0.0, np.array([1.1, 0, 0, 0, 0]), args=(2.0, 1.1))
    programs = found.reduced.programs
    y = np.array([0.5, 0.2, 1.0, -1.0, 3.0])
    assert evaluate(programs.constraints, 0.0, y, y, [2.0, 1.5])[0] == pytest.approx(0.29 - 2.25)
    top = [evaluate(programs.residual, 0.0, y, y, [m, 1.1])[4] for m in (1.0, 2.0)]
    assert top[0] - top[1] == pytest.approx(-2 * 3.0 * 0.29 / 2)


# --- solutions --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [1, 2])
def test_the_pendulum_follows_its_exact_solution(form):
    problem = gallery.get("pend-i3")
    sol, found = solve(problem.fun, problem.y0, 10.0, form=form, rtol=1e-9, atol=1e-11)
    assert found.index == 3
    assert sol.success
    assert sol.y[:5, -1] == pytest.approx(problem.exact(10.0), abs=1e-5)
    assert np.abs(sol.drift).max() < 1e-12


@pytest.mark.parametrize("index", [3, 4, 5])
def test_prescribed_motion_is_differentiated_exactly(index):
    problem = raw.prescribed(index)
    sol, _ = solve(problem.fun, problem.rough, 1.0, rtol=1e-8, atol=1e-10)
    exact = [math.sin(1.0 + k * math.pi / 2) for k in range(index)]
    assert sol.y[:, -1] == pytest.approx(exact, abs=1e-10)    # what is left of the iterations


def test_car_axis_of_index_3():
    problem = gallery.get("caraxis-i3")
    sol, _ = solve(problem.fun, problem.y0, 3.0, rtol=1e-6, atol=1e-8)
    assert problem.digits(sol.y[:, -1]) > 3
    assert np.abs(sol.drift).max() < 1e-12
