"""Solve chunks: in the core where possible, otherwise member by member."""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from tether._core import lane as core
from tether.base.status import Status
from tether.ensemble.chunk import Chunk, Note, new_chunk
from tether.ensemble.members import Members
from tether.ensemble.neighbours import solve_alone
from tether.ensemble.program import MembersInCore, NotInCoreError, determined
from tether.ensemble.task import Task
from tether.result.solution import DaeResult

__all__ = ["FAILED_WITH_EXCEPTION", "Worker"]

# Status of a member whose run raised an exception.
FAILED_WITH_EXCEPTION = -100
# After at least so many members, the core is not used any more if it could not finish more than
# this share of them.
MIN_TRIED, MAX_UNFINISHED_SHARE = 16, 0.5
NEVER_STOP = np.zeros(1, np.int8)


class Worker:
    """Solves chunks of a task; several threads may call it at once.

    Attributes
    ----------
    note : str
        Why members do not run in the core; empty if they do.
    """

    def __init__(self, task: Task, members: Members) -> None:
        self.task = task
        self._lanes: SimpleQueue[Any] = SimpleQueue()
        self.note = ""
        # Functions of the user's may keep results in arrays of their own, and linear solvers their
        # factors, so only one thread at a time may call them.
        self._calling = threading.Lock()
        self._tried = self._unfinished = 0     # members tried in the core, and not finished there
        self._determined = determined(task, members)
        self._in_core: MembersInCore | None = None
        try:
            self._in_core = MembersInCore(task, members)
            self._lanes.put(self._new_lane(self._in_core))
        except NotInCoreError as reason:
            self.note = str(reason)
        except Exception as error:             # runs of the members' own will report it
            self.note = f"{type(error).__name__}: {error}"

    def solve(
        self, members: Members, first: int = 0, stop: np.ndarray = NEVER_STOP, trusts: bool = True
    ) -> Chunk:
        """Solve members; the first one has the number `first` in the ensemble.

        None runs in the core if programs turned out to be wrong, so that `trusts` is False.
        """
        if not trusts:
            self._in_core = None
        began = time.perf_counter()
        n = members.y0.shape[1]
        chunk = new_chunk(first, first + members.count, self.task.n_times, n)
        outcome = self._solve_in_core(members, chunk, stop)
        for i in np.flatnonzero((outcome != core.DONE) & (outcome != core.STOPPED)).tolist():
            if stop[0]:
                break
            with self._calling:
                self._solve_alone(members, i, chunk)
        chunk.seconds = time.perf_counter() - began
        return chunk

    def _solve_in_core(self, members: Members, chunk: Chunk, stop: np.ndarray) -> np.ndarray:
        """Run members without Python where possible; return the outcome of every member."""
        count, n = members.count, members.y0.shape[1]
        outcome = np.zeros(count, np.int8)
        in_core = self._in_core
        if in_core is None or count == 0:
            return outcome
        lane, known = self._take_lane(in_core)
        try:
            y_end, yp_end = np.zeros((2, count, n))
            at_times = self.task.times is not None
            y, yp = (chunk.y, chunk.yp) if at_times else np.zeros((2, 0, 0, n))
            slopes = members.yp0 if len(members.yp0) else np.zeros((1, n))
            inputs = in_core.inputs(members)
            outcome[~in_core.serves(members, inputs)] = core.AT_THE_START
            events = lane.run_members(
                inputs, np.ascontiguousarray(members.y0),
                np.ascontiguousarray(slopes), y_end, yp_end, y, yp, chunk.t_end, chunk.counts,
                chunk.drift, chunk.moved, outcome, stop,
            )
        finally:
            self._lanes.put((lane, known))
        stopped = outcome == core.STOPPED
        done = (outcome == core.DONE) | stopped
        self._count(done, outcome)
        chunk.status[done], chunk.status[stopped] = Status.REACHED_END, Status.EVENT
        if not at_times:
            chunk.y[done, 0], chunk.yp[done, 0] = y_end[done], yp_end[done]
        chunk.in_core = int(done.sum())
        if chunk.in_core:
            last = int(np.flatnonzero(done)[-1])
            point = float(chunk.t_end[last]), y_end[last], yp_end[last]
            with self._calling:
                differs = in_core.differs(members, last, *point)
            if differs:
                self._in_core = None           # the function itself is right, not its trace
                self.note = "its trace differs from the function"
                outcome[:] = 0
                chunk.in_core, chunk.is_trusted = 0, False
                return outcome
        if events is not None:
            _note_events(chunk, events, np.flatnonzero(done), in_core.n_events, self.task)
        return outcome

    def _count(self, done: np.ndarray, outcome: np.ndarray) -> None:
        """Give up the core if it could not finish most members, which switch or fail."""
        self._tried += int(np.sum(outcome != core.NOT_YET))
        self._unfinished += int(np.sum(~done & (outcome != core.NOT_YET)))
        if self._tried >= MIN_TRIED and self._unfinished > MAX_UNFINISHED_SHARE * self._tried:
            self._in_core = None
            self.note = "most members need a run of their own"

    def _take_lane(self, in_core: MembersInCore) -> tuple[Any, int]:
        """Return a lane that is free, and its number of known branches, which has to be current."""
        try:
            lane, known = self._lanes.get_nowait()
        except Empty:
            return self._new_lane(in_core)
        return (lane, known) if known == len(in_core.known_branches) else self._new_lane(in_core)

    def _new_lane(self, in_core: MembersInCore) -> tuple[Any, int]:
        known = len(in_core.known_branches)
        return in_core.new_lane(), known

    def _solve_alone(self, members: Members, i: int, chunk: Chunk) -> None:
        """Solve one member by `solve_dae`; an exception is a failure of this member alone."""
        try:
            found = solve_alone(self.task, members, i, chunk.first + i)
        except Exception as error:
            chunk.y[i] = chunk.yp[i] = np.nan
            chunk.status[i] = FAILED_WITH_EXCEPTION
            message = f"{type(error).__name__}: {error}"
            chunk.notes[i] = Note(message, error=error.with_traceback(None))
            return
        chunk.moved[i] = self._was_moved(found, members.y0_of(i))
        _store_result(found, i, chunk, self.task)

    def _was_moved(self, found: DaeResult, y0: np.ndarray) -> bool:
        """Whether starting values that are not determined were moved beyond their tolerance."""
        start = found.start
        if not (start.success and start.moved):
            return False
        rtol, atol = self.task.options.tolerances(len(y0))
        change = np.abs(start.y - y0) > rtol * np.abs(start.y) + atol
        if start.pencil is not None:
            change &= start.pencil.var_index < 2
        return bool(np.any(change & ~self._determined))


