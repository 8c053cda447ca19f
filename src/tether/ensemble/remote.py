"""Chunks in other processes: what is sent to them, and what they run."""

from __future__ import annotations

import hashlib
import pickle
import signal
import threading
from collections import OrderedDict
from typing import Any

from tether.ensemble.chunk import Chunk
from tether.ensemble.members import Members
from tether.ensemble.task import Task
from tether.ensemble.worker import Worker

__all__ = [
    "Parcel", "disinherit", "ignore_interrupts", "inherit", "pack", "solve_inherited",
    "solve_parcel",
]

# How many workers, each for one task, a process keeps.
MAX_WORKERS_KEPT = 4
_workers: OrderedDict[str, Worker] = OrderedDict()
_making = threading.Lock()             # so that all threads share one worker of a task
# Tasks with all their members, for processes made by fork.
_inherited: dict[str, tuple[Task, Members]] = {}

Parcel = tuple[str, bytes]


def pack(task: Task) -> Parcel:
    """Turn a task into bytes that can be sent to any process, with a name for them."""
    try:
        import cloudpickle as pickler  # optional: it can also pickle functions of the main script
    except ImportError:
        pickler = pickle
    try:
        content = pickler.dumps(task)
    except Exception as error:
        raise TypeError(
            f"fun, or what comes with it, cannot be sent to another process ({error}): define it "
            "in a module that can be imported, install cloudpickle, or use engine='threads'"
        ) from error
    return hashlib.sha256(content).hexdigest(), content


def inherit(name: str, task: Task, members: Members) -> None:
    """Make a task known to processes that are forked from now on."""
    _inherited[name] = task, members


def disinherit(name: str) -> None:
    """Forget a task."""
    _inherited.pop(name, None)


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def solve_inherited(name: str, first: int, last: int, trusts: bool) -> Chunk:
    """Solve members of a task that this process inherited when it was forked."""
    task, members = _inherited[name]
    part = members.part(first, last)
    return _sendable(_worker(name, task, part).solve(part, first, trusts=trusts))


def solve_parcel(parcel: Parcel, members: Members, first: int, trusts: bool) -> Chunk:
    """Solve members of a task that was sent with them."""
    name, content = parcel
    with _making:
        known = _workers.get(name)
        task = known.task if known is not None else pickle.loads(content)
        worker = _worker(name, task, members)
    return _sendable(worker.solve(members, first, trusts=trusts))


def _worker(name: str, task: Task, members: Members) -> Worker:
    worker = _workers.get(name)
    if worker is None:
        worker = _workers[name] = Worker(task, members)
        while len(_workers) > MAX_WORKERS_KEPT:
            _workers.popitem(last=False)
    return worker


def _sendable(chunk: Chunk) -> Chunk:
    """Replace exceptions that cannot be sent by their messages."""
    for note in chunk.notes.values():
        if note.error is not None and not _survives(note.error):
            note.error = RuntimeError(note.message)
    return chunk


def _survives(error: Any) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False
