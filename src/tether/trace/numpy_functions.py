"""Replacements for NumPy functions whose own implementation cannot handle traced numbers."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace.array_functions import HANDLERS
from tether.trace.arrays import (
    TracedArray,
    as_class,
    as_dtype,
    class_of_value,
    converted,
    demoted,
    has_traced,
    is_float_dtype,
    lifted,
    plain,
    where,
)
from tether.trace.batches import current
from tether.trace.functions import UNARY
from tether.trace.guards import guards
from tether.trace.kinds import BOOL, BOXED, FLOAT, dtype_of
from tether.trace.piecewise import from_points
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, is_traced, of_kind, select
from tether.trace.splines import FILL, KEEP, Pieces

# With larger ones the expressions get too long.
_LARGEST_TABLE = 64
_LARGEST_SYSTEM = 8


def handles(function: Any) -> Callable[[Callable], Callable]:
    """Register the function that is called in place of a NumPy function."""

    def register(handler: Callable) -> Callable:
        HANDLERS[function] = handler
        return handler

    return register


def objects(value: Any) -> np.ndarray:
    """Convert anything array-like to an array of objects."""
    return np.asarray(plain(lifted(value))).astype(object)


# --- filled arrays --------------------------------------------------------------------------


def filled(shape: Any, value: Any, dtype: Any = None) -> Any:
    """Make an array of one value; one of floats can hold traced numbers."""
    if current.batches is not None:
        return numpy_protocol.answers["new array"](shape, value, as_dtype(dtype))
    if not is_float_dtype(dtype):
        return np.full(shape, value, dtype=as_dtype(dtype))
    if is_traced(value) and np.shape(np.empty(shape)) == ():
        return of_kind(FLOAT + BOXED, value)
    result = np.empty(shape, dtype=object)
    result.fill(as_class(FLOAT, value))
    return result.view(TracedArray)


def _like(value: float) -> Callable[..., Any]:
    def make(
        prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
    ) -> Any:
        prototype = lifted(prototype)
        chosen = _own_dtype(prototype) if dtype is None else dtype
        return _filled_like(prototype, value, chosen, order, shape)

    return make


def _filled_like(prototype: Any, value: Any, dtype: Any, order: Any, shape: Any) -> Any:
    """Make an array of one value with the memory order of another array."""
    pattern = np.asarray(plain(prototype))
    made = filled(pattern.shape if shape is None else shape, value, dtype)
    if np.ndim(made) < 2:
        return made
    placed = np.empty_like(pattern, made.dtype, order, subok=False, shape=made.shape)
    placed[...] = made.view(np.ndarray)
    return placed.view(type(made))


def _own_dtype(prototype: Any) -> np.dtype:
    if type(prototype) in (Scalar, TracedArray):
        return dtype_of(class_of_value(prototype))
    return np.asarray(prototype).dtype


zeros_like, ones_like, empty_like = _like(0.0), _like(1.0), _like(math.nan)
HANDLERS |= {np.zeros_like: zeros_like, np.ones_like: ones_like, np.empty_like: empty_like}


@handles(np.full_like)
def full_like(
    prototype: Any, value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None,
) -> Any:
    """Make an array of one value with the shape of another."""
    prototype = lifted(prototype)
    chosen = _own_dtype(prototype) if dtype is None else dtype
    if np.ndim(plain(value)):
        refuse("np.full_like with several values is not known to tracing")
    value = plain(value)[()] if isinstance(value, TracedArray) else value
    value = value[()] if isinstance(value, np.ndarray) else value
    if is_traced(value) and not is_float_dtype(chosen):
        refuse("stores traced numbers as integers")
    return _filled_like(prototype, value, chosen, order, shape)


# --- choices ----------------------------------------------------------------------------------


@handles(np.where)
def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        refuse("np.where of a traced condition gives an unknown number of places")
    return where(condition, *choices)


@handles(np.select)
def _select(conditions: Sequence[Any], choices: Sequence[Any], default: Any = 0.0) -> Any:
    conditions = [_condition(x) for x in conditions]
    result: Any = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = where(condition, choice, result)
    return result


def _condition(value: Any) -> Any:
    value = lifted(value)
    if class_of_value(value) != BOOL:
        refuse("picks elements by something other than a condition")
    return value


@handles(np.piecewise)
def _piecewise(x: Any, conditions: Any, functions: Sequence[Any], *args: Any, **more: Any) -> Any:
    x = lifted(x)
    if class_of_value(x) != FLOAT or not isinstance(x, np.ndarray):
        refuse("np.piecewise of these values is not known to tracing")
    if x.ndim == 0:
        line = [objects(c).reshape(1).view(TracedArray) for c in conditions]
        (result,) = _piecewise(objects(x).reshape(1).view(TracedArray), line, functions, *args)
        return result
    x = x.view(TracedArray)
    several = np.ndim(plain(lifted(conditions))) > x.ndim or isinstance(conditions, (list, tuple))
    conditions = [_condition(c) for c in conditions] if several else [_condition(conditions)]
    values = [_of_each_element(f, x, args, more) if callable(f) else f for f in functions]
    result = values.pop() if len(values) > len(conditions) else 0.0
    # a later condition wins over an earlier one
    for condition, value in zip(conditions, values, strict=True):
        if np.shape(plain(condition)) != x.shape or np.ndim(plain(value)) not in (0, x.ndim):
            refuse("np.piecewise with values of other shapes is not known to tracing")
        result = where(condition, value, result)
    return converted(result, FLOAT)


def _of_each_element(function: Any, x: TracedArray, args: tuple, more: dict) -> Any:
    """Values of a function at the elements of an array; each must depend on its element only.

    NumPy calls the function only with those elements for which a condition holds.
    """
    recorder = next(u.recorder for u in plain(x).flat if is_traced(u))
    with recorder.without_branches("a function that np.piecewise calls"):
        together = lifted(function(x.ravel(), *args, **more))
        alone = [lifted(function(x.ravel()[i : i + 1], *args, **more)) for i in range(x.size)]
    if np.ndim(plain(together)) == 0 and all(np.ndim(plain(one)) == 0 for one in alone):
        together = np.full(x.size, plain(together), dtype=object).view(TracedArray)
        alone = [objects(one).reshape(1) for one in alone]
    same = np.shape(together) == (x.size,) and all(
        np.shape(one) == (1,) and _is_same(plain(one)[0], two)
        for one, two in zip(alone, plain(together), strict=True)
    )
    if not same:
        refuse("np.piecewise with a function that looks at several elements is not known")
    return together.reshape(x.shape)


def _is_same(x: Any, y: Any) -> bool:
    return x.node == y.node if is_traced(x) and is_traced(y) else _equal(x, y)


@handles(np.interp)
def _interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    if has_traced(lifted(xp)):
        refuse("np.interp with traced nodes is not known to tracing")
    xs, fs = np.asarray(demoted(lifted(xp))), objects(fp)
    if len(xs) == len(fs) == 1 and period is None:
        return _from_one_node(lifted(x), float(xs[0]), fs[0], left, right)
    if has_traced(x) and not has_traced((*fs, left, right)):
        return _from_table(lifted(x), xs, np.asarray(demoted(lifted(fp))), left, right, period)
    if period is not None or len(xs) > _LARGEST_TABLE:
        refuse(f"np.interp of traced values with a period, or more than {_LARGEST_TABLE} of them, "
               "is not known to tracing")  # fmt: skip
    if np.any(np.diff(xs) <= 0.0):
        refuse("np.interp with nodes that do not ascend is not known to tracing")
    left, right = (x[()] if isinstance(x, np.ndarray) else x for x in (left, right))
    left, right = (fs[0] if left is None else left), (fs[-1] if right is None else right)
    points = list(zip(xs.tolist(), fs, strict=True))

    def value(u: Any) -> Any:
        result = fs[-1] + 0.0 * u
        for (x0, f0), (x1, f1) in reversed(list(itertools.pairwise(points))):
            line = (f1 - f0) / (x1 - x0) * (u - x0) + f0
            result = select(u < x1, line, result) if x1 < xs[-1] else line
        result = select(u >= xs[-1], select(u > xs[-1], right, fs[-1]), result)
        return select(u < xs[0], left, result)

    return np.frompyfunc(value, 1, 1)(plain(lifted(x)))


def _from_one_node(x: Any, node: float, here: Any, left: Any, right: Any) -> Any:
    """Interpolate in a table of one number, which NumPy returns even for NaN."""
    below, above = (here if end is None else plain(end)[()] if isinstance(end, np.ndarray) else end
                    for end in (left, right))

    def value(u: Any) -> Any:
        return select(u < node, below, select(u > node, above, here))

    return np.frompyfunc(value, 1, 1)(plain(x))


def _from_table(
    x: Any, xs: np.ndarray, fs: np.ndarray, left: Any, right: Any, period: Any
) -> Any:
    """Interpolate between given numbers, with one node for each x."""
    if xs.ndim != 1 or fs.shape != xs.shape or fs.dtype.kind not in "fiub" or not len(xs):
        refuse("np.interp with these nodes is not known to tracing")
    if not np.isfinite(fs.astype(float)).all():
        refuse("np.interp between numbers that are not finite is not known to tracing")
    xs, fs = xs.astype(float), fs.astype(float)
    outside, fill = KEEP, (left, right)
    if period is not None:
        period = abs(period)
        order = np.argsort(xs % period)
        xs, fs = (xs % period)[order], fs[order]
        xs = np.concatenate([xs[-1:] - period, xs, xs[:1] + period])
        fs = np.concatenate([fs[-1:], fs, fs[:1]])
        x = np.asarray(plain(x)) % period
    elif left is not None or right is not None:
        outside, fill = FILL, (fs[0] if left is None else left, fs[-1] if right is None else right)
    if np.any(np.diff(xs) < 0.0):
        refuse("np.interp with nodes that do not ascend is not known to tracing")
    table = np.empty((), dtype=object)
    table[()] = from_points(xs, fs, "interp", stays=True)
    pieces = Pieces(table, (float(xs[0]), float(xs[-1])), outside, fill)

    def value(u: Any) -> Any:
        return pieces.at(u) if is_traced(u) else np.interp(u, xs, fs, left, right)

    return np.frompyfunc(value, 1, 1)(plain(x))


@handles(np.sinc)
def _sinc(x: Any) -> Any:
    def value(u: Any) -> Any:
        if not is_traced(u):
            return float(np.sinc(u))
        return select(u == 0.0, 1.0, UNARY["sin"](math.pi * u) / (math.pi * u))

    return np.frompyfunc(value, 1, 1)(plain(lifted(x)))


# --- differences --------------------------------------------------------------------------


@handles(np.searchsorted)
def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find places by branches, since a place serves as an index and has to be an integer."""
    edges = demoted(a)
    if sorter is not None or has_traced(edges) or np.ndim(edges) != 1:
        refuse("np.searchsorted with these arguments is not known to tracing")
    if np.any(np.diff(edges) < 0):
        raise ValueError("np.searchsorted of numbers that are not sorted")
    find = {"left": bisect.bisect_left, "right": bisect.bisect_right}[side]
    known, wanted = edges.tolist(), objects(v)
    found = [find(known, x) for x in wanted.flat]
    return np.array(found, np.int64).reshape(wanted.shape)[()]


