"""The shelf: plans are made once and kept under a key of all that the function depends on.

A fit that calls `solve_dae` thousands of times with different arguments makes its plan once.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from tether.base.collector import collection_paused
from tether.plan.plan import Plan
from tether.trace.reading import Reading, read_function
from tether.trace.tracer import TraceFailure

__all__ = ["InputsRefused", "Shelf", "shelf"]

# Plans are kept up to this number and, together, about this size in bytes ...
MAX_PLANS = 256
MAX_BYTES = 2**28
# ... estimated from the nodes of their expressions: for a node and all that is made from it.
BYTES_PER_NODE = 400
# How many functions that are not to be traced again are remembered.
MAX_REFUSED = 1024


class InputsRefused(TraceFailure):
    """A function cannot be traced with all of its inputs; it may be with some as constants."""


class Shelf:
    """The plans used most recently; safe to use from several threads."""

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
            while len(self._refused) > MAX_REFUSED:
                self._refused.popitem(last=False)

    def find_for(
        self,
        kind: Hashable,
        make: Callable[[Reading], Plan],
        fun: Callable[..., Any],
        n: int,
        args: Sequence[Any],
        fills: bool = False,
    ) -> tuple[Plan | None, Reading | None]:
        """Return the plan for what a function reads now; None if that cannot be compared.

        If no plan can be made with the inputs that have changed so far, they become constants.
        """
        while (reading := read_function(fun, n, args, fills)) is not None:
            try:
                return self.find((reading.key, kind), make, reading), reading
            except InputsRefused:
                reading.keep_constant()
        return None, None

    def find(self, key: tuple, make: Callable[..., Plan], *given: Any) -> Plan:
        """Return the plan of this key, whose first entry is the key of the function.

        When it is first asked for it is made, by `make` of what is `given`.
        """
        with self._lock:
            if self._refused and key[0] in self._refused:
                return self._refused[key[0]]
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        with collection_paused():
            plan = make(*given)
        with self._lock:
            self._plans[key] = plan
            self._make_room()
        return plan

    def _make_room(self) -> None:
        """Drop the plans used longest ago; the last one stays, however large it is."""
        while len(self._plans) > 1 and (
            len(self._plans) > MAX_PLANS or _size(self._plans.values()) > MAX_BYTES
        ):
            self._plans.popitem(last=False)


def _size(plans: Iterable[Plan]) -> int:
    """Approximate memory of plans in bytes; plans of one function share their expressions."""
    graphs, tables = {}, 0
    for plan in plans:
        if plan.traced is not None:
            graphs[id(plan.traced.graph)] = plan.traced.graph
        elif plan.arrays is not None:
            tables += plan.arrays.table.nbytes
    return tables + sum(BYTES_PER_NODE * len(graph.nodes) for graph in graphs.values())


shelf = Shelf()                # one for the process
