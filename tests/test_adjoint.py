"""gradient, vjp and hessian_product: numbers made of a solution."""

import numpy as np
import pytest
from support.derivatives import FINE, TIGHT, bouncing, decay, falling, relaxing

from tether import gradient, hessian_product, solve_dae, vjp

TIMES = np.linspace(0, 2, 9)
CASE = {"t_eval": TIMES, "names": ["u", "v"], "start": "quiet"}
ARGS = (0.9, 0.3)


def crossing(t, y, yp, k, c):
    return y[0] - 0.6


def by_differences(loss, step=1e-5):
    """The gradient of a loss by k and c, from tight runs."""
    def value(k, c):
        sol = solve_dae(
            relaxing, (0, 2), [1.0, 0.3], args=(k, c), events=[crossing], **CASE, **TIGHT
        )
        return float(np.ravel(loss(sol))[0])

    k, c = ARGS
    return np.array([
        (value(k + step, c) - value(k - step, c)) / (2 * step),
        (value(k, c + step) - value(k, c - step)) / (2 * step),
    ])


def in_a_loop(sol):
    total = 0.0
    for i in range(sol.y.shape[1]):
        total += (sol.y[0, i] - 0.5) ** 2 * np.exp(-sol.t[i])
    return total


LOSSES = {
    "sum": lambda sol: np.sum((sol.y[0] - 0.5) ** 2),
    "loop": in_a_loop,
    "names": lambda sol: sol["u"][-1] * sol["v"][3],
    "max": lambda sol: np.max(sol.y[1, 2:]),
    "min": lambda sol: min(sol.y[1]),
    "time of an event": lambda sol: sol.t_events[0][0] ** 2,
    "values at an event": lambda sol: sol.y_events[0][0, 1] * sol.t_events[0][-1],
    "norm": lambda sol: np.linalg.norm(sol.y[0] - 0.3),
    "product": lambda sol: sol.y[0] @ sol.y[1],
    "integral": lambda sol: np.sum((sol.y[0, 1:] + sol.y[0, :-1]) * np.diff(sol.t)) / 2,
    "absolute": lambda sol: np.abs(sol.y[0] - 0.55).sum(),
    "interpolation": lambda sol: np.interp(0.33, sol.t, sol.y[0]),
    "sorted": lambda sol: sorted(sol.y[0])[2],
    "one value": lambda sol: np.array([sol.y[0, -1]]),
    "where": lambda sol: np.where(sol.y[0] > 0.5, sol.y[0], 0.0).sum(),
    "branch": lambda sol: sol.y[0, -1] if sol.y[0, -1] < 0.5 else 2 * sol.y[0, -1],
    "fit": lambda sol: np.polyfit(sol.t, sol.y[0], 1)[0],
    "percentile": lambda sol: np.percentile(sol.y[0], 40),
    "fast": lambda sol: np.sin(300 * sol.y[0, -1]),
    "constant": lambda sol: 3.0,
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    loss = LOSSES[name]
    found = gradient(
        loss, relaxing, (0, 2), [1.0, 0.3], args=ARGS, events=[crossing], rtol=1e-9, atol=1e-11,
        **CASE,
    )
    right = by_differences(loss)
    assert found.names == ("k", "c")
    assert np.allclose(found.grad, right, rtol=1e-5, atol=1e-8)
    assert np.isclose(found.value, float(np.ravel(loss(found.sol))[0]), rtol=1e-14)


def test_a_loss_with_its_own_derivative():
    weights = np.zeros((2, len(TIMES)))
    weights[0, -1] = 1.0
    given = gradient(
        lambda sol: (sol.y[0, -1], weights), relaxing, (0, 2), [1.0, 0.3], args=ARGS, **CASE
    )
    traced = gradient(
        lambda sol: sol.y[0, -1], relaxing, (0, 2), [1.0, 0.3], args=ARGS, **CASE
    )
    assert np.allclose(given.grad, traced.grad, rtol=1e-12)
    with pytest.raises(ValueError, match=r"derivative of shape \(3,\), but y has \(2, 9\)"):
        gradient(
            lambda sol: (1.0, np.zeros(3)), relaxing, (0, 2), [1.0, 0.3], args=ARGS, **CASE
        )


def test_the_result_says_what_it_is():
    found = gradient(lambda sol: sol.y[0, -1], decay, (0, 1), [1.0], args=(2.0,), wrt="all", **FINE)
    assert abs(found["k"] + np.exp(-2.0)) < 1e-6
    assert abs(found["y0[0]"] - np.exp(-2.0)) < 1e-6
    assert "d/d k = -0.13533" in repr(found)


def test_events_that_change_the_state():
    """2 t_2 + v_2^2: of a ball that hits the floor for the second time, and its speed there."""
    g, e, h = 9.81, 0.8, 1.0
    found = gradient(
        lambda sol: 2 * sol.t_events[0][1] + sol.y_events[0][1, 1] ** 2, falling, (0, 5), [h, 0.0],
        args=(g, e), wrt="all", events=[bouncing(terminal=2)], t_eval=[0.0], rtol=1e-9, atol=1e-11,
    )
    first = np.sqrt(2 * h / g)
    time = first * (1 + 2 * e)                 # v_2^2 = e^2 2 g h
    assert abs(found.value - (2 * time + e * e * 2 * g * h)) < 1e-7
    right = [-time / g + 2 * e * e * h, 4 * first + 4 * e * g * h, time / h + 2 * e * e * g]
    assert np.allclose(found.grad[:3], right, rtol=1e-6)


@pytest.mark.parametrize(("loss", "error", "words"), [
    (lambda sol: np.nan * sol.y[0, 0], ValueError, "loss is nan"),
    (lambda sol: np.inf, ValueError, "loss is inf"),
    (lambda sol: sol.y[0], TypeError, "must return a real number"),
    (lambda sol: None, TypeError, "must return a real number, got None"),
    (lambda sol: 1j * sol.y[0, -1], TypeError, "must return a real number"),
    (lambda sol: "a", TypeError, "must return a real number, got 'a'"),
    (lambda sol: sol.y[0, -1] > 0.1, TypeError, "must return a real number"),
    (lambda sol: np.sqrt(sol.y[0, 0] - 1.0), ValueError, "derivative of loss is not finite"),
    (3, TypeError, "loss must be callable, got int"),
])
def test_wrong_losses(loss, error, words):
    with pytest.raises(error) as caught, np.errstate(all="ignore"):
        gradient(loss, relaxing, (0, 2), [1.0, 0.3], args=ARGS, **CASE)
    assert words in str(caught.value)


def test_a_loss_with_a_memory():
    calls = []

    def loss(sol):
        calls.append(1)
        return sol.y[0, -1] * len(calls)

    with pytest.raises(ValueError, match=r"depends on more than|not return the same in every call"):
        gradient(loss, decay, (0, 1), [1.0], args=(1.0,))


def test_runs_that_fail():
    def blows_up(t, y, yp, k):
        return [yp[0] - k * y[0] ** 2]

    with pytest.raises(ValueError, match="the run failed, so there is nothing to differentiate"):
        gradient(lambda sol: sol.y[0, -1], blows_up, (0, 3), [1.0], args=(1.0,))


# --- vjp ----------------------------------------------------------------------------------------


def test_vjp_exactly():
    sol, pullback = vjp(
        decay, (0, 1), [3.0], args=(2.0,), wrt="all", t_eval=[0.5, 1.0], **FINE
    )
    assert pullback.names == ("k", "y0[0]")
    half, whole = np.exp(-1.0), np.exp(-2.0)
    found = pullback([[1.0, 10.0]])
    assert np.allclose(found, [-1.5 * half - 30 * whole, half + 10 * whole], rtol=1e-6)
    several = pullback(np.eye(2)[:, None, :])
    assert several.shape == (2, 2)
    assert np.allclose(several[0] + 10 * several[1], found, rtol=1e-12)
    assert (pullback(np.zeros((1, 2))) == 0.0).all()
    assert sol.sens is None


def test_vjp_at_the_steps_of_a_run():
    sol, pullback = vjp(
        falling, (0, 2), [1.0, 0.0], args=(9.81, 0.8), wrt="all", events=[bouncing()], **FINE
    )
    forward = solve_dae(
        falling, (0, 2), [1.0, 0.0], args=(9.81, 0.8), sensitivity="all", events=[bouncing()],
        **FINE,
    )
    weights = np.random.default_rng(1).standard_normal(sol.y.shape)
    right = np.einsum("nt,pnt->p", weights, forward.sens)
    assert np.allclose(pullback(weights), right, rtol=1e-10, atol=1e-10 * np.abs(right).max())


@pytest.mark.parametrize(("y_bar", "words"), [
    (np.ones(3), r"must have the shape of sol.y, \(1, 2\), got \(3,\)"),
    (np.ones((2, 2)), "must have the shape"),
    (np.full((1, 2), np.nan), "must be finite"),
])
def test_wrong_weights(y_bar, words):
    _, pullback = vjp(decay, (0, 1), [1.0], args=(1.0,), t_eval=[0.5, 1.0])
    with pytest.raises(ValueError, match=words):
        pullback(y_bar)


def test_a_hundred_parameters():
    """Rates that add up: all derivatives are the same."""
    sol, pullback = vjp(
        lambda t, y, yp, k: [yp[0] + np.sum(k) * y[0]], (0, 1), [1.0],
        args=(np.full(100, 0.01),), t_eval=[1.0], **FINE,
    )
    assert np.allclose(pullback([[1.0]]), -np.exp(-1.0), rtol=1e-6)
    assert len(pullback.names) == 100
    assert sol.success


# --- hessian_product ----------------------------------------------------------------------------


def test_hessian_product():
    """y(1) = y0 exp(-k)."""
    found = hessian_product(
        lambda sol: sol.y[0, -1], decay, (0, 1), [1.5], args=(2.0,), wrt="all",
        direction=[1.0, -3.0], t_eval=[1.0], rtol=1e-10, atol=1e-13,
    )
    decayed = np.exp(-2.0)
    assert np.allclose(found, [1.5 * decayed + 3.0 * decayed, -decayed], rtol=1e-5)
    assert (hessian_product(
        lambda sol: sol.y[0, -1], decay, (0, 1), [1.5], args=(2.0,), direction=[0.0]
    ) == 0.0).all()


@pytest.mark.parametrize("direction", [[1.0, 2.0], [[1.0]]])
def test_wrong_directions(direction):
    with pytest.raises(ValueError, match="direction must have one number for each"):
        hessian_product(
            lambda sol: sol.y[0, -1], decay, (0, 1), [1.5], args=(2.0,), direction=direction
        )
