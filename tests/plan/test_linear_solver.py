"""How the matrices of an iteration are stored: by choice, by size, and with the same digits."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array, eye_array, kron

from tether import Problem, gallery, solve_dae
from tether._core.sparse import Sparse
from tether.plan.memory import SPARSE_FROM, new_matrix
from tether.plan.model import AsWritten
from tether.problem.options import Options


def heat(n):
    """Heat on a line with its ends at zero: equations, start and what is left at t = 0.05."""
    width = 1.0 / (n + 1)

    def equations(t, y, yp):
        u = np.concatenate([[0.0], y, [0.0]])
        return yp - (u[2:] - 2 * u[1:-1] + u[:-2]) / width**2

    mode = np.sin(np.pi * width * np.arange(1, n + 1))
    rate = (2 / width * np.sin(np.pi * width / 2)) ** 2
    return equations, mode, mode * np.exp(-0.05 * rate)


def diode_ladder(n):
    """Equations of a chain of resistors with a capacitor and a diode at every node."""

    def equations(t, v, dv):
        out = []
        for k in range(n):
            before = v[k - 1] if k else 5 * np.sin(2 * np.pi * t)
            after = (v[k] - v[k + 1]) / 1e3 if k < n - 1 else 0.0
            diode = 1e-12 * (np.exp(v[k] / 0.05) - 1)
            out.append(1e-6 * dv[k] + diode + after - (before - v[k]) / 1e3)
        return out

    return equations


LONG = ("ring-modulator", "wheelset", "trivial", "charge-pump", "adding-unit")
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in gallery.names()
]

# Digits that other roundings may cost: those of a pulse at a diode differ by nearly one.
SCATTER = {"clamped-line": 1.0}


@pytest.mark.parametrize("name", NAMES)
def test_all_ways_to_factor_give_the_digits_of_full_matrices(name):
    problem = gallery.get(name)
    full, *others = (
        problem.solve(rtol=1e-5, start="quiet", options={"linear_solver": solver})
        for solver in ("dense", "sparse", "band", "krylov")
    )
    assert "sparse" not in full.how
    assert "in a band of" in others[1].how
    assert all("GMRES" in sol.how for sol in others[2:])
    for sol in others:
        assert sol.success == full.success
        assert "sparse matrices" in sol.how
        if problem.has_reference:
            wanted = problem.digits(full.y[:, -1])
            assert problem.digits(sol.y[:, -1]) > min(wanted - SCATTER.get(name, 0.5), 5.0)
        else:
            size = np.abs(full.y).max(axis=1) + 1e-3
            np.testing.assert_allclose(
                sol.y[:, -1] / size, full.y[:, -1] / size, rtol=0, atol=1e-3
            )


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_large_system_has_sparse_matrices(trace):
    equations, y0, exact = heat(400)
    sol = solve_dae(equations, (0, 0.05), y0, trace=trace)
    assert sol.success
    assert "sparse matrices of 1198 entries" in sol.how
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-6)
    full = solve_dae(equations, (0, 0.05), y0, trace=trace, options={"linear_solver": "dense"})
    assert "sparse" not in full.how
    assert abs(full.stats.steps - sol.stats.steps) <= 2
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=1e-7)


def test_full_matrices_stay_full():
    n = 2 * SPARSE_FROM
    coupling = np.random.default_rng(0).standard_normal((n, n)) / n

    def equations(t, y, yp):
        return yp + y + coupling @ y

    assert "sparse" not in solve_dae(equations, (0, 1), np.ones(n)).how


def test_nothing_of_the_size_of_a_full_matrix_is_made():
    import tracemalloc

    n = 20_000
    equations, y0, exact = heat(n)
    tracemalloc.start()
    sol = solve_dae(equations, (0, 0.05), y0, trace="never", lband=1, uband=1, rtol=1e-4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.success
    assert peak < 0.05 * 8 * n * n
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-4)


def test_a_netlist_of_a_thousand_nodes_needs_no_more_steps_than_a_small_one():
    small, large = (
        solve_dae(diode_ladder(n), (0, 0.3), np.zeros(n), rtol=1e-5) for n in (30, 1000)
    )
    assert small.success
    assert large.success
    assert "sparse matrices" in large.how
    assert large.stats.steps <= 1.2 * small.stats.steps
    np.testing.assert_allclose(large.y[:3, -1], small.y[:3, -1], atol=2e-3)


def test_capacitors_between_nodes_leave_directions_that_are_algebraic():
    # every pair of nodes shares a capacitor: y' occurs in differences only
    n, leak = 300, 1e-3

    def equations(t, v, dv):
        out = []
        for k in range(0, n, 2):
            current = 1e-3 * (dv[k] - dv[k + 1])
            drive = np.sin(t + 0.01 * k)
            out += [current + (v[k] - drive) * leak, -current + v[k + 1] * leak]
        return out

    found = [
        solve_dae(
            equations, (0, 2), np.zeros(n), start="quiet", rtol=1e-7,
            options={"linear_solver": solver},
        )
        for solver in ("dense", "sparse", "band")
    ]
    assert all(sol.success for sol in found)
    for sol in found[1:]:
        np.testing.assert_allclose(sol.y[:, -1], found[0].y[:, -1], atol=1e-6)
        np.testing.assert_allclose(sol.start.y, found[0].start.y, atol=1e-9)


@pytest.mark.parametrize("way", ["band", "pair", "one"])
def test_the_users_word_on_where_derivatives_stand_saves_calls(way):
    n = 500
    equations, y0, exact = heat(n)
    pattern = diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    given = {
        "band": {"lband": 1, "uband": 1},
        "pair": {"jac_sparsity": (pattern, eye_array(n))},
        "one": {"jac_sparsity": pattern.toarray() != 0},
    }[way]
    sol = solve_dae(equations, (0, 0.05), y0, trace="never", **given)
    assert sol.success
    assert not sol.warnings
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-6)
    assert sol.nfev < 100


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("n", [30, 300])
def test_a_band_that_is_too_narrow_is_named_and_the_result_is_right(n, trace):
    equations, y0, exact = heat(n)
    sol = solve_dae(equations, (0, 0.05), y0, trace=trace, lband=1, uband=0)
    assert sol.success
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-6)
    assert any("equation 0 depends on y[1]" in text for text in sol.warnings)


def test_entries_that_are_zero_at_the_start_are_found_later():
    n = 250

    def equations(t, y, yp):
        # nothing is coupled before t = 0.5
        return yp + y - max(t - 0.5, 0.0) * np.roll(y, 7)

    coupled = solve_dae(equations, (0, 1), np.linspace(0, 1, n), trace="never", rtol=1e-7)
    known = solve_dae(equations, (0, 1), np.linspace(0, 1, n), rtol=1e-7)
    assert coupled.success
    np.testing.assert_allclose(coupled.y[:, -1], known.y[:, -1], atol=1e-5)


def test_a_sparse_jacobian_and_a_sparse_mass_matrix_stay_sparse():
    n = 600
    equations, y0, exact = heat(n)
    stiffness = (n + 1) ** 2 * diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    given = solve_dae(
        equations, (0, 0.05), y0, trace="never", jac=lambda t, y, yp: (-stiffness, eye_array(n))
    )
    mass = solve_dae(
        Problem.mass_matrix(
            eye_array(n), lambda t, y: stiffness @ y, jac=lambda t, y: stiffness
        ),
        (0, 0.05), y0, trace="never",
    )
    traced = solve_dae(
        Problem.mass_matrix(csr_array(eye_array(n)), lambda t, y: stiffness @ y), (0, 0.05), y0
    )
    assert traced.how.startswith("traced")
    for sol in (given, mass, traced):
        assert sol.success
        assert "sparse matrices of 1798 entries" in sol.how
        np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-6)


def test_a_program_compiled_to_c_writes_into_a_sparse_matrix():
    equations, y0, exact = heat(60)
    options = {"backend": "c", "linear_solver": "sparse"}
    sol = solve_dae(equations, (0, 0.05), y0, options=options)
    assert sol.success
    assert "sparse" in sol.how
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=3e-6)


@pytest.mark.parametrize(("given", "error", "words"), [
    ({"jac_sparsity": np.ones((3, 3))}, ValueError, "jac_sparsity must be of shape"),
    ({"jac_sparsity": "band"}, TypeError, "jac_sparsity must be a matrix"),
    ({"lband": 1}, ValueError, "uband is missing"),
    ({"lband": -1, "uband": 1}, ValueError, "lband must be an integer"),
    ({"lband": 1, "uband": 1, "jac_sparsity": np.eye(2)}, ValueError, "not both"),
    ({"options": {"linear_solver": "umfpack"}}, ValueError, "linear_solver must be one of"),
])
def test_what_makes_no_sense_is_refused_by_name(given, error, words):
    with pytest.raises(error, match=words):
        solve_dae(lambda t, y, yp: yp + y, (0, 1), [1.0, 2.0], **given)


def test_a_singular_sparse_matrix_is_diagnosed_like_a_full_one():
    def equations(t, y, yp):
        return np.concatenate([yp[:-2] + y[:-2], [y[-2] + y[-1] - 1, 2 * y[-2] + 2 * y[-1] - 2]])

    found = [
        solve_dae(equations, (0, 1), np.ones(60), options={"linear_solver": solver})
        for solver in ("dense", "sparse", "band")
    ]
    assert not any(sol.success for sol in found)
    assert len({sol.message for sol in found}) == 1


def test_the_layout_follows_what_costs_less():
    model = AsWritten(Problem(lambda t, y, yp: yp + y, lband=1, uband=1), 10)
    assert not isinstance(new_matrix(model, "auto"), Sparse)
    assert isinstance(new_matrix(model, "sparse"), Sparse)
    assert Options(linear_solver="sparse").linear_solver == "sparse"


@pytest.mark.parametrize("wrong", ["index 2", "no values"])
def test_a_start_that_fails_among_very_many_unknowns_ends_soon_and_says_why(wrong):
    half = 800

    def equations(t, y, yp):
        x, z = y[:half], y[half:]
        rest = x - np.sin(t) if wrong == "index 2" else z**2 + 1.0
        return np.concatenate([yp[:half] - z, rest])

    sol = solve_dae(equations, (0, 1), np.ones(2 * half), trace="never")
    assert not sol.success
    why = "it is 2" if wrong == "index 2" else "not looked for with so many unknowns"
    assert why in sol.message
    assert "not finite" not in sol.message


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_a_large_semi_explicit_system_makes_no_full_matrix(trace):
    half = 3000
    problem = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z, n_differential=half)
    sol = solve_dae(problem, (0, 1), np.ones(2 * half), trace=trace, rtol=1e-5, t_eval=[1.0])
    assert sol.success
    assert "sparse matrices" in sol.how
    np.testing.assert_allclose(sol.y[:, -1], np.exp(-1), atol=1e-4)


def test_full_matrices_take_no_calls_to_see_a_pattern():
    calls = []

    def equations(t, y, yp):
        calls.append(t)
        return yp + y

    sol = solve_dae(
        equations, (0, 1), np.ones(300), trace="never", options={"linear_solver": "dense"}
    )
    assert sol.success
    assert len(calls) <= sol.nfev + 3          # and those that check the result


def test_what_other_runs_have_found_out_makes_no_difference():
    k = 40
    side = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    around = ((k + 1.0) ** 2 * (kron(eye_array(k), side) + kron(side, eye_array(k)))).tocsr()

    def plate(t, y, yp):
        return yp - around @ y

    def run(solver):
        sol = solve_dae(plate, (0, 0.05), np.linspace(0, 1, k * k), rtol=1e-4,
                        options={"linear_solver": solver})
        assert sol.success
        return sol

    alone = run("sparse")
    run("auto")
    again = run("sparse")
    assert np.array_equal(alone.y, again.y)
