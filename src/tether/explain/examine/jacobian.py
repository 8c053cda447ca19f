"""A user's Jacobian compared with differences of the residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import Case

__all__ = ["fatal_jacobian", "wrong_jacobian"]

# An entry differs by more than this share of the larger of both ...
WRONG_ENTRY = 0.05
# ... and by this share of the terms in its row.
LEAST_SHARE_OF_ROW = 1e-6
# Difference, relative to the largest entry, up to which a matrix is the right one transposed,
# interchanged or with another sign.
MATCHING = 1e-3
# Entries of F_y' are weighted with slopes of at least this size.
SMALLEST_SLOPE = 1e-3
# Rate of convergence from which on Newton's iteration fails or takes too many iterations.
TOO_SLOW = 0.3


@dataclass(frozen=True)
class Entry:
    """A wrong entry of a Jacobian."""

    matrix: str                      # F_y or F_y'
    row: int
    column: int
    given: float
    found: float
    in_pattern: bool                 # False: a sparse matrix does not have it


def wrong_jacobian(case: Case, evidence: Sequence[str] = ()) -> Diagnosis | None:
    """Name the entry with the largest error."""
    both = _both(case)
    worst = None if both is None else _worst_entry(case, *both)
    if worst is None:
        return None
    variable = case.names.variable(worst.column) + ("'" if worst.matrix == "F_y'" else "")
    assert both is not None
    situation = _as_a_whole(_dense(both[0]), both[1])
    was = f"is {worst.given:.6g}" if worst.in_pattern else "is not in the pattern"
    return case.say(
        Cause.JACOBIAN,
        f"the entry of {worst.matrix} for {case.names.equation(worst.row)} and {variable} {was}, "
        f"differences give {worst.found:.6g}",
        evidence, case.t, [worst.row], [worst.column], situation,
    )


def _as_a_whole(given: list[np.ndarray], own: tuple[np.ndarray, np.ndarray]) -> str:
    """Recognise mistakes that concern all entries; empty for others."""
    wholes = {
        "where it is transposed": [part.T for part in given],
        "where the two matrices are interchanged": given[::-1],
        "where all of F_y has the wrong sign": [-given[0], given[1]],
    }
    fits = (
        situation for situation, parts in wholes.items()
        if all(np.allclose(part, true, rtol=WRONG_ENTRY, atol=MATCHING * np.abs(true).max())
               for part, true in zip(parts, own, strict=True))
    )
    return next(fits, "")


def fatal_jacobian(case: Case) -> Diagnosis | None:
    """Report a wrong Jacobian only if it keeps the iteration from converging.

    With M = F_y + c F_y' of the user's and the true matrix M_true, an increment of Newton's
    iteration multiplies an error by I - M^-1 M_true. The largest eigenvalue of that is the rate of
    convergence, here in the last and shortest attempt.
    """
    both = _both(case)
    if both is None or not case.longest_step:
        return None
    h = abs(case.steps["h"][-1])
    given, own = (fy + fyp / h for fy, fyp in (_dense(both[0]), both[1]))
    try:
        left = np.eye(case.n) - np.linalg.solve(given, own)
        rate = float(np.abs(np.linalg.eigvals(left)).max())
    except np.linalg.LinAlgError:
        rate = np.inf
    if rate < TOO_SLOW:
        return None
    return wrong_jacobian(case, [f"with it an error becomes {rate:.2g} times as large in every "
                                 "iteration" if rate < np.inf else "the iteration matrix made of "
                                 "it is singular"])


def _both(case: Case) -> tuple[tuple[Any, Any], tuple[np.ndarray, np.ndarray]] | None:
    """Return F_y and F_y' as the user's function gives them, and by differences."""
    jac = case.run.problem.jac
    if jac is None or case.jacobians_here is None:
        return None
    try:
        fy, fyp = jac(case.t, case.y.copy(), case.yp.copy(), *case.run.problem.args)
    except Exception:                   # raised by jac; in a run it would have been passed on
        return None
    return (fy, fyp), case.jacobians_here


def _dense(pair: tuple[Any, Any]) -> list[np.ndarray]:
    return [
        np.asarray(part.toarray() if hasattr(part, "toarray") else part, float) for part in pair
    ]


def _pattern(part: Any, n: int) -> np.ndarray:
    """Tell which entries a matrix has; a dense one has all."""
    pattern = np.ones((n, n), bool)
    if hasattr(part, "tocoo"):
        entries = part.tocoo()
        pattern[:] = False
        pattern[entries.row, entries.col] = True
    return pattern


def _worst_entry(
    case: Case, given: tuple[Any, Any], own: tuple[np.ndarray, np.ndarray]
) -> Entry | None:
    scales = (
        np.maximum(np.abs(case.y), case.tolerance), np.maximum(np.abs(case.yp), SMALLEST_SLOPE)
    )
    # sizes of the terms in a row: a wrong entry counts by its share of them
    terms = sum(np.abs(m) @ x for m, x in zip(own, scales, strict=True)) + 1e-300
    worst, found = LEAST_SHARE_OF_ROW, None
    for k, values in enumerate(_dense(given)):
        off = np.abs(values - own[k])
        larger = np.maximum(np.abs(values), np.abs(own[k]))
        off = np.where(off > WRONG_ENTRY * larger, off, 0.0) * scales[k] / terms[:, None]
        i, j = divmod(int(np.argmax(off)), case.n)
        if off[i, j] > worst:
            worst = off[i, j]
            found = Entry(
                ("F_y", "F_y'")[k], i, j, values[i, j], own[k][i, j],
                bool(_pattern(given[k], case.n)[i, j]),
            )
    return found
