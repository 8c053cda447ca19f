"""Part: an object that belongs to a run and refers to it without keeping it alive."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["Part"]


class Part:
    """A part of a run.

    The run keeps its parts alive, but not the other way round: in a reference cycle the memory of
    every run would stay until Python's garbage collector runs, which would have most of its work
    from that.
    """

    def __init__(self, run: Integration) -> None:
        self._run = ref(run)

    @property
    def run(self) -> Integration:
        """The run that this belongs to."""
        run = self._run()
        assert run is not None
        return run
