"""Bounds of expressions over intervals of time, which show where a switch cannot turn.

An expression of t and arguments alone is evaluated for many intervals at once, by the rules of
interval arithmetic. The bounds hold up to round-off; they may be wider than the range of values,
and tighten as the intervals shrink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether.trace import opcodes as op
from tether.trace.graph import Graph
from tether.trace.operations import OPERATIONS
from tether.trace.piecewise import Piecewise

__all__ = ["Bounds", "bounds_over"]

Bounds = tuple[np.ndarray, np.ndarray]         # lowest and highest values, one per interval


def bounds_over(
    graph: Graph, cone: Sequence[int], args: np.ndarray, low: np.ndarray, high: np.ndarray
) -> dict[int, Bounds]:
    """Bounds of all nodes of a cone over intervals of time; they depend on t and arguments only.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.trace import opcodes as op
    >>> from tether.trace.bounds import bounds_over
    >>> from tether.trace.graph import Graph
    >>> g = Graph()
    >>> wave = g.unary(op.SIN, g.time())
    >>> found = bounds_over(g, g.cone([wave]), np.zeros(0), np.array([0.0]), np.array([2.0]))
    >>> [float(bound[0]) for bound in found[wave]]
    [0.0, 1.0]
    """
    found: dict[int, Bounds] = {}
    with np.errstate(all="ignore"):
        for node in cone:
            code, a, b, _ = graph.nodes[node]
            if code == op.TIME:
                found[node] = low, high
            elif code in (op.CONST, op.ARG):
                value = np.full_like(low, a if code == op.CONST else args[a])
                found[node] = value, value
            else:
                found[node] = _numbers(_of_node(graph, node, code, b, found), low)
    return found


def _of_node(
    graph: Graph, node: int, code: int, b: int, found: dict[int, Bounds]
) -> tuple[Any, Any]:
    operands = [found[x] for x in graph.operands(node)]
    if code == op.POWI:
        return _integer_power(operands[0], b)
    if code == op.TABLE:
        return _table(operands[0], graph.tables[b])
    rule = _RULES.get(code)
    return (-math.inf, math.inf) if rule is None else rule(*operands)


def _numbers(bounds: tuple[Any, Any], like: np.ndarray) -> Bounds:
    """Replace bounds that are NaN by infinite ones."""
    low, high = (np.broadcast_to(np.asarray(x, float), like.shape) for x in bounds)
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _rising(code: int) -> Callable[[Bounds], Bounds]:
    function: Any = OPERATIONS[code].array
    return lambda x: (function(x[0]), function(x[1]))


def _falling(code: int) -> Callable[[Bounds], Bounds]:
    function: Any = OPERATIONS[code].array
    return lambda x: (function(x[1]), function(x[0]))


def _corners(function: Callable[..., np.ndarray], x: Bounds, y: Bounds) -> Bounds:
    """Bounds of a function that rises or falls with each of its operands."""
    values = [function(a, b) for a in x for b in y]
    return np.minimum.reduce(values), np.maximum.reduce(values)


def _quotient(x: Bounds, y: Bounds) -> Bounds:
    low, high = _corners(np.divide, x, y)
    through_zero = (y[0] <= 0.0) & (y[1] >= 0.0)
    return np.where(through_zero, -np.inf, low), np.where(through_zero, np.inf, high)


def _power(x: Bounds, y: Bounds) -> Bounds:
    low, high = _corners(np.power, x, y)
    return np.where(x[0] > 0.0, low, -np.inf), np.where(x[0] > 0.0, high, np.inf)


def _integer_power(x: Bounds, exponent: int) -> Bounds:
    if exponent < 0:
        one = np.ones_like(x[0])
        return _quotient((one, one), _integer_power(x, -exponent))
    if exponent % 2:
        return x[0] ** exponent, x[1] ** exponent
    low, high = _size(x)
    return low**exponent, high**exponent


def _size(x: Bounds) -> Bounds:
    through_zero = (x[0] < 0.0) & (x[1] > 0.0)
    a, b = np.abs(x[0]), np.abs(x[1])
    return np.where(through_zero, 0.0, np.minimum(a, b)), np.maximum(a, b)


def _sine(x: Bounds, shift: float = 0.25) -> Bounds:
    """Bounds of a sine, whose crests are a `shift` of 0.25 turns from zero; 0 for a cosine."""
    function = np.sin if shift else np.cos
    a, b = function(x[0]), function(x[1])
    turns = [part / (2.0 * math.pi) - shift for part in x]
    crest = np.floor(turns[1]) > np.floor(turns[0]) - (turns[0] == np.floor(turns[0]))
    low_turns = [part + 0.5 for part in turns]
    trough = np.floor(low_turns[1]) > np.floor(low_turns[0]) - (
        low_turns[0] == np.floor(low_turns[0])
    )
    return np.where(trough, -1.0, np.minimum(a, b)), np.where(crest, 1.0, np.maximum(a, b))


def _tangent(x: Bounds) -> Bounds:
    branch = [np.floor(part / math.pi + 0.5) for part in x]
    same = branch[0] == branch[1]
    return np.where(same, np.tan(x[0]), -np.inf), np.where(same, np.tan(x[1]), np.inf)


def _angle(y: Bounds, x: Bounds) -> Bounds:
    low, high = _corners(np.arctan2, y, x)
    smooth = (x[0] > 0.0) | (y[0] > 0.0) | (y[1] < 0.0)    # it jumps where y = 0 and x < 0
    return np.where(smooth, low, -math.pi), np.where(smooth, high, math.pi)


def _length(x: Bounds, y: Bounds) -> Bounds:
    a, b = _size(x), _size(y)
    return np.hypot(a[0], b[0]), np.hypot(a[1], b[1])


def _truth(x: Bounds) -> Bounds:
    """Bounds of whether a number is other than zero: 0 and 1 where it may be either."""
    surely = (x[0] > 0.0) | (x[1] < 0.0)
    never = (x[0] == 0.0) & (x[1] == 0.0)
    return np.where(surely, 1.0, 0.0), np.where(never, 0.0, 1.0)


def _less(x: Bounds, y: Bounds) -> tuple[Any, Any]:
    return 1.0 * (x[1] < y[0]), 1.0 * (x[0] < y[1])


def _less_equal(x: Bounds, y: Bounds) -> tuple[Any, Any]:
    return 1.0 * (x[1] <= y[0]), 1.0 * (x[0] <= y[1])


def _equal(x: Bounds, y: Bounds) -> tuple[Any, Any]:
    same = (x[0] == x[1]) & (y[0] == y[1]) & (x[0] == y[0])
    return 1.0 * same, 1.0 * ((x[0] <= y[1]) & (y[0] <= x[1]))


def _not_equal(x: Bounds, y: Bounds) -> tuple[Any, Any]:
    low, high = _equal(x, y)
    return 1.0 - high, 1.0 - low


def _and(x: Bounds, y: Bounds) -> Bounds:
    a, b = _truth(x), _truth(y)
    return np.minimum(a[0], b[0]), np.minimum(a[1], b[1])


def _or(x: Bounds, y: Bounds) -> Bounds:
    a, b = _truth(x), _truth(y)
    return np.maximum(a[0], b[0]), np.maximum(a[1], b[1])


def _not(x: Bounds) -> tuple[Any, Any]:
    low, high = _truth(x)
    return 1.0 - high, 1.0 - low


def _select(condition: Bounds, x: Bounds, y: Bounds) -> Bounds:
    least, most = _truth(condition)
    surely, never = least == 1.0, most == 0.0
    low = np.where(surely, x[0], np.where(never, y[0], np.minimum(x[0], y[0])))
    high = np.where(surely, x[1], np.where(never, y[1], np.maximum(x[1], y[1])))
    return low, high


def _remainder(x: Bounds, y: Bounds) -> Bounds:
    low, high = np.mod(x[0], y[0]), np.mod(x[1], y[1])
    turns = [np.round((part - rest) / y[0]) for part, rest in zip(x, (low, high), strict=True)]
    same = (turns[0] == turns[1]) & (y[0] == y[1])
    return (
        np.where(same, np.minimum(low, high), np.minimum(y[0], 0.0)),
        np.where(same, np.maximum(low, high), np.maximum(y[1], 0.0)),
    )


def _table(x: Bounds, table: Piecewise) -> Bounds:
    """Bounds of a piecewise polynomial, from those of its pieces."""
    first, last = (np.searchsorted(table.starts, part, side="right") for part in x)
    low, high = _polynomial(table, first, x)           # correct where only one piece is needed
    if np.any(first != last):
        from_, to = np.append(-np.inf, table.starts), np.append(table.starts, np.inf)
        inside = np.arange(1, max(len(table.starts), 1))
        lows, highs = np.full(len(from_), -np.inf), np.full(len(from_), np.inf)
        lows[inside], highs[inside] = _polynomial(table, inside, (from_[inside], to[inside]))
        for k in np.flatnonzero(first != last):
            i, j = first[k], last[k]
            ends = _polynomial(
                table, np.array([i, j]), (np.array([x[0][k], from_[j]]), np.array([to[i], x[1][k]]))
            )
            low[k] = min(ends[0].min(), lows[i + 1 : j].min(initial=np.inf))
            high[k] = max(ends[1].max(), highs[i + 1 : j].max(initial=-np.inf))
    return low, high


def _polynomial(table: Piecewise, piece: np.ndarray, x: Bounds) -> Bounds:
    base, rows = table.bases[piece], table.coefficients[piece]
    distance = x[0] - base, x[1] - base
    value = rows[:, -1].copy(), rows[:, -1].copy()
    for column in rows.T[-2::-1]:
        low, high = _corners(np.multiply, value, distance)
        value = low + column, high + column
    return value


_RULES: dict[int, Callable[..., tuple[Any, Any]]] = {
    op.ADD: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    op.SUB: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    op.MUL: lambda x, y: _corners(np.multiply, x, y),
    op.DIV: _quotient,
    op.NEG: lambda x: (-x[1], -x[0]),
    op.POW: _power,
    op.SIN: _sine,
    op.COS: lambda x: _sine(x, 0.0),
    op.TAN: _tangent,
    op.ATAN2: _angle,
    op.HYPOT: _length,
    op.ABS: _size,
    op.COSH: lambda x: tuple(np.cosh(part) for part in _size(x)),
    op.MIN: lambda x, y: (np.minimum(x[0], y[0]), np.minimum(x[1], y[1])),
    op.MAX: lambda x, y: (np.maximum(x[0], y[0]), np.maximum(x[1], y[1])),
    op.LT: _less,
    op.LE: _less_equal,
    op.EQ: _equal,
    op.NE: _not_equal,
    op.AND: _and,
    op.OR: _or,
    op.NOT: _not,
    op.SELECT: _select,
    op.MOD: _remainder,
    op.ACOS: _falling(op.ACOS),
} | {
    code: _rising(code)
    for code in (
        op.SQRT, op.EXP, op.LOG, op.ASIN, op.ATAN, op.SINH, op.TANH, op.ASINH, op.ACOSH,
        op.ATANH, op.LOG1P, op.EXPM1, op.ERF, op.FLOOR, op.CEIL, op.SIGN,
    )
}
