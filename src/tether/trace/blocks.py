"""Mark the blocks of a function that can be joined: the same function from its own text.

The text is only believed if it compiles to the very code of the function. Then every `if` becomes
a function of its own that is handed to `join` (`tether.trace.joins`),

    if c:                      def block():
        x = 1                      nonlocal x
    else:             ->           if c: x = 1
        x = 2                      else: x = 2
                               join(block)

and so do the bodies of functions inside it and of helpers, in which a `return` may stand, and
expressions that choose: ``a if c else b``, ``a and b``, ``0 < x < 1``.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
import types
from typing import Any

from tether.trace.code import facts_of

__all__ = ["JOIN", "Blocks"]

JOIN = "<join>"            # no name that a program can have
_BLOCK = "<block>"
_OUTER = "<outer>"
_FUTURE = 0x1FE0000        # flags of `from __future__ import ...`
_ORDINARY = 0x3EF          # flags that say how a function is called and runs
# What a part of a function cannot have if it is to become a function of its own.
_NOT_IN_EXPRESSIONS = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_NOT_IN_BODIES = (ast.Yield, ast.YieldFrom, ast.Await)
_NOT_IN_BLOCKS = (
    *_NOT_IN_BODIES, ast.Return, ast.Delete, ast.Global, ast.Import, ast.ImportFrom,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Try, ast.With, ast.AsyncWith,
    ast.AsyncFor, ast.Match,
)  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
# Names with which a function asks about itself.
_FRAMES = frozenset(("super", "__class__", "locals", "vars", "dir", "eval", "exec", "globals"))


class Blocks:
    """What is known about the blocks of the functions that are traced.

    Attributes
    ----------
    ordinary : dict
        Code of blocks that are not to be joined, by identity.
    branching : dict
        Code of blocks that have branches of their own, as far as that has shown.
    """

    def __init__(self) -> None:
        self.ordinary: dict[int, types.CodeType] = {}
        self.branching: dict[int, types.CodeType] = {}
        self._marked: dict[int, tuple[types.CodeType, types.CodeType]] = {}

    def code_of(self, function: types.FunctionType) -> types.CodeType:
        """Code of a function with its blocks marked; as it is, where its text does not tell."""
        code = function.__code__
        if id(code) not in self._marked:
            self._marked[id(code)] = code, _with_blocks(function) or code
        return self._marked[id(code)][1]


def _with_blocks(function: types.FunctionType) -> types.CodeType | None:
    code = function.__code__
    if _FRAMES.intersection((*facts_of(code).names, *code.co_freevars)):
        return None
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    found, imports = _definitions(text)
    for node in found.get(code.co_firstlineno, []):
        if _is_same(_compiled(node, code, imports), code):
            marked = _compiled(_Marker().mark(_copied(node)), code, imports)
            if marked is not None and set(marked.co_freevars) == set(code.co_freevars):
                return marked
    return None


@functools.lru_cache(8)
def _definitions(text: str) -> tuple[dict[int, list[Any]], list[Any]]:
    """Functions in a text by the line in which they begin, and what the text imports.

    A call of a member of what is imported is compiled in a way of its own.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}, []
    imports = [part for part in _parts(tree.body) if isinstance(part, (ast.Import, ast.ImportFrom))
               and getattr(part, "module", None) != "__future__"]
    found: dict[int, list[Any]] = {}
    for node in _parts(tree.body, into_functions=True):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(part.lineno for part in decorators)])
            found.setdefault(first, []).append(node)
    return found, imports


def _compiled(node: Any, code: types.CodeType, imports: list[Any]) -> types.CodeType | None:
    """Code of a function, compiled where it has the same variables around it."""
    node = copy.copy(node)
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        body: list[Any] = [node]
    else:
        body = [ast.Expr(node)]
    outer = _placed(_function(_OUTER, list(code.co_freevars), body), node)
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
    """Tell whether two code objects do the same with the same names, in the same lines."""
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


