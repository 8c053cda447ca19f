"""Units of unknowns: in brackets at the end of a name, or given separately."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["check_units", "separated", "unit_of", "with_unit", "without_unit"]

_UNIT = re.compile(r"(?<=\S)\s+[\[(]([^\[\]()]+)[\])]$")


def unit_of(name: str) -> str:
    """Return the unit at the end of a name, in brackets; empty if there is none.

    Examples
    --------
    >>> from tether.problem.units import unit_of
    >>> unit_of("speed [m/s]"), unit_of("current (A)"), unit_of("y[0]"), unit_of("x")
    ('m/s', 'A', '', '')
    """
    found = _UNIT.search(name)
    return found.group(1).strip() if found else ""


def without_unit(name: str) -> str:
    """Return a name without the unit at its end.

    Examples
    --------
    >>> from tether.problem.units import without_unit
    >>> without_unit("speed [m/s]"), without_unit("y[0]")
    ('speed', 'y[0]')
    """
    return _UNIT.sub("", name)


def with_unit(name: str, unit: str) -> str:
    """Return a name with its unit, once.

    Examples
    --------
    >>> from tether.problem.units import with_unit
    >>> with_unit("speed", "m/s"), with_unit("x", ""), with_unit("side [V]", "V")
    ('speed [m/s]', 'x', 'side [V]')
    """
    return f"{name} [{unit}]" if unit and unit_of(name) != unit else name


def separated(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split names into names and units; a name that differs only by its unit keeps it.

    Examples
    --------
    >>> from tether.problem.units import separated
    >>> separated(["speed [m/s]", "x", "side [V]", "side [A]"])
    (('speed', 'x', 'side [V]', 'side [A]'), ('m/s', '', 'V', 'A'))
    """
    units = tuple([unit_of(name) for name in names])
    if not any(units):
        return tuple(names), units
    plain = [without_unit(name) for name in names]
    kept = [
        short if plain.count(short) == 1 else name for short, name in zip(plain, names, strict=True)
    ]
    return tuple(kept), units


def check_units(units: Any, n: int) -> list[str] | dict[str, str] | None:
    """Return units in the order of the unknowns, or by name; or raise."""
    if units is None:
        return None
    if isinstance(units, str) or not isinstance(units, Iterable):
        raise TypeError(f"units must be a list of {n} strings, or a dict by name, got {units!r}")
    found = dict(units) if isinstance(units, Mapping) else list(units)
    texts = [*found, *found.values()] if isinstance(found, dict) else found
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise TypeError(f"units must be strings of one line, got {units!r}")
    if isinstance(found, list) and len(found) != n:
        raise ValueError(f"units must be {n} strings, as many as y0, got {len(found)}")
    return found
