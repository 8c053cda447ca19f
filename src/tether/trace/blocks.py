"""Mark the blocks of a function whose branches can be joined, by rewriting its text.

Every `if` becomes a function of its own that is passed to `join` (`tether.trace.joins`),

    if c:                      def block():
        x = 1                      nonlocal x
    else:             ->           if c: x = 1
        x = 2                      else: x = 2
                               join(block)

and so do every `try`, the bodies of inner functions and helpers (which may contain `return`), and
conditional expressions: ``a if c else b``, ``a and b``, ``0 < x < 1``.
"""

from __future__ import annotations

import ast
import types
from typing import Any

from tether.trace.code import facts_of
from tether.trace.handlers import code_with_guards, guarded, is_guard
from tether.trace.rewritten import (
    BLOCK,
    children,
    definition,
    is_block,
    parameters,
    parts_of,
    placed,
    rewritten,
)

__all__ = ["JOIN", "Blocks", "code_to_run"]

JOIN = "<join>"            # no name that a program can have
# What a part of a function must not contain if it is to become a function of its own.
_NOT_IN_EXPRESSIONS = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_NOT_IN_BODIES = (ast.Yield, ast.YieldFrom, ast.Await)
_NOT_IN_BLOCKS = (
    *_NOT_IN_BODIES, ast.Return, ast.Delete, ast.Global, ast.Import, ast.ImportFrom,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.With, ast.AsyncWith,
    ast.AsyncFor, ast.Match,
)  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMED = (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
# Names by which a function inspects its own variables or class.
_INSPECTING = frozenset(("super", "__class__", "locals", "vars", "dir", "eval", "exec", "globals"))


class Blocks:
    """What is known about the blocks of the functions that are traced.

    Attributes
    ----------
    ordinary : dict
        Code of blocks that are not to be joined, by identity.
    branching : dict
        Code of blocks that are known to have branches of their own, by identity.
    """

    def __init__(self) -> None:
        self.ordinary: dict[int, types.CodeType] = {}
        self.branching: dict[int, types.CodeType] = {}
        self._marked: dict[int, tuple[types.CodeType, types.CodeType | None]] = {}

    def code_of(self, function: types.FunctionType) -> types.CodeType | None:
        """Code of a function with its blocks marked; None if its text cannot be used."""
        code = function.__code__
        if id(code) not in self._marked:
            self._marked[id(code)] = code, _with_blocks(function)
        return self._marked[id(code)][1]


def code_to_run(function: types.FunctionType, blocks: Blocks | None) -> types.CodeType | str:
    """Code of a function with handlers and, if possible, blocks marked; or the reason it fails."""
    marked = None if blocks is None else blocks.code_of(function)
    if marked is not None:
        return marked
    if not facts_of(function.__code__).handles:
        return function.__code__
    return code_with_guards(function) or "handles exceptions, and its text cannot be read"


def _with_blocks(function: types.FunctionType) -> types.CodeType | None:
    code = function.__code__
    if _INSPECTING.intersection((*facts_of(code).names, *code.co_freevars)):
        return None

    def change(node: Any) -> Any:
        made = guarded(node)
        return None if made is None else _Marker().mark(made)

    return rewritten(function, change)


class _Marker(ast.NodeTransformer):
    """Turns blocks into functions."""

    def __init__(self) -> None:
        self._global: list[set[str]] = []      # names declared global in the enclosing functions

    def mark(self, node: Any) -> Any:
        """Mark a whole function."""
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return node
        return self.visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """Mark the blocks of a function, and make its body a block."""
        declared = [part for part in parts_of(node.body) if isinstance(part, ast.Global)]
        self._global.append({name for part in declared for name in part.names})
        node.body = self._statements(node.body)
        self._global.pop()
        parts = parts_of(node.body)
        node.body += _bindings(node, parts)
        if _has(parts, _NOT_IN_BODIES):
            return node
        given = node.args
        names = {part.arg for part in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
        names |= {part.arg for part in (given.vararg, given.kwarg) if part is not None}
        block = _definition(node, names & _assigned(parts), node.body)
        node.body = [block, placed(ast.Return(_join()), node)]
        return node

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        """Leave a definition that cannot be traced as it is."""
        return node

    visit_ClassDef = visit_AsyncFunctionDef  # noqa: N815

    def _statements(self, body: list[Any]) -> list[Any]:
        found: list[Any] = []
        for statement in body:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def visit_If(self, node: ast.If) -> Any:
        """Make an `if` with all its branches a block."""
        return self._block(self._arms(node))

    def visit_Try(self, node: ast.Try) -> Any:
        """Make a `try` with its handlers a block."""
        return self._block(self.generic_visit(node))

    def _block(self, node: Any) -> Any:
        parts = parts_of([node])
        assigned = _assigned(parts)
        if _has(parts, _NOT_IN_BLOCKS) or assigned & self._global[-1] or (
            _has(parts, (ast.Break, ast.Continue)) and _leaves_loop(node)
        ):
            return node
        block = _definition(node, assigned, [node])
        return [block, placed(ast.Expr(_join()), node)]

    def _arms(self, node: ast.If) -> ast.If:
        """Mark the blocks inside the branches of an `if`, but not in its conditions."""
        node.body = self._statements(node.body)
        if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
            node.orelse = [self._arms(node.orelse[0])]
        else:
            node.orelse = self._statements(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> Any:
        """Mark the blocks inside a loop, but not in its condition."""
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Make an `assert` a block: one path ends there, the other continues."""
        if _has(parts_of([node]), (*_NOT_IN_BLOCKS, *_NOT_IN_EXPRESSIONS)):
            return node
        return [_definition(node, set(), [node]), placed(ast.Expr(_join()), node)]

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Make a conditional expression a block, but mark nothing in its condition."""
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return self._expression(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Make an `and` or `or` a block."""
        return self._expression(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Make a chained comparison a block."""
        if len(node.ops) == 1:
            return self.generic_visit(node)
        return self._expression(node)

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        """Mark the blocks in what a comprehension iterates over, but not in its conditions."""
        node.iter = self.visit(node.iter)
        return node

    def _expression(self, node: Any) -> Any:
        if _has(parts_of([node]), _NOT_IN_EXPRESSIONS):
            return node
        function = ast.Lambda(parameters([]), node)
        return placed(ast.Call(ast.Name(JOIN, ast.Load()), [function], []), node)


def _definition(node: Any, written: set[str], body: list[Any]) -> ast.FunctionDef:
    """Make a function of some statements; `written` are the outer variables they assign to."""
    declared: list[Any] = [ast.Nonlocal(sorted(written))] if written else []
    return placed(definition(BLOCK, [], [*declared, *body]), node)


def _bindings(node: ast.FunctionDef, parts: list[Any]) -> list[Any]:
    """Make a statement, never run, by which variables that only blocks assign to are local."""
    names = sorted({name for part in parts if is_block(part)
                    for first in part.body[:1] if isinstance(first, ast.Nonlocal)
                    for name in first.names})
    if not names:
        return []
    targets: list[Any] = [ast.Name(name, ast.Store()) for name in names]
    never = ast.If(ast.Constant(value=False), [ast.Assign(targets, ast.Constant(value=None))], [])
    return [placed(never, node)]


def _join() -> ast.Call:
    return ast.Call(ast.Name(JOIN, ast.Load()), [ast.Name(BLOCK, ast.Load())], [])


def _has(parts: list[Any], kinds: tuple[type, ...]) -> bool:
    return any(isinstance(part, kinds) and not is_block(part) and not is_guard(part)
               for part in parts)


def _assigned(parts: list[Any]) -> set[str]:
    """Names of the variables to which statements assign, given all parts of these."""
    hidden = {
        id(name) for part in parts if isinstance(part, ast.comprehension)
        for name in parts_of([part.target])
    }
    return {
        part.id for part in parts
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and id(part) not in hidden
    } | {part.name for part in parts if part.__class__ in _NAMED and part.name
         and not is_block(part)}


def _leaves_loop(node: Any) -> bool:
    """Tell whether a statement contains a `break` or `continue` of a loop around it."""
    stack: list[Any] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, (ast.Break, ast.Continue)):
            return True
        if isinstance(part, _LOOPS):
            stack += part.orelse
        elif not isinstance(part, _SCOPES):
            stack += children(part)
    return False
