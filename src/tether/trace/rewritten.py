"""Change a function by rewriting its source text.

The text is only trusted if it compiles to exactly the code of the function.
"""

from __future__ import annotations

import ast
import functools
import linecache
import types
from collections.abc import Callable
from typing import Any

__all__ = ["BLOCK", "children", "definition", "is_block", "parameters", "parts_of", "placed",
           "rewritten"]

BLOCK = "<block>"          # no name that a program can have
_OUTER = "<outer>"
_FUTURE = 0x1FE0000        # flags of `from __future__ import ...`
_ORDINARY = 0x3EF          # flags that say how a function is called and runs
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def rewritten(
    fun: types.FunctionType, change: Callable[[Any], Any]
) -> types.CodeType | None:
    """Code of a function after a change of its text; None if its text cannot be used.

    Parameters
    ----------
    fun : function
        The function, which is not changed.
    change : callable
        Takes the syntax tree of the function, may change it, and returns the new one, or None.
    """
    code = fun.__code__
    text = "".join(linecache.getlines(code.co_filename, fun.__globals__))
    found, imports = _definitions(text)
    for node in found.get(code.co_firstlineno, []):
        if _is_same(_compiled(node, code, imports), code):
            changed = change(_copied(node))
            made = None if changed is None else _compiled(changed, code, imports)
            if made is not None and set(made.co_freevars) == set(code.co_freevars):
                return made
    return None


@functools.lru_cache(8)
def _definitions(text: str) -> tuple[dict[int, list[Any]], list[Any]]:
    """Functions in a text by the line in which they begin, and the import statements.

    The imports are needed because Python compiles calls of members of an imported name differently.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, []
    imports = [part for part in parts_of(tree.body)
               if isinstance(part, (ast.Import, ast.ImportFrom))
               and getattr(part, "module", None) != "__future__"]
    found: dict[int, list[Any]] = {}
    for node in parts_of(tree.body, into_functions=True):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(part.lineno for part in decorators)])
            found.setdefault(first, []).append(node)
    return found, imports


def _compiled(node: Any, code: types.CodeType, imports: list[Any]) -> types.CodeType | None:
    """Code of a function, compiled inside another one that has the same free variables."""
    body: list[Any] = [node if isinstance(node, ast.FunctionDef) else ast.Expr(node)]
    outer = placed(definition(_OUTER, list(code.co_freevars), body), node)
    module = ast.Module([*imports, outer], [])
    try:
        made = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, TypeError, RecursionError):
        return None
    inside = [part for part in _codes(made) if part.co_name == _OUTER]
    found = [part for part in _codes(inside[0]) if part.co_name == code.co_name]
    return found[0] if len(found) == 1 else None


def _codes(code: types.CodeType) -> list[types.CodeType]:
    return [part for part in code.co_consts if isinstance(part, types.CodeType)]


def _is_same(one: types.CodeType | None, other: types.CodeType) -> bool:
    """Tell whether two code objects have the same instructions, names and lines."""
    if one is None or len(one.co_consts) != len(other.co_consts):
        return False
    names = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount",
             "co_kwonlyargcount", "co_posonlyargcount", "co_exceptiontable")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if (one.co_flags ^ other.co_flags) & _ORDINARY or [*one.co_lines()] != [*other.co_lines()]:
        return False
    return all(map(_is_same_constant, one.co_consts, other.co_consts))


def _is_same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
        return _is_same(one, other)
    return type(one) is type(other) and repr(one) == repr(other)


def parameters(names: list[str]) -> ast.arguments:
    """Make the parameters of a function."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def definition(name: str, names: list[str], body: list[Any]) -> ast.FunctionDef:
    """Make the definition of a function with parameters of these names."""
    made = ast.FunctionDef(name, parameters(names), body, [])
    made.__dict__.setdefault("type_params", [])        # needed since Python 3.12
    return made


def placed(node: Any, like: Any) -> Any:
    """Give new nodes the line of an old one; nodes that have a line, and their parts, keep it."""
    if "lineno" in node._attributes:
        if hasattr(node, "lineno"):
            return node
        ast.copy_location(node, like)
    for part in children(node):
        placed(part, like)
    return node


def parts_of(body: list[Any], into_functions: bool = False) -> list[Any]:
    """Nodes of some statements, including those inside blocks but not inside other functions."""
    found, stack = [], list(body)
    while stack:
        part = stack.pop()
        found.append(part)
        if into_functions or not isinstance(part, _SCOPES) or is_block(part):
            stack += children(part)
    return found


def children(node: Any) -> list[Any]:
    """Direct children of a node; `ast.iter_child_nodes` takes several times as long."""
    found: list[Any] = []
    for value in vars(node).values():
        if type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _copied(value: Any) -> Any:
    """Copy a node and all its parts."""
    if type(value) is list:
        return [_copied(part) for part in value]
    if not isinstance(value, ast.AST):
        return value
    made = type(value).__new__(type(value))
    made.__dict__.update({name: _copied(part) for name, part in vars(value).items()})
    return made


def is_block(node: Any) -> bool:
    """Tell whether a function was made from a block of another."""
    return isinstance(node, ast.FunctionDef) and node.name == BLOCK
