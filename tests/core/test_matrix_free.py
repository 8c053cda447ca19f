"""Systems without matrices: products by differences of the residual, any units, honest failures."""

import numpy as np
import pytest
from scipy.sparse import csc_array, diags_array, eye_array, kron
from scipy.sparse.linalg import splu

from tether import solve_dae
from tether.plan import memory


def laplacian(k):
    line = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(k, k))
    return csc_array(kron(eye_array(k), line) + kron(line, eye_array(k)))


def plate(k):
    """Heat on a square that reacts with itself."""
    around = laplacian(k) * (k + 1.0) ** 2
    y0 = np.random.default_rng(5).uniform(1, 2, k * k)
    return (lambda t, y, yp: yp - around @ y + y**3), y0


class Setup:
    """A preconditioner of the user's that gets no matrix: that of the linear part."""

    def __init__(self, k, wrong=None):
        self.around, self.wrong = laplacian(k) * (k + 1.0) ** 2, wrong
        self.seen = []
        self.solved = 0

    def setup(self, t, y, yp, c):
        self.seen.append((t, c))
        if self.wrong == "setup raises" and len(self.seen) == 20:
            raise OSError("no license")
        self.lu = splu(csc_array(c * eye_array(len(y)) - self.around))

    def solve(self, b):
        self.solved += 1
        if self.wrong == "shape" and self.solved > 200:
            return b[:-1]
        return self.lu.solve(b)


class Nothing:
    """A preconditioner that is none."""

    def setup(self, t, y, yp, c):
        pass

    def solve(self, b):
        return b


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_no_matrix_is_made_for_a_preconditioner_that_wants_none(trace):
    equations, y0 = plate(15)
    mine = Setup(15)
    sol = solve_dae(equations, (0, 0.2), y0, trace=trace,
                    options={"linear_solver": "krylov", "preconditioner": mine})
    full = solve_dae(equations, (0, 0.2), y0)
    assert sol.success
    assert "no matrices" in sol.how
    assert "GMRES with Setup" in sol.how
    assert sol.stats.steps <= 1.15 * full.stats.steps
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=5e-6)
    assert len(mine.seen) <= sol.nlu + 15
    assert mine.seen[-1][0] > 0.0


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_digits_are_those_of_full_matrices(rtol, monkeypatch):
    monkeypatch.setattr(memory, "PATTERN_UP_TO", 10)
    equations, y0 = plate(8)
    sol = solve_dae(equations, (0, 0.2), y0, rtol=rtol, atol=rtol, trace="never",
                    options={"linear_solver": "krylov"})
    exact = solve_dae(equations, (0, 0.2), y0, rtol=1e-12, atol=1e-13)
    full = solve_dae(equations, (0, 0.2), y0, rtol=rtol, atol=rtol, trace="never")
    assert sol.success
    assert "no matrices" in sol.how
    error = np.abs(sol.y[:, -1] - exact.y[:, -1]).max()
    assert error <= 3 * np.abs(full.y[:, -1] - exact.y[:, -1]).max() + 10 * rtol
    assert sol.stats.steps <= 1.2 * full.stats.steps


def test_units_make_no_difference(monkeypatch):
    monkeypatch.setattr(memory, "PATTERN_UP_TO", 10)
    equations, y0 = plate(10)
    unit = 10.0 ** np.random.default_rng(3).uniform(-8, 8, len(y0))
    rows = 10.0 ** np.random.default_rng(4).uniform(-8, 8, len(y0))

    def in_other_units(t, y, yp):
        return rows * equations(t, y / unit, yp / unit)

    options = {"linear_solver": "krylov"}
    plain = solve_dae(equations, (0, 0.1), y0, atol=1e-8, trace="never", options=options)
    other = solve_dae(in_other_units, (0, 0.1), y0 * unit, atol=1e-8 * unit, trace="never",
                      options=options)
    assert plain.success
    assert other.success
    assert abs(other.stats.steps - plain.stats.steps) <= 0.15 * plain.stats.steps
    np.testing.assert_allclose(other.y[:, -1] / unit, plain.y[:, -1], atol=2e-6)


def reaction(n):
    """Half of the unknowns evolve, half follow from them: z^3 + z = y."""

    def equations(t, x, xp):
        y, z = x[:n], x[n:]
        return np.concatenate([xp[:n] + z * np.linspace(1, 3, n), z**3 + z - y])

    return equations


