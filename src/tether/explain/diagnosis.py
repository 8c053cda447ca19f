"""Diagnosis: what went wrong, where, why, and what to do next."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tether.explain.causes import CAUSES, Cause
from tether.explain.picture import plot_diagnosis
from tether.problem.names import listed, listed_equations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Diagnosis", "Where"]

WIDTH = 79


@dataclass(frozen=True)
class Where:
    """Place of a failure.

    Attributes
    ----------
    t : float or None
        Time.
    equations, variables : tuple of str
        By name.
    rows, columns : tuple of int
        The same by number.
    """

    t: float | None = None
    equations: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What went wrong, where, why, and what to do next; ``print`` it.

    Attributes
    ----------
    cause : Cause
        Why it happened; `Cause.NONE` if nothing is wrong.
    where : Where
        Time, equations and variables by name.
    summary : str
        What happened, in one sentence.
    evidence : tuple of str
        Observations on which the verdict is based.
    remedies : tuple of str
        What to try, the most promising first.
    steps : ndarray or None
        The last attempts at a step, oldest first; see `tether.run.attempts`.
    exception : Exception or None
        The exception of a function of yours in the step that failed, with its traceback.
    untraced : str
        Why the function was called, if tracing it might have avoided the failure; the summary
        begins with this.

    Examples
    --------
    >>> from tether import solve_dae
    >>> def growth(t, y, yp):
    ...     rabbits, = y
    ...     return [yp[0] - rabbits**2]
    >>> diagnosis = solve_dae(growth, (0, 2), [1.0]).diagnosis
    >>> diagnosis.cause, diagnosis.where.variables, round(diagnosis.where.t, 3)
    (<Cause.BLOW_UP: 'blow-up'>, ('rabbits',), 1.0)
    """

    cause: Cause
    where: Where
    summary: str
    evidence: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    steps: np.ndarray | None = field(default=None, repr=False)
    exception: Exception | None = None
    untraced: str = ""

    def __str__(self) -> str:
        parts = [self.summary]
        parts += [f"{capitalised(text)}." for text in self.evidence]
        if self.remedies:
            parts.append(f"What to try: {'; '.join(self.remedies)}.")
        return textwrap.fill(" ".join(parts), WIDTH, break_long_words=False)

    def plot(self) -> Figure:
        """Draw the last attempts at a step; needs matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            Not shown; call ``figure.show()`` or ``figure.savefig(...)``.
        """
        return plot_diagnosis(self)


def write(
    cause: Cause,
    where: Where,
    what: str = "",
    evidence: Sequence[str] = (),
    steps: np.ndarray | None = None,
    situation: str = "",
    breaks: str = "",
) -> Diagnosis:
    """Fill in the texts of a cause, with the remedies of a situation if it has its own.

    `breaks` are the times of all jumps, as an expression, if there are more than that of the
    failure.
    """
    text = CAUSES[cause]
    values = {
        "t": "" if where.t is None else f"{where.t:.10g}",
        "at": "" if where.t is None else f" at t = {where.t:.10g}",
        "what": what,
        "breaks": breaks or ("" if where.t is None else f"[{where.t:.10g}]"),
        "equations": listed_equations(where.equations) or "the equations",
        "variables": listed(where.variables) or "the unknowns",
    }
    sentence = text.sentence.format(**values)
    remedies = text.instead[situation] if situation else text.remedies
    return Diagnosis(
        cause, where, capitalised(sentence), tuple(evidence),
        tuple(remedy.format(**values) for remedy in remedies), steps,
    )


def capitalised(text: str) -> str:
    """Capitalise the first word, unless it may be a name that the user has chosen."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+ ", text) else text
