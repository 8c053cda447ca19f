"""Conditions on elements of arrays, frozen: values and derivatives on every side."""

import numpy as np
import pytest

from tether._core.rows import Rows
from tether.structure.frozen_rows import freeze_rows, is_smooth_on_all_sides
from tether.structure.row_structure import has_regular_structure
from tether.trace.array_tracer import trace_arrays

N = 40
RNG = np.random.default_rng(3)
W = RNG.normal(size=N)


def relative(u):
    return u - np.roll(u, 1)


IDIOMS = {
    "abs": lambda t, y, yp: yp + np.abs(y - 0.3 * t) * y,
    "maximum": lambda t, y, yp: yp + np.maximum(y, np.roll(y, 1) ** 2),
    "minimum": lambda t, y, yp: yp + np.minimum(W, y) * yp[::-1],
    "clip": lambda t, y, yp: yp - np.clip(2.0 * y, -0.5, W**2),
    "sign": lambda t, y, yp: yp + np.sign(relative(y)) * y**2,
    "where": lambda t, y, yp: yp - np.where(y > W, np.sin(y), y * t),
    "both": lambda t, y, yp: yp - np.where((y > -0.5) & (y <= W), y**2, np.roll(y, 2)),
    "count": lambda t, y, yp: yp - (y > W) * y,
    "nested": lambda t, y, yp: yp + np.abs(np.maximum(y, 0.0) - np.roll(y, 1)),
    "product": lambda t, y, yp: yp + np.eye(N, k=1) @ np.maximum(y, 0.1) - np.sum(np.abs(y)),
}


@pytest.fixture(params=IDIOMS)
def idiom(request):
    return IDIOMS[request.param]


def point(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(), rng.normal(size=N), rng.normal(size=N)


def full(table, runner, t, y, yp):
    """F_y and F_y' as full matrices."""
    parts = np.zeros((2, max(len(table.fy[0]), len(table.fyp[0]))))
    runner.entries_into(t, y, yp, *parts)
    found = []
    for places, entries in zip((table.fy, table.fyp), parts, strict=True):
        matrix = np.zeros((N, N))
        matrix[places] = entries[: len(places[0])]
        found.append(matrix)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_free_it_is_the_function(idiom, seed):
    traced = trace_arrays(idiom, N)
    frozen, (t, y, yp) = freeze_rows(traced), point(seed)
    runner, plain = Rows(frozen.table, np.zeros(frozen.n_inputs)), Rows(traced.table)
    np.testing.assert_allclose(runner.values(t, y, yp), idiom(t, y, yp), rtol=1e-14, atol=1e-14)
    for mine, theirs in zip(full(frozen.table, runner, t, y, yp),
                            full(traced.table, plain, t, y, yp), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_frozen_where_the_point_lies_it_is_the_function(idiom, seed):
    frozen, (t, y, yp) = freeze_rows(trace_arrays(idiom, N)), point(seed)
    free = np.zeros(frozen.n_inputs)
    sides = np.sign(frozen.heights.new(free).values(t, y, yp))
    assert sides.all()
    runner = Rows(frozen.table, frozen.shifts(sides))
    np.testing.assert_allclose(runner.values(t, y, yp), idiom(t, y, yp), rtol=1e-14, atol=1e-14)
    above, below = frozen.operands.new(free).values(t, y, yp).reshape(2, -1)
    np.testing.assert_array_equal(np.sign(above - below), sides)


@pytest.mark.parametrize("seed", range(4))
def test_derivatives_are_right_on_any_side(idiom, seed):
    """On sides drawn by lot, those that the point does not lie on among them."""
    frozen, (t, y, yp) = freeze_rows(trace_arrays(idiom, N)), point(seed)
    sides = np.random.default_rng(seed).choice([-1.0, 1.0], len(frozen.groups))
    runner, h = Rows(frozen.table, frozen.shifts(sides)), 1e-3
    f_y, f_yp = full(frozen.table, runner, t, y, yp)
    for column in range(0, N, 7):
        for matrix, of_slopes in ((f_y, False), (f_yp, True)):
            def at(step, of_slopes=of_slopes, column=column):
                moved = [y.copy(), yp.copy()]
                moved[of_slopes][column] += step
                return runner.values(t, *moved)

            # of fourth order
            slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)
            np.testing.assert_allclose(matrix[:, column], slope, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("fun", [
    lambda t, y, yp: yp + np.sqrt(np.abs(y)),
    lambda t, y, yp: yp + np.where(y > 0.0, np.sqrt(y), 0.0),
    lambda t, y, yp: yp + 1.0 / np.maximum(y, 1e-3),
    lambda t, y, yp: yp + np.where(y > 0.0, y, np.nan),
    lambda t, y, yp: yp + np.maximum(t, W) * y,
])
def test_what_guards_a_domain_stays_free(fun):
    assert freeze_rows(trace_arrays(fun, N)) is None


def test_only_elements_of_unknowns_have_shifts():
    def fun(t, y, yp):
        return yp + np.maximum(np.concatenate([y[:5], t * W[5:]]), 0.5)

    frozen = freeze_rows(trace_arrays(fun, N))
    assert len(frozen.groups) == 5
    np.testing.assert_array_equal(np.flatnonzero(frozen.unknowns), np.arange(5))


@pytest.mark.parametrize(("fun", "expected"), [
    (lambda t, y, yp: yp + np.abs(y), True),
    (lambda t, y, yp: yp + np.clip(y, 0.1, W), True),
    (lambda t, y, yp: yp + np.where(y > 0.5, y, 0.5), True),
    (lambda t, y, yp: yp + np.sign(y), True),
    (lambda t, y, yp: yp + np.sign(y[::-1]) + np.sign(y), False),      # each in two equations
    (lambda t, y, yp: yp + np.sign(yp - y), False),
    (lambda t, y, yp: np.maximum(yp, 0.5) + y, False),                 # a slope on one side
    (lambda t, y, yp: np.concatenate([yp[:20] - y[20:], np.minimum(y[:20], y[20:])]), False),
    (lambda t, y, yp: np.concatenate([yp[:20] - y[20:], y[20:] + np.abs(y[:20])]), True),
])
def test_the_structure_on_all_sides(fun, expected):
    traced = trace_arrays(fun, N)
    assert has_regular_structure(traced.table)
    frozen, (t, y, yp) = freeze_rows(traced), point(0)
    assert is_smooth_on_all_sides(traced, frozen, t, y, yp, np.zeros(0)) is expected
