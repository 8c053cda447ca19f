"""Jumps that a run steps over: how their times depend on parameters is not known.

Comparisons of unknowns are frozen in a step and located where they change. Roundings are not, nor
are angles that turn over, nor comparisons inside of roots, divisors and the like, which keep these
in their domains. Where the equations jump with one of them, a tangent would miss what the time of
the jump contributes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tether.trace import Graph, emit
from tether.trace import opcodes as op
from tether.trace.backend import Backend, prepare
from tether.trace.graph import FULL

if TYPE_CHECKING:
    from tether.sensitivity.route import Path
    from tether.sensitivity.slopes import Linearised

__all__ = ["Decisions", "decisions_in", "free_jump"]

# Relative: what the equations change by less is round-off.
JUMP = 1e-11
# Of the time: so far beside a decision the equations are compared, beyond its round-off ...
BESIDE = 1e-12
# ... and so many times as far, where a jump is the same, and other changes are larger.
FARTHER = 64.0
REMAINS = 0.5
# Halvings of a step in which a decision changes.
HALVINGS = 48
# Decisions that change in one step are looked at one after the other, up to so many.
MOST_IN_STEP = 20


@dataclass(frozen=True, eq=False)
class Decisions:
    """What may make some equations jump.

    Attributes
    ----------
    answers : Backend
        Program of what comparisons, roundings and the like decide: 0 or 1, or a whole number.
    count : int
        How many they are.
    equations : Backend
        Program of the equations.
    """

    answers: Backend
    count: int
    equations: Backend


def decisions_in(graph: Graph, equations: Sequence[int], n: int, size: int) -> Decisions | None:
    """Find the decisions about n unknowns in equations with `size` inputs; None without any.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.sensitivity.free_jumps import decisions_in
    >>> from tether.trace import trace
    >>> traced = trace(lambda t, y, yp: [yp[0] - np.floor(2.0 * y[0]) / y[0]], 1)
    >>> decisions_in(traced.graph, traced.outputs, 1, 0).answers.new().values(0.0, [1.7], [0.0])
    array([3., 0.])
    """
    answers = [
        answer for node in graph.cone(equations) if graph.level[node] == FULL
        for answer in [_answer(graph, node)] if answer is not None and graph.level[answer] == FULL
    ]
    if not answers:
        return None
    return Decisions(
        prepare(emit(graph, answers, n, size)), len(answers),
        prepare(emit(graph, equations, n, size)),
    )


def _answer(graph: Graph, node: int) -> int | None:
    """Expression that changes where a node may jump, and is constant elsewhere."""
    code, a, b, _ = graph.nodes[node]
    if code in (op.LT, op.LE, op.SIGN, op.FLOOR, op.CEIL):
        return node
    if code == op.MOD:
        return graph.unary(op.FLOOR, graph.div(a, b))
    if code in (op.DIV, op.ATAN2):             # at poles, and where angles turn over
        return graph.binary(op.LT, b if code == op.DIV else a, graph.zero)
    if code == op.TAN:
        return graph.unary(op.FLOOR, graph.add(graph.div(a, graph.constant(math.pi)),
                                               graph.constant(0.5)))
    return None


def free_jump(path: Path) -> float | None:
    """Return the first time at which the equations jump in a leg; None where they do not."""
    linear, inputs = path.linear, path.leg.begin.values
    decisions = linear.decisions
    if decisions is None or not path.steps:
        return None
    runner = decisions.answers.new(inputs)
    times = np.concatenate([[path.leg.begin.t], path.ends])

    def answers(t: np.ndarray, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        found = np.empty((len(t), decisions.count))
        runner.values_along(t, y, yp, found)
        return found

    every = answers(times, path.y, path.yp)
    for row in np.flatnonzero((every[1:] != every[:-1]).any(axis=1)).tolist():
        ends = [(times[k], path.y[k], path.yp[k]) for k in (row, row + 1)]

        def at(share: float, beyond: float = 0.0, ends: list = ends) -> tuple:
            """Point of the step; y' may jump as well, and is not taken any farther."""
            (t, y, yp), (t_end, y_end, yp_end) = ends
            far = share + beyond
            t, y = (1.0 - far) * t + far * t_end, (1.0 - far) * y + far * y_end
            return t, y, (1.0 - share) * yp + share * yp_end

        def answers_at(share: float) -> np.ndarray:
            t, y, yp = at(share)
            return answers(np.array([t]), y[None], yp[None])[0]

        low, now, last = 0.0, every[row], every[row + 1]
        beside = BESIDE * max(abs(ends[0][0]), abs(ends[1][0])) / abs(ends[1][0] - ends[0][0])
        for _ in range(MOST_IN_STEP):
            if np.array_equal(now, last):
                break
            high = 1.0
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                if np.array_equal(answers_at(middle), now):
                    low = middle
                else:
                    high = middle
            sides = [(at(low, -far), at(high, far)) for far in (beside, FARTHER * beside)]
            if _jumps(linear, decisions, inputs, sides):
                return float(at(high)[0])
            low, now = high, answers_at(high)
    return None


def _jumps(
    linear: Linearised, decisions: Decisions, inputs: np.ndarray, sides: list[tuple]
) -> bool:
    """Whether equations change by as much between two near points as between two others."""
    program = decisions.equations.new(inputs)
    values = [[program.values(*point) for point in pair] for pair in sides]
    near, far = (np.abs(pair[1] - pair[0]) for pair in values)
    t, y, yp = sides[0][1]
    size = np.abs(values[0]).max(axis=0)
    terms = linear.at(np.array([t]), y[None], yp[None]).terms(y, yp)
    size[: len(terms)] += np.nan_to_num(terms, nan=0.0, posinf=0.0)
    return bool(np.any((near > JUMP * size) & (near > REMAINS * far)))
