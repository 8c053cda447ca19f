"""Whether there is enough memory for large objects; checked before they are made."""

from __future__ import annotations

import math
import os

__all__ = ["fits", "free_memory", "in_words", "require_matrices"]

# Bytes that are assumed to be free without a check.
ALWAYS_FITS = 2**27
# Number of full n x n matrices in use at once, measured by the memory of a run.
OF_A_RUN, OF_A_SEARCH, OF_FIXED_STEPS = 4, 20, 6


def require_matrices(n: int, count: int) -> None:
    """Raise an error if the matrices of n unknowns would not fit into the free memory.

    Raises
    ------
    MemoryError
        With the size needed.

    Examples
    --------
    >>> from tether.base.capacity import require_matrices
    >>> require_matrices(100, 4)
    """
    needed = 8 * count * n * n
    if not fits(needed):
        raise MemoryError(
            f"{n} unknowns need {in_words(needed)} of memory for {count} full matrices of "
            f"{n} x {n} numbers, but {in_words(free_memory())} are free: solve for fewer unknowns, "
            "or on a machine with more memory"
        )


def fits(needed: float) -> bool:
    """Tell whether this many bytes are free."""
    return needed <= ALWAYS_FITS or needed <= free_memory()


def in_words(size: float) -> str:
    """Format a number of bytes."""
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def free_memory() -> float:
    """Bytes that this process may still use; infinite if unknown."""
    return max(0.0, min(_of_machine(), _of_container(), _of_process()))


def _of_machine() -> float:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _of_container() -> float:
    """Return what the control group leaves, if there is one with a limit."""
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return float(limit) - float(used) if limit.isdigit() and used.isdigit() else math.inf


def _of_process() -> float:
    """Return what a limit of the address space leaves (``ulimit -v``)."""
    try:
        import resource
    except ImportError:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _read("/proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not pages:
        return math.inf
    return float(limit) - float(pages[0]) * resource.getpagesize()


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
