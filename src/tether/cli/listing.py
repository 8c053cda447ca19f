"""``tether list``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tether.cli.errors import ExitCode

if TYPE_CHECKING:
    import argparse

__all__ = ["run"]


def run(options: argparse.Namespace) -> ExitCode:
    """Print the names of all problems, with size, index and title."""
    from tether import gallery  # slow to import

    names = gallery.names()
    if options.names:
        print("\n".join(names))
        return ExitCode.SUCCESS
    width = max(map(len, names))
    print(f"{'name':<{width}}  unknowns  index  title")
    for name in names:
        problem = gallery.get(name)
        print(f"{name:<{width}}  {problem.n:>8}  {problem.index:>5}  {problem.title}")
    return ExitCode.SUCCESS
