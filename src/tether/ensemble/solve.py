"""solve_ensemble: one problem for many parameters and starting values."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.status import ConsistencyWarning
from tether.ensemble.bands import Bands, check_quantiles
from tether.ensemble.chunk import Chunk
from tether.ensemble.collected import Collected
from tether.ensemble.engines import Engine, choose_engine
from tether.ensemble.fingerprint import fingerprint
from tether.ensemble.members import Members, read_members
from tether.ensemble.progress import read_progress
from tether.ensemble.result import EnsembleResult
from tether.ensemble.run import run_all
from tether.ensemble.schedule import Schedule, missing
from tether.ensemble.store import Store
from tether.ensemble.task import Task, read_task
from tether.ensemble.worker import Worker

__all__ = ["solve_ensemble"]

# Numbers that the values in a chunk may have at most, so that chunks under way need little memory.
MAX_CHUNK_NUMBERS = 2**20


def solve_ensemble(
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    args: Any = (),
    t_eval: ArrayLike | None = None,
    keep: str | None = None,
    quantiles: ArrayLike | None = None,
    engine: Any = "auto",
    workers: int | None = None,
    progress: bool | Callable[..., Any] = False,
    store: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> EnsembleResult:
    """Solve F(t, y, y') = 0 for many parameters and starting values, on all cores.

    The equations are traced, analysed and reduced once; arguments that vary are inputs of the
    compiled program. Every member takes the same steps as if `solve_dae` solved it alone, to the
    last bit, on any engine. A member that fails does not affect the others.

    Parameters
    ----------
    fun : callable or Problem
        The residual, as for `solve_dae`.
    t_span : pair of float
        Start and end, the same for all members.
    y0, yp0 : array_like, shape (n,) or (members, n)
        Starting values and slopes: the same for all members, or a row for each.
    args : sequence, mapping or DataFrame
        Further arguments of `fun`. Arrays vary: their first axis counts the members. Everything
        else is shared; pass an array that is shared as ``tether.ensemble.shared(array)``. A mapping
        or a pandas DataFrame gives the parameters of `fun` by name. Floats are inputs of the
        program; integers that vary are constants in it, so that every value is traced.
    t_eval : array_like, optional
        Times at which the solution is kept.
    keep : {"final", "t_eval", "full"}, optional
        What is kept of every member: the point where it ends, the values at `t_eval`, or all
        steps with dense output. When left out, "t_eval" if `t_eval` is passed, otherwise "final".
    quantiles : array_like, optional
        Shares of members, such as ``[0.05, 0.5, 0.95]``. With ``keep="final"`` and `t_eval` the
        quantiles at these times are computed from members as they finish, and only the end of every
        member is kept. For more than 16,384 members they come from a sample of that size.
    engine : {"auto", "threads", "processes", "loky"}, Executor or dask.distributed.Client
        Where members are solved. "auto" uses threads for members that run in the compiled core
        without Python, and processes for longer work that needs Python. It may also be any executor
        of `concurrent.futures`, or a client of Dask.
    workers : int, optional
        How many members are solved at once; as many as there are cores when left out.
    progress : bool or callable
        Show a bar with an estimate of the time left on standard error, or call
        ``progress(done, total, seconds_left)``.
    store : str or path, optional
        A folder in which finished members are kept. A run that was interrupted or killed can be
        continued from there; a folder with members of another problem is refused.
    **settings
        Further arguments of `solve_dae`: rtol, atol, events, constraints, invariants, names,
        options and so on.

    Returns
    -------
    EnsembleResult
        After Ctrl-C, with the members that are finished.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong or ambiguous; the message names it.

    Examples
    --------
    A capacitor that discharges over each of three resistors:

    >>> import numpy as np
    >>> from tether import solve_ensemble
    >>> def circuit(t, y, yp, resistance):
    ...     voltage, current = y
    ...     return [yp[0] + current, voltage - resistance * current]
    >>> result = solve_ensemble(circuit, (0, 2), [1.0, 0.5], args=(np.array([1.0, 2.0, 4.0]),),
    ...                         t_eval=[0, 1, 2], start="quiet")
    >>> result.success.all(), result.y.shape
    (np.True_, (3, 2, 3))
    >>> result.y[:, 0, -1].round(4).tolist()
    [0.1353, 0.3679, 0.6065]
    """
    members = read_members(fun, args, y0, yp0)
    shares = None if quantiles is None else check_quantiles(quantiles)
    streams = keep == "final" and t_eval is not None and shares is not None
    task = read_task(
        fun, t_span, _with_end(t_eval, t_span) if streams else t_eval,
        "t_eval" if streams else keep, members, settings,
    )
    if workers is not None and (not isinstance(workers, (int, np.integer)) or workers < 1):
        raise ValueError(f"workers must be a positive integer, got {workers!r}")
    kept = "final" if streams else task.keep
    n, nt = members.y0.shape[1], task.n_times
    shown = read_progress(progress, members.count)
    place = None
    if store is not None:
        place = Store(store, fingerprint(task, members, kept), members.count)
    bands = Bands(members.count, (nt, n)) if streams else None
    found = Collected(members.count, nt, n, bands, place)
    began = time.perf_counter()
    trouble, name = _solve_all(task, members, engine, workers, found, place, shown)
    result = EnsembleResult(
        task, members, found, shares, kept, name=name, interrupted=trouble,
        seconds=time.perf_counter() - began, not_stored="" if place is None else place.trouble,
    )
    _warn_or_raise(task, result, found)
    return result


def _with_end(t_eval: Any, t_span: Any) -> Any:
    """Add the end of the interval to the output times."""
    times = np.atleast_1d(np.asarray(t_eval, float))
    return times if len(times) and times[-1] == t_span[1] else np.append(times, t_span[1])


def _solve_all(
    task: Task, members: Members, engine: Any, workers: int | None, found: Collected,
    place: Store | None, shown: Any,
) -> tuple[str, str]:
    """Solve what is not in the store; return why members are missing, and the engine's name."""
    if place is not None:
        for chunk in place.chunks():
            found.take(chunk)
    left = missing(found.done)
    stop = np.zeros(1, np.int8)

    def estimate(worker: Worker) -> float:
        """Solve the first member, and estimate how long all would take on one core."""
        first = left[0][0]
        count = sum(last - first for first, last in left)
        spent = float("inf")
        for _ in range(2):                     # the first time includes tracing
            spent = min(spent, worker.solve(members.part(first, first + 1), first).seconds)
        return spent * count

    if not left and members.count:
        return "", "store"
    chosen: Engine = choose_engine(engine, task, members, workers, stop, estimate)
    n = members.y0.shape[1]
    largest = max(1, MAX_CHUNK_NUMBERS // max(1, task.n_times * n))
    schedule = Schedule(left, chosen.seconds, chosen.workers, largest)

    def deliver(chunk: Chunk) -> None:
        found.take(chunk)
        if place is not None and chunk.is_complete:
            place.write(chunk)
        if shown is not None:
            done, failed = int(np.sum(found.done)), int(np.sum(found.status < 0))
            cost = schedule.cost or 0.0
            shown.update(done, failed, cost * (members.count - done) / chosen.workers)

    try:
        return run_all(chosen, schedule, deliver, (task.n_times, n), stop), chosen.name
    finally:
        chosen.close()
        if shown is not None:
            shown.close()


def _warn_or_raise(task: Task, result: EnsembleResult, found: Collected) -> None:
    """Warn once for all members; if all of them raised an exception, raise the first."""
    errors = [note.error for note in found.notes.values() if note.error is not None]
    if errors and len(errors) == len(result):
        raise errors[0]
    moved = int(found.moved.sum())
    if moved and task.warns:
        warnings.warn(
            f"y0 of {moved} members does not satisfy the algebraic equations and was changed; "
            "start='quiet' takes guesses without a warning", ConsistencyWarning, stacklevel=3,
        )
    if result.interrupted:
        warnings.warn(
            f"{int(np.sum(~found.done))} of {len(result)} members were not solved: "
            f"{result.interrupted}", RuntimeWarning, stacklevel=3,
        )
    if result.not_stored:
        warnings.warn(
            f"not all members could be kept in the store ({result.not_stored}); the result "
            "contains them nevertheless", RuntimeWarning, stacklevel=3,
        )
