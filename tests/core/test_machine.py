"""Traced programs at work: the machine, the same programs in C, and the cache of these."""

import ctypes
import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.helpers import ROOT, start_python

import tether
from tether import Problem, Status, gallery
from tether._core import events, machine, opcodes, probe
from tether._core.schedule import schedule
from tether._core.state import State
from tether.plan.shelf import shelf
from tether.run.integration import Integration
from tether.trace import compile_c, library_cache, trace
from tether.trace import opcodes as op
from tether.trace.backend import prepare, prepare_system
from tether.trace.compile_c import NotCompiled, compile_program, find_compiler
from tether.trace.emit import Program
from tether.trace.operations import NAMES

CORE = Path(tether._core.__file__).parent
needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler")

UNARY = [op.NEG, op.SQRT, op.EXP, op.LOG, op.SIN, op.COS, op.TAN, op.ASIN, op.ACOS, op.ATAN,
         op.SINH, op.COSH, op.TANH, op.ASINH, op.ACOSH, op.ATANH, op.ABS, op.SIGN, op.FLOOR,
         op.CEIL, op.LOG1P, op.EXPM1, op.ERF, op.NOT]
BINARY = [op.ADD, op.SUB, op.MUL, op.DIV, op.POW, op.ATAN2, op.HYPOT, op.MIN, op.MAX, op.LT, op.LE,
          op.EQ, op.NE, op.AND, op.OR, op.MOD]



def c_power(x, y):
    """pow of the C library, as `math` has it; NumPy takes the square root for y = 0.5."""
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        return np.power(x, y)


NUMPY = {
    op.ADD: np.add, op.SUB: np.subtract, op.MUL: np.multiply, op.DIV: np.divide,
    op.NEG: np.negative, op.POW: c_power, op.SQRT: np.sqrt, op.EXP: np.exp, op.LOG: np.log,
    op.SIN: np.sin, op.COS: np.cos, op.TAN: np.tan, op.ASIN: np.arcsin, op.ACOS: np.arccos,
    op.ATAN: np.arctan, op.SINH: np.sinh, op.COSH: np.cosh, op.TANH: np.tanh,
    op.ASINH: np.arcsinh, op.ACOSH: np.arccosh, op.ATANH: np.arctanh, op.ATAN2: np.arctan2,
    op.HYPOT: np.hypot,
    op.ABS: np.abs, op.SIGN: np.sign, op.FLOOR: np.floor, op.CEIL: np.ceil,
    # the first of two zeros, which NumPy leaves to the processor
    op.MIN: lambda x, y: x if x == y else np.minimum(x, y),
    op.MAX: lambda x, y: x if x == y else np.maximum(x, y),
    op.LOG1P: np.log1p, op.EXPM1: np.expm1, op.ERF: math.erf,
    op.LT: np.less, op.LE: np.less_equal, op.EQ: np.equal, op.NE: np.not_equal,
    op.AND: lambda x, y: x != 0 and y != 0, op.OR: lambda x, y: x != 0 or y != 0,
    op.NOT: lambda x: x == 0, op.SELECT: lambda x, y, z: y if x != 0 else z, op.MOD: np.mod,
}
# What IEEE arithmetic fixes to the last digit.
EXACT = [op.ADD, op.SUB, op.MUL, op.DIV, op.NEG, op.SQRT, op.ABS, op.SIGN, op.FLOOR, op.CEIL,
         op.MIN, op.MAX, op.LT, op.LE, op.EQ, op.NE, op.AND, op.OR, op.NOT, op.SELECT, op.MOD]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.0, 700.0, -800.0, 1e-300, 1e300, -1e300,
         math.inf, -math.inf, math.nan]


def assemble(n, p, constants, instructions, outputs):
    """Program of instructions (op, a, b, c), which may be shorter; their slots are as they are."""
    rows = [tuple(row) + (-1,) * (4 - len(row)) for row in instructions]
    columns = np.array(rows, np.int32).reshape(-1, 4).T.copy()
    return Program(n=n, p=p, op=columns[0], a=columns[1], b=columns[2], c=columns[3],
                   outputs=np.array(outputs, np.int32), constants=np.array(constants, float),
                   n_static=0, n_time=0)


def power(x, k):
    """x ** k by squaring."""
    product, left = 1.0, abs(k)
    while left:
        if left & 1:
            product = product * x
        x, left = x * x, left >> 1
    return np.float64(1.0) / product if k < 0 else product