@handles(np.digitize)
def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    return _searchsorted(bins, x, "left" if right else "right")


@handles(np.gradient)
def _gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    values = objects(f)
    axes = range(values.ndim) if axis is None else np.atleast_1d(axis) % values.ndim
    if len(spacing) not in (0, 1, len(axes)):
        raise TypeError("invalid number of arguments")
    if len(spacing) == 1 and np.ndim(spacing[0]) and len(axes) > 1:
        raise ValueError("distances must be scalars or one for each axis")
    given = list(spacing) * len(axes) if len(spacing) == 1 else list(spacing) or [1.0] * len(axes)
    found = [
        _slope(values, place, distance, int(edge_order))
        for place, distance in zip(axes, given, strict=True)
    ]
    if len(found) == 1:
        return found[0]
    return tuple(found)


def _slope(values: np.ndarray, axis: int, spacing: Any, edge_order: int) -> Any:
    """Slopes by differences, of second order inside and of order `edge_order` at the edges."""
    f = np.moveaxis(values, axis, 0)
    if len(f) < edge_order + 1 or edge_order not in (1, 2):
        raise ValueError("Shape of array too small to calculate a numerical gradient")
    result = np.empty_like(f)
    if np.ndim(spacing) == 0:
        result[1:-1] = (f[2:] - f[:-2]) / (2.0 * spacing)
        steps = [spacing] * 2, [spacing] * 2
    else:
        h = np.diff(objects(spacing))
        if h.shape != (len(f) - 1,):
            raise ValueError("distances must match the length of the corresponding dimension")
        if not has_traced(h) and bool(np.all(h == h[0])):
            return _slope(values, axis, h[0], edge_order)
        shape = (-1,) + (1,) * (f.ndim - 1)
        before, after = h[:-1].reshape(shape), h[1:].reshape(shape)
        result[1:-1] = (
            -after / (before * (before + after)) * f[:-2]
            + (after - before) / (before * after) * f[1:-1]
            + before / (after * (before + after)) * f[2:]
        )
        steps = list(h[:2]), list(h[::-1][:2])
    for place, step, sign in ((0, steps[0], 1.0), (-1, steps[1], -1.0)):
        near = f[:3] if place == 0 else f[::-1][:3]
        result[place] = sign * _edge(near, step, edge_order)
    return np.moveaxis(result, 0, axis).view(TracedArray)


