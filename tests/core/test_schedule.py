"""How a program is arranged for the machine."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import EXACT, SPLIT, assemble, random_program

from tether._core import machine, opcodes
from tether._core.schedule import schedule
from tether.trace import opcodes as op

# --- random programs ------------------------------------------------------------------------


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


def test_segments_of_a_program():
    plan = schedule(SPLIT)
    assert np.diff(plan.segment_start).tolist() == [1, 1, 2, 0, 0]
    assert plan.takes_t
    assert not plan.takes_yp
