"""``tether solve``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tether.base.optional import load_optional
from tether.cli.errors import ExitCode, UsageError
from tether.cli.files import COMPLETE_FORMATS, STDOUT, WRITERS, check_writable
from tether.cli.run import output_times, solve_source
from tether.cli.source import Source

if TYPE_CHECKING:
    import argparse

    from tether.result.solution import DaeResult

__all__ = ["run"]

TEXT_FORMATS = ("csv", "json")


def run(source: Source, options: argparse.Namespace) -> ExitCode:
    """Solve, write the files that are asked for, and print the summary."""
    _check_outputs(options)
    source.take(options)
    try:
        sol = solve_source(source, options, output_times(source, options))
    except KeyboardInterrupt as interrupt:
        so_far = getattr(interrupt, "result", None)
        if so_far is not None:
            _deliver(so_far, source, options)
        raise
    _deliver(sol, source, options)
    return ExitCode.SUCCESS if sol.success else ExitCode.FAILED


def _check_outputs(options: argparse.Namespace) -> None:
    for kind in (*WRITERS, "plot"):
        target = getattr(options, kind)
        if target is None:
            continue
        if target == STDOUT and kind not in TEXT_FORMATS:
            raise UsageError(f"--{kind} needs the name of a file")
        check_writable(target, f"--{kind}")
        if kind in COMPLETE_FORMATS and not target.endswith(f".{kind}"):
            raise UsageError(f"--{kind} {target}: the name of the file must end in .{kind}")
    if options.csv == options.json == STDOUT:
        raise UsageError("--csv - and --json -: only one of them can go to standard output")
    if options.plot is not None:
        load_matplotlib()
    if options.h5 is not None:
        load_optional("h5py", "--h5")


def load_matplotlib() -> None:
    """Import matplotlib for files, or say how to install it."""
    load_optional("matplotlib", "--plot").use("Agg")


def _deliver(sol: DaeResult, source: Source, options: argparse.Namespace) -> None:
    """Write files and summary; if the run failed, with what was computed."""
    for kind, write in WRITERS.items():
        target = getattr(options, kind)
        if target is not None:
            write(target, sol)
    if options.plot is not None:
        save_plot(sol, options.plot)
    if not options.quiet:
        piped = STDOUT in (options.csv, options.json)
        print(sol, file=sys.stderr if piped else sys.stdout)
    if not sol.success and (options.quiet or not sys.stdout.isatty()):
        print(f"tether: the run failed: {sol.message}", file=sys.stderr)
    for warning in sol.warnings:
        print(f"tether: warning: {warning}", file=sys.stderr)


def save_plot(sol: DaeResult, target: str) -> None:
    """Draw the solution into a file; the ending of its name selects the format."""
    try:
        sol.plot().savefig(target, dpi=150)
    except ValueError as error:
        raise UsageError(f"--plot {target}: {error}") from error
