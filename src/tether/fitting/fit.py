"""fit: parameters of a model from measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from tether.base.checks import check_time
from tether.fitting.experiment import read_experiments
from tether.fitting.result import FitResult
from tether.fitting.search import LOSSES, Search, threads_for
from tether.fitting.sought import as_mapping, read_sought

__all__ = ["fit"]


def fit(
    fun: Any,
    data: Any,
    p0: Mapping[str, Any] | Sequence[Any],
    *,
    y0: ArrayLike | None = None,
    t_span: Sequence[float] | None = None,
    yp0: ArrayLike | None = None,
    args: Sequence[Any] | Mapping[str, Any] = (),
    observe: Callable[..., Any] | None = None,
    sigma: Any = None,
    weights: Any = None,
    bounds: Any = None,
    log: bool | str | Sequence[str] = False,
    loss: str = "linear",
    f_scale: float = 1.0,
    x_scale: Any = "jac",
    tol: float = 1e-8,
    max_nfev: int | None = None,
    workers: int | None = None,
    rtol: ArrayLike = 1e-7,
    atol: ArrayLike = 1e-10,
    **options: Any,
) -> FitResult:
    """Fit parameters of F(t, y, y') = 0 to measurements, by least squares with exact derivatives.

    Every trial is one solve per experiment, whatever the number of parameters: it gives the
    solution and its derivatives (``sensitivity=`` of `solve_dae`). Parameters for which there is
    no solution are refused, and the search takes a shorter step.

    Parameters
    ----------
    fun : callable or Problem
        The residual, ``fun(t, y, yp, *args)``, as in `solve_dae`.
    data : DataFrame, dict, pair or list of dict
        What was measured; NaN stands for a missing value, and times may repeat. A data frame has
        times as its index, or in a column ``t``, and names of unknowns as its columns. A dict is
        ``{"t": times, "voltage": values, 3: values}``, or ``{"voltage": (times, values), ...}``
        where times differ. A pair ``(times, values)`` has a row for every unknown, as ``sol.y``.
        Several experiments are a list of dicts, each with its own ``"data"`` and, where they
        differ, ``"y0"``, ``"yp0"``, ``"t_span"``, ``"args"``, ``"observe"``, ``"sigma"``,
        ``"weights"`` and ``"name"``. They share the parameters and run in threads.
    p0 : dict or sequence
        The parameters and first guesses of them: ``"k"``, an argument of `fun`; ``"k[2]"``, an
        entry of an array; ``"y0[3]"`` or ``"y0[voltage]"``, a starting value. A sequence has
        guesses for all of `args`.
    y0 : array_like, shape (n,)
        Starting values; algebraic components may be guesses.
    t_span : pair of float, optional
        The time of `y0`, and the end. When left out, 0 and the last time in `data`, which must then
        begin at 0.
    yp0 : array_like, optional
        Starting derivative.
    args : sequence or dict
        Arguments of `fun`: all of them in order, where values of those in `p0` are ignored, or by
        name, where those in `p0` may be left out.
    observe : callable, optional
        Computes measured quantities that are not unknowns: ``observe(t, y, *args)`` or
        ``observe(t, y)``, called with all times at once, y of shape (n, times). It returns a dict
        of names and rows, or rows. Unknowns may be measured as well.
    sigma : float, array_like or dict, optional
        Standard errors of the measurements: a number, one for every unknown or by name, or of the
        shape of the data.
    weights : float, array_like or dict, optional
        Factors of the differences, instead of `sigma`. Only their ratios matter; the size of the
        errors is estimated from the differences, as it is without `sigma` and `weights`.
    bounds : dict or pair, optional
        ``{"k": (0, None)}``, or ``(low, high)`` for all.
    log : bool, str or sequence of str
        Parameters whose logarithms are fitted: all, or some by name. They stay positive, and may
        be of very different sizes.
    loss, f_scale, x_scale, max_nfev
        As in `scipy.optimize.least_squares`; a robust loss such as "soft_l1" gives outliers less
        weight.
    tol : float
        The search ends when the sum of squares or the parameters change by less, relatively.
    workers : int, optional
        Number of threads for several experiments; as many as there are cores when left out.
    rtol, atol : float or array_like
        Tolerances of `solve_dae`.
    **options
        Further arguments of `solve_dae`, such as ``names``, ``events``, ``max_steps``. ``start`` is
        "quiet" unless given.

    Returns
    -------
    FitResult
        ``p`` has the parameters; there are also their covariance, intervals, and doubts about the
        fit. ``print`` it. If there is no solution for `p0`, ``success`` is False and ``message``
        says why.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong; the message names it. Exceptions of `fun` pass through.

    Examples
    --------
    A capacitor is charged through a resistor, and its voltage is measured:

    >>> import numpy as np
    >>> from tether import fit
    >>> def circuit(t, y, yp, resistance, capacity):
    ...     voltage, current = y
    ...     return [capacity * yp[0] - current, 5.0 - voltage - resistance * current]
    >>> t = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    >>> data = {"t": t, "voltage": 5.0 * (1.0 - np.exp(-t / 3.0))}
    >>> result = fit(circuit, data, {"resistance": 1.0}, args={"capacity": 2.0},
    ...              y0=[0.0, 0.0], t_span=(0.0, 8.0))
    >>> round(result.p["resistance"], 5)
    1.5

    Without a measured current, resistance and capacity cannot be told apart:

    >>> result = fit(circuit, data, [1.0, 1.0], y0=[0.0, 0.0], t_span=(0.0, 8.0))
    >>> print(result.unidentifiable[0])
    The data determine only the product of resistance and capacity.
    """
    _check_settings(loss, tol, f_scale)
    sought_by_name, args = as_mapping(fun, p0, args)
    shared = {
        "t_span": t_span, "y0": y0, "yp0": yp0, "args": args, "observe": observe, "sigma": sigma,
        "weights": weights,
    }
    experiments = read_experiments(
        fun, data, sought_by_name, shared, {"rtol": rtol, "atol": atol} | options
    )
    first = experiments[0]
    sought = read_sought(sought_by_name, first.problem, first.options["names"], bounds, log)
    settings = {
        "loss": loss, "f_scale": f_scale, "x_scale": x_scale, "ftol": tol, "xtol": tol,
        "gtol": tol, "max_nfev": max_nfev,
    }
    search = Search(experiments, sought, settings, threads_for(len(experiments), workers))
    found = search.run(sought.start)
    return FitResult(search, found, all(one.known_errors for one in experiments))


def _check_settings(loss: str, tol: float, f_scale: float) -> None:
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}")
    for name, value in (("tol", tol), ("f_scale", f_scale)):
        if check_time(name, value) <= 0.0:
            raise ValueError(f"{name} must be positive, got {value!r}")
