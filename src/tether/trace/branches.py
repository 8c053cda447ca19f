"""Branches on traced values: every way through the function, merged into select nodes."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tether.trace import opcodes as op
from tether.trace.effects import effects
from tether.trace.graph import Graph
from tether.trace.refusal import Untraceable, refusals, refuse

Path = list[tuple[int, bool]]

_LONGEST_PATH = 100


T = TypeVar("T")


class TooManyWays(Untraceable):
    """The function has more ways through it than are followed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        refusals.last = reason


class Unexpected(Untraceable):
    """A block that was run as if it had no branches of its own has one."""

    def __init__(self, block: types.CodeType) -> None:
        super().__init__("branches where no branch was known")
        refusals.last = str(self)
        self.block = block


class BranchRecorder:
    """Decides branches on one run as a list says, and notes those that the list does not have.

    Attributes
    ----------
    graph : Graph
        Where the conditions live.
    path : Path
        Decisions so far.
    inside : list of code or None
        Blocks that are being run, the innermost one last: None for one whose ways are followed, its
        code for one that is believed to have no branches.
    """

    def __init__(
        self, graph: Graph, is_raised: Callable[[Exception], bool] = lambda _: False
    ) -> None:
        self.graph = graph
        self.raising: dict[int, None] = {}     # NaN where the function raises, else zero
        self._is_raised = is_raised            # on purpose, by the function itself
        self._around: list[Path] = []          # decisions outside the block that is run
        self.path: Path = []
        self.inside: list[types.CodeType | None] = []
        self._given: Path = []
        self._known: dict[int, bool] = {}
        self._too_many = 0                     # ways, if the next decision makes more than that
        self._straight: str | None = None

    @contextmanager
    def without_branches(self, what: str) -> Iterator[None]:
        """Refuse whatever asks for a decision meanwhile."""
        before, self._straight = self._straight, what
        try:
            yield
        finally:
            self._straight = before

    def follow(self, run: Callable[[], T], most: int) -> list[tuple[Path, T]]:
        """Run along every way through a function or a block of it, those that are true first.

        What is known before a block is known in it; its decisions are its own affair. A way on
        which the function raises an exception of its own is left out, and noted in `raising`.
        """
        outside = self.path, self._given, self._known, self._too_many
        found: list[tuple[Path, T]] = []
        given: Path | None = []
        count = 0
        self._around.append(self.path)
        try:
            while given is not None:
                self.path, self._given, self._known = [], given, dict(outside[2])
                self._too_many = most if count == most else 0
                try:
                    found.append((self.path, run()))
                except Exception as problem:
                    given = _next(self.path)
                    if not self.path or not self._is_raised(problem) or not (found or given):
                        raise
                    self._note_raise()
                if len(self.path) < len(self._given):
                    refuse("branches differently when it is called again")
                given, count = _next(self.path), count + 1
        finally:
            self.path, self._given, self._known, self._too_many = outside
            self._around.pop()
        return found

    def _note_raise(self) -> None:
        graph, effects.has_text = self.graph, False        # it was a message
        value, zero = graph.constant(math.nan), graph.constant(0.0)
        path = [decision for part in self._around for decision in part] + self.path
        for condition, answer in reversed(path):
            sides = (value, zero) if answer else (zero, value)
            value = graph.select(condition, *sides)
        self.raising[value] = None

    def decide(self, condition: int) -> bool:
        """Say which way a branch goes: as given, as before, as it must, or else as if true."""
        if self.graph.is_constant(condition):
            return self.graph.value(condition) != 0.0
        if self._straight:
            refuse(f"branches in {self._straight}")
        if self.graph.nodes[condition][0] == op.NOT:
            return not self.decide(self.graph.nodes[condition][1])
        if condition in self._known:
            return self._known[condition]
        if self.inside and self.inside[-1] is not None:
            raise Unexpected(self.inside[-1])
        answer = True
        if len(self.path) < len(self._given):
            expected, answer = self._given[len(self.path)]
            if expected != condition:
                refuse("branches differently when it is called again")
            if self._too_many and len(self.path) == len(self._given) - 1:
                raise TooManyWays("is one of the branches on traced values that make more than "
                                  f"{self._too_many} ways")  # fmt: skip
        elif len(self.path) >= _LONGEST_PATH:
            raise TooManyWays(f"branches more than {_LONGEST_PATH} times on traced values; a loop "
                              "that ends by such a value cannot be traced")  # fmt: skip
        self.path.append((condition, answer))
        self._learn(condition, answer)
        return answer

    def _learn(self, condition: int, answer: bool) -> None:
        """Note a decision and what follows from it for every number, NaN included."""
        self._known[condition] = answer
        code, a, b, _ = self.graph.nodes[condition]
        if code in (op.EQ, op.NE):
            other = op.NE if code == op.EQ else op.EQ
            self._known[self.graph.binary(other, a, b)] = not answer
        elif code in (op.LT, op.LE) and answer:
            if code == op.LT:
                self._known[self.graph.binary(op.LE, a, b)] = True
                self._known[self.graph.binary(op.LE, b, a)] = False
            self._known[self.graph.binary(op.LT, b, a)] = False


def _next(path: Path) -> Path | None:
    """Decisions that lead to the first way not yet taken."""
    for i in reversed(range(len(path))):
        condition, answer = path[i]
        if answer:
            return [*path[:i], (condition, False)]
    return None


def conjunction(graph: Graph, path: Path) -> int:
    """Condition under which a way is taken."""
    node = graph.constant(1.0)
    for condition, answer in path:
        node = graph.logical_and(node, condition if answer else graph.logical_not(condition))
    return node


def merge(graph: Graph, found: list[tuple[Path, list[int]]]) -> list[int]:
    """Join the outputs of all ways, which stand in the order they were found."""

    def choose(condition: int, yes: list[int], no: list[int]) -> list[int]:
        return [graph.select(condition, a, b) for a, b in zip(yes, no, strict=True)]

    return joined_ways(found, choose)


def joined_ways(
    found: list[tuple[Path, T]], choose: Callable[[int, T, T], T], depth: int = 0
) -> T:
    """Join what all ways lead to, in the order they were found, by choices between two."""
    first_path, first = found[0]
    if len(found) == 1:
        return first
    condition = first_path[depth][0]
    end = next((i for i, (path, _) in enumerate(found) if not path[depth][1]), len(found))
    if end == 0 or end == len(found):          # the function raises on the other ways
        return joined_ways(found, choose, depth + 1)
    yes, no = (joined_ways(part, choose, depth + 1) for part in (found[:end], found[end:]))
    return choose(condition, yes, no)
