"""A start that is consistent with the difference equations of implicit Euler at index 3.

C. Arévalo, *A note on numerically consistent initial values for high index
differential-algebraic equations*, 2008 (A08). From exact values at t0 the first step of
implicit Euler gives multipliers with an error that does not shrink with h, in the form

    p' = U(t, q),    q' = F(t, p, q) + G(t, p, q) Λ,    0 = R(t, p)                  A08 (4.1)

and in its special case M p'' = F + G^T λ, 0 = R(p), A08 (3.1). With the velocities q moved by
O(h) beforehand the error is O(h).

p and q need not be distinguished. With x = (p, q), and x' = f(t, x, Λ) as the residual defines it,
R_p U_q G is R_x f_x f_Λ, and R_p [U_q (F + G Λ) + U_t] is R_x [f_x x' + f_t]; a mass matrix is
inside f. It is enough to know the multipliers, the constraints, and that no unknown is both
held by a constraint and pushed by a multiplier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State

__all__ = ["Blocks", "check_blocks", "correct_velocities", "recognise"]

CUBE_ROOT_EPS = np.finfo(float).eps ** (1 / 3)
# Relative size of what differences leave of a zero entry.
NOISE = 1e-6
LARGEST_CONDITION = 1e12


@dataclass(frozen=True)
class Blocks:
    """Which unknowns are multipliers and which equations are constraints.

    Attributes
    ----------
    multipliers : list of int
        Indices of the unknowns Λ.
    constraints : list of int
        Indices of the equations 0 = R.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.start.discrete import recognise
    >>> recognise(np.diag([1.0, 1.0, 1.0, 1.0, 0.0]))
    Blocks(multipliers=[4], constraints=[4])
    """

    multipliers: list[int]
    constraints: list[int]


def recognise(fyp: np.ndarray) -> Blocks:
    """Take the unknowns without a derivative for Λ, the equations without one for R.

    Differences and hand-written matrices alike have exact zeros there; a threshold would take
    equations in small units, a mass of 1e-15 kg, for constraints.
    """
    multipliers = np.flatnonzero(~fyp.any(axis=0)).tolist()
    constraints = np.flatnonzero(~fyp.any(axis=1)).tolist()
    if not multipliers:
        raise _refusal("there are no multipliers: the derivative of every unknown appears")
    if not constraints:
        raise _refusal("there are no constraints: every equation has a derivative in it")
    if len(multipliers) != len(constraints):
        raise _refusal(
            "there must be as many multipliers as constraints, but the unknowns "
            f"{multipliers} have no derivative, and the equations {constraints} have none in them"
        )
    return Blocks(multipliers, constraints)


def check_blocks(blocks: Any, n: int) -> Blocks:
    """Read the user's pair of index lists, or raise with the argument's name."""
    try:
        multipliers, constraints = (_indices(part, n) for part in blocks)
    except (TypeError, ValueError):
        raise ValueError(
            "blocks must be a pair of index lists (multipliers, constraints) with different "
            f"integers from 0 to {n - 1}, got {blocks!r}"
        ) from None
    if len(multipliers) != len(constraints) or not multipliers:
        raise ValueError(
            "blocks must name as many multipliers as constraints, at least one, got "
            f"{len(multipliers)} and {len(constraints)}"
        )
    return Blocks(multipliers, constraints)


def _indices(values: Sequence[Any], n: int) -> list[int]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError
    if len(set(array.tolist())) != len(array) or not np.all((array >= 0) & (array < n)):
        raise ValueError
    return array.tolist()


def correct_velocities(
    state: State, t1: float, h: float, y0: np.ndarray, y1: np.ndarray, blocks: Blocks | None
) -> np.ndarray | None:
    """Return y0 with the velocities that suit implicit Euler, A08 (4.2).

    Parameters
    ----------
    state : State
        With the problem attached.
    t1, h : float
        Where the first step of implicit Euler ended, and its size.
    y0, y1 : ndarray
        The exact start and the values at t1 that the step led to.
    blocks : Blocks or None
        Multipliers and constraints; recognised from F_y' when None.

    Returns
    -------
    ndarray or None
        The start from which the step is to be repeated; None if a derivative of the residual is
        not finite.

    Raises
    ------
    ValueError
        The system is not of the form A08 (4.1); the message says what is missing.
    """
    slope = (y1 - y0) / h
    probe.move_to(state, t1, y1, slope)
    status, fy, fyp = probe.jacobian_at(state, t1, y1, slope)
    raise_user_error(state)
    ft = _time_derivative(state, t1, h, y1, slope)
    if status != 0 or ft is None or not (np.isfinite(fy).all() and np.isfinite(fyp).all()):
        return None
    form = _Form(fy, fyp, ft, blocks or recognise(fyp))
    corrected = y0.copy()
    # A08 (4.2b), and (3.2b) with M: q0 = q(0) - h G δΛ. The rows of p are zero in f_Λ.
    corrected[form.x] -= h * (form.f_lam @ form.multiplier_error(slope[form.x]))
    return corrected


class _Form:
    """The derivatives of x' = f(t, x, Λ), 0 = R(t, x) at a point, from those of the residual.

    Unknowns w that have no derivative but are not multipliers (a length, an angle, a force with
    an equation of its own) are eliminated.
    """

    def __init__(self, fy: np.ndarray, fyp: np.ndarray, ft: np.ndarray, blocks: Blocks) -> None:
        lam, rows = np.array(blocks.multipliers), np.array(blocks.constraints)
        others = np.setdiff1d(np.arange(len(ft)), rows)
        differential = fyp[others].any(axis=0)
        differential[lam] = False
        self.x = np.flatnonzero(differential)
        w = np.setdiff1d(np.flatnonzero(~differential), lam)
        B = np.hstack([fyp[np.ix_(others, self.x)], fy[np.ix_(others, w)]])
        if not _regular(B):
            raise _refusal(
                "the equations apart from the constraints do not determine the derivatives of the "
                "unknowns apart from the multipliers"
            )
        rhs = np.column_stack([fy[np.ix_(others, self.x)], fy[np.ix_(others, lam)], ft[others]])
        n_x = len(self.x)
        (self.f_x, self.f_lam, self.f_t), (w_x, w_lam, _) = (
            np.split(part, [n_x, n_x + len(lam)], axis=1)
            for part in np.split(-np.linalg.solve(B, rhs), [n_x])
        )
        self.r_x = fy[np.ix_(rows, self.x)] + fy[np.ix_(rows, w)] @ w_x
        r_lam = fy[np.ix_(rows, lam)] + fy[np.ix_(rows, w)] @ w_lam
        self.pairing = self.r_x @ self.f_x @ self.f_lam          # R_p U_q G
        self._check(blocks, r_lam)

    def _check(self, blocks: Blocks, r_lam: np.ndarray) -> None:
        seen = np.abs(r_lam).max(axis=0) > NOISE * np.abs(self.r_x).max(initial=0.0)
        if seen.any():
            raise _refusal(
                f"the unknowns {np.array(blocks.multipliers)[seen].tolist()}, taken for "
                f"multipliers, appear in the constraints {blocks.constraints} (index 1). "
                "Unknowns with an equation of their own are not multipliers: pass "
                "blocks=(multipliers, constraints) without them and their equations"
            )
        both = _present(self.r_x, axis=0) & _present(self.f_lam, axis=1)
        if both.any():
            raise _refusal(
                f"the unknowns {self.x[both].tolist()} are held by a constraint and pushed by a "
                "multiplier at once (index 2); positions and velocities must be separate unknowns, "
                "and the constraints those of the positions"
            )
        if not _regular(self.pairing):
            raise _refusal(
                f"the multipliers {blocks.multipliers} cannot hold the constraints "
                f"{blocks.constraints} (R_p U_q G is singular): the constraints may depend on each "
                "other, or one of the forces may not act on any constrained motion"
            )

    def multiplier_error(self, slope: np.ndarray) -> np.ndarray:
        """Estimate the error of Λ_1 of an Euler step from exact values to O(h).

        δΛ = (R_p U_q G)^-1 R_p [U_q (F + G Λ) + U_t], A08 section 4; the plus before U_t is missing
        in print.
        """
        return np.linalg.solve(self.pairing, self.r_x @ (self.f_x @ slope + self.f_t[:, 0]))


def _present(matrix: np.ndarray, axis: int) -> np.ndarray:
    size = np.abs(matrix).max(axis=axis)
    return size > NOISE * size.max(initial=0.0)


def _regular(matrix: np.ndarray) -> bool:
    """Whether a square matrix can be inverted, whatever the units of its rows and columns."""
    if matrix.shape[0] != matrix.shape[1]:
        return False
    rows = np.abs(matrix).max(axis=1, initial=0.0)
    if not rows.all():
        return False
    scaled = matrix / rows[:, None]
    columns = np.abs(scaled).max(axis=0, initial=0.0)
    return bool(columns.all()) and bool(np.linalg.cond(scaled / columns) < LARGEST_CONDITION)


def _time_derivative(
    state: State, t: float, h: float, y: np.ndarray, yp: np.ndarray
) -> np.ndarray | None:
    """Difference F in t to second order without leaving the step; None if not finite."""
    d = np.copysign(min(CUBE_ROOT_EPS * max(abs(t), abs(h)), abs(h) / 2), h)
    values = []
    for back in range(3):
        status, r = probe.residual_at(state, t - back * d, y, yp)
        raise_user_error(state)
        if status != 0:
            return None
        values.append(r)
    return (3.0 * values[0] - 4.0 * values[1] + values[2]) / (2.0 * d)


def _refusal(reason: str) -> ValueError:
    return ValueError(
        'start="discrete" needs p\' = U(t, q), M q\' = F(t, p, q) + G(t, p, q) Λ, 0 = R(t, p); '
        + reason
    )
