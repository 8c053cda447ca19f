"""Integrals along a solution, which nobody but the result sees."""

import pickle

import numpy as np
import pytest
from scipy import sparse

import tether
from tether import Constraint, Problem, gradient, solve_dae, vjp

TIGHT = {"rtol": 1e-8, "atol": 1e-10}
EXACT = (1.0 - np.exp(-2.0)) / 2.0             # of exp(-2 t) up to 1


def decay(t, y, yp, k):
    return [yp[0] + k * y[0]]


def residual(t, y, yp):
    x, z = y
    return [yp[0] + z, x - z]


def pendulum(t, y, yp, m, g, length):
    x, z, u, w, lam = y
    return [yp[0] - u, yp[1] - w, m * yp[2] + lam * x, m * yp[3] + lam * z + m * g,
            x * x + z * z - length * length]


def square(t, y):
    return y[0] ** 2


def square_of_three(t, y, yp):
    return y[0] ** 2 + yp[0] - yp[0]


@pytest.mark.parametrize("trace", ["always", "never"])
def test_exact_integrals(trace):
    def several(t, y, yp, k):
        return [yp[0], t]

    sol = solve_dae(decay, (0, 2), [1.0], args=(2.0,), trace=trace, **TIGHT,
                    quadratures=[lambda t, y, k: k * y[0] ** 2, several])
    exact = [(1 - np.exp(-4 * sol.t)) / 2, np.exp(-2 * sol.t) - 1, sol.t ** 2 / 2]
    assert sol.quadratures.shape == (3, len(sol.t))
    assert np.all(sol.quadratures[:, 0] == 0.0)
    np.testing.assert_allclose(sol.quadratures, exact, atol=5e-8)


def test_errors_follow_the_tolerance():
    errors = []
    for rtol in (1e-4, 1e-6, 1e-8):
        sol = solve_dae(decay, (0, 1), [1.0], args=(1.0,), rtol=rtol, atol=rtol / 100,
                        quadratures=lambda t, y, k: np.cos(20 * t))
        errors.append(abs(sol.quadratures[0, -1] - np.sin(20.0) / 20))
    assert np.all(np.array(errors) < [1e-3, 1e-5, 1e-7])


def test_backwards_in_time_and_at_given_times():
    sol = solve_dae(decay, (1, 0), [np.exp(-1)], args=(1.0,), quadratures=square_of_args,
                    t_eval=[0.75, 0.5, 0.0], **TIGHT)
    exact = (np.exp(-2.0) - np.exp(-2 * sol.t)) / 2
    np.testing.assert_allclose(sol.quadratures[0], exact, atol=1e-7)


def square_of_args(t, y, k):
    return y[0] ** 2


def test_between_the_points():
    sol = solve_dae(decay, (0, 1), [1.0], args=(1.0,), quadratures=square_of_args,
                    dense_output=True, **TIGHT)
    t = np.linspace(0, 1, 7)
    np.testing.assert_allclose(sol.quadratures_at(t)[0], (1 - np.exp(-2 * t)) / 2, atol=1e-7)
    assert sol.quadratures_at(0.5).shape == (1,)
    assert sol.sol(0.5)[0].shape == (1,)
    with pytest.raises(ValueError, match="solve with dense_output=True"):
        solve_dae(decay, (0, 1), [1.0], args=(1.0,), quadratures=square_of_args).quadratures_at(0.5)
    with pytest.raises(ValueError, match="solve with quadratures="):
        solve_dae(decay, (0, 1), [1.0], args=(1.0,), dense_output=True).quadratures_at(0.5)


def test_there_are_none_unless_asked_for():
    assert solve_dae(decay, (0, 1), [1.0], args=(1.0,)).quadratures is None


# --- nobody sees them --------------------------------------------------------------------------


def fills(t, y, yp, out):
    out[0] = yp[0] + y[1]
    out[1] = y[0] - y[1]


