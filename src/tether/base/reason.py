"""Reason: what happened to starting values, as data.

A search for a start reports what was done, or why nothing was found, as a `Reason`;
`tether.explain.start_words` turns it into sentences with the names of equations and unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

__all__ = ["Kind", "Reason", "Row"]


class Kind(Enum):
    """What was done to starting values, or what is wrong with them."""

    __hash__ = object.__hash__         # Enum's own is a function in Python

    NOTHING = auto()                   # nothing to report
    # what was done
    AS_GIVEN = auto()
    ASSUMED = auto()
    NOT_CHECKED = auto()
    FOUND_SLOPES = auto()
    FOUND_SLOPES_ONLY = auto()         # above index 1
    CHANGED_ALGEBRAIC = auto()
    CHANGED = auto()
    MADE_CONSISTENT = auto()
    MOVED_ONTO_CONSTRAINTS = auto()
    MOVED = auto()
    SLOPES_OPEN = auto()
    HIDDEN_UNKNOWN = auto()
    # in solve_fixed
    HISTORY_GIVEN = auto()
    HISTORY_BY_RADAU = auto()
    SUITS_DIFFERENCES = auto()
    # functions
    NOT_FINITE = auto()
    GUESS_NOT_FINITE = auto()
    CONSTRAINT_NOT_FINITE = auto()
    JACOBIAN_NOT_FINITE = auto()
    DERIVATIVES_NOT_FINITE = auto()
    ZERO_TOLERANCE = auto()
    TOO_MANY_UNKNOWNS = auto()         # for a start above index 1
    # values that do not fit the equations
    LEFT_OVER = auto()
    CANNOT_HOLD = auto()
    GIVEN_CANNOT_HOLD = auto()
    HIDDEN_VIOLATED = auto()
    HIDDEN_CANNOT_HOLD = auto()
    NO_SLOPES = auto()
    SLOPES_NOT_UNIQUE = auto()
    Y0_INCONSISTENT = auto()
    YP0_INCONSISTENT = auto()
    NOT_ON_CONSTRAINTS = auto()
    FAR_FROM_CONSTRAINTS = auto()
    # searches with fixed and free unknowns
    NO_SOLUTION_NEARBY = auto()
    CONTRADICTION = auto()
    TOO_MUCH_FIXED = auto()
    ALL_IS_FIXED = auto()
    TOO_LITTLE_KNOWN = auto()
    SLOPES_NOT_KEPT = auto()
    # searches for y' alone
    NO_DERIVATIVE = auto()
    DERIVATIVE_OPEN = auto()
    DERIVATIVE_NOT_FOUND = auto()
    STALLED = auto()
    # equations that cannot be integrated as written
    SINGULAR = auto()
    INDEX_TOO_HIGH = auto()
    INDEX_OF_MANY = auto()             # index above 1, with too many unknowns for a search
    CONCEALED_INDEX = auto()           # above 1, and another one in the linearised equations


@dataclass(frozen=True)
class Row:
    """One equation, differentiated `order` times; or a constraint, which has a name."""

    equation: int = -1
    order: int = 0
    constraint: str = ""


@dataclass(frozen=True)
class Reason:
    """What was done to starting values, or what is wrong with them.

    Attributes
    ----------
    kind : Kind
        What happened; the other fields depend on it.
    rows : tuple of Row
        Equations and constraints.
    columns : tuple of int
        Unknowns.
    values : tuple of float
        Residuals of the rows, values of unknowns, or how many of them were changed.
    index : int or None
        Local index of the equations, if it was determined.
    earlier : Reason or None
        What was done before.

    Examples
    --------
    >>> from tether.base.reason import Kind, Reason, Row
    >>> moved = Reason(Kind.MOVED_ONTO_CONSTRAINTS, values=(2,))
    >>> reason = moved.then(Reason(Kind.LEFT_OVER, (Row(3),), values=(0.5,)))
    >>> reason.kind.name, reason.equations, reason.earlier.values
    ('LEFT_OVER', (3,), (2,))
    """

    kind: Kind
    rows: tuple[Row, ...] = ()
    columns: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    index: int | None = None
    earlier: Reason | None = None

    def then(self, later: Reason) -> Reason:
        """Return a later reason, with this one as `earlier`."""
        return later if self.kind is Kind.NOTHING else replace(later, earlier=self)

    @property
    def equations(self) -> tuple[int, ...]:
        """Numbers of the equations among the rows."""
        return tuple([row.equation for row in self.rows if not row.constraint])

    @property
    def names_something(self) -> bool:
        """Whether there are equations or unknowns that may have names."""
        return bool(self.rows or self.columns) or (
            self.earlier is not None and self.earlier.names_something
        )
