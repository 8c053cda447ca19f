"""Steps with derivatives in the core, against plain NumPy."""

import numpy as np
import pytest

from tether._core import point_shares, replay
from tether.sensitivity import large
from tether.sensitivity.slopes import Slopes

WIDTH = 8


def coefficients(t, order, first):
    found, predictor = np.zeros((2, len(order), WIDTH))
    point_shares.coefficients(t, np.array(order, np.intc), first, found, predictor)
    return found


def take(engine, slopes, c, s, first, predictor=None, changes=None):
    """Take steps forwards; by default nobody wants to know what was predicted."""
    predictor = np.zeros_like(c) if predictor is None else predictor
    nothing = np.zeros((0, slopes.n, slopes.n_parameters))
    engine.forwards(slopes, c, s, first, predictor, nothing if changes is None else changes)


# --- matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_matrices_are_inverted_in_any_units(n):
    rng = np.random.default_rng(n)
    matrix, units = rng.standard_normal((n, n)), 10.0 ** rng.uniform(-9, 9, (2, n))
    found = np.empty((n, n))
    condition = replay.invert(matrix * units[0][:, None] * units[1], found)
    exact = np.linalg.inv(matrix)
    assert np.allclose(found * units[1][:, None] * units[0], exact, rtol=1e-9, atol=1e-9)
    assert condition < 1e4 * n
    matrix[-1] = matrix[0] if n > 1 else 0.0
    assert not replay.invert(matrix, found) < 1e12


# --- steps --------------------------------------------------------------------------------------


def random_slopes(seed, n, p, m, count=4, rank=None):
    """Slopes at random points, with some entries left out, and a step for each of them."""
    rng = np.random.default_rng(seed)
    shapes = (n, n), (n, n), (p, n), (m, n), (p, m)
    parts, places = [], []
    for number, (rows, columns) in enumerate(shapes):
        size = rows * columns
        place = np.flatnonzero(rng.uniform(size=size) < (0.7 if number < 3 else 2.0))
        parts.append(rng.standard_normal((count, len(place))))
        places.append(place)
    diagonal = np.arange(n) * (n + 1)
    for k in range(count):                     # F_y + c F_y' is regular
        whole = np.zeros(n * n)
        whole[places[0]] = parts[0][k]
        parts[0][k] = whole[places[0]] + 5.0 * np.isin(places[0], diagonal)
    if rank is not None:                       # the last constraints depend on the first ones
        for k in range(count):
            gy = parts[3][k].reshape(m, n)
            gp = parts[4][k].reshape(p, m)
            mix = rng.standard_normal((m - rank, rank))
            gy[rank:], gp[:, rank:] = mix @ gy[:rank], gp[:, :rank] @ mix.T
    scale = rng.uniform(0.1, 10.0, (count, n)) if m else np.zeros((0, 0))
    slopes = Slopes(n, p, m, np.ascontiguousarray(np.hstack(parts)), tuple(places), scale)
    t = np.cumsum(rng.uniform(0.5, 1.0, 7 + count))
    return slopes, coefficients(t, rng.integers(1, 7, count), 7)


def plain_forwards(slopes, c, s, first):
    """As the core does it, in plain NumPy; the projection by a pseudo-inverse."""
    for k in range(len(slopes.values)):
        fy, fyp, fp, gy, gp = slopes.matrices(k)
        past = sum(c[k, j] * s[first + k - j] for j in range(1, WIDTH))
        new = np.linalg.solve(fy + c[k, 0] * fyp, -fp.T - fyp @ past)
        if slopes.m:
            scale = slopes.scale[k]
            new -= scale[:, None] * (np.linalg.pinv(gy * scale, 1e-9) @ (gy @ new + gp.T))
        s[first + k] = new


SIZES = [(1, 1, 0, None), (3, 2, 0, None), (6, 4, 2, None), (6, 3, 3, 2), (5, 1, 4, 1)]


@pytest.mark.parametrize("engine", [replay, large])
@pytest.mark.parametrize(("n", "p", "m", "rank"), SIZES)
def test_forwards(engine, n, p, m, rank):
    slopes, c = random_slopes(n + m, n, p, m, rank=rank)
    s = np.random.default_rng(5).standard_normal((7 + len(c), n, p))
    right = s.copy()
    take(engine, slopes, c, s, 7)
    plain_forwards(slopes, c, right, 7)
    assert np.allclose(s, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())


