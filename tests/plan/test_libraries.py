"""Linear solvers by name and of the user's own."""

import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from tether import Bdf, Options, Problem, Status, gallery, solve_dae
from tether.plan import libraries
from tether.plan.libraries import find_klu

HAS_KLU = find_klu() is not None
SHORT = ("robertson", "pend-i1", "pend-i2", "pend-i3", "transamp", "battery")


def is_installed(name):
    if name == "klu":
        return HAS_KLU
    if name == "pardiso":
        try:
            libraries.Pardiso()
        except ValueError:
            return False
    return True


@pytest.fixture(params=["superlu", "klu", "pardiso"])
def by_name(request):
    if not is_installed(request.param):
        pytest.skip(f"{request.param} is not installed")
    return request.param


class Mine:
    """A solver that counts what it is asked for."""

    def __init__(self):
        self.factored = self.solved = 0

    def factor(self, matrix):
        assert isinstance(matrix, csc_array)
        self.factored += 1
        self.lu = splu(matrix)

    def solve(self, b):
        self.solved += 1
        return self.lu.solve(b)


class Renewing(Mine):
    """One that is told when only the values are others."""

    renewed = 0

    def factor(self, matrix):
        super().factor(matrix)
        self.pattern = matrix.indices.copy(), matrix.indptr.copy()

    def refactor(self, matrix):
        np.testing.assert_array_equal(matrix.indices, self.pattern[0])
        np.testing.assert_array_equal(matrix.indptr, self.pattern[1])
        self.renewed += 1
        self.lu = splu(matrix)


def circuit(t, y, yp):
    return [yp[0] + y[0] - y[1], y[1] ** 3 + y[1] - np.cos(t) - y[0]]


def run_to_the_end(run):
    while run.step() == Status.RUNNING:
        pass


def compare(name, solver):
    problem = gallery.get(name)
    dense, found = (
        problem.solve(rtol=1e-6, start="quiet", options={"linear_solver": choice})
        for choice in ("dense", solver)
    )
    assert dense.success == found.success
    assert "factored by" in found.how
    if problem.has_reference:
        assert problem.digits(found.y[:, -1]) > min(problem.digits(dense.y[:, -1]) - 0.7, 5.0)
    else:
        size = np.abs(dense.y).max(axis=1) + 1e-3
        np.testing.assert_allclose(found.y[:, -1] / size, dense.y[:, -1] / size, atol=1e-3)


@pytest.mark.parametrize("name", SHORT)
def test_libraries_give_the_digits_of_full_matrices(name, by_name):
    compare(name, by_name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in gallery.names() if name not in SHORT])
def test_libraries_give_the_digits_of_full_matrices_on_the_whole_gallery(name, by_name):
    compare(name, by_name)


@pytest.mark.parametrize("name", ["robertson", "pend-i3", "transamp"])
@pytest.mark.parametrize("make", [Mine, Renewing])
def test_an_object_gives_the_digits_of_full_matrices(name, make):
    compare(name, make())


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_an_object_factors_and_solves(trace):
    mine = Renewing()
    sol = solve_dae(
        circuit, (0, 5), [1.0, 0.7], trace=trace, start="quiet", options={"linear_solver": mine}
    )
    full = solve_dae(circuit, (0, 5), [1.0, 0.7], trace=trace, start="quiet")
    assert sol.success
    assert sol.how.endswith("sparse matrices of 4 entries, factored by Renewing")
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], rtol=1e-4)
    assert mine.factored + mine.renewed >= sol.stats.nlu
    assert mine.renewed > mine.factored
    assert mine.solved >= sol.stats.iterations


def test_the_pattern_is_the_users_word():
    seen = []

    class Looks(Mine):
        def factor(self, matrix):
            seen.append(matrix.nnz)
            super().factor(matrix)

    n = 30
    sol = solve_dae(
        lambda t, y, yp: yp + y - 0.1 * np.roll(y, 1), (0, 1), np.ones(n), trace="never",
        jac_sparsity=np.eye(n) + np.roll(np.eye(n), 1, axis=0), options={"linear_solver": Looks()},
    )
    assert sol.success
    assert set(seen) == {2 * n}


