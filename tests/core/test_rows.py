"""Templates that run over many rows: every operation, and the interpreted twin."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.programs import EDGES, every_operation, random_program

import tether
from tether._core.rows import Rows
from tether.trace import opcodes as op
from tether.trace.array_tracer import trace_arrays
from tether.trace.backend import prepare
from tether.trace.templates import fold_program

N = 300                                # more than two blocks


def test_every_operation_gives_the_bits_of_the_machine():
    program, _ = every_operation()
    table = fold_program(program, len(program.outputs), ((), ()), ((), ()))
    machine, rows = prepare(program).new(), Rows(table)
    draw = np.random.default_rng(1)
    points = [(x, y, 5.0) for x in EDGES for y in EDGES]
    points += [tuple(3.0 * draw.standard_normal(3)) for _ in range(50)]
    for point in points:
        found, expected = (r.values(0.0, point, np.zeros(3)) for r in (rows, machine))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_give_the_bits_of_the_machine(seed):
    draw = np.random.default_rng(seed)
    codes = [op.ADD, op.SUB, op.MUL, op.SELECT, op.LT, op.POWI, op.TABLE]
    program = random_program(draw, 80, codes)
    places = ([0, 1], [0, 2]), ([2], [1])
    args = [0.5, -2.0]
    machine = prepare(program, 3, *places).new(args)
    machine.place([0, 1], [0])
    rows = Rows(fold_program(program, 3, *places), args)
    for t in (0.0, 1.0):
        y, yp = draw.standard_normal((2, 3))
        np.testing.assert_array_equal(rows.values(t, y, yp), machine.values(t, y, yp))
        found = np.zeros((2, 2, 2))
        rows.entries_into(t, y, yp, *found[0])
        machine.entries_into(t, y, yp, *found[1])
        np.testing.assert_array_equal(found[0], found[1])


VECTORS = {
    "sum": np.add, "difference": np.subtract, "product": np.multiply, "quotient": np.divide,
    "by a constant": lambda a, b: a / 0.3 - b * 0.7, "root": lambda a, b: np.sqrt(a) + b,
    "product and sum": lambda a, b: a * b + a, "product and difference": lambda a, b: a * b - b,
    "difference and product": lambda a, b: a - a * b, "size": lambda a, b: np.abs(a) - b,
    "smaller": np.minimum, "larger": np.maximum, "steps": lambda a, b: np.floor(a) + np.ceil(b),
    "sign": lambda a, b: np.sign(a) * b, "choice": lambda a, b: np.where(a < b, a, -b),
}


@pytest.mark.parametrize("name", VECTORS)
def test_many_rows_give_the_bits_of_numpy(name):
    operation = VECTORS[name]

    def fun(t, y, yp):
        return np.concatenate([operation(y[:N], y[N:]), yp[N:]])

    rows = Rows(trace_arrays(fun, 2 * N).table)
    draw = np.random.default_rng(3)
    y, yp = draw.standard_normal((2, 2 * N)) * 10.0 ** draw.integers(-9, 9, (2, 2 * N))
    edges = np.array([(x, z) for x in EDGES for z in EDGES])[:N]
    y[: len(edges)], y[N : N + len(edges)] = edges.T
    with np.errstate(all="ignore"):
        expected = fun(0.0, y, yp)
    found = rows.values(0.0, y, yp)
    np.testing.assert_array_equal(found, expected)
    if name not in ("smaller", "larger"):            # of two zeros, NumPy may take either
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("width", [3, 17, 40, 127, 128, 129, 200])
def test_inputs_in_runs_give_the_bits_of_numpy(width):
    lines = 1000 // width + 2

    def fun(t, y, yp):
        u = np.pad(y.reshape(lines, width), 1, mode="edge")
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] - u[1:-1, :-2]
        return yp - around.ravel() * y[::-1]

    n = lines * width
    table = trace_arrays(fun, n).table
    y, yp = np.random.default_rng(width).standard_normal((2, n))
    np.testing.assert_array_equal(Rows(table).values(0.5, y, yp), fun(0.5, y, yp))
    # in long runs, no place is listed: only those from the last to the first
    assert (len(table.index) < 1.5 * n + 300) == (width >= 40)


def test_memory_that_is_too_small_is_refused():
    rows = Rows(trace_arrays(lambda t, y, yp: yp + y * y, N).table)
    y, short = np.zeros(N), np.zeros(N - 1)
    with pytest.raises(ValueError, match="numbers"):
        rows.values_into(0.0, y, y, short)
    with pytest.raises(ValueError, match="numbers"):
        rows.entries_into(0.0, y, short, y, y)
    with pytest.raises(ValueError, match="room"):
        rows.entries_into(0.0, y, y, y, short)
    with pytest.raises(ValueError, match="positions"):
        rows.place(np.arange(3), np.arange(N))
    with pytest.raises(ValueError, match="args"):
        rows.set_args([1.0])


TWIN = """
import json
import numpy as np
import tether._core.rows
from tether._core.rows import Rows
from tether.trace.array_tracer import trace_arrays

def fun(t, y, yp):
    u = np.pad(y, 1)
    flux = np.sqrt(1.0 + u[1:] ** 2) * np.diff(u)
    r = yp - np.diff(flux) + t * y[::-1] + np.arange(300.0) * 0.01
    r[::7] = y[::7] - 1.0
    return r + y.sum() * 1e-3

rows = Rows(trace_arrays(fun, 300).table)
y, yp = np.linspace(0.5, 2.0, 300), np.linspace(-1.0, 1.0, 300)
entries = np.zeros((2, rows.reach))
rows.entries_into(0.3, y, yp, *entries)
found = [*rows.values(0.3, y, yp), *entries.ravel()]
print(json.dumps([tether._core.rows.__file__, [float(x).hex() for x in found]]))
"""


def test_compiled_rows_equal_interpreted_rows(tmp_path):
    pytest.importorskip("Cython")
    shutil.copytree(Path(tether.__file__).parent, tmp_path / "tether",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__"))
    results = []
    for path in (Path(tether.__file__).parent.parent, tmp_path):
        done = subprocess.run(
            [sys.executable, "-c", TWIN], capture_output=True, text=True, check=True,
            env=os.environ | {"PYTHONPATH": str(path)}, cwd=tmp_path.parent,
        )
        results.append(json.loads(done.stdout))
    (compiled, ours), (interpreted, theirs) = results
    assert not compiled.endswith(".py")
    assert interpreted.endswith(".py")
    assert ours == theirs
