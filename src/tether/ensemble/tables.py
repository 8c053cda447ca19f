"""An ensemble as a table: DataFrame, Dataset, and Zarr on disk. Their packages are optional."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from tether.base.optional import load_optional

if TYPE_CHECKING:
    import pandas
    import xarray

    from tether.ensemble.result import EnsembleResult

__all__ = ["to_dataframe", "to_xarray", "to_zarr"]

# Numbers in a chunk on disk; only one chunk is in memory while it is written.
NUMBERS_IN_CHUNK = 2**17
Variable = tuple[tuple[str, ...], np.ndarray]


def to_dataframe(result: EnsembleResult) -> pandas.DataFrame:
    """Return a data frame with a row for every member and time."""
    pandas = load_optional("pandas", "to_dataframe()")
    _require_times(result, "to_dataframe")
    count, _, nt = result.y.shape
    index = pandas.MultiIndex.from_product([range(count), result.t], names=["member", "t"])
    columns = {name: np.repeat(values, nt) for name, values in _numbers(result).items()}
    for j, name in enumerate(result.names):
        columns[name if name not in columns else f"{name} (unknown)"] = result.y[:, j].reshape(-1)
    columns["success"] = np.repeat(result.success, nt)
    return pandas.DataFrame(columns, index=index)


def to_xarray(result: EnsembleResult) -> xarray.Dataset:
    """Return a data set with y and yp over members, unknowns and time."""
    xarray = load_optional("xarray", "to_xarray()")
    _require_times(result, "to_xarray")
    data, coordinates = _variables(result)
    return xarray.Dataset(
        {name: (over, np.array(values)) for name, (over, values) in data.items()},
        coords={name: (over, np.array(values)) for name, (over, values) in coordinates.items()},
    )


def to_zarr(result: EnsembleResult, path: str | os.PathLike[str]) -> None:
    """Write the variables of `to_xarray` into a folder, in the format of Zarr."""
    zarr = load_optional("zarr", "to_zarr()")
    _require_times(result, "to_zarr")
    if os.path.exists(path):
        raise FileExistsError(f"to_zarr() makes a new folder, but {os.fspath(path)} exists")
    group = zarr.open_group(os.fspath(path), mode="w-", zarr_format=2)
    data, coordinates = _variables(result)
    for name, (over, values) in {**data, **coordinates}.items():
        rows = max(1, NUMBERS_IN_CHUNK // max(1, int(np.prod(values.shape[1:]))))
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, fill_value=None,
            chunks=(min(rows, max(1, len(values))), *[max(1, size) for size in values.shape[1:]]),
        )
        array.attrs["_ARRAY_DIMENSIONS"] = list(over)
        for begin in range(0, len(values), rows):
            array[begin : begin + rows] = np.asarray(values[begin : begin + rows])
    others = [name for name in coordinates if name not in ("member", "unknown", "t")]
    if others:
        group.attrs["coordinates"] = " ".join(others)
    zarr.consolidate_metadata(os.fspath(path), zarr_format=2)


def _variables(result: EnsembleResult) -> tuple[dict[str, Variable], dict[str, Variable]]:
    """Return data and coordinates by name: their dimensions and values."""
    over, member = ("member", "unknown", "t"), ("member",)
    data: dict[str, Variable] = {
        "y": (over, result.y), "yp": (over, result.yp), "success": (member, result.success),
        "status": (member, result.status), "t_final": (member, result.t_final),
    }
    coordinates: dict[str, Variable] = {
        "member": (member, np.arange(len(result))),
        "unknown": (("unknown",), np.array(result.names, dtype=str)), "t": (("t",), result.t),
    }
    for name, values in _numbers(result).items():
        is_taken = name in data or name in coordinates
        coordinates[f"{name}_parameter" if is_taken else name] = member, values
    return data, coordinates


def _numbers(result: EnsembleResult) -> dict[str, np.ndarray]:
    """Return the parameters that vary and are one number for each member."""
    return {
        name: values for name, values in result.parameters.items()
        if values.ndim == 1 and values.dtype.kind in "fiub"
    }


def _require_times(result: EnsembleResult, name: str) -> None:
    if len(result.t) == 0:
        raise ValueError(
            f"{name}() needs times that all members share: pass t_eval instead of keep='full'"
        )
