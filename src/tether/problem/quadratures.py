"""Quadratures: integrals along a solution, as further unknowns that the user does not see.

An integral w of q(t, y, y') is an unknown with the equation w' = q. Integrals come after the user's
n unknowns, and the user's functions get only these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tether._core.adapters import DOMAIN_ERRORS
from tether.base.checks import WrongResult, as_vector, check_vector
from tether.base.frozen import make_frozen
from tether.problem.constraint import Constraint
from tether.problem.given import Given
from tether.problem.names import check_names
from tether.problem.options import Options
from tether.problem.problem import Problem, prepared
from tether.problem.signatures import takes_slopes
from tether.problem.sparsity import Sparsity, sparsity_of
from tether.problem.units import check_units

__all__ = ["WithQuadratures", "with_quadratures"]

# Absolute tolerance of an integral that is not tested: larger than any error.
UNTESTED_ATOL = 1e30
# Relative increment of an unknown for a difference quotient.
INCREMENT = math.sqrt(np.finfo(float).eps)


def with_quadratures(given: Given, quadratures: Any, t0: float) -> Given:
    """Add the integrals of functions to the arguments of a run.

    Parameters
    ----------
    given : Given
        The user's arguments.
    quadratures : callable or list of callables
        ``q(t, y, yp, *args)`` or ``q(t, y, *args)``, of one value or several.
    t0 : float
        The time at which the integrals are zero.

    Examples
    --------
    >>> from tether import Options, Problem
    >>> from tether.problem.given import Given
    >>> from tether.problem.quadratures import with_quadratures
    >>> decay = Problem(lambda t, y, yp: [yp[0] + y[0]])
    >>> user = Given(decay, [1.0], None, Options(), None, None, None, None)
    >>> whole = with_quadratures(user, lambda t, y: y[0] ** 2, 0.0)
    >>> whole.y0, whole.problem.n_quadratures
    (array([1., 0.]), 1)
    """
    if given.problem.capsule is not None:
        raise ValueError(
            "quadratures: fun is a C function, to which no integrals can be added; write the "
            "equations as a Python function, or the integrals as unknowns of the C function"
        )
    if given.options.is_matrix_free:
        raise ValueError(
            "quadratures: a preconditioner with setup(t, y, yp, c) knows nothing of the integrals; "
            "pass one with factor(matrix)"
        )
    y = check_vector("y0", given.y0)
    yp = None if given.yp0 is None else check_vector("yp0", given.yp0, len(y))
    problem = prepared(given.problem, t0, y)
    integrands = Integrands(quadratures, problem.args, t0, y, yp)
    n, m = len(y), integrands.size
    names = check_names("names", given.names, n)
    titles = check_names("equation_names", given.equation_names, n)
    units = check_units(given.units, n)
    return Given(
        WithQuadratures(problem, integrands, n), np.append(y, np.zeros(m)),
        None if yp is None else np.append(yp, integrands.at_start),
        _with_tolerances(given.options, n, m),
        None if names is None else names + integrands.names,
        None if titles is None else titles + integrands.names,
        units if units is None or isinstance(units, Mapping) else [*units, *[""] * m],
        _of_first_unknowns(given.callback, n),
    )


class Integrands:
    """The functions whose integrals are wanted.

    Attributes
    ----------
    functions : list of callable
        All of them as functions of (t, y, yp, *args).
    ends : list of int
        Where the values of each function end in the vector of all values.
    names : list of str
        Names of the integrals in messages.
    take_slopes : bool
        Whether any of them reads y'.
    at_start : ndarray
        Their values at the start; zero where they are not finite there.
    """

    def __init__(
        self, given: Any, args: tuple, t: float, y: np.ndarray, yp: np.ndarray | None
    ) -> None:
        found = [given] if callable(given) else given
        if isinstance(found, str) or not isinstance(found, Sequence):
            raise TypeError(f"quadratures must be a callable or a list of them, got {given!r}")
        self.functions: list[Callable[..., Any]] = []
        self.ends: list[int] = []
        self.names: list[str] = []
        self.take_slopes = False
        values = [np.zeros(0)]
        called = [getattr(fun, "__name__", "") for fun in found]
        for number, fun in enumerate(found):
            name = f"quadratures[{number}]"
            if takes_slopes(name, fun, args):
                self.take_slopes = True
            else:
                fun = _ignoring_slopes(fun)
            values.append(_first_values(name, fun, t, y, np.zeros_like(y) if yp is None else yp,
                                        args))
            self.functions.append(fun)
            self.ends.append((self.ends[-1] if self.ends else 0) + len(values[-1]))
            own = called[number]
            text = own if own.isidentifier() and called.count(own) == 1 else name
            several = len(values[-1]) > 1
            self.names += [
                f"integral of {text}{f'[{k}]' if several else ''}" for k in range(len(values[-1]))
            ]
        self.at_start = np.nan_to_num(np.concatenate(values), posinf=0.0, neginf=0.0)

    @property
    def size(self) -> int:
        """Number of the integrals."""
        return len(self.names)

    def slopes(
        self, t: float, y: np.ndarray, yp: np.ndarray, args: tuple
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return derivatives with respect to y and y', from differences."""
        def values(y: np.ndarray, yp: np.ndarray) -> np.ndarray:
            return np.concatenate([
                np.atleast_1d(np.asarray(fun(t, y, yp, *args), float)) for fun in self.functions
            ])

        here, by_y, by_yp = values(y, yp), *np.zeros((2, self.size, len(y)))
        for j in range(len(y)):
            by_y[:, j] = _difference(lambda x: values(x, yp), here, y, j)
            if self.take_slopes:
                by_yp[:, j] = _difference(lambda x: values(y, x), here, yp, j)
        return by_y, by_yp


