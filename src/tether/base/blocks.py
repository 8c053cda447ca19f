"""Large blocks of memory, passed on from one run to the next.

New pages from the system are zeroed one by one when they are first touched. At a hundred thousand
unknowns that took a fifth of the time of a run of some forty steps.
"""

from __future__ import annotations

import weakref

import numpy as np

__all__ = ["zeros"]

SMALLEST = 1 << 15             # numbers; smaller blocks are left to NumPy
MOST = 1 << 24                 # numbers kept in all blocks together
_spare: dict[int, np.ndarray] = {}     # by identity, the oldest first


def zeros(size: int) -> np.ndarray:
    """Return `size` zeros; a large block is used again once nothing refers to it any more.

    Examples
    --------
    >>> from tether.base.blocks import zeros
    >>> zeros(3)
    array([0., 0., 0.])
    """
    if size < SMALLEST:
        return np.zeros(size)
    owner = _fitting(size)
    is_new = owner is None
    if owner is None:
        owner = np.zeros(size)
    # NumPy's views would refer to the owner, and not to each other.
    block = np.frombuffer(owner.data, count=size)
    if not is_new:
        block[:] = 0.0
    weakref.finalize(block, _recycle, owner).atexit = False
    return block


def _fitting(size: int) -> np.ndarray | None:
    """Take the smallest of the spare blocks that is large enough, but not much too large.

    Threads may search at the same time; `pop` gives a block to one of them.
    """
    fitting = [owner for owner in list(_spare.values()) if size <= len(owner) <= 2 * size]
    return _spare.pop(id(min(fitting, key=len)), None) if fitting else None


def _recycle(owner: np.ndarray) -> None:
    """Keep a block for later use; free the oldest ones if there are too many."""
    _spare[id(owner)] = owner
    owners = list(_spare.values())
    excess = sum(map(len, owners)) - MOST
    for oldest in owners:
        if excess <= 0:
            return
        excess -= len(oldest)
        _spare.pop(id(oldest), None)
