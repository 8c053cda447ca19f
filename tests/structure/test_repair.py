"""Repairs where structure is not enough: combinations with constant and with varying factors."""

import math

import numpy as np
import pytest
from support.signatures import is_regular, points_at, system_of

from tether import gallery
from tether.structure.analysis import analyze_trace
from tether.structure.repair import repair, shuffle
from tether.structure.varying import repair_varying
from tether.trace import emit, evaluate, formula, trace


def test_the_transistor_amplifier_gets_three_algebraic_equations():
    problem = gallery.get("transamp")
    system = system_of(problem.fun, 8)
    assert not is_regular(system, problem.y0)
    fixed = repair(system, points_at(problem.y0, problem.yp0))
    assert fixed.regular
    assert [(part.replaced, part.factors) for part in fixed.combinations] == [
        (0, {0: 1.0, 1: 1.0}), (3, {3: 1.0, 4: 1.0}), (6, {6: 1.0, 7: 1.0})
    ]
    signature = fixed.system.signature
    assert (fixed.system.index(signature), signature.dof) == (1, 5)
    for i in (0, 3, 6):
        assert set(fixed.system.orders[i].values()) == {0}


@pytest.mark.parametrize("eta", [-1.0, -0.5, 1.0, 2.0])
def test_index_2_that_no_linearisation_shows(eta):
    def fun(t, y, yp):
        return [y[0] + eta * t * y[1] - math.sin(t), yp[0] + eta * t * yp[1] + (1 + eta) * y[1]]

    system = system_of(fun, 2)
    assert system.signature.structural_index == 1
    fixed = repair(system, points_at([1.0, 1.0]))
    assert fixed.regular
    assert fixed.system.index(fixed.system.signature) == 2
    assert fixed.system.signature.dof == 0


def test_structural_index_above_the_true_one():
    # Reissig, Martinson and Barton (2000): y' occurs in sums that can be eliminated
    def fun(t, y, yp):
        first, second = yp[1] + yp[2], yp[3] + yp[4]
        return [first + y[0] - math.sin(t), first + y[1], second + y[2] - t, second + y[3],
                y[4] - math.cos(t)]

    system = system_of(fun, 5)
    assert is_regular(system, np.ones(5))
    assert system.signature.structural_index == 3
    fixed = shuffle(system, points_at(np.ones(5)))
    assert fixed.regular
    assert fixed.system.index(fixed.system.signature) == 1
    assert formula(system.graph, fixed.system.rows[0], "abcde") == "a - b - sin(t)"


def test_a_repeated_equation_is_named():
    def fun(t, y, yp):
        a, b, c = y
        return [yp[0] - b * c, a * b - c, 3.0 * c - 3.0 * a * b]

    fixed = repair(system_of(fun, 3), points_at([1.0, 2.0, 2.0]))
    assert not fixed.regular
    assert [set(part.factors) for part in fixed.dependent] == [{1, 2}]


def test_entries_that_cancel_are_not_counted():
    def fun(t, y, yp):
        a, b = y
        return [(a + b) ** 2 - a * a - 2 * a * b - b * b + yp[0] * (math.sin(t) - math.sin(t))
                + yp[1] + a - a, a - t]

    fixed = repair(system_of(fun, 2), points_at([1.0, 1.0]))
    assert fixed.regular
    assert fixed.system.signature.structural_index == 1
    assert fixed.system.signature.dof == 1


def varying_pair(t, y, yp):
    a, b, c = y
    return [yp[0] + c * yp[1] - a, c * yp[0] + c * c * yp[1] - b + 1, c - 2 - 0.1 * math.sin(t)]


def varying_triple(t, y, yp):
    a, b, c, e = y
    first, second = yp[0] + c * yp[1], yp[1] * c * c + yp[2]
    return [first - a, second - b + 1, (1 + a * a) * first + b * second + a * b - 2 * c,
            yp[3] + e * a]


@pytest.mark.parametrize(
    ("fun", "n", "row", "expected", "dof"),
    [
        (varying_pair, 3, 1, lambda a, b, c: a * c - b + 1, 1),
        (varying_triple, 4, 2,
         lambda a, b, c, e: a * b - 2 * c + (1 + a * a) * a + b * (b - 1), 3),
    ],
)
def test_slopes_that_cancel_with_varying_factors(fun, n, row, expected, dof):
    system = system_of(fun, n)
    points = points_at(np.arange(1.0, n + 1.0))
    assert not repair(system, points).regular
    fixed = repair_varying(system, points)
    assert fixed.regular
    assert fixed.system.signature.dof == dof
    assert fixed.system.index(fixed.system.signature) == 1
    y = np.array([0.3, 0.7, 1.9, -0.4])[:n]
    program = emit(system.graph, [fixed.system.rows[row]], n)
    assert evaluate(program, 0.2, y, y)[0] == pytest.approx(expected(*y))


def random_pencil(rng, mixed):
    """E and A with known index and number of free values, in mixed equations and variables."""
    sizes = rng.integers(1, 4, size=rng.integers(1, 3)).tolist()
    dof = int(rng.integers(0, 4))
    n = dof + sum(sizes)
    E, A = np.zeros((2, n, n))
    E[:dof, :dof], A[:dof, :dof] = np.eye(dof), rng.normal(size=(dof, dof))
    first = dof
    for size in sizes:
        part = slice(first, first + size)
        E[part, part], A[part, part] = np.eye(size, k=1), np.eye(size)
        first += size
    if mixed == "all":
        P, Q = rng.normal(size=(2, n, n))
    else:
        P, Q = np.eye(n)[rng.permutation(n)], np.eye(n)[rng.permutation(n)]
        P, Q = (M + np.triu((rng.random((n, n)) < 0.3) * rng.integers(-2, 3, (n, n)), 1) @ M
                for M in (P, Q))
    return P @ E @ Q, P @ A @ Q, max(sizes), dof


@pytest.mark.parametrize("mixed", ["all", "some"])
@pytest.mark.parametrize("seed", range(20))
def test_linear_systems_of_known_index_in_disguise(seed, mixed):
    rng = np.random.default_rng(seed)
    E, A, index, dof = random_pencil(rng, mixed)
    n = len(E)

    def fun(t, y, yp):
        return [
            sum(E[i, j] * yp[j] + A[i, j] * y[j] for j in range(n)) - math.sin(t + i)
            for i in range(n)
        ]

    found = analyze_trace(trace(fun, n), 0.0, rng.normal(size=n), thorough=True)
    assert (found.index, found.dof) == (index, dof)
    assert found.start.success
    assert np.abs(fun(0.0, found.start.y, found.start.yp)).max() < 1e-9


def test_large_blocks_are_judged_by_sparse_factors():
    def chain(t, y, yp):
        mass = 4.0 * yp
        mass[1:] = mass[1:] + yp[:-1]
        mass[:-1] = mass[:-1] + yp[1:]
        return mass + y

    system = system_of(chain, 500)
    assert len(system.signature.blocks) == 1
    assert is_regular(system, np.ones(500))
