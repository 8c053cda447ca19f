"""A solve as a differentiable function of JAX."""

import gc
import weakref

import numpy as np
import pytest
from support.swing import GUESS, OPTIONS, SPAN, START, TRUE, measured, swing

import tether.jax
from tether import solve_dae

jax = pytest.importorskip("jax")
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


@pytest.fixture(autouse=True)
def doubles():
    with enable_x64(True):
        yield


def rates(t, y, yp, k, p):
    return [yp[0] + k[0] * y[0], y[1] - p["gain"] * y[0] - k[1]]


def solve(y0, k, gain, **options):
    return tether.jax.solve(rates, (0, 1), y0, (k, {"unused": 2.0, "gain": gain}),
                            t_eval=[0.3, 1.0], rtol=1e-9, atol=1e-11, start="quiet", **options)


def total(y0, k, gain):
    return solve(y0, k, gain).sum()


def at():
    return jax.numpy.array([1.0, 0.0]), jax.numpy.array([2.0, 0.5]), 3.0


def test_gradients_by_everything():
    sol = solve_dae(rates, (0, 1), [1.0, 0.0], args=(np.array([2.0, 0.5]), {"gain": 3.0}),
                    t_eval=[0.3, 1.0], sensitivity="all", rtol=1e-9, atol=1e-11, start="quiet")
    expected = sol.sens.sum(axis=(1, 2))
    for change in (lambda fun: fun, jax.jit):
        value, (y0, k, gain) = change(jax.value_and_grad(total, (0, 1, 2)))(*at())
        assert value == pytest.approx(sol.y.sum(), rel=1e-12)
        np.testing.assert_allclose([*k, gain, *y0], expected, rtol=1e-10)


def test_gradients_against_differences():
    from jax.test_util import check_grads

    check_grads(total, at(), 1, ["rev"], eps=1e-4, atol=1e-6, rtol=1e-5)


def test_trees_of_parameters():
    def loss(p):
        y = tether.jax.solve(swing, SPAN, START, (p,), **OPTIONS)
        return (y[:2] ** 2).sum() + y[3, -1]

    p = {name: jax.numpy.array(value) for name, value in GUESS.items()}
    found = jax.grad(loss)(p)
    for name in p:
        low, high = (loss(p | {name: p[name] + h}) for h in (-1e-4, 1e-4))
        assert found[name] == pytest.approx(float(high - low) / 2e-4, rel=1e-4)


def test_many_at_once():
    def end(gain):
        return solve([1.0, 0.0], np.array([2.0, 0.5]), gain)[1, 1]

    gains = jax.numpy.array([1.0, 2.0, 3.0])
    one_by_one = [float(end(gain)) for gain in gains]
    for fun in (jax.vmap(end), jax.jit(jax.vmap(end))):
        np.testing.assert_allclose(fun(gains), one_by_one, rtol=1e-12)
    for fun in (jax.vmap(jax.grad(end)), jax.jit(jax.vmap(jax.grad(end)))):
        np.testing.assert_allclose(fun(gains), [np.exp(-2.0)] * 3, atol=1e-7)
    slopes = jax.jacrev(lambda k: solve([1.0, 0.0], k, 3.0))(jax.numpy.array([2.0, 0.5]))
    assert slopes.shape == (2, 2, 2)
    assert slopes[0, :, 0] == pytest.approx([-0.3 * np.exp(-0.6), -np.exp(-2.0)], abs=1e-6)


def test_types_of_arrays():
    narrow = jax.numpy.array([2.0, 0.5], "float32")
    y = solve([1.0, 0.0], narrow, 3.0)
    assert y.dtype == "float32"
    assert jax.grad(lambda k: solve([1.0, 0.0], k, 3.0).sum())(narrow).dtype == "float32"
    assert solve(jax.numpy.array([1.0, 0.0]), narrow, 3.0).dtype == "float64"
    whole = jax.numpy.array(3)                 # is no parameter
    assert jax.grad(lambda x: solve([x, 0.0], narrow, whole)[0, 1])(1.0) == pytest.approx(
        np.exp(-2.0), abs=1e-6
    )
    assert tether.jax.solve(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], t_eval=[1.0]).shape == (
        1, 1
    )


