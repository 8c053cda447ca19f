"""Follow the paths of each block of a function separately and join them where the block ends.

Followed from beginning to end, independent `if`s multiply: ten of them make 1024 paths through a
function. In a copy whose blocks are marked (`tether.trace.blocks`) each block is run once for each
of its own paths, from the same state. At its end the values that the paths have left in a variable,
list or array are merged into one, chosen by the conditions, and the function continues with that. A
block for which this is impossible is run as ordinary code: its branches then belong to the block
around it.

Most blocks have no branches on traced values, and the state of a function may be large. So a block
is run as ordinary code until it branches for the first time; then the innermost enclosing block
whose paths are followed, or else the whole function, starts again.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether.trace.blocks import Blocks
from tether.trace.branches import BranchRecorder, Path, Unexpected, conjunction, merge
from tether.trace.guards import guards
from tether.trace.kinds import BOOL, BOXED, EITHER, MIXED, OF_TYPE, UNSURE, class_of, origin_of
from tether.trace.known import IMMUTABLE, home, is_library, module_of, why_unknown
from tether.trace.refusal import Untraceable, refusals
from tether.trace.scalar import Scalar
from tether.trace.watch import Watch, held_by, parts_of

__all__ = ["Joins", "NoJoin"]

_MOST_PATHS = 64           # of one block
_ABSENT = object()
_SIMPLE = IMMUTABLE | {Scalar}
_LARGEST_EXACT = float(2**53)              # larger integers are not exact as floats


class NoJoin(Untraceable):
    """The values that the paths of a block have made cannot be merged into one."""

    def __init__(self, block: types.CodeType, reason: str) -> None:
        super().__init__(reason)
        refusals.last = reason
        self.block = block


class Joins:
    """Runs the blocks of one traced function.

    Parameters
    ----------
    recorder : BranchRecorder
        Decides the branches.
    blocks : Blocks
        Which blocks are run as ordinary code, and which have branches.

    Attributes
    ----------
    changed : callable
        Tells whether something outside the function was written to.
    """

    changed: Callable[[], object]

    def __init__(self, recorder: BranchRecorder, blocks: Blocks) -> None:
        self._recorder, self._blocks = recorder, blocks
        self._unbound: dict[str, list[types.CodeType]] = {}

    def __call__(self, block: types.FunctionType) -> Any:
        """Run a block along all of its paths, and return the merged value."""
        code, inside = block.__code__, self._recorder.inside
        if id(code) in self._blocks.ordinary:
            return block()
        if id(code) not in self._blocks.branching:
            inside.append(code)
            try:
                return block()
            except Unexpected as problem:
                self._blocks.branching[id(problem.block)] = problem.block
                raise
            finally:
                inside.pop()
        before = _State(block.__closure__ or ())
        if not before.is_known:
            return block()
        inside.append(None)
        try:
            runs = self._follow(block, before)
        finally:
            inside.pop()
        runs = self._without_raising(runs)
        if len(runs) == 1 and not runs[0].path:
            return runs[0].result
        return self._join(code, before, runs)

    def _without_raising(self, runs: list[_Run]) -> list[_Run]:
        """Decide whether a block raises an exception that is handled outside; if so, raise it."""
        graph, ended = self._recorder.graph, [run for run in runs if run.problem is None]
        raising = [run for run in runs if run.problem is not None]
        for run in raising:
            is_last = not ended and run is raising[-1]
            if is_last or self._recorder.decide(conjunction(graph, run.path)):
                assert run.problem is not None
                run.state.restore()
                raise run.problem
        return ended

    def _follow(self, block: types.FunctionType, before: _State) -> list[_Run]:
        """Run a block along all of its paths."""
        code, refusal = block.__code__, refusals.last
        count = 0

        def run() -> _Run:
            nonlocal count
            if count:
                before.restore()
            count += 1
            result = problem = None
            try:
                result = block()
            except Exception as raised:
                check()
                if not self._recorder.path or not guards.catch(type(raised)):
                    raise
                problem = raised
            if self._recorder.path:
                check()
            return _Run(before, self._recorder.path, result, problem)

        def check() -> None:
            if before.watch.changed() or self.changed():
                raise NoJoin(code, "writes to something on one of its paths")

        while True:
            try:
                return [one for _, one in self._recorder.follow(run, _MOST_PATHS)]
            except Unexpected:                 # a block inside this one has turned out to branch
                if before.watch.changed() or self.changed():
                    raise
                before.restore()
                count, refusals.last = 0, refusal

    def blocks_behind(self, problem: BaseException) -> list[types.CodeType]:
        """Blocks that cause a failure: the one that has no join, or those that unbound a name."""
        if isinstance(problem, NoJoin):
            return [problem.block]
        if isinstance(problem, NameError):
            found = re.search("'([^']+)'", str(problem))
            return self._unbound.get(found[1], []) if found else []
        return []

    def _join(self, code: types.CodeType, before: _State, runs: list[_Run]) -> Any:
        states = [run.state for run in runs]
        merger = _Merger(self._recorder, [run.path for run in runs], before)
        try:
            returned = merger.plan([run.result for run in runs])
            held = [merger.plan(list(versions)) for versions in _contents(states)]
        except _CannotMerge as problem:
            raise NoJoin(code, str(problem)) from None
        cells: list[Any] = []
        for name, versions in zip(
            code.co_freevars, zip(*(state.contents for state in states), strict=True), strict=True
        ):
            try:
                cells.append(merger.plan(list(versions)))
            except _CannotMerge:   # the variable becomes unbound: reading it later is an error
                cells.append(None)
                self._unbound.setdefault(name, []).append(code)
        merger.merge()
        before.put(cells, held, merger.make)
        return merger.make(returned)


class _Run:
    """One run of a block along one of its paths.

    Attributes
    ----------
    path : Path
        Its decisions.
    state : _State
        Variables, lists and arrays at its end.
    result : object
        What the block returned.
    problem : Exception or None
        What it raised instead.
    """

    def __init__(
        self, before: _State, path: Path, result: Any, problem: Exception | None
    ) -> None:
        self.path, self.result, self.problem = path, result, problem
        self.state = before.now() if path else before


class _State:
    """Variables of a block, and the lists and arrays that can be reached from them."""

    def __init__(self, cells: Sequence[types.CellType]) -> None:
        self.cells = cells
        self.contents = [_content(cell) for cell in cells]
        self.lists: list[tuple[list, list]] = []
        self.arrays: list[tuple[np.ndarray, np.ndarray]] = []
        self.watch = Watch()                   # of everything else that can be written to
        self.seen: dict[int, Any] = {}
        self.is_known = all(map(self._register, self.contents))

    def _register(self, value: Any) -> bool:
        """Register a value and everything it holds; tell whether all of it is known."""
        kind = type(value)
        if kind is Scalar or kind in IMMUTABLE or value is _ABSENT or id(value) in self.seen:
            return True
        self.seen[id(value)] = value
        if issubclass(kind, np.ndarray):
            return self._register_array(value)
        if kind is list:
            self.lists.append((value, value.copy()))
        elif kind is tuple or kind is types.MethodType:
            pass
        elif kind is types.FunctionType:
            if (home(value) or "").startswith("tether.trace."):
                return True
            self.watch.function(value, "a value")
        elif kind in (dict, set):
            self.watch.elements(value, "a value")
            if kind is dict:
                self.watch.mapping(value, "a value")
        elif issubclass(kind, type) or (module_of(kind) or "").startswith("tether.trace."):
            return True                        # private copies and stand-ins are watched already
        elif kind is types.BuiltinFunctionType:
            return value.__self__ is None or type(value.__self__) is types.ModuleType
        elif is_library(module_of(kind)) or why_unknown(kind):
            return False
        else:
            self.watch.add(lambda: held_by(value), "a value")
        return self._register_all(parts_of(value))

    def _register_all(self, values: list[Any]) -> bool:
        """Register many values, which are often all numbers."""
        if _SIMPLE.issuperset(map(type, values)):
            return True
        return all(map(self._register, values))

    def _register_array(self, value: np.ndarray) -> bool:
        if value.dtype != object:
            self.watch.array(value, "a value")
            return True
        plain = value.view(np.ndarray)
        if plain.flags.writeable:
            self.arrays.append((plain, plain.copy()))
        return self._register_all(plain.ravel().tolist())

    def now(self) -> _State:
        """Return the current state of the same variables, lists and arrays."""
        state = object.__new__(_State)
        state.cells, state.contents = self.cells, [_content(cell) for cell in self.cells]
        state.lists = [(value, value.copy()) for value, _ in self.lists]
        state.arrays = [(value, value.copy()) for value, _ in self.arrays]
        return state

    def restore(self) -> None:
        """Set everything back to this state."""
        for cell, value in zip(self.cells, self.contents, strict=True):
            _set(cell, value)
        for items, before in self.lists:
            items[:] = before
        for array, content in self.arrays:
            array[...] = content

    def put(self, cells: list[Any], held: list[Any], make: Callable[[Any], Any]) -> None:
        """Set everything to what was planned; a variable without a plan becomes unbound."""
        for cell, plan in zip(self.cells, cells, strict=True):
            _set(cell, _ABSENT if plan is None else make(plan))
        new = list(map(make, held))
        count = len(self.lists)
        for (items, _), values in zip(self.lists, new[:count], strict=True):
            items[:] = values
        for (array, _), values in zip(self.arrays, new[count:], strict=True):
            array[...] = values


def _contents(states: list[_State]) -> list[tuple]:
    """Contents of each list and array on all paths."""
    lists = [[copy for _, copy in state.lists] for state in states]
    arrays = [[copy for _, copy in state.arrays] for state in states]
    return [*zip(*lists, strict=True), *zip(*arrays, strict=True)]


class _CannotMerge(Exception):  # noqa: N818
    """Several values cannot be merged into one."""


class _Same:
    """Plan: the same object on all paths."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class _Number:
    """Plan: a number, chosen by the conditions."""

    __slots__ = ("kind", "place")

    def __init__(self, place: int, kind: int) -> None:
        self.place, self.kind = place, kind


