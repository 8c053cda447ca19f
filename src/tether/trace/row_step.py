"""Rows that are computed together: one expression, or linear combinations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tether._core.schedule import Schedule

__all__ = ["TO_FACTORS", "TO_FY", "TO_FYP", "TO_MEMORY", "TO_NOTHING", "TO_VALUES", "Step"]

# Where a result or an entry goes; the numbers are those of `tether._core.rows`.
TO_FY, TO_FYP, TO_FACTORS, TO_MEMORY, TO_VALUES, TO_NOTHING = range(6)


@dataclass(eq=False)
class Step:
    """Rows that are computed together.

    Attributes
    ----------
    results : ndarray
        Numbers of the elements, or of the values or entries.
    to : int
        Where the results go.
    place : int
        Place of the first result in the memory, for `TO_MEMORY`.
    schedule : Schedule or None
        The program; None for linear combinations.
    of_entries : pair of Schedule or None
        Programs of the entries that change, and of those that do not.
    is_constant : bool
        Whether the results never change.
    loads, numbers : list of ndarray
        For each input, the places of its values in all rows: in `loads` the inputs by which
        derivatives are taken, in `numbers` the others, or their values.
    sources, is_static : list
        For each entry the input it belongs to, and whether it never changes.
    ends, factors : ndarray or None
        Where the terms of each sum end, and their factors.
    for_entries : bool
        Whether the results are needed for entries only, not for values.
    """

    results: np.ndarray
    to: int = TO_VALUES
    place: int = 0
    schedule: Schedule | None = None
    of_entries: tuple[Schedule | None, Schedule | None] = (None, None)
    is_constant: bool = False
    loads: list[np.ndarray] = field(default_factory=list)
    numbers: list[np.ndarray] = field(default_factory=list)
    sources: list[np.ndarray] = field(default_factory=list)
    is_static: list[bool] = field(default_factory=list)
    ends: np.ndarray | None = None
    factors: np.ndarray | None = None
    for_entries: bool = False
