"""The target of a command: a problem of the gallery, or a file of the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tether.cli.errors import UsageError
from tether.cli.source import PASSED_ON, Source

__all__ = ["load_source", "split_target"]


def split_target(target: str) -> tuple[Path, str] | None:
    """Return file and function of FILE.py[:function], None for anything else.

    Examples
    --------
    >>> from tether.cli.target import split_target
    >>> split_target("models/tank.py:drain")[1], split_target("robertson")
    ('drain', None)
    """
    match = re.fullmatch(r"(.+\.py)(?::(.*))?", target)
    return (Path(match[1]), match[2] or "") if match else None


def load_source(target: str, arguments: Mapping[str, Any]) -> Source:
    """Find the equations that a command is about.

    Parameters
    ----------
    target : str
        Name of a problem of the gallery, or FILE.py[:function].
    arguments : mapping
        Values by name: further parameters of the function, or of the problem.
    """
    parts = split_target(target)
    if parts is None:
        return _from_gallery(target, arguments)
    from tether.cli.user_file import from_file  # needed here only

    return from_file(*parts, arguments)


def _from_gallery(name: str, arguments: Mapping[str, Any]) -> Source:
    from tether import gallery  # slow to import

    if name not in gallery.names():
        raise UsageError(_unknown(name, gallery.names()))
    try:
        problem = gallery.get(name, **arguments)
    except (TypeError, ValueError) as error:
        if not arguments:
            raise
        raise UsageError(f"--args do not fit {name}: {error}") from error
    more = {key: getattr(problem, key, None) for key in PASSED_ON}
    return Source(
        name=name, fun=problem.fun, title=problem.title, description=problem.description,
        t_span=problem.t_span, y0=problem.y0, yp0=problem.yp0, names=problem.names,
        units=problem.units, atol=problem.atol,
        more={key: value for key, value in more.items() if value},
    )


def _unknown(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # needed here only

    close = get_close_matches(name, known, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`tether list` lists all problems"
    return f"the gallery has no problem {name!r}: {hint} (the name of a file must end in .py)"
