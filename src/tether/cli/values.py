"""Values on the command line: numbers, lists of them, intervals, NAME=VALUE."""

from __future__ import annotations

import argparse
import ast
import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["assignments", "attach_negative", "count", "form", "numbers", "span", "tolerance",
           "words"]


def numbers(text: str) -> list[float]:
    """Read numbers separated by commas.

    Examples
    --------
    >>> from tether.cli.values import numbers
    >>> numbers("1,-2e-3, 0")
    [1.0, -0.002, 0.0]
    """
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers separated by commas, as in 1,0,-2.5, got {text!r}"
        ) from None


def tolerance(text: str) -> float | list[float]:
    """Read one number, or one for every unknown."""
    values = numbers(text)
    return values[0] if len(values) == 1 else values


def span(text: str) -> tuple[float | None, float]:
    """Read START:END, or END alone; the start is then None.

    Examples
    --------
    >>> from tether.cli.values import span
    >>> span("0:1e3"), span("5")
    ((0.0, 1000.0), (None, 5.0))
    """
    parts = text.split(":")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if len(values) not in (1, 2) or not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"expected START:END, as in 0:1000, got {text!r}")
    return (None, values[0]) if len(values) == 1 else (values[0], values[1])


def words(text: str) -> list[str]:
    """Read names separated by commas."""
    return [part.strip() for part in text.split(",")]


def count(text: str) -> int:
    """Read a positive integer; 1e5 is one too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value < math.inf or value != math.floor(value):
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text!r}")
    return int(value)


def form(text: str) -> str | int:
    """Read the form of the equations: a word, or the index to reduce to."""
    return int(text) if text.isdigit() else text


def assignments(text: str) -> dict[str, Any]:
    """Read NAME=VALUE, several separated by commas; values are written as in Python.

    Examples
    --------
    >>> from tether.cli.values import assignments
    >>> assignments("k=2, masses=[1, 2.5]")
    {'k': 2, 'masses': [1, 2.5]}
    """
    try:
        call = ast.parse(f"dict({text})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        found = {_named(word): ast.literal_eval(word.value) for word in call.keywords}
        if len(found) < len(call.keywords):
            raise ValueError
        return found
    except (SyntaxError, ValueError):
        raise argparse.ArgumentTypeError(
            f"expected NAME=VALUE, as in k=2 or k=2,mode='\"fast\"', got {text!r}"
        ) from None


def _named(word: ast.keyword) -> str:
    if word.arg is None:
        raise ValueError
    return word.arg


def attach_negative(arguments: Sequence[str]) -> list[str]:
    """Join options with values that begin with a minus, which argparse would take for options.

    Examples
    --------
    >>> from tether.cli.values import attach_negative
    >>> attach_negative(["solve", "--y0", "-1,0", "--t", "0:1"])
    ['solve', '--y0=-1,0', '--t', '0:1']
    """
    joined: list[str] = []
    for argument in arguments:
        negative = re.match(r"-(\.?\d|inf|nan)", argument) is not None
        if negative and joined and re.fullmatch(r"--[a-z][a-z0-9-]*", joined[-1]):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined
