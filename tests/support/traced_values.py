"""Compare what a traced function computes with what the function itself does, at awkward points."""

import warnings

import numpy as np

from tether._core.plain import Plain
from tether.trace import TraceFailure, evaluate, trace

N = 3
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.nan, np.inf, -np.inf, 1e-300, 1e155, -1e300, 3.0]

# How a result of each shape becomes a list of numbers.
AS_LIST = {
    "number": "[1.0 * r]",
    "array": "list(1.0 * np.ravel(r))",
    "list": "[1.0 * v for v in r]",
    "type": "[2.0 if isinstance(r, np.ndarray) else 3.0 if isinstance(r, np.bool_)"
    " else 5.0 if isinstance(r, bool) else 7.0 if type(r) is float"
    " else 11.0 if isinstance(r, np.float64) else 13.0 if isinstance(r, int) else 17.0]",
}


def points(count=60, seed=4):
    """Ordinary points first, then some with special values in them."""
    rng = np.random.default_rng(seed)
    found = [rng.normal(0.0, scale, 2 * N + 1) for scale in (1.0, 1.0, 3.0, 3.0, 100.0)]
    found += [np.round(rng.normal(0.0, 2.0, 2 * N + 1)) for _ in range(5)]
    for _ in range(count):
        point = rng.normal(0.0, 2.0, 2 * N + 1)
        changed = rng.integers(0, 2 * N + 1, rng.integers(1, 4))
        point[changed] = rng.choice(SPECIAL, len(changed))
        if rng.uniform() < 0.3:  # ties
            point[1] = point[2]
        found.append(point)
    return np.array(found)


POINTS = points()


# What infinite numbers make of these depends on the order of the operations, and on whether
# products are rounded before they are added.
FINITE_ONLY = (
    "linalg.solve", "linalg.inv", "linalg.det", "polyval", "poly1d", "trapezoid", "[z, w",
    "@", "dot", "matmul", "einsum",
)


def make(expression, result, before=""):
    """Make a residual of an expression in t, y, yp and x, z, w = y."""
    lines = [
        "x, z, w = y[0], y[1], y[2]", "M = np.array([y, yp, 2 * y - yp])", *before.splitlines(),
        f"r = {expression}", f"return {result}",
    ]
    return "\n    ".join(["def fun(t, y, yp):", *lines])


def compiled(text, names):
    space = dict(names)
    exec(text, space)
    return space["fun"]


def call(fun, point):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return fun(float(point[0]), point[1 : 1 + N].copy(), point[1 + N :].copy())


def shape_of(expression, names, before=""):
    """Say what the expression gives at ordinary points, None where it cannot be a residual."""
    fun = compiled(make(expression, "r", before), names)
    for point in POINTS[:10]:
        try:
            value = call(fun, point)
        except Exception:
            continue
        return _shape(value)
    return None


def _shape(value):
    if isinstance(value, (bool, int, float, np.bool_, np.integer, np.floating)):
        return "number"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return "array" if value.ndim and value.size else "number" if value.size else None
    if isinstance(value, (list, tuple)) and len(value):
        return "list" if all(_shape(v) == "number" for v in value) else None
    return None


def size_of(fun):
    """Count the values at ordinary points; None where the function raises at all of them."""
    for point in POINTS[:10]:
        try:
            return len(np.array(call(fun, point), dtype=float))
        except Exception:
            continue
    return None


def outcome(expression, names, shape=None, before=""):
    """Say "traced", "refused", "no residual", or a text that tells where the two differ."""
    shape = shape or shape_of(expression, names, before)
    if shape is None:
        return "no residual"
    fun = compiled(make(expression, AS_LIST[shape], before), names)
    size = size_of(fun)
    if size is None:
        return "no residual"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = trace(fun, N, size=size)
    except TraceFailure:
        return "refused"
    program = traced.program(opaque=True)
    values = evaluate(program, POINTS[:, 0], POINTS[:, 1 : 1 + N].T, POINTS[:, 1 + N :].T).T
    finite_only = any(name in expression for name in FINITE_ONLY)
    for point, value in zip(POINTS, values, strict=True):
        if finite_only and not np.all(np.isfinite(point)):
            continue
        try:
            right = np.array(call(fun, point), dtype=float)
        except Exception:
            continue
        if len(right) != size:
            return "no residual"
        if np.array_equal(value, right, equal_nan=True):
            continue
        split = point[0], point[1 : 1 + N], point[1 + N :]
        _, errors = Plain(program).values_with_errors(*split)
        with np.errstate(invalid="ignore"):
            near = np.abs(value - right) <= 16 * errors + 1e-300
        same = near | (np.isnan(value) & np.isnan(right)) | (value == right)
        same |= np.isinf(errors) & np.isfinite(right) & np.isfinite(value)
        if not np.all(same):
            return f"{expression}: traced {value}, called {right} at t, y, yp = {split}"
    return "traced"