def test_an_object_may_do_as_it_likes_with_what_it_gets():
    class Spoils(Mine):
        def factor(self, matrix):
            super().factor(matrix.copy())
            matrix.data[:] = 0.0
            matrix.eliminate_zeros()

        def solve(self, b):
            x = super().solve(b)
            b[:] = np.nan
            return x

    found = [
        solve_dae(circuit, (0, 5), [1.0, 0.7], start="quiet", options={"linear_solver": solver})
        for solver in (Mine(), Spoils())
    ]
    np.testing.assert_array_equal(found[0].y, found[1].y)


def test_two_runs_may_share_an_object():
    mine, alone = Mine(), Mine()
    runs = [
        Bdf(circuit, 0.0, [1.0, 0.7], options={"linear_solver": solver, "start": "quiet"},
            t_bound=3.0)
        for solver in (mine, alone)
    ]
    other = Bdf(
        lambda t, y, yp: [yp[0] + 50.0 * y[0] - y[1], y[1] - 2.0 * np.sin(t)], 0.0, [1.0, 0.0],
        options={"linear_solver": mine}, t_bound=3.0,
    )
    while runs[1].step() == Status.RUNNING:
        runs[0].step()
        other.step()
    runs[0].step()
    assert runs[0].status == Status.REACHED_END
    np.testing.assert_array_equal(runs[0].y, runs[1].y)


def test_threads_may_share_an_object():
    class Sleepy(Mine):
        def factor(self, matrix):
            super().factor(matrix)
            time.sleep(1e-4)           # somebody else may come in between

        def solve(self, b):
            time.sleep(1e-5)
            return super().solve(b)

    def run(solver, rate):
        return solve_dae(
            lambda t, y, yp: [yp[0] + rate * y[0] - y[1], y[1] ** 3 + y[1] - np.cos(t) - y[0]],
            (0, 1), [1.0, 0.7], start="quiet", trace="never", options={"linear_solver": solver},
        ).y

    rates, shared = [0.1, 3.0, 500.0], Sleepy()
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda rate: run(shared, rate), rates))
    for rate, y in zip(rates, found, strict=True):
        np.testing.assert_array_equal(y, run(Mine(), rate))


def test_nobody_keeps_an_object_alive():
    mine = Mine()
    watched = weakref.ref(mine)
    assert solve_dae(circuit, (0, 1), [1.0, 0.7], start="quiet",
                     options={"linear_solver": mine}).success
    del mine
    gc.collect()
    assert watched() is None


# --- singular matrices ---------------------------------------------------------------------


def twice_the_same(t, y, yp):
    return [yp[0] - y[1], y[0] + y[1] - 1.0, 2.0 * y[0] + 2.0 * y[1] - 2.0]


def becomes_singular(t, y, yp):
    return [yp[0] + 1.0, (1.0 - t) * y[1] - y[0], y[2] - y[1]]


@pytest.mark.parametrize("solver", ["sparse", "superlu", "klu", "pardiso", Mine, Renewing])
@pytest.mark.parametrize("case", [
    (twice_the_same, [0.5, 0.5, 0.0]), (becomes_singular, [2.0, 2.0, 2.0]),
])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_singular_matrices_get_the_diagnosis_of_full_ones(solver, case, trace):
    if isinstance(solver, str) and not is_installed(solver):
        pytest.skip(f"{solver} is not installed")
    fun, y0 = case
    dense, found = (
        solve_dae(fun, (0, 2), y0, trace=trace, start="quiet", options={"linear_solver": choice})
        for choice in ("dense", solver if isinstance(solver, str) else solver())
    )
    assert not found.success
    assert found.diagnosis.cause == dense.diagnosis.cause
    assert found.diagnosis.where.equations == dense.diagnosis.where.equations
    assert found.diagnosis.where.variables == dense.diagnosis.where.variables
    np.testing.assert_allclose(found.t[-1:], dense.t[-1:], rtol=1e-3)


def test_a_singular_matrix_is_tried_again_with_a_smaller_step():
    class Moody(Mine):
        def factor(self, matrix):
            super().factor(matrix)
            if self.factored == 5:
                raise np.linalg.LinAlgError("singular today")

    moody = Moody()
    sol = solve_dae(circuit, (0, 5), [1.0, 0.7], start="quiet", options={"linear_solver": moody})
    assert sol.success
    assert moody.factored > 5


