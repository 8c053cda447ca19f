"""Show the values of defaults in signatures: ``rtol=1e-06`` where the code has a call."""

import re
from pathlib import Path
from typing import Any

import griffe

SOURCES = Path(__file__).parents[2] / "src"
CALL = re.compile(r"""^default\(['"](\w+)['"]\)$""")


class Defaults(griffe.Extension):
    """Replace ``default("rtol")`` by what the class of options has for it."""

    def __init__(self) -> None:
        module = griffe.load("tether.problem.options", search_paths=[SOURCES])
        self.members = module["Options"].members

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Go through all functions once the package is read."""
        self._visit(pkg)

    def _visit(self, thing: Any) -> None:
        for member in thing.members.values():
            if member.is_alias:
                continue
            if member.is_function:
                self._show(member)
            else:
                self._visit(member)

    def _show(self, function: griffe.Function) -> None:
        for parameter in function.parameters:
            found = CALL.match(str(parameter.default))
            if found:
                parameter.default = str(self.members[found[1]].value).replace("math.inf", "inf")
