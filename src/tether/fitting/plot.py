"""Pictures of a fit: data against model, and correlations; matplotlib is optional."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.base.optional import as_label, load_pyplot
from tether.fitting.experiment import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tether.fitting.result import FitResult

__all__ = ["plot_correlation", "plot_fit"]

PANEL_HEIGHT = 2.4                     # inches
CURVE_POINTS = 300
MAX_WITH_NUMBERS = 8                   # number of parameters up to which numbers are shown


def plot_fit(
    result: FitResult,
    experiments: Sequence[Experiment],
    unknowns: Sequence[str] | str | None = None,
    *,
    level: float = 0.95,
    axes: Any = None,
    path: Any = None,
) -> Figure:
    """Plot data as points, with bars of twice `sigma`, and the model as a curve.

    Every quantity has a panel.

    Parameters
    ----------
    result : FitResult
        The fit.
    experiments : sequence of Experiment
        The experiments, each in its own colour.
    unknowns : sequence of str, optional
        Which quantities to plot; all that were measured when left out.
    level : float
        Probability with which the model is in the band around the curve.
    axes : sequence of Axes, optional
        Panels to draw in, as many as there are quantities.
    path : str or path, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.figure.Figure
    """
    pyplot = load_pyplot()
    names = _chosen(experiments, unknowns)
    if axes is None:
        _, grid = pyplot.subplots(
            len(names), 1, sharex=True, squeeze=False,
            figsize=(6.4, 0.8 + PANEL_HEIGHT * len(names)), layout="constrained",
        )
        axes = grid[:, 0]
    axes = np.atleast_1d(np.asarray(axes, object))
    if len(axes) != len(names):
        raise ValueError(f"axes must be {len(names)}, one for every quantity, got {len(axes)}")
    reach = result.confidence(level)[:, 1] - result.x
    factor = np.nanmax(reach / result.stderr) if np.any(np.isfinite(reach)) else np.nan
    for number, one in enumerate(experiments):
        t, values, errors = _curves(result, one, number)
        colour = f"C{number % 10}"
        for axis, name in zip(axes, names, strict=True):
            row = one.quantities.names.index(name)
            _points(axis, one, row, colour)
            axis.plot(t, values[row], color=colour, label=one.name or "model")
            if errors is not None and np.isfinite(factor):
                low, high = values[row] - factor * errors[row], values[row] + factor * errors[row]
                axis.fill_between(t, low, high, color=colour, alpha=0.2, linewidth=0)
    for axis, name in zip(axes, names, strict=True):
        axis.set_ylabel(as_label(name))
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    axes[-1].set_xlabel("t")
    figure = axes[0].figure
    if path is not None:
        figure.savefig(path)
    return figure


def _chosen(experiments: Sequence[Experiment], unknowns: Sequence[str] | str | None) -> list[str]:
    known = experiments[0].quantities.names
    if unknowns is None:
        measured = [one.quantities.names[row] for one in experiments for row in one.rows]
        return list(dict.fromkeys(measured))
    names = [unknowns] if isinstance(unknowns, str) else list(unknowns)
    for name in names:
        if name not in known:
            raise ValueError(f"unknowns: there is no {name!r}; there are {', '.join(known)}")
    return names


def _points(axis: Any, experiment: Experiment, row: int, colour: str) -> None:
    for series, own in zip(experiment.series, experiment.rows, strict=True):
        if own == row:
            bars = 2.0 / series.weights if experiment.known_errors else None
            axis.errorbar(
                series.t, series.values, bars, fmt="o", color=colour, markersize=4, linewidth=1
            )


def _curves(
    result: FitResult, experiment: Experiment, number: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the model over time, and its standard errors where they are known."""
    sol = result.solutions[number]
    t = np.linspace(sol.t[0], sol.t[-1], CURVE_POINTS)
    y, quantities = sol.y_at(t), experiment.quantities
    values = quantities.values(t, y, experiment.args_of(result.x))
    if not np.all(np.isfinite(result.covariance)):
        return t, values, None
    slopes = quantities.slopes(t, y, sol.sens_at(t), result.x, experiment.args_of)
    variance = np.einsum("pqt,pr,rqt->qt", slopes, result.covariance, slopes)
    return t, values, np.sqrt(np.maximum(variance, 0.0))


def plot_correlation(names: Sequence[str], correlation: np.ndarray, ax: Any = None) -> Figure:
    """Show correlations as colours, red for 1 and blue for -1."""
    pyplot = load_pyplot()
    n = len(names)
    if ax is None:
        side = 2.0 + 0.5 * n
        _, ax = pyplot.subplots(figsize=(side + 0.6, side), layout="constrained")
    image = ax.imshow(correlation, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    labels = [as_label(name) for name in names]
    ax.set_xticks(range(n), labels, rotation=45, ha="right")
    ax.set_yticks(range(n), labels)
    if n <= MAX_WITH_NUMBERS:
        for i, j in np.ndindex(n, n):
            dark = abs(correlation[i, j]) > 0.6
            ax.text(
                j, i, f"{correlation[i, j]:.2f}", ha="center", va="center", fontsize="small",
                color="white" if dark else "black",
            )
    ax.figure.colorbar(image, ax=ax, label="correlation")
    return ax.figure
