"""What is to be doubted about a fit: first of all whether the model is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tether.fitting.experiment import Experiment
from tether.fitting.search import Failure, Found, next_step
from tether.fitting.sought import Sought
from tether.fitting.spread import Spread
from tether.problem.names import counted

__all__ = ["doubts_about"]

# Probability with which any of the tests may call a right model wrong.
CHANCE = 1e-3
# Patterns this far below the standard errors of the measurements are nothing to speak of.
BELOW = 0.3
# Fewer differences than this have no pattern.
FEWEST = 8
# Standard errors by which one value lies apart from the others.
APART = 5.0
# Relative distance of the result from trials without a solution, and the step in standard errors
# that would still be taken.
NEXT_TO, STANDS = 0.05, 0.1
# Differences below so many tolerances of the solver are its own.
ROUGH = 10.0


def doubts_about(
    found: Found, spread: Spread, experiments: Sequence[Experiment], sought: Sought,
    failures: Sequence[Failure],
) -> list[str]:
    """Say in words what is to be doubted about a result."""
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
                f"{name} is at its {which} bound, {value:g}: the data want it beyond, and its "
                "standard error means little."
            )
    return texts


def _stopped_by_failures(
    found: Found, spread: Spread, failures: Sequence[Failure]
) -> list[str]:
    """Whether the search would have gone on if there were solutions."""
    near = [one for one in failures if _close(one.p, found.p)]
    step = next_step(found.residuals, found.jacobian)
    if not near or step <= STANDS * np.sqrt(found.loss / max(spread.dof, 1)):
        return []
    return [
        f"{counted(len(near), 'trial')} next to the result had no solution: the search has stopped "
        "at the edge of where there is one, and the data want to go on. The last trial said: "
        f"{near[-1].message}"
    ]


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.all(np.abs(a - b) <= NEXT_TO * np.maximum(np.abs(a), np.abs(b))))


def _within_tolerances(found: Found, experiments: Sequence[Experiment]) -> bool:
    """Whether the differences are as small as the errors of the solver."""
    own = np.concatenate([
        _tolerance(one) * part.weights * (np.max(np.abs(part.values)) or 1.0)
        for one in experiments for part in one.series
    ])
    return bool(np.sqrt(np.mean(found.residuals**2)) < ROUGH * np.sqrt(np.mean(own**2)))


def _tolerance(experiment: Experiment) -> float:
    return float(np.max(experiment.options["rtol"]))


def _size_of_misfit(found: Found, spread: Spread) -> list[str]:
    from scipy.special import chdtr, chdtrc  # late, to save time

    if spread.dof < 1:
        return []
    chi2 = float(found.residuals @ found.residuals)
    reduced = f"chi2 / dof is {chi2 / spread.dof:.3g}"
    if chdtrc(spread.dof, chi2) < CHANCE:
        return [
            f"The model does not follow the data within their standard errors: {reduced}, which "
            "should be about 1. Either sigma is too small or the model is wrong."
        ]
    if chdtr(spread.dof, chi2) < CHANCE:
        return [
            f"The data scatter less than their standard errors say: {reduced}, which should be "
            "about 1. sigma is too large."
        ]
    return []


def _patterns(found: Found, spread: Spread, experiments: Sequence[Experiment]) -> list[str]:
    """Look for what is left of the model's shape in the differences of every series."""
    count = sum(len(one.series) for one in experiments)
    size = float(np.sqrt(found.loss / max(spread.dof, 1)))
    texts: list[str] = []
    first = 0
    for one in experiments:
        for k, series in enumerate(one.series):
            part = found.residuals[first : first + len(series.values)]
            first += len(part)
            if spread.known_errors and np.sqrt(np.mean(part**2)) < BELOW:
                continue
            texts += _of_series(part, series.t, size, CHANCE / count, one.label(k))
    return texts


def _of_series(
    r: np.ndarray, t: np.ndarray, size: float, chance: float, label: str
) -> list[str]:
    if len(r) < FEWEST or size == 0.0:
        return []
    pattern = _runs(r, chance, label) or _level(r, chance, label) or _echo(r, chance, label)
    if pattern:
        return [f"{pattern} The model, not the fit, is at fault."]
    worst = int(np.argmax(np.abs(r)))
    rest = np.sqrt(np.mean(np.delete(r, worst) ** 2))
    if abs(r[worst]) > APART * rest and len(r) > 2 * FEWEST:
        return [
            f"One value of {label}, at t = {t[worst]:.6g}, lies {abs(r[worst]) / rest:.2g} times "
            "as far away as the others: an outlier? loss='soft_l1' gives it less weight."
        ]
    return []


def _tail(z: float) -> float:
    from scipy.special import ndtr  # late, to save time

    return float(ndtr(-z))


def _runs(r: np.ndarray, chance: float, label: str) -> str:
    """Test of Wald and Wolfowitz: too few changes of sign."""
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
        f"The differences of {label} come in {runs} runs above and below zero, where chance would "
        f"make about {expected:.0f}."
    )


def _level(r: np.ndarray, chance: float, label: str) -> str:
    """Test of the mean: the model lies above the data, or below."""
    from scipy.special import stdtr  # late, to save time

    error = np.std(r, ddof=1) / np.sqrt(len(r))
    mean = float(np.mean(r))
    if error > 0.0 and 2.0 * stdtr(len(r) - 1, -abs(mean) / error) >= chance:
        return ""
    side = "above" if mean > 0.0 else "below"
    return f"The model lies {side} the data of {label} on the whole."


def _echo(r: np.ndarray, chance: float, label: str) -> str:
    """Correlation of neighbours."""
    apart = r - np.mean(r)
    share = float(apart[1:] @ apart[:-1] / (apart @ apart)) if np.any(apart) else 0.0
    if _tail(share * np.sqrt(len(r))) >= chance:
        return ""
    return f"Neighbouring differences of {label} are alike (correlation {share:.2f})."
