"""Pause Python's cyclic garbage collector while very many permanent objects are made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collection_paused"]

_lock = threading.Lock()
_holders = 0
_was_on = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let no automatic collection start in the meantime; afterwards restore the setting.

    Expressions are tens of thousands of small tuples without cycles. The collector counts them, and
    repeatedly goes through all objects of the process, in vain: with a few libraries loaded that
    takes longer than everything else in a first call. Several threads may use this at once.

    Examples
    --------
    >>> import gc
    >>> from tether.base.collector import collection_paused
    >>> before = gc.isenabled()
    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled() == before
    True
    """
    global _holders, _was_on
    with _lock:
        if _holders == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0 and _was_on:
                gc.enable()
