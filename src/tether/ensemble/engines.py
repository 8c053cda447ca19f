"""Where chunks are solved: in threads, processes, or an executor of the user's."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_all_start_methods, get_context
from typing import Any, Protocol

import numpy as np

from tether.base.optional import load_optional
from tether.ensemble.chunk import Chunk
from tether.ensemble.members import Members
from tether.ensemble.remote import (
    disinherit,
    ignore_interrupts,
    inherit,
    pack,
    solve_inherited,
    solve_parcel,
)
from tether.ensemble.task import Task
from tether.ensemble.worker import Worker

__all__ = ["ENGINES", "Engine", "choose_engine", "cores"]

ENGINES = ("auto", "threads", "processes", "loky")
# Seconds that a chunk should take: long compared with the cost of sending it.
SECONDS_IN_THREADS, SECONDS_IN_PROCESSES, SECONDS_IN_EXECUTORS = 0.1, 0.25, 1.0
# Where members need Python, processes pay from so many seconds of work on.
PROCESSES_PAY_FROM = 2.0


class Engine(Protocol):
    """Solves chunks, several at once."""

    workers: int
    seconds: float                             # time that a chunk should take

    @property
    def name(self) -> str:
        """Name of the kind of engine."""
        ...

    def submit(self, first: int, last: int, trusts: bool) -> Future[Chunk]:
        """Start to solve members; in the core only if their programs are trusted (`trusts`)."""
        ...

    def is_ready(self, idle: bool, seconds_left: float) -> bool:
        """Whether chunks may be handed out, with so much work left; `idle` if none are running."""
        ...

    def renew(self) -> bool:
        """Replace workers that were lost; False if that is not possible."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """Threads of this process."""

    name, seconds = "threads", SECONDS_IN_THREADS

    def __init__(self, worker: Worker, members: Members, workers: int, stop: np.ndarray) -> None:
        self._worker, self._members, self.workers, self._stop = worker, members, workers, stop
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="tether")

    def submit(self, first: int, last: int, trusts: bool) -> Future[Chunk]:
        """Start to solve members."""
        return self._pool.submit(
            self._worker.solve, self._members.part(first, last), first, self._stop, trusts
        )

    def is_ready(self, idle: bool, seconds_left: float) -> bool:
        """Take chunks at any time."""
        return True

    def renew(self) -> bool:
        """Replace nothing: threads are not lost."""
        return False

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown(cancel_futures=True)


class Processes:
    """Processes on this machine: forked where possible, so that members need not be sent."""

    name, seconds = "processes", SECONDS_IN_PROCESSES

    def __init__(self, task: Task, members: Members, workers: int) -> None:
        self.workers, self._members = workers, members
        self._forks = "fork" in get_all_start_methods() and os.name == "posix"
        self._name = uuid.uuid4().hex
        if self._forks:
            inherit(self._name, task, members)
        else:
            self._parcel = pack(task)
        self._open()

    def _open(self) -> None:
        context = get_context("fork" if self._forks else "spawn")
        self._pool = ProcessPoolExecutor(self.workers, context, initializer=ignore_interrupts)

    def submit(self, first: int, last: int, trusts: bool) -> Future[Chunk]:
        """Start to solve members."""
        if not self._forks:
            return self._pool.submit(
                solve_parcel, self._parcel, self._members.part(first, last), first, trusts
            )
        with warnings.catch_warnings():        # about forking with threads, which are idle here
            warnings.simplefilter("ignore", DeprecationWarning)
            return self._pool.submit(solve_inherited, self._name, first, last, trusts)

    def is_ready(self, idle: bool, seconds_left: float) -> bool:
        """Take chunks at any time."""
        return True

    def renew(self) -> bool:
        """Start new processes."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._open()
        return True

    def close(self) -> None:
        """End the processes, even busy ones: their results are not needed any more."""
        running = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        for process in running:
            process.join()
        disinherit(self._name)


