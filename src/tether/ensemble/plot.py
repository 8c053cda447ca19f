"""Bands of an ensemble over time; matplotlib is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.optional import as_label, load_pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.ensemble.result import EnsembleResult

__all__ = ["plot_bands"]

PANEL_HEIGHT = 2.2                     # inches
MIN_OPACITY, MAX_OPACITY = 0.15, 0.35  # of the widest and of the narrowest band


def plot_bands(
    result: EnsembleResult,
    unknowns: Sequence[str | int] | str | int | None = None,
    *,
    bands: ArrayLike = (0.9, 0.5),
    path: Any = None,
    title: str = "",
) -> Figure:
    """Plot the median and bands around it, a panel for every unknown.

    Parameters
    ----------
    result : EnsembleResult
        An ensemble with values at times, from ``t_eval``.
    unknowns : sequence of str or int, optional
        Which unknowns to plot; all when left out.
    bands : array_like
        Shares of members between the edges of each band.
    path : str or path, optional
        Where to save the picture.
    title : str
        Title above the panels.

    Returns
    -------
    matplotlib.figure.Figure
    """
    pyplot = load_pyplot()
    times = result.t_bands
    if len(times) < 2:
        raise ValueError("plot() needs the values at several times: solve with t_eval")
    widths = np.sort(np.atleast_1d(np.asarray(bands, float)))[::-1]
    if widths.ndim != 1 or not np.all((widths > 0.0) & (widths < 1.0)):
        raise ValueError(f"bands must be shares between 0 and 1, got {bands!r}")
    rows = _numbers(result, unknowns)
    edges = np.concatenate([[0.5], 0.5 - widths / 2, 0.5 + widths / 2])
    found = result.quantiles(edges)
    figure, axes = pyplot.subplots(
        len(rows), 1, sharex=True, squeeze=False, figsize=(6.4, 0.8 + PANEL_HEIGHT * len(rows)),
        layout="constrained",
    )
    opacity = np.linspace(MIN_OPACITY, MAX_OPACITY, len(widths))
    for axis, j in zip(axes[:, 0], rows, strict=True):
        for k, width in enumerate(widths):
            axis.fill_between(
                times, found[1 + k, j], found[1 + len(widths) + k, j], color="C0",
                alpha=float(opacity[k]), linewidth=0, label=f"{width:.0%} of members",
            )
        axis.plot(times, found[0, j], color="C0", label="median")
        axis.set_ylabel(as_label(result.names[j]))
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    axes[-1, 0].set_xlabel("t")
    if title:
        figure.suptitle(title)
    if path is not None:
        figure.savefig(path)
    return figure


def _numbers(
    result: EnsembleResult, unknowns: Sequence[str | int] | str | int | None
) -> list[int]:
    names = result.names
    if unknowns is None:
        return list(range(len(names)))
    wanted = [unknowns] if isinstance(unknowns, (str, int, np.integer)) else list(unknowns)
    found = []
    for name in wanted:
        if isinstance(name, str) and name in names:
            found.append(names.index(name))
        elif isinstance(name, (int, np.integer)) and -len(names) <= name < len(names):
            found.append(int(name) % len(names))
        else:
            raise KeyError(f"there is no unknown {name!r}; the unknowns are {list(names)}")
    return found
