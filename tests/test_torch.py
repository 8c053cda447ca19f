"""A solve as a differentiable function of PyTorch."""

import numpy as np
import pytest
from support.swing import GUESS, OPTIONS, SPAN, START, TRUE, measured, swing

import tether.torch
from tether import solve_dae

torch = pytest.importorskip("torch")


def number(value, kind=torch.float64):
    return torch.tensor(value, dtype=kind, requires_grad=True)


def rates(t, y, yp, k, p):
    return [yp[0] + k[0] * y[0], y[1] - p["gain"] * y[0] - k[1]]


def solve(y0, k, gain, **options):
    return tether.torch.solve(rates, (0, 1), y0, (k, {"gain": gain, "unused": 2.0}),
                              t_eval=[0.3, 1.0], rtol=1e-10, atol=1e-12, start="quiet", **options)


def test_gradients_by_everything():
    y0, k, gain = number([1.0, 0.0]), number([2.0, 0.5]), number(3.0)
    assert torch.autograd.gradcheck(solve, (y0, k, gain), eps=1e-4, atol=1e-6, rtol=1e-5)
    solve(y0, k, gain).sum().backward()
    sol = solve_dae(rates, (0, 1), [1.0, 0.0], args=(np.array([2.0, 0.5]), {"gain": 3.0}),
                    t_eval=[0.3, 1.0], sensitivity="all", rtol=1e-10, atol=1e-12, start="quiet")
    found = np.concatenate([k.grad, [gain.grad], y0.grad])
    np.testing.assert_allclose(found, sol.sens.sum(axis=(1, 2)), rtol=1e-10)


def test_values_without_gradients():
    y = solve([1.0, 0.0], torch.tensor([2.0, 0.5]).double(), 3.0)
    assert not y.requires_grad
    assert y[0].tolist() == pytest.approx([np.exp(-0.6), np.exp(-2.0)], abs=1e-7)
    with torch.no_grad():
        assert not solve([1.0, 0.0], number([2.0, 0.5]), 3.0).requires_grad
    plain = tether.torch.solve(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], t_eval=[1.0])
    assert plain.dtype == torch.float64


def test_types_of_tensors():
    k = number([2.0, 0.5], torch.float32)
    y = solve([1.0, 0.0], k, 3.0)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert k.grad.dtype == torch.float32
    assert solve([1.0, 0.0], k, number(3.0)).dtype == torch.float64
    whole = torch.tensor(3)                    # is no parameter
    k = number([2.0, 0.5])
    solve([1.0, 0.0], k, whole).sum().backward()
    assert torch.isfinite(k.grad).all()


def test_starting_values_one_by_one():
    x = number(1.0)
    solve([x, 0.0], torch.tensor([2.0, 0.5]).double(), 3.0)[0, 1].backward()
    assert x.grad.item() == pytest.approx(np.exp(-2.0), abs=1e-7)


def test_functional_gradients():
    k = torch.tensor([2.0, 0.5], dtype=torch.float64)
    found = torch.func.grad(lambda k: solve([1.0, 0.0], k, 3.0)[0, 1])(k)
    assert found.tolist() == pytest.approx([-np.exp(-2.0), 0.0], abs=1e-6)


def test_second_derivatives_are_refused():
    k = number([2.0, 0.5])
    slope, = torch.autograd.grad(solve([1.0, 0.0], k, 3.0).sum(), k, create_graph=True)
    with pytest.raises(NotImplementedError, match="solve gives first derivatives only"):
        slope.sum().backward()


def test_failures():
    def blow(t, y, yp, k):
        return [yp[0] - k * y[0] ** 2]

    with pytest.raises(RuntimeError, match=r"the run failed: .* grows without bound"):
        tether.torch.solve(blow, (0, 2), [1.0], (number(1.0),), t_eval=[2.0])
    k = number(1.0)
    with pytest.warns(RuntimeWarning, match="the run failed"):
        y = tether.torch.solve(blow, (0, 2), [1.0], (k,), t_eval=[2.0], on_failure="nan")
    y.sum().backward()
    assert torch.isnan(k.grad)


@pytest.mark.parametrize("name", ["Adam", "LBFGS"])
def test_a_fit_at_index_3(name):
    data = torch.as_tensor(measured())
    p = {name: number(value) for name, value in GUESS.items()}
    calls = []
    optimizer = (
        torch.optim.LBFGS(p.values(), line_search_fn="strong_wolfe", max_iter=25)
        if name == "LBFGS" else torch.optim.Adam(p.values(), lr=0.1, betas=(0.8, 0.9))
    )

    def closure():
        optimizer.zero_grad()
        y = tether.torch.solve(swing, SPAN, START, (p,), **OPTIONS)
        loss = ((y[:2] - data) ** 2).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    for _ in range(1 if name == "LBFGS" else 60):
        optimizer.step(closure)
    found = {name: value.item() for name, value in p.items()}
    assert found == pytest.approx(TRUE, rel=1e-5 if name == "LBFGS" else 0.02)
    assert len(calls) <= 60
