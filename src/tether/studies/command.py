"""Command-line arguments and pictures of the studies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parse(
    name: str,
    description: str,
    arguments: Sequence[str] | None,
    *,
    full: str | None = None,
    plot: bool = False,
) -> argparse.Namespace:
    """Read the arguments of ``python -m tether.studies.<name>``.

    Parameters
    ----------
    name, description : str
        Name and description of the study.
    arguments : sequence of str, optional
        Arguments; those of the command line by default.
    full : str, optional
        Help text of the argument ``--full``; without it there is no such argument.
    plot : bool
        Whether there is an argument ``--plot FILE``.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m tether.studies.{name}", description=description
    )
    if full is not None:
        parser.add_argument("--full", action="store_true", help=full)
    if plot:
        parser.add_argument("--plot", type=Path, metavar="FILE", help="draw a picture into FILE")
    return parser.parse_args(arguments)


def new_figure(columns: int = 1) -> tuple[Figure, Any]:
    """Return a figure and its axes: one, or an array of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.5 + 4.5 * columns, 4), layout="constrained")
    axes = figure.subplots(1, columns)
    for axis in np.atleast_1d(axes):
        axis.grid(alpha=0.3)
    return figure, axes


def keep(figure: Figure, file: Path) -> None:
    """Write a picture."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=100)
