"""Directions in the space of parameters that the data do not determine, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tether.fitting.spread import Spread

__all__ = ["Direction", "undetermined"]

# A parameter belongs to a direction if its component is more than this share of the largest.
MIN_COMPONENT = 0.05
# The data hardly determine a direction if the relative error along it is larger than the first
# number, and if the effects of its parameters cancel up to the second.
LARGE_ERROR, CANCELLATION = 1.0, 0.1
# Relative difference up to which a ratio of components counts as a simple number, for directions
# that are not determined and for those that hardly are.
RATIO_TOLERANCE, ROUGH_RATIO_TOLERANCE = 1e-3, 0.05


@dataclass(frozen=True, eq=False)
class Direction:
    """Parameters that can be changed together while the model still fits the data.

    Attributes
    ----------
    parameters : tuple of str
        Their names.
    changes : ndarray
        Their changes, relative to their sizes; the largest is 1.
    error : float
        Standard error along the direction: infinite where the data say nothing at all.
    text : str
        The direction in words.
    """

    parameters: tuple[str, ...]
    changes: np.ndarray
    error: float
    text: str

    def __str__(self) -> str:
        return self.text


def undetermined(spread: Spread, names: Sequence[str], p: np.ndarray) -> list[Direction]:
    """Find directions that the data do not determine, or hardly determine.

    Examples
    --------
    >>> import numpy as np
    >>> from tether.fitting.directions import undetermined
    >>> from tether.fitting.spread import Spread
    >>> column = np.array([1.0, 2.0, 3.0])
    >>> jacobian = np.stack([column * 4.0, column * 2.0], axis=1)       # of a function of a b
    >>> direction, = undetermined(Spread(jacobian, 0.1, False), ["a", "b"], np.array([2.0, 4.0]))
    >>> print(direction)
    The data determine only the product of a and b.
    """
    sizes = np.where(p == 0.0, 1.0, np.abs(p))
    found = [
        _named(line, np.inf, names, p, sizes) for line in _simplest(spread.null / sizes)
    ]
    if not len(spread.null) and np.isfinite(spread.variance):
        _, s, vt = np.linalg.svd(spread.jacobian * sizes, full_matrices=False)
        for value, line in zip(s, vt, strict=True):
            error = np.sqrt(spread.variance) / value
            alone = np.linalg.norm(spread.lengths * sizes * line)
            cancels = value < CANCELLATION * alone
            if error > LARGE_ERROR and cancels and np.sum(_belongs(line)) > 1:
                found.append(_named(line, error, names, p, sizes))
    return found


def _belongs(line: np.ndarray) -> np.ndarray:
    return np.abs(line) > MIN_COMPONENT * np.max(np.abs(line))


def _simplest(null: np.ndarray) -> np.ndarray:
    """Combine directions so that each has as few parameters as possible."""
    lines = null / np.maximum(np.linalg.norm(null, axis=1, keepdims=True), 1e-300)
    used: list[int] = []
    for k in range(len(lines)):
        pivot = int(np.argmax(np.abs(lines[k])))
        used.append(pivot)
        lines[k] /= lines[k, pivot]
        others = np.arange(len(lines)) != k
        lines[others] -= np.outer(lines[others, pivot], lines[k])
    return lines


def _named(
    line: np.ndarray, error: float, names: Sequence[str], p: np.ndarray, sizes: np.ndarray
) -> Direction:
    line = line / line[np.argmax(np.abs(line))]
    chosen = np.flatnonzero(_belongs(line))
    called = tuple(names[int(k)] for k in chosen)
    signed = line[chosen] * np.sign(np.where(p[chosen] == 0.0, 1.0, p[chosen]))
    tolerance = RATIO_TOLERANCE if np.isinf(error) else ROUGH_RATIO_TOLERANCE
    text = _words(called, signed, line[chosen] * sizes[chosen], p[chosen], tolerance)
    verb = "determine only" if np.isinf(error) else "hardly determine more than"
    if len(chosen) == 1:
        text = f"The data say nothing about {called[0]}."
    elif text:
        text = f"The data {verb} {text}."
    else:
        changes = ", ".join(
            f"{name} {100 * change:+.2g} %" for name, change in zip(called, signed, strict=True)
        )
        effect = "change nothing" if np.isinf(error) else "hardly change anything"
        text = f"Joint changes {effect} in the data: {changes}."
    return Direction(called, signed, error, text)


def _words(
    names: tuple[str, ...], relative: np.ndarray, absolute: np.ndarray, p: np.ndarray,
    tolerance: float,
) -> str:
    """Name the combination of two parameters that is determined; empty if it has no name."""
    if len(names) != 2:
        return ""
    a, b = names
    if np.all(p != 0.0):
        power = Fraction(float(-relative[0] / relative[1])).limit_denominator(3)
        if power and abs(power.numerator) <= 3 and \
                abs(-relative[0] / relative[1] / float(power) - 1.0) < tolerance:
            return _power(a, b, power)
    slope = absolute[0] / absolute[1]
    if abs(slope + 1.0) < tolerance:
        return f"the sum of {a} and {b}"
    if abs(slope - 1.0) < tolerance:
        return f"the difference of {a} and {b}"
    return ""


def _power(a: str, b: str, power: Fraction) -> str:
    """Name a b**power, which does not change when log a rises by `power` and log b falls by 1."""
    if power == 1:
        return f"the product of {a} and {b}"
    if power == -1:
        return f"the ratio of {a} and {b}"
    first = a if power.denominator == 1 else f"{a}**{power.denominator}"
    exponent = abs(power.numerator)
    second = b if exponent == 1 else f"{b}**{exponent}"
    return f"{first} {'*' if power > 0 else '/'} {second}"
