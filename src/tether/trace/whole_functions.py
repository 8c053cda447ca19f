"""NumPy's functions on whole arrays (`whole_arrays.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tether.trace import numpy_protocol
from tether.trace import opcodes as op
from tether.trace.array_functions import apply_function
from tether.trace.arrays import apply_ufunc, where
from tether.trace.graph import Graph
from tether.trace.kinds import BOOL, FLOAT, NUMPY, class_of
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar
from tether.trace.whole_arrays import (
    WholeArray,
    batches_now,
    boxed,
    element_of,
    elements_of,
    gathered,
    has_elements,
    new_array,
    plain_array,
    promoted,
    whole,
)

__all__ = ["of_math", "product_with", "run_function", "run_ufunc"]

# Sums of up to so many terms are chains of additions, in NumPy's order.
_FEW_TERMS = 8
# The most elements that other reductions combine one by one, and the most terms of cumulative sums
# and of products of traced arrays.
_LONGEST_REDUCTION, _MOST_TERMS = 64, 2_000_000

# --- universal functions --------------------------------------------------------------------


@numpy_protocol.register("whole ufunc")
def run_ufunc(ufunc: Any, method: str, inputs: tuple, options: dict) -> Any:
    """Run a universal function."""
    operands = [gathered(x) if isinstance(x, (list, tuple)) else x for x in inputs]
    (target,) = options.pop("out", None) or (None,)
    options = {k: v for k, v in options.items() if not (k == "where" and v is True)}
    if not any(map(has_elements, operands)):
        result = getattr(ufunc, method)(*map(plain_array, operands), **options)
        return _stored(promoted(result), target)
    if method == "__call__":
        options = {k: v for k, v in options.items() if k not in ("casting", "order", "subok")}
        if options.pop("dtype", None) not in (None, np.dtype(float), float) or options:
            refuse(f"np.{ufunc.__name__} with these options is not known to tracing")
        products = {np.matmul: _matmul, getattr(np, "vecdot", None): _vecdot}
        run = products.get(ufunc, lambda *values: _elementwise(ufunc, *values))
        return _stored(run(*operands), target)
    if method == "reduce":
        return _stored(_reduce(ufunc, operands[0], **options), target)
    if method == "accumulate" and ufunc is np.add:
        return _stored(_cumulative(operands[0], **options), target)
    if method == "outer" and len(operands) == 2:
        first, second = map(np.asanyarray, operands)
        shape = first.shape + (1,) * second.ndim
        return _stored(_elementwise(ufunc, first.reshape(shape), second), target)
    if method == "at" and ufunc in (np.add, np.subtract) and len(operands) == 3:
        target, places, values = operands
        return _scattered(target, places, values, 1.0 if ufunc is np.add else -1.0)
    refuse(f"np.{ufunc.__name__}.{method} is not known to tracing")


def _stored(result: Any, target: Any) -> Any:
    if target is None:
        return result
    target[...] = plain_array(result)
    return target


@numpy_protocol.register("math")
def of_math(name: str, args: tuple) -> Any:
    """Run a function of `math` on traced numbers."""
    name = {"pow": "power"}.get(name, name)
    for known in (name, f"arc{name[1:]}" if name.startswith("a") else name):
        ufunc = getattr(np, known, None)
        if isinstance(ufunc, np.ufunc) and all(np.ndim(x) == 0 for x in args):
            return ufunc(*args)
    refuse(f"math.{name} of an array is not known to tracing")


class _NoBranches:
    """Recorder for expressions of one element, which must not branch."""

    def __init__(self) -> None:
        self.graph = Graph()

    def decide(self, condition: int) -> bool:
        refuse("branches on a traced number")


def _elementwise(ufunc: Any, *operands: Any) -> Any:
    def run(*scalars: Any) -> Any:
        return apply_ufunc(ufunc, "__call__", scalars, {})

    return _of_each_element(run, operands)


def _of_each_element(run: Callable[..., Any], operands: tuple | list) -> Any:
    """Apply a function of numbers to each element, by running it once on symbols."""
    recorder = _NoBranches()
    arrays = [np.asarray(plain_array(x)) for x in operands]
    for x in arrays:
        if x.dtype.kind not in "fiub" or x.dtype.itemsize > 8:
            refuse(f"computes with {x.dtype.name}")
        if x.dtype.kind == "f" and x.dtype.itemsize < 8:
            refuse(f"computes with {x.dtype.name}")
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    scalars: list[Any] = []
    given: list[np.ndarray] = []
    for original, x in zip(operands, arrays, strict=True):
        number = _only_number(x)
        if number is not None:
            scalars.append(number)
            continue
        kind = BOOL if x.dtype == bool or getattr(original, "is_condition", False) else FLOAT
        scalars.append(Scalar(recorder, recorder.graph.y(len(given)), kind + NUMPY))
        found = elements_of(x.astype(float))
        if x.shape != shape and x.size > 1:
            found = np.broadcast_to(found, shape)
        given.append(found.ravel())
    result = run(*scalars)
    if type(result) is not Scalar:             # it does not depend on the elements
        return whole(np.full(shape, float(result)))
    kind = class_of(result.kind)
    if kind not in (BOOL, FLOAT):
        refuse("computes integers of traced numbers")
    elements = _replayed(recorder.graph, result.node, given)
    if len(elements) == 1:
        elements = np.full(int(np.prod(shape)), elements[0])
    return boxed(_laid_out(elements.reshape(shape), arrays), kind == BOOL)


def _laid_out(result: np.ndarray, operands: list[np.ndarray]) -> np.ndarray:
    """Give a result the memory order that it has in NumPy, which is that of its operands.

    The order decides whether reshaping the result makes a copy, or a view that can be written to.
    """
    if result.ndim < 2 or all(x.ndim < 2 or x.flags.c_contiguous for x in operands):
        return result
    made = np.nditer([*(x.astype(float) for x in operands), None]).operands[-1]
    placed = np.empty_like(made, result.dtype)
    placed[...] = result
    return placed


def _only_number(x: np.ndarray) -> Any:
    """Return the value that all elements of an array have, as a Python number; None otherwise."""
    if x.size == 0 or (x.size > 1 and not (x == x.flat[0]).all()) or has_elements(x.ravel()[:1]):
        return None
    number = x.flat[0]
    return None if x.dtype == bool else float(number) if x.dtype.kind == "f" else int(number)


def _replayed(graph: Graph, node: int, given: list[np.ndarray]) -> np.ndarray:
    """Apply the operations of an expression to elements."""
    batches, found = batches_now(), {}
    for part in graph.cone([node]):
        code, a, b, _ = graph.nodes[part]
        if code == op.CONST:
            found[part] = np.array([batches.constant(a)])
        elif code == op.Y:
            found[part] = given[a]
        elif code == op.OPAQUE:
            refuse("calls a function that only Python can run")
        else:
            number = b if code in (op.POWI, op.SPECIAL) else -1
            if code == op.TABLE:
                number = len(batches.tables)
                batches.tables.append(graph.tables[b])
            operands = [found[x] for x in graph.operands(part)]
            found[part] = batches.add(code, *operands, number=number)
    return found[node]


# --- sums and products ------------------------------------------------------------------------


def _reduce(
    ufunc: Any, values: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **more: Any
) -> Any:
    of_conditions = ufunc in (np.logical_and, np.logical_or)
    known = (np.dtype(bool), bool) if of_conditions else (np.dtype(float), float)
    if {k: v for k, v in more.items() if v is not np._NoValue} or dtype not in (None, *known):
        refuse(f"np.{ufunc.__name__}.reduce with these options is not known to tracing")
    values = values if isinstance(values, WholeArray) else whole(np.asarray(values, float))
    if values.is_condition and not of_conditions:
        refuse("counts traced conditions")
    axes = range(values.ndim) if axis is None else np.atleast_1d(axis) % max(values.ndim, 1)
    kept = [k for k in range(values.ndim) if k not in set(axes)]
    shape = tuple(1 if k in set(axes) else m for k, m in enumerate(values.shape))
    front = np.transpose(plain_array(values), [*axes, *kept])
    rest = tuple(values.shape[k] for k in kept)
    flat = whole(np.array(front).reshape(-1, *rest), values.is_condition)
    if ufunc is np.add and len(flat) > _FEW_TERMS:
        result = _summed(flat)
    elif not len(flat):
        refuse("reduces an array that is empty")
    elif len(flat) > _LONGEST_REDUCTION:
        result = _by_halves(ufunc, flat)
    else:
        result = flat[0]
        for part in list(flat)[1:]:
            result = ufunc(result, part)
    return np.reshape(result, shape) if keepdims else result


# Reductions whose result does not depend on the order in which they combine elements.
_ORDER_INDEPENDENT = (np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or)


def _by_halves(ufunc: Any, flat: Any) -> Any:
    """Combine many elements: one half with the other, repeatedly until one is left."""
    if ufunc not in _ORDER_INDEPENDENT:
        refuse(f"np.{ufunc.__name__} of {len(flat)} elements is not known to tracing")
    while len(flat) > 1:
        half = len(flat) // 2
        joined = ufunc(flat[:half], flat[half : 2 * half])
        flat = np.concatenate([joined, flat[2 * half :]])
    return flat[0]


def _summed(flat: WholeArray) -> Any:
    count, rest = len(flat), flat.shape[1:]
    terms = elements_of(flat).reshape(count, -1).T.ravel()
    ends = np.arange(1, terms.size // count + 1) * count
    found = batches_now().linear(terms, np.ones(len(terms)), ends)
    return boxed(found.reshape(rest))


def _scattered(target: Any, places: Any, values: Any, sign: float) -> None:
    """Add values to elements of an array, as `numpy.add.at` does: a place may occur repeatedly."""
    if not isinstance(target, WholeArray):
        refuse("adds traced numbers to an array that is not known to tracing")
    numbers = np.arange(target.size).reshape(target.shape)[places]
    added = np.broadcast_to(plain_array(np.asarray(values, float)), numbers.shape).ravel()
    order = np.argsort(numbers, axis=None, kind="stable")
    sorted_numbers = numbers.ravel()[order]
    changed, counts = np.unique(sorted_numbers, return_counts=True)
    before = np.ndarray.flatten(target)
    terms = np.insert(
        elements_of(added)[order], np.cumsum(counts) - counts,
        elements_of(plain_array(before)[changed]),
    )
    firsts = np.cumsum(counts) - counts + np.arange(len(counts))
    factors = np.full(len(terms), sign)
    factors[firsts] = 1.0
    found = batches_now().linear(terms, factors, np.cumsum(counts + 1))
    flat = plain_array(before)
    flat[changed] = plain_array(boxed(found))
    target[...] = flat.reshape(target.shape)


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    places = np.asarray(x)
    if weights is None or places.ndim != 1:
        refuse("np.bincount in this form is not known to tracing")
    total = whole(np.zeros(max(int(places.max(initial=-1)) + 1, minlength)))
    _scattered(total, places, weights, 1.0)
    return total


def _cumulative(values: Any, axis: int = 0, dtype: Any = None) -> Any:
    if dtype not in (None, np.dtype(float), float) or values.is_condition:
        refuse("np.cumsum with these options is not known to tracing")
    front = np.moveaxis(plain_array(values), axis, 0)
    count = len(front)
    if count * (count + 1) // 2 * max(front[:1].size, 1) > _MOST_TERMS:
        refuse("has a cumulative sum of too many terms")
    found = _product(np.tril(np.ones((count, count))), front.reshape(count, -1))
    result = np.empty_like(plain_array(values))            # in the same memory order
    result[...] = np.moveaxis(plain_array(found).reshape(front.shape), 0, axis)
    return whole(result)


def _product(matrix: np.ndarray, columns: np.ndarray) -> Any:
    """Multiply a matrix of numbers, dense or sparse, by columns that hold traced elements."""
    if isinstance(matrix, np.ndarray):
        rows, places = np.nonzero(matrix)
        factors, ends = matrix[rows, places], np.cumsum((matrix != 0.0).sum(axis=1))
    else:
        rows_of = matrix.tocsr()
        places, factors, ends = rows_of.indices, rows_of.data, rows_of.indptr[1:]
    width = columns.shape[1]
    if len(places) * width > 10 * _MOST_TERMS:
        refuse("multiplies by a matrix of too many entries")
    elements = elements_of(columns)
    found = np.empty((len(ends), width), np.intp)
    for k in range(width):
        found[:, k] = batches_now().linear(
            elements[places, k], np.asarray(factors, float), np.asarray(ends)
        )
    return boxed(found)


@numpy_protocol.register("product")
def product_with(matrix: Any, other: np.ndarray) -> Any:
    """Multiply a sparse matrix by an array of one or two dimensions."""
    if not has_elements(other):
        return promoted(matrix @ np.asarray(plain_array(other)))
    columns = plain_array(other).reshape(other.shape[0], -1)
    return np.reshape(_product(matrix, columns), (matrix.shape[0], *other.shape[1:]))


def _matmul(first: Any, second: Any) -> Any:
    a, b = (np.asarray(plain_array(x)) for x in (first, second))
    if not (1 <= a.ndim <= 2 and 1 <= b.ndim <= 2):
        refuse("products of stacked matrices are not known to tracing")
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit")
    if not has_elements(a) and a.ndim == 2:
        return np.reshape(_product(a.astype(float), b.reshape(len(b), -1)), (len(a), *b.shape[1:]))
    if not has_elements(b) and b.ndim == 2:
        return np.transpose(_matmul(b.T, np.atleast_2d(a).T)).reshape((*a.shape[:-1], b.shape[1]))
    if a.size * (b.shape[1] if b.ndim == 2 else 1) > _MOST_TERMS:
        refuse("multiplies traced matrices that are too large")
    left, right = whole(a.astype(float)), whole(b.astype(float))
    if b.ndim == 2:
        left, right = left[..., None], right if a.ndim == 1 else right[None]
        return np.sum(left * right, axis=-2)
    return np.sum(left * right, axis=-1)


def _vecdot(first: Any, second: Any) -> Any:
    return np.sum(first * second, axis=-1)


def _dot(first: Any, second: Any) -> Any:
    if np.ndim(first) == 0 or np.ndim(second) == 0:
        return np.multiply(first, second)
    return _matmul(first, second)


def _convolve(first: Any, second: Any, mode: str = "full") -> Any:
    if np.ndim(first) != 1 or np.ndim(second) != 1:
        raise ValueError("np.convolve needs arrays of one dimension")
    if len(second) > len(first):
        first, second = second, first
    if has_elements(second) or len(second) > _LONGEST_REDUCTION:
        first, second = second, first
    if has_elements(second) or len(second) > _LONGEST_REDUCTION:
        refuse("np.convolve of two traced or two long arrays is not known to tracing")
    count, short = len(first), len(second)
    signal = np.concatenate([np.zeros(short - 1), first, np.zeros(short - 1)])
    total: Any = 0.0
    for k in range(short):
        total = total + float(second[k]) * signal[short - 1 - k : short - 1 - k + count + short - 1]
    if mode == "full":
        return total
    longest, least = max(count, short), min(count, short)
    size = longest if mode == "same" else longest - least + 1
    begin = (least - 1) // 2 if mode == "same" else least - 1
    return total[begin : begin + size]


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asanyarray(x)
    if axis is None and (ord is None or (x.ndim == 1 and ord == 2)):
        return np.sqrt(np.sum(x * x, keepdims=keepdims))
    if ord in (None, 2) and isinstance(axis, int):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    refuse("this norm is not known to tracing")


def _einsum(subscripts: Any, *operands: Any, **options: Any) -> Any:
    """Multiply by broadcasting, then sum."""
    if not isinstance(subscripts, str) or "." in subscripts or options.keys() - {"optimize"}:
        refuse("np.einsum in this form is not known to tracing")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if not arrow:
        letters = sorted(set(inputs) - {","})
        output = "".join(x for x in letters if inputs.count(x) == 1)
    if any(len(set(part)) < len(part) for part in parts) or len(parts) != len(operands):
        refuse("np.einsum of a diagonal is not known to tracing")
    summed = sorted(set(inputs) - {","} - set(output))
    order = [*output, *summed]
    sizes = {x: m for part, y in zip(parts, operands, strict=True)
             for x, m in zip(part, np.shape(y), strict=True)}  # fmt: skip
    if np.prod([sizes[x] for x in order]) > _MOST_TERMS:
        refuse("np.einsum of so many terms is not known to tracing")
    total: Any = 1.0
    for part, operand in zip(parts, operands, strict=True):
        array = np.transpose(operand, [part.index(x) for x in order if x in part])
        shape = [sizes[x] if x in part else 1 for x in order]
        total = total * np.reshape(array, shape)
    axes = tuple(range(len(output), len(order)))
    return np.sum(total, axis=axes) if axes else total


# --- other functions of NumPy -----------------------------------------------------------------

# Functions that only move elements, and functions that NumPy writes in terms of other functions.
# One that computes with `asarray` of its arguments must not be listed: that is an array of NaN.
_TRUSTED_TEXT = """
    append array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to
    column_stack compress concatenate copy delete diag diagonal dsplit dstack expand_dims
    fill_diagonal flip fliplr flipud hsplit hstack insert iscomplexobj isrealobj
    matrix_transpose meshgrid moveaxis ndim permute_dims ravel repeat reshape resize roll rollaxis
    rot90 shape size split squeeze stack swapaxes take tile transpose tril triu unstack vsplit
    vstack
    all amax amin any clip cumsum diff gradient max mean min prod sum trapezoid
