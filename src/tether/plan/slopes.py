"""Sparse derivatives of constraints that are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tether._core.adapters import DOMAIN_ERRORS, WrongResult
from tether.plan.discover import ASIDE, find_entries, groups_of

__all__ = ["Differences", "GivenMatrices", "see_differences", "see_matrices"]

EPS = np.finfo(float).eps
# Relative increment of a difference, and the smallest, relative to the largest unknown: math (12).
ROOT_EPS, FLOOR_EPS = EPS**0.5, EPS**0.75
# Allowed error of a predicted change, relative to the change, and in multiples of round-off.
PREDICTION_ERROR, ROUND_OFF_FACTOR = 1e-5, 1e2
# After so many fruitless searches for further entries, wrong predictions have another cause.
MAX_FRUITLESS = 3

Values = Callable[[float, np.ndarray], np.ndarray]


class Differences:
    """Derivatives of a function by differences, of many unknowns at once.

    Unknowns that share no value of the function are moved together. Each time, the entries must
    also predict the change when all unknowns are moved at once; if they do not, entries that were
    zero before are looked for.

    Parameters
    ----------
    fun : callable
        ``fun(t, y)`` returns `count` values.
    count, n : int
        Number of values and of unknowns.
    rows, columns : ndarray
        The entries known so far.
    unit : ndarray
        Units of the unknowns.
    """

    def __init__(
        self, fun: Values, count: int, n: int, rows: np.ndarray, columns: np.ndarray,
        unit: np.ndarray,
    ) -> None:
        self.fun, self.count, self.n, self.unit = fun, count, n, unit
        self.fruitless = 0
        self._lot = np.random.default_rng(n)
        self._use(rows, columns)

    def _use(self, rows: np.ndarray, columns: np.ndarray) -> None:
        self.rows, self.columns = rows, columns
        self.groups, self.group_of = groups_of(rows, columns, self.count, self.n)
        order = np.argsort(self.group_of[columns], kind="stable")
        first = np.searchsorted(self.group_of[columns][order], np.arange(self.groups + 1))
        self.places = np.split(order, first[1:-1])     # of the entries of each group

    def values(self, t: float, y: np.ndarray) -> np.ndarray | None:
        """Return the entries at a point, maybe more than before; None if they cannot be found."""
        here = self._at(t, y)
        if here is None:
            return None
        found = self._by_groups(t, y, here)
        if found is None or self.fruitless >= MAX_FRUITLESS or self._predicts(t, y, here, found):
            return found
        return self._by_groups(t, y, here) if self._has_more(t, y) else found

    def full(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the whole matrix; NaN if it cannot be found."""
        found = self.values(t, y)
        if found is None:
            return np.full((self.count, self.n), np.nan)
        matrix = np.zeros((self.count, self.n))
        matrix[self.rows, self.columns] = found
        return matrix

    def _at(self, t: float, y: np.ndarray) -> np.ndarray | None:
        """Values at a point; None where the function is not defined."""
        try:
            found = np.array(self.fun(t, y.copy()), float).reshape(-1)
        except WrongResult:
            raise
        except DOMAIN_ERRORS:
            return None
        if len(found) != self.count:
            raise WrongResult(
                f"a constraint or invariant returned {self.count} real values before, but now "
                f"returned {len(found)}"
            )
        return found if np.isfinite(found).all() else None

    def _increments(self, y: np.ndarray) -> np.ndarray:
        size = np.max(np.abs(y) / self.unit, initial=0.0)
        found = np.maximum(ROOT_EPS * np.abs(y), FLOOR_EPS * size * self.unit)
        found[found == 0.0] = ROOT_EPS * self.unit[found == 0.0]
        return found

    def _by_groups(self, t: float, y: np.ndarray, here: np.ndarray) -> np.ndarray | None:
        found, increments = np.zeros(len(self.rows)), self._increments(y)
        for group, places in enumerate(self.places):
            mine = self.group_of == group
            if len(places) and not self._move(t, y, here, increments * mine, places, found):
                # one by one: the domain may allow a different direction for each unknown
                for j in np.flatnonzero(mine):
                    single = places[self.columns[places] == j]
                    alone = increments * (np.arange(self.n) == j)
                    if len(single) and not self._move(t, y, here, alone, single, found):
                        return None
        return found

    def _move(
        self, t: float, y: np.ndarray, here: np.ndarray, by: np.ndarray, places: np.ndarray,
        found: np.ndarray,
    ) -> bool:
        """Fill in some entries by a move in either direction; tell whether one was possible."""
        for moved in (y + by, y - by):
            there = self._at(t, moved)
            if there is not None:
                rows, columns = self.rows[places], self.columns[places]
                found[places] = (there[rows] - here[rows]) / (moved - y)[columns]
                return True
        return False

    def _predicts(self, t: float, y: np.ndarray, here: np.ndarray, found: np.ndarray) -> bool:
        """Tell whether the entries predict the change when all unknowns are moved."""
        move = self._increments(y) * self._lot.uniform(0.5, 1.0, self.n)
        there = self._at(t, y + move)
        if there is None:
            return True                # nothing shows that entries are missing

        def product(entries: np.ndarray, vector: np.ndarray) -> np.ndarray:
            return np.bincount(self.rows, entries * vector[self.columns], self.count)

        move = (y + move) - y
        size = np.abs(found)
        left = np.abs(there - here - product(found, move))
        round_off = EPS * (np.abs(here) + product(size, np.abs(y)))
        allowed = PREDICTION_ERROR * product(size, move) + ROUND_OFF_FACTOR * round_off
        return bool(np.all(left <= allowed))

    def _has_more(self, t: float, y: np.ndarray) -> bool:
        """Look for entries that were zero before; tell whether there are any."""
        seen = find_entries(lambda x: self._at(t, x), y, _sizes(y), self.count)
        if seen is not None:
            rows, columns = _in_one((self.rows, self.columns), seen, self.count)
            if len(rows) > len(self.rows):
                self._use(rows, columns)
                return True
        self.fruitless += 1
        return False