MASS = np.diag([1.0, 0.0])
WAYS = {
    "plain": (residual, {}),
    "fills": (fills, {}),
    "mass matrix": (Problem.mass_matrix(MASS, lambda t, y: [-y[1], y[0] - y[1]]), {}),
    "its jac": (Problem.mass_matrix(
        MASS, lambda t, y: [-y[1], y[0] - y[1]], jac=lambda t, y: [[0, -1], [1, -1]]), {}),
    "sparse": (Problem.mass_matrix(
        sparse.csr_array(MASS), lambda t, y: [-y[1], y[0] - y[1]]), {}),
    "semi-explicit": (Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z), {}),
    "split": (Problem.split(
        lambda t, y, yp: [yp[0], 0.0], lambda t, y: [-y[1], y[0] - y[1]]), {}),
    "jac": (residual, {"jac": lambda t, y, yp: ([[0, 1], [1, -1]], MASS)}),
    "sparse jac": (residual, {"jac": lambda t, y, yp: (
        sparse.csr_array([[0.0, 1.0], [1.0, -1.0]]), sparse.csr_array(MASS))}),
    "sparsity": (residual, {"jac_sparsity": [[1, 1], [1, 1]]}),
    "bands": (residual, {"lband": 1, "uband": 1}),
    "tolerances": (residual, {"rtol": [1e-6, 1e-4], "atol": [1e-8, 1e-9]}),
    "names": (residual, {"names": ["a", "b"], "units": ["V", "A"], "equation_names": ["p", "q"]}),
    "units": (residual, {"units": {"x": "m"}}),
    "kinds": (residual, {"var_index": [0, 1]}),
    "slopes": (residual, {"yp0": [-1.0, -1.0], "start": "check"}),
    "constraint": (residual, {"constraints": Constraint(
        lambda t, y: y[0] - y[1], jac=lambda t, y: [1.0, -1.0])}),
    "invariant": (residual, {"invariants": lambda t, y: y[0] - y[1]}),
}


@pytest.mark.parametrize("trace", ["always", "never"])
@pytest.mark.parametrize("integrand", [square, square_of_three])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_the_user_passes(way, integrand, trace):
    fun, options = WAYS[way]
    seen = []
    sol = solve_dae(fun, (0, 1), [1.0, 1.0], quadratures=integrand, trace=trace, **options,
                    callback=lambda t, y, yp: seen.append((len(y), len(yp))))
    alone = solve_dae(fun, (0, 1), [1.0, 1.0], trace=trace, **options)
    assert sol.success
    assert sol.quadratures[0, -1] == pytest.approx(EXACT, abs=1e-6)
    assert set(seen) == {(2, 2)}
    assert sol.y.shape == sol.yp.shape == (2, len(sol.t))
    assert (sol.names, sol.units, sol.how) == (alone.names, alone.units, alone.how)
    assert (len(sol.start.y), len(sol.start.yp)) == (2, 2)
    assert str(sol.index) == str(alone.index)
    assert (sol.drift is None) == (alone.drift is None)
    assert not sol.warnings
    untested = solve_dae(fun, (0, 1), [1.0, 1.0], quadratures=integrand, trace=trace, **options,
                         options={"quadratures_tested": False})
    # to what Jacobians by differences leave, where the integrand makes those necessary
    np.testing.assert_allclose(untested.t, alone.t, rtol=1e-8)
    np.testing.assert_allclose(untested.y, alone.y, rtol=1e-8)
    assert untested.quadratures[0, -1] == pytest.approx(EXACT, abs=1e-4)


def test_the_user_s_jacobian_is_asked():
    calls = []

    def jac(t, y, yp):
        calls.append(len(y))
        return [[0, 1], [1, -1]], MASS

    solve_dae(residual, (0, 1), [1.0, 1.0], jac=jac, quadratures=square, trace="never")
    assert set(calls) == {2}


def test_left_out_of_the_error_test():
    def fast(t, y):
        return np.cos(300 * t)

    def steps(**options):
        return solve_dae(residual, (0, 1), [1.0, 1.0], **options).stats.steps

    alone = steps()
    assert steps(quadratures=fast) > 5 * alone
    assert steps(quadratures=fast, options={"quadratures_tested": False}) == alone
    sol = solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=square, rtol=[1e-8, 1e-8],
                    options={"quadratures_tested": False})
    assert sol.quadratures[0, -1] == pytest.approx(EXACT, abs=1e-6)


