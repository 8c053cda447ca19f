"""The table of operations: complete, and of one mind."""

import math

import numpy as np
import pytest

from tether._core import opcodes
from tether.trace import opcodes as op
from tether.trace.operations import ARITY, NAMES, OPERATIONS

IN_PROGRAMS = sorted(code for code in NAMES if code >= 0)
POINTS = [-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 2.0, 7.5]


def test_every_operation_of_the_core_is_in_the_table():
    of_core = range(opcodes.SPECIAL + 1)
    assert sorted(code for code in OPERATIONS if code >= 0) == list(of_core) == IN_PROGRAMS
    assert set(OPERATIONS) | op.LEAVES == set(NAMES) == set(ARITY)


@pytest.mark.parametrize("code", IN_PROGRAMS, ids=NAMES.get)
def test_numbers_and_arrays_agree(code):
    operation = OPERATIONS[code]
    if operation.value is None or operation.array is None:
        assert code in (op.NEG, op.AND, op.OR, op.NOT, op.SELECT, op.POWI, op.SPECIAL, op.TABLE)
        return
    for x in POINTS:
        for operands in [(x,)] if operation.arity == 1 else [(x, y) for y in POINTS]:
            try:
                expected = operation.value(*operands)
            except (ValueError, ZeroDivisionError, OverflowError):
                continue
            with np.errstate(all="ignore"):
                found = operation.array(*map(np.float64, operands))
            assert math.isclose(found, expected, rel_tol=1e-14, abs_tol=1e-15), operands


@pytest.mark.parametrize("code", IN_PROGRAMS, ids=NAMES.get)
def test_every_operation_has_its_text_in_c(code):
    # a power is written out for each exponent, and special functions are not compiled
    if code not in (op.POWI, op.SPECIAL):
        text = OPERATIONS[code].c
        assert [name for name in "abc" if f"{{{name}}}" in text] == list(
            "abc"[: 2 if code == op.TABLE else ARITY[code]]
        )


@pytest.mark.parametrize("code", IN_PROGRAMS, ids=NAMES.get)
def test_parity_is_true(code):
    operation = OPERATIONS[code]
    if operation.parity:
        for x in (0.2, 0.7):
            assert operation.value(-x) == operation.parity * operation.value(x)
