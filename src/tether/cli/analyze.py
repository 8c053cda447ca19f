"""``tether analyze``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tether.cli.errors import ExitCode, UsageError
from tether.cli.files import check_writable
from tether.cli.run import tolerances
from tether.cli.solve import load_matplotlib
from tether.cli.source import Source

if TYPE_CHECKING:
    import argparse

    from tether.explain.report import IndexReport

__all__ = ["analyze_source", "run"]


def run(source: Source, options: argparse.Namespace) -> ExitCode:
    """Print what kind of DAE the equations are."""
    if options.plot is not None:
        check_writable(options.plot, "--plot")
        load_matplotlib()
    if source.t_span is None and options.t is None:
        source.t_span = (0.0, 1.0)     # only the start matters here
    report = analyze_source(source.take(options))
    print(report)
    if options.plot is not None:
        try:
            report.plot().savefig(options.plot, dpi=150)
        except ValueError as error:
            raise UsageError(f"--plot {options.plot}: {error}") from error
    return ExitCode.FAILED if report.singular else ExitCode.SUCCESS


def analyze_source(source: Source) -> IndexReport:
    """Find out what kind of DAE the equations are, at their start."""
    from tether.analyze import analyze

    return analyze(
        source.fun, source.t_span[0], source.y0, source.yp0, args=source.args,
        names=source.names, **tolerances(source),
    )
