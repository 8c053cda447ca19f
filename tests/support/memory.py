"""All that can be seen of the core's memory, to compare it before and after a query."""

import contextlib
import types

import numpy as np

from tether._core import codes
from tether._core.state import State

# Counts of work: a query that evaluates something is counted.
COUNTS = {"nfev", "njev", "projections"}


def memory_of(state):
    """Return copies of all numbers and arrays of a state, by name."""
    found = {name: np.array(state.array(name)) for name in state.array_names}
    found.update({name: value for name, value in _fields(state).items()
                  if isinstance(value, (bool, int, float)) and name not in COUNTS})
    for which in (codes.OF_Y, codes.OF_YP):
        found[f"matrix {which}"] = np.array(state.matrix.get(which))
    return found


def _fields(state):
    """Public fields: of a compiled class they are descriptors, as its properties are."""
    names = [name for name, member in vars(State).items()
             if isinstance(member, types.GetSetDescriptorType)]
    found = {}
    for name in names or vars(state):
        with contextlib.suppress(KeyError):        # a view of an array that there is not
            found[name] = getattr(state, name)
    return found


def changed(before, after):
    """Name what differs."""
    assert set(before) <= set(after)
    return {name for name in before
            if not np.array_equal(before[name], after[name], equal_nan=True)}
