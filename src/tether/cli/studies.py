"""``tether studies``."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

from tether import studies
from tether.cli.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import argparse

__all__ = ["run", "titles"]


def run(options: argparse.Namespace) -> ExitCode:
    """List the studies, or run one of them."""
    known = titles()
    if options.study is None:
        width = max(map(len, known))
        for name, title in known.items():
            print(f"{name:<{width}}  {title}")
        return ExitCode.SUCCESS
    if options.study not in known:
        raise UsageError(f"there is no study {options.study!r}; the studies are {', '.join(known)}")
    module = importlib.import_module(f"tether.studies.{options.study}")
    module.main(options.arguments)
    return ExitCode.SUCCESS


def titles() -> dict[str, str]:
    """Titles of the studies by name, read without running them.

    Examples
    --------
    >>> from tether.cli.studies import titles
    >>> "orders" in titles(), "loader" in titles()
    (True, False)
    """
    found = {}
    for path in sorted(Path(str(inspect.getfile(studies))).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        commands = [part for part in tree.body if isinstance(part, ast.FunctionDef)
                    and part.name == "main"]
        if commands:
            found[path.stem] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found