def test_single_precision_is_that_of_jax_alone():
    with enable_x64(False):
        end = jax.value_and_grad(lambda gain: solve([1.0, 0.0], [2.0, 0.5], gain)[1, 1])
        value, slope = jax.jit(end)(3.0)
    assert value.dtype == slope.dtype == "float32"
    assert slope == pytest.approx(np.exp(-2.0), rel=1e-6)


@pytest.mark.parametrize("twice", [
    lambda fun: jax.grad(jax.grad(fun)), lambda fun: jax.hessian(fun),
    lambda fun: jax.jit(jax.hessian(fun)),
])
def test_second_derivatives_are_refused(twice):
    with pytest.raises(NotImplementedError, match="solve gives first derivatives only"):
        twice(lambda gain: solve([1.0, 0.0], np.array([2.0, 0.5]), gain).sum())(3.0)


def test_failures():
    def end(k, **options):
        return tether.jax.solve(
            lambda t, y, yp, k: [yp[0] - k * y[0] ** 2], (0, 2), [1.0], (k,), t_eval=[2.0],
            **options,
        )[0, 0]

    for fun in (end, jax.grad(end), jax.jit(end), jax.jit(jax.grad(end))):
        with pytest.raises(RuntimeError, match=r"the run failed: .* grows without bound"):
            fun(1.0)
    with pytest.warns(RuntimeWarning, match="the run failed"):
        value, slope = jax.value_and_grad(lambda k: end(k, on_failure="nan"))(1.0)
    assert np.isnan([value, slope]).all()
    with pytest.warns(RuntimeWarning, match="the run failed"):
        some = jax.vmap(lambda k: end(k, on_failure="nan"))(jax.numpy.array([0.1, 1.0]))
    assert np.isnan(some).tolist() == [False, True]


def test_bad_input():
    class Rates:
        def __init__(self, k):
            self.k = k

    jax.tree_util.register_pytree_node(Rates, lambda r: ((r.k,), None), lambda _, k: Rates(*k))

    def wrapped(k):
        return tether.jax.solve(lambda t, y, yp, r: [yp[0] + r.k * y[0]], (0, 1), [1.0],
                                (Rates(k),), t_eval=[1.0]).sum()

    with pytest.raises(TypeError, match="an object of another class that contains JAX arrays"):
        jax.grad(wrapped)(1.0)

    def times(t):
        return tether.jax.solve(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], t_eval=[t]).sum()

    with pytest.raises(TypeError, match="t_eval must be concrete numbers"):
        jax.grad(times)(1.0)


def test_few_runs_are_kept(monkeypatch):
    monkeypatch.setattr(tether.jax, "MAX_RUNS", 2)
    monkeypatch.setattr(tether.jax, "_last_runs", tether.jax._LastRuns())
    made, init = [], tether.jax._Host.__init__

    def note(self, *given):
        init(self, *given)
        made.append(weakref.ref(self))

    monkeypatch.setattr(tether.jax._Host, "__init__", note)
    for gain in (1.0, 2.0, 3.0, 4.0, 5.0):
        jax.grad(lambda gain: solve([1.0, 0.0], [2.0, 0.5], gain).sum())(gain)
    gc.collect()
    assert sum(ref() is not None for ref in made) <= 2


def test_a_fit_at_index_3():
    data = measured()

    @jax.jit
    def slope(p):
        def loss(p):
            y = tether.jax.solve(swing, SPAN, START, (p,), **OPTIONS)
            return ((y[:2] - data) ** 2).sum()

        return jax.grad(loss)(p)

    p = {name: jax.numpy.array(value) for name, value in GUESS.items()}
    speed = {"gravity": 1.0, "friction": 0.1}
    for _ in range(50):
        down = slope(p)
        p = {name: p[name] - speed[name] * down[name] for name in p}
    assert {name: float(value) for name, value in p.items()} == pytest.approx(TRUE, rel=1e-3)