def reference(program, t, y, yp, args=()):
    """Outputs by NumPy."""
    slots = [np.float64(x) for x in (*program.constants, t, *y, *yp, *args)]
    with np.errstate(all="ignore"):
        for code, a, b, c in zip(program.op, program.a, program.b, program.c, strict=True):
            if code == op.POWI:
                slots.append(power(slots[a], int(b)))
            elif code == op.TABLE:
                slots.append(np.float64(stored_table(program.tables, int(b), slots[a])))
            else:
                operands = [slots[k] for k in (a, b, c) if k >= 0]
                slots.append(np.float64(NUMPY[int(code)](*operands)))
    return np.array([slots[k] for k in program.outputs])


def stored_table(tables, first, x):
    """Piecewise polynomial by a search from the left and plain sums."""
    count, width = int(tables[first]), int(tables[first + 1])
    starts = tables[first + 2 : first + 2 + count]
    piece = sum(1 for start in starts if start <= x)
    base, *row = tables[first + 2 + count + piece * (width + 1) :][: width + 1]
    total, factor = 0.0, 1.0
    for c in row:
        total, factor = total + c * factor, factor * (x - base)
    return x if x != x else total


def random_tables(rng):
    """Two tables, one behind the other, and their places."""
    parts = []
    for count, width in ((0, 3), (5, 4)):
        parts.append([count, width, *np.sort(rng.standard_normal(count)),
                      *rng.standard_normal((count + 1) * (width + 1))])
    return np.concatenate(parts), [0, len(parts[0])]


