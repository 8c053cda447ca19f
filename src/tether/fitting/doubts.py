"""Doubts about a fit: above all, whether the model is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tether.fitting.experiment import Experiment
from tether.fitting.search import Failure, Found, next_step
from tether.fitting.sought import Sought
from tether.fitting.spread import Spread
from tether.problem.names import counted

__all__ = ["doubts_about"]

# Probability that the tests together call a right model wrong.
FALSE_ALARM = 1e-3
# Patterns of this share of the standard errors of the measurements are too small to matter.
NEGLIGIBLE_PATTERN = 0.3
# Fewer differences than this are not searched for patterns.
MIN_VALUES = 8
# A value is an outlier if it is so many standard deviations of the others away from zero.
OUTLIER = 5.0
# The search was stopped by trials without a solution if such trials are within this relative
# distance of the result, and if its next step would be longer than so many standard errors.
NEAR_RESULT, STILL_MOVING = 0.05, 0.1
# Differences below so many tolerances of the solver are errors of the solver.
SOLVER_ERRORS = 10.0


def doubts_about(
    found: Found, spread: Spread, experiments: Sequence[Experiment], sought: Sought,
    failures: Sequence[Failure],
) -> list[str]:
    """Say in words what is doubtful about a result."""
    if not np.isfinite(found.loss):
        return []
    texts = _at_bounds(found, sought)
    if not found.success:
        texts.append(f"The search has not converged: {found.message}")
    if _within_tolerances(found, experiments):
        return texts
    texts += _stopped_by_failures(found, spread, failures)
    if spread.known_errors:
        texts += _size_of_misfit(found, spread)
    return texts + _patterns(found, spread, experiments)


def _at_bounds(found: Found, sought: Sought) -> list[str]:
    texts = []
    for name, side, low, high in zip(
        sought.names, found.at_bound, sought.low, sought.high, strict=True
    ):
        if side:
            which, value = ("lower", low) if side < 0 else ("upper", high)
            texts.append(
                f"{name} is at its {which} bound, {value:g}: the data favour a value beyond it. "
                "Its standard error means little."
            )
    return texts


def _stopped_by_failures(
    found: Found, spread: Spread, failures: Sequence[Failure]
) -> list[str]:
    """Say whether the search would have continued if there were solutions."""
    near = [one for one in failures if _close(one.p, found.p)]
    step = next_step(found.residuals, found.jacobian)
    if not near or step <= STILL_MOVING * np.sqrt(found.loss / max(spread.dof, 1)):
        return []
    return [
        f"{counted(len(near), 'trial')} next to the result had no solution: the search stopped at "
        "the edge of the region where there is one, and the data favour values beyond it. The last "
        f"trial said: {near[-1].message}"
    ]


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.all(np.abs(a - b) <= NEAR_RESULT * np.maximum(np.abs(a), np.abs(b))))


def _within_tolerances(found: Found, experiments: Sequence[Experiment]) -> bool:
    """Whether the differences are as small as the errors of the solver."""
    own = np.concatenate([
        _tolerance(one) * part.weights * (np.max(np.abs(part.values)) or 1.0)
        for one in experiments for part in one.series
    ])
    return bool(np.sqrt(np.mean(found.residuals**2)) < SOLVER_ERRORS * np.sqrt(np.mean(own**2)))


def _tolerance(experiment: Experiment) -> float:
    return float(np.max(experiment.options["rtol"]))


def _size_of_misfit(found: Found, spread: Spread) -> list[str]:
    from scipy.special import chdtr, chdtrc  # late, to save time

    if spread.dof < 1:
        return []
    chi2 = float(found.residuals @ found.residuals)
    reduced = f"chi2 / dof is {chi2 / spread.dof:.3g}"
    if chdtrc(spread.dof, chi2) < FALSE_ALARM:
        return [
            f"The model does not follow the data within their standard errors: {reduced}, which "
            "should be about 1. Either sigma is too small or the model is wrong."
        ]
    if chdtr(spread.dof, chi2) < FALSE_ALARM:
        return [
            f"The data scatter less than their standard errors suggest: {reduced}, which should be "
            "about 1. sigma is too large."
        ]
    return []


def _patterns(found: Found, spread: Spread, experiments: Sequence[Experiment]) -> list[str]:
    """Look for patterns in the differences of every series."""
    count = sum(len(one.series) for one in experiments)
    size = float(np.sqrt(found.loss / max(spread.dof, 1)))
    texts: list[str] = []
    first = 0
    for one in experiments:
        for k, series in enumerate(one.series):
            part = found.residuals[first : first + len(series.values)]
            first += len(part)
            if spread.known_errors and np.sqrt(np.mean(part**2)) < NEGLIGIBLE_PATTERN:
                continue
            texts += _of_series(part, series.t, size, FALSE_ALARM / count, one.label(k))
    return texts


def _of_series(
    r: np.ndarray, t: np.ndarray, size: float, chance: float, label: str
) -> list[str]:
    if len(r) < MIN_VALUES or size == 0.0:
        return []
    pattern = _runs(r, chance, label) or _level(r, chance, label) or _neighbours(r, chance, label)
    if pattern:
        return [f"{pattern} The model, not the fit, is at fault."]
    worst = int(np.argmax(np.abs(r)))
    rest = np.sqrt(np.mean(np.delete(r, worst) ** 2))
    if abs(r[worst]) > OUTLIER * rest and len(r) > 2 * MIN_VALUES:
        return [
            f"One value of {label}, at t = {t[worst]:.6g}, is {abs(r[worst]) / rest:.2g} times as "
            "far from the model as the others: an outlier? loss='soft_l1' gives it less weight."
        ]
    return []


def _tail(z: float) -> float:
    from scipy.special import ndtr  # late, to save time

    return float(ndtr(-z))


def _runs(r: np.ndarray, chance: float, label: str) -> str:
    """Wald-Wolfowitz test: too few changes of sign."""
    above = r > 0.0
    m, n = int(np.sum(above)), int(np.sum(~above))
    if min(m, n) < 3:
        return ""
    runs = 1 + int(np.sum(above[1:] != above[:-1]))
    expected = 1.0 + 2.0 * m * n / (m + n)
    variance = (expected - 1.0) * (expected - 2.0) / (m + n - 1.0)
    if _tail((expected - runs - 0.5) / np.sqrt(variance)) >= chance:
        return ""
    return (
        f"The differences of {label} form {runs} runs above and below zero, where chance would "
        f"give about {expected:.0f}."
    )


def _level(r: np.ndarray, chance: float, label: str) -> str:
    """Test of the mean: the model is above the data, or below."""
    from scipy.special import stdtr  # late, to save time

    error = np.std(r, ddof=1) / np.sqrt(len(r))
    mean = float(np.mean(r))
    if error > 0.0 and 2.0 * stdtr(len(r) - 1, -abs(mean) / error) >= chance:
        return ""
    side = "above" if mean > 0.0 else "below"
    return f"The model is {side} the data of {label} on average."


def _neighbours(r: np.ndarray, chance: float, label: str) -> str:
    """Test of the correlation of neighbours."""
    apart = r - np.mean(r)
    share = float(apart[1:] @ apart[:-1] / (apart @ apart)) if np.any(apart) else 0.0
    if _tail(share * np.sqrt(len(r))) >= chance:
        return ""
    return f"Neighbouring differences of {label} are alike (correlation {share:.2f})."
