"""The machine that runs traced programs: operations, segments, what is computed when."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import ROOT
from support.programs import (
    BINARY,
    EDGES,
    EXACT,
    SPLIT,
    STATIC_SLOT,
    TIME_SLOT,
    UNARY,
    assemble,
    backends,
    every_operation,
    random_program,
    reference,
    split_value,
)

import tether
from tether._core import machine, opcodes
from tether._core.schedule import schedule
from tether.trace import opcodes as op
from tether.trace.backend import prepare
from tether.trace.operations import NAMES

SOURCES = ROOT / "src" / "tether"


# --- operations -----------------------------------------------------------------------------


def test_opcodes_are_the_same_everywhere():
    def in_c(folder):
        text = (folder / "opcodes.pxd").read_text(encoding="utf-8")
        found = re.findall(r"^    (\w+) = (-?\d+)$", text, re.M)
        return {name: int(value) for name, value in found}

    interpreted = {name: value for name, value in vars(opcodes).items() if name.isupper()}
    assert in_c(SOURCES / "_core") == interpreted
    leaves = {name: code for code, name in NAMES.items() if code < 0}
    assert in_c(SOURCES / "trace") == leaves        # all others are the core's
    traced = {name: code for code, name in NAMES.items() if code >= 0}
    assert traced == {name: interpreted[name] for name in traced}
    assert len(traced) == 44
    numbered = [op.POWI, op.SELECT, op.SPECIAL, op.TABLE]
    assert set(UNARY + BINARY + numbered) == set(traced.values())


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


# --- what is computed when --------------------------------------------------------------------


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


# --- the interpreted twin ---------------------------------------------------------------------

TWIN = """
import json, sys
import numpy as np
sys.path.insert(0, {tests!r})
import tether._core.machine
from support.programs import EDGES, EXACT, every_operation, random_program, assemble
from tether.trace import opcodes as op
from tether.trace.backend import prepare
from tether.trace.operations import NAMES

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
