"""Run all chunks: hand them out, collect their results, and repeat those that are lost."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait

import numpy as np

from tether.ensemble.chunk import Chunk, Note, new_chunk
from tether.ensemble.engines import Engine
from tether.ensemble.schedule import Schedule
from tether.ensemble.worker import FAILED_WITH_EXCEPTION

__all__ = ["run_all"]

# Longest wait for a result, in seconds, before looking again.
MAX_WAIT = 0.2
# A member that is alone in its process and kills it so often has failed.
MAX_LOSSES = 2


class Run:
    """One pass over all chunks."""

    def __init__(
        self, engine: Engine, schedule: Schedule, deliver: Callable[[Chunk], None],
        shape: tuple[int, int], stop: np.ndarray,
    ) -> None:
        self._engine, self._schedule, self._deliver = engine, schedule, deliver
        self._shape, self._stop = shape, stop
        self._running: dict[Future[Chunk], tuple[int, int]] = {}
        self._lost: Counter[tuple[int, int]] = Counter()
        self._begun, self._closed = False, ""
        self._trusts = True                    # that programs agree with their functions
        self._by_programs: list[tuple[int, int]] = []
        self._suspects = 0                     # number of members that may kill their process

    def run(self) -> str:
        """Solve everything; if something is left, return the reason."""
        try:
            return self._run()
        except KeyboardInterrupt:
            self._stop[0] = 1
            with contextlib.suppress(KeyboardInterrupt):       # a second Ctrl-C ends the waiting
                self._collect()
            return "it was interrupted"
        except BaseException:
            self._stop[0] = 1
            raise

    def _run(self) -> str:
        while True:
            self._hand_out()
            if not self._running and (self._closed or not self._schedule.left):
                return self._closed and f"the engine was closed ({self._closed})"
            finished, _ = wait(self._running, MAX_WAIT, FIRST_COMPLETED)
            for future in finished:
                span = self._running.pop(future)
                try:
                    chunk = future.result()
                except (BrokenExecutor, CancelledError) as error:
                    if not self._note_loss(span):
                        return f"the engine has lost its workers ({error})"
                    break
                self._schedule.measured(span[1] - span[0], chunk.seconds)
                self._suspects = max(0, self._suspects - (span[1] - span[0]))
                self._take(chunk)

    def _take(self, chunk: Chunk) -> None:
        """Accept a chunk; if programs turn out to be wrong, repeat what was solved by them."""
        if chunk.is_trusted and (self._trusts or not chunk.in_core):
            self._deliver(chunk)
            if chunk.in_core:
                self._by_programs.append((chunk.first, chunk.last))
            return
        self._trusts = False
        for first, last in [*self._by_programs, (chunk.first, chunk.last)]:
            self._schedule.give_back(first, last)
        self._by_programs = []

    def _hand_out(self) -> None:
        if not self._engine.is_ready(not self._running, self._schedule.seconds_left):
            return
        alone = self._suspects > 0
        most = 1 if alone else self._engine.workers + 1
        while (
            len(self._running) < most and not self._closed
            and (span := self._schedule.next()) is not None
        ):
            if alone and span[1] - span[0] > 1:
                self._schedule.give_back(span[0] + 1, span[1])
                span = span[0], span[0] + 1
            if not self._submit(span):
                return

    def _submit(self, span: tuple[int, int]) -> bool:
        """Submit a chunk; take it back if the engine accepts no more."""
        try:
            self._running[self._engine.submit(*span, self._trusts)] = span
            self._begun = True
            return True
        except BrokenExecutor as error:        # chunks that are running, if any, will fail as well
            self._schedule.give_back(*span)
            if not self._running and not self._engine.renew():
                self._closed = str(error)
        except RuntimeError as error:
            if not self._begun:
                raise RuntimeError(f"engine: {error}") from error
            self._schedule.give_back(*span)
            self._closed = str(error)
        return False

    def _note_loss(self, span: tuple[int, int]) -> bool:
        """Repeat what was lost; a member that kills its process every time has failed."""
        if not self._engine.renew():
            return False
        lost, self._running = [span, *self._running.values()], {}
        was_alone, self._suspects = self._suspects > 0, max(0, self._suspects - 1)
        for first, last in sorted(lost, reverse=True):
            self._lost[first, last] += was_alone
            if self._lost[first, last] >= MAX_LOSSES:
                self._deliver(self._killed(first))
            else:
                self._schedule.give_back(first, last)
                self._suspects += last - first
        return True

    def _killed(self, member: int) -> Chunk:
        chunk = new_chunk(member, member + 1, *self._shape)
        chunk.status[0] = FAILED_WITH_EXCEPTION
        error = RuntimeError("the process that solved this member was killed, more than once")
        chunk.notes[0] = Note(str(error), error=error)
        return chunk

    def _collect(self) -> None:
        """Collect the chunks that are finished, and in threads also unfinished ones."""
        for future in self._running:
            future.cancel()
        waits = self._engine.name == "threads"
        done, _ = wait(self._running, None if waits else 0.0)
        for future in done:
            if not future.cancelled() and future.exception() is None:
                self._take(future.result())


def run_all(
    engine: Engine, schedule: Schedule, deliver: Callable[[Chunk], None],
    shape: tuple[int, int], stop: np.ndarray,
) -> str:
    """Solve everything in the schedule; if something is left, return the reason.

    `shape` is that of the values of a member: times and unknowns.
    """
    return Run(engine, schedule, deliver, shape, stop).run()