def test_results_are_saved_and_pickled(tmp_path):
    sol = solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=[square, square], dense_output=True)
    again = [pickle.loads(pickle.dumps(sol))]
    for ending in ("npz", "nc"):
        sol.save(tmp_path / f"run.{ending}")
        again.append(tether.load(tmp_path / f"run.{ending}"))
    for other in again:
        np.testing.assert_array_equal(other.quadratures, sol.quadratures)
        np.testing.assert_array_equal(other.quadratures_at(0.3), sol.quadratures_at(0.3))
    assert sol["quadratures"] is sol.quadratures


# --- events, switches, jumps, high index -------------------------------------------------------


def ball(t, y, yp, g, e):
    _, v = y
    return [yp[0] - v, yp[1] + g]


def hit(t, y, g, e):
    assert len(y) == 2
    return y[0]


hit.direction = -1
hit.apply = lambda t, y, g, e: [0.0, -e * y[1]]


@pytest.mark.parametrize("trace", ["always", "never"])
def test_through_events_that_change_the_state(trace):
    sol = solve_dae(ball, (0, 2), [1.0, 0.0], args=(9.81, 0.8), events=hit, trace=trace,
                    quadratures=lambda t, y, g, e: y[1], sensitivity="args", **TIGHT)
    assert [len(t) for t in sol.t_events] == [3]
    assert sol.y_events[0].shape == sol.yp_events[0].shape == (3, 2)
    assert set(sol.jumps[0].changes) == {1}
    np.testing.assert_allclose(sol.quadratures[0], sol.y[0] - 1.0, atol=1e-12)
    # the derivatives of the integral of the velocity are those of the height
    np.testing.assert_allclose(sol.sensitivities.quadratures[:, 0], sol.sens[:, 0], atol=1e-9)
    assert sol.sensitivities.y_events[0].shape == (3, 2, 2)


def test_through_switches_of_the_integrand():
    sol = solve_dae(
        lambda t, y, yp: [yp[0] - y[1], yp[1] + y[0]], (0, 10), [0.0, 1.0],
        quadratures=[lambda t, y: abs(y[0]), lambda t, y: 1.0 if y[0] > 0 else 0.0,
                     lambda t, y: 1.0 if t > 3 else 0.0],
        t_eval=[np.pi, 2 * np.pi, 3 * np.pi], trace="always", **TIGHT,
    )
    exact = [[2, 4, 6], [np.pi, np.pi, 2 * np.pi], [np.pi - 3, 2 * np.pi - 3, 3 * np.pi - 3]]
    np.testing.assert_allclose(sol.quadratures, exact, atol=1e-6)


def test_through_a_jump_of_the_equations_own():
    def circuit(t, y, yp):
        v1, v2, i = y
        return [yp[0] + i, 4 * yp[1] - i, v1 - v2 if t > 1 else i]

    sol = solve_dae(circuit, (0, 2), [10.0, 0.0, 0.0], t_eval=[0.5, 2.0],
                    quadratures=[lambda t, y: y[0], lambda t, y: y[2]])
    assert sol.jumps[0].changes.keys() == {0, 1}
    # a charge of 8 flows in no time
    np.testing.assert_allclose(sol.quadratures, [[5.0, 12.0], [0.0, 8.0]], atol=1e-9)


