"""What is read off bytecode directly is what `dis` says."""
import argparse
import ast
import contextlib
import dis
import functools
import gc
import inspect
import types

import numpy as np
import pytest

from tether.trace import cache_key, tracer
from tether.trace import code as facts
from tether.trace.code import facts_of

MODULES = [argparse, ast, contextlib, functools, inspect, facts, tracer, np.linalg._linalg]


def functions(module):
    """List the code of all functions of a module, with those inside others."""
    found = [x.__code__ for x in vars(module).values() if isinstance(x, types.FunctionType)]
    classes = [x for x in vars(module).values() if isinstance(x, type)]
    found += [x.__code__ for cls in classes for x in vars(cls).values()
              if isinstance(x, types.FunctionType)]
    return [part for code in found for part in facts._nested(code)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_operations_and_names_are_those_of_dis(module):
    codes = functions(module)
    assert len(codes) > 5
    for code in codes:
        expected = [
            (step.opname, step.argval) for step in dis.get_instructions(code)
            if step.opname in facts._NOTABLE.values()
        ]
        found = [(name, code.co_names[place] if name in facts._NAMING else None)
                 for name, place in facts.notable(code)]
        assert [name for name, _ in found] == [name for name, _ in expected]
        assert [name for x, name in found if x in facts._NAMING] == [
            name for x, name in expected if x in facts._NAMING]


def test_many_names_need_longer_arguments():
    text = "def f():\n    return [" + ", ".join(f"name_{i}" for i in range(400)) + "]\n"
    space = {}
    exec(text, space)
    found = facts.facts_of(space["f"].__code__)
    assert found.globals_read == tuple(f"name_{i}" for i in range(400))


def test_what_is_known_of_code_is_forgotten_with_it(monkeypatch):
    from tether.trace import code, reading

    def sizes():
        known = code._facts, code._references, reading._too_large, tracer._not_compared
        return [len(entries) for entries in known]

    monkeypatch.setattr("tether.trace.cache._MOST_PARTS", 5000)
    much = [[float(i)] for i in range(20_000)]
    before = sizes()
    for i in range(50):
        space = {"much": much if i % 2 else 1.0}
        exec(f"def fun(t, y, yp):\n    return [yp[0] + y[0] * {i} + (much is None)]", space)
        assert (cache_key(space["fun"], 1) is None) == bool(i % 2)
        assert "much" in facts_of(space["fun"].__code__).names
        assert ("much" in tracer.why_not_compared(space["fun"])) == bool(i % 2)
        space.clear()
    gc.collect()                     # an exception and its frame refer to each other
    assert all(now <= then for now, then in zip(sizes(), before, strict=True))