@pytest.mark.parametrize("engine", [replay, large])
@pytest.mark.parametrize(("n", "p", "m", "rank"), SIZES)
def test_backwards_is_the_transposed_of_forwards(engine, n, p, m, rank):
    slopes, c = random_slopes(n + m, n, p, m, rank=rank)
    count, rng = len(c), np.random.default_rng(6)
    s = np.zeros((7 + count, n, p))
    s[:7] = rng.standard_normal((7, n, p))
    before = s.copy()
    take(engine, slopes, c, s, 7)
    weights = rng.standard_normal((7 + count, 2, n))           # two scalars of all points
    scalars = np.einsum("kln,knp->lp", weights, s)
    gradient, pull = np.zeros((2, p)), np.zeros((count, 2, m))
    bar = weights.copy()
    engine.backwards(slopes, c, bar, 7, gradient, pull)
    found = gradient + np.einsum("kln,knp->lp", bar[:7], before[:7])
    assert np.allclose(found, scalars, rtol=1e-10, atol=1e-10 * np.abs(scalars).max())


@pytest.mark.parametrize("engine", [replay, large])
def test_changes_are_what_was_not_predicted(engine):
    slopes, c = random_slopes(4, 4, 3, 1)
    count, rng = len(c), np.random.default_rng(9)
    s, predictor = rng.standard_normal((7 + count, 4, 3)), rng.standard_normal((count, WIDTH))
    changes = np.full((count, 4, 3), np.nan)
    take(engine, slopes, c, s, 7, predictor, changes)
    for k in range(count):
        foreseen = sum(predictor[k, j] * s[7 + k - j] for j in range(1, WIDTH))
        assert np.allclose(changes[k], s[7 + k] - foreseen, atol=1e-11 * np.abs(s).max())


@pytest.mark.parametrize("engine", [replay, large])
def test_pull_says_what_comes_from_the_constraints(engine):
    slopes, c = random_slopes(9, 5, 3, 2)
    count = len(c)
    weights = np.random.default_rng(7).standard_normal((7 + count, 1, 5))
    gradient, pull = np.zeros((1, 3)), np.zeros((count, 1, 2))
    engine.backwards(slopes, c, weights.copy(), 7, gradient, pull)
    # one parameter more, by which only the first constraint of the third step is moved
    step, shift = 2, 1e-3
    changed, _ = random_slopes(9, 5, 3, 2)
    place = changed.values.shape[1] - 6        # G_p of the first parameter and constraint
    changed.values[step, place] += shift
    values = []
    for part in (slopes, changed):
        s = np.zeros((7 + count, 5, 3))
        take(engine, part, c, s, 7)
        values.append(np.einsum("kln,knp->lp", weights, s)[0, 0])
    assert abs((values[1] - values[0]) / shift + pull[step, 0, 0]) < 1e-8


def test_projected_tangents_satisfy_the_constraints():
    slopes, c = random_slopes(11, 6, 4, 3, rank=2)
    s = np.random.default_rng(8).standard_normal((7 + len(c), 6, 4))
    take(replay, slopes, c, s, 7)
    for k in range(len(c)):
        *_, gy, gp = slopes.matrices(k)
        assert np.abs(gy @ s[7 + k] + gp.T).max() < 1e-9 * np.abs(s[7 + k]).max()


def test_a_singular_step_gives_no_finite_values():
    n = 2
    places = np.arange(4), np.arange(4), np.arange(2), np.zeros(0, int), np.zeros(0, int)
    slopes = Slopes(n, 1, 0, np.zeros((1, 10)), places, np.zeros((0, 0)))
    slopes.values[0, -2:] = 1.0
    s = np.zeros((8, n, 1))
    with np.errstate(all="ignore"):
        take(replay, slopes, np.ones((1, WIDTH)), s, 7)
    assert not np.isfinite(s[7]).any()


def test_nothing_to_do():
    slopes, c = random_slopes(1, 2, 1, 0)
    slopes.values = slopes.values[:0]
    s = np.ones((7, 2, 1))
    take(replay, slopes, c[:0], s, 7)
    replay.backwards(slopes, c[:0], s, 7, np.zeros((1, 1)), np.zeros((0, 1, 0)))
    assert (s == 1.0).all()
