"""Rows that were written one by one, as templates: the same bits as the machine's."""

import numpy as np
import pytest

from tether import solve_dae
from tether._core.rows import Rows
from tether.trace import trace
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import FEW_TEMPLATES, prepare, prepare_system
from tether.trace.templates import fold_program

N = 60


def ladder(t, y, yp):
    r = []
    for i in range(N):
        left = y[i - 1] if i else np.sin(t)
        r.append(yp[i] - (left - y[i]) / (1.0 + 0.01 * i) + 1e-3 * (np.exp(y[i]) - 1.0))
    return r


DRAW = np.random.default_rng(5)
BRANCHES = [
    (int(a), int(b), float(DRAW.uniform(0.1, 1.0)), bool(DRAW.random() < 0.3))
    for a, b in DRAW.integers(0, N, (3 * N, 2))
]


def network(t, y, yp):
    r = [0.1 * x for x in yp]
    for a, b, conductance, is_diode in BRANCHES:
        current = (y[a] - y[b]) * conductance
        if is_diode:
            current = 1e-2 * (np.exp(y[a] - y[b]) - 1.0)
        r[a] = r[a] + current
        r[b] = r[b] - current
    return r


def tables(t, y, yp):
    return [
        yp[i] + np.interp(y[i], [0.0, 0.5, 1.0], [0.0, float(i % 2), 3.0]) - y[i - 1] ** 3
        for i in range(N)
    ]


def switched(t, y, yp):
    return [yp[i] + max(y[i] - 0.3, 0.0) * y[i - 1] if i % 3 else yp[i] + t for i in range(N)]


def with_arguments(t, y, yp, k=2.0):
    return [yp[i] * k + k**2 * y[i] * t + (3.0 if i else 0.0) for i in range(N)]


CASES = [ladder, network, tables, switched, with_arguments]


@pytest.mark.parametrize("fun", CASES)
def test_templates_give_the_bits_of_the_machine(fun):
    args = (2.0,) if fun is with_arguments else ()
    traced = trace(fun, N, args)
    backend = prepare_system(traced)
    table = fold_program(backend.program, backend.n_values, backend.fy, backend.fyp)
    slow, fast = backend.new(traced.args.flatten(args)), Rows(table, traced.args.flatten(args))
    sizes = len(backend.fy[0]), len(backend.fyp[0])
    slow.place(*map(np.arange, sizes))
    draw = np.random.default_rng(0)
    for _ in range(3):
        t, y, yp = draw.uniform(), draw.uniform(0.0, 1.0, N), draw.normal(size=N)
        np.testing.assert_array_equal(fast.values(t, y, yp), slow.values(t, y, yp))
        found = [[np.zeros(max(sizes)) for _ in range(2)] for _ in range(2)]
        slow.entries_into(t, y, yp, *found[0])
        fast.entries_into(t, y, yp, *found[1])
        np.testing.assert_array_equal(found[0], found[1])


def test_rows_of_different_shapes_stay_with_the_machine():
    def fun(t, y, yp):
        r = []
        for i in range(700):
            x = yp[i]
            for k in range(10):
                x = x + np.sin(y[i]) if (i >> k) & 1 else x * y[i]
            r.append(x)
        return r

    traced = trace(fun, 700)
    program = traced.program()
    assert prepare(program, layout="list", folds=True).name == "machine"
    assert fold_program(program, 700, ((), ()), ((), ())).templates > FEW_TEMPLATES


def test_a_long_netlist_runs_as_templates():
    n = 2000

    def fun(t, y, yp):
        r = []
        for i in range(n):
            left = y[i - 1] if i else 1.0
            right = y[i + 1] if i < n - 1 else 0.0
            r.append(yp[i] - (left - 2 * y[i] + right) * 50.0 - np.exp(-y[i]) * 0.1)
        return r

    found = {
        backend: solve_dae(fun, (0, 0.1), np.linspace(1, 0, n), options={"backend": backend})
        for backend in ("auto", "machine")
    }
    assert found["auto"].success
    np.testing.assert_array_equal(found["auto"].y, found["machine"].y)
    expected = solve_dae(fun, (0, 0.1), np.linspace(1, 0, n), options={"trace": "never"})
    np.testing.assert_allclose(found["auto"].y[:, -1], expected.y[:, -1], rtol=1e-4, atol=1e-6)


def test_entries_of_several_terms_are_added():
    """The second term meets the first one in a row, and the third one the second in another."""
    a, b, c = np.array([[0, 1, 2], [1, 1, 0], [2, 2, 0]])

    def fun(t, y, yp):
        return yp + y[a] ** 2 + np.sin(y[b]) + np.exp(y[c])

    y, yp = np.array([0.3, 0.7, 1.1]), np.zeros(3)
    table = trace_arrays(fun, 3).table
    entries = np.full((2, max(len(table.fy[0]), len(table.fyp[0]))), np.nan)
    Rows(table).entries_into(0.0, y, yp, *entries)
    matrix = np.zeros((3, 3))
    matrix[table.fy] = entries[0, : len(table.fy[0])]
    known = np.zeros((3, 3))
    for places, slope in ((a, 2.0 * y), (b, np.cos(y)), (c, np.exp(y))):
        np.add.at(known, (np.arange(3), places), slope[places])
    np.testing.assert_allclose(matrix, known, rtol=1e-14)
