"""Constraints Phi(t, q) = 0 on positions, with their derivatives in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tether.problem.problem import check_signature

FloatArray = NDArray[np.float64]

# Central differences of order 6. The steps, powers of two, balance truncation against round-off for
# functions that are smooth on a scale of 1.
FIRST_WEIGHTS = (3 / 4, -3 / 20, 1 / 60)
SECOND_WEIGHTS = (3 / 2, -3 / 20, 1 / 90)
FIRST_STEP = 2.0**-9
SECOND_STEP = 2.0**-7

# Differences with two step sizes must not differ by more than the first; if they differ by less
# than the second, they are used to check the user's derivative, which may be wrong by the third.
MAX_SPREAD, SPREAD_FOR_CHECKS, MAX_ERROR = 1e-7, 1e-8, 1e-5


def slope(f: Callable[[float], FloatArray], h: float) -> FloatArray:
    """First derivative of f at 0."""
    terms = [w * (f(k * h) - f(-k * h)) for k, w in enumerate(FIRST_WEIGHTS, 1)]
    return np.sum(terms, axis=0) / h


def bend(f: Callable[[float], FloatArray], h: float) -> FloatArray:
    """Second derivative of f at 0."""
    middle = f(0.0)
    terms = [
        w * ((f(k * h) - middle) + (f(-k * h) - middle)) for k, w in enumerate(SECOND_WEIGHTS, 1)
    ]
    return np.sum(terms, axis=0) / h**2


class Holonomic:
    """Phi(t, q) and its derivatives, given or by differences; see `Mechanism`."""

    def __init__(
        self,
        constraint: Callable[..., Any],
        jac: Callable[..., Any] | None,
        rate: Callable[..., Any] | None,
        curvature: Callable[..., Any] | None,
        scale: FloatArray,
        time_scale: float,
    ) -> None:
        check_signature("constraint", constraint, "(t, q)", 2)
        for name, function, expected, count in (
            ("constraint_jac", jac, "(t, q)", 2),
            ("constraint_rate", rate, "(t, q)", 2),
            ("curvature", curvature, "(t, q, v)", 3),
        ):
            if function is not None:
                check_signature(name, function, expected, count)
        self.constraint = constraint
        self.given_jac, self.given_rate, self.given_curvature = jac, rate, curvature
        self.scale, self.time_scale = scale, time_scale

    def values(self, t: float, q: FloatArray) -> FloatArray:
        """Phi."""
        return _vector(self.constraint(t, q))

    def jac(self, t: float, q: FloatArray) -> FloatArray:
        """G = dPhi/dq, one row for each constraint."""
        if self.given_jac is None:
            return self.difference_jac(t, q)
        return np.atleast_2d(np.asarray(self.given_jac(t, q), float))

    def rate(self, t: float, q: FloatArray) -> FloatArray:
        """dPhi/dt with q held fixed."""
        if self.given_rate is None:
            return self.difference_rate(t, q)
        return _vector(self.given_rate(t, q))

    def velocity(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """dPhi/dt along q' = v."""
        return self.jac(t, q) @ v + self.rate(t, q)

    def curvature(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """d2Phi/dt2 along q' = v, v' = 0."""
        if self.given_curvature is None:
            return self.difference_curvature(t, q, v)
        return _vector(self.given_curvature(t, q, v))

    def jac_rate(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """dG/dt along q' = v, which is d(`velocity`)/dq, to a few digits."""
        s = FIRST_STEP / self.speed(v)
        return (self.jac(t + s, q + s * v) - self.jac(t - s, q - s * v)) / (2 * s)

    def speed(self, v: FloatArray) -> float:
        """How many scales, of the coordinates or of time, a motion covers per unit of time."""
        return max(1 / self.time_scale, float(np.max(np.abs(v) / self.scale)))

    def difference_jac(self, t: float, q: FloatArray, h: float = FIRST_STEP) -> FloatArray:
        """G by differences with steps of h scales."""

        def along(move: FloatArray) -> FloatArray:
            return slope(lambda s: self.values(t, q + s * move), h)

        return np.column_stack([along(move) for move in np.diag(self.scale)]) / self.scale

    def difference_rate(self, t: float, q: FloatArray, h: float = FIRST_STEP) -> FloatArray:
        """dPhi/dt by differences with a step of h scales."""
        return slope(lambda s: self.values(t + s, q), h * self.time_scale)

    def difference_curvature(
        self, t: float, q: FloatArray, v: FloatArray, h: float = SECOND_STEP
    ) -> FloatArray:
        """d2Phi/dt2 by differences along the straight motion."""
        return bend(lambda s: self.values(t + s, q + s * v), h / self.speed(v))

    def check_derivatives(self, t: float, q: FloatArray, v: FloatArray) -> None:
        """Refuse differences that depend on their step, and derivatives that contradict them."""
        # curvature is visible only in motion, and many mechanisms start at rest
        v = v + self.scale / self.time_scale * np.cos(1.0 + np.arange(len(q)))
        speed, size = self.speed(v), np.abs(self.jac(t, q) * self.scale).max()
        self._judge(
            "constraint_jac",
            None if self.given_jac is None else self.jac(t, q) * self.scale,
            lambda h: self.difference_jac(t, q, h) * self.scale,
            FIRST_STEP,
            size,
        )
        self._judge(
            "constraint_rate",
            None if self.given_rate is None else self.rate(t, q),
            lambda h: self.difference_rate(t, q, h),
            FIRST_STEP,
            size * speed,
        )
        self._judge(
            "curvature",
            None if self.given_curvature is None else self.curvature(t, q, v),
            lambda h: self.difference_curvature(t, q, v, h),
            SECOND_STEP,
            size * speed**2,
        )

    @staticmethod
    def _judge(
        name: str,
        given: FloatArray | None,
        differences: Callable[[float], FloatArray],
        step: float,
        size: float,
    ) -> None:
        fine, coarse = differences(step / 2), differences(step)
        spread = np.abs(fine - coarse).max()
        if given is None and not spread <= MAX_SPREAD * size:
            raise ValueError(
                f"differences cannot replace {name}: with another step they change by "
                f"{spread:.1g} at q0. Set scale and time_scale to changes over which the "
                f"constraint is curved, or pass {name}"
            )
        if given is None or not spread <= SPREAD_FOR_CHECKS * size:
            return
        error = np.abs(given - fine).max()
        if not error <= MAX_ERROR * size:
            raise ValueError(
                f"{name} is wrong by {error:.3g} (in units of scale) at q0, compared with "
                "differences of constraint"
            )


def _vector(values: ArrayLike) -> FloatArray:
    return np.atleast_1d(np.asarray(values, float))
