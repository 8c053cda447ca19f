"""A solution as a table: DataFrame, Dataset, CSV. pandas and xarray are optional."""

from __future__ import annotations

import csv
import io
import os
from typing import IO, TYPE_CHECKING

import numpy as np

from tether.base.optional import load_optional

if TYPE_CHECKING:
    import pandas
    import xarray

    from tether.result.solution import DaeResult

__all__ = ["to_csv", "to_dataframe", "to_xarray"]


def to_dataframe(result: DaeResult, derivatives: bool = False) -> pandas.DataFrame:
    """Return a data frame with a row for every time and a column for every unknown."""
    pandas = load_optional("pandas", "to_dataframe()")
    columns, values = _table(result, derivatives)
    index = pandas.Index(np.array(result.t), name="t")
    frame = pandas.DataFrame(np.array(values.T), index=index, columns=columns)
    if any(result.units):
        frame.attrs["units"] = dict(zip(result.labels, result.units, strict=True))
    return frame


def to_xarray(result: DaeResult) -> xarray.Dataset:
    """Return a data set with y and yp over unknowns and time."""
    xarray = load_optional("xarray", "to_xarray()")
    over = ("unknown", "t")
    units = {"unit": ("unknown", np.array(result.units, dtype=str))} if any(result.units) else {}
    return xarray.Dataset(
        {"y": (over, np.array(result.y)), "yp": (over, np.array(result.yp))},
        coords={"unknown": np.array(result.names, dtype=str), "t": np.array(result.t), **units},
        attrs={
            "message": result.message, "status": int(result.status),
            "success": int(result.success), "how": result.how,
        },
    )


def to_csv(result: DaeResult, path: str | os.PathLike[str] | IO[str], derivatives: bool) -> None:
    """Write a line of names, and a line of numbers with all digits for every time."""
    columns, values = _table(result, derivatives)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *columns])
    writer.writerows(np.column_stack([result.t, values.T]).tolist())
    if hasattr(path, "write"):
        path.write(text.getvalue())
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text.getvalue())


def _table(result: DaeResult, derivatives: bool) -> tuple[list[str], np.ndarray]:
    """Return the names of the columns, and the values with one row for every column."""
    if not derivatives:
        return list(result.labels), result.y
    primed = [f"{name}'" for name in result.names]
    return [*result.labels, *primed], np.concatenate([result.y, result.yp])
