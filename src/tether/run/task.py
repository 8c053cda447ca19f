"""Task: what a run has to do, that is its arguments, checked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import check_time, check_vector
from tether.problem.names import Names, check_names
from tether.problem.options import Options, merge
from tether.problem.problem import Problem, as_problem, prepared
from tether.problem.units import check_units
from tether.structure.scaling import Units

__all__ = ["Task"]


class Task:
    """The arguments of `tether.run.integration.Integration`, checked; what is wrong raises.

    Attributes
    ----------
    problem, options : Problem, Options
        The equations, and how to integrate them.
    n : int
        Number of the user's unknowns.
    t0, y, yp : float, ndarray, ndarray or None
        The starting values.
    t_bound : float
        Where the run ends.
    units : Units
        Units of the unknowns and of time.

    Examples
    --------
    >>> from tether.run.task import Task
    >>> task = Task(lambda t, y, yp: [yp[0] + y[0]], 0, [1], t_bound=2.0, names=["height"])
    >>> task.n, task.y, task.names.variables
    (1, array([1.]), ('height',))
    """

    def __init__(
        self,
        problem: Problem | Any,
        t0: float,
        y0: ArrayLike,
        yp0: ArrayLike | None = None,
        options: Options | Mapping[str, Any] | None = None,
        *,
        t_bound: float,
        names: Any = None,
        equation_names: Any = None,
        variable_units: Any = None,
    ) -> None:
        self.options = merge(options)
        self.t0, self.t_bound = check_time("t0", t0), check_time("t_bound", t_bound, finite=False)
        if self.t_bound == self.t0:
            raise ValueError(f"t_bound must differ from t0, both are {self.t0}")
        self.y: np.ndarray = check_vector("y0", y0)
        self.n = len(self.y)
        self.yp = None if yp0 is None else check_vector("yp0", yp0, self.n)
        if not isinstance(problem, Problem):
            problem = as_problem(problem)
        self.problem = prepared(problem, self.t0, self.y)
        self._names_given = (
            check_names("names", names, self.n),
            check_names("equation_names", equation_names, self.n),
            check_units(variable_units, self.n),
        )
        if variable_units is not None and isinstance(variable_units, Mapping):
            _ = self.names                   # raises if a unit belongs to no name
        span = abs(self.t_bound - self.t0)
        self.units = Units.of_options(self.options, self.y, span)
        if self.options.first_step is not None and self.options.first_step > span:
            raise ValueError(
                f"first_step must not be longer than the interval, got {self.options.first_step}"
            )

    @cached_property
    def names(self) -> Names:
        """Names of variables and equations, given or read off the function."""
        return Names.of(self.problem, self.n, *self._names_given)