def test_pivots_that_will_not_do_any_more_are_chosen_anew():
    class Gives(Renewing):
        def refactor(self, matrix):
            self.renewed += 1
            raise np.linalg.LinAlgError("pivots")

    gives = Gives()
    sol = solve_dae(circuit, (0, 5), [1.0, 0.7], start="quiet", options={"linear_solver": gives})
    plain = solve_dae(circuit, (0, 5), [1.0, 0.7], start="quiet", options={"linear_solver": Mine()})
    assert gives.renewed
    np.testing.assert_array_equal(sol.y, plain.y)


# --- objects that are wrong ------------------------------------------------------------------


@pytest.mark.parametrize(("given", "what"), [
    (object(), "factor"),
    (type("OnlyFactors", (), {"factor": lambda self, a: None})(), "no method solve"),
    (type("NotCallable", (), {"factor": 1, "solve": lambda self, b: b})(), "no method factor"),
    (Mine, "not an instance of it"),
    (3, "factor"),
    (None, "factor"),
    (np.eye(2), "factor"),
    (type("BadRefactor", (Mine,), {"refactor": 7})(), "refactor"),
])
@pytest.mark.parametrize("door", ["solve_dae", "Bdf", "Options"])
def test_an_object_without_the_methods_is_refused_at_once(given, what, door):
    def fun(t, y, yp):
        raise AssertionError("called")

    enter = {
        "Options": lambda: Options(linear_solver=given),
        "Bdf": lambda: Bdf(fun, 0.0, [1.0], options={"linear_solver": given}),
        "solve_dae": lambda: solve_dae(fun, (0, 1), [1.0], options={"linear_solver": given}),
    }
    with pytest.raises(TypeError, match=f"linear_solver .*{what}"):
        enter[door]()


class TroubleError(Exception):
    """Not one that means anything to tether."""


class Fails(Mine):
    """A solver that begins to do something wrong when it has solved so many times."""

    def __init__(self, wrong, after=60):
        super().__init__()
        self.wrong, self.after = wrong, after

    def solve(self, b):
        x = super().solve(b)
        return self.wrong(x) if self.solved > self.after else x


def raises(error):
    def wrong(x):
        raise error
    return wrong


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("error", [
    TroubleError("out of coffee"), ValueError("mine"), RuntimeError("lost the network"),
    ZeroDivisionError(), MemoryError("no"), KeyboardInterrupt(), SystemExit(3),
])
@pytest.mark.parametrize("method", ["factor", "solve"])
def test_an_exception_passes_unchanged_and_nothing_is_lost(error, method, trace):
    solver = Fails(raises(error))
    if method == "factor":
        class Breaks(Mine):
            def factor(self, matrix):
                super().factor(matrix)
                if self.factored > 12:
                    raise error
        solver = Breaks()
    with pytest.raises(type(error)) as caught:
        solve_dae(circuit, (0, 5), [1.0, 0.7], trace=trace, start="quiet",
                  options={"linear_solver": solver})
    assert caught.value is error
    if isinstance(error, SystemExit):
        return
    sol = error.result
    assert sol.status == Status.INTERRUPTED
    assert len(sol.t) > 3
    full = solve_dae(circuit, (0, 5), [1.0, 0.7], trace=trace, start="quiet", dense_output=True)
    np.testing.assert_allclose(sol.y[:, -1], full.sol(sol.t[-1])[0], rtol=1e-4)


@pytest.mark.parametrize("after", [0, 60])
@pytest.mark.parametrize(("wrong", "what"), [
    (lambda x: x * np.nan, "not finite"),
    (lambda x: x / 0.0, "not finite"),
    (lambda x: x[:-1], "2 real numbers.*shape"),
    (lambda x: x[:, None], "2 real numbers.*shape"),
    (lambda x: x + 0j, "2 real numbers.*complex"),
    (lambda x: None, "2 real numbers.*None"),
    (lambda x: "text", "2 real numbers"),
])
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_wrong_solution_is_refused_by_the_name_of_the_solver(wrong, what, after):
    solver = Fails(wrong, after)
    with pytest.raises(ValueError, match=f"linear_solver Fails: .*{what}") as caught:
        solve_dae(circuit, (0, 5), [1.0, 0.7], start="quiet", options={"linear_solver": solver})
    if after:
        assert len(caught.value.result.t) > 3
    run = Bdf(circuit, 0.0, [1.0, 0.7], t_bound=5.0,
              options={"linear_solver": Fails(wrong, 60), "start": "quiet"})
    with pytest.raises(ValueError, match="linear_solver Fails"):
        run_to_the_end(run)
    assert run.t > 0.0
    assert np.isfinite(run.y).all()


