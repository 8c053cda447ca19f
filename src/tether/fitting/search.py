"""The search for the parameters: least squares with exact derivatives."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tether.fitting.experiment import Experiment, Trial
from tether.fitting.sought import Sought
from tether.fitting.spread import NULL_TOLERANCE

__all__ = ["LOSSES", "Failure", "Found", "Search", "next_step", "threads_for"]


@dataclass(frozen=True)
class Failure:
    """A trial without a solution: the parameters, and why."""

    p: np.ndarray
    message: str


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search ended.

    Attributes
    ----------
    p : ndarray
        The parameters.
    residuals, jacobian : ndarray
        Weighted differences there, and their derivatives with respect to p; with a robust loss,
        scaled so that they have its Hessian.
    loss : float
        The sum of squares, or the robust loss.
    success : bool
        Whether it converged.
    message : str
        How it ended.
    at_bound : ndarray of int
        -1, 0 or 1 for every parameter: at its lower bound, inside, at its upper bound.
    nfev, njev : int
        Number of trials, and of derivatives used.
    """

    p: np.ndarray
    residuals: np.ndarray
    jacobian: np.ndarray
    loss: float
    success: bool
    message: str
    at_bound: np.ndarray
    nfev: int
    njev: int


MESSAGES = {
    0: "The number of trials reached max_nfev.",
    1: "Converged: the gradient vanishes.",
    2: "Converged: the sum of squares no longer changes.",
    3: "Converged: the parameters no longer change.",
    4: "Converged: neither the sum of squares nor the parameters change.",
}
CLOSE = "Converged: the next step would be less than a thousandth of the standard errors."
FLOOR = "Converged: the sum of squares changes only by errors of the solver."

# In standard errors. The search ends if the next step is shorter than the first, or if it is
# shorter than the second and a trial did not reduce the sum of squares, since only errors of the
# solver are left. Sums of squares that differ by less than the second are equally good.
CONVERGED_STEP, SMALL_STEP = 1e-3, 1e-2

# Losses as functions of a squared difference, as in scipy.optimize.least_squares.
LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(z) - 1.0),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


@dataclass(eq=False)
class Search:
    """Searches for parameters; keeps the last trial.

    Attributes
    ----------
    experiments, sought
        The experiments and the parameters to be fitted.
    settings : dict
        Passed on to `scipy.optimize.least_squares`.
    workers : int
        Number of threads.
    solves : int
        How many times the model was solved.
    failures : list of Failure
        Trials without a solution.
    """

    experiments: list[Experiment]
    sought: Sought
    settings: dict[str, Any]
    workers: int
    solves: int = 0
    failures: list[Failure] = field(default_factory=list)
    last: tuple[bytes, Trial] | None = None

    def at(self, p: np.ndarray) -> Trial:
        """Compare the solutions for given parameters with all measurements."""
        if self.last is not None and self.last[0] == p.tobytes():
            return self.last[1]
        if self.workers > 1:
            with ThreadPoolExecutor(self.workers) as pool:
                parts = list(pool.map(lambda one: one.attempt(p), self.experiments))
        else:
            parts = [one.attempt(p) for one in self.experiments]
        self.solves += len(parts)
        failure = next((part.failure for part in parts if part.failure), "")
        if failure:
            self.failures.append(Failure(p.copy(), failure))
        whole = Trial(
            np.concatenate([part.residuals for part in parts]),
            np.concatenate([part.jacobian for part in parts]), failure,
        )
        self.last = (p.tobytes(), whole)
        return whole

    def run(self, p: np.ndarray, free: np.ndarray | None = None) -> Found:
        """Search from p; parameters that are not `free` stay as they are."""
        sought = self.sought
        free = np.ones(len(p), bool) if free is None else free
        p = np.where(free, sought.p_of(sought.x_of(p)), p)     # the same bits as in the search
        first = self.at(p)
        if first.failure:
            return _nothing(p, first, f"There is no solution for p0: {first.failure}")
        if not np.any(free):
            return Found(
                p, first.residuals, first.jacobian, self.loss_of(first.residuals), True,
                "No parameter was free.", np.zeros(len(p), int), 1, 0,
            )
        return _Walk(self, p, free).run()

    def loss_of(self, residuals: np.ndarray) -> float:
        """Return the sum of squares, or the robust loss."""
        scale = self.settings["f_scale"] ** 2
        return float(scale * np.sum(LOSSES[self.settings["loss"]](residuals**2 / scale)))


def _nothing(p: np.ndarray, first: Trial, message: str) -> Found:
    return Found(
        p, first.residuals, np.full_like(first.jacobian, np.nan), np.nan, False, message,
        np.zeros(len(p), int), 1, 0,
    )


