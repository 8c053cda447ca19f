"""Hold Python's collector of cyclic garbage off while very many objects are made that stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["held_off"]

_lock = threading.Lock()
_holders = 0
_was_on = False


@contextmanager
def held_off() -> Iterator[None]:
    """Let no collection begin by itself meanwhile; afterwards all is as before.

    Expressions are tens of thousands of small tuples without cycles. The collector counts them,
    and goes through all objects of the process time and again, in vain: with a few libraries
    loaded that takes longer than everything else of a first call. Several threads may be in here.

    Examples
    --------
    >>> import gc
    >>> from tether.base.collector import held_off
    >>> before = gc.isenabled()
    >>> with held_off():
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
