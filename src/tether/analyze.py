"""analyze: find out what kind of DAE a system is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import check_time, check_vector
from tether.explain.start_words import refuse_off_constraints
from tether.problem.names import check_names
from tether.problem.options import Options
from tether.problem.problem import Problem, as_problem, prepared
from tether.problem.units import separated
from tether.run.integration import Integration

if TYPE_CHECKING:
    from tether.explain.diagnosis import Diagnosis
    from tether.explain.report import IndexReport

__all__ = ["analyze"]


def analyze(
    fun: Any,
    t0: float,
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    args: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
) -> IndexReport:
    """Find index, hidden constraints and free initial values of F(t, y, y') = 0.

    Parameters
    ----------
    fun : callable or Problem
        The residual, as in `solve_dae`.
    t0 : float
        Starting time.
    y0, yp0 : array_like, shape (n,)
        Starting values; they may be approximate.
    args : sequence
        Further arguments of `fun`.
    names : sequence of str, optional
        Names of the variables; read off the function when left out.
    rtol, atol : array_like, optional
        Tolerances, as in `solve_dae`: they set the scale of each variable.

    Returns
    -------
    IndexReport
        A system without a solution, or without a unique one, has a report too: `singular` is then
        true, and the report says why.

    Examples
    --------
    >>> from tether import analyze
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.81, x*x + z*z - 1]
    >>> report = analyze(pendulum, 0.0, [1.0, 0.0, 0.0, 0.0, 0.0])
    >>> report.index, report.dof, str(report.hidden[0])
    (3, 2, 'x*u + z*w = 0')
    """
    from tether.explain.describe import report_on  # late, to save time

    problem = as_problem(fun, args=args)
    t = check_time("t0", t0)
    y = check_vector("y0", y0)
    yp = None if yp0 is None else check_vector("yp0", yp0, len(y))
    given = check_names("names", names, len(y))
    labels = given and list(separated(given)[0])
    options = Options(rtol=rtol, atol=atol)
    problem = prepared(problem, t, y)
    report = report_on(problem, t, y, yp, labels, options)
    return replace(report, examine=partial(_examine, problem, t, y, yp, labels, options))


def _examine(
    problem: Problem,
    t: float,
    y: np.ndarray,
    yp: np.ndarray | None,
    names: Sequence[str] | None,
    options: Options,
) -> Diagnosis:
    """Start a run and diagnose it."""
    from tether.explain.examine import diagnose  # late, to save time

    run = Integration(problem, t, y, yp, options, names=names)
    refuse_off_constraints(run)
    return diagnose(run, before=True)
