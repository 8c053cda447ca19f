"""Leaks beside ideal diodes: where all that hold a part of a system block, it floats.

An ideal diode is an equation ``min(i, v)``: current or voltage is zero. A source between diodes
that all block has no potential: no equation contains it. A real diode has a tiny conductance c, and
so gets this one: the equation becomes ``min(i, v) + c v``. It is unchanged where the voltage is
zero, and where it blocks the current is -c v, far below the tolerance. For any equation with a
minimum or maximum of two expressions, the other one is the one that is not zero.

Which of the two are zero is found for a short step of the implicit Euler method, by Murty's rule of
the least index; both get a share of each other there, so that no choice of sides is singular.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tether._core.plain import Plain
from tether.structure.leaks import LEAK_SHARE, LEAST_SIZE, Leak
from tether.structure.scaling import Ranges, balanced, ranges
from tether.trace import Trace
from tether.trace import opcodes as op
from tether.trace.emit import NoProgram
from tether.trace.graph import FULL
from tether.trace.rewrite import alternatives

__all__ = ["Floating", "Pair", "find_floating", "find_pairs", "with_leaks_beside"]

SWITCHING = op.CONDITIONS | {op.SELECT, op.MIN, op.MAX, op.ABS, op.SIGN}
# Share of each other that the two of a pair get while sides are chosen, of balanced equations.
MIXED = 1e-8
# Round-off of balanced equations.
ROUND_OFF = 1e-14
# Values below this share of the largest are zero, with such mixtures.
ZERO = 1e-6
# Singular values below this share of the largest are zero.
SINGULAR = 1e-13
# Components of null vectors below this share of the largest are zero.
TAKES_PART = 1e-6
# All is determined if singular values are above this share of the largest.
HOLDS = 1e-6
# Largest number of choices of sides.
MOST_CHOICES = 300
# All sides of up to this many pairs are examined.
MOST_TURNING = 8
# Size of the step, as a share of the interval.
STEP = 1e-7
# Number of times at which the sizes of what floats are looked at.
TIMES = 24

# For two nodes in ascending order, whether the first is smaller.
Way = dict[tuple[int, int], bool]


@dataclass(frozen=True)
class Pair:
    """An equation of two expressions of which one is zero and the other is not negative.

    Attributes
    ----------
    equation : int
        Its number.
    first, second : int
        Nodes of the expressions.
    sign : float
        -1 for a maximum: neither is positive.
    factor : float
        Factor of the pair in the equation.
    """

    equation: int
    first: int
    second: int
    sign: float
    factor: float


@dataclass(frozen=True, eq=False)
class Floating:
    """Leaks for what floats, and where the solution goes on.

    Attributes
    ----------
    leaks : tuple of (int, int, float)
        Equations, expressions added to them, and their factors; empty if nothing floats.
    y : ndarray
        A guess of the unknowns; those with derivatives are unchanged.
    ways : tuple of dict
        Which of two nodes is smaller, for pairs of nodes in ascending order: as it should be a
        short time later, when whatever jumps has jumped, and where most is open.
    """

    leaks: tuple[Leak, ...]
    y: np.ndarray
    ways: tuple[Way, ...]


def with_leaks_beside(traced: Trace, leaks: Sequence[Leak]) -> Trace:
    """Return the same equations with multiples of expressions added to them."""
    graph, outputs = traced.graph, list(traced.outputs)
    for equation, node, size in leaks:
        outputs[equation] = graph.add(outputs[equation], graph.mul(graph.constant(size), node))
    return traced.with_outputs(outputs)


def find_pairs(traced: Trace) -> list[Pair]:
    """List equations that are the minimum or maximum of two expressions without conditions.

    Examples
    --------
    >>> from tether.structure.blocking import find_pairs
    >>> from tether.trace import trace
    >>> found = find_pairs(trace(lambda t, y, yp: [yp[0] - y[1], -2 * max(y[0], y[1])], 2))
    >>> [(pair.equation, pair.sign, pair.factor) for pair in found]
    [(1, -1.0, -2.0)]
    """
    graph = traced.graph
    found = []
    for equation, node in enumerate(traced.outputs):
        factor = 1.0
        while True:
            code, a, b, _ = graph.nodes[node]
            if code == op.NEG:
                factor, node = -factor, a
            elif code == op.MUL and graph.is_constant(a):
                factor, node = factor * graph.value(a), b
            elif code == op.MUL and graph.is_constant(b):
                factor, node = factor * graph.value(b), a
            else:
                break
        chosen = alternatives(graph, node) if code in (op.MIN, op.MAX, op.SELECT) else None
        if chosen is None or factor == 0.0:
            continue
        condition, taken, other = chosen
        code, a, b, _ = graph.nodes[condition]
        if code not in (op.LT, op.LE) or {a, b} != {taken, other} or a == b:
            continue
        if all(_may_be_zero(traced, x) for x in (a, b)):
            found.append(Pair(equation, a, b, 1.0 if taken == a else -1.0, factor))
    return found


def _may_be_zero(traced: Trace, node: int) -> bool:
    """Whether an expression has unknowns, and no conditions on them."""
    graph = traced.graph
    return graph.level[node] == FULL and not any(
        graph.nodes[x][0] in SWITCHING for x in graph.cone([node]) if graph.level[x] == FULL
    )


def find_floating(
    traced: Trace, args: np.ndarray, t: float, y: np.ndarray, t_end: float, unit: np.ndarray,
    tolerance: np.ndarray, leaks: Sequence[Leak] = (),
) -> Floating | None:
    """Look for what floats at a point where a run cannot go on; None if nothing does.

    Parameters
    ----------
    traced : Trace
        The equations with all their branches.
    args : ndarray
        Inputs of its programs.
    t, y, t_end
        The point, and where the run ends.
    unit, tolerance : ndarray
        Units and tolerances of the unknowns.
    leaks
        Those that were added before.
    """
    pairs = find_pairs(traced)
    if not pairs:
        return None
    try:
        with np.errstate(all="ignore"):
            system = _Step(traced, args, pairs, t, y, (t_end - t) * STEP)
            return _floating_in(system, t_end, unit, tolerance, leaks)
    except (NoProgram, np.linalg.LinAlgError):
        return None


def _floating_in(
    system: _Step, t_end: float, unit: np.ndarray, tolerance: np.ndarray, leaks: Sequence[Leak]
) -> Floating | None:
    if not (np.all(np.isfinite(system.matrix)) and np.all(np.isfinite(system.values))):
        return None
    y, pairs = system.y, system.pairs
    first = system.choose_sides(unit)
    if first is None:
        return None
    guess = np.where(np.any(system.slopes != 0.0, axis=0), y, system.y)
    ways = [_below(pairs, first)]
    later = system.choose_sides(unit)
    if later is not None:
        first = later
        ways.append(_below(pairs, later))
    first, found = _most_open(system, first, t_end, unit)
    ways.append(_below(pairs, first))
    known = {leak[:2] for leak in leaks}
    places = _floating_pairs(system, first, unit, found)
    added: list[Leak] = []
    shares: list[float] = []
    sizes = system.sizes(first, t_end, unit)
    algebraic = ~np.any(system.slopes != 0.0, axis=0)
    for k in places:
        pair = pairs[k]
        zero, other = (k, k + len(pairs)) if first[k] else (k + len(pairs), k)
        allowed = np.max(np.abs(system.gradients[zero]) * tolerance * algebraic, initial=0.0)
        least = LEAST_SIZE * np.max(np.abs(system.gradients[other]) * tolerance)
        size = LEAK_SHARE * allowed / max(sizes[other], least)
        node = pair.second if first[k] else pair.first
        if (pair.equation, node) in known:
            continue
        weight = system.weights[other] / system.weights[zero]
        shares.append(size / weight)
        added.append((pair.equation, node, pair.factor * weight))
    added = [(equation, node, float(min(shares) * size)) for equation, node, size in added]
    if found.right.shape[1] and not _hold(system, [*leaks, *added], found.left, found.right):
        return None
    if leaks and not added:
        ways.pop()
    return Floating(tuple(added), guess, tuple(_without_repetition(ways)))


def _hold(
    system: _Step, leaks: Sequence[Leak], left: np.ndarray, right: np.ndarray
) -> bool:
    """Whether leaks determine all that is open."""
    if left.shape[1] != right.shape[1]:
        return False
    held = np.zeros((left.shape[1], right.shape[1]))
    for equation, node, size in leaks:
        held += np.outer(left[equation], size * (system.gradient(node) @ right))
    return ranges(held, np.ones(len(held)), HOLDS).right.shape[1] == 0


def _below(pairs: Sequence[Pair], first: np.ndarray) -> dict[tuple[int, int], bool]:
    """Whether the node with the lower number is smaller, for each pair."""
    found = {}
    for pair, is_zero in zip(pairs, first, strict=True):
        first_is_smaller = bool(is_zero) == (pair.sign > 0.0)
        nodes = min(pair.first, pair.second), max(pair.first, pair.second)
        found[nodes] = first_is_smaller == (pair.first == nodes[0])
    return found


def _without_repetition(ways: Iterable[Way]) -> list[Way]:
    found: list[Way] = []
    for way in ways:
        if way not in found:
            found.append(way)
    return found


def _most_open(
    system: _Step, first: np.ndarray, t_end: float, unit: np.ndarray
) -> tuple[np.ndarray, Ranges]:
    """Sides that leave most open and hold at all times.

    Groups of pairs that do not see each other are examined one after another: all sides of a group
    if it has few pairs; otherwise those of pairs of which both are zero, and then of any two.
    """
    best = first, ranges(system.rows(first), unit, SINGULAR)

    def turn(ways: Iterable[Sequence[int]]) -> bool:
        """Look for sides that leave more open, with some pairs turned; tell whether there are."""
        nonlocal best
        before, most = best[0], best[1].right.shape[1]
        for turned in ways:
            sides = before.copy()
            sides[list(turned)] ^= True
            found = ranges(system.rows(sides), unit, SINGULAR)
            if found.right.shape[1] > best[1].right.shape[1] and system.agrees(
                sides, found.left, t_end
            ):
                best = sides, found
        return best[1].right.shape[1] > most

    for group in system.groups():
        if len(group) <= MOST_TURNING:
            turn(_subsets(group))
            continue
        turn(_subsets([k for k in group if system.weak[k]][:MOST_TURNING]))
        while turn(combinations(group, 2)):
            pass
    return best


def _subsets(numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for count in range(1, len(numbers) + 1):
        yield from combinations(numbers, count)


def _floating_pairs(
    system: _Step, first: np.ndarray, unit: np.ndarray, ranges_here: Ranges
) -> list[int]:
    """Pairs whose other expression changes with what is open, in equations that repeat others."""
    left, right = ranges_here.left, ranges_here.right
    if not left.shape[1] or left.shape[1] != right.shape[1]:
        return []
    m, found = len(system.pairs), []
    largest = np.max(np.abs(right), axis=1)
    weight = np.abs(left) * np.max(np.abs(system.rows(first) * unit), axis=1)[:, None]
    weight /= np.max(weight, axis=0)
    for k, pair in enumerate(system.pairs):
        gradient = system.gradients[k + m if first[k] else k]
        change = np.abs(gradient @ right)
        if np.any(weight[pair.equation] > TAKES_PART) and np.any(
            change > TAKES_PART * np.max(np.abs(gradient) * largest)
        ):
            found.append(k)
    return found


class _Step:
    """The linear equations of one step of the implicit Euler method, with both sides of pairs."""

    def __init__(
        self, traced: Trace, args: np.ndarray, pairs: list[Pair], t: float, y: np.ndarray, h: float
    ) -> None:
        nodes = [*(pair.first for pair in pairs), *(pair.second for pair in pairs)]
        self.n, self.pairs, self.t, self.h, self.y = traced.n, pairs, t, h, y
        self.nodes = nodes
        self.weights = np.ones(2 * len(pairs))         # of the expressions in `choose_sides`
        self.weak = np.zeros(len(pairs), bool)         # pairs of which both are zero there
        whole = traced.with_outputs([*traced.outputs, *nodes])
        self._values = Plain(whole.program(opaque=True), args)
        parts = []
        for part in (whole.f_y, whole.f_yp):
            found = np.zeros((len(whole.outputs), traced.n))
            if part.nodes:
                program = Plain(whole.program(part.nodes, opaque=True), args)
                found[part.rows, part.cols] = program.values(t + h, y, np.zeros(traced.n))
            parts.append(found)
        self.slopes = parts[1]
        self.matrix = parts[0] + parts[1] / h
        self.values = self._at(t + h)

    def _at(self, t: float) -> np.ndarray:
        return np.array(self._values.values(t, self.y, np.zeros(self.n)))

    @property
    def gradients(self) -> np.ndarray:
        """Of the expressions of pairs, all first ones before all second ones."""
        return self.matrix[self.n :]

    def gradient(self, node: int) -> np.ndarray:
        return self.gradients[self.nodes.index(node)]

    def groups(self) -> list[list[int]]:
        """Pairs that are connected by equations and unknowns without derivatives."""
        m, with_slopes = len(self.pairs), self.slopes != 0.0
        connected = self.matrix[: self.n] != 0.0
        for k, pair in enumerate(self.pairs):
            both = self.matrix[[self.n + k, self.n + m + k]]
            connected[pair.equation] = np.any(both != 0.0, axis=0)
        connected[np.any(with_slopes[: self.n], axis=1)] = False
        connected[:, np.any(with_slopes, axis=0)] = False
        found: dict[bytes, list[int]] = {}
        for k, pair in enumerate(self.pairs):
            rows, size = np.arange(self.n) == pair.equation, 0
            while np.count_nonzero(rows) > size:
                size = int(np.count_nonzero(rows))
                rows = rows | np.any(connected[:, np.any(connected[rows], axis=0)], axis=1)
            found.setdefault(rows.tobytes(), []).append(k)
        return list(found.values())

    def rows(self, first: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Take the expression that is zero for each pair, of the matrix or of values."""
        whole = self.matrix if whole is None else whole
        found = whole[: self.n].copy()
        for k, pair in enumerate(self.pairs):
            place = k if first[k] else k + len(self.pairs)
            found[pair.equation] = pair.factor * whole[self.n + place]
        return found

    def choose_sides(self, unit: np.ndarray) -> np.ndarray | None:
        """Tell for each pair whether the first is zero; set y to the solution, if there is one."""
        n, m = self.n, len(self.pairs)
        kept = [i for i in range(n) if i not in {pair.equation for pair in self.pairs}]
        chosen = [*kept, *range(n, n + 2 * m)]
        row, column = balanced(self.matrix[chosen] * unit)
        column = column * unit
        matrix = row[:, None] * self.matrix[chosen] * column
        values = row * self._at(self.t + self.h)[chosen]
        sign = np.array([pair.sign for pair in self.pairs])
        self.weights = row[len(kept) :]
        a, b = matrix[len(kept) : len(kept) + m], matrix[len(kept) + m :]
        of_a, of_b = values[len(kept) : len(kept) + m], values[len(kept) + m :]
        first = sign * (of_a - of_b) < 0.0
        for _ in range(MOST_CHOICES):
            pick = first[:, None]
            mixed = np.where(pick, a + MIXED * b, b + MIXED * a)
            right = np.where(first, of_a + MIXED * of_b, of_b + MIXED * of_a)
            z = np.linalg.solve(
                np.concatenate([matrix[: len(kept)], mixed]),
                -np.concatenate([values[: len(kept)], right]),
            )
            at_a, at_b = of_a + a @ z, of_b + b @ z
            zero, other = np.where(first, at_a, at_b), sign * np.where(first, at_b, at_a)
            size = np.max(np.abs(z)) + np.max(np.abs(values))
            wrong = np.flatnonzero(other < -ROUND_OFF * size)
            if not len(wrong):
                if np.max(np.abs(zero)) > ZERO * size:
                    return None                # no solution without the mixtures
                self.weak = other <= ZERO * size
                self._follow(first, unit)
                return first
            first[wrong[0]] ^= True
        return None

    def _follow(self, first: np.ndarray, unit: np.ndarray) -> None:
        """Take two steps on sides: after the first nothing jumps."""
        m = len(self.pairs)
        places = [(k, k + m) if first[k] else (k + m, k) for k in range(m)]
        factors = [MIXED * self.weights[j] / self.weights[i] for i, j in places]

        def mixed(whole: np.ndarray) -> np.ndarray:
            found = whole[: self.n].copy()
            for pair, (i, j), factor in zip(self.pairs, places, factors, strict=True):
                found[pair.equation] = whole[self.n + i] + factor * whole[self.n + j]
            return found

        matrix = mixed(self.matrix)
        row, column = balanced(matrix * unit)
        column = column * unit
        inverse = np.linalg.inv(row[:, None] * matrix * column)
        for count in (1, 2):
            values = mixed(self._at(self.t + count * self.h))
            self.y = self.y - column * (inverse @ (row * values))

    def agrees(self, first: np.ndarray, left: np.ndarray, t_end: float) -> bool:
        """Whether equations that repeat others do so at other times, too."""
        for share in (0.123, 0.456, 0.789):
            values = self._at(self.t + share * (t_end - self.t))
            terms = left * self.rows(first, values)[:, None]
            if not np.all(np.abs(terms.sum(axis=0)) <= ZERO * np.abs(terms).max(axis=0)):
                return False
        return True

    def sizes(self, first: np.ndarray, t_end: float, unit: np.ndarray) -> np.ndarray:
        """Largest sizes of the expressions of pairs on these sides, at times up to the end."""
        matrix = self.rows(first)
        row, column = balanced(matrix * unit)
        column = column * unit
        inverse = np.linalg.pinv(row[:, None] * matrix * column, rcond=SINGULAR)
        largest = np.zeros(2 * len(self.pairs))
        rng = np.random.default_rng(5)
        for t in self.t + (t_end - self.t) * rng.uniform(0.0, 1.0, TIMES):
            values = self._at(t)
            z = -column * (inverse @ (row * self.rows(first, values)))
            now = np.abs(values[self.n :] + self.gradients @ z)
            largest = np.fmax(largest, np.where(np.isfinite(now), now, 0.0))
        return largest
