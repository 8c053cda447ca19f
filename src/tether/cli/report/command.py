"""``tether report``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tether.cli.analyze import analyze_source
from tether.cli.errors import ExitCode
from tether.cli.files import STDOUT, check_writable, write_text
from tether.cli.report.page import Story, write_page
from tether.cli.run import solve_source
from tether.cli.source import Source

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]


def run(source: Source, options: argparse.Namespace) -> ExitCode:
    """Solve, and write all about the run into a page, even if it failed."""
    check_writable(options.output, "--output")
    source.take(options)
    sol = solve_source(source, options, dense_output=True)
    story = Story(source, sol, analyze_source(source), list(sol.names), list(sol.units))
    write_text(options.output, write_page(story))
    if not options.quiet and options.output != STDOUT:
        print(f"{'success' if sol.success else 'FAILED'}: {options.output}")
    if not sol.success:
        print(f"tether: the run failed: {sol.message}", file=sys.stderr)
    return ExitCode.SUCCESS if sol.success else ExitCode.FAILED