def backends(program, *arguments, **options):
    """The machine and, where there is a compiler, C."""
    made = [prepare(program, *arguments, backend="machine", **options)]
    if find_compiler() is not None:
        made.append(prepare(program, *arguments, backend="c", **options))
        assert made[1].name == "c", made[1].reason
    return made


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache for this file alone."""
    folder = tmp_path_factory.getbasetemp() / "tether-cache"
    monkeypatch.setenv("TETHER_CACHE", str(folder))
    return folder


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TETHER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# --- operations -----------------------------------------------------------------------------


def test_opcodes_are_the_same_everywhere():
    text = (CORE / "opcodes.pxd").read_text()
    in_c = {name: int(value) for name, value in re.findall(r"^    (\w+) = (-?\d+)$", text, re.M)}
    interpreted = {name: value for name, value in vars(opcodes).items() if name.isupper()}
    assert in_c == interpreted
    traced = {name: code for code, name in NAMES.items() if code >= 0}
    assert traced == {name: interpreted[name] for name in traced}
    assert len(traced) == 43
    assert set(UNARY + BINARY + [op.POWI, op.SELECT, op.TABLE]) == set(traced.values())


def every_operation():
    """All operations of y[0], y[1], y[2] in one program, and what they are."""
    codes = [(code, 1) for code in UNARY] + [(code, 1, 2) for code in BINARY]
    codes += [(op.SELECT, 1, 2, 3)]
    return assemble(3, 0, [], codes, range(7, 7 + len(codes))), [row[0] for row in codes]


def test_every_operation_gives_what_numpy_gives():
    program, codes = every_operation()
    rng = np.random.default_rng(1)
    points = [(x, y, 5.0) for x in EDGES for y in EDGES]
    points += [tuple(3.0 * rng.standard_normal(3)) for _ in range(100)]
    for backend in backends(program):
        runner = backend.new()
        for point in points:
            found = runner.values(0.0, point, np.zeros(3))
            expected = reference(program, 0.0, point, np.zeros(3))
            for code, ours, theirs in zip(codes, found, expected, strict=True):
                label = f"{NAMES[code]}{point} by {backend.name}"
                if code in EXACT:
                    np.testing.assert_array_equal(ours, theirs, err_msg=label)
                else:
                    np.testing.assert_allclose(ours, theirs, rtol=1e-14, err_msg=label)


def test_signs_of_zero():
    program = assemble(2, 0, [], [(op.NEG, 1), (op.MOD, 1, 2), (op.MUL, 1, 2)], [5, 6, 7])
    for backend in backends(program):
        found = backend.new().values(0.0, [0.0, -2.0], [0.0, 0.0])
        assert np.signbit(found).tolist() == [True, True, True]


@pytest.mark.parametrize("k", range(-8, 9))
def test_integer_powers(k):
    program = assemble(1, 0, [], [(op.POWI, 1, k)], [3])
    for backend in backends(program):
        runner = backend.new()
        for x in (1.7, -0.3, 1e-30, -2.0):
            with np.errstate(over="ignore"):
                expected = np.float64(x) ** float(k)
            np.testing.assert_allclose(runner.values(0, [x], [0])[0], expected, rtol=2e-15)
        assert runner.values(0, [0.0], [0])[0] == (math.inf if k < 0 else float(k == 0))
        assert np.isnan(runner.values(0, [math.nan], [0])[0]) == (k != 0)


def test_large_powers_of_the_exponent_slot_are_not_taken_for_slots():
    """An exponent may be larger than any slot number, or equal to one."""
    program = assemble(1, 0, [], [(op.POWI, 1, 60), (op.POWI, 3, -7), (op.ADD, 3, 4)], [3, 4, 5])
    for backend in backends(program):
        found = backend.new().values(0, [1.01], [0])
        np.testing.assert_allclose(found[:2], [1.01**60, 1.01**-420], rtol=1e-13)


# --- random programs ------------------------------------------------------------------------


def random_program(rng, size, codes, n=3, p=2):
    """Program with all kinds of operands, entries and unused instructions."""
    constants = rng.standard_normal(4)
    tables, places = random_tables(rng)
    base = len(constants) + 1 + 2 * n + p
    rows = []
    for i in range(size):
        code = int(rng.choice(codes))
        arity = 3 if code == op.SELECT else 2 if code in BINARY else 1
        recent = rng.integers(max(0, base + i - 6), base + i, 3)
        slots = np.where(rng.random(3) < 0.5, recent, rng.integers(0, base + i, 3)).tolist()
        second = int(rng.integers(-4, 9)) if code == op.POWI else slots[1] if arity > 1 else -1
        second = int(rng.choice(places)) if code == op.TABLE else second
        rows.append((code, slots[0], second, slots[2] if arity > 2 else -1))
    outputs = rng.integers(0, base + size, 2 * n)
    return replace(assemble(n, p, constants, rows, outputs), tables=tables)


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 120))
def test_random_programs_by_the_machine(seed, size):
    rng = np.random.default_rng(seed)
    program = random_program(rng, size, [*EXACT, op.POWI, op.TABLE, op.MUL, op.ADD, op.MUL, op.SUB])
    args = rng.standard_normal(2)
    for n_values in (3, 6):
        positions = [4, 7, 1][: 6 - n_values]
        runner = machine.Machine(schedule(program, n_values), args, positions)
        for _ in range(3):
            t, y, yp = rng.standard_normal(), rng.standard_normal(3), rng.standard_normal(3)
            expected = reference(program, t, y, yp, args)
            np.testing.assert_array_equal(runner.values(t, y, yp), expected[:n_values])
            fy = np.zeros(9)
            runner.entries_into(t, y, yp, fy, np.zeros(9))
            np.testing.assert_array_equal(fy[positions], expected[n_values:])


@needs_compiler
@settings(deadline=None, max_examples=16,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 200), piece=st.sampled_from([7, 250]))
def test_random_programs_in_c(seed, size, piece):
    rng = np.random.default_rng(seed)
    program = random_program(rng, size, [*EXACT, op.POWI, op.TABLE, op.MUL, op.ADD, op.MUL, op.SUB])
    args = rng.standard_normal(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_c, "PIECE", piece)
        made = prepare(program, 3, ([0, 1], [0, 2]), ([2], [1]), backend="c")
    assert made.name == "c", made.reason
    runner = made.new(args)
    for _ in range(3):
        t, y, yp = rng.standard_normal(), rng.standard_normal(3), rng.standard_normal(3)
        expected = reference(program, t, y, yp, args)
        fy, fyp = np.zeros(9), np.zeros(9)
        runner.entries_into(t, y, yp, fy, fyp)
        np.testing.assert_array_equal([fy[0], fy[7], fyp[5]], expected[3:])
        np.testing.assert_array_equal(runner.values(t, y, yp), expected[:3])
        args = rng.standard_normal(2)
        runner.set_args(args)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 200))
def test_schedule_is_a_permutation_into_runs(seed, size):
    program = random_program(np.random.default_rng(seed), size, [*EXACT, op.POWI, op.TABLE])
    plan = schedule(program, 3, fused=False)
    count = len(plan.a)
    assert count <= size
    assert plan.run_start[0] == 0
    assert plan.run_start[-1] == count
    assert np.all(np.diff(plan.run_start) > 0)
    assert plan.segment_start.tolist() == sorted(plan.segment_start)
    assert plan.segment_start[-1] == len(plan.run_op)
    codes = np.repeat(plan.run_op, np.diff(plan.run_start))
    for part in (plan.a, np.where(np.isin(codes, (op.POWI, op.TABLE)), -1, plan.b), plan.c):
        assert np.all(part < plan.base + np.arange(count))         # used after it is known


def test_products_merge_into_sums_with_two_roundings():
    rows = [(op.MUL, 1, 2), (op.ADD, 7, 3), (op.MUL, 1, 2), (op.SUB, 9, 3), (op.MUL, 1, 3),
            (op.SUB, 2, 11)]
    program = assemble(3, 0, [], rows, [8, 10, 12])
    plan = schedule(program)
    assert sorted(plan.run_op.tolist()) == [opcodes.MULADD, opcodes.MULSUB, opcodes.SUBMUL]
    x, y = 1.0 + 2.0**-30, -(1.0 + 2.0**-29)               # a fused product would give 2**-60
    assert machine.Machine(plan).values(0, [x, x, y], np.zeros(3))[0] == 0.0
    twice = assemble(3, 0, [], [(op.MUL, 1, 2), (op.ADD, 7, 3), (op.ADD, 7, 8)], [9])
    assert op.MUL in schedule(twice).run_op                # a product used twice stays


# --- what is computed when --------------------------------------------------------------------

# slots: 0 constant 2, 1 t, 2 y, 3 yp, 4 arg, then arg * 2, sin(t), y * (arg * 2), ... + sin(t)
SPLIT = assemble(
    1, 1, [2.0],
    [(op.MUL, 4, 0), (op.SIN, 1), (op.MUL, 2, 5), (op.MUL, 7, 7), (op.DIV, 8, 6)], [9],
)
STATIC_SLOT, TIME_SLOT, POINT_SLOT = 5, 6, 7


def split_value(t, y, arg):
    return (2.0 * arg * y) ** 2 / math.sin(t)


def test_args_part_runs_once():
    runner = machine.Machine(schedule(SPLIT), [3.0])
    assert runner.values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)
    assert runner.slots[STATIC_SLOT] == 6.0
    runner.slots[STATIC_SLOT] = 8.0                       # as if the arg were 4
    for t, y in ((1.0, 0.5), (2.0, 0.25)):
        assert runner.values(t, [y], [0.0])[0] == split_value(t, y, 4.0)
    runner.set_args([3.0])
    assert runner.values(2.0, [0.5], [0.0])[0] == split_value(2.0, 0.5, 3.0)


def test_time_part_runs_once_for_every_time():
    runner = machine.Machine(schedule(SPLIT), [3.0])
    runner.values(1.0, [0.5], [0.0])
    runner.slots[TIME_SLOT] = 0.5
    assert runner.values(1.0, [0.25], [0.0])[0] == 2.25 / 0.5
    assert runner.values(2.0, [0.25], [0.0])[0] == split_value(2.0, 0.25, 3.0)
    assert runner.values(1.0, [0.25], [0.0])[0] == split_value(1.0, 0.25, 3.0)


def test_entries_go_on_from_the_values_of_the_same_point():
    # slots: t, y, yp, then y * y (the value), exp(y * y) (the entry)
    program = assemble(1, 0, [], [(op.MUL, 1, 1), (op.EXP, 3)], [3, 4])
    runner, fy = machine.Machine(schedule(program, 1), (), [0]), np.zeros(1)
    runner.values(0.0, [0.5], [0.0])
    runner.slots[3] = 0.0                                 # seen by the entries if they go on
    runner.entries_into(0.0, [0.5], [0.0], fy, fy)
    assert fy[0] == 1.0
    runner.entries_into(0.0, [1.0], [0.0], fy, fy)
    assert fy[0] == math.exp(1.0)
    runner.slots[3] = 0.0
    runner.entries_into(1.0, [1.0], [0.0], fy, fy)        # another time is another point
    assert fy[0] == math.exp(1.0)


def test_segments_of_a_program():
    plan = schedule(SPLIT)
    assert np.diff(plan.segment_start).tolist() == [1, 1, 2, 0, 0]
    assert plan.takes_t
    assert not plan.takes_yp


def test_tables_that_a_program_would_read_beyond_are_refused():
    good = replace(assemble(1, 0, [], [(op.TABLE, 1, 0)], [3]), tables=np.array([0.0, 1, 2, 5]))
    assert [b.new().values(0, [9.0], [0]).tolist() for b in backends(good)] == [[5.0]] * 2
    for tables, match in (([0, 1, 2], "not complete"), ([-1, 1, 2, 5], "no table at 0"),
                          ([0, 0, 2, 5], "no table at 0"), ([], "instruction 0 is not valid")):
        for backend in ("machine", "c"):
            with pytest.raises(ValueError, match=match):
                prepare(replace(good, tables=np.array(tables, float)), backend=backend)
    with pytest.raises(ValueError, match="instruction 0 is not valid"):
        prepare(replace(good, b=np.array([1], np.int32)))


def test_wrong_numbers_of_args_and_positions_are_refused():
    with pytest.raises(ValueError, match="1 args, got 2"):
        machine.Machine(schedule(SPLIT), [1.0, 2.0])
    with pytest.raises(ValueError, match="0 entries, but there are 1"):
        machine.Machine(schedule(SPLIT), [1.0], [0])
    with pytest.raises(ValueError, match="backend must be"):
        prepare(SPLIT, backend="fortran")
    with pytest.raises(ValueError, match="layout must be"):
        prepare(SPLIT, layout="diagonals")
    with pytest.raises(ValueError, match="not in a matrix of shape"):
        prepare(SYSTEM, 2, ([0, 0, 2], [0, 1, 1]), ENTRIES[1])


def test_entries_as_a_list():
    for backend in backends(SYSTEM, 2, *ENTRIES, layout="list"):
        fy, fyp = np.zeros(3), np.zeros(3)
        backend.new([4.0]).entries_into(0.3, [2.0, 3.0], [5.0, 7.0], fy, fyp)
        assert fy.tolist() == [-3.0, -2.0, 1.0]
        assert fyp.tolist() == [4.0, 1.0, 0.0]
        assert (backend.fy, backend.fyp) == ENTRIES


def test_memory_of_the_wrong_size_is_refused():
    for backend in backends(SYSTEM, 2, *ENTRIES):
        runner = backend.new([1.0])
        with pytest.raises(ValueError, match="expected 2 values"):
            runner.values(0.0, [1.0], [1.0, 2.0])
        with pytest.raises(ValueError, match="room for 4 numbers"):
            runner.entries_into(0.0, [1.0, 1.0], [1.0, 2.0], np.zeros(4), np.zeros(3))
        with pytest.raises(ValueError, match="does not fit"):
            backend.attach(new_state(3), [1.0])
        with pytest.raises(ValueError, match="does not fit"):
            backend.attach_events(new_state(2), [1.0])


# --- behind the core's seams ------------------------------------------------------------------


def new_state(n):
    return State(n, np.full(n, 1e-6), np.full(n, 1e-6))


# F = (arg * yp0 - y0 * y1, y1 - sin(t) + yp1): F_y = [[-y1, -y0], [0, 1]], F_y' = diag(arg, 1)
# slots: 0 constant 1, 1 t, 2-3 y, 4-5 yp, 6 arg, then the instructions from 7 on
SYSTEM = assemble(
    2, 1, [1.0],
    [(op.MUL, 6, 4), (op.MUL, 2, 3), (op.SUB, 7, 8), (op.SIN, 1), (op.SUB, 3, 10),
     (op.ADD, 11, 5), (op.NEG, 3), (op.NEG, 2)],
    [9, 12, 13, 14, 0, 6, 0],
)
ENTRIES = (([0, 0, 1], [0, 1, 1]), ([0, 1], [0, 1]))


def test_residual_and_jacobian_of_a_state():
    t, y, yp = 0.3, np.array([2.0, 3.0]), np.array([5.0, 7.0])
    for backend in backends(SYSTEM, 2, *ENTRIES):
        s = new_state(2)
        backend.attach(s, [4.0])
        assert s.fyp_known
        assert not s.python_residual
        probe.move_to(s, t, y, yp)
        status, r = probe.residual_at(s, t, y, yp)
        assert status == 0
        np.testing.assert_allclose(r, [4 * 5 - 6, 3 - math.sin(t) + 7], rtol=1e-15)
        _, fy, fyp = probe.jacobian_at(s, t, y, yp)
        assert fy.tolist() == [[-3.0, -2.0], [0.0, 1.0]]
        assert fyp.tolist() == [[4.0, 0.0], [0.0, 1.0]]
        backend.attach(s, [0.5])
        _, _, fyp = probe.jacobian_at(s, t, y, yp)
        assert fyp.tolist() == [[0.5, 0.0], [0.0, 1.0]]
        assert probe.residual_at(s, t, y, yp)[1][0] == 0.5 * 5 - 6


def test_non_finite_values_are_a_recoverable_failure():
    program = assemble(1, 0, [], [(op.SQRT, 1), (op.ADD, 2, 3)], [4])
    for backend in backends(program):
        s = new_state(1)
        backend.attach(s)
        assert probe.residual_at(s, 0.0, [-1.0], [0.0])[0] == tether._core.codes.NON_FINITE
        assert probe.residual_at(s, 0.0, [4.0], [0.0]) == (0, 2.0)


def test_events_and_constraints():
    program = assemble(2, 0, [1.0], [(op.MUL, 2, 2), (op.MUL, 3, 3), (op.ADD, 6, 7),
                                     (op.SUB, 8, 0), (op.ADD, 2, 2), (op.ADD, 3, 3)], [9, 10, 11])
    value_t = ctypes.CFUNCTYPE(None, ctypes.c_double, *[ctypes.c_void_p] * 3)
    for backend in backends(program, 1, ([0, 0], [0, 1]), layout="rows"):
        s = new_state(2)
        s.watch_events([0])
        backend.attach_events(s)
        s.array("y")[:] = [2.0, 3.0]
        assert events.evaluate_events(s) == 0
        assert s.array("g_old").tolist() == [12.0]
        s.array("y")[:] = [2.0, math.nan]
        assert events.evaluate_events(s) == tether._core.codes.UNCLEAR
        runner = backend.new()
        function, jacobian, data = runner.constraint_addresses()
        y, g, gy = np.array([2.0, 3.0]), np.zeros(1), np.full(2, np.nan)
        value_t(function)(0.0, y.ctypes.data, g.ctypes.data, data)
        value_t(jacobian)(0.0, y.ctypes.data, gy.ctypes.data, data)
        assert g.tolist() == [12.0]
        assert gy.tolist() == [4.0, 6.0]


def test_threads_share_a_plan_but_not_a_memory():
    rng = np.random.default_rng(5)
    program = random_program(rng, 300, EXACT, n=4)
    plan = schedule(program)
    points = rng.standard_normal((4, 200, 4))
    expected = [[machine.Machine(plan, [1, 2]).values(0.5, y, y) for y in part] for part in points]
    found = [None] * 4

    def work(k):
        runner = machine.Machine(plan, [1, 2])
        found[k] = [runner.values(0.5, y, y) for y in points[k]]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(found, expected)


# --- whole integrations -------------------------------------------------------------------------


class RunOf(Integration):
    """A run of a problem, or of a backend in its place."""

    def __init__(self, problem, y0, yp0, options, t_end, backend=None):
        self.backend = backend
        super().__init__(problem, 0.0, y0, yp0, {**options, "trace": "never"}, t_bound=t_end)

    def _find_model(self, t, y, yp):
        model = super()._find_model(t, y, yp)
        if self.backend is not None:
            model.attach = self.backend.attach
        return model

    @property
    def counts(self):
        return [getattr(self.state, name) for name in ("steps", "nfev", "njev", "nlu")]


def solve(problem, given, backend=None, rtol=1e-6):
    """Integrate a problem of the gallery."""
    options = {"rtol": rtol, "atol": rtol * given.atol_scale}
    run = RunOf(problem, given.y0, given.yp0, options, given.t_span[1], backend)
    while run.status == Status.RUNNING:
        run.advance(1000)
    assert run.status == Status.REACHED_END
    return run


@pytest.mark.parametrize("name", ["robertson", "pend-i1", "akzo", "transamp", "caraxis-i1"])
def test_programs_integrate_as_callbacks_do(name):
    """With the same Jacobian in Python the same steps are made."""
    given = gallery.get(name)
    traced = trace(given.fun, given.n)
    made = backends_of(traced)
    runner = made[0].new()

    def jacobian(t, y, yp):
        fy, fyp = np.zeros(given.n**2), np.zeros(given.n**2)
        runner.entries_into(t, y, yp, fy, fyp)
        return fy.reshape(given.n, -1).T, fyp.reshape(given.n, -1).T

    by_runner = solve(Problem(lambda t, y, yp: runner.values(t, y, yp), jac=jacobian), given)
    by_python = solve(Problem(given.fun, jac=jacobian), given)
    for backend in made:
        found = solve(Problem(given.fun), given, backend)
        assert found.counts == by_runner.counts
        np.testing.assert_array_equal(found.y, by_runner.y)
        # the residual as written differs in its last digits
        assert abs(found.state.steps - by_python.state.steps) <= 0.02 * by_python.state.steps
        assert given.digits(found.y) > 3


def backends_of(traced):
    made = [prepare_system(traced, backend="machine")]
    if find_compiler() is not None:
        made.append(prepare_system(traced, backend="c"))
        assert made[1].name == "c", made[1].reason
    return made


def test_an_exact_jacobian_needs_fewer_residuals():
    given = gallery.get("akzo")
    exact = solve(Problem(given.fun), given, prepare_system(trace(given.fun, given.n)))
    differenced = solve(Problem(given.fun), given)
    assert exact.state.nfev < differenced.state.nfev
    assert exact.state.steps < 1.1 * differenced.state.steps


def test_other_threads_run_meanwhile():
    """The machine runs without the GIL: a thread counts while the steps are made."""
    given = gallery.get("trivial")
    backend = prepare_system(trace(given.fun, given.n))
    options = {"rtol": 1e-9, "atol": 1e-9}
    run = RunOf(Problem(given.fun), given.y0, given.yp0, options, 1e9, backend)
    ticks, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ticks[0] += 1
            stop.wait(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        while ticks[0] < 1:
            pass
        before = ticks[0]
        run.advance(500_000)
        after = ticks[0]
    finally:
        stop.set()
        thread.join()
    assert after - before > 2


def test_steps_allocate_no_python_memory():
    given = gallery.get("trivial")
    backend = prepare_system(trace(given.fun, given.n))
    options = {"rtol": 1e-8, "atol": 1e-8}
    run = RunOf(Problem(given.fun), given.y0, given.yp0, options, 1e6, backend)
    run.advance(1000)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        run.advance(20_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak - before < 2_000


@pytest.mark.parametrize("row", [(op.ADD, 1), (op.ADD, 1, 9), (op.SIN, -1), (99, 1, 1),
                                 (op.SELECT, 1, 1), (op.SIN, 3), (op.NEG, 1, 2)])
def test_a_wrong_program_is_refused(row):
    for backend in ("machine", "c"):
        with pytest.raises(ValueError, match="instruction 0 is not valid"):
            prepare(assemble(1, 0, [], [row], [3]), backend=backend)
        with pytest.raises(ValueError, match="output"):
            prepare(assemble(1, 0, [], [], [3]), backend=backend)


TWIN = """
import json, sys
import numpy as np
sys.path[:0] = [{tests!r}, {tests!r} + "/core"]
import tether._core.machine
from test_machine import EDGES, EXACT, every_operation, random_program, assemble
from tether.trace import opcodes as op
from tether.trace.backend import prepare

