"""A plan made for some values of the inputs is not used for others with another index."""

import numpy as np
import pytest

from tether import solve_dae


def pencil(rng, index):
    """E y' + A y = 0 with two algebraic equations, of index 1 or 2, all mixed."""
    e, a = np.diag([1.0, 1.0, 0.0, 0.0]), rng.normal(size=(4, 4))
    if index == 2:
        a[2:, 2:] = 0.0
    left, right = rng.normal(size=(2, 4, 4))
    return left @ e @ right, left @ a @ right


def of_args(t, y, yp, e, a):
    return e @ yp + a @ y


@pytest.mark.parametrize("way", ["args", "closure"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::tether.ConsistencyWarning")
def test_index_1_then_2_then_1(way, seed):
    rng = np.random.default_rng(seed)
    for index in (1, 1, 2, 2, 1):
        e, a = pencil(rng, index)

        def of_closure(t, y, yp, e=e, a=a):
            return e @ yp + a @ y

        fun, args = (of_args, (e, a)) if way == "args" else (of_closure, ())
        sol = solve_dae(fun, (0, 1e-3), np.full(4, 0.1), args=args, max_steps=2000)
        assert sol.success, sol.message
        assert ("index 2" in sol.how) == (index == 2)
        left = e @ sol.yp[:, -1] + a @ sol.y[:, -1]
        assert np.abs(left).max() < 1e-6 * (1 + np.abs(sol.yp[:, -1]).max())
