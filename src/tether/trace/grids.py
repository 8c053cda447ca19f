"""Tables of two and more variables: SciPy's interpolants on a grid, as products of splines.

An interpolant on a grid is a sum of products, f(x, y) = sum_j g_j(x) w_j(y). With linear
interpolation g_j goes through the values on one line of the grid, and w_j is one at that line and
zero at the others; with splines of higher degree w_j is the basis spline of number j. Each factor
is a piecewise polynomial of one variable (`tether.trace.splines`), so derivatives are exact.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tether.trace.arrays import (
    TracedArray,
    demoted_deep,
    has_traced,
    lifted,
    plain,
    promoted,
)
from tether.trace.functions import clip
from tether.trace.guards import guards
from tether.trace.kinds import BOXED, FLOAT
from tether.trace.numpy_functions import objects
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, is_traced, logical_and, of_kind, select
from tether.trace.splines import interpolant
from tether.trace.standins import ConstantsOnly, Unchanging

__all__ = ["interpolant_on_grid"]

# With more lines of a grid than this, the expressions get too long.
MOST_LINES = 256


class _Product:
    """A sum of products of splines, one factor for each variable."""

    def __init__(self, axes: Sequence[tuple[np.ndarray, int]], values: np.ndarray) -> None:
        """Make it from knots and degree for each axis, and coefficients."""
        spline = sys.modules["scipy.interpolate"].BSpline
        (knots, degree), *others = axes
        self._first = interpolant(spline(knots, values, degree))
        self._weights = [
            interpolant(spline(knots, np.eye(len(knots) - degree - 1), degree))
            for knots, degree in others
        ]

    def at(self, point: Sequence[Any], orders: Sequence[int]) -> Any:
        """Evaluate the derivative of these orders at a point."""
        result = plain(self._first(point[0], orders[0]))
        for weights, x, order in zip(self._weights, point[1:], orders[1:], strict=True):
            factors = plain(weights(x, order))
            result = sum(part * factor for part, factor in zip(result, factors, strict=True))
        return result[()] if isinstance(result, np.ndarray) else result


class RegularGrid(Unchanging):
    """Stands for a `RegularGridInterpolator` that is linear between the points."""

    known = frozenset(("grid", "values", "method", "bounds_error", "fill_value"))

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        ends = [(float(x[0]), float(x[-1])) for x in function.grid]
        axes = [(np.concatenate([x[:1], x, x[-1:]]), 1) for x in function.grid]
        object.__setattr__(self, "_ends", ends)
        object.__setattr__(self, "_product", _Product(axes, np.asarray(function.values, float)))

    def __call__(self, xi: Any, method: str | None = None, **options: Any) -> Any:
        """Evaluate; at traced points, make nodes."""
        if options or method not in (None, "linear"):
            refuse("an interpolant on a grid with these options is not known to tracing")
        if not has_traced(lifted(xi)):
            return promoted(np.array(self._thing(demoted_deep(xi))))
        points = _points(xi, len(self._ends))
        values = [self._value(point) for point in points.reshape(-1, len(self._ends))]
        return _in_shape(values, points.shape[:-1])

    def _value(self, point: Any) -> Any:
        value = self._product.at(point, (0,) * len(point))
        fill = math.nan if self._thing.bounds_error else self._thing.fill_value
        if self._thing.bounds_error:
            guards.refuse_if_caught(ValueError)
        if fill is None:
            return value
        for x, (low, high) in zip(point, self._ends, strict=True):
            inside = logical_and(x >= low, x <= high) if is_traced(x) else low <= x <= high
            value = select(inside, value, float(fill)) if is_traced(inside) else (
                value if inside else float(fill)
            )
        return value


class GridFunction:
    """Stands for `scipy.interpolate.interpn` between given numbers."""

    __slots__ = ("_function",)

    _function: Any

    def __init__(self, function: Any) -> None:
        object.__setattr__(self, "_function", function)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse(f"writes to {name} of interpn")

    def __call__(
        self, points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
        fill_value: Any = math.nan,
    ) -> Any:
        """Evaluate; at traced points, make nodes."""
        if not has_traced((lifted(points), lifted(values), lifted(xi))):
            return ConstantsOnly(self._function)(points, values, xi, method, bounds_error,
                                                 fill_value)
        if has_traced(tuple(map(lifted, points))) or has_traced(lifted(values)):
            refuse("interpn of traced values is not known to tracing")
        made = sys.modules["scipy.interpolate"].RegularGridInterpolator(
            tuple(map(demoted_deep, points)), demoted_deep(values), method, bounds_error, fill_value
        )
        table = interpolant_on_grid(made)
        if table is None:
            refuse("interpn of such a table is not known to tracing")
        return table(np.stack(np.broadcast_arrays(*map(objects, xi)), axis=-1).view(TracedArray)
                     if type(xi) is tuple else xi)


class BivariateSpline(Unchanging):
    """Stands for a `RectBivariateSpline`, which is constant outside its grid."""

    known = frozenset(("tck", "degrees", "fp"))

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        *knots, coefficients = function.tck
        axes = list(zip(knots, function.degrees, strict=True))
        shape = [len(t) - k - 1 for t, k in axes]
        object.__setattr__(self, "_ends", [(float(t[k]), float(t[-k - 1])) for t, k in axes])
        product = _Product(axes, np.asarray(coefficients, float).reshape(shape))
        object.__setattr__(self, "_product", product)

    def __call__(self, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
        """Evaluate; at traced points, make nodes."""
        if not has_traced((lifted(x), lifted(y))):
            return promoted(np.array(self._thing(demoted_deep(x), demoted_deep(y), dx, dy, grid)))
        x, y = objects(x), objects(y)
        if grid and (x.size > 1 or y.size > 1):
            refuse("a spline on a grid of traced points is not known to tracing")
        x, y = np.broadcast_arrays(x, y)
        values = [self._value(point, (dx, dy)) for point in zip(x.flat, y.flat, strict=True)]
        return _in_shape(values, (1, 1) if grid else x.shape)

    def ev(self, xi: Any, yi: Any, dx: int = 0, dy: int = 0) -> Any:
        """Evaluate at single points."""
        return self(xi, yi, dx, dy, grid=False)

    def _value(self, point: Sequence[Any], orders: tuple[int, int]) -> Any:
        ends = zip(point, self._ends, strict=True)
        inside = [clip(x, *end) if is_traced(x) else min(max(x, end[0]), end[1]) for x, end in ends]
        return self._product.at(inside, orders)


def _points(xi: Any, n: int) -> np.ndarray:
    """Points as SciPy reads them, the coordinates along the last axis."""
    if type(xi) is tuple and len(xi) == 1:
        xi = xi[0]
    if type(xi) is tuple:
        return np.stack(np.broadcast_arrays(*map(objects, xi)), axis=-1)
    points = objects(xi)
    points = points.reshape(-1, n) if points.ndim == 1 else points
    if points.shape[-1] != n:
        raise ValueError(f"The requested sample points xi have dimension {points.shape[-1]}")
    return points


def _in_shape(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return of_kind(FLOAT + BOXED, values[0]) if type(values[0]) is Scalar else values[0]
    return np.fromiter(values, object, len(values)).reshape(shape).view(TracedArray)


def function_on_grid(function: Any) -> GridFunction | None:
    """Return the stand-in for `interpn`, None for any other function."""
    module = sys.modules.get("scipy.interpolate")
    is_known = module is not None and function is getattr(module, "interpn", None)
    return GridFunction(function) if is_known else None


def interpolant_on_grid(value: Any) -> Any:
    """Return the stand-in for an interpolant on a grid; None for other or too large objects."""
    module = sys.modules.get("scipy.interpolate")
    if module is None:
        return None
    if type(value) is module.RegularGridInterpolator:
        lines = math.prod(len(x) for x in value.grid[1:])
        fits = value.method == "linear" and value.values.shape == tuple(map(len, value.grid))
        finite = value.values.dtype.kind in "fiu" and np.isfinite(value.values).all()
        return RegularGrid(value) if fits and finite and lines <= MOST_LINES else None
    if type(value) is module.RectBivariateSpline:
        lines = len(value.tck[1]) - value.degrees[1] - 1
        return BivariateSpline(value) if lines <= MOST_LINES else None
    return None
