"""Where derivatives of a called function stand, seen from its values."""

import numpy as np
import pytest
from scipy.sparse import eye_array, random_array

from tether import Problem
from tether.plan.discover import find_pattern, see_sparsity


@pytest.mark.parametrize("seed", range(6))
def test_no_entry_is_missed_and_few_are_added(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(200, 900))
    matrix = (random_array((n, n), density=3 / n, rng=draw) + eye_array(n)).tocoo()
    # products vanish at zero: where nothing else is known one steps aside
    found = find_pattern(lambda x: matrix @ (x * np.roll(x, 1)), np.zeros(n), np.ones(n))
    true = matrix.coords
    assert np.all(found.positions(*true) >= 0)
    assert np.all(found.positions(true[0], (true[1] - 1) % n) >= 0)
    assert found.size <= 2 * matrix.nnz


def test_full_functions_and_those_without_values_do_not_tell():
    assert find_pattern(lambda x: np.full(300, x.sum()), np.ones(300), np.ones(300)) is None
    assert find_pattern(lambda x: None, np.ones(300), np.ones(300)) is None


@pytest.mark.parametrize("fills", [False, True])
def test_both_matrices_are_seen(fills):
    n = 250

    def values(t, y, yp):
        return np.append(yp[:-1] + np.diff(y), y[-1])

    def filling(t, y, yp, out):
        out[:] = values(t, y, yp)

    seen, calls = see_sparsity(Problem(filling if fills else values), 0.0, np.zeros(n), None)
    assert not seen.by_user
    assert calls < 9 * np.sqrt(n)
    assert np.all(seen.fy.positions(np.arange(n - 1), np.arange(1, n)) >= 0)
    assert np.all(seen.fyp.positions(np.arange(n - 1), np.arange(n - 1)) >= 0)
    assert (seen.fy.size, seen.fyp.size) == (2 * n - 1, n - 1)


def test_a_function_that_raises_is_left_to_the_run():
    def broken(t, y, yp):
        raise RuntimeError("not yet")

    assert see_sparsity(Problem(broken), 0.0, np.zeros(250), None)[0] is None
    assert see_sparsity(Problem(broken, jac=broken), 0.0, np.zeros(250), None)[0] is None


def test_an_equation_of_all_unknowns_takes_no_call_for_each():
    n, calls = 900, []

    def values(x):
        calls.append(1)
        return np.append(x[:-1] - x[1:], x.sum())

    found = find_pattern(values, np.ones(n), np.ones(n))
    assert found.size == 2 * (n - 1) + n
    assert len(calls) < 5 * np.sqrt(n)


def test_the_pattern_of_a_jacobian_is_analysed_once():
    n = 100
    slopes, rates = (random_array((n, n), density=0.02, rng=4) + eye_array(n)).tocsc(), eye_array(n)
    problem = Problem(lambda t, y, yp: yp + slopes @ y, jac=lambda t, y, yp: (slopes, rates))
    first, second = (see_sparsity(problem, 0.0, np.ones(n), None)[0] for _ in range(2))
    assert second is first
    assert not first.by_user
    slopes.data[3], slopes.indices[3] = 2.0, slopes.indices[3]      # other values, same places
    assert see_sparsity(problem, 0.0, np.ones(n), None)[0] is first
    slopes = eye_array(n).tocsc()
    assert see_sparsity(problem, 0.0, np.ones(n), None)[0].fy.size == n
