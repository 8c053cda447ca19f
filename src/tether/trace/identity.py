"""Tests by ``is`` in the code of a function: which of them a trace can answer.

``is`` cannot be intercepted at run time. A traced number is a different object from the number it
stands for, which is mostly harmless: names and containers keep the object that is put into them.
But True and False are unique objects, which traced conditions are not, and `min` returns one of
its operands.
"""

from __future__ import annotations

import builtins
import dis
import functools
import types
from typing import Any

import numpy as np

_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
_KEEPING = (*_NAMES, "LOAD_ATTR", "LOAD_METHOD", "BINARY_SUBSCR")
_SKIPPED = ("CACHE", "EXTENDED_ARG", "PUSH_NULL", "NOP", "RESUME", "COPY", "NOT_TAKEN")
_IS_OP = dis.opmap["IS_OP"]
_UNKNOWN = object()

HARMLESS, OF_NAMES, OF_CONDITIONS = range(3)


def identity_tests(function: types.FunctionType) -> int:
    """Return the worst kind of test by ``is`` in a function.

    HARMLESS if all of them compare with something that is never a number, such as None or a class;
    OF_NAMES if some compare what names or containers hold; OF_CONDITIONS if some compare with True
    or False, or with the value of an expression.
    """
    if not _has_tests(function.__code__):
        return HARMLESS
    values = dict(vars(builtins))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            values[name] = _UNKNOWN
    return _worst(function.__code__, values, function.__globals__)


def _has_tests(code: types.CodeType) -> bool:
    return _IS_OP in code.co_code[::2] or any(
        _has_tests(part) for part in code.co_consts if isinstance(part, types.CodeType)
    )


def _worst(code: types.CodeType, values: dict[str, Any], names: dict[str, Any]) -> int:
    worst = HARMLESS
    steps = _steps(code)
    for i, step in enumerate(steps):
        if step.opname == "IS_OP":
            worst = max(worst, _kind_of_test(steps[:i], values, names))
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            worst = max(worst, _worst(part, values, names))
    return worst


@functools.lru_cache(64)
def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in _SKIPPED]


def _kind_of_test(steps: list[dis.Instruction], values: dict, names: dict) -> int:
    if _asks_for_class(steps):
        return HARMLESS
    right, left_end = _operand(steps, values, names)
    if right is not _UNKNOWN:
        if isinstance(right, (bool, np.bool_, float, int, np.ndarray)):
            return OF_CONDITIONS
        if right in (float, np.float64) if isinstance(right, type) else False:
            asked = steps[left_end - 1]
            return OF_CONDITIONS if asked.argval == "__class__" else HARMLESS
        return HARMLESS
    if left_end is not None:
        left, _ = _operand(steps[:left_end], values, names)
        if left is not _UNKNOWN and not isinstance(left, (bool, np.bool_, float, int, np.ndarray)):
            return HARMLESS
    last = steps[-1].opname
    keeps = last in _KEEPING or last.startswith("LOAD_FAST")
    return OF_NAMES if keeps else OF_CONDITIONS


def _asks_for_class(steps: list[dis.Instruction]) -> bool:
    """Tell whether the last operand is ``x.__class__`` or ``type(x)``; traced numbers refuse it."""
    if steps[-1].opname == "LOAD_ATTR":
        return steps[-1].argval == "__class__"
    called = [step for step in steps if step.opname != "PRECALL"]
    return called[-1].opname == "CALL" and any(
        step.opname == "LOAD_GLOBAL" and step.argval == "type" for step in called[-5:-1]
    )


def _operand(steps: list[dis.Instruction], values: dict, names: dict) -> tuple[Any, Any]:
    """Value of the operand that the last steps load, and where these begin, as far as known."""
    attributes: list[str] = []
    end = len(steps)
    while end and steps[end - 1].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        attributes.append(steps[end - 1].argval)
        end -= 1
    if not end:
        return _UNKNOWN, None
    first = steps[end - 1]
    if first.opname.startswith("LOAD_FAST") or first.opname in ("LOAD_CONST", *_NAMES):
        begin = end - 1
    else:
        return _UNKNOWN, None
    if first.opname == "LOAD_CONST":
        value = first.argval
    elif first.opname in _NAMES and first.argval in names:
        value = names[first.argval]
    elif first.opname in _NAMES:
        value = values.get(first.argval, _UNKNOWN)
    else:
        return _UNKNOWN, begin
    for name in reversed(attributes):
        if not isinstance(value, (type, types.ModuleType)):
            return _UNKNOWN, begin
        value = getattr(value, name, _UNKNOWN)
    return value, begin
