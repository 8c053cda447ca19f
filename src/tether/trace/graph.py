# cython: annotation_typing=False
"""Expression graphs: equal expressions are one node, and nodes are simplified as they are made.

A node is an int, its position in `Graph.nodes`. Operands are made before the nodes that use them,
so ascending order is a topological order and nothing here recurses over a graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import cython

from tether.trace import opcodes as op
from tether.trace.operations import OPERATIONS
from tether.trace.piecewise import Piecewise

if not cython.compiled:
    from tether.trace.opcodes import *

# What a node depends on at most: constants only, arguments, time, unknowns.
CONSTANT, STATIC, TIMED, FULL = 0, 1, 2, 3

_LARGEST_POWER = 64  # with larger exponents, powers by multiplication lose too many digits

_TOTAL = frozenset(code for code, o in OPERATIONS.items() if o.total)
_ODD = frozenset(code for code, o in OPERATIONS.items() if o.parity < 0)
_EVEN = frozenset(code for code, o in OPERATIONS.items() if o.parity > 0)
_VALUES = {code: o.value for code, o in OPERATIONS.items() if o.value is not None}


# The methods that make an operation as the user wrote it.
_METHODS = {
    ADD: "add", SUB: "minus", MUL: "times", DIV: "over", NEG: "neg", POW: "pow",
    AND: "logical_and", OR: "logical_or", NOT: "logical_not", SELECT: "select",
}


def arity(fields: tuple) -> int:
    """Count the operands of a node; the rest of a, b, c is -1 or a number that is not a node."""
    code = fields[0]
    if code < 0:
        return 1 if code == OPAQUE else 0
    if code in (POWI, TABLE, SPECIAL) or fields[2] < 0:
        return 1
    return 2 if fields[3] < 0 else 3


class Graph:
    """A growing set of expressions over t, y, y' (and higher derivatives) and arguments.

    Attributes
    ----------
    nodes : list of tuple
        ``(opcode, a, b, c)`` per node; see `tether.trace.opcodes` for the meaning of the fields.
    level : list of int
        What each node depends on: 0 constants, 1 arguments, 2 time, 3 unknowns.
    opaques : list of callable
        Functions of one number that opaque nodes call; each has a method ``derivative()``.
    tables : list of Piecewise
        Piecewise polynomials, each content once.

    Examples
    --------
    >>> from tether.trace.graph import Graph
    >>> g = Graph()
    >>> x = g.y(0)
    >>> g.add(x, g.constant(0.0)) == x, g.mul(x, g.time()) == g.mul(g.time(), x)
    (True, True)
    """

    def __init__(self) -> None:
        self.nodes: list[tuple] = []
        self.level: list[int] = []
        self.opaques: list[Any] = []
        self.tables: list[Piecewise] = []
        self._table_numbers: dict[bytes, int] = {}
        self._total: dict[int, bool] = {}
        self.rates: dict[int, int] = {}  # total time derivatives made so far
        self._index: dict[tuple, int] = {}
        self.zero = self.constant(0.0)
        self.one = self.constant(1.0)

    def __len__(self) -> int:
        return len(self.nodes)

    # --- leaves ---------------------------------------------------------------------------

    def constant(self, value: float) -> int:
        """Node of a number."""
        value = float(value)
        if value == 0.0 or value != value:
            # 0.0 and -0.0 are equal keys, NaN is not equal to itself
            key: tuple = (CONST, "nan" if value != value else str(value))
            if key not in self._index:
                self._index[key] = self._append((CONST, value, -1, -1), CONSTANT)
            return self._index[key]
        return self._intern((CONST, value, -1, -1), CONSTANT)

    def time(self) -> int:
        """Node of t."""
        return self._intern((TIME, -1, -1, -1), TIMED)

    def y(self, component: int, order: int = 0) -> int:
        """Node of the derivative of an unknown of the given order."""
        return self._intern((Y, component, order, -1), FULL)

    def arg(self, number: int) -> int:
        """Node of an argument."""
        return self._intern((ARG, number, -1, -1), STATIC)

    def is_constant(self, node: int) -> bool:
        """Tell whether a node is a number."""
        x = self.nodes[node]
        return x[0] == CONST

    def value(self, node: int) -> float:
        """Value of a constant node."""
        return self.nodes[node][1]

    # --- arithmetic -----------------------------------------------------------------------

    def add(self, a: int, b: int) -> int:
        """Make a + b."""
        x, y = self.nodes[a], self.nodes[b]
        first, second = x[0], y[0]
        if first == CONST:
            if second == CONST:
                return self._fold(ADD, a, b)
            if x[1] == 0.0:
                return b
        elif second == CONST and y[1] == 0.0:
            return a
        if first == NEG:
            return self.sub(b, x[1])
        if second == NEG:
            return self.sub(a, y[1])
        if a == b:
            return self.mul(self.constant(2.0), a)
        return self._operation(ADD, a, b) if a < b else self._operation(ADD, b, a)

    def sub(self, a: int, b: int) -> int:
        """Make a - b."""
        if a == b:
            return self.zero
        x, y = self.nodes[a], self.nodes[b]
        first, second = x[0], y[0]
        if first == CONST:
            if second == CONST:
                return self._fold(SUB, a, b)
            if x[1] == 0.0:
                return self.neg(b)
        elif second == CONST and y[1] == 0.0:
            return a
        if second == NEG:
            return self.add(a, y[1])
        if first == NEG:
            return self.neg(self.add(x[1], b))
        reverse = self._index.get((SUB, b, a, -1))
        if reverse is not None:
            return self.neg(reverse)
        return self._operation(SUB, a, b)

    def mul(self, a: int, b: int) -> int:
        """Make a * b; constants go first, signs outside."""
        x, y = self.nodes[a], self.nodes[b]
        first, second = x[0], y[0]
        if second == CONST:
            return self._scale(b, y[1], a, x)
        if first == CONST:
            return self._scale(a, x[1], b, y)
        if first == NEG:
            return self.neg(self.mul(x[1], b))
        if second == NEG:
            return self.neg(self.mul(a, y[1]))
        return self._operation(MUL, a, b) if a < b else self._operation(MUL, b, a)

    def _scale(self, a: int, factor: float, b: int, y: tuple) -> int:
        """Make factor * b, where a is the node of the factor and y the fields of b."""
        code = y[0]
        if code == CONST:
            return self._fold(MUL, a, b)
        if factor == 0.0:
            return self.zero
        if factor == 1.0:
            return b
        if factor < 0.0:
            return self.neg(self.mul(self.constant(-factor), b))
        if code == NEG:
            return self.neg(self.mul(a, y[1]))
        if code == MUL and self.is_constant(y[1]):
            product = factor * self.value(y[1])
            if 1e-290 < abs(product) < 1e290:
                return self.mul(self.constant(product), y[2])
        return self._operation(MUL, a, b)

    def div(self, a: int, b: int) -> int:
        """Make a / b; signs go outside."""
        x, y = self.nodes[a], self.nodes[b]
        first, second = x[0], y[0]
        if second == CONST:
            if first == CONST:
                return self._fold(DIV, a, b)
            value = y[1]
            if value == 1.0:
                return a
            if value < 0.0:
                return self.neg(self.div(a, self.constant(-value)))
        elif first == CONST:
            value = x[1]
            if value == 0.0:
                return self.zero
            if value < 0.0:
                return self.neg(self.div(self.constant(-value), b))
        if first == NEG:
            return self.neg(self.div(x[1], b))
        if second == NEG:
            return self.neg(self.div(a, y[1]))
        return self._operation(DIV, a, b)

    def neg(self, a: int) -> int:
        """Make -a."""
        x = self.nodes[a]
        code = x[0]
        if code == CONST:
            return self.constant(-x[1])
        if code == NEG:
            return x[1]
        return self._operation(NEG, a)

    def powi(self, a: int, k: int) -> int:
        """Make a**k with an integer k."""
        x = self.nodes[a]
        if k == 0:
            return self.one
        if k == 1:
            return a
        if k == 2:
            return self.mul(a, a)
        if k in (-1, -2):
            return self.div(self.one, self.powi(a, -k))
        if x[0] == NEG:
            power = self.powi(x[1], k)
            return self.neg(power) if k % 2 else power
        if x[0] == CONST and (folded := _try_fold(POWI, x[1], k)) is not None:
            return self.constant(folded)
        return self._intern((POWI, a, k, -1), self.level[a])

    def pow(self, a: int, b: int) -> int:
        """Make a**b."""
        y = self.nodes[b]
        if y[0] == CONST:
            if abs(y[1]) <= _LARGEST_POWER and y[1] == int(y[1]):
                return self.powi(a, int(y[1]))
            if y[1] == 0.5:
                return self.unary(SQRT, a)
            if self.nodes[a][0] == CONST:
                return self._fold(POW, a, b)
        return self._operation(POW, a, b)

    def unary(self, code: int, a: int) -> int:
        """Make a function of one operand."""
        x = self.nodes[a]
        inner = x[0]
        if inner == CONST:
            return self._fold(code, a)
        if inner == NEG:
            if code in _ODD:
                return self.neg(self.unary(code, x[1]))
            if code in _EVEN:
                return self.unary(code, x[1])
        return self._operation(code, a)

    def binary(self, code: int, a: int, b: int) -> int:
        """Make a function of two operands that has no method of its own."""
        if self.is_constant(a) and self.is_constant(b):
            return self._fold(code, a, b)
        if code in (MIN, MAX):
            if a == b:
                return a
            if b < a:
                a, b = b, a
        return self._operation(code, a, b)

    def opaque(self, function: Any, a: int) -> int:
        """Make a call of a function of which only the derivative is known."""
        if not any(known is function for known in self.opaques):
            self.opaques.append(function)
        number = next(i for i, known in enumerate(self.opaques) if known is function)
        return self._intern((OPAQUE, a, number, -1), max(self.level[a], STATIC))

    def table(self, function: Piecewise, a: int) -> int:
        """Make a piecewise polynomial of an expression."""
        if function.constant is not None:
            return self.constant(function.constant)
        if self.is_constant(a) and math.isfinite(value := function(self.value(a))):
            return self.constant(value)
        number = self._table_numbers.setdefault(function.key, len(self.tables))
        if number == len(self.tables):
            self.tables.append(function)
        return self._intern((TABLE, a, number, -1), self.level[a])

    def special(self, a: int, number: int) -> int:
        """Make a special function of an expression (`tether.trace.special`)."""
        folded = _try_fold(SPECIAL, self.value(a), number) if self.is_constant(a) else None
        if folded is not None:
            return self.constant(folded)
        return self._intern((SPECIAL, a, number, -1), self.level[a])

    # --- logic ----------------------------------------------------------------------------

    def logical_and(self, a: int, b: int) -> int:
        """Make the conjunction of two conditions."""
        if a == b or self._is(b, 1.0):
            return a
        if self._is(a, 1.0):
            return b
        if self._is(a, 0.0) or self._is(b, 0.0):
            return self.zero
        return self._operation(AND, min(a, b), max(a, b))

    def logical_or(self, a: int, b: int) -> int:
        """Make the disjunction of two conditions."""
        if a == b or self._is(b, 0.0):
            return a
        if self._is(a, 0.0):
            return b
        if self._is(a, 1.0) or self._is(b, 1.0):
            return self.one
        return self._operation(OR, min(a, b), max(a, b))

    def logical_not(self, a: int) -> int:
        """Make the negation of a condition."""
        x = self.nodes[a]
        if x[0] == CONST:
            return self.constant(float(x[1] == 0.0))
        return x[1] if x[0] == NOT else self._operation(NOT, a)

    def select(self, condition: int, a: int, b: int) -> int:
        """Make ``a if condition else b``."""
        x = self.nodes[condition]
        code = x[0]
        if code == CONST:
            return a if x[1] != 0.0 else b
        if a == b:
            return a
        if code == NOT:
            condition, a, b = x[1], b, a
        level = max(self.level[condition], self.level[a], self.level[b])
        return self._intern((SELECT, condition, a, b), level)

    # --- as the user wrote it -----------------------------------------------------------------
    #
    # The methods above simplify x - x, 0 / x and 0 * x, which are NaN for some x: NaN, infinity or,
    # in 0 / x, zero. Derivatives need these simplifications. The function itself keeps such an
    # expression, so that its program fails where the function does; only zero times something that
    # is finite for all finite values is left out, because matrices are full of zeros.

    def minus(self, a: int, b: int) -> int:
        """Make a - b; it is kept even if it can only be zero or NaN."""
        if a == b and self.nodes[a][0] != CONST:
            return self._operation(SUB, a, b)
        return self.sub(a, b)

    def times(self, a: int, b: int) -> int:
        """Make a * b; it is kept even if it can only be zero or NaN."""
        x, y = self.nodes[a], self.nodes[b]
        if y[0] == CONST and y[1] == 0.0:
            a, b, x = b, a, y
        if x[0] == CONST and x[1] == 0.0 and not self.is_total(b):
            return self._operation(MUL, a, b)
        return self.mul(a, b)

    def over(self, a: int, b: int) -> int:
        """Make a / b; it is kept even if it can only be zero or NaN."""
        if self._is(a, 0.0) and self.nodes[b][0] != CONST:
            return self._operation(DIV, a, b)
        return self.div(a, b)

    def is_total(self, node: int) -> bool:
        """Tell whether an expression is finite for all finite values, unless it overflows."""
        known = self._total
        if node in known:
            return known[node]
        for part in reversed(self._unknown_parts(node)):
            code, a, b, _ = self.nodes[part]
            if code in op.LEAVES:
                known[part] = code != CONST or math.isfinite(a)
            elif not self._is_total_operation(code, b):
                known[part] = False
            else:
                known[part] = all(known[x] for x in self.operands(part))
        return known[node]

    def _is_total_operation(self, code: int, b: int) -> bool:
        if code in (DIV, MOD):
            return self.nodes[b][0] == CONST and self.nodes[b][1] != 0.0
        return code in _TOTAL and not (code == POWI and b < 0)

    def _unknown_parts(self, node: int) -> list[int]:
        """Nodes of an expression not yet known to be total or not, operands after their users."""
        found, stack = set(), [node]
        while stack:
            part = stack.pop()
            if part not in found and part not in self._total:
                found.add(part)
                stack += self.operands(part)
        return sorted(found, reverse=True)

    def make(
        self, code: int, operands: list[int], number: int = -1, tables: Sequence[Piecewise] = ()
    ) -> int:
        """Make an operation by its code, as the user wrote it; `number` is that of a `Batch`."""
        if code == POWI:
            return self.powi(operands[0], number)
        if code == TABLE:
            return self.table(tables[number], operands[0])
        if code == SPECIAL:
            return self.special(operands[0], number)
        name = _METHODS.get(code)
        if name is not None:
            return getattr(self, name)(*operands)
        return self.unary(code, *operands) if len(operands) == 1 else self.binary(code, *operands)

    def unsimplified(self, code: int, operands: list[int], number: int = -1) -> int:
        """Make an operation without simplifying it, so that its rounding stays the same."""
        a, b, c = [*operands, -1, -1][:3]
        if code in (POWI, SPECIAL, TABLE):
            b = number
        return self._intern((code, a, b, c), max(self.level[x] for x in operands))

    # --- questions ------------------------------------------------------------------------

    def operands(self, node: int) -> tuple[int, ...]:
        """Nodes that a node uses directly."""
        fields = self.nodes[node]
        return fields[1 : 1 + arity(fields)]

    def cone(self, outputs: Iterable[int]) -> list[int]:
        """All nodes that the outputs use, including the outputs, in topological order."""
        marks = self._marked(outputs, False)
        return [node for node in range(len(marks)) if marks[node]]

    def inputs(self, outputs: Iterable[int]) -> list[int]:
        """Leaves other than constants that the outputs depend on."""
        marks = self._marked(outputs, True)
        return [
            node for node in range(len(marks))
            if marks[node] and self._code(node) in (TIME, Y, ARG)
        ]

    def _marked(self, outputs: Iterable[int], influences: bool) -> bytearray:
        """Mark all nodes that the outputs use, or only those that can change their values."""
        nodes, wanted = self.nodes, list(outputs)
        marks = bytearray(max(wanted) + 1 if wanted else 0)
        for node in wanted:
            marks[node] = 1
        for node in range(len(marks) - 1, -1, -1):
            if marks[node] and not (influences and self._is_zero(node)):
                fields = nodes[node]
                for k in range(1, 1 + arity(fields)):
                    marks[fields[k]] = 1
        return marks

    def _code(self, node: int) -> int:
        fields = self.nodes[node]
        return fields[0]

    def influences(self, node: int) -> tuple[int, ...]:
        """Operands that can change the value of a node: not those of x - x, 0 * x and 0 / x."""
        return () if self._is_zero(node) else self.operands(node)

    def _is_zero(self, node: int) -> bool:
        """Tell whether a node is x - x, 0 * x or 0 / x, so that no operand changes its value."""
        code = self._code(node)
        if code != SUB and code != MUL and code != DIV:
            return False
        fields = self.nodes[node]
        a, b = fields[1], fields[2]
        if code == SUB:
            return a == b
        return self._is(a, 0.0) or (code == MUL and self._is(b, 0.0))

    def supports(self, outputs: Iterable[int]) -> list[frozenset[int]]:
        """Leaves other than constants that each of the outputs uses."""
        outputs = list(outputs)
        cone = self.cone(outputs)
        leaves = [i for i in cone if self.nodes[i][0] in (TIME, Y, ARG)]
        mask = {leaf: 1 << bit for bit, leaf in enumerate(leaves)}
        for node in cone:
            if node not in mask:
                mask[node] = 0
                for operand in self.influences(node):
                    mask[node] |= mask[operand]
        return [members(mask[node], leaves) for node in outputs]

    # --- making nodes ---------------------------------------------------------------------

    def _is(self, node: int, value: float) -> bool:
        x = self.nodes[node]
        return x[0] == CONST and x[1] == value

    def _fold(self, code: int, a: int, b: int = -1) -> int:
        first = self.nodes[a][1]
        folded = _try_fold(code, first) if b < 0 else _try_fold(code, first, self.nodes[b][1])
        return self._operation(code, a, b) if folded is None else self.constant(folded)

    def _operation(self, code: int, a: int, b: int = -1) -> int:
        # `_append` written out, because most nodes are made here
        key, number = (code, a, b, -1), len(self.nodes)
        found = self._index.setdefault(key, number)
        if found == number:
            level = self.level[a]
            if b >= 0:
                level = max(level, self.level[b])
            self.nodes.append(key)
            self.level.append(level)
        return found

    def _intern(self, key: tuple, level: int) -> int:
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = self._append(key, level)
        return found

    def _append(self, fields: tuple, level: int) -> int:
        nodes = self.nodes
        number = len(nodes)
        nodes.append(fields)
        self.level.append(level)
        return number


def _try_fold(code: int, *values: float) -> float | None:
    """Value of an operation on numbers; None if it is not finite: the program shall show that."""
    try:
        folded = _VALUES[code](*values)
    except (ArithmeticError, ValueError):
        return None
    return folded if math.isfinite(folded) else None


def members(mask: int, leaves: list[int]) -> frozenset[int]:
    """Leaves whose bits are set, the first leaf's being the lowest."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(leaves[lowest.bit_length() - 1])
        mask ^= lowest
    return frozenset(found)