@pytest.mark.parametrize(("trace", "form"), [
    ("always", "auto"), ("always", 2), ("always", "given"), ("never", "auto"),
])
def test_at_index_3(trace, form):
    def work(t, y, yp, m, g, length):
        return m * (y[2] * yp[2] + y[3] * yp[3])

    def reaction(t, y, m, g, length):
        return y[4] * y[1]

    m, g = 2.0, 9.81
    sol = solve_dae(pendulum, (0, 1), [1.0, 0, 0, 0, 0], args=(m, g, 1.0), trace=trace, form=form,
                    quadratures=[work, reaction], rtol=1e-8, atol=1e-10)
    assert sol.success
    kinetic = m * (sol.y[2] ** 2 + sol.y[3] ** 2) / 2
    np.testing.assert_allclose(sol.quadratures[0], kinetic, atol=1e-5)
    impulse = -m * sol.y[3] - m * g * sol.t    # of the vertical force
    np.testing.assert_allclose(sol.quadratures[1], impulse, atol=1e-5)
    assert sol.index.index == 3
    assert len(sol.names) == 5


def test_large_arrays_stay_arrays():
    def heat(t, y, yp):
        out = np.empty_like(y)
        out[1:-1] = yp[1:-1] - (y[2:] - 2 * y[1:-1] + y[:-2])
        out[0], out[-1] = yp[0], yp[-1]
        return out

    y0 = np.sin(np.linspace(0, np.pi, 2000))
    sol = solve_dae(heat, (0, 1), y0, quadratures=lambda t, y: np.sum(y), t_eval=[1.0])
    assert "traced as arrays" in sol.how
    assert sol.quadratures[0, 0] == pytest.approx(np.sum(y0), rel=1e-5)


# --- derivatives -------------------------------------------------------------------------------


def test_derivatives_by_all_parameters():
    k, t = 2.0, np.array([0.5, 1.0, 2.0])
    sol = solve_dae(decay, (0, 2), [1.5], args=(k,), sensitivity="all", t_eval=t, **TIGHT,
                    quadratures=[lambda t, y, k: y[0], lambda t, y, yp, k: k * yp[0]])
    found = sol.sensitivities
    assert found.names == ("k", "y0[0]")
    assert (sol.sens.shape, found.quadratures.shape) == ((2, 1, 3), (2, 2, 3))
    gone = np.exp(-k * t)
    exact = [
        [1.5 * (t * gone / k - (1 - gone) / k ** 2), 1.5 * (gone - 1 - k * t * gone)],
        [(1 - gone) / k, k * (gone - 1)],
    ]
    np.testing.assert_allclose(found.quadratures, exact, atol=1e-6)


def test_derivatives_by_what_only_the_integrand_reads():
    class Meter:
        def __init__(self):
            self.gain = 3.0

        def read(self, t, y):
            return self.gain * y[0]

    sol = solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=Meter().read,
                    sensitivity=["self.gain", "y0[x]"], dense_output=True, **TIGHT)
    np.testing.assert_allclose(
        sol.sensitivities.quadratures[:, 0, -1], [1 - np.exp(-1), 3 * (1 - np.exp(-1))], atol=1e-7
    )
    assert sol.sens_at(0.5).shape == (2, 2)


# --- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "error", "words"), [
    (3, TypeError, "quadratures must be a callable or a list of them, got 3"),
    ("y", TypeError, "quadratures must be a callable or a list of them"),
    ([square, 3], TypeError, r"quadratures\[1\] must be callable, got int"),
    (lambda t: 1.0, TypeError, r"quadratures\[0\] must accept \(t, y, yp\) or \(t, y\), but"),
    (lambda t, yp, y: 1.0, TypeError, "the wrong way round"),
    (lambda t, y: np.ones((2, 2)), ValueError, r"must return a number or a vector, got .*\(2, 2\)"),
    (lambda t, y: [], ValueError, r"must return a number or a vector, got .*\(0,\)"),
    (lambda t, y: "a", TypeError, r"quadratures\[0\] must return a real number or a vector"),
    (lambda t, y: None, TypeError, r"quadratures\[0\] must return a real number or a vector"),
    (lambda t, y: 1j, TypeError, r"quadratures\[0\] must return a real number or a vector"),
    (lambda t, y: y[7], IndexError, "out of bounds"),
    (lambda t, y: 1 / 0, ZeroDivisionError, "division"),
])
def test_what_is_no_integrand_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=given)


