"""Source: equations, and what is known about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tether.cli.errors import UsageError

if TYPE_CHECKING:
    import argparse

__all__ = ["PASSED_ON", "Source"]

# Further arguments of `solve_dae` that a file or a problem may have under the same name.
PASSED_ON = ("events", "constraints", "invariants", "t_breaks", "equation_names")


@dataclass
class Source:
    """Equations with what is known about them, before options of the command line override it."""

    name: str
    fun: Any
    title: str = ""
    description: str = ""
    file: Path | None = None
    t_span: Any = None
    y0: Any = None
    yp0: Any = None
    args: tuple[Any, ...] = ()
    names: Sequence[str] | None = None
    units: Any = None
    t_eval: Any = None
    rtol: Any = None
    atol: Any = None
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> str:
        """Where a missing value can be added."""
        return "the gallery" if self.file is None else self.file.name

    def take(self, options: argparse.Namespace) -> Source:
        """Override values by options of the command line, and report what is missing."""
        if options.y0 is not None:
            if self.file is None and len(options.y0) != len(self.y0):
                raise UsageError(
                    f"--y0 must have {len(self.y0)} values for {self.name}, got {len(options.y0)}"
                )
            self.yp0 = None            # it belongs to the y0 that is replaced
        for name in ("y0", "yp0", "names", "rtol", "atol"):
            given = getattr(options, name, None)
            if given is not None:
                setattr(self, name, given)
        if options.t is not None:
            self.t_span = _with_start(options.t, self.t_span)
        if self.y0 is None:
            raise self._missing("y0", "--y0 1,0,0", "y0 = [1, 0, 0]")
        if self.t_span is None:
            raise self._missing("t_span", "--t 0:10", "t_span = (0, 10)")
        return self

    def _missing(self, name: str, option: str, line: str) -> UsageError:
        return UsageError(
            f"{self.name} has no {name}: pass {option}, or write {line} into {self.here}"
        )


def _with_start(given: tuple[float | None, float], known: Any) -> tuple[float, float]:
    start, end = given
    if start is None:
        start = 0.0 if known is None else known[0]
    return start, end
