"""Patterns of sparse matrices, and the order in which they are eliminated."""

import numpy as np
import pytest
from scipy.sparse import coo_array, eye_array, random_array

from tether.base.pattern import Pattern


def pattern_of(matrix):
    return Pattern(matrix.shape[0], coo_array(matrix).coords)


def test_entries_of_several_lists_stand_once_and_in_order():
    pattern = Pattern(3, ([2, 0], [0, 0]), ([0, 1], [0, 2]))
    assert pattern.start.tolist() == [0, 2, 2, 3]
    assert pattern.row.tolist() == [0, 2, 1]
    assert pattern.columns.tolist() == [0, 0, 2]
    assert pattern.positions([1, 2, 0], [2, 0, 1]).tolist() == [2, 1, -1]


def test_an_empty_pattern_has_no_entries():
    pattern = Pattern(4)
    assert pattern.size == 0
    assert pattern.positions([0], [0]).tolist() == [-1]


def test_places_of_many_unknowns_do_not_overflow():
    n = 70_000
    pattern = Pattern(n, ([n - 1, 0], [n - 1, n - 1]))
    assert pattern.positions([n - 1], [n - 1]).tolist() == [1]


def test_the_elimination_is_a_permutation_with_entries_on_its_diagonal():
    draw = np.random.default_rng(5)
    for _ in range(20):
        n = int(draw.integers(1, 60))
        matrix = random_array((n, n), density=2 / n, rng=draw) + eye_array(n).tocsr()[
            draw.permutation(n)
        ]
        pattern = pattern_of(matrix)
        order, preferred = pattern.elimination
        assert sorted(order) == list(range(n))
        assert sorted(preferred) == list(range(n))
        assert np.all(pattern.positions(preferred, np.arange(n)) >= 0)


def test_blocks_are_eliminated_one_after_the_other():
    # x3 <- x1 <-> x0, x2 alone: no row of a later block is met in an earlier one
    entries = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (3, 3), (1, 3), (2, 3)]
    pattern = Pattern(4, tuple(zip(*entries, strict=True)))
    order = pattern.elimination[0].tolist()
    assert order[-1] == 3
    assert abs(order.index(0) - order.index(1)) == 1


def test_columns_that_no_row_is_left_for_are_named():
    pattern = Pattern(3, ([0, 0, 1], [0, 1, 2]))
    assert np.count_nonzero(pattern.elimination[1] < 0) == 1


def test_the_order_keeps_an_arrow_sparse():
    n = 50
    arrow = eye_array(n).tolil()
    arrow[0, :] = arrow[:, 0] = 1.0
    assert pattern_of(arrow).elimination[0][-1] in (0, *pattern_of(arrow).elimination[0][-2:])
    assert 0 in pattern_of(arrow).elimination[0][-2:]


@pytest.mark.parametrize("n", [1, 2])
def test_small_ones_have_an_order_too(n):
    assert sorted(pattern_of(eye_array(n)).elimination[0]) == list(range(n))


def test_a_full_band_is_left_in_its_order():
    n = 40
    rows, columns = np.divmod(np.arange(n * n), n)
    inside = np.abs(rows - columns) <= 2
    pattern = Pattern(n, (rows[inside], columns[inside]))
    assert pattern.elimination[0].tolist() == list(range(n))
    inside &= (rows != 7) | (columns != 7)                 # without its diagonal it is no longer
    order, preferred = Pattern(n, (rows[inside], columns[inside])).elimination
    assert preferred[7] != 7
    assert sorted(order) == list(range(n))
