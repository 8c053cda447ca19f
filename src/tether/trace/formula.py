"""Expressions written as readable formulas."""

from __future__ import annotations

from collections.abc import Sequence

from tether.trace import opcodes as op
from tether.trace import operations as binding
from tether.trace import special
from tether.trace.graph import Graph
from tether.trace.operations import NAMES, OPERATIONS

_SHORTENED = "(...)"


def formula(
    graph: Graph,
    node: int,
    names: Sequence[str],
    arg_names: Sequence[str] = (),
    longest: int = 500,
    digits: int | None = None,
) -> str:
    """Write an expression with the given names of the unknowns.

    Parameters
    ----------
    graph : Graph
        The graph of the expression.
    node : int
        The expression.
    names : sequence of str
        Names of the unknowns; derivatives get primes.
    arg_names : sequence of str
        Names of the arguments; ``p[0]``, ``p[1]``, ... when left out.
    longest : int
        A part that is longer than this many characters is written as ``(...)``.
    digits : int, optional
        Number of digits of constants; all when left out.

    Examples
    --------
    >>> from tether.trace import formula, total_derivative, trace
    >>> circle = trace(lambda t, y, yp: [y[0]**2 + y[1]**2 - 1.21, yp[1]], 2)
    >>> formula(circle.graph, circle.outputs[0], ["x", "z"])
    'x**2 + z**2 - 1.21'
    >>> formula(circle.graph, *total_derivative(circle.graph, circle.outputs[:1]), ["x", "z"])
    "2*x*x' + 2*z*z'"
    """
    written: dict[int, tuple[str, int]] = {}
    for part in graph.cone([node]):
        text, strength = _write(graph, part, written, names, arg_names, digits)
        written[part] = (text, strength) if len(text) <= longest else (_SHORTENED, binding.ATOM)
    return written[node][0]


def _write(
    graph: Graph,
    node: int,
    written: dict[int, tuple[str, int]],
    names: Sequence[str],
    arg_names: Sequence[str],
    digits: int | None,
) -> tuple[str, int]:
    code, a, b, c = graph.nodes[node]

    def operand(x: int, least: int) -> str:
        text, strength = written[x]
        return text if strength >= least else f"({text})"

    if code in op.LEAVES:
        return _leaf(graph, node, names, arg_names, digits)
    if code == op.NEG:
        inner, x, y, _ = graph.nodes[a]
        if inner == op.SUB:
            return f"{operand(y, binding.SUM)} - {operand(x, binding.PRODUCT)}", binding.SUM
        tight = written[a][1] > binding.PRODUCT
        return f"-{operand(a, binding.PRODUCT)}", binding.SIGN if tight else binding.PRODUCT
    if code == op.SUB:
        return f"{operand(a, binding.SUM)} - {operand(b, binding.PRODUCT)}", binding.SUM
    if code == op.MUL and a == b:
        return f"{operand(a, binding.ATOM)}**2", binding.POWER
    if code == op.POWI:
        exponent = b if b >= 0 else f"({b})"
        return f"{operand(a, binding.ATOM)}**{exponent}", binding.POWER
    if code == op.POW:
        return f"{operand(a, binding.ATOM)}**{operand(b, binding.POWER)}", binding.POWER
    if code in (op.ADD, op.MUL):
        strength = binding.SUM if code == op.ADD else binding.PRODUCT
        if _swapped(graph, code, a, b, written):
            a, b = b, a
        symbol = OPERATIONS[code].infix
        # x*(y % z) is the one product on the right that needs its parentheses
        right = strength + (code == op.ADD or graph.nodes[b][0] == op.MOD)
        return f"{operand(a, strength)}{symbol}{operand(b, right)}", strength
    if OPERATIONS[code].infix:
        symbol, strength = OPERATIONS[code].infix, OPERATIONS[code].binds
        # division and remainder do not associate to the right
        right = strength + 1 if code in (op.DIV, op.MOD) else strength
        if code in op.COMPARISONS:
            return f"{operand(a, binding.SUM)}{symbol}{operand(b, binding.SUM)}", strength
        return f"{operand(a, strength)}{symbol}{operand(b, right)}", strength
    if code == op.NOT:
        return f"not {operand(a, binding.NOT)}", binding.NOT
    if code == op.SELECT:
        condition, then, other = (written[x][0] for x in (a, b, c))
        return f"({then} if {condition} else {other})", binding.ATOM
    if code == op.OPAQUE:
        function = graph.opaques[b]
        name = getattr(function, "__name__", type(function).__name__)
        return f"{name}({written[a][0]})", binding.ATOM
    if code == op.SPECIAL:
        name, order = special.name_of(b)
        first = "" if order is None else f"{order:g}, "
        return f"{name}({first}{written[a][0]})", binding.ATOM
    if code == op.TABLE:
        return f"{graph.tables[b].name}({written[a][0]})", binding.ATOM
    inside = ", ".join(written[x][0] for x in graph.operands(node))
    return f"{NAMES[code].lower()}({inside})", binding.ATOM


def _swapped(graph: Graph, code: int, a: int, b: int, written: dict[int, tuple[str, int]]) -> bool:
    """Tell whether to write b first: constants go last in sums, first in products; chains first."""
    if graph.is_constant(a):
        return code == op.ADD
    chain = binding.SUM if code == op.ADD else binding.PRODUCT
    return written[b][1] == chain and written[a][1] != chain


def _leaf(
    graph: Graph, node: int, names: Sequence[str], arg_names: Sequence[str], digits: int | None
) -> tuple[str, int]:
    code, a, order, _ = graph.nodes[node]
    if code == op.CONST:
        shown = a if digits is None else float(f"{a:.{digits}g}")
        return format_number(shown), binding.ATOM if a >= 0 else binding.SIGN
    if code == op.TIME:
        return "t", binding.ATOM
    if code == op.ARG:
        return (arg_names[a] if a < len(arg_names) else f"p[{a}]"), binding.ATOM
    return names[a] + "'" * order, binding.ATOM


def format_number(value: float) -> str:
    """Shortest text of a number, without a decimal point where there are no decimals.

    Examples
    --------
    >>> from tether.trace.formula import format_number
    >>> format_number(2.0), format_number(1.21), format_number(1e22)
    ('2', '1.21', '1e+22')
    """
    if value == value and abs(value) < 1e15 and value == int(value):
        return str(int(value))
    return repr(float(value))
