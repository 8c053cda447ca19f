"""Results as files: CSV, JSON, and those that `tether.load` reads."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from tether.cli.errors import UsageError

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["COMPLETE_FORMATS", "STDOUT", "WRITERS", "check_writable", "write_text"]

STDOUT = "-"
# Formats that hold the whole result, and endings of their files.
COMPLETE_FORMATS = ("npz", "nc", "h5")


def check_writable(target: str, option: str) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    path = Path(target)
    if target != STDOUT and path.is_dir():
        raise UsageError(f"{option} {target}: this is a folder")
    if target != STDOUT and not path.parent.is_dir():
        raise UsageError(f"{option} {target}: there is no folder {path.parent}")


@contextmanager
def _opened(target: str) -> Iterator[TextIO]:
    if target == STDOUT:
        yield sys.stdout
    else:
        with open(target, "w", encoding="utf-8", newline="") as file:
            yield file


def write_text(target: str, text: str) -> None:
    """Write text into a file, or to standard output."""
    with _opened(target) as file:
        file.write(text)


def write_csv(target: str, sol: DaeResult) -> None:
    """Write one line per time."""
    sol.to_csv(sys.stdout if target == STDOUT else target)


def write_json(target: str, sol: DaeResult) -> None:
    """Write solution, events and statistics; infinities and NaN are written as null."""
    stats = {
        key: value for key, value in vars(sol.stats).items() if isinstance(value, (int, float))
    }
    content = {
        "success": sol.success, "status": sol.status.name, "message": sol.message,
        "how": sol.how, "warnings": list(sol.warnings), "names": list(sol.names),
        "units": list(sol.units), "t": sol.t, "y": sol.unknowns,
        "yp": dict(zip(sol.names, sol.yp, strict=True)),
        "t_events": sol.t_events, "y_events": sol.y_events, "stats": stats,
    }
    write_text(target, json.dumps(_plain(content), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """Turn arrays into lists, and infinities and NaN, which JSON lacks, into None."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def save(target: str, sol: DaeResult) -> None:
    """Write the whole result, for `tether.load`; the ending of the name selects the format."""
    sol.save(target)


WRITERS: dict[str, Callable[[str, DaeResult], None]] = {
    "csv": write_csv, "json": write_json, "npz": save, "nc": save, "h5": save,
}
