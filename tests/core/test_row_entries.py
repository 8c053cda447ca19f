"""Entries of templates: those that follow from constants and args are written once."""

import numpy as np
import pytest
from scipy import sparse

from tether._core import probe
from tether._core.dense import Dense
from tether._core.rows import Rows
from tether._core.state import State
from tether.trace import trace
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import prepare_rows
from tether.trace.templates import fold_program

N = 300                                # more than two blocks
MATRIX = sparse.random_array((N, N), density=0.02, rng=np.random.default_rng(1)).tocsr()
PLACES = np.random.default_rng(2).integers(0, N, N)


def edges(t, y, yp, k):
    """At its ends a row reads one element twice: what changes there has terms that do not."""
    u = np.pad(y, 1, mode="edge")
    return yp - k * (u[2:] - 2.0 * y + u[:-2]) + y[::-1] * y


def products(t, y, yp, k):
    """Products by way of intermediate results, which change or not."""
    flux = k * (MATRIX @ y)
    return yp + MATRIX @ np.exp(flux) + flux + np.sin(t) * y


def all_constant(t, y, yp, k):
    return k * yp - MATRIX @ (y[PLACES] - 2.0 * y)


def slopes_change(t, y, yp, k):
    return (1.0 + k * y**2) * yp + yp[PLACES] - y


FUNCTIONS = [edges, products, all_constant, slopes_change]


def jacobian(table, y, yp, entries):
    """Return F_y and F_y' as matrices."""
    found = []
    for places, values in zip((table.fy, table.fyp), entries, strict=True):
        matrix = np.zeros((N, N))
        matrix[places] = values[: len(places[0])]
        found.append(matrix)
    return np.array(found)


def by_complex_steps(fun, t, y, yp, k):
    """Differentiate a function by steps in the imaginary direction."""
    size, found = 1e-30, np.zeros((2, N, N))
    for j in range(N):
        step = np.zeros(N, complex)
        step[j] = size * 1j
        found[0, :, j] = fun(t, y + step, yp, k).imag / size
        found[1, :, j] = fun(t, y + 0j, yp + step, k).imag / size
    return found


@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_entries_that_change_complete_those_that_do_not(fun, shuffled):
    draw = np.random.default_rng(3)
    table = trace_arrays(fun, N, (0.7,)).table
    rows = Rows(table, [0.7])
    places = [np.arange(len(p[0])) for p in (table.fy, table.fyp)]
    if shuffled:
        places = [draw.permutation(2 * len(p))[: len(p)] for p in places]
        rows.place(*places)
    entries = np.full((2, rows.reach), np.nan)
    for again in range(3):
        y, yp = draw.standard_normal((2, N))
        if again:
            rows.changing_into(0.1 * again, y, yp, *entries)
        else:
            rows.entries_into(0.1 * again, y, yp, *entries)
        listed = [x[p] for x, p in zip(entries, places, strict=True)]
        known = by_complex_steps(fun, 0.1 * again, y, yp, 0.7)
        np.testing.assert_allclose(jacobian(table, y, yp, listed), known, rtol=1e-11, atol=1e-11)


def test_constant_entries_are_left_alone():
    for fun, share in ((all_constant, 0.0), (edges, 2 / 3)):
        table = trace_arrays(fun, N, (0.7,)).table
        rows = Rows(table, [0.7])
        entries = np.full((2, rows.reach), np.nan)
        rows.changing_into(0.0, np.ones(N), np.ones(N), *entries)
        written = np.isfinite(entries[0, : len(table.fy[0])])
        assert not np.isfinite(entries[1]).any()
        assert written.sum() <= share * len(written)
        assert written.any() == (share > 0.0)


def test_the_args_of_a_state_may_change():
    """As where conditions are frozen: the entries that depend on them are written once more."""
    y, yp = np.linspace(0.5, 2.0, N), np.ones(N)
    backend = prepare_rows(trace_arrays(edges, N, (0.7,)).table)
    state = State(Dense(N), np.full(N, 1e-6), np.full(N, 1e-6))
    backend.attach(state, [0.7])
    for k in (0.7, 2.5):
        state.residual_adapter.set_args([k])
        for point in (y, 2.0 * y):
            found = probe.jacobian_at(state, 0.0, point, yp)[1:]
            known = by_complex_steps(edges, 0.0, point, yp, k)
            np.testing.assert_allclose(found, known, rtol=1e-12, atol=1e-12)


def test_rows_that_were_written_one_by_one():
    def chain(t, y, yp):
        return [3.0 * yp[i] - y[i - 1] * y[i] + 2.0 * y[i - 2] for i in range(N)]

    traced = trace(chain, N)
    f_y, f_yp = traced.f_y, traced.f_yp
    program = traced.program(traced.outputs + f_y.nodes + f_yp.nodes)
    table = fold_program(program, N, (f_y.rows, f_y.cols), (f_yp.rows, f_yp.cols))
    rows, draw = Rows(table), np.random.default_rng(4)
    first, second = np.full((2, 2, rows.reach), np.nan)
    rows.entries_into(0.0, *draw.standard_normal((2, N)), *first)
    y, yp = draw.standard_normal((2, N))
    rows.changing_into(0.0, y, yp, *first)
    rows.entries_into(0.0, y, yp, *second)
    np.testing.assert_array_equal(first, second)
    known = {(i, i - 2): 2.0 for i in range(2, N)} | {(i, i): -y[i - 1] for i in range(1, N)}
    found = dict(zip(zip(*(x.tolist() for x in table.fy), strict=True), first[0], strict=False))
    assert known.items() <= found.items()