class GivenMatrices:
    """Derivatives from a function of the user's that returns a matrix, sparse or dense.

    Parameters
    ----------
    jac : callable
        ``jac(t, y)`` returns the matrix.
    count, n : int
        Its size.
    rows, columns : ndarray
        The entries known so far.
    """

    def __init__(
        self, jac: Callable[[float, np.ndarray], Any], count: int, n: int, rows: np.ndarray,
        columns: np.ndarray,
    ) -> None:
        self.jac, self.count, self.n = jac, count, n
        self.rows, self.columns = rows, columns
        self._keys = columns * count + rows

    def values(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the entries at a point, maybe more than before."""
        rows, columns, entries = _read(self.jac(t, y), self.count, self.n)
        keys = columns * self.count + rows
        place = np.searchsorted(self._keys, keys)
        known = place < len(self._keys)
        known[known] = self._keys[place[known]] == keys[known]
        if not known.all():
            before = self.rows, self.columns
            self.rows, self.columns = _in_one(before, (rows, columns), self.count)
            self._keys = self.columns * self.count + self.rows
            place = np.searchsorted(self._keys, keys)
        return np.bincount(place, entries, len(self._keys))


def see_differences(
    fun: Values, t: float, y: np.ndarray, count: int, unit: np.ndarray
) -> Differences | None:
    """Find on which unknowns each value of a function depends; None if that cannot be found."""

    def values(x: np.ndarray) -> np.ndarray | None:
        try:
            with np.errstate(all="ignore"):
                found = np.array(fun(t, x.copy()), float).reshape(-1)
        except Exception:              # the run itself will report it
            return None
        return found if len(found) == count and np.isfinite(found).all() else None

    seen = find_entries(values, y, _sizes(y), count)
    return None if seen is None else Differences(fun, count, len(y), *seen, unit)


def see_matrices(
    jac: Callable[[float, np.ndarray], Any], t: float, y: np.ndarray, count: int
) -> GivenMatrices | None:
    """Find where a Jacobian of the user's has entries; None if that cannot be found."""
    try:
        rows, columns, _ = _read(jac(t, y.copy()), count, len(y))
    except Exception:                  # the run itself will report it
        return None
    return GivenMatrices(jac, count, len(y), *_in_one((rows, columns), (rows, columns), count))


def _read(matrix: Any, count: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of the entries of a matrix that the user returned."""
    from scipy.sparse import coo_array, issparse  # late, to save time

    if not issparse(matrix):
        matrix = np.asarray(matrix)
        if matrix.size == count * n:
            matrix = matrix.reshape(count, n)
    if matrix.shape != (count, n) or matrix.dtype.kind not in "fiub":
        raise WrongResult(
            f"jac of a constraint must return a real matrix of shape {(count, n)}, "
            f"got shape {matrix.shape}"
        )
    found = coo_array(matrix)
    rows, columns = (np.asarray(part, np.int64) for part in found.coords)
    return rows, columns, np.asarray(found.data, float)


def _sizes(y: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(y), np.abs(y).max(initial=0.0) * ASIDE) + ASIDE


def _in_one(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge two lists of entries: rows and columns, each entry once, column by column."""
    keys = np.union1d(*(columns * np.int64(count) + rows for rows, columns in (one, other)))
    columns, rows = np.divmod(keys, count)
    return rows, columns