"""
_TRUSTED = frozenset(getattr(np, name) for name in _TRUSTED_TEXT.split() if hasattr(np, name))
_PADDINGS = frozenset(("constant", "edge", "wrap", "reflect", "symmetric"))


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if mode not in _PADDINGS or options.get("reflect_type", "even") != "even":
        refuse("np.pad in this mode is not known to tracing")
    return np.pad(plain_array(array), pad_width, mode, **options)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        refuse("np.where of a traced condition gives an unknown number of places")
    if not has_elements(condition):            # the places are known
        chosen = np.where(plain_array(condition), *map(plain_array, choices))
        return chosen if any(map(has_elements, choices)) else promoted(chosen)
    return _of_each_element(where, [condition, *choices])


def _like(value: float) -> Callable[..., Any]:
    def make(prototype: Any, dtype: Any = None, order: str = "K", subok: bool = True,
             shape: Any = None) -> Any:  # fmt: skip
        return _new_like(prototype, value, dtype, order, shape)

    return make


def _full_like(
    prototype: Any, value: Any, dtype: Any = None, order: str = "K", subok: bool = True,
    shape: Any = None,
) -> Any:  # fmt: skip
    return _new_like(prototype, value, dtype, order, shape)


def _new_like(prototype: Any, value: Any, dtype: Any, order: Any, shape: Any) -> Any:
    """Make an array of one value with the memory order of another array."""
    made = new_array(np.shape(prototype) if shape is None else shape, value, dtype)
    if np.ndim(made) < 2:
        return made
    pattern = plain_array(np.asanyarray(prototype))
    placed = np.empty_like(pattern, made.dtype, order, subok=False, shape=made.shape)
    placed[...] = plain_array(made)
    return whole(placed) if isinstance(made, WholeArray) else placed


def _select(conditions: Any, choices: Any, default: Any = 0.0) -> Any:
    result: Any = default
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        result = np.where(condition, choice, result)
    return result


def _interp(x: Any, xp: Any, fp: Any, *args: Any, **options: Any) -> Any:
    if has_elements(xp) or has_elements(fp):
        refuse("np.interp with traced nodes is not known to tracing")

    def run(value: Any) -> Any:
        return apply_function(np.interp, (value, plain_array(xp), plain_array(fp), *args), options)

    return _of_each_element(run, [x])


def _sinc(x: Any) -> Any:
    return _of_each_element(lambda value: apply_function(np.sinc, (value,), {}), [x])


_HANDLERS: dict[Any, Callable[..., Any]] = {
    np.pad: _pad, np.where: _where, np.select: _select, np.interp: _interp, np.sinc: _sinc,
    np.dot: _dot, np.inner: lambda a, b: _dot(a, np.transpose(b)), np.vdot: lambda a, b:
    _dot(np.ravel(a), np.ravel(b)), np.convolve: _convolve, np.linalg.norm: _norm,
    np.einsum: _einsum, np.outer: lambda a, b: np.multiply.outer(np.ravel(a), np.ravel(b)),
    np.zeros_like: _like(0.0), np.ones_like: _like(1.0),
    np.empty_like: _like(np.nan), np.full_like: _full_like,
    np.bincount: _bincount, np.trace: lambda a: np.diagonal(a).sum(),
}  # fmt: skip


@numpy_protocol.register("whole function")
def run_function(function: Any, args: tuple, options: dict) -> Any:
    """Run a NumPy function that is not a universal function."""
    args = tuple(_gathered_members(x) for x in args)
    handler = _HANDLERS.get(function)
    flags = {x.is_condition for x in _arrays_in((args, tuple(options.values())))}
    if not _holds_elements(args) and not _holds_elements(tuple(options.values())):
        return _wrapped(_call_implementation(function, args, options), False)
    if handler is not None:
        return _wrapped(handler(*args, **options), None)
    if function not in _TRUSTED:
        refuse(f"the function {getattr(function, '__name__', function)} is not known to tracing")
    if options.get("dtype") not in (None, float, np.dtype(float)):
        refuse(f"np.{function.__name__} with a dtype is not known to tracing")
    if len(flags) > 1:
        refuse("joins conditions and numbers in one array")
    if function is np.gradient and not all(np.ndim(x) == 0 for x in args[1:]):
        refuse("np.gradient on points at different distances is not known to tracing")
    return _wrapped(_call_implementation(function, args, options), flags == {True})


def _call_implementation(function: Any, args: tuple, options: dict) -> Any:
    anything = np.empty(0).view(WholeArray)
    return np.ndarray.__array_function__(anything, function, (), args, options)


def _holds_elements(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(map(_holds_elements, values))
    return has_elements(values)


def _gathered_members(value: Any) -> Any:
    """Convert lists of traced numbers to arrays, but leave lists of arrays as they are."""
    if not isinstance(value, (list, tuple)) or not _holds_elements(value):
        return value
    if not any(isinstance(x, (list, tuple)) or getattr(x, "ndim", 0) for x in value):
        return gathered(value)
    return type(value)(_gathered_members(x) for x in value)


def _arrays_in(values: Any) -> Iterator[WholeArray]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _arrays_in(value)
        elif isinstance(value, WholeArray) and has_elements(value):
            yield value


def _wrapped(result: Any, is_condition: bool | None) -> Any:
    if isinstance(result, (list, tuple)):
        return type(result)([_wrapped(x, is_condition) for x in result])
    if isinstance(result, np.ndarray) and result.dtype == np.float64:
        flag = getattr(result, "is_condition", False) if is_condition is None else is_condition
        return whole(result, flag) if result.ndim else element_of(result[()], flag)
    if isinstance(result, np.float64):
        return element_of(result, bool(is_condition))
    return result
