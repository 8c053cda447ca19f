"""Later: a request to tape a run, so that it can be differentiated afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tether.sensitivity.sweep import Sweep

__all__ = ["Later"]


@dataclass(eq=False)
class Later:
    """Passed to `solve_dae` as ``sensitivity=``; afterwards `sweep` is the taped run."""

    wanted: Any                                # as a user would pass it
    sweep: Sweep | None = None
