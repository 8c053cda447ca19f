"""An ensemble as a table: DataFrame and Dataset. pandas and xarray are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tether.base.optional import load_optional

if TYPE_CHECKING:
    import pandas
    import xarray

    from tether.ensemble.result import EnsembleResult

__all__ = ["to_dataframe", "to_xarray"]


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
    over = ("member", "unknown", "t")
    taken = {"member", "unknown", "t", "y", "yp", "success", "status", "t_final"}
    parameters = {
        name if name not in taken else f"{name} (parameter)": ("member", values)
        for name, values in _numbers(result).items()
    }
    return xarray.Dataset(
        {
            "y": (over, np.array(result.y)), "yp": (over, np.array(result.yp)),
            "success": ("member", result.success), "status": ("member", result.status),
            "t_final": ("member", result.t_final),
        },
        coords={
            "member": np.arange(len(result)), "unknown": np.array(result.names, dtype=str),
            "t": np.array(result.t), **parameters,
        },
    )


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