class _Converged(Exception):  # noqa: N818
    """Raised within a search to end it."""


@dataclass(frozen=True, eq=False)
class _Best:
    """The best trial so far, and the length of the next step from it (`next_step`)."""

    p: np.ndarray
    trial: Trial
    loss: float
    step: float


class _Walk:
    """One search; it uses the derivatives of every trial, accepted or not."""

    def __init__(self, search: Search, p: np.ndarray, free: np.ndarray) -> None:
        self.search, self.p, self.free = search, p, free
        self.nfev, self.njev = 0, 0
        self.best: _Best | None = None
        self.message = ""

    def run(self) -> Found:
        """Search until converged."""
        from scipy.optimize import least_squares  # late, to save time

        sought, free = self.search.sought, self.free
        low, high = sought.x_bounds()
        settings = dict(self.search.settings)
        if not isinstance(settings["x_scale"], str):
            settings["x_scale"] = np.broadcast_to(settings["x_scale"], len(free))[free]
        try:                                   # trials that are not finite lead to shorter steps
            ended = least_squares(
                self._residuals, sought.x_of(self.p)[free], self._jacobian,
                (low[free], high[free]), **settings,
            )
        except _Converged:
            return self._stopped()
        p = self._whole(ended.x)
        scaled, at_bound = np.zeros((len(ended.fun), len(p))), np.zeros(len(p), int)
        scaled[:, free] = ended.jac / sought.slopes(p)[free]
        at_bound[free] = ended.active_mask
        return Found(
            p, ended.fun, scaled, self.search.loss_of(ended.fun), ended.status > 0,
            MESSAGES[ended.status], at_bound, self.nfev, self.njev,
        )

    def _stopped(self) -> Found:
        assert self.best is not None
        p, trial = self.best.p, self.best.trial
        jacobian = np.where(self.free, trial.jacobian, 0.0)
        return Found(
            p, trial.residuals, jacobian, self.best.loss, True, self.message,
            np.zeros(len(p), int), self.nfev, self.njev,
        )

    def _whole(self, x: np.ndarray) -> np.ndarray:
        found = self.search.sought.x_of(self.p)
        found[self.free] = x
        return np.where(self.free, self.search.sought.p_of(found), self.p)

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        self.njev += 1
        p = self._whole(x)
        return (self.search.at(p).jacobian * self.search.sought.slopes(p))[:, self.free]

    def _residuals(self, x: np.ndarray) -> np.ndarray:
        self.nfev += 1
        p = self._whole(x)
        trial = self.search.at(p)
        if not trial.failure and self.search.settings["loss"] == "linear":
            self._check_convergence(p, trial)
        return trial.residuals

    def _check_convergence(self, p: np.ndarray, trial: Trial) -> None:
        """End the search if the next step would be small compared with the standard errors."""
        loss = self.search.loss_of(trial.residuals)
        step = next_step(trial.residuals, trial.jacobian[:, self.free])
        variance = self._variance(loss)
        new = _Best(p, trial, loss, step)
        best = self.best or new
        better = loss < best.loss
        as_good = loss <= best.loss + SMALL_STEP * variance
        if better or (as_good and step <= best.step):
            best = new
        if best.step <= CONVERGED_STEP * np.sqrt(variance):
            self.message = CLOSE
        elif self.best and not better and best.step <= SMALL_STEP * np.sqrt(variance):
            self.message = FLOOR
        self.best = best
        if self.message:
            self.njev += 1
            raise _Converged

    def _variance(self, loss: float) -> float:
        dof = sum(one.size for one in self.search.experiments) - int(np.sum(self.free))
        variance = loss / dof if dof > 0 else 0.0
        known = all(one.known_errors for one in self.search.experiments)
        return min(variance, 1.0) if known else variance


def next_step(residuals: np.ndarray, jacobian: np.ndarray) -> float:
    """Return the length of the part of the differences that the parameters can still explain.

    Divided by the standard error of a difference, this is the Gauss-Newton step in standard errors
    of the parameters.
    """
    lengths = np.linalg.norm(jacobian, axis=0)
    u, s, _ = np.linalg.svd(jacobian / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return float(np.linalg.norm(u[:, s > NULL_TOLERANCE * max(s[0], NULL_TOLERANCE)].T @ residuals))


def threads_for(experiments: int, workers: int | None) -> int:
    """Return the number of threads for a number of experiments."""
    if workers is None:
        workers = os.cpu_count() or 1
    elif isinstance(workers, bool) or not isinstance(workers, (int, np.integer)) or workers < 1:
        raise ValueError(f"workers must be a positive integer, got {workers!r}")
    return min(experiments, int(workers))
