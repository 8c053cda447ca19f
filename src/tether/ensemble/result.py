"""EnsembleResult: the solutions of all members."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether._core.lane import COUNTS
from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.ensemble import tables
from tether.ensemble.bands import check_quantiles, quantiles_of
from tether.ensemble.chunk import UNFINISHED, Note
from tether.ensemble.collected import Collected
from tether.ensemble.members import Members
from tether.ensemble.neighbours import solve_alone
from tether.ensemble.plot import plot_bands
from tether.ensemble.task import Task
from tether.problem.names import Names
from tether.problem.problem import as_problem
from tether.result.solution import DaeResult
from tether.run.statistics import Statistics
from tether.structure.start import Start

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

__all__ = ["EnsembleResult"]

NO_NOTE = Note()
DEFAULT_BANDS = (0.05, 0.25, 0.5, 0.75, 0.95)


class EnsembleResult:
    """Solutions of all members of an ensemble; returned by `tether.solve_ensemble`.

    Attributes
    ----------
    t : ndarray, shape (nt,)
        Times that were kept: `t_eval`, or the end of the interval; empty with ``keep="full"``.
    y, yp : ndarray, shape (members, n, nt)
        Values and derivatives; NaN at times that a member did not reach. With ``keep="final"``
        those where each member ended, whether at the end of the interval or before.
    t_final : ndarray, shape (members,)
        Where each member ended.
    status : ndarray of int, shape (members,)
        How each member ended; the numbers are those of `tether.Status`, and -100 stands for an
        exception.
    success : ndarray of bool, shape (members,)
        Whether each member succeeded.
    stats : dict of ndarray
        Work of each member: steps, nfev, njev, nlu, iterations, error_test_failures,
        convergence_failures, projections, worst_drift.
    parameters : dict of ndarray
        The arguments that vary, by name.
    interrupted : str
        Why members are missing; empty if all were solved.
    seconds : float
        Time that it took.
    engine : str
        Where members were solved: "threads", "processes", "executor", "loky" or "dask".
    in_core : int
        Number of members that ran in the compiled core from start to end, without Python.

    Examples
    --------
    >>> import numpy as np
    >>> from tether import solve_ensemble
    >>> def decay(t, y, yp, rate):
    ...     return [yp[0] + rate * y[0]]
    >>> result = solve_ensemble(decay, (0, 1), [1.0], args=(np.array([1.0, 2.0, np.nan]),))
    >>> result
    <EnsembleResult: 2 of 3 members succeeded, 1 unknown, 1 time>
    >>> result.failed().tolist()
    [2]
    >>> result[1].y.round(4).tolist()
    [[0.1353]]
    """

    def __init__(
        self, task: Task, members: Members, found: Collected, shares: np.ndarray | None, keep: str,
        *, name: str = "", interrupted: str = "", seconds: float = 0.0, not_stored: str = "",
    ) -> None:
        self._task, self._members, self._found = task, members, found
        self._shares, self._keep = shares, keep
        self.engine, self.interrupted, self.seconds = name, interrupted, seconds
        self.not_stored = not_stored
        self.in_core = found.in_core
        self.status, self.t_final = found.status, found.t_end
        self.success = (found.status >= 0) & (found.status != UNFINISHED)
        self.y, self.yp = np.swapaxes(found.y, 1, 2), np.swapaxes(found.yp, 1, 2)
        self.t = self._times()
        self.stats: dict[str, np.ndarray] = {
            **{label: found.counts[:, k] for k, label in enumerate(COUNTS)},
            "worst_drift": found.drift,
        }
        self.parameters = members.varying

    def _times(self) -> np.ndarray:
        if self._keep == "full":
            return np.zeros(0)
        if self._keep == "final" or self._task.times is None:
            return np.array([self._task.t_end])
        return self._task.times

    # --- one member -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of members."""
        return self._members.count

    def __iter__(self) -> Iterator[DaeResult]:
        """Iterate over the members."""
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> DaeResult:
        """Return what was kept of one member."""
        i = self._number(i)
        note = self._found.notes.get(i, NO_NOTE)
        if note.error is not None:
            raise note.error
        if self.status[i] == UNFINISHED:
            raise ValueError(f"member {i} was not solved: {self.interrupted}")
        if note.steps is not None:
            return note.steps
        reached = ~np.isnan(self.y[i]).any(axis=0)
        t = np.array([self.t_final[i]]) if self._keep == "final" else self.t
        return DaeResult(
            t=t[reached], y=self.y[i][:, reached], yp=self.yp[i][:, reached], sol=None,
            t_events=note.t_events, y_events=note.y_events, yp_events=note.yp_events,
            status=Status(int(self.status[i])), message=self.message(i), start=self._start(i),
            stats=self._statistics(i), how="a member of an ensemble", warnings=note.warnings,
            analysis=partial(_index_of, self, i), verdict=partial(_diagnosis_of, self, i),
            naming=self._names, event_names=self._event_names,
        )

    def _number(self, i: Any) -> int:
        if isinstance(i, (bool, np.bool_)) or not isinstance(i, (int, np.integer)):
            raise TypeError(f"the number of a member must be an integer, got {i!r}")
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} members, and {i} is not one of them")
        return int(i) % len(self)

    def _start(self, i: int) -> Start:
        y0, yp0 = self._members.y0_of(i), self._members.yp0_of(i)
        slopes = np.full_like(y0, np.nan) if yp0 is None else yp0
        return Start(y0, slopes, bool(self.success[i]), Reason(Kind.NOTHING), "as given; member(i) "
                     "shows what was changed")

    def _statistics(self, i: int) -> Statistics:
        counts: dict[str, Any] = {name: int(self.stats[name][i]) for name in COUNTS}
        return Statistics(**counts, worst_drift=float(self.stats["worst_drift"][i]))

    def member(self, i: int) -> DaeResult:
        """Solve one member again, in full: with all steps, dense output and diagnosis.

        Parameters
        ----------
        i : int
            Its number.

        Returns
        -------
        DaeResult
            As `solve_dae` returns it; if the member raised an exception, that is raised.

        Examples
        --------
        >>> import numpy as np
        >>> from tether import solve_ensemble
        >>> def decay(t, y, yp, rate):
        ...     return [yp[0] + rate * y[0]]
        >>> result = solve_ensemble(decay, (0, 1), [1.0], args=(np.array([1.0, 2.0]),))
        >>> round(float(result.member(1).sol(0.5)[0][0]), 4)
        0.3679
        """
        number = self._number(i)
        return solve_alone(self._task, self._members, number, number, full=True)

    def message(self, i: int) -> str:
        """Say how one member ended."""
        i = self._number(i)
        note = self._found.notes.get(i, NO_NOTE)
        if self.status[i] == UNFINISHED:
            return f"It was not solved: {self.interrupted}."
        return note.message or Status(int(self.status[i])).text

    @property
    def messages(self) -> list[str]:
        """How each member ended, in words."""
        return [self.message(i) for i in range(len(self))]

    @property
    def errors(self) -> dict[int, BaseException]:
        """Exceptions that members raised, by number."""
        found = sorted(self._found.notes.items())
        return {i: note.error for i, note in found if note.error is not None}

    def failed(self) -> np.ndarray:
        """Return the numbers of members that failed, or were not solved."""
        return np.flatnonzero(~self.success)

    @property
    def t_events(self) -> list[list[np.ndarray]] | None:
        """Times of the events: a list for every member, with an array for every event."""
        if self._task.more.get("events") is None:
            return None
        nothing = [np.zeros(0) for _ in self._event_names]
        found = self._found.notes
        return [found.get(i, NO_NOTE).t_events or nothing for i in range(len(self))]

    # --- all members ----------------------------------------------------------------------------

    def quantiles(self, shares: ArrayLike | None = None) -> np.ndarray:
        """Return quantiles over the members that succeeded.

        Parameters
        ----------
        shares : array_like, optional
            Shares of members; those passed to `solve_ensemble`, or 5, 25, 50, 75 and 95 %.

        Returns
        -------
        ndarray, shape (shares, n, nt)
            At the times `t_bands`, which are `t` unless only the ends of members are kept.

        Examples
        --------
        >>> import numpy as np
        >>> from tether import solve_ensemble
        >>> def decay(t, y, yp, rate):
        ...     return [yp[0] + rate * y[0]]
        >>> result = solve_ensemble(decay, (0, 1), [1.0], args=(np.linspace(1, 3, 101),))
        >>> result.quantiles([0.5]).round(4).tolist()
        [[[0.1353]]]
        """
        if shares is None:
            shares = DEFAULT_BANDS if self._shares is None else self._shares
        found = check_quantiles(shares)
        if self._found.bands is not None:
            return self._found.bands.quantiles(found)
        if self._keep == "full":
            raise ValueError("members have steps of their own: pass t_eval to get quantiles")
        return quantiles_of(self._found.y[self.success], found)

    @property
    def t_bands(self) -> np.ndarray:
        """Times of the quantiles."""
        times = self._task.times
        return self.t if self._found.bands is None or times is None else times

    @cached_property
    def _names(self) -> Names:
        more, n = self._task.more, self._members.y0.shape[1]
        args = self._members.args_of(0) if len(self) else (0.0,) * len(self._members.args)
        problem = as_problem(self._task.fun, args=args, **self._task.problem)
        return Names.of(
            problem, n, more.get("names"), more.get("equation_names"), more.get("units")
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        found = self._names.variables
        return found or tuple(f"y[{j}]" for j in range(self._members.y0.shape[1]))

    @cached_property
    def _event_names(self) -> tuple[str, ...]:
        events = self._task.more.get("events")
        if events is None:
            return ()
        given = [events] if callable(events) else events
        return tuple(getattr(event, "__name__", f"event {k}") for k, event in enumerate(given))

    def to_dataframe(self) -> pandas.DataFrame:
        """Return a data frame with a row for every member and time; needs pandas.

        Returns
        -------
        pandas.DataFrame
            With ``member`` and ``t`` as its index, and columns for the parameters that are
            numbers, the unknowns and ``success``.
        """
        return tables.to_dataframe(self)

    def to_xarray(self) -> xarray.Dataset:
        """Return y and yp over ``member``, ``unknown`` and ``t``; needs xarray.

        Returns
        -------
        xarray.Dataset
            With the parameters that are numbers as coordinates of ``member``.
        """
        return tables.to_xarray(self)

    def to_zarr(self, path: str | os.PathLike[str]) -> None:
        """Write all that `to_xarray` returns into a folder in the format of Zarr; needs zarr.

        It is written part by part, and need not fit into memory. ``xarray.open_zarr(path)`` opens
        it without reading all of it.

        Parameters
        ----------
        path : str or path
            A folder that does not exist yet.
        """
        tables.to_zarr(self, path)

    def plot(
        self, unknowns: Sequence[str | int] | str | int | None = None, **options: Any
    ) -> Figure:
        """Plot bands of quantiles over time; needs matplotlib.

        The options are those of `tether.ensemble.plot.plot_bands`.
        """
        return plot_bands(self, unknowns, **options)

    def __repr__(self) -> str:
        """Say in one line how many members succeeded."""
        n, nt = self._members.y0.shape[1], len(self.t)
        times = "all steps" if self._keep == "full" else _counted(nt, "time")
        missing = int(np.sum(self.status == UNFINISHED))
        left = f", {missing} not solved" if missing else ""
        return (
            f"<EnsembleResult: {int(self.success.sum())} of {_counted(len(self), 'member')} "
            f"succeeded{left}, {_counted(n, 'unknown')}, {times}>"
        )

    def __str__(self) -> str:
        """Summarise in a few lines how the members ended."""
        lines = [repr(self).strip("<>")]
        for status in np.unique(self.status):
            rows = np.flatnonzero(self.status == status)
            name = Status(int(status)).name if status > -100 else "EXCEPTION"
            name = "NOT_SOLVED" if status == UNFINISHED else name
            first = "" if status == 0 else f": first {rows[0]}: {self.message(rows[0])}"
            lines.append(f"  {name}: {len(rows)}{first}")
        steps = self.stats["steps"]
        if len(steps):
            lines.append(f"  steps: {steps.min()} to {steps.max()}, {steps.mean():.4g} on average")
        lines.append(
            f"  {self.seconds:.3g} s on {self.engine}, {self.in_core} members without Python"
        )
        return "\n".join(lines)


def _index_of(result: EnsembleResult, i: int) -> Any:
    return result.member(i).index


def _diagnosis_of(result: EnsembleResult, i: int) -> Any:
    return result.member(i).diagnosis


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
