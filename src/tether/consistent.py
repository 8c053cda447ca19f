"""consistent_start: y and y' together, with components that are fixed, guessed or free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.capacity import OF_A_SEARCH, require_matrices
from tether.base.checks import check_time, check_vector
from tether.base.reason import Kind, Reason
from tether.explain.start_words import with_words
from tether.problem.names import Names
from tether.problem.options import Options
from tether.problem.problem import as_problem, prepared
from tether.result.access import number_of
from tether.run.integration import Integration
from tether.start.by_roles import find_by_roles
from tether.start.search import Roles
from tether.structure.reduced_start import Search as ReducedSearch
from tether.structure.scaling import Units
from tether.structure.start import Start

__all__ = ["consistent_start"]


def consistent_start(
    fun: Any,
    t0: float,
    y0: ArrayLike,
    yp0: ArrayLike | None = None,
    *,
    fixed: Iterable[int | str] | None = None,
    fixed_yp: Iterable[int | str] | None = None,
    free: Iterable[int | str] | None = None,
    weights: ArrayLike | None = None,
    constraints: Any = None,
    names: Sequence[str] | None = None,
    args: Sequence[Any] = (),
    jac: Any = None,
    rtol: ArrayLike = 1e-6,
    atol: ArrayLike = 1e-9,
    form: str = "dense",
    band: tuple[int, int] | None = None,
) -> Start:
    """Find starting values y and y' that satisfy the equations and their hidden constraints.

    The equations are treated as in `solve_dae`: a function that can be traced may have any index,
    and its hidden constraints are found; those of any other function are found by differences, up
    to index 3. With nothing fixed, free or weighted, the values are those with which a run would
    begin.

    Differential unknowns are moved only where constraints require it, and in the way that the
    equations prescribe: velocities by impulses, voltages by charges that flow. With `free` or
    `weights` the change is the smallest one instead.

    Parameters
    ----------
    fun : callable or Problem
        The residual, as in `solve_dae`.
    t0 : float
        Starting time.
    y0, yp0 : array_like
        Starting values: known, guessed or arbitrary, component by component.
    fixed : indices or names, optional
        Components of y that keep their value exactly.
    fixed_yp : indices or names, optional
        Components of y' that keep their value in `yp0` exactly, such as zeros for unknowns that
        are to begin at rest; y is moved so that they do.
    free : indices or names, optional
        Components whose given value is ignored: the equations have to determine them. When left
        out, the algebraic unknowns are moved first. Multipliers of a reduced system follow from
        the other unknowns in any case.
    weights : array_like, optional
        How much a change of each guess costs; one over its absolute tolerance when left out, so
        the same for all if `atol` is one number. To correct velocities by an impulse, give the
        square roots of the masses.
    constraints : optional
        Constraints G(t, y) = 0 beside those of the equations, as in `solve_dae`.
    names : sequence of str, optional
        Names of the unknowns, for `fixed`, `free` and the messages; read off the function where
        it unpacks y into names, when left out.
    args, jac, rtol, atol
        As in `solve_dae`; the tolerances set the scale of each unknown, and decide whether a value
        counts as moved.
    form : {"dense", "sparse", "banded"}
        Linear algebra of the search for y' where all of y is fixed (HK Appendix II): orthogonal
        factors, or the regularised system of HK eq. 24 by sparse or by band LU, the latter with
        ``band=(ml, mu)``.

    Returns
    -------
    Start
        If there are no consistent values, with ``success=False`` and a message that names
        equations and unknowns.

    Examples
    --------
    A pendulum (index 3) from its angle; velocities and tension are found:

    >>> from tether import consistent_start
    >>> def pendulum(t, y, yp):
    ...     x, z, u, w, lam = y
    ...     return [yp[0] - u, yp[1] - w, yp[2] + lam*x, yp[3] + lam*z + 9.81, x*x + z*z - 1]
    >>> start = consistent_start(pendulum, 0, [0.6, -0.8, 1.0, 0.0, 0.0], fixed=[0, 1])
    >>> [round(float(v), 3) for v in start.y]
    [0.6, -0.8, 0.64, 0.48, 8.488]
    """
    problem = as_problem(fun, jac, args, constraints)
    t = check_time("t0", t0)
    y = check_vector("y0", y0)
    yp = None if yp0 is None else check_vector("yp0", yp0, len(y))
    n = len(y)
    labels = list(Names.of(problem, n, names).labels)
    options = Options(rtol=rtol, atol=atol)
    given = 1.0 / Units.of_options(options, y).y if weights is None else _weights(weights, n)
    roles = Roles(
        _components("fixed", fixed, labels), _components("free", free, labels), free is None, given,
        by_law=free is None and weights is None,
        fixed_slopes=_components("fixed_yp", fixed_yp, labels),
    )
    if roles.fixed_slopes and yp is None:
        raise ValueError("fixed_yp names components of yp0, which is missing")
    both = sorted(set(roles.fixed) & set(roles.free))
    if both:
        raise ValueError(f"fixed and free both name {[labels[i] for i in both]}")
    if (form != "dense" or band is not None) and (
        len(roles.fixed) < n or problem.constraints or problem.invariants
    ):
        raise ValueError("form and band are for a start with all of y fixed and no constraints")
    require_matrices(n, OF_A_SEARCH)
    label_names = Names(tuple(labels))
    if roles.by_law and not roles.fixed and not roles.fixed_slopes and not problem.constraints:
        run = Integration(problem, t, y, yp, options)
        if run.start.success:
            return with_words(_with_moved(run, t, y), label_names)
        if run.start.reason.kind is Kind.SLOPES_NOT_UNIQUE:
            return with_words(run.start.restricted(n), label_names)
    found = find_by_roles(prepared(problem, t, y), t, y, yp, roles, options, form, band)
    return with_words(found, label_names)


def _with_moved(run: Integration, t: float, y: np.ndarray) -> Start:
    """Return the start of a run, with the unknowns moved by more than their tolerance."""
    start, s, n = _with_exact_slopes(run, t).restricted(run.n), run.state, run.n
    moved = np.flatnonzero(np.abs(start.y - y) * s.weights[:n] > 1.0).tolist()
    reason = Reason(Kind.MOVED, columns=tuple(moved)) if moved else Reason(Kind.FOUND_SLOPES)
    if start.pencil is not None and s.n == n:
        open_slopes = np.flatnonzero((start.pencil.var_index > 1) & ~s.with_slopes).tolist()
        reason = reason.then(Reason(Kind.SLOPES_OPEN, columns=tuple(open_slopes)))
    return replace(start, reason=reason)


def _with_exact_slopes(run: Integration, t: float) -> Start:
    """Find y' of the algebraic unknowns by exact derivatives of the equations, if there are any.

    A run, which needs these slopes only as a first guess, takes a difference in time.
    """
    start, model = run.start, run.model
    analysis = None if model.plan is None else model.plan.analysis
    reduced = None if analysis is None else analysis.reduced
    if reduced is None or reduced.n != len(start.y):
        return start
    slopes = start.yp.copy()
    ReducedSearch(reduced, t, model.values, run.units).complete_slopes(start.y, slopes)
    return replace(start, yp=slopes)


def _components(name: str, value: Any, labels: list[str]) -> list[int]:
    if value is None:
        return []
    items = [value] if isinstance(value, (str, int, np.integer)) else list(value)
    numbers = {f"y[{i}]": i for i in range(len(labels))}
    found = []
    for item in items:
        try:
            found.append(number_of(labels, item))
        except (KeyError, IndexError, TypeError):
            if not isinstance(item, str) or item not in numbers:
                raise ValueError(
                    f"{name} names {item!r}, which is not an unknown; the unknowns are {labels}"
                ) from None
            found.append(numbers[item])
    return sorted(set(found))


def _weights(weights: ArrayLike, n: int) -> np.ndarray:
    values = np.asarray(weights)
    if values.dtype.kind not in "fiu" or values.shape != (n,):
        raise ValueError(f"weights must be {n} numbers, one per unknown, got {weights!r}")
    if not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise ValueError(f"weights must be positive and finite, got {weights!r}")
    return values.astype(float)
