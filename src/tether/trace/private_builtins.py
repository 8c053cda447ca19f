"""The builtins of a traced function."""

from __future__ import annotations

import builtins
import functools
from typing import Any

from tether.trace.known import is_known_builtin
from tether.trace.refusal import refuse
from tether.trace.shims import BUILTINS
from tether.trace.standins import Forbidden

__all__ = ["private_builtins"]


def private_builtins() -> dict[str, Any]:
    """Return the builtins by name: themselves, their shims, or refusals."""
    own = vars(builtins)
    refused = {name: _refused(name) for name in own.keys() - _KNOWN - BUILTINS.keys()}
    return {**own, **BUILTINS, **refused, "hash": _hash}


@functools.lru_cache(256)
def _refused(name: str) -> Forbidden:
    return Forbidden(f"uses {name}, which is not known to tracing")


def _hash(value: Any) -> int:
    if type(value).__hash__ is object.__hash__:
        refuse("asks for the identity of an object")
    return hash(value)


_KNOWN = frozenset(filter(is_known_builtin, vars(builtins)))