class UserExecutor:
    """An executor of the user's; task and members are sent to it."""

    seconds = SECONDS_IN_EXECUTORS

    def __init__(
        self, executor: Executor, task: Task, members: Members, workers: int, name: str
    ) -> None:
        self.name, self.workers = name, workers
        self._executor, self._members, self._parcel = executor, members, pack(task)

    def submit(self, first: int, last: int, trusts: bool) -> Future[Chunk]:
        """Start to solve members."""
        part = self._members.part(first, last)
        return self._executor.submit(solve_parcel, self._parcel, part, first, trusts)

    def is_ready(self, idle: bool, seconds_left: float) -> bool:
        """Take chunks at any time."""
        return True

    def renew(self) -> bool:
        """Replace nothing: workers are the executor's business."""
        return False

    def close(self) -> None:
        """Leave the executor open."""


class Auto:
    """Threads, until it turns out that members need Python; then processes, if these pay.

    That may turn out on the way, for example when conditions change their answers.
    """

    seconds = SECONDS_IN_THREADS

    def __init__(
        self, worker: Worker, task: Task, members: Members, workers: int, stop: np.ndarray
    ) -> None:
        self.workers, self._worker, self._task, self._members = workers, worker, task, members
        self._engine: Engine = Threads(worker, members, workers, stop)

    @property
    def name(self) -> str:
        """Name of the engine in use now."""
        return self._engine.name

    def submit(self, first: int, last: int, trusts: bool) -> Future[Chunk]:
        """Start to solve members."""
        return self._engine.submit(first, last, trusts)

    def is_ready(self, idle: bool, seconds_left: float) -> bool:
        """Switch to processes if they pay, once nothing is running that a fork could disturb."""
        alone = self._worker.note and self._engine.name == "threads"
        if not alone or seconds_left < PROCESSES_PAY_FROM:
            return True
        if idle:
            self._engine.close()
            self._engine = Processes(self._task, self._members, self.workers)
        return idle

    def renew(self) -> bool:
        """Replace workers that were lost."""
        return self._engine.renew()

    def close(self) -> None:
        """Release all resources."""
        self._engine.close()


def choose_engine(
    engine: Any, task: Task, members: Members, workers: int | None, stop: np.ndarray,
    estimate: Callable[[Worker], float],
) -> Engine:
    """Return the engine to use; `estimate` returns how many seconds one core would take."""
    if isinstance(engine, str):
        if engine not in ENGINES:
            raise ValueError(f"engine must be one of {ENGINES}, an executor or a Dask client, "
                             f"got {engine!r}")
        return _local(engine, task, members, workers or cores(), stop, estimate)
    if hasattr(engine, "get_executor") and hasattr(engine, "nthreads"):     # a client of Dask
        return UserExecutor(
            engine.get_executor(pure=False, retries=3), task, members,
            workers or max(1, sum(engine.nthreads().values())), "dask",
        )
    if isinstance(engine, Executor) or hasattr(engine, "submit"):
        known = getattr(engine, "_max_workers", None)
        return UserExecutor(engine, task, members, workers or known or cores(), "executor")
    raise TypeError(
        f"engine must be one of {ENGINES}, an executor or a Dask client, got {engine!r}"
    )


def _local(
    engine: str, task: Task, members: Members, workers: int, stop: np.ndarray,
    estimate: Callable[[Worker], float],
) -> Engine:
    if engine == "processes":
        return Processes(task, members, workers)
    if engine == "loky":
        loky = load_optional("joblib.externals.loky", "engine='loky'")
        executor = loky.get_reusable_executor(max_workers=workers)
        return UserExecutor(executor, task, members, workers, "loky")
    worker = Worker(task, members)
    can_fork = "fork" in get_all_start_methods() and os.name == "posix"
    if engine == "threads" or workers == 1 or members.count < 2 or not can_fork:
        return Threads(worker, members, workers, stop)
    if worker.note and estimate(worker) > PROCESSES_PAY_FROM:
        return Processes(task, members, workers)
    return Auto(worker, task, members, workers, stop)
