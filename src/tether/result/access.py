"""Unknowns by name and by number, and the fields of a result by name."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.problem.units import unit_of, with_unit, without_unit

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["FIELDS", "described", "field_or_unknown", "is_unknown", "number_of", "values_of"]

# Fields of a result by name, as in SciPy; they take precedence over unknowns of the same name.
FIELDS = (
    "t", "y", "yp", "sol", "t_events", "y_events", "yp_events", "nfev", "njev", "nlu", "status",
    "message", "success", "names", "units", "start", "index", "drift", "stats", "diagnosis", "how",
    "warnings", "jumps", "quadratures",
)


def number_of(names: Sequence[str], key: Any) -> int:
    """Return the number of the unknown that is given by name or by number.

    A unit at the end of a name may be left out.

    Examples
    --------
    >>> from tether.result.access import number_of
    >>> number_of(("voltage", "current"), "current"), number_of(("voltage", "current"), -2)
    (1, 0)
    >>> number_of(("voltage [V]", "current [A]"), "current")
    1
    """
    if isinstance(key, str):
        if key in names:
            return list(names).index(key)
        whole = with_unit(without_unit(key), unit_of(key))          # [V] for (V)
        meant = [j for j, name in enumerate(names) if whole in (name, without_unit(name))]
        if len(meant) == 1:
            return meant[0]
        from difflib import get_close_matches  # late, to save time

        close = get_close_matches(key, names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"the unknowns are {_few(names)}"
        raise KeyError(f"there is no unknown called {key!r}; {hint}")
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if not -len(names) <= key < len(names):
            raise IndexError(f"there is no unknown {key}: there are {len(names)}, counted from 0")
        return int(key) % len(names)
    raise TypeError(f"an unknown is selected by name or by number, got {key!r}")


def is_unknown(names: Sequence[str], key: object) -> bool:
    """Tell whether a name, with or without a unit, is that of an unknown."""
    if not isinstance(key, str):
        return False
    try:
        return number_of(names, key) >= 0
    except KeyError:
        return False


def values_of(result: DaeResult, key: Any) -> np.ndarray:
    """Return the values over time of an unknown, or of ``x'``, the derivative of x."""
    number, prime = _meant(result.labels, key)
    return (result.yp if prime else result.y)[number]


def described(result: DaeResult, key: Any) -> tuple[str, str]:
    """Return name and unit of what `values_of` returns; a slope has no unit.

    It would depend on the unit of time, which is not known.
    """
    number, prime = _meant(result.labels, key)
    return (f"{result.names[number]}'", "") if prime else (
        result.names[number], result.units[number]
    )


def _meant(names: Sequence[str], key: Any) -> tuple[int, bool]:
    """Return the number of an unknown, and whether its derivative is meant."""
    if isinstance(key, str) and key.endswith("'"):
        for name, prime in ((key, False), (key[:-1], True)):
            with suppress(KeyError):
                return number_of(names, name), prime
    return number_of(names, key), False


def field_or_unknown(result: DaeResult, key: Any) -> Any:
    """Return a field of the result, or else the values of an unknown."""
    if isinstance(key, str) and key in FIELDS:
        if key in result.names:
            warnings.warn(
                f"sol[{key!r}] is the field of that name; the unknown called {key!r} is "
                f"sol.unknowns[{key!r}]",
                stacklevel=3,
            )
        return getattr(result, key)
    return values_of(result, key)


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (", ..." if len(names) > 8 else "")
