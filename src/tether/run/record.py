"""Record: the arrays a run writes into, grown by doubling, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tether._core import store
from tether._core.constraints import constraints_at
from tether._core.state import State
from tether.base.capacity import fits, free_memory, in_words
from tether.base.frozen import make_frozen
from tether.base.spill import empty_array
from tether.run.steps import Steps, joined
from tether.start.references import References

FIRST_CAPACITY = 256
NO_CONSTRAINTS = np.zeros((0, 0))
Outputs: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]     # t, y, y', one row per time


class Record:
    """Rows of t, y, y' and order for every step, and of y, y' for the output times."""

    def __init__(
        self, state: State, keep_steps: bool, t_eval: np.ndarray | None, limit: float = np.inf
    ) -> None:
        self._earlier: list[_Part] = []        # parts of earlier states
        self._whole: list[Steps] = []          # their steps with all unknowns
        self._n_found = 0                      # updated at the first change of state
        self.keep_steps = keep_steps
        self.t_eval = t_eval
        self._limit = limit                    # bytes of steps beyond which they go to a file
        self._open(state, t_eval)

    def _open(self, state: State, t_eval: np.ndarray | None) -> None:
        """Let a state write into new arrays."""
        self._state, self._times = state, t_eval
        self._references: list[_Reference] = []
        if state.n_constraints:
            values = state.kept_values.copy()
            self._references.append(_Reference(0, 0, values, np.zeros_like(values)))
        n = state.n
        self._begins: list[int] = []           # rows where parts begin ...
        self._smooth: list[bool] = []  # ... and whether they continue smoothly from the row before
        if self.keep_steps:
            self.t, self.order = np.empty(FIRST_CAPACITY), np.empty(FIRST_CAPACITY, np.intc)
            self.y, self.yp = np.empty((FIRST_CAPACITY, n)), np.empty((FIRST_CAPACITY, n))
            m = state.n_constraints
            self.g = np.zeros((FIRST_CAPACITY, m)) if m else NO_CONSTRAINTS
            self._hand_over()
        if t_eval is not None:
            _require_outputs(len(t_eval), n)
            self.y_eval, self.yp_eval = np.empty((2, len(t_eval), n))
            if len(t_eval):
                state.evaluate_at(t_eval, self.y_eval.ravel(), self.yp_eval.ravel())

    def go_on(self, state: State, n_user: int, n_found: tuple[int, int]) -> None:
        """From here on record another state, whose unknowns and constraints may differ.

        `n_found` is the number of constraints that come from the equations, before and now.
        """
        self._n_found, now = n_found
        self._earlier.append(self._part(n_user))
        if self.keep_steps:
            self._whole.append(self._steps())
        self._n_found = now
        left = None if self._times is None else self._times[self._state.next_eval :]
        self._open(state, left)

    def note_references(self, references: References) -> None:
        """Record the values that invariants keep from here on."""
        assert references.shift is not None
        shift = np.zeros(self._state.n_constraints)
        shift[len(shift) - len(references.shift) :] = references.shift
        output = 0 if self._times is None else self._state.next_eval
        row = self._state.stored if self.keep_steps else 0
        values = self._state.kept_values.copy()
        self._references.append(_Reference(row, output, values, shift))

    @property
    def part_number(self) -> int:
        """Number of earlier states that have written here."""
        return len(self._earlier)

    def times_of(self, part: int) -> np.ndarray:
        """Return the times of the steps that one of the states has written so far."""
        return self.whole_steps(part).t

    def whole_steps(self, part: int) -> Steps:
        """Return the steps of one of the states, with all of its unknowns."""
        return self._steps() if part == len(self._whole) else self._whole[part]

    @property
    def has_room(self) -> bool:
        """Whether another step fits, or there is free memory to double the arrays."""
        if not self.keep_steps or self._state.stored < len(self.t):
            return True
        return 2 * self.size > self._limit or fits(2 * self.size)

    @property
    def size(self) -> int:
        """Bytes of the steps stored so far."""
        return sum(part.nbytes for part in (self.t, self.order, self.y, self.yp, self.g))

    def reserve(self, rows: int) -> None:
        """Make sure that `rows` more steps fit."""
        if not self.keep_steps or self._state.stored + rows <= len(self.t):
            return
        used, on_disk = self._state.stored, 2 * self.size > self._limit
        for name in ("t", "order", "y", "yp", "g"):
            old = getattr(self, name)
            new = empty_array((2 * len(old), *old.shape[1:]), old.dtype, on_disk)
            new[:used] = old[:used]
            setattr(self, name, new)
        self._hand_over()

    def _hand_over(self) -> None:
        self._state.keep_steps_in(
            self.t, self.y.ravel(), self.yp.ravel(), self.order, self.g.ravel()
        )

    def begin_part(self, t: float, y: np.ndarray, yp: np.ndarray, smooth: bool = False) -> None:
        """Store a point where the integration begins, restarts, or continues smoothly."""
        if self.keep_steps:
            self._begins.append(self._state.stored)
            self._smooth.append(smooth)
            self._append(t, y, yp, self._state.k)

    def end_step(self, t: float, y: np.ndarray, yp: np.ndarray) -> None:
        """Store the point where an event cut the last step."""
        if self.keep_steps:
            self._append(t, y, yp, self._state.last_k)

    def _append(self, t: float, y: np.ndarray, yp: np.ndarray, order: int) -> None:
        self.reserve(1)
        s = self._state
        if s.n_constraints:
            self.g[s.stored] = constraints_at(s, t, y)[1]
        store.store_point(s, t, y, yp, order)

    def join_last_part(self) -> None:
        """Note that the last part continues smoothly from the one before."""
        if self.keep_steps:
            self._smooth[-1] = True

    def steps(self) -> Steps:
        """Return the steps stored so far."""
        if not self._earlier:
            return self._steps()
        earlier = [part.steps for part in self._earlier if part.steps is not None]
        return joined([*earlier, self._steps().restricted(earlier[0].y.shape[1])])

    def outputs(self) -> Outputs:
        """Return t, y, y' at the output times reached so far."""
        if not self._earlier:
            return self._outputs()
        earlier = [part.outputs for part in self._earlier if part.outputs is not None]
        parts = [*earlier, _restricted(self._outputs(), earlier[0][1].shape[1])]
        t, y, yp = (np.concatenate(column) for column in zip(*parts, strict=True))
        return t, y, yp

    def drift(self) -> np.ndarray | None:
        """Return the constraints' residual at what `solve_dae` returns, one row per constraint.

        Constraints found in the equations come first. If fewer hold than at other times, the
        remaining rows are NaN.
        """
        if not self._earlier:
            return None if self._state.n_constraints == 0 else self._drift().T
        parts = [part.drift for part in self._earlier] + [self._part(0).drift]
        found = [part.n_found for part in self._earlier] + [self._n_found]
        most = max(found)
        given = max(part.shape[1] - count for part, count in zip(parts, found, strict=True))
        if most + given == 0:
            return None
        whole = [np.full((len(part), most + given), np.nan) for part in parts]
        for rows, part, count in zip(whole, parts, found, strict=True):
            rows[:, :count] = part[:, :count]
            rows[:, most : most + part.shape[1] - count] = part[:, count:]
        return np.concatenate(whole).T

    # --- of the current state -----------------------------------------------------------------

    def _steps(self) -> Steps:
        used = self._state.stored
        return make_frozen(Steps, {
            "t": self.t[:used], "y": self.y[:used], "yp": self.yp[:used],
            "order": self.order[:used], "begins": self._begins, "smooth": self._smooth,
        })

    def _outputs(self) -> Outputs:
        done = self._state.next_eval
        assert self._times is not None
        return self._times[:done], self.y_eval[:done], self.yp_eval[:done]

    def _drift(self) -> np.ndarray:
        """Return the residuals of the constraints: one row per point, one column per constraint.

        They are relative to the values at the start, so that jumps of invariants show.
        """
        if self._state.n_constraints == 0:
            s = self._state
            return np.zeros((s.stored if self._times is None else s.next_eval, 0))
        if self._times is None:
            rows = self.g[: self._state.stored].copy()
            for noted, end in self._noted([noted.row for noted in self._references]):
                rows[noted.row : end] += noted.shift
            return rows
        t, y, _ = self._outputs()
        found = [constraints_at(self._state, *point)[1] for point in zip(t, y, strict=True)]
        rows = np.array(found).reshape(len(found), self._state.n_constraints)
        for noted, end in self._noted([noted.output for noted in self._references]):
            now = self._state.kept_values
            rows[noted.output : end] += now - noted.values + noted.shift
        return rows

    def _noted(self, begins: list[int]) -> Iterator[tuple[_Reference, int | None]]:
        """Yield each reference with the row at which the next one begins."""
        return zip(self._references, [*begins[1:], None], strict=False)

    def _part(self, n_user: int) -> _Part:
        return _Part(
            self._steps().restricted(n_user) if self.keep_steps else None,
            _restricted(self._outputs(), n_user) if self._times is not None else None,
            self._drift(), self._n_found,
        )


@dataclass(frozen=True, eq=False)
class _Reference:
    """The values that constraints were compared with from some row on."""

    row: int                           # first row of the steps
    output: int                        # first row of the outputs
    values: np.ndarray
    shift: np.ndarray                  # from the values at the start


@dataclass(frozen=True, eq=False)
class _Part:
    """What was recorded of one state, for the user's variables only."""

    steps: Steps | None
    outputs: Outputs | None
    drift: np.ndarray
    n_found: int                       # number of constraints that come from the equations


def _require_outputs(count: int, n: int) -> None:
    """Raise an error if there is not enough memory for the output times."""
    needed = 2 * 8 * count * n
    if not fits(needed):
        raise MemoryError(
            f"t_eval has {count} times: y and y' of {n} unknowns take {in_words(needed)}, but "
            f"{in_words(free_memory())} are free"
        )


def _restricted(outputs: Outputs, n: int) -> Outputs:
    """Return the outputs of the first n unknowns."""
    t, y, yp = outputs
    return t, y[:, :n], yp[:, :n]