found = []
program, codes = every_operation()
runner = prepare(program).new()
for x in EDGES:
    for y in EDGES:
        found += runner.values(0.0, [x, y, 1.0], np.zeros(3)).tolist()
for seed in range(20):
    rng = np.random.default_rng(seed)
    program = random_program(rng, 80, [*EXACT, op.POWI, op.TABLE])
    runner = prepare(program, 3, ([0, 1], [0, 2]), ([2], [1]), backend="c").new([0.5, -2.0])
    fy, fyp = np.zeros(9), np.zeros(9)
    for t in (0.0, 1.0):
        y, yp = rng.standard_normal(3), rng.standard_normal(3)
        found += runner.values(t, y, yp).tolist()
        runner.entries_into(t, y, yp, fy, fyp)
        found += fy.tolist() + fyp.tolist()
print(json.dumps([tether._core.machine.__file__, [float(x).hex() for x in found]]))
"""


def test_compiled_machine_equals_interpreted_machine(tmp_path):
    pytest.importorskip("Cython")
    shutil.copytree(Path(tether.__file__).parent, tmp_path / "tether",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    results = []
    for path in (tmp_path, Path(tether.__file__).parent.parent):
        code = TWIN.format(tests=str(ROOT / "tests"))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], cwd=path, capture_output=True,
            text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(path), "PATH": ""},
        )
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout))
    assert results[0][0].endswith(".py")
    assert not results[1][0].endswith(".py")
    assert len(results[0][1]) > 10_000
    assert results[0][1] == results[1][1]


# --- the cache of compiled programs -----------------------------------------------------------


def libraries(cache):
    return sorted(cache.glob("*/*.so"))


@needs_compiler
def test_a_program_is_compiled_once(empty_cache, monkeypatch):
    with pytest.raises(NotCompiled, match="not in the cache"):
        compile_program(SPLIT, only_cached=True)
    first = compile_program(SPLIT)
    assert libraries(empty_cache) == [first.path]
    monkeypatch.setattr(subprocess, "run", None)
    assert compile_program(SPLIT).path == first.path
    assert compile_program(SPLIT, only_cached=True).path == first.path


@needs_compiler
def test_a_damaged_library_is_made_anew(empty_cache):
    path = compile_program(SPLIT).path
    good = path.read_bytes()
    path.unlink()                                         # the loaded one stays as it is
    for damaged in (b"", b"not a library", good[: len(good) // 2], good[:-1] + b"x"):
        path.write_bytes(damaged)
        made = prepare(SPLIT, backend="c")
        assert made.name == "c"
        assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)
        assert libraries(empty_cache) == [path]
        assert path.read_bytes() == good
        path.unlink()


@needs_compiler
def test_processes_may_compile_the_same_program_at_once(empty_cache):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests" / "core")!r})
from test_machine import SPLIT, prepare, split_value
made = prepare(SPLIT, backend="c")
assert made.name == "c", made.reason
assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)
"""
    processes = [start_python(code) for _ in range(6)]
    for process in processes:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    assert len(libraries(empty_cache)) == 1
    assert [entry for entry in empty_cache.iterdir() if entry.name.startswith("build")] == []


