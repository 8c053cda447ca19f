"""Results as files: CSV, JSON, NPZ, NetCDF."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from tether.cli.errors import UsageError

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["STDOUT", "WRITERS", "check_writable", "write_text"]

STDOUT = "-"


def check_writable(target: str, option: str) -> None:
    """Refuse a file that cannot be written before the work is done for it."""
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


def write_csv(target: str, sol: DaeResult, names: Sequence[str], units: Sequence[str]) -> None:
    """Write one line per time: t and the unknowns, with all their digits."""
    with _opened(target) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["t", *names])
        for t, row in zip(sol.t.tolist(), sol.y.T.tolist(), strict=True):
            table.writerow([repr(t), *map(repr, row)])


def write_json(target: str, sol: DaeResult, names: Sequence[str], units: Sequence[str]) -> None:
    """Write solution, events and statistics; what is not a number is null."""
    stats = {
        key: value for key, value in vars(sol.stats).items() if isinstance(value, (int, float))
    }
    content = {
        "success": sol.success, "status": sol.status.name, "message": sol.message,
        "how": sol.how, "warnings": list(sol.warnings), "names": list(names),
        "units": list(units), "t": sol.t, "y": dict(zip(names, sol.y, strict=True)),
        "yp": dict(zip(names, sol.yp, strict=True)),
        "t_events": sol.t_events, "y_events": sol.y_events, "stats": stats,
    }
    write_text(target, json.dumps(_plain(content), allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """Turn arrays into lists, and numbers that JSON does not have into None."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_npz(target: str, sol: DaeResult, names: Sequence[str], units: Sequence[str]) -> None:
    """Write the arrays t, y, yp, names and units, for `numpy.load`."""
    with open(target, "wb") as file:
        np.savez(file, t=sol.t, y=sol.y, yp=sol.yp, names=np.array(names), units=np.array(units),
                 success=sol.success, message=sol.message)


def write_nc(target: str, sol: DaeResult, names: Sequence[str], units: Sequence[str]) -> None:
    """Write classic NetCDF: the dimension t, and a variable for every unknown."""
    from scipy.io import netcdf_file

    with netcdf_file(target, "w") as file:
        file.title = sol.message.encode()
        file.createDimension("t", len(sol.t))
        file.createVariable("t", "d", ("t",))[:] = sol.t
        for name, called, unit, values in zip(
            names, netcdf_names(names), units, sol.y, strict=True
        ):
            variable = file.createVariable(called, "d", ("t",))
            variable[:] = values
            variable.long_name = name.encode()
            if unit:
                variable.units = unit.encode()


def netcdf_names(names: Sequence[str]) -> list[str]:
    """Return names that NetCDF allows and that differ from each other and from t.

    Examples
    --------
    >>> from tether.cli.files import netcdf_names
    >>> netcdf_names(["x", "y[0]", "y(0)", "t"])
    ['x', 'y_0', 'y_0_2', 't_2']
    """
    taken = {"t"}
    called = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "unknown"
        if not plain[0].isalpha():
            plain = f"v_{plain}"
        chosen, number = plain, 1
        while chosen in taken:
            number += 1
            chosen = f"{plain}_{number}"
        taken.add(chosen)
        called.append(chosen)
    return called


WRITERS = {"csv": write_csv, "json": write_json, "npz": write_npz, "nc": write_nc}
