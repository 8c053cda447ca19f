"""A run at the point where it stopped, and what can be found out about it there."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tether._core import codes, probe
from tether._core.adapters import take_refusal
from tether._core.constraints import constraints_at
from tether.base.pattern import Pattern
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis, Where, write
from tether.explain.examine.discontinuity import Break, find_break
from tether.explain.examine.recurrence import all_breaks, exact_time, later_jumps
from tether.explain.tidy import tidy_formula
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.sparsity import Sparsity
from tether.run.attempts import read_steps
from tether.start.high_index import find_kinds

if TYPE_CHECKING:
    from tether._core.state import State
    from tether.run.drive import Driver
    from tether.run.integration import Integration
    from tether.structure.pencil import Pencil

__all__ = ["Case"]

EPS = float(np.finfo(float).eps)
# No matrices are made for more unknowns than this.
MOST_UNKNOWNS = 300
# How far from the last point a jump is looked for, and how far away it may be, as shares of the
# time so far.
REACHES = (1e-9, 1e-6, 1e-3)
FARTHEST_JUMP = 1e-5
FEWEST_SPACINGS = 1e5                # least length of a reach, in spacings of floating-point times
JUMP_IN_TOLERANCES = 1e3             # how far on both sides of y a jump is looked for
SAME_TIME = 1e-5                     # difference of equal times, relative to the interval
# Share of the tolerance by which round-off in the residual may move y.
ROUND_OFF_SHARE = 0.1
# Formulas longer than this are not shown.
LONGEST_FORMULA = 60


class Case:
    """A run at the point where it stopped, and what can be found out about it there."""

    def __init__(self, run: Integration, driver: Driver | None = None) -> None:
        self.run, self.driver, self.state = run, driver, run.state
        self.n, self.names, self.status = run.n, run.names, run.status
        s = self.state
        # what follows must be read before anything is probed
        self.t, self.y, self.yp = run.t, run.y, run.yp
        self.whole_y, self.whole_yp = s.y_now.copy(), s.yp_now.copy()
        self.tried = s.t_new, s.y_tried[: self.n].copy(), s.yp_tried[: self.n].copy()
        self.predicted = (
            s.t_new, s.array("y_predicted")[: self.n].copy(),
            s.array("yp_predicted")[: self.n].copy(),
        )
        self.steps = read_steps(s)
        rtol, atol = run.options.tolerances(self.n)
        self.tolerance = np.maximum(rtol * np.abs(self.y) + atol, 1e-300)

    @cached_property
    def function_state(self) -> State:
        """A state for the user's own function, with differences instead of a Jacobian."""
        problem = copy.copy(self.run.problem)
        problem.jac = None
        if self.n > MOST_UNKNOWNS:     # its Jacobian is never evaluated, so it needs no memory
            diagonal = Pattern(self.n, (np.arange(self.n), np.arange(self.n)))
            problem.sparsity = Sparsity(diagonal, diagonal, by_user=False)
        state = new_state(AsWritten(problem, self.n), self.run.options)
        state.t_end, state.direction = self.state.t_end, self.state.direction
        state.h = self.longest_step or self.state.h or 1.0
        state.t = self.t
        return state

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray | None:
        """Return the residual even if it is not finite; None if the function raises."""
        status, r = probe.residual_at(self.function_state, t, y, yp)
        if not self._raised_nothing():
            return None
        if status != 0 and np.isfinite(r).all():
            r[:] = np.nan               # a C function returned an error status
        return r

    def jacobian(
        self, t: float, y: np.ndarray, yp: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """F_y and F_y' by differences; None where they are not finite or too large."""
        if self.n > MOST_UNKNOWNS or probe.move_to(self.function_state, t, y, yp) != 0:
            return None
        status, fy, fyp = probe.jacobian_at(self.function_state, t, y, yp)
        if not self._raised_nothing() or status != 0:
            return None
        return (fy, fyp) if np.isfinite(fy).all() and np.isfinite(fyp).all() else None

    def _raised_nothing(self) -> bool:
        """Whether the user's function raised nothing; exceptions that end a program pass."""
        error, self.function_state.error = self.function_state.error, None
        if error is not None and not isinstance(error, Exception):
            raise error
        return error is None and take_refusal(self.function_state) is None

    @cached_property
    def jacobians_here(self) -> tuple[np.ndarray, np.ndarray] | None:
        """F_y and F_y' at the last point."""
        return self.jacobian(self.t, self.y, self.yp)

    @cached_property
    def pencil(self) -> Pencil | None:
        """Local index near the last point."""
        return self._pencil_at(self.t, self.y, self.yp)

    @cached_property
    def pencil_of_start(self) -> Pencil | None:
        """Local index near the point where the run began or last restarted."""
        start = self.run.start
        return self._pencil_at(self.run.given[0], start.y[: self.n], start.yp[: self.n])

    def _pencil_at(self, t: float, y: np.ndarray, yp: np.ndarray) -> Pencil | None:
        if self.n > MOST_UNKNOWNS or probe.move_to(self.function_state, t, y, yp) != 0:
            return None
        try:
            return find_kinds(self.function_state, t, y, yp)
        except Exception:               # of the user's function, at a point near the solution
            self.function_state.error = None
            return None

    @cached_property
    def large_pencil(self) -> Pencil | None:
        """Pencil of a large system that is singular, or nearly so, near the last point.

        It is found with the model's sparse matrices, in a memory of its own.
        """
        model = self.run.model
        if self.n <= MOST_UNKNOWNS or model.is_reduced or model.size != self.n:
            return None
        if model.pattern is None:
            return None
        from tether.start.singular import singular_beside  # late, to save time

        try:
            options = replace(self.run.options, linear_solver="sparse", preconditioner=None)
            state = new_state(model, options)
            state.t_end, state.direction = self.state.t_end, self.state.direction
            state.h = self.longest_step or self.state.h or 1.0
            if probe.move_to(state, self.t, self.y, self.yp) != 0:
                return None
            return singular_beside(state, self.t, self.y, self.yp)
        except Exception:               # of the user's function, at a point near the solution
            return None

    @cached_property
    def longest_step(self) -> float:
        """Longest of the last attempts."""
        return float(np.abs(self.steps["h"]).max()) if len(self.steps) else 0.0

    @cached_property
    def recent_break(self) -> Break | None:
        """Jump or kink of the residual at the last steps."""
        began = self.t0 if self.driver is None else self.driver.t_start
        elapsed = abs(self.t - began)
        nearby = max(2.0 * self.longest_step, FARTHEST_JUMP * elapsed)
        # steps of a creeping run are too short to show a jump
        for reach in (2.0 * self.longest_step, *(share * elapsed for share in REACHES)):
            if reach >= max(2.0 * self.longest_step, FEWEST_SPACINGS * EPS * abs(self.t)) > 0.0:
                found = self.break_within(reach)
                if found is not None and abs(found.t - self.t) <= nearby:
                    return found
        return None

    @cached_property
    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Sizes of F_y and F_y', the least at three points: differences across jumps are huge."""
        assert self.jacobians_here is not None
        fy, fyp = (np.abs(matrix) for matrix in self.jacobians_here)
        for shift in (JUMP_IN_TOLERANCES, -JUMP_IN_TOLERANCES):
            beside = self.jacobian(self.t, self.y + shift * self.tolerance, self.yp)
            if beside is not None:
                fy = np.minimum(fy, np.abs(beside[0]))
                fyp = np.minimum(fyp, np.abs(beside[1]))
        return fy, fyp

    def break_within(self, reach: float) -> Break | None:
        """Jump or kink of the residual along the solution, this far from the last point."""
        if self.jacobians_here is None:
            return None
        fy, fyp = self.slopes
        terms = fy @ np.abs(self.y) + fyp @ np.abs(self.yp)
        size = np.maximum(fy @ self.tolerance + fyp @ (self.tolerance / reach), 1e-300)
        low, high = sorted((self.t0, self.state.t_end))
        first, last = max(self.t - reach, low), min(self.t + reach, high)
        most = (np.abs(self.y) + np.abs(self.y - self.run.given[1]) + self.tolerance) / reach
        # along the solution; in time alone; and across a surface that the solution rests on
        across = JUMP_IN_TOLERANCES * self.tolerance / reach
        for slope in (np.clip(self.yp, -most, most), np.zeros(self.n), across, -across):

            def along(t: float, slope: np.ndarray = slope) -> np.ndarray | None:
                return self.residual(t, self.y + (t - self.t) * slope, self.yp)

            found = find_break(along, first, last, size, terms)
            if found is not None:
                return replace(found, timed=self._is_timed(found, first, last, size, terms))
        return None

    def _is_timed(
        self, found: Break, first: float, last: float, size: np.ndarray, terms: np.ndarray
    ) -> bool:
        """Whether the residual jumps at that time for other values of the unknowns as well."""
        near = SAME_TIME * abs(last - first) + found.within
        for y in (self.y, self.y + JUMP_IN_TOLERANCES * self.tolerance):

            def still(t: float, y: np.ndarray = y) -> np.ndarray | None:
                return self.residual(t, y, self.yp)

            other = find_break(still, first, last, size, terms)
            if other is None or abs(other.t - found.t) > near:
                return False
        return True

    def breaks_from(self, found: Break) -> str:
        """Write the times of a jump and of all later ones that depend on time alone."""
        end = self.state.t_end

        def still(t: float) -> float | None:
            values = self.residual(t, self.y, self.yp)
            return None if values is None else float(values[found.row])

        first, later = found.t, []
        if found.timed and found.jump and np.isfinite(end) and end != first:
            first = exact_time(still, first, found.within)
            later = later_jumps(still, first, found.jump, abs(first - self.t0), end)
        return all_breaks(first, later, end)

    def constraint_values(self, t: float, y: np.ndarray) -> np.ndarray | None:
        """Return the values of the constraints; None if one of them raises."""
        s = self.state
        _, values = constraints_at(s, t, y)
        error, s.error = s.error, None
        if error is not None and not isinstance(error, Exception):
            raise error
        return values if error is None and take_refusal(s) is None else None

    def constraint_break(self, reach: float) -> Break | None:
        """Jump of a constraint along the solution or in time alone, at most this long ago."""
        s = self.state
        if not s.n_constraints:
            return None
        gy = np.abs(s.constraint_slopes)
        size, terms = gy @ s.tolerances, gy @ np.abs(self.whole_y)
        first, last = self.t - s.direction * reach, s.t_new
        for slope in (self.whole_yp, np.zeros(s.n)):

            def along(t: float, slope: np.ndarray = slope) -> np.ndarray | None:
                return self.constraint_values(t, self.whole_y + (t - self.t) * slope)

            found = find_break(along, first, last, np.maximum(size, 1e-300), terms)
            if found is not None and found.jump:
                return found
        return None

    @cached_property
    def lost_in_round_off(self) -> bool:
        """Whether round-off hides the cause, as with short steps at index 2 and 3."""
        moved = self.round_off(self.longest_step)
        return self.state.highest_kind > 1 and moved is not None and (
            moved.sum(axis=1).max() >= ROUND_OFF_SHARE
        )

    def round_off(self, h: float) -> np.ndarray | None:
        """How far round-off in each equation moves each unknown in a step, in tolerances."""
        if self.jacobians_here is None or not h:
            return None
        fy, fyp = self.jacobians_here
        try:
            inverse = np.linalg.inv(fy + fyp / h)
        except np.linalg.LinAlgError:
            return None
        noise = EPS * (np.abs(fy) @ np.abs(self.y) + np.abs(fyp) @ np.abs(self.yp))
        return np.abs(inverse) * noise / self.tolerance[:, None]

    @property
    def t0(self) -> float:
        """Time at which the run began or last restarted."""
        return self.run.given[0]

    def failed_attempts(self) -> np.ndarray:
        """Return the attempts after the last step that was accepted."""
        accepted = np.flatnonzero(self.steps["outcome"] == codes.OK)
        return self.steps[accepted[-1] + 1 :] if len(accepted) else self.steps

    def formula(self, row: int) -> str:
        """Write an equation in the user's names; empty where it is not known or too long."""
        model = self.run.model
        if model.plan is None or model.plan.traced is None:
            return ""
        traced = model.plan.traced
        try:
            text = tidy_formula(
                traced.graph, traced.outputs[row], self.names.variables, traced.args.names
            )
        except (OverflowError, ValueError):     # a constant that is not finite
            return ""
        except IndexError:                      # a share of a sliding solution has no name
            return ""
        return text if len(text) <= LONGEST_FORMULA else ""

    def as_formula(self, row: int) -> list[str]:
        """Say what an equation is, if its formula is known."""
        formula = self.formula(row)
        return [f"it is {formula}"] if formula else []

    def value(self, row: int, value: float) -> str:
        """Say that an equation does not hold."""
        formula = self.formula(row)
        if formula:
            return f"{formula} is {value:.4g} instead of 0 ({self.names.equation(row)})"
        return f"{self.names.equation(row)} has the value {value:.4g} instead of 0"

    def say(
        self, cause: Cause, what: str = "", evidence: Iterable[str] = (),
        t: float | None = None, rows: tuple | list = (), columns: tuple | list = (),
        situation: str = "", breaks: str = "",
    ) -> Diagnosis:
        """Write a diagnosis with the names of equations and variables."""
        rows, columns = tuple(map(int, rows)), tuple(map(int, columns))
        where = Where(
            t, tuple(self.names.equation(i) for i in rows),
            tuple(self.names.variable(j) for j in columns), rows, columns,
        )
        return write(cause, where, what, list(evidence), self.steps, situation, breaks)