@pytest.mark.parametrize("reason", ["no C compiler found", "did not compile", "too many"])
def test_without_c_the_machine_does_the_work(reason, empty_cache, monkeypatch, tmp_path):
    if reason == "no C compiler found":
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("CC", raising=False)
    elif reason == "did not compile":
        failing = tmp_path / "failing"
        failing.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
        failing.chmod(0o755)
        monkeypatch.setenv("CC", str(failing))
    else:
        monkeypatch.setattr(compile_c, "LARGEST", 3)
        monkeypatch.setattr(compile_c, "find_compiler", lambda: "cc")
    made = prepare(SPLIT, backend="c")
    assert made.name == "machine"
    assert reason in made.reason
    assert made.new([3.0]).values(1.0, [0.5], [0.0])[0] == split_value(1.0, 0.5, 3.0)


@needs_compiler
def test_an_impossible_cache_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TETHER_CACHE", str(tmp_path / "file" / "below"))
    made = prepare(SPLIT, backend="c")
    assert made.name == "c", made.reason
    assert str(compile_program(SPLIT).path).startswith(str(library_cache.private_folder()))


@needs_compiler
def test_old_libraries_go_and_nothing_else(empty_cache, monkeypatch):
    monkeypatch.setattr(library_cache, "MOST_KEPT", 2)
    empty_cache.mkdir()
    (empty_cache / "notes").mkdir()
    for constant in range(4):
        program = assemble(1, 0, [float(constant)], [(op.ADD, 0, 2)], [4])
        newest = compile_program(program).path
        os.utime(newest.parent, (constant, constant))
    assert (empty_cache / "notes").exists()
    assert len(libraries(empty_cache)) == 2
    assert newest.exists()


