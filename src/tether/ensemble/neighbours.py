"""Starts of some members, used as guesses for others whose own starts are not found.

Which members are used depends only on numbers of members, not on what runs where and in which
order, so a member has the same start in any chunk and on any engine.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.ensemble.members import Members, Shared
from tether.ensemble.task import Task
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten, Model
from tether.problem.problem import prepared
from tether.result.solution import DaeResult
from tether.run.integration import Integration
from tether.start.find import StartFinder
from tether.start.references import References
from tether.structure.scaling import Units
from tether.structure.start import Start

__all__ = ["solve_alone"]

# Shortest step, as a share of the way from the arguments of a neighbour to those of a member.
MIN_STEP = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class _Start:
    """Consistent values of a member, and which of them follow from the others."""

    y: np.ndarray
    follows: np.ndarray


def solve_alone(
    task: Task, members: Members, i: int, number: int, full: bool = False
) -> DaeResult:
    """Solve member i of `members`, which has the number `number` in the ensemble, by itself.

    If its start is not found, that of a neighbour serves as a guess, and the message says so.
    """
    found = task.solve(members, i, full)
    if found.start.success or not task.options.repairs_start or not members.is_finite(i):
        return found
    for k in task.nearest(number):
        neighbour = _start_of(task, k)
        if neighbour is None:
            continue
        guess = _walk(task, k, members, i, neighbour)
        if guess is not None:
            again = task.solve(members, i, full, guess)
            if again.start.success:
                return _with_origin(again, members.y0_of(i), task.numbers[k])
        break
    return found


def _with_origin(found: DaeResult, y0: np.ndarray, number: int) -> DaeResult:
    """Add to a result where its start came from, and how the given values were changed."""
    moved = {j: float(v - y0[j]) for j, v in enumerate(found.start.y) if v != y0[j]}
    return replace(
        found, message=f"{found.message} The start was found from that of member {number}.",
        start=replace(found.start, moved=moved),
    )


def _start_of(task: Task, k: int) -> _Start | None:
    """Find the start of a neighbour in the same way as its own run, once."""
    if k not in task.starts:
        sample, task.starts[k] = task.sample, None
        assert sample is not None
        with suppress(Exception):              # its own run will report it
            run = Integration(
                task.problem_of(sample, k), task.t0, sample.y0_of(k), sample.yp0_of(k),
                task.options, t_bound=task.t_end, dense_output=False,
            )
            task.starts[k] = _read(run.start, run.model, run.state, run.n)
    return task.starts[k]


def _read(start: Start, model: Model, state: State, n: int) -> _Start | None:
    if not start.success:
        return None
    follows = model.determined | ~state.with_slopes[:n]
    follows[[j for j in start.moved if j < n]] = True
    return _Start(start.y[:n].copy(), follows)


def _search(
    task: Task, args: tuple[Any, ...], y0: np.ndarray, yp0: np.ndarray | None
) -> _Start | None:
    """Search only near the given values: going far, as a run does, would take too long."""
    options, t0, n = task.options, task.t0, len(y0)
    problem = prepared(task.problem_with(args), t0, y0)
    model: Model = AsWritten(problem, n, (t0, y0, yp0))
    if options.trace != "never":
        units = Units.of_options(options, y0, abs(task.t_end - t0))
        model, _ = find_model(problem, t0, y0, yp0, options.form, options.backend, units)
    state = new_state(model, options)
    state.given = t0, y0, yp0
    state.t_end, state.direction = task.t_end, math.copysign(1.0, task.t_end - t0)
    model.constraints.attach(state, t0, y0, problem.args, options)
    start = StartFinder(model, state, options, References()).find(t0, y0, yp0, "quiet")
    raise_user_error(state)
    return _read(start, model, state, n)


def _walk(task: Task, k: int, members: Members, i: int, start: _Start) -> np.ndarray | None:
    """Follow the start of a neighbour to the arguments of a member; return a guess for it."""
    y0, yp0, args = members.y0_of(i), members.yp0_of(i), members.args_of(i)
    sample = task.sample
    assert sample is not None
    far_y0, far_args = sample.y0_of(k), sample.args_of(k)
    varies = [
        not isinstance(value, Shared) and value.dtype.kind == "f" for value in members.args
    ]
    is_smooth = all(                           # integers cannot be changed step by step
        moves or isinstance(value, Shared) or np.array_equal(own, far)
        for moves, value, own, far in zip(varies, members.args, args, far_args, strict=True)
    )
    share, step, y, follows = 0.0, 1.0, start.y, start.follows
    while True:
        share_tried = min(1.0, share + step)
        near = [
            far + share_tried * (own - far) if share_tried < 1.0 and moves else own
            for own, far, moves in zip(args, far_args, varies, strict=True)
        ]
        guess = np.where(follows, y, far_y0 + share_tried * (y0 - far_y0))
        if share_tried == 1.0:
            guess = np.where(follows, y, y0)
        found = None
        with suppress(Exception):              # the functions may not be defined on the way
            found = _search(task, tuple(near), guess, yp0)
        if found is not None and share_tried == 1.0:
            return guess
        if found is not None:
            share, y, follows = share_tried, found.y, follows | found.follows
            step = 2.0 * step
        elif not is_smooth or step <= MIN_STEP:
            return None
        else:
            step *= 0.5
