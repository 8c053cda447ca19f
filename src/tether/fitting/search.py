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

__all__ = ["LOSSES", "Failure", "Found", "Search", "threads_for"]


@dataclass(frozen=True)
class Failure:
    """A trial without a solution: the parameters, and why."""

    p: np.ndarray
    message: str


@dataclass(frozen=True, eq=False)
class Found:
    """Where a search has ended.

    Attributes
    ----------
    p : ndarray
        The parameters.
    residuals, jacobian : ndarray
        Weighted differences there, and their derivatives by p; with a robust loss those that
        have the same Hessian as the loss.
    loss : float
        The sum of squares, or of what a robust loss makes of them.
    success : bool
        Whether it has converged.
    message : str
        How it has ended.
    at_bound : ndarray of int
        -1, 0 or 1 for every parameter: at its lower bound, inside, at its upper bound.
    nfev, njev : int
        Trials, and derivatives that were used.
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
    0: "The number of trials has reached max_nfev.",
    1: "Converged: the gradient vanishes.",
    2: "Converged: the sum of squares no longer changes.",
    3: "Converged: the parameters no longer change.",
    4: "Converged: neither the sum of squares nor the parameters change.",
}


# What losses make of a square; scipy.optimize.least_squares has the same.
LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(z) - 1.0),
    "cauchy": np.log1p,
    "arctan": np.arctan,
}


@dataclass(eq=False)
class Search:
    """Looks for parameters; what it was asked last is kept.

    Attributes
    ----------
    experiments, sought
        What is fitted, and by which parameters.
    settings : dict
        Passed on to `scipy.optimize.least_squares`.
    workers : int
        Threads.
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
        """Compare the solutions for these parameters with all that was measured."""
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
        """Search from p on; parameters that are not `free` stay as they are."""
        sought = self.sought
        free = np.ones(len(p), bool) if free is None else free
        p = p.copy()
        first = self.at(p)
        if first.failure:
            return _nothing(p, first, f"There is no solution for p0: {first.failure}")
        if not np.any(free):
            return Found(
                p, first.residuals, first.jacobian, self.loss_of(first.residuals), True,
                "Nothing was sought.", np.zeros(len(p), int), 1, 0,
            )
        low, high = sought.x_bounds()

        def whole(x: np.ndarray) -> np.ndarray:
            found = sought.x_of(p)
            found[free] = x
            return np.where(free, sought.p_of(found), p)

        def jacobian(x: np.ndarray) -> np.ndarray:
            now = whole(x)
            return (self.at(now).jacobian * sought.slopes(now))[:, free]

        ended = _least_squares(
            lambda x: self.at(whole(x)).residuals, jacobian, sought.x_of(p)[free],
            (low[free], high[free]), **self.settings,
        )
        best = whole(ended.x)
        scaled, at_bound = np.zeros((len(ended.fun), len(p))), np.zeros(len(p), int)
        scaled[:, free] = ended.jac / sought.slopes(best)[free]
        at_bound[free] = ended.active_mask
        return Found(
            best, ended.fun, scaled, self.loss_of(ended.fun), ended.status > 0,
            MESSAGES[ended.status], at_bound, ended.nfev, ended.njev,
        )

    def loss_of(self, residuals: np.ndarray) -> float:
        """Return the sum of squares, or of what a robust loss makes of them."""
        scale = self.settings["f_scale"] ** 2
        return float(scale * np.sum(LOSSES[self.settings["loss"]](residuals**2 / scale)))


def _nothing(p: np.ndarray, first: Trial, message: str) -> Found:
    return Found(
        p, first.residuals, np.full_like(first.jacobian, np.nan), np.nan, False, message,
        np.zeros(len(p), int), 1, 0,
    )


def _least_squares(
    fun: Callable[[np.ndarray], np.ndarray], jac: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], **settings: Any,
) -> Any:
    from scipy.optimize import least_squares  # late, to save time

    # a trial that is not finite is refused there, and a shorter step is tried
    return least_squares(fun, x, jac, bounds, **settings)


def threads_for(experiments: int, workers: int | None) -> int:
    """Return the number of threads for so many experiments."""
    if workers is None:
        workers = os.cpu_count() or 1
    elif isinstance(workers, bool) or not isinstance(workers, (int, np.integer)) or workers < 1:
        raise ValueError(f"workers must be a positive integer, got {workers!r}")
    return min(experiments, int(workers))
