"""Branches on traced values: every path through the function, merged into select nodes."""

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


class TooManyPaths(Untraceable):
    """The function has more paths than are followed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        refusals.last = reason


class Unexpected(Untraceable):
    """A block that was run as if it had no branches of its own has one."""

    def __init__(self, block: types.CodeType) -> None:
        super().__init__("branches in a block that had no branches before")
        refusals.last = str(self)
        self.block = block


class BranchRecorder:
    """Decides branches in one run as a given path says, and notes those that go beyond it.

    Attributes
    ----------
    graph : Graph
        The graph of the conditions.
    raising : dict
        Nodes that are NaN where the function raises an exception of its own, else zero.
    path : Path
        Decisions so far.
    inside : list of code or None
        Blocks that are being run, the innermost one last: None for one whose paths are followed,
        its code for one that is believed to have no branches.
    """

    def __init__(
        self, graph: Graph, is_raised: Callable[[Exception], bool] = lambda _: False
    ) -> None:
        self.graph = graph
        self.raising: dict[int, None] = {}
        self._is_raised = is_raised            # whether the function itself raised an exception
        self._around: list[Path] = []          # decisions outside the block that is run
        self.path: Path = []
        self.inside: list[types.CodeType | None] = []
        self._given: Path = []
        self._known: dict[int, bool] = {}
        self._too_many = 0                     # paths followed, if no more are allowed; else 0
        self._unbranched: str | None = None    # what must not branch at present

    @contextmanager
    def without_branches(self, what: str) -> Iterator[None]:
        """Refuse a function that branches inside this context."""
        before, self._unbranched = self._unbranched, what
        try:
            yield
        finally:
            self._unbranched = before

    def follow(self, run: Callable[[], T], most: int) -> list[tuple[Path, T]]:
        """Run a function or a block along each of its paths, true conditions first.

        Decisions made before a block hold inside it; its own do not outlive it. A path on which
        the function raises an exception of its own is left out, and noted in `raising`.
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
        """Decide a branch: as the given path or earlier decisions say, else as true."""
        if self.graph.is_constant(condition):
            return self.graph.value(condition) != 0.0
        if self._unbranched:
            refuse(f"branches in {self._unbranched}")
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
                raise TooManyPaths("is one of the branches on traced values that make more than "
                                  f"{self._too_many} paths")  # fmt: skip
        elif len(self.path) >= _LONGEST_PATH:
            raise TooManyPaths(f"branches more than {_LONGEST_PATH} times on traced values; a loop "
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
    """Decisions that lead to the next path; None after the last one."""
    for i in reversed(range(len(path))):
        condition, answer = path[i]
        if answer:
            return [*path[:i], (condition, False)]
    return None


def conjunction(graph: Graph, path: Path) -> int:
    """Condition under which a path is taken."""
    node = graph.constant(1.0)
    for condition, answer in path:
        node = graph.logical_and(node, condition if answer else graph.logical_not(condition))
    return node


def merge(graph: Graph, found: list[tuple[Path, list[int]]]) -> list[int]:
    """Join the outputs of all paths, given in the order in which they were found."""

    def choose(condition: int, yes: list[int], no: list[int]) -> list[int]:
        return [graph.select(condition, a, b) for a, b in zip(yes, no, strict=True)]

    return joined_paths(found, choose)


def joined_paths(
    found: list[tuple[Path, T]], choose: Callable[[int, T, T], T], depth: int = 0
) -> T:
    """Join the results of all paths, in the order they were found, by choices between two."""
    first_path, first = found[0]
    if len(found) == 1:
        return first
    condition = first_path[depth][0]
    end = next((i for i, (path, _) in enumerate(found) if not path[depth][1]), len(found))
    if end == 0 or end == len(found):          # the function raises on the other paths
        return joined_paths(found, choose, depth + 1)
    yes, no = (joined_paths(part, choose, depth + 1) for part in (found[:end], found[end:]))
    return choose(condition, yes, no)