class _Marker(ast.NodeTransformer):
    """Makes functions of blocks."""

    def __init__(self) -> None:
        self._global: list[set[str]] = []      # names declared so in the functions around

    def mark(self, node: Any) -> Any:
        """Mark a whole function."""
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return node
        return self.visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Mark the blocks of a function, and make one of its body."""
        declared = [part for part in _parts(node.body) if isinstance(part, ast.Global)]
        self._global.append({name for part in declared for name in part.names})
        node.body = self._statements(node.body)
        self._global.pop()
        parts = _parts(node.body)
        node.body += _bindings(node, parts)
        if _has(parts, _NOT_IN_BODIES):
            return node
        given = node.args
        names = {part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        names |= {part.arg for part in (given.vararg, given.kwarg) if part is not None}
        block = _definition(node, names & _assigned(parts), node.body)
        node.body = [block, _placed(ast.Return(_join()), node)]
        return node

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        """Leave what cannot be traced."""
        return node

    visit_ClassDef = visit_AsyncFunctionDef  # noqa: N815

    def _statements(self, body: list[Any]) -> list[Any]:
        found: list[Any] = []
        for statement in body:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def visit_If(self, node: ast.If) -> Any:
        """Make a block of an `if` with all its branches."""
        node = self._arms(node)
        parts = _parts([node])
        assigned = _assigned(parts)
        if _has(parts, _NOT_IN_BLOCKS) or assigned & self._global[-1] or (
            _has(parts, (ast.Break, ast.Continue)) and _leaves(node)
        ):
            return node
        block = _definition(node, assigned, [node])
        return [block, _placed(ast.Expr(_join()), node)]

    def _arms(self, node: ast.If) -> ast.If:
        """Mark what stands in the branches of an `if`; its conditions are its own."""
        node.body = self._statements(node.body)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node.orelse = [self._arms(node.orelse[0])]
        else:
            node.orelse = self._statements(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Leave the condition of a loop."""
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Make a block of a condition that must hold: one way ends there, the other goes on."""
        if _has(_parts([node]), (*_NOT_IN_BLOCKS, *_NOT_IN_EXPRESSIONS)):
            return node
        return [_definition(node, set(), [node]), _placed(ast.Expr(_join()), node)]

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Make a block of a choice between expressions; its condition is its own."""
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return self._expression(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Make a block of `and` and `or`."""
        return self._expression(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Make a block of a comparison with several parts."""
        if len(node.ops) == 1:
            return self.generic_visit(node)
        return self._expression(node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        """Leave the conditions of a comprehension."""
        node.iter = self.visit(node.iter)
        return node

    def _expression(self, node: Any) -> Any:
        if _has(_parts([node]), _NOT_IN_EXPRESSIONS):
            return node
        function = ast.Lambda(_arguments([]), node)
        return _placed(ast.Call(ast.Name(JOIN, ast.Load()), [function], []), node)


def _arguments(names: list[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _function(name: str, arguments: list[str], body: list[Any]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, _arguments(arguments), body, [])
    made.__dict__.setdefault("type_params", [])        # needed since Python 3.12
    return made


def _definition(node: Any, written: set[str], body: list[Any]) -> ast.FunctionDef:
    """Make a function without arguments of some statements that write to variables around it."""
    declared: list[Any] = [ast.Nonlocal(sorted(written))] if written else []
    return _placed(_function(_BLOCK, [], [*declared, *body]), node)


def _bindings(node: ast.FunctionDef, parts: list[Any]) -> list[Any]:
    """Statements, never run, by which variables that only blocks assign to belong to a function."""
    names = sorted({name for part in parts if _is_block(part)
                    for first in part.body[:1] if isinstance(first, ast.Nonlocal)
                    for name in first.names})
    if not names:
        return []
    targets: list[Any] = [ast.Name(name, ast.Store()) for name in names]
    never = ast.If(ast.Constant(value=False), [ast.Assign(targets, ast.Constant(value=None))], [])
    return [_placed(never, node)]


def _join() -> ast.Call:
    return ast.Call(ast.Name(JOIN, ast.Load()), [ast.Name(_BLOCK, ast.Load())], [])


def _placed(node: Any, like: Any) -> Any:
    """Give new nodes the place of an old one; those that have one keep it, with all their parts."""
    if "lineno" in node._attributes:
        if hasattr(node, "lineno"):
            return node
        ast.copy_location(node, like)
    for part in _children(node):
        _placed(part, like)
    return node


def _parts(body: list[Any], into_functions: bool = False) -> list[Any]:
    """Nodes of some statements; of blocks made of them too, but not of other functions."""
    found, stack = [], list(body)
    while stack:
        part = stack.pop()
        found.append(part)
        if into_functions or not isinstance(part, _SCOPES) or _is_block(part):
            stack += _children(part)
    return found


def _children(node: Any) -> list[Any]:
    """Nodes that a node consists of; the way of `ast` takes several times as long."""
    found: list[Any] = []
    for value in vars(node).values():
        if type(value) is list:
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _copied(value: Any) -> Any:
    """Copy a node and all that it consists of."""
    if type(value) is list:
        return [_copied(part) for part in value]
    if not isinstance(value, ast.AST):
        return value
    made = type(value).__new__(type(value))
    made.__dict__.update({name: _copied(part) for name, part in vars(value).items()})
    return made


def _is_block(node: Any) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == _BLOCK


def _has(parts: list[Any], kinds: tuple[type, ...]) -> bool:
    return any(isinstance(part, kinds) and not _is_block(part) for part in parts)


def _assigned(parts: list[Any]) -> set[str]:
    """Names of the variables that the statements assign to of which these are the parts."""
    hidden = {
        id(name) for part in parts if isinstance(part, ast.comprehension)
        for name in _parts([part.target])
    }
    return {
        part.id for part in parts
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and id(part) not in hidden
    } | {part.name for part in parts
         if isinstance(part, (ast.FunctionDef, ast.ClassDef)) and not _is_block(part)}


def _leaves(node: ast.If) -> bool:
    """Tell whether a `break` or `continue` belongs to a loop around an `if`."""
    stack: list[Any] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Break, ast.Continue)):
            return True
        if isinstance(part, _LOOPS):
            stack += part.orelse
        elif not isinstance(part, _SCOPES):
            stack += _children(part)
    return False
