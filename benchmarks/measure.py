"""Interleaved timing: round r gives every case a slot, and the best time of each counts.

A machine that slows down for a while then slows down all solvers alike, and the best of several
rounds is the time without disturbance. A short run is repeated within its slot: the first one
after another solver finds the caches full of that one's data.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import multiprocessing
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.peers import Adapter, Run, Solve
from benchmarks.symbolic import NotApplicable
from tether import gallery
from tether.gallery import GalleryProblem

PACKAGES = ("tether", "numpy", "scipy", "scikit-sundae", "scipy-dae", "casadi", "pydiffsol")


HANG = "no end"
SLOT = 0.01                # seconds


@dataclass
class Case:
    """One solver on one problem at one tolerance."""

    solver: str
    problem: GalleryProblem
    rtol: float
    solve: Solve
    run: Run | None = None
    seconds: float = math.inf
    spent: float = 0.0
    hung: bool = False

    def take_slot(self) -> None:
        left = SLOT
        while left > 0.0:
            begin = time.perf_counter()
            self.run = self.solve()
            elapsed = time.perf_counter() - begin
            self.seconds = min(self.seconds, elapsed)
            self.spent += elapsed
            left -= elapsed

    @property
    def failure(self) -> str:
        return "not run" if self.run is None else self.run.failure

    @property
    def digits(self) -> float:
        return -math.inf if self.run is None else self.problem.digits(self.run.y)


def prepare(
    solver: str, adapter: Adapter, problem: GalleryProblem, rtol: float, limit: float
) -> Case | None:
    """Set a case up and try it; None if the solver cannot take the problem."""
    try:
        case = Case(solver, problem, rtol, adapter(problem, rtol))
    except NotApplicable:
        return None
    trouble = _trial(case.solve, limit)
    if trouble:
        case.run = Run(problem.y0 * math.nan, failure=trouble)
        case.hung = trouble.startswith(HANG)
    return case


def cold_seconds(adapter: Adapter, problem: GalleryProblem, rtol: float, limit: float) -> float:
    """Time of set-up and first solution in a process that has never seen the problem.

    The solver itself is at work already: another problem was solved before.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        with contextlib.suppress(NotApplicable):
            adapter(gallery.get("trivial"), rtol)()
        begin = time.perf_counter()
        run = adapter(problem, rtol)()
        elapsed = time.perf_counter() - begin
        sender.send(math.nan if run.failure else elapsed)

    process = context.Process(target=_quietly, args=(child,))
    process.start()
    sender.close()             # then the end of the child, however it comes, is seen at once
    seconds = math.nan
    with contextlib.suppress(EOFError):
        seconds = receiver.recv() if receiver.poll(limit) else math.nan
    process.kill()
    process.join()
    return seconds


def interleave(cases: Iterable[Case], rounds: int, budget: float) -> None:
    """Run all cases in turn; one that has used its budget of seconds sits the rest out."""
    cases = list(cases)
    for _ in range(rounds):
        for case in cases:
            failed = case.run is not None and case.run.failure
            if case.spent < budget and not failed:
                case.take_slot()


def _trial(solve: Solve, limit: float) -> str:
    """Run once in a child process, so that a hang or a crash costs one case only."""
    child = multiprocessing.get_context("fork").Process(target=_quietly, args=(solve,))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
        return f"{HANG} within {limit:g} s"
    return "" if child.exitcode == 0 else f"the process ended with code {child.exitcode}"


def _quietly(solve: Callable[[], object]) -> None:
    """Run with the error messages of C libraries out of sight."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    solve()


def conditions() -> str:
    """One paragraph that says where and with what a table was measured."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        f"{time.strftime('%d %B %Y')}; Python {platform.python_version()} on {platform.system()} "
        f"{platform.machine()}, {_processor()}, {os.cpu_count()} cores; {', '.join(versions)}."
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next(line for line in lines if line.startswith("model name"))
        return model.split(":", 1)[1].strip()
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