@pytest.mark.parametrize("yp0", [None, "guess", "exact"])
def test_algebraic_unknowns_are_found_at_the_start(yp0, monkeypatch):
    monkeypatch.setattr(memory, "PATTERN_UP_TO", 10)
    n = 20
    equations = reaction(n)
    y = np.linspace(0.5, 4.0, n)
    z = np.array([np.roots([1, 0, 1, -v])[-1].real for v in y])
    slopes = -z * np.linspace(1, 3, n)
    exact = np.concatenate([slopes, slopes / (3 * z**2 + 1)])
    given = {"guess": 0.3 * exact, "exact": exact, None: None}[yp0]
    guess = z if yp0 == "exact" else np.ones(n)
    sol = solve_dae(
        equations, (0, 1), np.concatenate([y, guess]), given, start="quiet", trace="never",
        options={"linear_solver": "krylov"},
    )
    assert sol.success
    assert "no matrices" in sol.how
    np.testing.assert_allclose(sol.start.y[:n], y, atol=1e-7)
    np.testing.assert_allclose(sol.start.y[n:], z, rtol=1e-6)
    np.testing.assert_allclose(sol.start.yp, exact, rtol=1e-4)
    full = solve_dae(equations, (0, 1), np.concatenate([y, z]))
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=1e-5)


@pytest.mark.parametrize(("wrong", "error", "words"), [
    ("setup raises", OSError, "no license"),
    ("shape", ValueError, "preconditioner Setup: solve must return 100 real numbers"),
])
def test_what_a_preconditioner_raises_passes_through(wrong, error, words):
    equations, y0 = plate(10)
    options = {"linear_solver": "krylov", "preconditioner": Setup(10, wrong)}
    with pytest.raises(error, match=words) as caught:
        solve_dae(equations, (0, 0.5), y0, options=options)
    assert caught.value.result.t[-1] > 0.0


def test_what_the_residual_raises_in_a_product_passes_through():
    equations, y0 = plate(10)
    calls = [0]

    def moody(t, y, yp):
        calls[0] += 1
        if calls[0] > 150:
            raise OSError("no license")
        return equations(t, y, yp)

    with pytest.raises(OSError, match="no license"):
        solve_dae(moody, (0, 0.5), y0, options={
            "linear_solver": "krylov", "preconditioner": Setup(10)})


def test_a_residual_that_ends_is_looked_at_on_the_other_side():
    # the square root ends at zero, and products move across it
    def equations(t, y, yp):
        with np.errstate(invalid="ignore"):
            return yp + np.sqrt(y) * np.linspace(1.0, 2.0, len(y))

    sol = solve_dae(equations, (0, 0.9), np.full(30, 1.0), trace="never", options={
        "linear_solver": "krylov", "preconditioner": Nothing()})
    assert sol.success
    exact = (1.0 - 0.45 * np.linspace(1.0, 2.0, 30)) ** 2
    np.testing.assert_allclose(sol.y[:, -1], exact, atol=1e-5)


def test_systems_that_iterations_do_not_solve_are_reported():
    draw = np.random.default_rng(8)
    tangle = draw.standard_normal((300, 300))

    def equations(t, y, yp):
        return np.concatenate([yp[:1] + y[:1], tangle @ y[1:] - y[0]])

    sol = solve_dae(equations, (0, 1), np.ones(301), start="quiet", trace="never", options={
        "linear_solver": "krylov", "preconditioner": Nothing()})
    assert not sol.success


@pytest.mark.parametrize(("more", "error", "words"), [
    ({"preconditioner": type("Half", (), {"setup": lambda *_: None})()}, TypeError, "no method"),
    ({"preconditioner": Nothing(), "trace": "always"}, ValueError, "trace='always'"),
    ({"preconditioner": Nothing(), "scaling": "rows"}, ValueError, "scaling='rows' needs"),
])
def test_what_does_not_fit_is_refused(more, error, words):
    with pytest.raises(error, match=words):
        solve_dae(lambda t, y, yp: yp + y, (0, 1), [1.0],
                  options={"linear_solver": "krylov", **more})