def test_the_cache_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv("TETHER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert library_cache.cache_folder() == tmp_path / "tether"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert library_cache.cache_folder() == tmp_path / "home" / ".cache" / "tether"


def test_a_short_run_is_not_worth_a_compiler():
    program = random_program(np.random.default_rng(0), 300, EXACT)
    assert not compile_c.worth_compiling(program, 1e3)
    assert not compile_c.worth_compiling(program, 2e5)
    assert compile_c.worth_compiling(program, 1e7)


@needs_compiler
def test_auto_takes_a_library_that_is_there(empty_cache, monkeypatch):
    monkeypatch.setattr(library_cache, "_KEEPERS", [])        # as in a new process
    made = prepare(SPLIT, backend="auto")
    assert (made.name, made.reason) == ("machine", "")
    assert not empty_cache.exists()                       # looking leaves nothing behind
    assert prepare(SPLIT, backend="c").name == "c"
    assert prepare(SPLIT, backend="auto").name == "c"
    assert prepare(SPLIT).name == prepare(SPLIT, backend="machine").name == "machine"


@needs_compiler
def test_another_compiler_or_translation_is_another_library(empty_cache, monkeypatch, tmp_path):
    first = compile_program(SPLIT).path
    monkeypatch.setattr(compile_c, "translator", lambda: "another")
    second = compile_program(SPLIT).path
    other = tmp_path / "cc"
    other.write_text(f'#!/bin/sh\nexec {find_compiler()} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))
    assert len({first, second, compile_program(SPLIT).path}) == 3


def run_of(backend):
    def fun(t, y, yp):
        return [yp[0] + y[0] ** 2]

    return tether.solve_dae(fun, (0.0, 1.0), [1.0], options={"backend": backend})


def test_the_result_says_what_ran_the_program(empty_cache, monkeypatch):
    shelf.empty()
    assert run_of("machine").how == "traced, as written; run by the machine"
    assert run_of("auto").how == "traced, as written; run by the machine"
    if find_compiler() is not None:
        assert run_of("c").how == "traced, as written; run in C"
        shelf.empty()
        assert run_of("auto").how == "traced, as written; run in C"      # it is there
        assert run_of("machine").how == "traced, as written; run by the machine"
    shelf.empty()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    for _ in range(2):
        how = run_of("c").how
        assert how.startswith("traced, as written; run by the machine, not in C: no C compiler")
    assert run_of("auto").how == "traced, as written; run by the machine"