@pytest.mark.parametrize(("options", "words"), [
    ({"rtol": [1e-3] * 3}, r"rtol must be a number or have one value per unknown \(2\)"),
    ({"names": ["a"] * 3}, "names must be 2 strings"),
    ({"yp0": [1.0] * 3}, "yp0 must have 2 values"),
    ({"options": {"quadratures_tested": 1}}, "quadratures_tested must be a bool"),
])
def test_sizes_are_those_of_the_user_s_unknowns(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=square, **options)


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize("fun", [
    lambda t, y, yp: [yp[0]], lambda t, y, yp: [yp[0], yp], lambda t, y, yp: yp[0],
])
def test_a_residual_of_the_wrong_size_is_named(fun, trace):
    with pytest.raises(ValueError, match=r"fun must return .*2 values"):
        solve_dae(fun, (0, 1), [1.0, 1.0], quadratures=square, trace=trace)


def test_what_cannot_be_combined():
    class Nothing:
        def setup(self, t, y, yp, c):
            pass

        def solve(self, b):
            return b

    with pytest.raises(ValueError, match="quadratures: a preconditioner with setup"):
        solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=square,
                  options={"linear_solver": "krylov", "preconditioner": Nothing()})


@pytest.mark.parametrize("trace", ["auto", "never"])
def test_an_integrand_without_a_value_is_named(trace):
    def loss(t, y):
        return np.nan

    sol = solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=loss, trace=trace)
    assert not sol.success
    assert "'integral of loss'" in sol.message

    def later(t, y):
        return np.sqrt(0.5 - t)

    with np.errstate(invalid="ignore"):
        sol = solve_dae(residual, (0, 1), [1.0, 1.0], quadratures=later, trace=trace)
    assert not sol.success
    assert "'integral of later'" in sol.message
    assert sol.t[-1] == pytest.approx(0.5, abs=1e-3)
    assert sol.quadratures.shape == (1, len(sol.t))


# --- gradients ---------------------------------------------------------------------------------


def test_gradients_of_integrals():
    def loss(sol):
        return sol.quadratures[0, -1] ** 2 + sol.y[0, 0]

    options = {"args": (9.81, 0.8), "events": hit, "t_eval": [1.0, 2.0], **TIGHT,
               "quadratures": [lambda t, y, g, e: y[1] ** 2, lambda t, y, g, e: y[0]]}
    found = gradient(loss, ball, (0, 2), [1.0, 0.0], wrt="all", **options)
    sol = solve_dae(ball, (0, 2), [1.0, 0.0], sensitivity="all", **options)
    of_integrals = sol.sensitivities.quadratures
    expected = 2 * sol.quadratures[0, -1] * of_integrals[:, 0, -1] + sol.sens[:, 0, 0]
    assert found.value == loss(sol)
    np.testing.assert_allclose(found.grad, expected, rtol=1e-9)
    timed = gradient(lambda sol: sol.t_events[0][1] + sol.y_events[0][2, 1], ball, (0, 2),
                     [1.0, 0.0], **options)
    by_events = sol.sensitivities.t_events[0][1] + sol.sensitivities.y_events[0][2, :, 1]
    np.testing.assert_allclose(timed.grad, by_events[:2], rtol=1e-9)

    sol, pullback = vjp(ball, (0, 2), [1.0, 0.0], wrt="all", **options)
    nothing, weights = np.zeros((2, 2)), np.array([[0.0, 1.0], [2.0, 0.0]])
    np.testing.assert_allclose(
        pullback(nothing, weights), of_integrals[:, 0, 1] + 2 * of_integrals[:, 1, 0], rtol=1e-9
    )
    with pytest.raises(ValueError, match=r"quadratures_bar must have the shape of sol.quadratures"):
        pullback(nothing, np.zeros((1, 2)))
    _, pullback = vjp(decay, (0, 1), [1.0], args=(1.0,), t_eval=[1.0])
    with pytest.raises(ValueError, match="quadratures_bar needs integrals: pass quadratures="):
        pullback([[1.0]], [[1.0]])
