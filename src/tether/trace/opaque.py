"""Interpolants that are called from the graph, and products with sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.arrays import TracedArray, has_traced, lifted, plain
from tether.trace.batches import current
from tether.trace.guards import guards
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar
from tether.trace.standins import Unchanging

KNOWN_OF_INTERPOLANTS = frozenset(
    ("x", "c", "t", "k", "y", "axis", "extrapolate", "fill_value", "integrate", "roots", "solve",
     "get_knots", "get_coeffs")
)
_KNOWN_OF_MATRICES = frozenset(
    ("ndim", "size", "nnz", "data", "toarray", "diagonal", "sum", "mean", "trace")
)


def is_differentiable(value: Any) -> bool:
    """Tell whether a value is a SciPy interpolant: callable, with a derivative."""
    return (
        type(value).__module__.startswith("scipy.interpolate")
        and callable(value)
        and callable(getattr(value, "derivative", None))
    )


class OpaqueFunction(Unchanging):
    """Stands for an interpolant; a call with a traced number becomes a node of its own."""

    known = KNOWN_OF_INTERPOLANTS

    def __init__(self, function: Any, call: _Call | None = None) -> None:
        super().__init__(function)
        object.__setattr__(self, "_call", _Call(function) if call is None else call)

    def __call__(self, x: Any, *args: Any, **options: Any) -> Any:
        """Evaluate; at a traced number, make a node."""
        x = lifted(x)
        if isinstance(x, TracedArray) and has_traced(x):
            loop = np.frompyfunc(lambda u: self(u, *args, **options), 1, 1)
            return np.asarray(loop(plain(x)), dtype=object).view(TracedArray)
        if type(x) is not Scalar:
            return self._thing(x, *args, **options)
        if options or len(args) > 1:
            refuse("an interpolant with options is not known to tracing")
        guards.refuse_if_caught(ValueError)
        call = self._call
        for _ in range(args[0] if args else 0):
            call = call.derivative()
        if np.ndim(self._thing(0.0)) != 0:
            refuse("an interpolant with several values is not known to tracing")
        return Scalar(x.recorder, x.recorder.graph.opaque(call, x.node))

    def derivative(self, order: int = 1) -> OpaqueFunction:
        """Differentiate the interpolant."""
        call = self._call
        for _ in range(order):
            call = call.derivative()
        return OpaqueFunction(call.function, call)


class _Call:
    """An interpolant or one of its derivatives, as a function of one number."""

    def __init__(self, function: Any, order: int = 0) -> None:
        self.function, self.order = function, order
        self._derivative: _Call | None = None
        self.__name__ = type(function).__name__ + "'" * order

    def __call__(self, x: float) -> float:
        return float(self.function(x))

    def derivative(self) -> _Call:
        """Differentiate once; always the same object, so that nodes are shared."""
        if self._derivative is None:
            self._derivative = _Call(self.function.derivative(), self.order + 1)
        return self._derivative


class SparseMatrix(Unchanging):
    """Stands for a sparse matrix, whose products with traced vectors are sums over its entries."""

    known = _KNOWN_OF_MATRICES
    __array_ufunc__ = None

    def __matmul__(self, other: Any) -> Any:
        if current.batches is not None and isinstance(other, np.ndarray):
            return numpy_protocol.answers["product"](self._thing, other)
        other = lifted(other)
        if not has_traced(other):
            return self._thing @ np.asarray(plain(other), dtype=float)
        rows = self._thing.tocsr()
        columns = plain(other)
        result = np.zeros((rows.shape[0], *columns.shape[1:]), dtype=object)
        for i in range(rows.shape[0]):
            for k in range(rows.indptr[i], rows.indptr[i + 1]):
                result[i] = result[i] + float(rows.data[k]) * columns[rows.indices[k]]
        return result.view(TracedArray)

    def __rmatmul__(self, other: Any) -> Any:
        return (self.T @ np.asarray(other).T).T

    def dot(self, other: Any) -> Any:
        """Multiply with a vector or matrix on the right."""
        return self @ other

    def __mul__(self, other: Any) -> Any:
        if np.ndim(other) == 0:
            refuse("a sparse matrix times a traced number is not known to tracing")
        if hasattr(self._thing, "A1") or type(self._thing).__name__.endswith("matrix"):
            return self @ other
        refuse("the elementwise product with a sparse array is not known to tracing")

    @property
    def T(self) -> SparseMatrix:  # noqa: N802
        """Transpose."""
        return SparseMatrix(self._thing.T)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._thing.shape
