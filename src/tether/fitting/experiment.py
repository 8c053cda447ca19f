"""Experiments: for each, one run of the model and what was measured in it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tether.base.checks import check_vector
from tether.fitting.data import Key, Series, read_data, times_of
from tether.fitting.observe import Quantities
from tether.fitting.sought import args_by_name, places
from tether.problem.names import Names
from tether.problem.problem import Problem, as_problem
from tether.result.solution import DaeResult
from tether.sensitivity.parameters import Parameters
from tether.solve import check_span, solve_dae

__all__ = ["Experiment", "Trial", "read_experiments"]

PROBLEM_ARGUMENTS = (
    "jac", "constraints", "invariants", "var_index", "jac_sparsity", "lband", "uband",
)
EXPERIMENT_KEYS = ("data", "t_span", "y0", "yp0", "args", "sigma", "weights", "observe", "name")
# Arguments of `solve_dae` that `fit` sets itself.
SET_BY_FIT = ("t_eval", "sensitivity", "dense_output", "progress", "callback")


@dataclass(frozen=True, eq=False)
class Trial:
    """Weighted differences for some parameters, and their derivatives; or why there are none."""

    residuals: np.ndarray
    jacobian: np.ndarray
    failure: str = ""


@dataclass(frozen=True, eq=False)
class Experiment:
    """One run of the model, and what was measured in it.

    Attributes
    ----------
    name : str
        Its name; empty if there is only one.
    problem : Problem
        The equations, with the arguments of this experiment.
    t_span, y0, yp0
        As in `solve_dae`.
    parameters : Parameters
        Places of the parameters in its arguments and starting values.
    series : list of Series
        What was measured.
    rows : list of int
        For every series, the number of its quantity.
    columns : list of ndarray
        For every series, the numbers of its times in `times`.
    times : ndarray
        All times at which something was measured.
    quantities : Quantities
        What can be measured.
    known_errors : bool
        Whether the standard errors of the measurements were given.
    options : dict
        Passed on to `solve_dae`.
    """

    name: str
    problem: Problem
    t_span: tuple[float, float]
    y0: np.ndarray
    yp0: np.ndarray | None
    parameters: Parameters
    series: list[Series]
    rows: list[int]
    columns: list[np.ndarray]
    times: np.ndarray
    quantities: Quantities
    known_errors: bool
    options: dict[str, Any]

    @cached_property
    def _values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All values that were measured: of which quantity, when, what, and their weights."""
        counts = [len(one.values) for one in self.series]
        return (
            np.repeat(self.rows, counts), np.concatenate(self.columns),
            np.concatenate([one.values for one in self.series]),
            np.concatenate([one.weights for one in self.series]),
        )

    @property
    def size(self) -> int:
        """Number of values that were measured."""
        return len(self.weights)

    @property
    def weights(self) -> np.ndarray:
        """Weights of all values."""
        return self._values[3]

    def label(self, k: int) -> str:
        """Name the quantity of a series, and the experiment if there are several."""
        name = self.quantities.names[self.rows[k]]
        return f"{name} in {self.name}" if self.name else name

    def args_of(self, p: np.ndarray) -> tuple:
        """Return the arguments of the function for given parameters."""
        places = self.parameters
        values = places.values
        values[places.inputs[places.of_inputs]] = p[places.of_inputs]
        return places.args_of(values)

    def solve(self, p: np.ndarray, **options: Any) -> DaeResult:
        """Solve with given parameters."""
        problem = copy.copy(self.problem)
        problem.args = self.args_of(p)
        y0, starts = self.y0.copy(), self.parameters.starts
        y0[starts[starts >= 0]] = p[starts >= 0]
        return solve_dae(
            problem, self.t_span, y0, self.yp0,
            sensitivity=self.parameters,  # type: ignore[arg-type]
            **(self.options | options),
        )

    def attempt(self, p: np.ndarray) -> Trial:
        """Compare the solution for given parameters with what was measured."""
        sol = self.solve(p, t_eval=self.times)
        failure = "" if sol.success else sol.message
        if not failure and len(sol.t) < len(self.times):
            failure = f"The run ended at t = {sol.t[-1] if len(sol.t) else self.t_span[0]:.6g}, " \
                f"before the last measurement at t = {self.times[-1]:.6g}."
        if not failure:
            found = self._compare(sol, p)
            if np.all(np.isfinite(found.residuals)) and np.all(np.isfinite(found.jacobian)):
                return found
            failure = "The solution or its derivative is not finite."
        return Trial(np.full(self.size, np.nan), np.zeros((self.size, len(p))), failure)

    def _compare(self, sol: DaeResult, p: np.ndarray) -> Trial:
        assert sol.sens is not None
        quantities = self.quantities
        values = quantities.values(sol.t, sol.y, self.args_of(p))
        slopes = quantities.slopes(sol.t, sol.y, sol.sens, p, self.args_of)
        rows, columns, measured, weights = self._values
        residuals = (values[rows, columns] - measured) * weights
        return Trial(residuals, slopes[:, rows, columns].T * weights[:, None])