class WithQuadratures(Problem):
    """A problem with the integrals of some functions as further unknowns.

    Attributes
    ----------
    written : Problem
        What the user wrote.
    n_quadratures : int
        Number of integrals.
    """

    def __init__(self, written: Problem, integrands: Integrands, n: int) -> None:
        kinds, jac = written.var_index, written.jac
        m = integrands.size
        super().__init__(
            _residual(written, integrands, n), args=written.args,
            jac=None if jac is None else _jacobian(jac, integrands, n),
            constraints=[_constraint(each, n, m) for each in written.constraints],
            invariants=[_constraint(each, n, m) for each in written.invariants],
            var_index=None if kinds is None else np.append(kinds, np.zeros(m, int)),
        )
        self._written, self.n_quadratures, self._names = written, m, integrands.names
        self.unpacks = written.unpacks
        if written.sparsity is not None:
            self.sparsity = _sparsity(written.sparsity, n, integrands)
        if integrands.take_slopes:
            return                             # their F_y' is not constant, and not in `terms`
        if written.fyp is not None:
            self.fyp = _diagonal(written.fyp, m)
        if (terms := written.terms) is not None:
            self.terms = lambda t, y, yp, *args: np.concatenate(
                [as_vector("terms", terms(t, y[:n], yp[:n], *args), n), yp[n:]]
            )

    @property
    def written(self) -> Problem:
        """What the user wrote."""
        return self._written

    def titles(self, n: int) -> list[str]:
        """Names of the equations of the integrals."""
        return [*[""] * (n - self.n_quadratures), *self._names]

    def guessed_names(self, n: int) -> list[str]:
        """Names of the unknowns as the function unpacks them, and of the integrals."""
        return [*self.written.guessed_names(n - self.n_quadratures), *self._names]


def _residual(written: Problem, integrands: Integrands, n: int) -> Callable[..., None]:
    fun, fills = written.fun, written.fills
    functions, ends = integrands.functions, integrands.ends

    def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray, *args: Any) -> None:
        if fills:
            fun(t, y[:n], yp[:n], out[:n], *args)
        else:
            out[:n] = as_vector("fun", fun(t, y[:n], yp[:n], *args), n)
        first = n
        for number, (function, end) in enumerate(zip(functions, ends, strict=True)):
            last = n + end
            values = np.asarray(function(t, y[:n], yp[:n], *args))
            if values.shape not in ((), (last - first,)):
                raise WrongResult(
                    f"quadratures[{number}] returned {last - first} values at the start, but an "
                    f"object of shape {values.shape} later"
                )
            out[first:last] = yp[first:last] - values
            first = last

    return residual


