"""A run from the command line: what is known about the equations, handed to `solve_dae`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tether.cli.errors import UsageError
from tether.cli.source import Source
from tether.problem.names import Names
from tether.problem.options import DEFAULTS
from tether.problem.problem import as_problem

if TYPE_CHECKING:
    import argparse

    from tether.result.solution import DaeResult

__all__ = ["SETTINGS", "names_of", "output_times", "solve_source", "tolerances", "units_of"]

# Options of `solve_dae` that are passed on as they are.
SETTINGS = ("form", "trace", "start", "first_step", "max_step", "max_order", "max_steps",
            "max_seconds")


def solve_source(
    source: Source, options: argparse.Namespace, t_eval: Any = None, dense_output: bool = False
) -> DaeResult:
    """Solve; a bar shows how far it has come if somebody is looking at a terminal."""
    from tether.solve import solve_dae

    settings = {
        name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None
    }
    return solve_dae(
        source.fun, source.t_span, source.y0, source.yp0, args=source.args, names=source.names,
        t_eval=t_eval, dense_output=dense_output,
        progress=sys.stderr.isatty() and not options.quiet,
        **tolerances(source), **settings, **source.more,
    )


def tolerances(source: Source) -> dict[str, Any]:
    """Tolerances; those of the gallery say how large an absolute one belongs to a relative one."""
    rtol = DEFAULTS["rtol"] if source.rtol is None else source.rtol
    if source.atol is None:
        return {"rtol": rtol}
    return {"rtol": rtol, "atol": source.atol(rtol) if callable(source.atol) else source.atol}


def output_times(source: Source, options: argparse.Namespace) -> Any:
    """Return the times of output that are asked for, None for every step."""
    if options.at is not None:
        return options.at
    if options.points is not None:
        if options.points < 2:
            raise UsageError("--points must be 2 or more: both ends of the interval are among them")
        return np.linspace(source.t_span[0], source.t_span[1], options.points)
    # those of a file belong to its own span
    return source.t_eval if options.t is None else None


def names_of(source: Source, result: DaeResult | None = None) -> list[str]:
    """Names of the unknowns: given, or read off the function."""
    known = getattr(result, "names", None)
    if known:
        return list(known)
    problem = as_problem(source.fun, args=source.args)
    return list(Names.of(problem, len(source.y0), source.names).variables)


def units_of(source: Source, names: list[str]) -> list[str]:
    """Units of the unknowns, "" where they are not known; given in order or by name."""
    units = source.units
    if units is None or isinstance(units, str):
        return [""] * len(names)
    if hasattr(units, "get"):
        return [str(units.get(name) or "") for name in names]
    listed = [str(unit or "") for unit in units]
    return listed if len(listed) == len(names) else [""] * len(names)
