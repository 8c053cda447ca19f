"""Signature matrix, offsets, block form."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.signatures import system_of

from tether import gallery
from tether.structure.sigma import Signature, Unmatched, _smallest_offsets, find_signature


def pattern(n):
    order = st.one_of(st.none(), st.integers(0, 2))
    row = st.lists(order, min_size=n, max_size=n)
    return st.lists(row, min_size=n, max_size=n).map(
        lambda rows: [{j: k for j, k in enumerate(row) if k is not None} for row in rows]
    )


def best_assignment(orders):
    n = len(orders)
    sums = [
        sum(orders[i][j] for i, j in enumerate(permutation))
        for permutation in itertools.permutations(range(n))
        if all(j in orders[i] for i, j in enumerate(permutation))
    ]
    return max(sums, default=None)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5).flatmap(pattern))
def test_offsets_belong_to_a_best_assignment(orders):
    best, found = best_assignment(orders), find_signature(orders)
    if best is None:
        assert isinstance(found, Unmatched)
        return
    assert isinstance(found, Signature)
    assert found.dof == best
    assert sorted(found.match) == list(range(len(orders)))
    assert min(found.c) >= 0
    for i, row in enumerate(orders):
        assert found.d[found.match[i]] - found.c[i] == row[found.match[i]]
        for j, order in row.items():
            assert found.d[j] - found.c[i] >= order


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 5).flatmap(pattern), st.randoms())
def test_offsets_do_not_depend_on_the_order_of_equations_and_variables(orders, random):
    n = len(orders)
    rows, columns = list(range(n)), list(range(n))
    random.shuffle(rows)
    random.shuffle(columns)
    moved = [{columns[j]: k for j, k in orders[i].items()} for i in rows]
    first, second = find_signature(orders), find_signature(moved)
    assert type(first) is type(second)
    if isinstance(first, Signature):
        assert [first.c[i] for i in rows] == list(second.c)
        assert list(first.d) == [second.d[columns[j]] for j in range(n)]


def test_smallest_offsets_of_the_pendulum():
    problem = gallery.get("pend-i3")
    signature = system_of(problem.fun, 5).signature
    assert signature.c == (1, 1, 0, 0, 2)
    assert signature.d == (2, 2, 1, 1, 0)
    assert (signature.structural_index, signature.dof) == (3, 2)


@pytest.mark.parametrize(
    ("name", "index", "dof"),
    [
        ("robertson", 1, 2), ("akzo", 1, 5), ("vdpol", 0, 2), ("pend-i1", 1, 4), ("pend-i2", 2, 3),
        ("pend-i3", 3, 2), ("pend-ggl", 2, 2), ("caraxis-i3", 3, 4), ("andrews-i1", 1, 14),
        ("andrews-i2", 2, 8), ("andrews-i3", 3, 2), ("fekete", 2, 80), ("transamp", 0, 8),
    ],
)
def test_structural_index_of_the_gallery(name, index, dof):
    problem = gallery.get(name)
    signature = system_of(problem.fun, problem.n).signature
    assert (signature.structural_index, signature.dof) == (index, dof)


def test_blocks_can_be_solved_one_after_the_other():
    def fun(t, y, yp):
        a, b, c, d = y
        return [yp[0] - b, a + b - t, c + d - a, c - d + b]

    signature = system_of(fun, 4).signature
    known: set[int] = set()
    sizes = []
    for block in signature.blocks:
        for i in block.equations:
            assert set(signature.tight(i)) <= known | set(block.variables)
        known |= set(block.variables)
        sizes.append(len(block.variables))
    assert sorted(sizes) == [1, 1, 2]


def test_a_long_chain_needs_no_recursion():
    n = 5000
    orders = [{i: 0, i + 1: 0} if i + 1 < n else {i: 0} for i in range(n)]
    signature = find_signature(orders[::-1])
    assert len(signature.blocks) == n


def test_structurally_singular_system_is_split():
    found = find_signature([{0: 1}, {0: 0}, {1: 1, 2: 0}])
    assert found == Unmatched(equations=(0, 1), variables=(1, 2))


class Counting(dict):
    """Orders of an equation that count how often they are gone through."""

    seen = 0

    def items(self):
        Counting.seen += 1
        return super().items()


def test_offsets_that_rise_along_a_chain_take_work_in_proportion_to_it():
    """Capacitors in a row on a source: its current is the last unknown, and d rises all along."""
    n = 500
    orders = [Counting({k: 1 for k in (i - 1, i, i + 1) if 0 <= k < n}) for i in range(n)]
    orders[0][n] = 0
    orders.append(Counting({0: 0}))
    match = [n, *range(1, n), 0]
    Counting.seen = 0
    c, d = _smallest_offsets(orders, match)
    assert Counting.seen <= 3 * n
    assert (c, d) == ((*[0] * n, 1), (*[1] * n, 0))
    # differentiated as often as the last unknown takes
    c, d = _smallest_offsets(orders, match, 1)
    assert c == (*[1] * n, 2)
    assert d == (*[2] * n, 1)
    assert Counting.seen <= 10 * n