def test_a_large_function_without_a_pattern_takes_little_memory(monkeypatch):
    import tracemalloc

    k = 80
    monkeypatch.setattr(memory, "PATTERN_UP_TO", 5000)

    def heat(t, y, yp):
        u = np.pad(y.reshape(k, k), 1)
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return yp - ((around - 4 * u[1:-1, 1:-1]) * (k + 1) ** 2).reshape(-1)

    mode = np.sin(np.pi * np.arange(1, k + 1) / (k + 1))
    y0 = np.outer(mode, mode).reshape(-1)
    tracemalloc.start()
    sol = solve_dae(heat, (0, 0.05), y0, t_eval=[0.05], rtol=1e-4, atol=1e-7, trace="never",
                    options={"linear_solver": "krylov"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sol.success
    assert "no matrices" in sol.how
    rate = 2 * (2 * (k + 1) * np.sin(np.pi / (k + 1) / 2)) ** 2
    np.testing.assert_allclose(sol.y[:, -1], y0 * np.exp(-0.05 * rate), atol=3e-4)
    assert peak < 8 * 250 * k * k
    assert sol.nfev < 2500


def mean_field(t, y, yp):
    """Every unknown stands in every equation; half of the equations are algebraic."""
    half = len(y) // 2
    return np.concatenate([
        yp[:half] + y[:half] - y[half:] * np.mean(y[half:]),
        y[half:] - 1.0 - 0.1 * np.tanh(y[:half]) - 0.1 * np.mean(y[:half]),
    ])


def coupled(t, y, yp):
    return yp + np.linspace(1, 1e3, len(y)) * (y - np.cos(t)) + np.mean(y) + 0.1 * y**3


@pytest.mark.parametrize("fun", [mean_field, coupled])
def test_equations_that_all_unknowns_stand_in_take_no_matrix(fun, monkeypatch):
    n, options = 300, {"rtol": 1e-6, "atol": 1e-9, "t_eval": [1.0], "start": "quiet"}
    monkeypatch.setattr(memory, "FULL_UP_TO", 200)
    sol = solve_dae(fun, (0, 1), np.ones(n), trace="never",
                    options={"linear_solver": "krylov"}, **options)
    full = solve_dae(fun, (0, 1), np.ones(n), trace="never", **options)
    assert sol.success
    assert "no matrices" in sol.how
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=1e-6)


def test_so_do_those_of_ten_thousand():
    n = 10_000
    sol = solve_dae(mean_field, (0, 1), np.ones(n), trace="never", start="quiet", t_eval=[1.0],
                    options={"linear_solver": "krylov"})
    assert sol.success
    assert sol.nfev < 1000                      # a matrix by differences would take 10,000
    # all are equal: the same equations with two unknowns
    two = solve_dae(mean_field, (0, 1), np.ones(2), start="quiet", rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sol.y[[0, -1], -1], two.y[:, -1], atol=2e-3)


def test_up_to_a_thousand_equations_that_depend_on_each_other_are_named():
    def twice(t, y, yp):
        total = np.sum(y) - 1.0
        return np.append((yp + y + np.mean(y))[:-2], [total, 2.0 * total])

    sol = solve_dae(twice, (0, 1), np.full(300, 1 / 300), trace="never",
                    options={"linear_solver": "krylov"})
    assert not sol.success
    assert "equations 298, 299 depend on each other" in sol.message


@pytest.mark.parametrize("solver", ["sparse", "band", "superlu", "krylov"])
def test_matrices_that_are_asked_for_are_full_at_once(solver):
    """A pattern that grew column by column took ten times the time."""
    n, options = 300, {"rtol": 1e-6, "atol": 1e-9, "t_eval": [1.0], "start": "quiet"}
    sol = solve_dae(coupled, (0, 1), np.ones(n), trace="never",
                    options={"linear_solver": solver}, **options)
    full = solve_dae(coupled, (0, 1), np.ones(n), trace="never", **options)
    assert "sparse matrices of 90000 entries" in sol.how
    np.testing.assert_allclose(sol.y[:, -1], full.y[:, -1], atol=1e-7)


def test_there_has_to_be_memory_for_them(monkeypatch):
    monkeypatch.setattr("tether.base.capacity.ALWAYS_FITS", 0)
    monkeypatch.setattr("tether.base.capacity.free_memory", lambda: 1e6)
    with pytest.raises(MemoryError, match="300 unknowns need"):
        solve_dae(coupled, (0, 1), np.ones(300), trace="never",
                  options={"linear_solver": "sparse"})
