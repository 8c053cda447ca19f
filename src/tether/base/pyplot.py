"""Matplotlib, which is optional."""

from __future__ import annotations

from typing import Any

__all__ = ["as_label", "load_pyplot"]


def load_pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install tether[plot]") from error
    return pyplot


def as_label(name: str) -> str:
    """Write a name so that matplotlib shows it as it is: neither as a formula nor not at all."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