def _edge(f: Any, h: Any, order: int) -> Any:
    """Slope at the first of two or three points, in the direction of the others."""
    if order == 1:
        return (f[1] - f[0]) / h[0]
    a = -(2.0 * h[0] + h[1]) / (h[0] * (h[0] + h[1]))
    b = (h[0] + h[1]) / (h[0] * h[1])
    c = -h[0] / (h[1] * (h[0] + h[1]))
    return a * f[0] + b * f[1] + c * f[2]


# --- linear algebra -----------------------------------------------------------------------


@handles(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = objects(x).view(TracedArray)
    if axis is None and (ord is None or (x.ndim == 1 and ord == 2)):
        x, axis, ord = x.ravel(), 0, 2
    if ord in (None, 2) and isinstance(axis, int):
        return np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))
    if ord == 1 and x.ndim == 1:
        return abs(x).sum()
    if ord == math.inf and x.ndim == 1:
        return abs(x).max()
    refuse("this norm is not known to tracing")


@handles(np.linalg.solve)
def _solve(matrix: Any, right: Any) -> Any:
    rows, columns = _square(matrix), objects(right)
    if columns.shape[:1] != rows.shape[:1] or columns.ndim > 2:
        refuse("np.linalg.solve of stacked systems is not known to tracing")
    if has_traced(rows):
        guards.refuse_if_caught(np.linalg.LinAlgError)
    flat = columns.reshape(len(rows), -1)
    if not has_traced(rows):
        solution = objects(np.linalg.inv(rows.astype(float))) @ flat
    elif len(rows) <= 3:
        determinant = _expand(rows)
        solution = _adjugate(rows) @ flat / determinant
    elif len(rows) <= _LARGEST_SYSTEM and _is_symmetric(rows):
        solution = _eliminate([list(row) for row in rows], [list(row) for row in flat])
    else:
        refuse(f"np.linalg.solve with more than 3 traced rows, or {_LARGEST_SYSTEM} if they are "
               "symmetric, is not known to tracing")  # fmt: skip
    return np.asarray(solution, dtype=object).reshape(columns.shape)


