"""Libraries that factor sparse matrices, behind the interface of the user's own solvers."""

from __future__ import annotations

import sys
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tether._core.sparse import Sparse
from tether.base.pattern import Pattern

if TYPE_CHECKING:
    from tether._core.klu import Library

__all__ = ["find_klu", "with_solver"]


# The entry of PARDISO's iparm with the number of pivots that it has perturbed.
PERTURBED_PIVOTS = 14


class SuperLU:
    """SciPy's SuperLU.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from tether.plan.libraries import SuperLU
    >>> solver = SuperLU()
    >>> solver.factor(csc_array([[2.0, 0.0], [0.0, 4.0]]))
    >>> solver.solve([2.0, 2.0])
    array([1. , 0.5])
    """

    def __init__(self) -> None:
        from scipy.sparse.linalg import splu  # late, to save time

        self._splu = splu

    def factor(self, matrix: Any) -> None:
        """Factor a matrix; one that is singular raises RuntimeError."""
        self._factors = self._splu(matrix)

    def solve(self, b: Any) -> np.ndarray:
        """Solve with the factors."""
        solution: np.ndarray = self._factors.solve(np.asarray(b, float))
        return solution


class Pardiso:
    """Intel's PARDISO, by way of pypardiso."""

    def __init__(self) -> None:
        try:
            from pypardiso import PyPardisoSolver
        except ImportError as error:
            raise ValueError(
                "linear_solver='pardiso' needs pypardiso: pip install pypardiso"
            ) from error
        self._solver = PyPardisoSolver()

    def factor(self, matrix: Any) -> None:
        """Factor a matrix; PARDISO replaces zero pivots, and counts them."""
        self._matrix = matrix.tocsr()
        if not np.diff(self._matrix.indptr).all():
            raise np.linalg.LinAlgError("a row is empty")
        self._solver.factorize(self._matrix)
        if self._solver.get_iparm(PERTURBED_PIVOTS) > 0:
            raise np.linalg.LinAlgError("a pivot is zero")

    def solve(self, b: Any) -> np.ndarray:
        """Solve with the factors."""
        solution: np.ndarray = self._solver.solve(self._matrix, b)
        return solution

    def __del__(self) -> None:
        if hasattr(self, "_solver"):
            self._solver.free_memory(everything=True)


# Names of the system's KLU, and places of those in wheels: in folders beside or inside their
# packages, or in a module of their own.
KLU_NAMES = ("libklu.so.2", "libklu.so.1", "libklu.so", "libklu.dylib", "klu.dll", "libklu.dll")
KLU_PLACES = (
    "*.libs/libklu*", "*/.dylibs/libklu*", "*.libs/klu*.dll", "klujax_cpp*.so", "klujax_cpp*.pyd"
)


@lru_cache(maxsize=1)
def find_klu() -> Library | None:
    """Return KLU if it is installed on this machine, else None."""
    from pathlib import Path  # late, to save time

    from tether._core.klu import Library

    prefix = Path(sys.prefix) / "lib"
    candidates = [*KLU_NAMES, *(str(prefix / name) for name in KLU_NAMES)]
    for folder in sys.path:
        for place in KLU_PLACES:
            candidates += sorted(map(str, Path(folder or ".").glob(place)))
    for candidate in candidates:
        try:
            return Library(candidate)
        except (OSError, AttributeError):
            continue
    return None


def klu_or_advice() -> Library:
    """Return KLU, or say how to get it."""
    library = find_klu()
    if library is None:
        raise ValueError(
            "linear_solver='klu' needs KLU, which was not found: install it with the packages of "
            "the system (Debian and Ubuntu: apt install libsuitesparse-dev; conda: suitesparse), "
            "or a wheel that contains it (pip install pybammsolvers)"
        )
    return library


def with_solver(pattern: Pattern, solver: Any) -> Sparse:
    """Make matrices factored by a library, given by its name, or by an object of the user's."""
    if isinstance(solver, str) and solver == "klu":
        library = klu_or_advice()
        from tether._core.klu import KluFactors  # late, to save time

        return Sparse(pattern, partial(KluFactors, library))
    from tether._core.foreign import Foreign

    return Foreign(pattern, OBJECTS[solver]() if isinstance(solver, str) else solver)


OBJECTS = {"superlu": SuperLU, "pardiso": Pardiso}
