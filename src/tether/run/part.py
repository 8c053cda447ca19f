"""Part: what belongs to a run and knows it, without keeping it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["Part"]


class Part:
    """A part of a run.

    It does not keep the run alive, which keeps its parts: in a circle the memory of every run
    would wait for Python's collector of garbage, and give that most of its work.
    """

    def __init__(self, run: Integration) -> None:
        self._run = ref(run)

    @property
    def run(self) -> Integration:
        """The run that this belongs to."""
        run = self._run()
        assert run is not None
        return run