def _jacobian(jac: Callable[..., Any], integrands: Integrands, n: int) -> Callable[..., Any]:
    def whole(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> tuple[Any, Any]:
        pair = jac(t, y[:n], yp[:n], *args)
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise TypeError("jac must return the pair (F_y, F_yp)")
        for matrix in pair:
            if np.shape(matrix) != (n, n):
                raise WrongResult(
                    f"jac must return two matrices of shape {(n, n)}, got one of shape "
                    f"{np.shape(matrix)}"
                )
        by_y, by_yp = integrands.slopes(t, y[:n], yp[:n], args)
        return _bordered(pair[0], -by_y, 0.0), _bordered(pair[1], -by_yp, 1.0)

    return whole


def _bordered(matrix: Any, rows: np.ndarray, corner: float) -> Any:
    """Add rows below a matrix, and as many columns, with a diagonal in the corner."""
    diagonal = corner * np.eye(len(rows))
    if not hasattr(matrix, "tocsr"):
        return np.block([[np.asarray(matrix), np.zeros(rows.T.shape)], [rows, diagonal]])
    from scipy.sparse import block_array, csr_array  # late, to save time

    return block_array([[matrix, None], [csr_array(rows), csr_array(diagonal)]], format="csr")


def _diagonal(matrix: Any, m: int) -> Any:
    """Add m ones to the diagonal of a matrix."""
    return _bordered(matrix, np.zeros((m, matrix.shape[0])), 1.0)


def _constraint(given: Constraint, n: int, m: int) -> Constraint:
    """Pass a constraint only the first n unknowns; C functions read no more of them anyway."""
    if given.low_level is not None:
        return Constraint(given.fun, size=given.size)      # its Jacobian has too few columns
    fun, jac = given.fun, given.jac
    whole = None
    if jac is not None:
        def whole(t: float, y: np.ndarray, *args: Any) -> Any:
            slopes = jac(t, y[:n], *args)
            if hasattr(slopes, "tocsr"):
                from scipy.sparse import csr_array, hstack  # late, to save time

                return hstack([slopes, csr_array((slopes.shape[0], m))], format="csr")
            rows = np.atleast_2d(slopes)
            return np.hstack([rows, np.zeros((len(rows), m))])

    return Constraint(lambda t, y, *args: fun(t, y[:n], *args), jac=whole, size=given.size)


def _sparsity(known: Sparsity, n: int, integrands: Integrands) -> Sparsity:
    """Return the patterns, where every integrand may depend on every unknown."""
    m = integrands.size
    rows, columns = np.repeat(np.arange(n, n + m), n), np.tile(np.arange(n), m)
    own = np.arange(n, n + m)

    def places(pattern: Any, *more: tuple[np.ndarray, np.ndarray]) -> tuple:
        parts = [(pattern.row, pattern.columns), *more]
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))

    slopes = [(rows, columns)] if integrands.take_slopes else []
    return sparsity_of(
        n + m, places(known.fy, (rows, columns)), places(known.fyp, *slopes, (own, own)),
        known.by_user,
    )


def _with_tolerances(options: Options, n: int, m: int) -> Options:
    """Give the integrals tolerances: the smallest of the user's, or ones that never matter."""
    if options.quadratures_tested and np.ndim(options.rtol) == np.ndim(options.atol) == 0:
        return options
    rtol, atol = options.tolerances(n)
    own_rtol, own_atol = rtol.min(), min(atol[atol > 0.0], default=0.0)
    if not options.quadratures_tested:
        own_rtol, own_atol = 1.0, UNTESTED_ATOL
    wider = {
        "rtol": np.append(rtol, np.full(m, own_rtol)), "atol": np.append(atol, np.full(m, own_atol))
    }
    return make_frozen(Options, options.__dict__ | wider)


def _first_values(
    name: str, fun: Callable[..., Any], t: float, y: np.ndarray, yp: np.ndarray, args: tuple
) -> np.ndarray:
    """Return the values at the start; one zero if the function is not defined there."""
    try:
        values = np.asarray(fun(t, y.copy(), yp.copy(), *args))
    except DOMAIN_ERRORS:
        return np.zeros(1)
    if values.dtype.kind not in "bfiu":
        raise TypeError(f"{name} must return a real number or a vector of them, got {values!r}")
    if values.ndim > 1 or not values.size:
        raise ValueError(
            f"{name} must return a number or a vector, got an object of shape {values.shape}"
        )
    return np.atleast_1d(values).astype(float)


def _difference(
    fun: Callable[[np.ndarray], np.ndarray], here: np.ndarray, x: np.ndarray, j: int
) -> np.ndarray:
    moved = x.copy()
    moved[j] += INCREMENT * max(abs(x[j]), 1.0)
    return (fun(moved) - here) / (moved[j] - x[j])


def _ignoring_slopes(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of (t, y, *args) into one of (t, y, yp, *args)."""
    return lambda t, y, yp, *args: fun(t, y, *args)


def _of_first_unknowns(fun: Callable[..., Any] | None, n: int) -> Callable[..., Any] | None:
    """Pass a callback only the first n unknowns."""
    return None if fun is None else lambda t, y, yp: fun(t, y[:n], yp[:n])
