"""The shelf: plans are made once and kept under a key of all that the function depends on.

So a fit that calls `solve_dae` thousands of times with other arguments pays for them once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from tether.base.collector import collection_paused
from tether.plan.plan import Plan
from tether.trace.reading import Reading
from tether.trace.tracer import TraceFailure

__all__ = ["InputsRefused", "Shelf", "shelf"]

# Plans are kept up to this number and, together, about this size in bytes ...
MOST_PLANS = 256
MOST_BYTES = 2**28
# ... estimated from the nodes of their expressions: this much for a node and all made of it.
BYTES_A_NODE = 400
# Functions that are not to be traced again.
MOST_REFUSED = 1024


class InputsRefused(TraceFailure):
    """A function cannot be traced with all of its inputs; with constants it may."""


class Shelf:
    """The plans used last; safe to use from several threads."""

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple, Plan] = OrderedDict()
        self._refused: OrderedDict[Hashable, Plan] = OrderedDict()
        self._lock = threading.Lock()

    def empty(self) -> None:
        """Forget everything."""
        with self._lock:
            self._plans.clear()
            self._refused.clear()

    def refuse(self, key: Hashable, note: str) -> None:
        """Drop all plans of a function, and remember why it is not to be traced again."""
        with self._lock:
            for place in [place for place in self._plans if place[0] == key]:
                del self._plans[place]
            self._refused[key] = Plan(note=note)
            while len(self._refused) > MOST_REFUSED:
                self._refused.popitem(last=False)

    def find_for(
        self,
        read: Callable[[], Reading | None],
        kind: Hashable,
        make: Callable[[Reading], Plan],
    ) -> tuple[Plan | None, Reading | None]:
        """Return the plan for what a function reads now; None if that cannot be compared.

        Where it cannot be made with the inputs that have changed so far, they are constants.
        """
        while (reading := read()) is not None:
            try:
                return self.find((reading.key, kind), partial(make, reading)), reading
            except InputsRefused:
                reading.keep_constant()
        return None, None

    def find(self, key: tuple, make: Callable[[], Plan]) -> Plan:
        """Return the plan of this key, which begins with that of the function.

        It is made at the first time.
        """
        with self._lock:
            if self._refused and key[0] in self._refused:
                return self._refused[key[0]]
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        with collection_paused():
            plan = make()
        with self._lock:
            self._plans[key] = plan
            self._make_room()
        return plan

    def _make_room(self) -> None:
        """Give up the plans that were used longest ago; the last one stays, however large."""
        while len(self._plans) > 1 and (
            len(self._plans) > MOST_PLANS or _size(self._plans.values()) > MOST_BYTES
        ):
            self._plans.popitem(last=False)


def _size(plans: Iterable[Plan]) -> int:
    """Memory of plans in bytes, about; those of one function share their expressions."""
    graphs, tables = {}, 0
    for plan in plans:
        if plan.traced is not None:
            graphs[id(plan.traced.graph)] = plan.traced.graph
        elif plan.arrays is not None:
            tables += plan.arrays.table.nbytes
    return tables + sum(BYTES_A_NODE * len(graph.nodes) for graph in graphs.values())


shelf = Shelf()                # the one of this process
