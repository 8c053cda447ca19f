"""Names of the unknowns, read off the way the function unpacks them."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Iterator
from typing import Any


def code_of(fun: Any) -> types.CodeType | None:
    """Code in which a function unpacks its unknowns; it keeps no data of the function's alive."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = getattr(fun, "py_func", fun)
    if not (inspect.isfunction(fun) or inspect.ismethod(fun)):
        fun = vars(type(fun)).get("__call__", fun)
    code = getattr(fun, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def guess_names(code: types.CodeType | None, n: int) -> list[str]:
    """Names of y as in ``x, z = y`` or ``x = y[0]``; ``y[0]`` and so on where there are none.

    Examples
    --------
    >>> from tether.trace.naming import code_of, guess_names
    >>> guess_names(code_of(lambda t, y, yp: [yp[0] + y[0]]), 1)
    ['y[0]']
    """
    names = [f"y[{j}]" for j in range(n)]
    definition, argument = _definition(code)
    if definition is None:
        return names
    found: dict[int, str] = {}
    for target, value in _assignments(definition):
        for j, name in _names(target, value, argument, n):
            found.setdefault(j, name)
    unique = list(found.values())
    for j, name in found.items():
        if unique.count(name) == 1:
            names[j] = name
    return names


def _definition(code: types.CodeType | None) -> tuple[ast.AST | None, str]:
    """Syntax tree of the function and its name for y."""
    if code is None:
        return None, ""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except Exception:        # the file may hold anything by now
        return None, ""
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, ast.FunctionDef):
        return None, ""
    arguments = [a.arg for a in definition.args.posonlyargs + definition.args.args]
    if arguments[:1] == ["self"]:
        arguments = arguments[1:]
    return (definition, arguments[1]) if len(arguments) > 1 else (None, "")


def _assignments(definition: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                yield from zip(target.elts, value.elts, strict=False)
            else:
                yield target, value


def _names(
    target: ast.expr, value: ast.expr, argument: str, n: int
) -> Iterator[tuple[int, str]]:
    places = _places(value, argument, n)
    targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    if places is None or len(places) != len(targets):
        return
    for j, part in zip(places, targets, strict=True):
        if isinstance(part, ast.Name) and part.id != "_":
            yield j, part.id


def _places(value: ast.expr, argument: str, n: int) -> list[int] | None:
    """Components that ``y``, ``y[2]`` or ``y[:3]`` mean."""
    if isinstance(value, ast.Name) and value.id == argument:
        return list(range(n))
    if not (isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name)):
        return None
    if value.value.id != argument:
        return None
    try:
        places = range(n)[_index(value.slice)]
    except (ValueError, IndexError):
        return None
    return [places] if isinstance(places, int) else list(places)


def _index(node: ast.expr) -> Any:
    """Value of an index or slice that is written with numbers only."""
    if isinstance(node, ast.Slice):
        return slice(*(x and ast.literal_eval(x) for x in (node.lower, node.upper, node.step)))
    index = ast.literal_eval(node)
    if not isinstance(index, int):
        raise ValueError(index)
    return index