class _Parts:
    """Plan: a container of the same shape on all paths."""

    __slots__ = ("like", "made", "parts")

    def __init__(self, like: Any, parts: list[Any]) -> None:
        self.like, self.parts, self.made = like, parts, _ABSENT


class _Merger:
    """Merges several values, one for each path through a block, into one."""

    def __init__(self, recorder: BranchRecorder, paths: list[Path], before: _State) -> None:
        self._recorder, self._paths, self._before = recorder, paths, before
        self._columns: list[list[int]] = []    # nodes of a number on all paths
        self._nodes: list[int] = []
        self._known: dict[tuple[int, ...], _Parts] = {}
        self._used: dict[int, tuple[int, ...]] = {}
        self._arrays: list[list[np.ndarray]] = []
        self._kept: list[Any] = []

    def plan(self, values: list[Any]) -> Any:
        """Plan one value for several."""
        first = values[0]
        if all(value is first for value in values):
            return _Same(first)
        kinds = [_kind_of(value) for value in values]
        if None not in kinds:
            return self._number(values, kinds)
        if len({type(value) for value in values}) > 1:
            raise _CannotMerge("has values of different types on its paths")
        if type(first) is tuple or type(first) is list:
            return self._sequence(values)
        if issubclass(type(first), np.ndarray) and first.dtype == object:
            return self._array(values)
        if type(first) in IMMUTABLE and all(value == first for value in values):
            return _Same(first)
        raise _CannotMerge("has different values on its paths")

    def _number(self, values: list[Any], kinds: list[Any]) -> Any:
        if len(set(kinds)) == 1:
            kind = kinds[0]
            if type(values[0]) is not Scalar and all(
                type(value) is type(values[0]) and repr(value) == repr(values[0])
                for value in values
            ):
                return _Same(values[0])
        else:
            classes = {class_of(kind) for kind in kinds}
            if len(classes) > 1 and BOOL in classes:
                raise _CannotMerge("is a bool on one path and a number on another")
            boxed = any(origin_of(kind) in (BOXED, UNSURE) for kind in kinds)
            found = MIXED if len(classes) > 1 else max(classes)
            kind = found + (UNSURE if boxed else EITHER)
        graph = self._recorder.graph
        self._columns.append([
            value.node if type(value) is Scalar else graph.constant(float(value))
            for value in values
        ])
        return _Number(len(self._columns) - 1, kind)

    def _sequence(self, values: list[Any]) -> Any:
        if len({len(value) for value in values}) > 1:
            raise _CannotMerge("has sequences of different lengths on its paths")
        return self._new(values, lambda: [
            self.plan(list(versions)) for versions in zip(*values, strict=True)
        ])

    def _array(self, values: list[Any]) -> Any:
        if any(value.dtype != object or value.shape != values[0].shape for value in values):
            raise _CannotMerge("has arrays of different shapes on its paths")
        if tuple(map(id, values)) not in self._known:
            for number, value in enumerate(values):
                others = [array for array, _ in self._before.arrays]
                others += [arrays[number].view(np.ndarray) for arrays in self._arrays]
                own = value.view(np.ndarray)
                if any(np.may_share_memory(own, other) for other in others):
                    raise _CannotMerge("has an array that is part of another")
            self._arrays.append(values)
        flat = [value.view(np.ndarray).ravel().tolist() for value in values]
        return self._new(values, lambda: [
            self.plan(list(versions)) for versions in zip(*flat, strict=True)
        ])

    def _new(self, values: list[Any], parts: Callable[[], list[Any]]) -> Any:
        """Plan a container; if two names share it on every path, they will share the new one."""
        key = tuple(map(id, values))
        if key in self._known:
            return self._known[key]
        if type(values[0]) is not tuple:
            for number in key:
                if number in self._before.seen or self._used.setdefault(number, key) != key:
                    raise _CannotMerge("has one container under different names on its paths")
        self._kept.append(values)
        plan = self._known[key] = _Parts(values[0], parts())
        return plan

    def merge(self) -> None:
        """Make the expressions of all numbers that were planned."""
        rows = zip(*self._columns, strict=True) if self._columns else [()] * len(self._paths)
        found = [(path, list(row)) for path, row in zip(self._paths, rows, strict=True)]
        self._nodes = merge(self._recorder.graph, found)

    def make(self, plan: Any) -> Any:
        """Make the value that was planned."""
        if type(plan) is _Same:
            return plan.value
        if type(plan) is _Number:
            return Scalar(self._recorder, self._nodes[plan.place], plan.kind)
        if plan.made is _ABSENT:
            parts, like = list(map(self.make, plan.parts)), plan.like
            if type(like) is tuple:
                plan.made = tuple(parts)
            elif type(like) is list:
                plan.made = parts
            else:
                flat = np.fromiter(parts, object, len(parts))
                plan.made = flat.reshape(like.shape).view(type(like))
        return plan.made


def _kind_of(value: Any) -> int | None:
    """Kind of a number that can be part of an expression; None for anything else."""
    if type(value) is Scalar:
        return value.kind
    kind = OF_TYPE.get(type(value))
    return None if kind is None or (type(value) is int and abs(value) > _LARGEST_EXACT) else kind


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _ABSENT


def _set(cell: types.CellType, value: Any) -> None:
    if value is not _ABSENT:
        cell.cell_contents = value
    elif _content(cell) is not _ABSENT:
        del cell.cell_contents
