"""Optional packages: imported where they are needed, with a hint on how to install them."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["as_label", "load_optional", "load_pyplot"]


def load_optional(name: str, needed_by: str) -> Any:
    """Import a package or a module of it, or say what to install.

    Examples
    --------
    >>> from tether.base.optional import load_optional
    >>> load_optional("json", "this example").dumps([1, 2])
    '[1, 2]'
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{needed_by} needs {package}: pip install {package}") from error


def load_pyplot() -> Any:
    """Import matplotlib, or say how to get it."""
    return load_optional("matplotlib.pyplot", "plot()")


def as_label(name: str) -> str:
    """Make matplotlib show a name unchanged: not as a formula, and not hidden."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