def read_experiments(
    fun: Any, data: Any, p0: Mapping[str, Any], shared: dict[str, Any], options: dict[str, Any]
) -> list[Experiment]:
    """Read one experiment or several; `shared` has the arguments that an experiment leaves out."""
    for name in SET_BY_FIT:
        if name in options:
            raise TypeError(f"{name} cannot be passed to fit, which sets it itself")
    options = {"start": "quiet"} | options
    if not _is_list(data):
        return [_read(fun, {"data": data}, p0, shared, options, "", "")]
    found = []
    for k, one in enumerate(data):
        unknown = sorted(set(one) - set(EXPERIMENT_KEYS))
        if unknown:
            raise ValueError(
                f"data[{k}] has {unknown[0]!r}, but an experiment has {', '.join(EXPERIMENT_KEYS)}"
            )
        name = str(one.get("name", f"experiment {k}"))
        found.append(_read(fun, one, p0, shared, options, name, f"{name}: "))
    return found


def _is_list(data: Any) -> bool:
    if not isinstance(data, (list, tuple)):
        return False
    if not data:
        raise ValueError("data is empty")
    if all(isinstance(one, Mapping) for one in data):
        for k, one in enumerate(data):
            if "data" not in one:
                raise ValueError(f"data[{k}] is an experiment without 'data'")
        return True
    return False


def _read(
    fun: Any, own: Mapping[str, Any], p0: Mapping[str, Any], shared: dict[str, Any],
    options: dict[str, Any], name: str, where: str,
) -> Experiment:
    said = shared | {key: own[key] for key in own if key not in ("args", "name")}
    if {"sigma", "weights"} & set(own):        # either one replaces both of the shared ones
        said |= {key: own.get(key) for key in ("sigma", "weights")}
    series = read_data(said["data"], said["sigma"], said["weights"], where)
    times = times_of(series)
    t_span = _span(said["t_span"], times, where)
    if said["y0"] is None:
        raise ValueError(f"{where}y0 is missing: the starting values at t = {t_span[0]:g}")
    y0 = check_vector(f"{where}y0", said["y0"])
    problem = _problem(fun, _merged(shared["args"], own.get("args", ()), where), p0, options)
    names = Names.of(problem, len(y0), options.get("names"), units=options.get("units"))
    variables = list(names.variables)
    # columns of data may have units in their names
    called: dict[Key, Key] = dict(zip(names.labels, variables, strict=True))
    series = [replace(one, key=called.get(one.key, one.key)) for one in series]
    parameters = places(p0, problem, len(y0), variables)
    if t_span[1] < t_span[0]:
        times = times[::-1]
    quantities = Quantities.of(said["observe"], variables, times, y0, problem.args, where)
    _count_rows(series, quantities, where)
    rows = [quantities.row(one.key, where) for one in series]
    order = np.argsort(times)
    columns = [order[np.searchsorted(times, one.t, sorter=order)] for one in series]
    yp0 = None if said["yp0"] is None else check_vector(f"{where}yp0", said["yp0"], len(y0))
    rest = {key: value for key, value in options.items() if key not in PROBLEM_ARGUMENTS}
    return Experiment(
        name, problem, t_span, y0, yp0, parameters, series, rows, columns, times, quantities,
        said["sigma"] is not None, rest | {"names": variables, "units": names.units or None},
    )


def _span(t_span: Any, times: np.ndarray, where: str) -> tuple[float, float]:
    if t_span is None:
        if times[0] != 0.0:
            raise ValueError(
                f"{where}t_span is missing: y0 belongs to its start, and the first time in data is "
                f"{times[0]:g}"
            )
        t_span = (0.0, times[-1])
    t0, t_end = check_span(t_span)
    low, high = min(t0, t_end), max(t0, t_end)
    for t in (times[0], times[-1]):
        if not low <= t <= high:
            raise ValueError(f"{where}data: t = {t:g} is outside t_span [{low:g}, {high:g}]")
    return t0, t_end


def _merged(shared: Any, own: Any, where: str) -> Any:
    """Return the arguments of an experiment: its own and, where given by name, the shared ones."""
    if isinstance(own, Mapping) and isinstance(shared, Mapping):
        return dict(shared) | dict(own)
    if isinstance(own, Mapping) and len(shared) and own:
        raise ValueError(f"{where}args are given by name, so the shared args must be as well")
    return own if len(own) else shared


def _problem(fun: Any, args: Any, p0: Mapping[str, Any], options: dict[str, Any]) -> Problem:
    settings = {key: options[key] for key in PROBLEM_ARGUMENTS if key in options}
    if isinstance(fun, Problem):
        given = copy.copy(as_problem(fun, **settings))
        if len(args):
            given.args = args_by_name(given.fun, args, p0)
        return given
    return as_problem(fun, args=args_by_name(fun, args, p0), **settings)


def _count_rows(series: Sequence[Series], quantities: Quantities, where: str) -> None:
    """Refuse a table with more rows than there are quantities."""
    rows = [one.key for one in series if not isinstance(one.key, str)]
    count = quantities.count or len(quantities.names)
    if rows and len(rows) == len(series) and max(rows) >= count:
        raise ValueError(f"{where}data has {max(rows) + 1} rows, but there are {count} unknowns")
