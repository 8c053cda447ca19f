"""Measured quantities: unknowns, and functions of the solution."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.fitting.data import Key
from tether.sensitivity.differences import central

__all__ = ["Quantities"]


@dataclass(frozen=True, eq=False)
class Quantities:
    """The quantities of a solution that can be measured: first those of `observe`, then unknowns.

    Attributes
    ----------
    observe : callable or None
        ``observe(t, y, *args)`` or ``observe(t, y)``, called with all times at once.
    takes_args : bool
        Whether it takes args.
    names : tuple of str
        Names of the quantities.
    count : int
        Number of quantities that `observe` returns.
    """

    observe: Callable[..., Any] | None
    takes_args: bool
    names: tuple[str, ...]
    count: int

    @classmethod
    def of(
        cls, observe: Any, unknowns: Sequence[str], t: np.ndarray, y0: np.ndarray, args: tuple,
        where: str,
    ) -> Quantities:
        """Find out what `observe` returns, by calling it with y0 at all times."""
        if observe is None:
            return cls(None, False, tuple(unknowns), 0)
        if not callable(observe):
            raise TypeError(f"{where}observe must be callable, got {type(observe).__name__}")
        takes_args = _binds(observe, 2 + len(args))
        if not takes_args and not _binds(observe, 2):
            raise TypeError(
                f"{where}observe must accept (t, y), or (t, y) followed by the values of args, but "
                f"its signature is {inspect.signature(observe)}"
            )
        y = np.repeat(y0[:, None], len(t), axis=1)
        with np.errstate(all="ignore"):
            found = observe(t, y, *args) if takes_args else observe(t, y)
        if isinstance(found, Mapping):
            names = tuple(found)
        else:
            names = tuple(f"observe[{k}]" for k in range(len(np.atleast_2d(found))))
        table = _as_table(found, len(t), where)
        return cls(observe, takes_args, (*names, *unknowns), len(table))

    def row(self, key: Key, where: str) -> int:
        """Return the number of a quantity; a number in the data is a row of `observe`."""
        if isinstance(key, str):
            if key in self.names:
                return self.names.index(key)
            raise ValueError(
                f"{where}data: there is no unknown {key!r}; the unknowns are "
                f"{', '.join(self.names)}"
            )
        count = self.count or len(self.names)
        if not 0 <= key < count:
            raise ValueError(f"{where}data: row {key}, but there are {count} unknowns")
        return int(key)

    def values(self, t: np.ndarray, y: np.ndarray, args: tuple) -> np.ndarray:
        """Return all quantities, one row for each."""
        if self.observe is None:
            return y
        found = self.observe(t, y, *args) if self.takes_args else self.observe(t, y)
        return np.concatenate([_as_table(found, len(t), ""), y])

    def slopes(
        self, t: np.ndarray, y: np.ndarray, sens: np.ndarray, p: np.ndarray,
        args_of: Callable[[np.ndarray], tuple],
    ) -> np.ndarray:
        """Return dq/dp of all quantities q, of shape (parameters, quantities, times).

        `observe` is differentiated along the derivative of the solution, by differences of fourth
        order, which are exact to about 1e-11.
        """
        if self.observe is None:
            return sens
        found = np.zeros((len(p), len(self.names), len(t)))
        found[:, self.count :] = sens
        for k, tangent in enumerate(sens):
            def along(change: float, k: int = k, tangent: np.ndarray = tangent) -> np.ndarray:
                moved = p.copy()
                moved[k] += change
                return self.values(t, y + change * tangent, args_of(moved))[: self.count]

            found[k, : self.count] = central(along, _size(p[k], y, tangent))
        return found


def _size(value: float, y: np.ndarray, tangent: np.ndarray) -> float:
    """Return a scale for changes of a parameter: neither it nor any unknown changes by more."""
    moves, sizes = np.abs(tangent).max(axis=1), np.abs(y).max(axis=1)
    limits = [size / move for size, move in zip(sizes, moves, strict=True) if size and move]
    return min([*limits, abs(value)] if value else limits, default=1.0)


def _binds(fun: Callable[..., Any], count: int) -> bool:
    try:
        inspect.signature(fun).bind(*range(count))
    except TypeError:
        return False
    except ValueError:                         # a builtin without a signature
        return count == 2
    return True


def _as_table(found: Any, count: int, where: str) -> np.ndarray:
    rows = list(found.values()) if isinstance(found, Mapping) else found
    table = np.atleast_2d(np.asarray(rows, float))
    if table.ndim != 2 or table.shape[1] != count:
        raise ValueError(
            f"{where}observe must return a row of {count} values for every quantity, as many as "
            f"there are times; got shape {np.shape(rows)}"
        )
    return table