@handles(np.linalg.inv)
def _inv(matrix: Any) -> Any:
    matrix = _square(matrix)
    return _solve(matrix, np.eye(len(matrix)))


@handles(np.linalg.det)
def _det(matrix: Any) -> Any:
    rows = _square(matrix)
    if len(rows) > 4:
        refuse("np.linalg.det of more than four traced rows is not known to tracing")
    return _expand(rows)


def _square(matrix: Any) -> np.ndarray:
    matrix = objects(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        refuse("stacked matrices are not known to tracing")
    return matrix


def _expand(rows: np.ndarray) -> Any:
    """Compute a determinant by expansion along the first row."""
    if len(rows) == 0:
        return 1.0
    minors = (_expand(np.delete(rows[1:], j, axis=1)) for j in range(len(rows)))
    signs = itertools.cycle((1.0, -1.0))
    terms = (s * x * m for s, x, m in zip(signs, rows[0], minors, strict=False))
    return sum(terms, start=0.0)


def _adjugate(rows: np.ndarray) -> np.ndarray:
    """Matrix of cofactors, transposed: the inverse times the determinant."""
    result = np.empty(rows.shape, dtype=object)
    for i, j in np.ndindex(rows.shape):
        minor = np.delete(np.delete(rows, i, axis=0), j, axis=1)
        result[j, i] = (-1.0) ** (i + j) * _expand(minor)
    return result


def _is_symmetric(rows: np.ndarray) -> bool:
    def same(x: Any, y: Any) -> bool:
        return x.node == y.node if is_traced(x) and is_traced(y) else x is y or _equal(x, y)

    return all(same(rows[i, j], rows[j, i]) for i in range(len(rows)) for j in range(i))


def _equal(x: Any, y: Any) -> bool:
    return not is_traced(x, y) and x == y


def _eliminate(rows: list[list], right: list[list]) -> list[list]:
    """Gaussian elimination down the diagonal.

    Safe for the symmetric matrices that occur in residuals: positive definite ones, also bordered
    by constraints. A pivot that is identically zero is avoided by exchanging rows.
    """
    n = len(rows)
    for k in range(n):
        best = next((i for i in range(k, n) if not _is_zero(rows[i][k])), k)
        rows[k], rows[best], right[k], right[best] = rows[best], rows[k], right[best], right[k]
        for i in range(k + 1, n):
            if not _is_zero(rows[i][k]):
                factor = rows[i][k] / rows[k][k]
                for target, source in ((rows[i], rows[k]), (right[i], right[k])):
                    target[:] = [x - factor * y for x, y in zip(target, source, strict=True)]
                rows[i][k] = 0.0
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            right[k] = [x - rows[k][i] * y for x, y in zip(right[k], right[i], strict=True)]
        right[k] = [x / rows[k][k] for x in right[k]]
    return right


def _is_zero(entry: Any) -> bool:
    return entry.node == entry.recorder.graph.zero if is_traced(entry) else entry == 0.0