def test_values_that_are_not_finite_for_a_singular_matrix_are_no_fault():
    class Floods(Mine):
        def factor(self, matrix):
            self.full = matrix.toarray()

        def solve(self, b):
            with np.errstate(all="ignore"):
                try:
                    return np.linalg.solve(self.full, b)
                except np.linalg.LinAlgError:
                    return b / 0.0

    found = [
        solve_dae(becomes_singular, (0, 2), [2.0, 2.0, 2.0], options={"linear_solver": solver})
        for solver in ("dense", Floods())
    ]
    assert found[0].diagnosis.cause == found[1].diagnosis.cause


def test_a_solver_never_sees_what_is_not_finite():
    class Strict(Mine):
        def factor(self, matrix):
            assert np.isfinite(matrix.data).all()
            super().factor(matrix)

        def solve(self, b):
            assert np.isfinite(b).all()
            return super().solve(b)

    def roots(t, y, yp):
        return [yp[0] + 1.0, y[1] - np.sqrt(y[0])]

    with np.errstate(all="ignore"):
        found = [
            solve_dae(roots, (0, 2), [1.0, 1.0], trace="never", options={"linear_solver": solver})
            for solver in ("dense", Strict())
        ]
    assert found[0].status == found[1].status


def test_libraries_that_are_missing_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr(libraries, "find_klu", lambda: None)
    with pytest.raises(ValueError, match=r"linear_solver='klu' needs KLU.*pip install"):
        solve_dae(circuit, (0, 1), [1.0, 0.7], options={"linear_solver": "klu"})
    if not is_installed("pardiso"):
        with pytest.raises(ValueError, match="linear_solver='pardiso' needs pypardiso"):
            solve_dae(circuit, (0, 1), [1.0, 0.7], options={"linear_solver": "pardiso"})


def test_a_library_of_another_kind_is_passed_over(monkeypatch, tmp_path):
    (tmp_path / "some.libs").mkdir()
    (tmp_path / "some.libs" / "libklu-1.so").write_bytes(b"no library")
    monkeypatch.setattr(libraries.sys, "path", [str(tmp_path)])
    monkeypatch.setattr(libraries, "KLU_NAMES", ("libm.so.6",))
    monkeypatch.setattr(libraries.sys, "prefix", str(tmp_path))
    assert find_klu.__wrapped__() is None


@pytest.mark.parametrize("solver", ["sparse", "superlu", "klu", "pardiso", Mine])
def test_the_condition_number_is_that_of_full_matrices(solver):
    if isinstance(solver, str) and not is_installed(solver):
        pytest.skip(f"{solver} is not installed")
    found = []
    for choice in ("dense", solver if isinstance(solver, str) else solver()):
        run = Bdf(Problem(circuit), 0.0, [1.0, 0.7], t_bound=1.0,
                  options={"linear_solver": choice, "start": "quiet"})
        run.step()
        found.append(run.condition())
    assert found[1] == pytest.approx(found[0], rel=1e-3)


@pytest.mark.parametrize("solver", ["superlu", "klu", "pardiso", Renewing])
def test_a_start_that_mixes_columns_goes_through_the_same_solver(solver):
    # every pair of nodes shares a capacitor: y' occurs in differences only
    if isinstance(solver, str) and not is_installed(solver):
        pytest.skip(f"{solver} is not installed")
    n, leak = 100, 1e-3

    def equations(t, v, dv):
        out = []
        for k in range(0, n, 2):
            current = 1e-3 * (dv[k] - dv[k + 1])
            out += [current + (v[k] - np.sin(t + 0.01 * k)) * leak, -current + v[k + 1] * leak]
        return out

    full, found = (
        solve_dae(equations, (0, 2), np.zeros(n), start="quiet", rtol=1e-7,
                  options={"linear_solver": choice})
        for choice in ("dense", solver if isinstance(solver, str) else solver())
    )
    assert found.success
    np.testing.assert_allclose(found.start.y, full.start.y, atol=1e-9)
    np.testing.assert_allclose(found.y[:, -1], full.y[:, -1], atol=1e-6)
