"""A run from the command line: a source and options, passed to `solve_dae`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.cli.errors import UsageError
from tether.cli.source import Source
from tether.problem.options import DEFAULTS

if TYPE_CHECKING:
    import argparse

    from tether.result.solution import DaeResult

__all__ = ["SETTINGS", "output_times", "solve_source", "tolerances"]

# Options of `solve_dae` that are passed on as they are.
SETTINGS = ("form", "trace", "start", "first_step", "max_step", "max_order", "max_steps",
            "max_seconds")


def solve_source(
    source: Source, options: argparse.Namespace, t_eval: Any = None, dense_output: bool = False
) -> DaeResult:
    """Solve, with a progress bar if standard error is a terminal."""
    from tether.solve import solve_dae

    settings = {
        name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None
    }
    return solve_dae(
        source.fun, source.t_span, source.y0, source.yp0, args=source.args, names=source.names,
        units=source.units,
        t_eval=t_eval, dense_output=dense_output,
        progress=sys.stderr.isatty() and not options.quiet,
        **tolerances(source), **settings, **source.more,
    )


def tolerances(source: Source) -> dict[str, Any]:
    """Return the tolerances; problems of the gallery compute the absolute from the relative one."""
    rtol = DEFAULTS["rtol"] if source.rtol is None else source.rtol
    if source.atol is None:
        return {"rtol": rtol}
    return {"rtol": rtol, "atol": source.atol(rtol) if callable(source.atol) else source.atol}


def output_times(source: Source, options: argparse.Namespace) -> Any:
    """Return the output times that are asked for; None for every step."""
    if options.at is not None:
        return options.at
    if options.points is not None:
        if options.points < 2:
            raise UsageError("--points must be 2 or more: both ends of the interval are included")
        return np.linspace(source.t_span[0], source.t_span[1], options.points)
    # output times of a file belong to its own interval
    return source.t_eval if options.t is None else None
