"""Task: what all members share, checked once; it can be sent to other processes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tether.ensemble.members import Members
from tether.problem.names import Names
from tether.problem.options import Options, merge
from tether.problem.problem import Problem, as_problem
from tether.result.solution import DaeResult
from tether.run.watch import check_events
from tether.solve import check_span, check_t_breaks, check_t_eval, solve_dae

__all__ = ["KEEPS", "Task", "read_task"]

KEEPS = ("final", "t_eval", "full")
# How many members may provide starts as guesses for others.
SAMPLE_SIZE = 8
# Arguments of solve_dae that become options ...
OPTIONS = (
    "rtol", "atol", "start", "first_step", "max_step", "max_order", "max_steps", "max_seconds",
    "form", "trace",
)
# ... that belong to the problem ...
PROBLEM_ARGUMENTS = (
    "jac", "constraints", "invariants", "var_index", "jac_sparsity", "lband", "uband",
)
# ... and that are not available for many runs at once.
NOT_AVAILABLE = {
    "dense_output": "keep='full' keeps all steps, and result[i].sol is the dense output",
    "callback": "it would be called from several threads at once; use events, or solve_dae",
}


@dataclass(frozen=True, eq=False)
class Task:
    """What all members of an ensemble share.

    Attributes
    ----------
    fun, t0, t_end, times : object, float, float, ndarray or None
        The equations, the interval, and the times that are kept; None keeps the last point.
    keep : str
        One of `KEEPS`.
    options : Options
        Options, with a backend that does not depend on earlier runs.
    problem : dict
        Further arguments of `solve_dae` that belong to the problem.
    more : dict
        Other arguments of `solve_dae`: events, names, units and so on.
    warns : bool
        Whether to warn if starting values were changed.
    sample, numbers, starts : Members, tuple of int, dict
        Some members from all over the ensemble, their numbers in it, and those of their starts that
        have been needed so far (`tether.ensemble.neighbours`).
    """

    fun: Any
    t0: float
    t_end: float
    times: np.ndarray | None
    keep: str
    options: Options
    problem: dict[str, Any]
    more: dict[str, Any]
    warns: bool = True
    sample: Members | None = None
    numbers: tuple[int, ...] = ()
    starts: dict[int, Any] = field(default_factory=dict)

    def solve(
        self, members: Members, i: int, full: bool = False, y0: np.ndarray | None = None
    ) -> DaeResult:
        """Solve one member by itself; with `full`, keep all steps and the dense output.

        `y0` replaces its own starting values.
        """
        keep_all = full or self.keep == "full"
        return solve_dae(
            self.fun, (self.t0, self.t_end), members.y0_of(i) if y0 is None else y0,
            members.yp0_of(i), args=members.args_of(i), t_eval=None if keep_all else self.times,
            dense_output=keep_all, options=self.options, **self.problem, **self.more,
        )

    def problem_of(self, members: Members, i: int) -> Problem:
        """Return the problem of one member."""
        return self.problem_with(members.args_of(i))

    def problem_with(self, args: tuple[Any, ...]) -> Problem:
        """Return the problem with given arguments."""
        return as_problem(self.fun, args=args, **self.problem)

    def nearest(self, number: int) -> list[int]:
        """Return the sample, in order of the distance from a member, without the member itself."""
        others = [k for k, other in enumerate(self.numbers) if other != number]
        return sorted(others, key=lambda k: abs(self.numbers[k] - number))

    @property
    def n_times(self) -> int:
        """Number of times at which values of every member are kept."""
        if self.keep == "full":
            return 0
        return 1 if self.times is None else len(self.times)


def read_task(
    fun: Any, t_span: Any, t_eval: Any, keep: str | None, members: Members,
    settings: Mapping[str, Any],
) -> Task:
    """Check all arguments that the members share; an error names the argument."""
    known = set(inspect.signature(solve_dae).parameters) - {"progress"}
    for name in settings:
        if name in NOT_AVAILABLE:
            raise TypeError(f"{name} is not an argument of solve_ensemble: {NOT_AVAILABLE[name]}")
        if name not in known:
            raise TypeError(f"solve_ensemble has no argument {name!r}")
    keep = ("final" if t_eval is None else "t_eval") if keep is None else keep
    if keep not in KEEPS:
        raise ValueError(f"keep must be one of {KEEPS}, got {keep!r}")
    if keep == "t_eval" and t_eval is None:
        raise ValueError("keep='t_eval' needs t_eval, the times to be kept")
    if keep != "t_eval" and t_eval is not None:
        raise ValueError(f"t_eval has no meaning with keep={keep!r}; keep='t_eval' keeps its times")
    t0, t_end = check_span(t_span)
    given = dict(settings)
    options = merge(
        given.pop("options", None), **{name: given.pop(name) for name in OPTIONS if name in given}
    )
    warns = options.start == "auto"
    if warns:                                  # `solve_ensemble` warns once for all members
        options = replace(options, start="quiet")
    if options.backend == "auto":              # its choice would depend on earlier runs
        options = replace(options, backend="machine")
    problem = {name: given.pop(name) for name in PROBLEM_ARGUMENTS if name in given}
    times = check_t_eval(t_eval, t0, t_end)
    check_t_breaks(given.get("t_breaks"), t0, t_end)
    numbers = members.spread(SAMPLE_SIZE)
    task = Task(
        fun, t0, t_end, times, keep, options, problem, given, warns, members.pick(numbers), numbers
    )
    args = members.args_of(0) if members.count else tuple(
        [0.0] * len(members.args)
    )
    n = members.y0.shape[1]
    whole = as_problem(fun, args=args, **problem)
    Names.of(whole, n, given.get("names"), given.get("equation_names"), given.get("units"))
    check_events(given.get("events"), args)
    options.tolerances(n)
    if options.first_step is not None and options.first_step > abs(t_end - t0):
        raise ValueError(
            f"first_step must not be longer than the interval, got {options.first_step}"
        )
    return task
