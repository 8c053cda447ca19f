"""When a traced function switches by time alone: known before the run gets there.

Conditions, steps and tables of t and the arguments switch at times that follow from the function:
`t > 2`, `t % T < d`, `np.floor(t)`, `np.sin(w * t) > 0`, the points of a table that are joined by
straight lines. The next time is found exactly if the expression is a straight line in t between
other switches. Others are found by bounds over intervals, which are halved as long as something
may switch in them: no pulse is too narrow to be found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tether._core.plain import Plain
from tether.structure.frozen import is_blank
from tether.trace import opcodes as op
from tether.trace.bounds import bounds_over
from tether.trace.derive import switches
from tether.trace.emit import Program
from tether.trace.graph import STATIC, TIMED, Graph
from tether.trace.operations import OPERATIONS
from tether.trace.tracer import Trace

__all__ = ["SwitchTimes", "Timetable"]

EPS = float(np.finfo(float).eps)
# Number of parts into which the interval is cut at first.
FIRST_CUTS = 64
# Number of parts, the nearest first, that are halved at once if something may switch in them.
MOST_AT_ONCE = 4096
# After this many rounds with more parts than that, values at some points are compared instead.
MOST_CROWDED = 30
POINTS = 10_000
# In an interval of fewer units of round-off, bounds tell no more than values do.
CLOSE = 64.0

STEPS = (op.FLOOR, op.CEIL, op.MOD)
OF_TWO_OPERANDS = (op.LT, op.LE, op.MIN, op.MAX)
OF_ONE_OPERAND = (op.ABS, op.SIGN)


@dataclass(frozen=True, eq=False)
class SwitchTimes:
    """The nodes of a function that switch by time alone; made by `of`, None if there are none.

    Attributes
    ----------
    graph : Graph
        The graph of the expressions.
    straight, curved : tuple of int
        Nodes that switch where an expression passes a value: an expression that is a straight line
        in t between switches, or any other.
    places : tuple of int
        For each curved node, an expression whose value changes where the node switches; for a
        table, its operand ...
    starts : tuple
        ... which passes one of these values there; None for other nodes.
    program : Program
        Program of `places`.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.structure.switch_times import SwitchTimes
    >>> from tether.trace import trace
    >>> traced = trace(lambda t, y, yp: [yp[0] - (1.0 if t % 0.4 < 0.1 else 0.0)], 1)
    >>> table = SwitchTimes.of(traced).timetable(np.zeros(0), 0.0, 1.0)
    >>> [round(table.next(t), 12) for t in (0.0, 0.2, 0.45)]
    [0.1, 0.4, 0.5]
    """

    graph: Graph
    straight: tuple[int, ...]
    curved: tuple[int, ...]
    places: tuple[int, ...]
    starts: tuple[np.ndarray | None, ...]
    program: Program

    @classmethod
    def of(cls, traced: Trace) -> SwitchTimes | None:
        """Look for nodes that switch by time alone; None if there are none."""
        graph = traced.graph
        ends = _ends(graph, traced.outputs)
        found = [
            node for node in switches(graph, traced.outputs)
            if graph.level[node] == TIMED and graph.nodes[node][0] not in (op.EQ, op.NE)
            and node not in ends
        ]
        if not found:
            return None
        is_straight = _straight_lines(graph, graph.cone(found))
        passing = {node: all(is_straight[x] for x in graph.operands(node)) for node in found}
        curved = tuple(node for node in found if not passing[node])
        places = tuple(_place(graph, node) for node in curved)
        tables = (graph.nodes[node] for node in curved)
        return cls(
            graph,
            tuple(node for node in found if passing[node]),
            curved,
            places,
            tuple(graph.tables[b].starts if code == op.TABLE else None for code, _, b, _ in tables),
            traced.program(list(places)),
        )

    @cached_property
    def straight_cone(self) -> list[int]:
        """Nodes that the straight ones need, in order; tables only if their value is used."""
        graph, cone = self.graph, self.graph.cone(self.straight)
        used = {x for node in cone for x in graph.operands(node)}
        return [node for node in cone if graph.nodes[node][0] != op.TABLE or node in used]

    @cached_property
    def curved_cone(self) -> list[int]:
        """Nodes that the curved ones need, in order."""
        return self.graph.cone(self.places)

    def timetable(self, args: np.ndarray, t: float, t_end: float) -> Timetable:
        """Make the table of the times from t to t_end, for given arguments."""
        return Timetable(self, args, t, t_end)


def _ends(graph: Graph, outputs: Sequence[int]) -> set[int]:
    """Conditions with a branch that has no value: a run does not restart there."""
    found: set[int] = set()
    for node in graph.cone(outputs):
        if graph.nodes[node][0] == op.SELECT:
            condition, a, b = graph.operands(node)
            if is_blank(graph, a) or is_blank(graph, b):
                found.update(graph.cone([condition]))
    return found


def _place(graph: Graph, node: int) -> int:
    """Make an expression whose value changes where a node switches; of a table, its operand."""
    code, a, b, _ = graph.nodes[node]
    if code == op.TABLE:
        return a
    if code == op.MOD:
        return graph.unary(op.FLOOR, graph.div(a, b))
    if code in (op.MIN, op.MAX, op.ABS):
        return graph.binary(op.LT, a, graph.zero if code == op.ABS else b)
    return node


def _straight_lines(graph: Graph, cone: Sequence[int]) -> dict[int, bool]:
    """Tell which nodes are straight lines in t between switches."""
    found: dict[int, bool] = {}
    for node in cone:
        code, a, b, _ = graph.nodes[node]
        level, operands = graph.level, graph.operands(node)
        if level[node] <= STATIC or code == op.TIME:
            found[node] = True
        elif code == op.MUL:
            found[node] = (level[a] <= STATIC and found[b]) or (level[b] <= STATIC and found[a])
        elif code in (op.DIV, op.MOD):
            found[node] = level[b] <= STATIC and found[a]
        elif code == op.TABLE:
            found[node] = found[a] and graph.tables[b].width <= 2
        else:
            found[node] = code in _STRAIGHT and all(found[x] for x in operands)
    return found


_STRAIGHT = frozenset((
    op.ADD, op.SUB, op.NEG, op.SELECT, *op.CONDITIONS, *STEPS, *OF_TWO_OPERANDS, *OF_ONE_OPERAND,
))


class Timetable:
    """Switch times in one interval, for given arguments."""

    def __init__(self, what: SwitchTimes, args: np.ndarray, t: float, t_end: float) -> None:
        self.what, self.args, self.t_end = what, args, t_end
        self.direction = math.copysign(1.0, t_end - t)
        self.span = abs(t_end - t)
        self._known: list[float] = []          # switches of curved nodes up to the horizon
        self._horizon = t
        self._last: tuple[float, float | None] | None = None   # a time and the next switch

    def next(self, t: float) -> float | None:
        """First time after t at which something switches; None if nothing does."""
        if self._last is not None:
            since, found = self._last
            is_ahead = found is None or self.direction * (found - t) > 0.0
            if is_ahead and self.direction * (t - since) >= 0.0:
                return found
        self._last = t, self._find_next(t)
        return self._last[1]

    def _find_next(self, t: float) -> float | None:
        ahead = [time for time in (self._next_straight(t), self._next_curved(t))
                 if time is not None and self.direction * (self.t_end - time) >= 0.0]
        return min(ahead, key=lambda time: self.direction * time, default=None)

    # --- straight lines ---------------------------------------------------------------------

    def _next_straight(self, t: float) -> float | None:
        if not self.what.straight:
            return None
        values, slopes = self._lines(t)
        best, which = math.inf, -1
        for node in self.what.straight:
            wait = self._wait(node, values, slopes)
            if wait < best:
                best, which = wait, node
        if best == math.inf:
            return None
        return self._sharpened(which, t, t + self.direction * best)

    def _lines(self, t: float) -> tuple[dict[int, float], dict[int, float]]:
        """Values at a time, and slopes of the straight lines."""
        graph = self.what.graph
        values, slopes = dict(self._static), dict.fromkeys(self._static, 0.0)
        for node in self.what.straight_cone:
            if node in values:
                continue
            code, a, b, c = graph.nodes[node]
            slope = 0.0
            if code == op.TIME:
                value, slope = t, 1.0
            elif code in (op.ADD, op.SUB):
                sign = 1.0 if code == op.ADD else -1.0
                value, slope = values[a] + sign * values[b], slopes[a] + sign * slopes[b]
            elif code == op.NEG:
                value, slope = -values[a], -slopes[a]
            elif code == op.MUL:
                value = values[a] * values[b]
                slope = slopes[a] * values[b] + values[a] * slopes[b]
            elif code == op.DIV:
                value = values[a] / values[b] if values[b] else math.nan
                slope = slopes[a] / values[b] if values[b] else math.nan
            elif code == op.SELECT:
                taken = b if values[a] else c
                value, slope = values[taken], slopes[taken]
            elif code in (op.MIN, op.MAX):
                taken = a if (values[a] <= values[b]) == (code == op.MIN) else b
                value, slope = values[taken], slopes[taken]
            elif code == op.ABS:
                value = abs(values[a])
                slope = slopes[a] if values[a] > 0.0 else -slopes[a]
            elif code == op.MOD:
                value, slope = float(np.mod(values[a], values[b])), slopes[a]
            elif code in OF_TWO_OPERANDS:
                value = float(values[a] < values[b] if code == op.LT else values[a] <= values[b])
            elif code == op.TABLE:
                table = graph.tables[b]
                value = float(table(values[a]))
                slope = float(table.derivative()(values[a])) * slopes[a]
            else:
                value = _value(graph, node, values)
            values[node], slopes[node] = value, slope
        return values, slopes

    @cached_property
    def _static(self) -> dict[int, float]:
        """Values of nodes that depend on the arguments alone."""
        graph, values = self.what.graph, {}
        for node in self.what.straight_cone:
            code, a, _, _ = graph.nodes[node]
            if graph.level[node] > STATIC:
                continue
            if code in (op.CONST, op.ARG):
                values[node] = float(a if code == op.CONST else self.args[a])
            else:
                values[node] = _value(graph, node, values)
        return values

    def _wait(self, node: int, values: dict[int, float], slopes: dict[int, float]) -> float:
        """How long it takes until a node switches; infinite if it does not."""
        graph = self.what.graph
        code, a, b, _ = graph.nodes[node]
        height, rate = values[a], slopes[a]
        if code in OF_TWO_OPERANDS:
            height, rate = height - values[b], rate - slopes[b]
        elif code == op.MOD:
            if not values[b]:
                return math.inf
            height, rate = height / values[b], rate / values[b]
        rate *= self.direction
        if not rate or not math.isfinite(height) or not math.isfinite(rate):
            return math.inf
        if code in STEPS:
            target = math.floor(height) + 1.0 if rate > 0.0 else math.ceil(height) - 1.0
        elif code == op.TABLE:
            starts = graph.tables[b].starts
            if rate > 0.0:
                place = int(np.searchsorted(starts, height, side="right"))
            else:
                place = int(np.searchsorted(starts, height, side="left")) - 1
            if not 0 <= place < len(starts):
                return math.inf
            target = float(starts[place])
        else:
            target = 0.0
        wait = (target - height) / rate
        return wait if wait > 0.0 else math.inf

    def _sharpened(self, node: int, t: float, guess: float) -> float:
        """Time at which a node switches, up to round-off, from a guess that may be less exact."""
        before, unit = self._place(node, t), EPS * max(abs(guess), EPS * self.span)
        for width in (unit, 64.0 * unit, 4096.0 * unit):
            low, high = guess - self.direction * width, guess + self.direction * width
            if self.direction * (low - t) <= 0.0:
                low = t
            if self._place(node, low) == before != self._place(node, high):
                if width == unit:
                    return guess
                while (middle := 0.5 * (low + high)) not in (low, high):
                    if self._place(node, middle) == before:
                        low = middle
                    else:
                        high = middle
                return high
        return guess

    def _place(self, node: int, t: float) -> float:
        """Return a number that changes where a node switches."""
        values, _ = self._lines(t)
        code, a, b, _ = self.what.graph.nodes[node]
        if code == op.MOD:
            return round((values[a] - values[node]) / values[b])
        if code == op.TABLE:
            return float(np.searchsorted(self.what.graph.tables[b].starts, values[a], "right"))
        if code in (op.MIN, op.MAX):
            return float(values[a] < values[b])
        if code == op.ABS:
            return float(values[a] < 0.0)
        return values[node]

    # --- curved -----------------------------------------------------------------------------

    def _next_curved(self, t: float) -> float | None:
        if not self.what.curved:
            return None
        while True:
            for time in self._known:
                if self.direction * (time - t) > 0.0:
                    return time
            if self.direction * (self.t_end - self._horizon) <= 0.0:
                return None
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Find the next switches, as many as can be looked for together."""
        edges = np.linspace(self._horizon, self.t_end, FIRST_CUTS + 1)
        near, far = edges[:-1], edges[1:]
        horizon, crowded = self.t_end, 0
        while True:
            switching = self._may_switch(near, far)
            near, far = near[switching], far[switching]
            if len(near) > MOST_AT_ONCE:
                crowded += 1
                if crowded > MOST_CROWDED:     # bounds exclude nothing for this expression
                    edges = np.linspace(self._horizon, self.t_end, POINTS + 1)
                    near, far, horizon = edges[:-1], edges[1:], self.t_end
                    break
                horizon = near[MOST_AT_ONCE]
                near, far = near[:MOST_AT_ONCE], far[:MOST_AT_ONCE]
            middle = 0.5 * (near + far)
            unit = CLOSE * EPS * np.maximum(np.abs(near), EPS * self.span)
            open_ = np.abs(far - near) > unit
            if not open_.any():
                break
            near, far = _halved(near, middle, far, open_)
        self._known = self._halved_by_values(near, far)
        self._horizon = float(horizon)

    def _may_switch(self, near: np.ndarray, far: np.ndarray) -> np.ndarray:
        what = self.what
        low, high = np.minimum(near, far), np.maximum(near, far)
        found = bounds_over(what.graph, what.curved_cone, self.args, low, high)
        switching = np.zeros(len(near), bool)
        for place, starts in zip(what.places, what.starts, strict=True):
            first, last = found[place]
            if starts is not None:
                first, last = (np.searchsorted(starts, x, side="right") for x in (first, last))
            switching |= first != last
        return switching

    def _halved_by_values(self, near: np.ndarray, far: np.ndarray) -> list[float]:
        """First times at which values of the program have switched, in small intervals."""
        before = self._places(near)
        switched = np.any(before != self._places(far), axis=0)
        near, far, before = near[switched], far[switched], before[:, switched]
        while True:
            middle = 0.5 * (near + far)
            if np.all((middle == near) | (middle == far)):
                return sorted(far.tolist(), key=lambda t: self.direction * t)
            same = np.all(self._places(middle) == before, axis=0)
            near, far = np.where(same, middle, near), np.where(same, far, middle)

    def _places(self, t: np.ndarray) -> np.ndarray:
        """Numbers that change where the curved nodes switch, one row for each node."""
        if len(t) == 0:
            return np.zeros((len(self.what.places), 0))
        program = self.what.program
        nowhere = np.zeros((program.n, len(t)))
        values = Plain(program, self.args, len(t)).values_at_points(t, nowhere, nowhere)
        for row, starts in enumerate(self.what.starts):
            if starts is not None:
                values[row] = np.searchsorted(starts, values[row], side="right")
        return values


def _value(graph: Graph, node: int, values: dict[int, float]) -> float:
    """Value of a node from those of its operands."""
    code, a, b, c = graph.nodes[node]
    if code == op.SELECT:
        return values[b] if values[a] else values[c]
    with np.errstate(all="ignore"):
        if code == op.POWI:
            return float(np.float64(values[a]) ** b)
        if code == op.TABLE:
            return float(graph.tables[b](values[a]))
        if code == op.OPAQUE:
            return float(graph.opaques[b](values[a]))
        operation = OPERATIONS[code].array
        assert operation is not None
        return float(operation(*(np.float64(values[x]) for x in graph.operands(node))))


def _halved(
    near: np.ndarray, middle: np.ndarray, far: np.ndarray, wide: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Halve intervals that are wide, and keep their order."""
    count = 1 + wide
    begins, ends = np.repeat(near, count), np.repeat(far, count)
    second = np.cumsum(count)[wide] - 1
    begins[second], ends[second - 1] = middle[wide], middle[wide]
    return begins, ends
