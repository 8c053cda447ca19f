"""SciPy's interpolants as piecewise polynomials, whose coefficients are read while tracing."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tether.trace.arrays import TracedArray, demoted, has_traced, lifted, plain, promoted
from tether.trace.functions import clip
from tether.trace.guards import guards
from tether.trace.opaque import KNOWN_OF_INTERPOLANTS
from tether.trace.piecewise import Piecewise, from_points
from tether.trace.refusal import refuse
from tether.trace.scalar import Scalar, logical_and, select
from tether.trace.standins import Unchanging

# What an interpolant does outside its interval: it continues its polynomials, is NaN (also where it
# would raise an exception), is periodic, keeps its last value, or has given values.
CONTINUE, NAN, PERIODIC, KEEP, FILL = "continue", "nan", "periodic", "keep", "fill"
_EXTRAPOLATE: dict[Any, str] = {True: CONTINUE, False: NAN, "periodic": PERIODIC}
_EXT: dict[Any, str] = {0: CONTINUE, 1: FILL, 2: NAN, 3: KEEP}
_EXT |= {"extrapolate": CONTINUE, "zeros": FILL, "raise": NAN, "const": KEEP}


@dataclass(frozen=True, eq=False)
class Pieces:
    """An interpolant that is a piecewise polynomial, with one or several values.

    Attributes
    ----------
    tables : ndarray of Piecewise
        One for each value, in the shape of the values.
    ends : pair of float
        Ends of its interval.
    outside : str
        What it does beyond the ends.
    fill : pair of ndarray
        Values to the left and to the right of the interval, for FILL.
    """

    tables: np.ndarray
    ends: tuple[float, float]
    outside: str
    fill: tuple[Any, Any] = (0.0, 0.0)

    def at(self, x: Any, order: int = 0) -> Any:
        """Evaluate a derivative at a traced number: return a traced number or an array of them."""
        u = self._inside(x)
        result = np.empty(self.tables.shape, dtype=object)
        for place, table in np.ndenumerate(self.tables):
            for _ in range(order):
                table = table.derivative()
            result[place] = Scalar(x.recorder, x.recorder.graph.table(table, u.node))
        if self.outside == FILL:
            left, right = (np.broadcast_to(value, result.shape) for value in self.fill)
            for place in np.ndindex(result.shape):
                before, after = (0.0, 0.0) if order else (left[place], right[place])
                inner = select(x > self.ends[1], after, result[place])
                result[place] = select(x < self.ends[0], before, inner)
        return result.view(TracedArray) if result.ndim else result[()]

    def _inside(self, x: Any) -> Any:
        """Map the operand to where the polynomials have the value of the interpolant."""
        low, high = self.ends
        if self.outside == NAN:
            guards.refuse_if_caught(ValueError)
            return select(logical_and(x >= low, x <= high), x, math.nan)
        if self.outside == PERIODIC:
            return low + (x - low) % (high - low)
        return clip(x, low, high) if self.outside == KEEP else x


class Interpolant(Unchanging):
    """Stands for an interpolant; a call with a traced number becomes a node of its own."""

    known = KNOWN_OF_INTERPOLANTS

    def __init__(self, function: Any, pieces: Pieces) -> None:
        super().__init__(function)
        object.__setattr__(self, "_pieces", pieces)

    def __call__(self, x: Any, nu: int = 0, *rest: Any, **options: Any) -> Any:
        """Evaluate; at traced numbers, make nodes."""
        x = lifted(x)
        given = (nu, *rest) if nu or rest else ()
        if not has_traced(x):
            return promoted(np.array(self._thing(demoted(x), *given, **options)))
        pieces = self._with_options(*rest, **options)
        if type(x) is Scalar:
            return pieces.at(x, nu)
        if np.ndim(x) == 0:
            return pieces.at(plain(x)[()], nu)
        if self._pieces.tables.ndim and getattr(self._thing, "axis", 0) != 0:
            refuse("an interpolant along another axis is not known to tracing for arrays")
        values = [
            pieces.at(u, nu) if type(u) is Scalar else self._thing(u, *given, **options)
            for u in plain(x).flat
        ]
        result = np.empty((len(values), *pieces.tables.shape), dtype=object)
        for i, value in enumerate(values):
            result[i] = plain(value)
        return result.reshape(*np.shape(x), *pieces.tables.shape).view(TracedArray)

    def _with_options(self, outside: Any = None, **options: Any) -> Pieces:
        """Return the pieces with the rule for outside that one call gives by an option."""
        rules = _EXT if hasattr(self._thing, "ext") else _EXTRAPOLATE
        name = "ext" if rules is _EXT else "extrapolate"
        outside = options.pop(name, outside)
        if options or (outside is not None and outside not in rules):
            refuse("an interpolant with these options is not known to tracing")
        if outside is None:
            return self._pieces
        return replace(self._pieces, outside=rules[outside], fill=(0.0, 0.0))

    def derivative(self, *order: int) -> Any:
        """Differentiate the interpolant."""
        return _standing_for(self._thing.derivative(*order))

    def antiderivative(self, *order: int) -> Any:
        """Integrate the interpolant."""
        return _standing_for(self._thing.antiderivative(*order))


def _standing_for(value: Any) -> Any:
    found = interpolant(value)
    return value if found is None else found


def interpolant(value: Any) -> Any:
    """Return the stand-in for a SciPy interpolant; None if it is not a piecewise polynomial."""
    module = sys.modules.get("scipy.interpolate")
    if module is None or not type(value).__module__.startswith("scipy.interpolate"):
        return None
    readers: tuple[tuple[type, Callable[[Any], Pieces | None]], ...] = (
        (module.PPoly, _read_powers),
        (module.BPoly, lambda bernstein: _read_powers(
            module.PPoly.from_bernstein_basis(bernstein), type(bernstein).__name__)),
        (module.BSpline, _read_basis),
        (module.UnivariateSpline, _read_fit),
        (module.interp1d, _read_interp1d),
    )  # fmt: skip
    for kind, read in readers:
        if isinstance(value, kind):
            pieces = read(value)
            return None if pieces is None else Interpolant(value, pieces)
    return None


def content(value: Any) -> tuple | None:
    """Everything that a SciPy interpolant depends on; None if its attributes show that.

    Those of the classes handled here are kept in slots.
    """
    module = sys.modules.get("scipy.interpolate")
    if module is None or not isinstance(value, (module.PPoly, module.BPoly, module.BSpline)):
        return None
    if not type(value).__module__.startswith("scipy.interpolate"):
        return None
    numbers = value.tck if isinstance(value, module.BSpline) else (value.x, value.c)
    return (type(value).__name__, *numbers, value.extrapolate, value.axis)


def _read_powers(spline: Any, name: str = "") -> Pieces | None:
    x, c = spline.x, spline.c
    if c.dtype.kind != "f" or np.any(np.diff(x) < 0.0):
        return None
    ascending = c[::-1]
    tables = np.empty(c.shape[2:], dtype=object)
    for place in np.ndindex(tables.shape):
        rows = ascending[(slice(None), slice(None), *place)].T
        tables[place] = Piecewise(x[1:-1], x[:-1], rows, name or type(spline).__name__)
    return Pieces(tables, (float(x[0]), float(x[-1])), _EXTRAPOLATE[spline.extrapolate])


def _read_basis(spline: Any) -> Pieces | None:
    t, c, k = spline.tck
    if c.dtype.kind != "f":
        return None
    plain_spline = type(spline).construct_fast(t, c, k)
    knots = np.unique(t[k : len(t) - k])
    tables = _expanded(plain_spline, knots, k, type(spline).__name__)
    ends = float(knots[0]), float(knots[-1])
    return Pieces(tables, ends, _EXTRAPOLATE[spline.extrapolate])


def _read_fit(spline: Any) -> Pieces | None:
    knots = spline.get_knots()
    degree = len(spline.get_coeffs()) - len(knots) + 1
    tables = _expanded(spline, knots, degree, type(spline).__name__)
    return Pieces(tables, (float(knots[0]), float(knots[-1])), _EXT[spline.ext])


def _expanded(spline: Callable[..., Any], knots: np.ndarray, degree: int, name: str) -> np.ndarray:
    """Expand a spline about the left end of every interval between knots."""
    begins = knots[:-1] if degree else knots       # a step function may have a step at the end
    terms = np.array([spline(begins, nu=m) / math.factorial(m) for m in range(degree + 1)])
    tables = np.empty(terms.shape[2:], dtype=object)
    for place in np.ndindex(tables.shape):
        rows = terms[(slice(None), slice(None), *place)].T
        tables[place] = Piecewise(begins[1:], begins, rows, name)
    return tables


def _read_interp1d(function: Any) -> Pieces | None:
    x, values = function.x, np.moveaxis(function.y, function.axis, 0)
    inner = interpolant(getattr(function, "_spline", None))
    if inner is not None:
        tables = inner._pieces.tables.reshape(values.shape[1:])
    elif getattr(function, "_kind", None) == "linear":
        tables = np.empty(values.shape[1:], dtype=object)
        for place in np.ndindex(tables.shape):
            tables[place] = from_points(x, values[(slice(None), *place)], "interp1d")
    else:
        return None
    ends, fill = (float(x[0]), float(x[-1])), function.fill_value
    if isinstance(fill, str):
        return Pieces(tables, ends, CONTINUE)
    if function.bounds_error:
        return Pieces(tables, ends, NAN)
    return Pieces(tables, ends, FILL, fill if isinstance(fill, tuple) else (fill, fill))
