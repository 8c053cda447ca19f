"""FitResult: the parameters, how well they are known, and whether the model is right."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.fitting.directions import Direction, undetermined
from tether.fitting.doubts import doubts_about
from tether.fitting.plot import plot_correlation, plot_fit
from tether.fitting.profile import Profile, profile_of
from tether.fitting.search import Failure, Found, Search
from tether.fitting.spread import Spread
from tether.fitting.words import one_line, page, summary
from tether.result.solution import DaeResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FitResult"]


class FitResult:
    """The result of `tether.fit`.

    ``print(result)`` shows a table with standard errors and intervals, and doubts about the fit.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    x : ndarray
        Their values; `p` has them by name.
    success : bool
        Whether the search converged.
    message : str
        How it ended.
    residuals : ndarray
        Differences of model and data, divided by `sigma` or multiplied by `weights`: those of the
        first experiment, unknown by unknown, then those of the next.
    jac : ndarray, shape (values, parameters)
        Derivatives of `residuals` with respect to the parameters; with a robust loss, scaled so
        that they have its Hessian.
    chi2 : float
        Sum of the squares of `residuals`.
    loss : float
        What was minimised: `chi2`, or the robust loss.
    dof : int
        Degrees of freedom: number of values minus number of parameters that they determine.
    nfev, njev, solves : int
        Number of trials, of derivatives used, and of times that the model was solved; one solve
        gives both the differences and their derivatives for one experiment.
    failures : tuple of Failure
        Trials for which the model had no solution: `p` and `message` of each.

    Examples
    --------
    >>> import numpy as np
    >>> from tether import fit
    >>> def decay(t, y, yp, rate):
    ...     return [yp[0] + rate * y[0]]
    >>> t = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    >>> measured = np.array([2.01, 1.46, 1.11, 0.82, 0.59])
    >>> result = fit(decay, {"t": t, 0: measured}, {"rate": 1.0, "y0[0]": 1.0}, y0=[1.0])
    >>> result
    <FitResult: converged, 2 parameters (rate, y0[0]), 5 values>
    >>> round(result.p["rate"], 3), result.stderr.round(3).tolist()
    (0.603, [0.01, 0.015])
    >>> result.confidence(0.9).round(2).tolist()
    [[0.58, 0.63], [1.97, 2.04]]
    """

    def __init__(self, search: Search, found: Found, known_errors: bool) -> None:
        self._search, self._found = search, found
        self._solves, self._failures = search.solves, tuple(search.failures)
        self._spread = Spread(found.jacobian, found.loss, known_errors)
        self.names, self.x = search.sought.names, found.p
        self.success, self.message = found.success, found.message
        self.residuals, self.jac = found.residuals, found.jacobian
        self.chi2, self.loss = float(found.residuals @ found.residuals), found.loss
        self.nfev, self.njev = found.nfev, found.njev

    @property
    def p(self) -> dict[str, float]:
        """The parameters by name."""
        return dict(zip(self.names, self.x.tolist(), strict=True))

    @property
    def solves(self) -> int:
        """How many times the model was solved for the fit."""
        return self._solves

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Trials for which the model had no solution."""
        return self._failures

    @property
    def _is_found(self) -> bool:
        return bool(np.all(np.isfinite(self.jac)))

    @property
    def dof(self) -> int:
        """Degrees of freedom."""
        return self._spread.dof if self._is_found else len(self.residuals) - len(self.x)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the parameters, valid where the model is nearly linear near the result.

        With `sigma` the errors of the measurements are known; otherwise they are estimated from the
        differences. Parameters that the data do not determine have infinite variance.
        """
        n = len(self.x)
        return self._spread.covariance if self._is_found else np.full((n, n), np.nan)

    @property
    def stderr(self) -> np.ndarray:
        """Standard errors of the parameters."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """Correlation of the parameters; NaN for those that the data do not determine."""
        errors = np.where(np.isfinite(self.stderr), self.stderr, np.nan)
        return self.covariance / np.outer(errors, errors)

    def confidence(self, level: float = 0.95) -> np.ndarray:
        """Return confidence intervals, one row (low, high) for every parameter.

        They come from the standard errors, with quantiles of Student's distribution or, with
        `sigma`, of the normal one. For parameters in `log` they are symmetric in the logarithm.
        `profile` does not assume that the model is nearly linear.

        Parameters
        ----------
        level : float
            Probability, between 0 and 1.

        Returns
        -------
        ndarray, shape (parameters, 2)
        """
        _level(level)
        if not self._is_found:
            return np.full((len(self.x), 2), np.nan)
        sought = self._search.sought
        x, slopes = sought.x_of(self.x), sought.slopes(self.x)
        half = self._spread.quantile(level) * self.stderr / slopes
        return np.stack([sought.p_of(x - half), sought.p_of(x + half)], axis=1)

    def profile(self, name: str, level: float = 0.95) -> Profile:
        """Fix one parameter at other values, fit the others, and see how the sum of squares rises.

        The interval is valid even where that from standard errors is not: for parameters that are
        badly determined, or where the model is far from linear.

        Parameters
        ----------
        name : str
            The parameter.
        level : float
            Probability of the interval.

        Returns
        -------
        Profile
            With `values`, `chi2`, `p` and `interval`; `plot()` draws it.

        Examples
        --------
        >>> import numpy as np
        >>> from tether import fit
        >>> def decay(t, y, yp, rate):
        ...     return [yp[0] + rate * y[0]]
        >>> data = {"t": [0.0, 1.0, 2.0], 0: [1.02, 0.60, 0.37]}
        >>> result = fit(decay, data, {"rate": 1.0}, y0=[1.0], sigma=0.02)
        >>> print(result.profile("rate"))
        rate: 0.46262 to 0.54543 at 95 %
        """
        if name not in self.names:
            raise ValueError(
                f"name: there is no parameter {name!r}; the parameters are {', '.join(self.names)}"
            )
        if not self._is_found or np.isnan(self._spread.quantile(0.5)):
            raise ValueError("profile: there are no errors to compare with, since " + (
                "the fit found no solution" if not self._is_found else
                "there are as many parameters as values; pass sigma"
            ))
        k = self.names.index(name)
        return profile_of(self._search, self._found, self._spread, k, _level(level))

    @cached_property
    def unidentifiable(self) -> tuple[Direction, ...]:
        """Directions in the space of parameters that the data do not, or hardly, determine.

        ``str`` of one is a sentence, such as "The data determine only the ratio of a and b.";
        `parameters`, `changes` and `error` are its numbers.
        """
        if not self._is_found:
            return ()
        return tuple(undetermined(self._spread, self.names, self.x))

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Doubts about the fit, in words; empty for a good fit of a good model.

        They are about differences that are larger than `sigma` allows or have a pattern, outliers,
        parameters at their bounds, and trials without a solution next to the result.
        """
        search = self._search
        return tuple(doubts_about(
            self._found, self._spread, search.experiments, search.sought, self.failures
        ))

    @cached_property
    def solutions(self) -> tuple[DaeResult, ...]:
        """The model with these parameters, one solution per experiment, with dense output."""
        return tuple(one.solve(self.x, dense_output=True) for one in self._search.experiments)

    def plot(self, unknowns: Sequence[str] | str | None = None, **options: Any) -> Figure:
        """Plot data against model, with a confidence band; needs matplotlib.

        The options are those of `tether.fitting.plot.plot_fit`.
        """
        return plot_fit(self, self._search.experiments, unknowns, **options)

    def plot_correlation(self, ax: Any = None) -> Figure:
        """Show the correlation of the parameters as a picture; needs matplotlib."""
        return plot_correlation(self.names, self.correlation, ax)

    def __repr__(self) -> str:
        """Say in one line how the fit ended; ``print(result)`` shows more."""
        return one_line(self)

    def __str__(self) -> str:
        """Summarise the fit as a table, with doubts about it."""
        return summary(self)

    def _repr_html_(self) -> str:
        """Summarise the fit for a notebook."""
        return page(self)


def _level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(level)
