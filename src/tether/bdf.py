"""Bdf: the integrator one step at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import check_time, check_vector
from tether.base.status import Status
from tether.explain.start_words import refuse_off_constraints, start_of_run
from tether.problem.options import Options, merge
from tether.problem.problem import Problem
from tether.run.condition import condition_number
from tether.run.integration import Integration
from tether.run.method import Polynomial
from tether.run.requests import Handover, Request
from tether.run.statistics import Statistics
from tether.structure.start import Start

__all__ = ["Bdf"]

# Arguments of `Bdf.requests` that are passed on to `Problem`.
PROBLEM_ARGUMENTS = ("constraints", "invariants", "var_index", "jac_sparsity", "lband", "uband")


class Bdf:
    """Variable-order, variable-step BDF for F(t, y, y') = 0, one step at a time.

    Parameters
    ----------
    problem : Problem or callable
        What to integrate; a callable is wrapped as ``Problem(callable)``.
    t0 : float
        Starting time.
    y0, yp0 : array_like
        Starting values; `yp0` and the algebraic part of `y0` are made consistent.
    options : Options or mapping, optional
        Tolerances and the rest.
    t_bound : float
        The integration stops there exactly; its side of `t0` gives the direction.
    history : pair of array_like, optional
        Times before `t0`, oldest first, and the solution there as columns. With m of them the
        integration begins at order m (at most `max_order`) instead of 1.
    dense_output : bool
        Whether `dense_output` will be called. The error of multipliers, which are left out of the
        error test, is then controlled between the steps too.
    names, equation_names : sequence of str, optional
        Names of variables and equations for messages; see `solve_dae`.

    Attributes
    ----------
    t, y, yp : float, ndarray, ndarray
        The current point.
    t_old : float or None
        The time before the last step.
    order, step_size : int, float
        Order and size of the last step.
    status : Status
        RUNNING, REACHED_END or a failure.
    start : Start
        What was done to the starting values.
    stats : Statistics
        Work so far.
    exception : Exception or None
        What a user's function raised in the step that failed.

    Examples
    --------
    >>> from tether import Bdf, Problem, Status
    >>> bdf = Bdf(Problem(lambda t, y, yp: [yp[0] + y[0]]), 0.0, [1.0], t_bound=1.0)
    >>> while bdf.step() == Status.RUNNING:
    ...     pass
    >>> bdf.t, round(float(bdf.y[0]), 4)
    (1.0, 0.3679)
    """

    def __init__(
        self,
        problem: Problem | Any,
        t0: float,
        y0: ArrayLike,
        yp0: ArrayLike | None = None,
        options: Options | Mapping[str, Any] | None = None,
        *,
        t_bound: float = math.inf,
        history: tuple[ArrayLike, ArrayLike] | None = None,
        dense_output: bool = True,
        names: Any = None,
        equation_names: Any = None,
    ) -> None:
        self._integration = Integration(
            problem, t0, y0, yp0, options, t_bound=t_bound, history=history,
            dense_output=dense_output, names=names, equation_names=equation_names,
        )
        refuse_off_constraints(self._integration)

    @classmethod
    def requests(
        cls,
        t0: float,
        y0: ArrayLike,
        yp0: ArrayLike | None = None,
        options: Options | Mapping[str, Any] | None = None,
        *,
        t_bound: float = math.inf,
        jacobian: bool = False,
        linear_algebra: bool = False,
        history: tuple[ArrayLike, ArrayLike] | None = None,
        dense_output: bool = True,
        names: Any = None,
        equation_names: Any = None,
        **about: Any,
    ) -> Generator[Request, Any, Status]:
        """Integrate by reverse communication: a generator that asks for residuals (HK).

        For programs that keep the main loop to themselves, and compute residuals, Jacobians or
        solutions of linear systems where a Python function cannot be called. Answer every
        `Request` that it yields by ``send``, or by setting ``request.answer``; ``throw`` acts as a
        function that raises. After every step there is a request of the kind "step", which needs
        no answer. Nothing is traced: index 2 and 3 are integrated as written.

        The run waits in a thread of its own. The thread ends with the run, or earlier when the
        generator is closed or nothing refers to it any more.

        Parameters
        ----------
        t0, y0, yp0, options, t_bound, history, dense_output, names, equation_names
            As for `Bdf`.
        jacobian : bool
            Ask for F_y and F_y', which otherwise come from differences of residuals.
        linear_algebra : bool
            Ask for factorisations of the iteration matrix, and for solutions with its factors.
        **about
            `constraints`, `invariants`, `var_index`, `jac_sparsity`, `lband` and `uband` of
            `Problem`.

        Returns
        -------
        generator
            It yields `Request`, and returns the `Status`, which is also that of the last request.

        Examples
        --------
        >>> from tether import Bdf
        >>> for request in Bdf.requests(0.0, [1.0], t_bound=1.0):
        ...     if request.kind == "residual":
        ...         request.answer = request.yp + request.y
        ...     elif request.status.name == "REACHED_END":
        ...         print(request.t, round(float(request.y[0]), 4))
        1.0 0.3679
        """
        unknown = sorted(set(about) - set(PROBLEM_ARGUMENTS))
        if unknown:
            raise TypeError(f"requests() has no argument {unknown[0]!r}")
        handover = Handover()
        settings = merge(options)
        if settings.trace == "always":
            raise ValueError("trace='always', but requests cannot be traced")
        settings = replace(settings, trace="never")
        if linear_algebra:
            settings = replace(settings, linear_solver=handover)
        problem = Problem(
            handover.residual, jac=handover.jacobian if jacobian else None, **about
        )
        y0 = check_vector("y0", y0)

        def work() -> Status:
            run = cls(
                problem, t0, y0, yp0, settings, t_bound=t_bound, history=history,
                dense_output=dense_output, names=names, equation_names=equation_names,
            )
            handed_over = False
            while not handed_over or run.status == Status.RUNNING:
                run.step()
                handover.ask(Request("step", run.t, run.y, run.yp, status=run.status, run=run))
                handed_over = True
            return run.status

        return handover.run(work, len(y0))

    def step(self) -> Status:
        """Take one step and return the status; a finished or failed run stays where it is.

        Where the options limit steps or seconds, the run ends with MAX_STEPS or MAX_SECONDS.
        """
        run = self._integration
        if run.status == Status.RUNNING:
            run.step()
            run.check_limits(time.perf_counter() - run.began)
        return run.status

    def dense_output(self) -> Polynomial:
        """Return the polynomial over the last step: ``dense_output()(t) -> (y, yp)``."""
        if self._integration.state.steps == 0:
            raise RuntimeError("dense_output needs a step first")
        return self._integration.polynomial().restricted(self._integration.n)

    def condition(self) -> float:
        """Estimate the condition number (1-norm) of the iteration matrix as it was last factored.

        Costs a few solutions with the factors. NaN before the first step.
        """
        return condition_number(self._integration.state)

    @property
    def t_bound(self) -> float:
        """Where the run ends; it may be changed during the run, which then continues to there."""
        return self._integration.t_bound

    @t_bound.setter
    def t_bound(self, value: float) -> None:
        self._integration.move_bound(check_time("t_bound", value, finite=False))

    @property
    def status(self) -> Status:
        """RUNNING, REACHED_END or a failure."""
        return self._integration.status

    @property
    def start(self) -> Start:
        """What was done to the starting values."""
        return start_of_run(self._integration, self._integration.start)

    @property
    def exception(self) -> Exception | None:
        """What a user's function raised in the step that failed."""
        return self._integration.exception

    @property
    def how(self) -> str:
        """How the equations are evaluated and integrated, in words."""
        return self._integration.how

    @property
    def t_old(self) -> float | None:
        """The time before the last step."""
        return self._integration.t_old

    @property
    def t(self) -> float:
        """Current time."""
        return self._integration.t

    @property
    def y(self) -> np.ndarray:
        """Solution at the current time (a copy)."""
        return self._integration.y

    @property
    def yp(self) -> np.ndarray:
        """Derivative at the current time (a copy)."""
        return self._integration.yp

    @property
    def order(self) -> int:
        """Order of the last step."""
        return self._integration.state.last_k

    @property
    def step_size(self) -> float:
        """Size of the last step."""
        return self._integration.state.last_h

    @property
    def next_step(self) -> float:
        """Size with which the next step will be tried."""
        return self._integration.state.h

    @property
    def stats(self) -> Statistics:
        """Work so far."""
        run = self._integration
        return Statistics.of(run.state, checks=run.trust.points)
