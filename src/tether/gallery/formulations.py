"""Mechanisms with constraints, in six formulations.

A mechanism with coordinates q and velocities v = q' obeys

    M(t, q) v' = f(t, q, v) - G(t, q)^T lambda,    Phi(t, q) = 0,    G = dPhi/dq,

with one multiplier lambda for each constraint: -G^T lambda is the force that the constraints
exert. PL2 (Petzold and Lötstedt 1986) write G for the transpose and give lambda the other sign.
Their section 2 weighs the ways to write these equations; `Mechanism.problem` builds them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.gallery.holonomic import SECOND_STEP, FloatArray, Holonomic, slope
from tether.problem.constraint import Constraint
from tether.problem.problem import Problem, check_signature

__all__ = ["FORMULATIONS", "Mechanism"]

FORMULATIONS = ("index 3", "index 2", "index 1", "ggl", "baumgarte", "projection")
# Formulations with d2Phi/dt2, for which accelerations are solved for.
WITH_ACCELERATIONS = ("index 1", "baumgarte", "projection")

# Default rate at which errors in the constraints decay.
BAUMGARTE_RATE = 10.0


class Mechanism:
    """A mechanism M v' = f - G^T lambda, q' = v, with constraints Phi(t, q) = 0.

    Derivatives of the constraint that are not given are found by central differences of order 6.
    Relative to the terms in the constraint, they are accurate to about 1e-13, and `curvature` to
    1e-11, provided that the constraint is smooth on the scales `scale` and `time_scale`. `start`
    refuses a constraint for which they are inaccurate, and a given derivative with which they
    disagree. With all three derivatives given, the residual takes about a sixth of the time.

    Parameters
    ----------
    mass : array_like or callable
        The mass matrix, the vector of its diagonal, or a function ``mass(t, q)`` that returns
        the matrix.
    force : callable
        ``force(t, q, v)`` returns all forces on the mechanism except those of the constraints,
        including gyroscopic terms if the mass depends on q.
    constraint : callable
        ``constraint(t, q)`` returns the values Phi that must be zero: a number or a vector.
    constraint_jac : callable, optional
        ``constraint_jac(t, q)`` returns G = dPhi/dq, one row for each constraint.
    constraint_rate : callable, optional
        ``constraint_rate(t, q)`` returns dPhi/dt with q held fixed.
    curvature : callable, optional
        ``curvature(t, q, v)`` returns d2Phi/dt2 without the term G v'.
    n : int, optional
        Number of coordinates; needed if `mass` is a function.
    scale : float or array_like
        Typical changes of the coordinates, one for all or one for each, over which a constraint is
        curved. They set the steps of the differences: a mechanism of millimetres that is computed
        in metres needs ``scale=1e-3``.
    time_scale : float
        The same for time.

    Examples
    --------
    A pendulum of length 1, released at rest from the horizontal:

    >>> from tether import solve_dae
    >>> from tether.gallery.formulations import Mechanism
    >>> pendulum = Mechanism(
    ...     mass=[1.0, 1.0],
    ...     force=lambda t, q, v: [0.0, -9.8],
    ...     constraint=lambda t, q: (q[0]**2 + q[1]**2 - 1.0) / 2,
    ... )
    >>> y0, yp0 = pendulum.start([1.0, 0.0], [0.0, 0.0], "projection")
    >>> sol = solve_dae(pendulum.problem("projection"), (0, 10), y0, yp0)
    >>> bool(abs(sol.y[0]**2 + sol.y[1]**2 - 1.0).max() < 1e-9)
    True
    """

    def __init__(
        self,
        mass: ArrayLike | Callable[..., Any],
        force: Callable[..., Any],
        constraint: Callable[..., Any],
        *,
        constraint_jac: Callable[..., Any] | None = None,
        constraint_rate: Callable[..., Any] | None = None,
        curvature: Callable[..., Any] | None = None,
        n: int | None = None,
        scale: ArrayLike = 1.0,
        time_scale: float = 1.0,
    ) -> None:
        check_signature("force", force, "(t, q, v)", 3)
        self._force = force
        self._mass: FloatArray | Callable[..., Any]
        if callable(mass):
            check_signature("mass", mass, "(t, q)", 2)
            if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
                raise ValueError(
                    f"n, the number of coordinates, is needed if mass is a function; got {n!r}"
                )
            self._mass, self.n = mass, int(n)
        else:
            self._mass = _constant_mass(mass)
            self.n = len(self._mass)
            if n is not None and n != self.n:
                raise ValueError(f"n is {n!r}, but mass is made for {self.n} coordinates")
        self._constraint = Holonomic(
            constraint, constraint_jac, constraint_rate, curvature,
            np.broadcast_to(_positive("scale", scale, self.n), self.n),
            _positive("time_scale", time_scale).item(),
        )  # fmt: skip

    def problem(
        self, formulation: str, *, alpha: float | None = None, beta: float | None = None
    ) -> Problem:
        """Build the equations for y = (q, v, lambda), or (q, v, lambda, mu) for "ggl".

        Parameters
        ----------
        formulation : str
            How the constraints enter:

            - "index 3": Phi = 0, as given. No drift, but the hardest to solve.
            - "index 2": dPhi/dt = 0 along q' = v. The positions drift.
            - "index 1": d2Phi/dt2 = 0 with v' from the equations of motion, PL2 (1.11). The
              easiest to solve; positions and velocities drift.
            - "ggl": Phi = 0 and dPhi/dt = 0 with q' = v - G^T mu, of index 2, after Gear, Gupta
              and Leimkuhler (1985). No drift; mu is zero along the exact solution.
            - "baumgarte": d2Phi/dt2 + 2 alpha dPhi/dt + beta^2 Phi = 0, of index 1, after
              Baumgarte (1972). Drift is damped.
            - "projection": "index 1" with Phi and dPhi/dt as `constraints` of the problem, onto
              which every step is projected. No drift.
        alpha, beta : float, optional
            Damping of "baumgarte". By default `alpha` is 10 and `beta` equals `alpha`, so errors
            decay like exp(-10 t). The equations become stiff if that is much faster than the motion
            of the mechanism.

        Returns
        -------
        Problem

        Examples
        --------
        >>> from tether.gallery.formulations import Mechanism
        >>> bead = Mechanism(  # on the parabola z = x^2
        ...     mass=[1.0, 1.0],
        ...     force=lambda t, q, v: [0.0, -9.8],
        ...     constraint=lambda t, q: q[1] - q[0]**2,
        ... )
        >>> y0, yp0 = bead.start([1.0, 1.0], [0.0, 0.0], "index 3")
        >>> residual = bead.problem("index 3").fun(0.0, y0, yp0)
        >>> bool(abs(residual).max() < 1e-11)
        True
        """
        _check_formulation(formulation)
        if formulation == "baumgarte":
            alpha = BAUMGARTE_RATE if alpha is None else _positive("alpha", alpha).item()
            beta = alpha if beta is None else _positive("beta", beta).item()
            return _MechanismProblem(self, formulation, alpha, beta)
        if alpha is not None or beta is not None:
            raise ValueError(f"alpha and beta belong to 'baumgarte', not to {formulation!r}")
        return _MechanismProblem(self, formulation)

    def start(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        formulation: str = "index 1",
        *,
        t0: float = 0.0,
        project: bool = False,
        tol: float = 1e-8,
    ) -> tuple[FloatArray, FloatArray]:
        """Complete positions and velocities to a consistent start.

        Parameters
        ----------
        q0, v0 : array_like, shape (n,)
            Positions and velocities.
        formulation : str
            As for `problem`; only "ggl" has other unknowns.
        t0 : float
            Starting time.
        project : bool
            Correct `q0` and `v0`: positions by the smallest steps in the norm of the mass matrix,
            then velocities by the impulse M (v - v0) = -G^T Lambda that the constraints would exert
            (PL2 section 2).
        tol : float
            Largest violation that is accepted, relative to G and the sizes of coordinates and
            velocities.

        Returns
        -------
        y0, yp0 : ndarray
            A start with accelerations and multipliers that satisfy d2Phi/dt2 = 0.

        Raises
        ------
        ValueError
            A constraint is violated (the message names it), the constraints are dependent, or a
            function returns something wrong.

        Examples
        --------
        >>> from tether.gallery.formulations import Mechanism
        >>> pendulum = Mechanism(
        ...     mass=[2.0, 2.0],
        ...     force=lambda t, q, v: [0.0, -19.6],
        ...     constraint=lambda t, q: (q[0]**2 + q[1]**2 - 1.0) / 2,
        ... )
        >>> y0, yp0 = pendulum.start([0.0, -1.0], [3.0, 0.0])
        >>> round(float(y0[4]), 6)  # weight and centrifugal force, 2 (9.8 + 9)
        37.6
        >>> pendulum.start([0.0, -1.1], [3.0, 0.0])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: q0 is off the constraints: constraint[0] is 0.105 instead of 0; ...
        >>> y0, yp0 = pendulum.start([0.0, -1.1], [3.0, 0.5], project=True)
        >>> [round(abs(float(number)), 6) for number in y0[:4]]
        [0.0, 1.0, 3.0, 0.0]
        """
        _check_formulation(formulation)
        q, v = _vector("q0", q0, self.n), _vector("v0", v0, self.n)
        self._check_functions(t0, q, v)
        if formulation in WITH_ACCELERATIONS:
            self._check_mass(t0, q)
        if project:
            q = self._moved_onto_constraints(t0, q)
        self._constraint.check_derivatives(t0, q, v)
        self._check_independent(t0, q)
        if project:
            v = v + self._solve(t0, q, np.zeros(self.n), -self._constraint.velocity(t0, q, v))[0]
        self._refuse_violations(t0, q, v, tol)
        a, lam = self.accelerations(t0, q, v)

        def multipliers(s: float) -> FloatArray:
            return self.accelerations(t0 + s, q + s * v + 0.5 * s * s * a, v + s * a)[1]

        speed = max(
            self._constraint.speed(v), math.sqrt(np.max(np.abs(a) / self._constraint.scale))
        )
        lam_slope = slope(multipliers, SECOND_STEP / speed)
        mu = np.zeros(len(lam) if formulation == "ggl" else 0)
        return np.concatenate([q, v, lam, mu]), np.concatenate([v, a, lam_slope, mu])

    def accelerations(
        self, t: float, q: ArrayLike, v: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Accelerations v' and multipliers lambda that make d2Phi/dt2 zero, PL2 (1.11).

        Parameters
        ----------
        t : float
            Time.
        q, v : array_like, shape (n,)
            Positions and velocities.

        Returns
        -------
        a, lam : ndarray
            Accelerations and multipliers.

        Examples
        --------
        >>> from tether.gallery.formulations import Mechanism
        >>> slide = Mechanism(
        ...     mass=[1.0, 1.0],
        ...     force=lambda t, q, v: [0.0, -10.0],
        ...     constraint=lambda t, q: q[0] + q[1],
        ... )
        >>> a, lam = slide.accelerations(0.0, [0.0, 0.0], [0.0, 0.0])
        >>> a.round(6).tolist(), lam.round(6).tolist()
        ([5.0, -5.0], [-5.0])
        """
        q, v = np.asarray(q, float), np.asarray(v, float)
        return self._solve(t, q, self._force_at(t, q, v), -self._constraint.curvature(t, q, v))

    def _mass_at(self, t: float, q: FloatArray) -> FloatArray:
        return np.asarray(self._mass(t, q), float) if callable(self._mass) else self._mass

    def _force_at(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        return np.asarray(self._force(t, q, v), float)

    def _solve(
        self, t: float, q: FloatArray, force: FloatArray, target: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve M x + G^T z = force, G x = target."""
        n, jac = self.n, self._constraint.jac(t, q)
        matrix = np.block([[self._mass_at(t, q), jac.T], [jac, np.zeros((len(jac), len(jac)))]])
        try:
            solution = np.linalg.solve(matrix, np.concatenate([force, target]))
        except np.linalg.LinAlgError:
            raise ValueError(
                f"accelerations and multipliers are not determined at t = {t:.6g}, "
                f"q = {q.tolist()}: the constraints are dependent, or mass is singular for motions "
                "that they allow"
            ) from None
        return solution[:n], solution[n:]

    def _check_functions(self, t: float, q: FloatArray, v: FloatArray) -> None:
        """Refuse values that have the wrong shape or are not finite."""
        constraint = self._constraint
        m = constraint.values(t, q).size
        for name, value, shape in (
            ("mass", self._mass_at(t, q), (self.n, self.n)),
            ("force", self._force_at(t, q, v), (self.n,)),
            ("constraint", constraint.values(t, q), (m,)),
            ("constraint_jac", constraint.jac(t, q), (m, self.n)),
            ("constraint_rate", constraint.rate(t, q), (m,)),
            ("curvature", constraint.curvature(t, q, v), (m,)),
        ):
            if value.shape != shape:
                raise ValueError(f"{name} must return the shape {shape}, but has {value.shape}")
            if not np.isfinite(value).all():
                raise ValueError(f"{name} is not finite at the start: {value.tolist()}")

    def _check_mass(self, t: float, q: FloatArray) -> None:
        if np.linalg.matrix_rank(self._mass_at(t, q)) < self.n:
            others = [name for name in FORMULATIONS if name not in WITH_ACCELERATIONS]
            raise ValueError(f"mass is singular at q0, which only {', '.join(others)} allow")

    def _check_independent(self, t: float, q: FloatArray) -> None:
        """Refuse constraints that leave multipliers undetermined."""
        jac = self._constraint.jac(t, q) * self._constraint.scale
        norms = np.linalg.norm(jac, axis=1)
        if not norms.all():
            raise ValueError(f"constraint[{np.argmin(norms)}] does not change with q at q0")
        rank = int(np.linalg.matrix_rank(jac / norms[:, None], tol=1e-9))
        if rank < len(jac):
            raise ValueError(
                f"the {len(jac)} constraints are dependent at q0, where dPhi/dq has rank {rank}: "
                "leave out the redundant ones"
            )

    def _refuse_violations(self, t: float, q: FloatArray, v: FloatArray, tol: float) -> None:
        constraint = self._constraint
        jac = np.abs(constraint.jac(t, q))
        values = constraint.values(t, q)
        allowed = tol * (jac @ np.maximum(np.abs(q), constraint.scale))
        worst = np.argmax(np.abs(values) / allowed)
        if abs(values[worst]) > allowed[worst]:
            raise ValueError(
                f"q0 is off the constraints: constraint[{worst}] is {values[worst]:.6g} instead "
                "of 0; change q0, or pass project=True to have it corrected"
            )
        rates = constraint.velocity(t, q, v)
        typical = np.maximum(np.abs(v), constraint.scale / constraint.time_scale)
        allowed = tol * (jac @ typical)
        worst = np.argmax(np.abs(rates) / allowed)
        if abs(rates[worst]) > allowed[worst]:
            raise ValueError(
                f"v0 leads off the constraints: constraint[{worst}] changes at the rate "
                f"{rates[worst]:.6g} instead of 0; change v0, or pass project=True to have it "
                "corrected"
            )

    def _moved_onto_constraints(self, t: float, q0: FloatArray) -> FloatArray:
        """Apply Newton's method with the smallest steps in the norm of the mass matrix."""
        q = q0
        for _ in range(50):
            step = self._solve(t, q, np.zeros(self.n), -self._constraint.values(t, q))[0]
            q = q + step
            if np.all(np.abs(step) <= 1e-13 * np.maximum(np.abs(q), self._constraint.scale)):
                return q
        raise ValueError(
            "no position on the constraints was found from q0, where they have the values "
            f"{self._constraint.values(t, q0).tolist()}; start closer to them"
        )


# var_index of velocities and multipliers for formulations of index 2 and 3.
KINDS = {"index 3": (2, 3), "index 2": (0, 2), "ggl": (0, 2)}


class _MechanismProblem(Problem):
    """Equations of a mechanism; the number of constraints is found when y0 is known."""

    def __init__(
        self, mechanism: Mechanism, formulation: str, alpha: float = 0.0, beta: float = 0.0
    ) -> None:
        self.mechanism, self.formulation = mechanism, formulation
        self.alpha, self.beta = alpha, beta
        held = Constraint(self._held, jac=self._held_jac) if formulation == "projection" else None
        super().__init__(self._residual, constraints=held)

    def _residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> np.ndarray:
        mechanism, n = self.mechanism, self.mechanism.n
        q, v, multipliers = y[:n], y[n : 2 * n], y[2 * n :]
        mass, jac = mechanism._mass_at(t, q), mechanism._constraint.jac(t, q)
        lam, mu = multipliers[: len(jac)], multipliers[len(jac) :]
        positions = yp[:n] - v
        if self.formulation == "ggl":
            positions += jac.T @ mu
        force = mechanism._force_at(t, q, v) - jac.T @ lam
        motion = mass @ yp[n : 2 * n] - force
        return np.concatenate([positions, motion, *self._conditions(t, q, v, mass, force, jac)])

    def _conditions(
        self,
        t: float,
        q: np.ndarray,
        v: np.ndarray,
        mass: np.ndarray,
        force: np.ndarray,
        jac: np.ndarray,
    ) -> list[np.ndarray]:
        """Values of the constraint or its derivatives that are zero in the formulation."""
        constraint, formulation = self.mechanism._constraint, self.formulation
        if formulation == "index 3":
            return [constraint.values(t, q)]
        if formulation == "index 2":
            return [jac @ v + constraint.rate(t, q)]
        if formulation == "ggl":
            return [constraint.values(t, q), jac @ v + constraint.rate(t, q)]
        # M^-1 force instead of v': its derivative has no 1/h, so an iteration matrix can be used
        # for many steps. With v' the pendulum takes over ten times as many Jacobians.
        acceleration = jac @ np.linalg.solve(mass, force) + constraint.curvature(t, q, v)
        if formulation == "baumgarte":
            acceleration += 2 * self.alpha * (jac @ v + constraint.rate(t, q))
            acceleration += self.beta**2 * constraint.values(t, q)
        return [acceleration]

    def _held(self, t: float, y: np.ndarray) -> np.ndarray:
        n, constraint = self.mechanism.n, self.mechanism._constraint
        q, v = y[:n], y[n : 2 * n]
        return np.concatenate([constraint.values(t, q), constraint.velocity(t, q, v)])

    def _held_jac(self, t: float, y: np.ndarray) -> np.ndarray:
        n, constraint = self.mechanism.n, self.mechanism._constraint
        q, v = y[:n], y[n : 2 * n]
        jac = constraint.jac(t, q)
        m = len(jac)
        matrix = np.zeros((2 * m, len(y)))
        matrix[:m, :n] = matrix[m:, n : 2 * n] = jac
        matrix[m:, :n] = constraint.jac_rate(t, q, v)
        return matrix

    def _prepared(self, t: float, y: np.ndarray) -> Problem:
        mechanism, n = self.mechanism, self.mechanism.n
        m = mechanism._constraint.values(t, y[:n]).size if len(y) >= 2 * n else 0
        expected = 2 * n + m * (2 if self.formulation == "ggl" else 1)
        if len(y) != expected or m == 0:
            raise ValueError(
                f"y0 has {len(y)} values, but the mechanism has {n} coordinates, {n} velocities "
                f"and {m or 'its'} constraints: take y0 and yp0 from Mechanism.start(q0, v0, "
                f"{self.formulation!r})"
            )
        prepared = copy.copy(self)
        if self.formulation in KINDS:          # index 2 or 3
            velocities, multipliers = KINDS[self.formulation]
            prepared.var_index = np.zeros(expected, int)
            prepared.var_index[n : 2 * n], prepared.var_index[2 * n :] = velocities, multipliers
        if not callable(mechanism._mass):
            prepared.fyp = np.zeros((expected, expected))
            prepared.fyp[:n, :n] = np.eye(n)
            prepared.fyp[n : 2 * n, n : 2 * n] = mechanism._mass
        return prepared


def _constant_mass(mass: ArrayLike) -> FloatArray:
    matrix = np.array(mass, float)
    if matrix.ndim == 1:
        matrix = np.diag(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"mass must be a square matrix or its diagonal, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("mass must be finite")
    return matrix


def _positive(name: str, value: Any, n: int = 1) -> FloatArray:
    number = np.asarray(value, float)
    if number.shape not in ((), (n,)):
        raise ValueError(f"{name} must be one number{f' or {n}' * (n > 1)}, got {value!r}")
    if not (np.isfinite(number).all() and (number > 0).all()):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return number


def _vector(name: str, values: ArrayLike, n: int) -> FloatArray:
    vector = np.array(values, float)
    if vector.shape != (n,):
        raise ValueError(f"{name} must have {n} values, one per coordinate, got {values!r}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite, got {values!r}")
    return vector


def _check_formulation(formulation: str) -> None:
    if formulation not in FORMULATIONS:
        raise ValueError(f"formulation must be one of {FORMULATIONS}, got {formulation!r}")
