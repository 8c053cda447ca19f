"""Read off the source of a function: names of the unknowns, and the line of a value."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
import textwrap
import traceback
import types
from collections.abc import Iterator
from typing import Any

# Functions whose names are kept, with the lines of the file that they were read from.
MOST_KNOWN = 256
_known: dict[Any, tuple[list[str], tuple[str, ...]]] = {}


def code_of(fun: Any) -> types.CodeType | None:
    """Code object in which a function unpacks its unknowns; it holds none of the user's data."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = getattr(fun, "py_func", fun)
    if not (inspect.isfunction(fun) or inspect.ismethod(fun)):
        fun = vars(type(fun)).get("__call__", fun)
    code = getattr(fun, "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def guess_names(
    code: types.CodeType | None, n: int, argument: int = 1, first: int = 0
) -> list[str]:
    """Names of y as in ``x, z = y`` or ``x = y[0]``; ``y[0]`` and so on where there are none.

    If an argument of the function holds only some of the unknowns, `argument` is its position and
    `first` the number of the first of the n unknowns in it.

    Examples
    --------
    >>> from tether.problem.naming import code_of, guess_names
    >>> guess_names(code_of(lambda t, y, yp: [yp[0] + y[0]]), 1)
    ['y[0]']
    """
    lines = [] if code is None else linecache.getlines(code.co_filename)
    key = code, n, argument, first
    known = _known.get(key)
    if known is not None and known[0] is lines:
        return list(known[1])
    names = _guessed(code, n, argument, first)
    if lines:                                  # which are another list when the file has changed
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        _known[key] = lines, tuple(names)
    return names


def _guessed(code: types.CodeType | None, n: int, argument: int, first: int) -> list[str]:
    names = [f"y[{first + j}]" for j in range(n)]
    definition, called = _definition(code, argument)
    if definition is None:
        return names
    found: dict[int, str] = {}
    for target, value in _assignments(definition):
        for j, name in _names(target, value, called, n):
            found.setdefault(j, name)
    unique = list(found.values())
    for j, name in found.items():
        if unique.count(name) == 1:
            names[j] = name
    return names


def _definition(code: types.CodeType | None, argument: int = 1) -> tuple[ast.AST | None, str]:
    """Syntax tree of the function, and its name for one of its arguments (by default y)."""
    if code is None:
        return None, ""
    try:
        tree = ast.parse(textwrap.dedent(_text(code)))
    except Exception:        # the file may hold anything by now
        return None, ""
    definition = tree.body[0] if tree.body else None
    if not isinstance(definition, ast.FunctionDef):
        return None, ""
    arguments = [a.arg for a in definition.args.posonlyargs + definition.args.args]
    if definition.name != code.co_name or tuple(arguments) != code.co_varnames[: len(arguments)]:
        return None, ""      # the file has changed since the function was made
    if arguments[:1] == ["self"]:
        arguments = arguments[1:]
    return (definition, arguments[argument]) if len(arguments) > argument else (None, "")


def _text(code: types.CodeType) -> str:
    """Source of a function; `inspect` alone would search all modules for its file."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return inspect.getsource(code)
    return "".join(inspect.getblock(lines[code.co_firstlineno - 1 :]))


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


# --- where a value or an error comes from -------------------------------------------------------

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Files of the package that call or wrap the user's functions.
_OWN_FILES = tuple(os.path.join(_PACKAGE, name) for name in ("trace", "_core", "structure"))
_OWN_FILES += tuple(
    os.path.join(_PACKAGE, name + ".py") for name in ("problem", "constraints", "model")
)


def place_of_value(fun: Any, row: int | None = None) -> str:
    """File and line where a value of a function is written; empty if that is not known.

    With `row` it is the line of one of several values, if they are returned as a list or set in
    ``out``; if that is not known, the line at which the function begins.
    """
    code = code_of(fun)
    if code is None or code.co_filename.startswith(_OWN_FILES):
        return ""
    definition, _ = _definition(code)
    line = code.co_firstlineno
    if definition is not None:
        line += _line_of_value(definition, row) - 1
    return _place(code.co_filename, line)


def place_of_error(error: BaseException) -> str:
    """File and line of the user's code where an exception comes from."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_OWN_FILES) and "site-packages" not in frame.filename
    ]
    return _place(frames[-1].filename, frames[-1].lineno or 0) if frames else ""


def _place(filename: str, line: int) -> str:
    return f"{os.path.basename(filename)}, line {line}"


def _line_of_value(definition: ast.AST, row: int | None) -> int:
    """Line of a value, counted from the first of the function."""
    returned = [node.value for node in ast.walk(definition) if isinstance(node, ast.Return)]
    if len(returned) == 1 and (value := returned[0]) is not None:
        values = value.args[0] if isinstance(value, ast.Call) and value.args else value
        if row is None or not isinstance(values, (ast.List, ast.Tuple)):
            return value.lineno
        whole = not any(isinstance(part, ast.Starred) for part in values.elts)
        return values.elts[row].lineno if whole and row < len(values.elts) else value.lineno
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            place = node.targets[0].slice
            if isinstance(place, ast.Constant) and place.value == row and row is not None:
                return node.lineno
    return 1
