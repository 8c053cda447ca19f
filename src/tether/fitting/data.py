"""Read measurements, as users have them, into one series for each quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tether.base.checks import as_numbers

__all__ = ["Key", "Series", "read_data", "times_of"]

Key = str | int


@dataclass(frozen=True, eq=False)
class Series:
    """Measurements of one quantity in one experiment, without missing values.

    Attributes
    ----------
    key : str or int
        Name or number of the quantity, as in the data.
    t, values : ndarray
        Times and measured values.
    weights : ndarray
        Factors of the differences from the model: one over the standard errors.
    """

    key: Key
    t: np.ndarray
    values: np.ndarray
    weights: np.ndarray


def read_data(data: Any, sigma: Any, weights: Any, where: str = "") -> list[Series]:
    """Read measurements of one experiment.

    Parameters
    ----------
    data : DataFrame, mapping or pair
        A data frame with times as its index or column ``t``; ``{"t": times, "x": values, ...}``;
        ``{"x": (times, values), ...}``; or ``(times, values)`` with a row for every unknown.
    sigma, weights : optional
        Standard errors, or weights; numbers, by name, or of the shape of the data.
    where : str
        Prefix of error messages that names the experiment, as in "experiment 2: ".

    Examples
    --------
    >>> import numpy as np
    >>> from tether.fitting.data import read_data
    >>> series, = read_data({"t": [0, 1, 2], "x": [1.0, np.nan, 3.0]}, 0.5, None)
    >>> series.t.tolist(), series.values.tolist(), series.weights.tolist()
    ([0.0, 2.0], [1.0, 3.0], [2.0, 2.0])
    """
    if sigma is not None and weights is not None:
        raise ValueError(f"{where}pass either sigma or weights, not both: sigma is 1 / weights")
    raw = _raw(data, where)
    what, given = ("sigma", sigma) if weights is None else ("weights", weights)
    scales = _Scales(f"{where}{what}", given, data, [key for key, _, _ in raw])
    found = []
    for row, (key, t, values) in enumerate(raw):
        known = ~np.isnan(values)
        scale = scales.of(row, key, values)[known]
        if not np.all(np.isfinite(scale) & (scale > 0.0)):
            raise ValueError(f"{where}{what} of {_called(key)} must be positive and finite")
        if not np.any(known):
            continue
        order = np.argsort(t[known], kind="stable")
        factor = 1.0 / scale if weights is None else scale
        found.append(Series(key, t[known][order], values[known][order], factor[order]))
    if not found:
        raise ValueError(f"{where}data has no values" + (": all are NaN" if raw else ""))
    return found


def times_of(series: Sequence[Series]) -> np.ndarray:
    """Return all times at which something was measured, each once."""
    return np.unique(np.concatenate([one.t for one in series]))


def _called(key: Key) -> str:
    return repr(key) if isinstance(key, str) else f"row {key}"


def _raw(data: Any, where: str) -> list[tuple[Key, np.ndarray, np.ndarray]]:
    if hasattr(data, "columns") and hasattr(data, "index"):        # a data frame
        if "t" in data.columns:
            return _from_mapping({key: data[key] for key in data.columns}, where)
        times = _times(np.asarray(data.index), where)
        return [(key, times, _values(data[key], len(times), key, where)) for key in data.columns]
    if isinstance(data, Mapping):
        return _from_mapping(data, where)
    try:
        t, values = data
    except (TypeError, ValueError):
        raise TypeError(
            f"{where}data must be a data frame, a dict or a pair (times, values), got "
            f"{type(data).__name__}"
        ) from None
    times, table = _times(t, where), as_numbers(f"{where}data", values)
    if table.ndim == 1:
        table = table[None]
    if table.ndim != 2 or table.shape[1] != len(times):
        raise ValueError(
            f"{where}data must have a row of {len(times)} values for every unknown, got shape "
            f"{np.shape(values)}"
        )
    return [(row, times, _values(table[row], len(times), row, where)) for row in range(len(table))]


def _from_mapping(data: Mapping, where: str) -> list[tuple[Key, np.ndarray, np.ndarray]]:
    found = []
    if "t" in data:
        times = _times(data["t"], where)
        return [
            (key, times, _values(values, len(times), key, where))
            for key, values in data.items() if not (isinstance(key, str) and key == "t")
        ]
    for key, pair in data.items():
        try:
            t, values = pair
            if np.ndim(t) != 1:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(
                f"{where}data must have times, as 't' or in pairs {{{key!r}: (times, values)}}"
            ) from None
        times = _times(t, where)
        found.append((key, times, _values(values, len(times), key, where)))
    return found


def _times(t: Any, where: str) -> np.ndarray:
    times = as_numbers(f"{where}data: times", t)
    if times.ndim != 1 or times.dtype.kind not in "fiu":
        raise TypeError(f"{where}data: times must be a vector of real numbers")
    if not np.all(np.isfinite(times)):
        raise ValueError(f"{where}data: times must be finite")
    return times.astype(float)


def _values(values: Any, count: int, key: Key, where: str) -> np.ndarray:
    if isinstance(key, (bool, np.bool_)) or not isinstance(key, (str, int, np.integer)):
        raise TypeError(f"{where}data: unknowns must be names or numbers, got {key!r}")
    column = as_numbers(f"{where}data of {_called(key)}", values)
    if column.dtype.kind == "O":
        column = np.array([np.nan if value is None else value for value in column])
    if column.dtype.kind not in "fiu":
        raise TypeError(f"{where}data of {_called(key)} must be numbers")
    if column.shape != (count,):
        raise ValueError(
            f"{where}data of {_called(key)} must have {count} values like the times, got shape "
            f"{column.shape}"
        )
    if np.any(np.isinf(column)):
        raise ValueError(f"{where}data of {_called(key)} must be finite, or NaN where missing")
    return column.astype(float)


class _Scales:
    """Standard errors or weights, in any of the forms in which they may be given."""

    def __init__(self, name: str, given: Any, data: Any, keys: list[Key]) -> None:
        self.name, self.given, self.count = name, given, len(keys)
        self.by_name = isinstance(given, Mapping) or hasattr(given, "columns")
        if self.by_name:
            unknown = [key for key in given if key not in keys and key != "t"]
            if unknown:
                raise ValueError(f"{name}: {unknown[0]!r} is not in data, which has {keys}")

    def of(self, row: int, key: Key, values: np.ndarray) -> np.ndarray:
        """Return one for every value of a series."""
        if self.given is None:
            return np.ones(len(values))
        if self.by_name:
            if key not in self.given:
                raise ValueError(f"{self.name}: {_called(key)} is missing")
            found = as_numbers(self.name, self.given[key])
        else:
            found = as_numbers(self.name, self.given)
            by_row = found.ndim == 2 or (found.ndim == 1 and self.count > 1)
            if by_row and len(found) == self.count:
                found = found[row]
        if found.dtype.kind not in "fiu":
            raise TypeError(f"{self.name} must be numbers, got {self.given!r}")
        if found.shape not in ((), values.shape):
            raise ValueError(
                f"{self.name} must be a number, one for every unknown, or of the shape of the data"
            )
        return np.broadcast_to(found.astype(float), values.shape)
