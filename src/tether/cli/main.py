"""The command ``tether``: reads the arguments, runs a command, reports how it ended."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tether.base.status import ConsistencyWarning
from tether.cli.errors import ExitCode, one_line
from tether.cli.parser import build_parser
from tether.cli.values import attach_negative

if TYPE_CHECKING:
    import argparse

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; those of the process when left out.

    Returns
    -------
    int
        The exit code: 0 success, 1 the run failed, 2 bad use.

    Examples
    --------
    >>> from tether.cli.main import main
    >>> main(["analyze", "vdpol"])
    index 0 (structural 0, local 0): 2 equations
    2 free initial values, for example y, z
    run: as written
    0
    """
    parser = build_parser()
    given = attach_negative(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parser.parse_args(given)
    except SystemExit as end:          # argparse has reported the error, or printed the help
        return int(end.code or 0)
    if options.version:
        from tether import __version__

        print(f"tether {__version__}")
        return ExitCode.SUCCESS
    if options.command is None:
        parser.print_help()
        return ExitCode.BAD_USE
    return _guarded(options)


def _guarded(options: argparse.Namespace) -> int:
    """Run a command; errors and warnings become one line each."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", ConsistencyWarning)
            code = int(_commands()[options.command](options))
        sys.stdout.flush()
    except SystemExit as end:          # raised by a study or by the user's file
        if isinstance(end.code, int) or end.code is None:
            return end.code or 0
        print(f"tether: error: {end.code}", file=sys.stderr)
        return ExitCode.BAD_USE
    except KeyboardInterrupt:
        print("tether: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:            # the reader has closed the pipe, as in `tether list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.SUCCESS
    except Exception as error:
        if options.debug:
            raise
        print(f"tether: error: {one_line(error, _file_of(options))}", file=sys.stderr)
        return ExitCode.BAD_USE
    return code


def _show_warning(message: Any, category: type, filename: str, *rest: Any, **more: Any) -> None:
    print(f"tether: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _file_of(options: argparse.Namespace) -> Path | None:
    from tether.cli.target import split_target

    parts = split_target(getattr(options, "target", ""))
    return None if parts is None else parts[0]


def _commands() -> dict[str, Callable[[Any], int]]:
    return {
        "list": _list, "solve": _solve, "analyze": _analyze, "report": _report, "bench": _bench,
        "studies": _studies, "completion": _completion,
    }


# Each command is imported only when it is run, so that --help does not wait for all of them.


def _source(options: argparse.Namespace) -> Any:
    from tether.cli.target import load_source

    arguments = {name: value for part in options.args for name, value in part.items()}
    return load_source(options.target, arguments)


def _list(options: argparse.Namespace) -> int:
    from tether.cli.listing import run

    return run(options)


def _solve(options: argparse.Namespace) -> int:
    from tether.cli.solve import run

    return run(_source(options), options)


def _analyze(options: argparse.Namespace) -> int:
    from tether.cli.analyze import run

    return run(_source(options), options)


def _report(options: argparse.Namespace) -> int:
    from tether.cli.report.command import run

    return run(_source(options), options)


def _bench(options: argparse.Namespace) -> int:
    from tether.cli.bench import run

    return run(options)


def _studies(options: argparse.Namespace) -> int:
    from tether.cli.studies import run

    return run(options)


def _completion(options: argparse.Namespace) -> int:
    from tether.cli.completion import script

    print(script(options.shell))
    return ExitCode.SUCCESS
