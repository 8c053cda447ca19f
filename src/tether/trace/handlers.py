"""Mark the exception handlers of a function by rewriting its text.

A program raises nothing, so where arithmetic in a `try` would raise, that is a branch of the traced
function (`tether.trace.guards`). The rewritten function declares what it catches while the body of
a `try` runs, and has each caught exception checked:

    try:                           try:
        x = exp(u)                     with guard(lambda: (OverflowError,)):
    except OverflowError:    ->            x = exp(u)
        x = 1e300                  except OverflowError:
                                       caught()
                                       x = 1e300
"""

from __future__ import annotations

import ast
import types
from typing import Any

from tether.trace.rewritten import parameters, parts_of, placed, rewritten

__all__ = ["CAUGHT", "GUARD", "code_with_guards", "guarded", "is_guard"]

GUARD, CAUGHT = "<guard>", "<caught>"      # no names that a program can have
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)
_JUMPS = (ast.Return, ast.Break, ast.Continue)


def code_with_guards(function: types.FunctionType) -> types.CodeType | None:
    """Code of a function with its handlers marked; None if its text cannot be used."""
    return rewritten(function, guarded)


def guarded(node: Any) -> Any:
    """Mark the handlers of a function; None if it yields or awaits inside a `try`."""
    marker = _Marker()
    made = marker.visit(node)
    return made if marker.is_supported else None


def is_guard(node: Any) -> bool:
    """Tell whether a statement is the `with` that was put around the body of a `try`."""
    if not isinstance(node, ast.With) or not isinstance(node.items[0].context_expr, ast.Call):
        return False
    called = node.items[0].context_expr.func
    return isinstance(called, ast.Name) and called.id == GUARD


class _Marker(ast.NodeTransformer):
    is_supported = True

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        if any(isinstance(part, _SUSPENDING) for part in parts_of(node.body)):
            self.is_supported = False
        types = [handler.type for handler in node.handlers]
        swallows = any(isinstance(part, _JUMPS) for part in parts_of(node.finalbody))
        if types or swallows:
            node.body = [placed(_guard([] if swallows else types, node.body), node)]
        for handler in node.handlers:
            handler.body.insert(0, _caught(handler))
        if node.finalbody:
            node.finalbody.insert(0, _caught(node.finalbody[0]))
        return node


def _guard(types: list[Any], body: list[Any]) -> ast.With:
    """Make the `with` around the body of a `try`; without types everything is caught."""
    known = [kind for kind in types if kind is not None]
    ask = ast.Lambda(parameters([]), ast.Tuple(known, ast.Load()))
    given: list[Any] = [ask] if known and len(known) == len(types) else []
    return ast.With([ast.withitem(ast.Call(ast.Name(GUARD, ast.Load()), given, []))], body)


def _caught(like: Any) -> Any:
    return placed(ast.Expr(ast.Call(ast.Name(CAUGHT, ast.Load()), [], [])), like)
