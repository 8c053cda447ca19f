"""The solution between the points of a run: over one step, and over all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tether._core import interpolate
from tether.run.steps import Steps

__all__ = ["Interpolant", "LocalInterpolant"]


def _as_times(t: ArrayLike) -> np.ndarray:
    if np.ndim(t) > 1:
        raise ValueError(f"t must be a number or a vector, got shape {np.shape(t)}")
    return np.ascontiguousarray(np.atleast_1d(t), float)


class LocalInterpolant:
    """The polynomial over one step: ``interpolant(t) -> (y, yp)``."""

    def __init__(self, t: float, k: int, psi: np.ndarray, phi: np.ndarray) -> None:
        self.t, self.k, self.t_old = t, k, t - psi[1]
        self._psi, self._phi = psi, phi
        self._n = len(phi) // (k + 1)

    def restricted(self, n: int) -> LocalInterpolant:
        """Return the polynomial of the first n unknowns."""
        if n == self._n:
            return self
        part = np.ascontiguousarray(self._phi.reshape(self.k + 1, self._n)[:, :n]).ravel()
        fewer = LocalInterpolant(self.t, self.k, self._psi, part)
        fewer.t_old = self.t_old
        return fewer

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""
        times = _as_times(t)
        y, yp = np.empty((2, len(times), self._n))
        interpolate.evaluate_at(times, self.t, self.k, self._psi, self._phi, y, yp)
        return (y[0], yp[0]) if np.ndim(t) == 0 else (y.T, yp.T)


def _without_joints(steps: Steps) -> Steps:
    """Leave out the rows where the solution continues smoothly: polynomials extend across them."""
    if not any(steps.smooth):
        return steps
    every, smooth = np.array(steps.begins), np.array(steps.smooth)
    joints, begins = every[smooth], every[~smooth]
    t, y, yp, order = (
        np.delete(rows, joints, axis=0) for rows in (steps.t, steps.y, steps.yp, steps.order)
    )
    left = (begins - np.searchsorted(joints, begins)).tolist()
    return Steps(t, y, yp, order, left, [False] * len(left))


class Interpolant:
    """The solution between the steps: ``sol(t) -> (y, yp)``.

    Over the step that ends at t_n with order k the solution is the polynomial of degree k through
    the last k + 1 points; it is rebuilt from the stored points when needed. At a time where an
    event changed the state the value before the change is returned.

    Parameters
    ----------
    steps : Steps
        The stored steps of a run (`tether.run.steps`).

    Examples
    --------
    >>> from tether import solve_dae
    >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], dense_output=True).sol
    >>> y, yp = sol(0.5)
    >>> print(round(float(y[0]), 4), round(float(yp[0]), 4))
    0.6065 -0.6065
    >>> sol([0.25, 0.5, 0.75])[0].shape
    (1, 3)
    """

    def __init__(self, steps: Steps) -> None:
        steps = _without_joints(steps)
        rows = np.arange(len(steps.t))
        begins = np.array(steps.begins)
        since = rows - begins[np.searchsorted(begins, rows, side="right") - 1]
        # A start may have its own history; and no polynomial ends where a part begins.
        self._keep(steps.t, steps.y, np.minimum(steps.order, since))

    def _keep(self, t: np.ndarray, y: np.ndarray, degree: np.ndarray) -> None:
        self._t, self._y, self._degree = t, np.ascontiguousarray(y), degree
        self._direction = 1.0 if t[-1] >= t[0] else -1.0
        self._forward = self._direction * t

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times, values in rows, and the degree of the polynomial that ends at each.

        `Interpolant.through` makes the same interpolant from them.
        """
        return self._t, self._y, self._degree

    @classmethod
    def through(cls, t: np.ndarray, y: np.ndarray, degree: np.ndarray) -> Interpolant:
        """Make an interpolant from what `points` of another one returned."""
        interpolant = cls.__new__(cls)
        interpolant._keep(t, y, degree)
        return interpolant

    @property
    def t_min(self) -> float:
        """Smallest time covered."""
        return float(min(self._t[0], self._t[-1]))

    @property
    def t_max(self) -> float:
        """Largest time covered."""
        return float(max(self._t[0], self._t[-1]))

    def __call__(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return y and y' at a time or at an array of times (as columns)."""
        times = _as_times(t)
        slack = 8 * np.finfo(float).eps * max(abs(self.t_min), abs(self.t_max))
        if not np.all((times >= self.t_min - slack) & (times <= self.t_max + slack)):
            raise ValueError(f"t must lie within [{self.t_min}, {self.t_max}], got {t!r}")
        # the first step that ends at or after the time; row 0 ends no step
        rows = np.searchsorted(self._forward, self._direction * times, side="left")
        rows = np.clip(rows, 1, len(self._t) - 1)
        y, yp = np.empty((2, len(times), self._y.shape[1]))
        by_row = np.argsort(rows, kind="stable")
        for inside in np.split(by_row, np.flatnonzero(np.diff(rows[by_row])) + 1):
            end = int(rows[inside[0]]) if len(inside) else 1
            if self._degree[end] == 0:     # no step ends where a part begins; none may follow
                end += 1 if end + 1 < len(self._t) else -1
            degree = int(self._degree[end])
            psi, phi = interpolate.polynomial_through(self._t, self._y, end, degree)
            y_part, yp_part = np.empty((2, len(inside), y.shape[1]))
            interpolate.evaluate_at(
                times[inside], self._t[end], degree, psi, phi, y_part, yp_part
            )
            y[inside], yp[inside] = y_part, yp_part
        return (y[0], yp[0]) if np.ndim(t) == 0 else (y.T, yp.T)
