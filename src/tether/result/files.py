"""Solutions in files: .npz by NumPy, .nc by SciPy, .h5 by h5py, which is optional.

All three have the same content: arrays of numbers, and a JSON text with the rest. Nothing is
pickled, so that files from untrusted sources can be read safely.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.optional import load_optional
from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis, Where
from tether.problem.names import Names
from tether.run.interpolant import Interpolant
from tether.run.jumps import Jumped
from tether.run.statistics import Statistics
from tether.structure.start import Start

if TYPE_CHECKING:
    from tether.result.solution import DaeResult

__all__ = ["read", "save"]

FORMAT = "tether solution"
VERSION = 1
COUNTS = (
    "steps", "nfev", "njev", "nlu", "iterations", "error_test_failures", "convergence_failures",
    "projections", "worst_drift", "seconds", "checks",
)
EVENTS = ("t_events", "y_events", "yp_events")
POINTS = ("t", "y", "degree")             # of an interpolant
ABOUT = "about"                        # the name of the text in a file
# Names of the axes of an array in a file; the axes of other arrays are numbered.
AXES = {
    "t": ("time",), "y": ("unknown", "time"), "yp": ("unknown", "time"),
    "drift": ("constraint", "time"), "quadratures": ("integral", "time"),
}

Arrays = dict[str, np.ndarray]


def save(result: DaeResult, path: str | os.PathLike[str]) -> None:
    """Write a result to a file, in the format given by the file's extension."""
    write, _ = _format(path)
    arrays, about = _taken_apart(result)
    write(Path(path), arrays, json.dumps(about))


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the contents of a file as the fields of a `DaeResult`."""
    name = os.fspath(path)
    _, read_parts = _format(path)
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {name!r}")
    try:
        arrays, text = read_parts(Path(path))
        about = json.loads(text)
        known = about["format"] == FORMAT
    except (PermissionError, ImportError):
        raise
    except Exception as error:                    # a file may hold anything
        raise ValueError(f"{name!r} is not a solution saved by tether") from error
    if not known:
        raise ValueError(f"{name!r} is not a solution saved by tether")
    if about["version"] > VERSION:
        raise ValueError(f"{name!r} was written by a later version of tether")
    return _put_together(arrays, about)


# --- a result as arrays and a text --------------------------------------------------------------


def _taken_apart(result: DaeResult) -> tuple[Arrays, dict[str, Any]]:
    stats, start = result.stats, result.start
    arrays = {
        "t": result.t, "y": result.y, "yp": result.yp, "drift": result.drift,
        "stats_t": stats.t, "stats_h": stats.h, "stats_order": stats.order,
        "start_y": start.y, "start_yp": start.yp, "start_ypp": start.ypp,
        "quadratures": result.quadratures,
    }
    for name, between in (("dense", result.sol), ("integrals", result.integrals_between)):
        if isinstance(between, Interpolant):
            points = zip(POINTS, between.points(), strict=True)
            arrays |= {f"{name}_{part}": values for part, values in points}
    for kind in EVENTS:
        for i, values in enumerate(getattr(result, kind) or []):
            arrays[f"{kind}_{i}"] = values
    about = {
        "format": FORMAT, "version": VERSION, "names": list(result.names),
        "units": list(result.units),
        "status": int(result.status), "message": result.message, "how": result.how,
        "warnings": list(result.warnings), "jumps": [vars(jump) for jump in result.jumps],
        "events": None if result.t_events is None else len(result.t_events),
        "event_names": list(result.event_names),
        "stats": {name: getattr(stats, name) for name in COUNTS},
        "start": _of_start(start), "diagnosis": _of_diagnosis(result.diagnosis),
    }
    present = {name: np.asarray(values) for name, values in arrays.items() if values is not None}
    # not every format can store empty arrays
    about["empty"] = {name: a.shape for name, a in present.items() if a.size == 0}
    return {name: a for name, a in present.items() if a.size}, about


def _put_together(arrays: Arrays, about: dict[str, Any]) -> dict[str, Any]:
    arrays |= {name: np.empty(shape) for name, shape in about["empty"].items()}
    history: dict[str, Any] = {name: arrays.get(f"stats_{name}") for name in ("t", "h", "order")}
    events: dict[str, Any] = dict.fromkeys(EVENTS)
    if about["events"] is not None:
        for kind in EVENTS:
            events[kind] = [arrays[f"{kind}_{i}"] for i in range(about["events"])]
    return events | {
        "t": arrays["t"], "y": arrays["y"], "yp": arrays["yp"], "sol": _between(arrays, "dense"),
        "quadratures": arrays.get("quadratures"),
        "integrals_between": _between(arrays, "integrals"),
        "status": Status(about["status"]), "message": about["message"],
        "start": _start(arrays, about["start"]),
        "stats": Statistics(**about["stats"], **history),
        "drift": arrays.get("drift"), "how": about["how"], "warnings": tuple(about["warnings"]),
        "jumps": tuple(_jump(jump) for jump in about["jumps"]),
        "verdict": _diagnosis(about["diagnosis"]), "event_names": tuple(about["event_names"]),
        "naming": Names(tuple(about["names"]), units=tuple(about["units"])),
    }


def _between(arrays: Arrays, name: str) -> Interpolant | None:
    """Return the interpolant whose points were saved under a name."""
    if f"{name}_t" not in arrays:
        return None
    return Interpolant.through(*(arrays[f"{name}_{part}"] for part in POINTS))


def _of_start(start: Start) -> dict[str, Any]:
    return {
        "success": start.success, "message": start.message, "reason": start.reason.kind.name,
        "moved": start.moved, "residual": [float(r) for r in start.residual],
        "on_constraints": start.on_constraints, "fixed": [int(j) for j in start.fixed],
        "lawful": start.lawful, "status": int(start.status),
    }


def _start(arrays: Arrays, about: dict[str, Any]) -> Start:
    return Start(
        arrays["start_y"], arrays["start_yp"], about["success"], Reason(Kind[about["reason"]]),
        message=about["message"], moved=_by_number(about["moved"]),
        residual=tuple(about["residual"]), ypp=arrays.get("start_ypp"),
        on_constraints=about["on_constraints"], fixed=tuple(about["fixed"]),
        lawful=about["lawful"], status=Status(about["status"]),
    )


def _jump(about: dict[str, Any]) -> Jumped:
    return Jumped(
        about["t"], _by_number(about["changes"]), _by_number(about["impulses"]), about["by_law"],
        tuple(about["open_equations"]),
    )


def _by_number(about: dict[str, float]) -> dict[int, float]:
    """Convert the keys of a dictionary back to numbers."""
    return {int(key): value for key, value in about.items()}


def _of_diagnosis(diagnosis: Diagnosis | None) -> dict[str, Any] | None:
    if diagnosis is None:
        return None
    return {
        "cause": diagnosis.cause.value, "where": _plain(vars(diagnosis.where)),
        "summary": diagnosis.summary, "evidence": list(diagnosis.evidence),
        "remedies": list(diagnosis.remedies), "untraced": diagnosis.untraced,
    }


def _plain(place: dict[str, Any]) -> dict[str, Any]:
    """Return the place with numbers that JSON can store."""
    numbers = {name: [int(i) for i in place[name]] for name in ("rows", "columns")}
    return place | numbers | {"t": None if place["t"] is None else float(place["t"])}


def _diagnosis(about: dict[str, Any] | None) -> Diagnosis | None:
    if about is None:
        return None
    place: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in about["where"].items()
    }
    return Diagnosis(
        Cause(about["cause"]), Where(**place), about["summary"], tuple(about["evidence"]),
        tuple(about["remedies"]), untraced=about["untraced"],
    )


# --- formats ------------------------------------------------------------------------------------


def _write_npz(path: Path, arrays: Arrays, text: str) -> None:
    parts: dict[str, Any] = arrays | {ABOUT: np.array(text)}
    with path.open("wb") as file:
        np.savez_compressed(file, **parts)


def _read_npz(path: Path) -> tuple[Arrays, str]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name != ABOUT}, str(file[ABOUT])


def _write_nc(path: Path, arrays: Arrays, text: str) -> None:
    from scipy.io import netcdf_file  # a tenth of a second

    with netcdf_file(path, "w", version=2) as file:
        setattr(file, ABOUT, text.encode())
        for name, values in arrays.items():
            axes = AXES.get(name) or tuple(f"{name}_{k}" for k in range(values.ndim))
            for axis, size in zip(axes, values.shape, strict=True):
                if axis not in file.dimensions:
                    file.createDimension(axis, size)
            whole = values.dtype.kind in "iu"     # the format has no long integers
            file.createVariable(name, "i4" if whole else "f8", axes)[:] = values
        for name, words in _words(text).items():
            if not words:
                continue
            letters = _letters(words)
            file.createDimension(f"letter_of_{name}", letters.shape[1])
            if "unknown" not in file.dimensions:
                file.createDimension("unknown", len(words))
            variable = file.createVariable(name, "c", ("unknown", f"letter_of_{name}"))
            variable[:] = letters
            variable._Encoding = b"utf-8"
        units = set(_words(text).get("unit", []))
        if len(units) == 1 and "y" in file.variables:
            file.variables["y"].units = units.pop().encode()


def _words(text: str) -> dict[str, list[str]]:
    """Return names and units of the unknowns, for other programs that read the file."""
    about = json.loads(text)
    return {"unknown": about["names"]} | ({"unit": about["units"]} if any(about["units"]) else {})


def _letters(names: list[str]) -> np.ndarray:
    """Return the bytes of names as a matrix of letters."""
    encoded = [name.encode() for name in names]
    width = max(1, *(len(name) for name in encoded))
    return np.array([list(name.ljust(width, b"\0")) for name in encoded], "u1").view("S1")


def _read_nc(path: Path) -> tuple[Arrays, str]:
    from scipy.io import netcdf_file

    with netcdf_file(path, "r", mmap=False) as file:
        arrays = {}
        for name, variable in file.variables.items():
            if variable.typecode() != "c":
                values = np.array(variable[:])
                arrays[name] = values.astype(values.dtype.newbyteorder("="))
        return arrays, getattr(file, ABOUT, b"null").decode()


def _write_h5(path: Path, arrays: Arrays, text: str) -> None:
    h5py = load_optional("h5py", f"saving as {path.name!r}")
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name, data=values, compression="gzip" if values.ndim else None)
        file.create_dataset(ABOUT, data=text)
        for name, words in _words(text).items():
            file.create_dataset(name, data=words, dtype=h5py.string_dtype())


def _read_h5(path: Path) -> tuple[Arrays, str]:
    h5py = load_optional("h5py", f"loading {path.name!r}")
    with h5py.File(path, "r") as file:
        arrays = {name: file[name][()] for name in file if name not in (ABOUT, "unknown", "unit")}
        return arrays, file[ABOUT][()].decode()


Write = Callable[[Path, Arrays, str], None]
Read = Callable[[Path], tuple[Arrays, str]]
FORMATS: dict[str, tuple[Write, Read]] = {
    ".npz": (_write_npz, _read_npz),
    ".nc": (_write_nc, _read_nc),
    ".h5": (_write_h5, _read_h5),
}


def _format(path: str | os.PathLike[str]) -> tuple[Write, Read]:
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise ValueError(
            f"the name of the file must end in {', '.join(FORMATS)}, which says its format; "
            f"got {os.fspath(path)!r}"
        )
    return FORMATS[ending]