def _store_result(found: DaeResult, i: int, chunk: Chunk, task: Task) -> None:
    """Write the result of one member's own run into the arrays of its chunk."""
    chunk.status[i] = found.status
    chunk.counts[i] = [getattr(found.stats, name) for name in core.COUNTS]
    chunk.drift[i] = found.stats.worst_drift
    chunk.t_end[i] = _end_of(found, task)
    y, yp = found.y.T, found.yp.T
    if task.keep == "final":
        chunk.y[i, 0], chunk.yp[i, 0] = (y[-1], yp[-1]) if len(y) else (np.nan, np.nan)
    elif task.keep == "t_eval":
        chunk.y[i], chunk.yp[i] = np.nan, np.nan
        chunk.y[i, : len(y)], chunk.yp[i, : len(y)] = y, yp
    usual = Status(found.status).text
    note = Note(
        found.message if found.message != usual or found.status else "",
        found.warnings, found.t_events, found.y_events, found.yp_events,
    )
    if task.keep == "full":
        note.steps = found
        found.__dict__.update(found.__getstate__())
    if note.message or note.warnings or note.t_events is not None or note.steps is not None:
        chunk.notes[i] = note


def _note_events(
    chunk: Chunk, rows: np.ndarray, done: np.ndarray, count: int, task: Task
) -> None:
    """Write the events of members into their notes; rows are those of `tether._core.event_log`."""
    n = (rows.shape[1] - 3) // 2
    begins, ends = (np.searchsorted(rows[:, 0], done, side) for side in ("left", "right"))
    for i, begin, end in zip(done.tolist(), begins.tolist(), ends.tolist(), strict=True):
        mine = rows[begin:end]
        parts = [mine[mine[:, 1] == k] for k in range(count)]
        stopped = chunk.status[i] == Status.EVENT
        note = chunk.notes[i] = Note(
            Status.EVENT.text if stopped else "", (), [part[:, 2].copy() for part in parts],
            [_or_empty(part[:, 3 : 3 + n]) for part in parts],
            [_or_empty(part[:, 3 + n :]) for part in parts],
        )
        if stopped and task.keep == "t_eval":
            chunk.t_end[i] = _last_event(note.t_events or [], task)


def _or_empty(rows: np.ndarray) -> np.ndarray:
    """Return a copy of the values at events; an empty vector if there are none, as `solve_dae`."""
    return rows.copy() if len(rows) else np.zeros(0)


def _last_event(times: list[np.ndarray], task: Task) -> float:
    found = [float(t) for part in times for t in part]
    return max(found) if task.t_end > task.t0 else min(found)


def _end_of(found: DaeResult, task: Task) -> float:
    """Return the time at which a run ended."""
    if found.status == Status.REACHED_END:
        return task.t_end
    if task.keep != "t_eval":
        return float(found.t[-1]) if len(found.t) else task.t0
    if found.status == Status.EVENT and found.t_events is not None:
        return _last_event(found.t_events, task)
    where = found.diagnosis.where.t if found.diagnosis is not None else None
    if where is not None:
        return float(where)
    return float(found.t[-1]) if len(found.t) else task.t0
