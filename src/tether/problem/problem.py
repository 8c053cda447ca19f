"""Problem: the system that the user wrote, checked."""

from __future__ import annotations

import copy
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tether._core.adapters import WrongResult
from tether.problem.constraint import as_constraints
from tether.problem.lowlevel import as_low_level, capsule, read_signature
from tether.problem.naming import code_of, guess_names
from tether.problem.sparsity import Sparsity, given_sparsity

__all__ = ["Problem"]

# Usual names for the derivative of an unknown.
NAMES_OF_SLOPES = (
    "{}p", "{}_p", "{}dot", "{}_dot", "{}prime", "{}_prime", "d{}", "d{}dt", "d{}_dt", "d_{}",
    "der_{}", "{}_der", "{}_t",
)
# Constant mass matrices of more unknowns are stored sparse.
MAX_DENSE = 200
C_SIGNATURE = "(double, double *, double *, double *[, void *])"


class Problem:
    """A system F(t, y, y') = 0 with what is known about it.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, yp)`` returns the residual as a list or an array; ``fun(t, y, yp, out)``
        fills it in. It may also be a C function: a `scipy.LowLevelCallable`, a Numba cfunc or a
        ctypes function pointer with the arguments ``(double t, double *y, double *yp,
        double *out)`` and optionally ``void *user_data``, returning nothing or an int (nonzero
        means the residual cannot be computed there). C functions run without the GIL.
    jac : callable or pair of matrices, optional
        ``jac(t, y, yp)`` returns (F_y, F_yp). Differences are used when left out.
    args : sequence
        Further arguments of `fun`, `jac`, `constraints` and `invariants`, after the others.
    constraints, invariants : callable, Constraint or list of them, optional
        Functions ``(t, y)`` that are zero, or keep their starting value, along the solution; see
        `solve_dae`.
    var_index : array_like of int, optional
        Kind of every unknown, 0 to 3; see `solve_dae`.
    jac_sparsity, lband, uband : optional
        Where F_y and F_yp may have entries; see `solve_dae`.

    Examples
    --------
    >>> from tether import Problem, solve_dae
    >>> decay = Problem(lambda t, y, yp: [yp[0] + y[0]])
    >>> sol = solve_dae(decay, (0, 1), [1.0])
    >>> round(float(sol.y[0, -1]), 4)
    0.3679
    """

    n_quadratures = 0                      # integrals among the unknowns, which come last

    def __init__(
        self,
        fun: Any,
        *,
        jac: Callable[..., Any] | Sequence[Any] | None = None,
        args: Sequence[Any] = (),
        constraints: Any = None,
        invariants: Any = None,
        var_index: Any = None,
        jac_sparsity: Any = None,
        lband: int | None = None,
        uband: int | None = None,
    ) -> None:
        self.constraints = as_constraints("constraints", constraints)
        self.invariants = as_constraints("invariants", invariants)
        self.var_index = _check_var_index(var_index)
        self.args = _check_args(args)
        self.capsule, self.returns_status, self.takes_data = None, False, False
        self.fills = False
        self.fun = fun
        self.unpacks = fun                 # the function whose source names the unknowns
        self.fyp: Any = None               # a constant F_y', dense or sparse
        self.given_sparsity = given_sparsity(jac_sparsity, lband, uband)
        self.sparsity: Sparsity | None = None
        self.terms: Callable[..., Any] | None = None
        low_level = as_low_level(fun)
        if low_level is not None:
            if self.args:
                raise ValueError("args cannot be passed to a C function; use its user_data")
            self.returns_status, self.takes_data = read_signature(
                low_level, 3, f"void or int {C_SIGNATURE}", "fun"
            )
            self.capsule = capsule(low_level)
        elif callable(fun):
            self.fills = _fills_its_argument(fun, len(self.args))
        else:
            raise TypeError(f"fun must be callable, got {type(fun).__name__}")
        self.jac = _check_jac(jac, len(self.args))

    @classmethod
    def mass_matrix(
        cls,
        M: Any,
        f: Callable[..., Any],
        *,
        jac: Callable[..., Any] | None = None,
        args: Sequence[Any] = (),
        constraints: Any = None,
        invariants: Any = None,
        jac_sparsity: Any = None,
        lband: int | None = None,
        uband: int | None = None,
    ) -> Problem:
        """Build M y' = f(t, y).

        Parameters
        ----------
        M : array_like, sparse matrix or callable
            The mass matrix, singular or not, or a function ``M(t, y)`` that returns it.
        f : callable
            ``f(t, y, *args)``, the right-hand side.
        jac : callable, optional
            ``jac(t, y, *args)``, the derivative of `f`; only with a constant `M`.
        args : sequence
            Further arguments of `f` and `jac`.
        constraints, invariants, jac_sparsity, lband, uband : optional
            As in `solve_dae`.

        Examples
        --------
        >>> import numpy as np
        >>> from tether import Problem, solve_dae
        >>> p = Problem.mass_matrix(np.diag([1.0, 0.0]), lambda t, y: [-y[1], y[0] - y[1]])
        >>> sol = solve_dae(p, (0, 1), [1.0, 1.0])
        >>> bool(abs(sol.y[1, -1] - np.exp(-1)) < 1e-5)
        True
        """
        args = _check_args(args)
        check_signature("f", f, "(t, y)", 2, args)
        if callable(M):
            if jac is not None:
                raise ValueError("jac needs a constant M; pass M as a matrix")
            check_signature("M", M, "(t, y)", 2)
            matrix_at = M

            def changing(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
                return _mass_at(matrix_at, t, y) @ yp - _right_hand_side(f, t, y, args)

            problem = cls(
                changing, args=args, constraints=constraints, invariants=invariants,
                jac_sparsity=jac_sparsity, lband=lband, uband=uband,
            )
            problem.unpacks = f
            return problem
        mass = M.tocsr() if hasattr(M, "tocsr") else np.asarray(M)
        if mass.dtype.kind not in "fiu":
            raise TypeError("M must be a matrix of real numbers")
        mass = mass.astype(float)
        if mass.ndim != 2 or mass.shape[0] != mass.shape[1]:
            raise ValueError(f"M must be square, got shape {mass.shape}")

        def residual(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            return mass @ yp - _right_hand_side(f, t, y, args)

        full_jac = None
        if jac is not None:
            check_signature("jac", jac, "(t, y)", 2, args)

            def full_jac(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> tuple:
                slope = jac(t, y, *args)
                return -(slope if hasattr(slope, "toarray") else np.asarray(slope)), mass

        problem = cls(
            residual, jac=full_jac, args=args, constraints=constraints, invariants=invariants,
            jac_sparsity=jac_sparsity, lband=lband, uband=uband,
        )
        problem.fyp = mass
        problem.unpacks = f
        return problem

    @classmethod
    def semi_explicit(
        cls,
        f: Callable[..., Any],
        g: Callable[..., Any],
        *,
        n_differential: int | None = None,
        args: Sequence[Any] = (),
        constraints: Any = None,
        invariants: Any = None,
    ) -> Problem:
        """Build x' = f(t, x, z), 0 = g(t, x, z) with y = (x, z).

        Parameters
        ----------
        f, g : callable
            ``f(t, x, z, *args)`` and ``g(t, x, z, *args)``.
        n_differential : int, optional
            Length of x. When left out it is found from the number of values that `f` and `g`
            return.
        args : sequence
            Further arguments of `f` and `g`.
        constraints, invariants : optional
            As in `solve_dae`.

        Examples
        --------
        >>> from tether import Problem, solve_dae
        >>> p = Problem.semi_explicit(lambda t, x, z: -z, lambda t, x, z: x - z)
        >>> sol = solve_dae(p, (0, 1), [1.0, 1.0])
        >>> sol.success
        True
        """
        args = _check_args(args)
        for name, value in (("f", f), ("g", g)):
            check_signature(name, value, "(t, x, z)", 3, args)
        if n_differential is not None and (
            isinstance(n_differential, bool) or not isinstance(n_differential, (int, np.integer))
        ):
            raise TypeError(f"n_differential must be an integer, got {n_differential!r}")
        return _SemiExplicit(f, g, n_differential, args, constraints, invariants)

    @classmethod
    def split(
        cls,
        terms: Callable[..., Any],
        f: Callable[..., Any],
        *,
        args: Sequence[Any] = (),
        constraints: Any = None,
        invariants: Any = None,
        var_index: Any = None,
    ) -> Problem:
        """Build B(t, y) y' = f(t, y) from the terms with y' and the rest (P82 section 5).

        F_y' then comes from `terms` without differences.

        Parameters
        ----------
        terms : callable
            ``terms(t, y, yp, *args)`` returns B(t, y) yp, only those terms that contain y',
            one value per equation; linear in yp.
        f : callable
            ``f(t, y, *args)``, everything else.
        args : sequence
            Further arguments of both.
        constraints, invariants, var_index : optional
            As in `solve_dae`.

        Examples
        --------
        >>> from tether import Problem, solve_dae
        >>> p = Problem.split(lambda t, y, yp: [yp[0], 0.0], lambda t, y: [-y[1], y[0] - y[1]])
        >>> sol = solve_dae(p, (0, 1), [1.0, 1.0])
        >>> round(float(sol.y[0, -1]), 4)
        0.3679
        """
        args = _check_args(args)
        check_signature("terms", terms, "(t, y, yp)", 3, args)
        check_signature("f", f, "(t, y)", 2, args)

        def residual(t: float, y: np.ndarray, yp: np.ndarray, *args: Any) -> np.ndarray:
            return np.asarray(terms(t, y, yp, *args)) - np.asarray(f(t, y, *args))

        problem = cls(
            residual, args=args, constraints=constraints, invariants=invariants,
            var_index=var_index,
        )
        problem.terms = terms
        problem.unpacks = f
        return problem

    @property
    def written(self) -> Problem:
        """What the user wrote, without the integrals that were added to it."""
        return self

    def titles(self, n: int) -> list[str]:
        """Names of the n equations where the user gives none; empty for equations without one."""
        return []

    def guessed_names(self, n: int) -> list[str]:
        """Names of the n unknowns as the function unpacks them, or ``y[0]``, ``y[1]``, ..."""
        return guess_names(code_of(self.unpacks), n)

    def _prepared(self, t: float, y: np.ndarray) -> Problem:
        """Return the problem with what is known only once the starting values are known.

        The problem itself is not changed: several threads may solve it, with starting values of
        different sizes.
        """
        if self.var_index is not None and len(self.var_index) != len(y):
            raise ValueError(
                f"var_index must have {len(y)} values like y0, got {len(self.var_index)}"
            )
        if self.fyp is not None and self.fyp.shape[0] != len(y):
            raise ValueError(f"y0 has {len(y)} values, but M has {self.fyp.shape[0]} rows")
        if self.given_sparsity is None:
            return self
        prepared = copy.copy(self)
        prepared.sparsity = self.given_sparsity.of_size(len(y))
        return prepared


def prepared(problem: Problem, t: float, y: np.ndarray) -> Problem:
    """Return a problem with what is known only once the starting values are known."""
    return problem._prepared(t, y)


def as_problem(
    fun: Any,
    jac: Any = None,
    args: Sequence[Any] = (),
    constraints: Any = None,
    invariants: Any = None,
    var_index: Any = None,
    jac_sparsity: Any = None,
    lband: int | None = None,
    uband: int | None = None,
) -> Problem:
    """Wrap what the user passed; nothing that a `Problem` has may be passed beside it."""
    if not isinstance(fun, Problem):
        return Problem(
            fun, args=args, jac=jac, constraints=constraints, invariants=invariants,
            var_index=var_index, jac_sparsity=jac_sparsity, lband=lband, uband=uband,
        )
    if args != ():
        raise ValueError("args belong to the Problem; do not pass them as well")
    for name, value in (
        ("jac", jac), ("constraints", constraints), ("invariants", invariants),
        ("var_index", var_index), ("jac_sparsity", jac_sparsity), ("lband", lband),
        ("uband", uband),
    ):
        if value is not None:
            raise ValueError(f"{name} belongs to the Problem; do not pass it as well")
    return fun


class _SemiExplicit(Problem):
    """x' = f, 0 = g; how y splits into x and z is found when y0 is known."""

    def __init__(
        self,
        f: Callable,
        g: Callable,
        n_differential: int | None,
        args: Sequence[Any],
        constraints: Any,
        invariants: Any,
    ) -> None:
        self.f, self.g, self.n_differential = f, g, n_differential
        super().__init__(
            _joined(f, g, n_differential or 0), args=args, constraints=constraints,
            invariants=invariants,
        )

    def _prepared(self, t: float, y: np.ndarray) -> Problem:
        n = len(y)
        k = self.n_differential
        if k is None:
            k = next((k for k in range(n + 1) if self._lengths(t, y, k) == (k, n - k)), None)
        if k is None or not 0 <= k <= n:
            raise ValueError(
                f"f and g do not split y0 ({n} values) into x and z: f must return one value for "
                "each x and g one for each z. Pass n_differential, the length of x, to see the "
                "error of the functions themselves"
            )
        if (lengths := self._lengths(t, y, k, swallow=False)) != (k, n - k):
            raise ValueError(
                f"f and g must return {k} and {n - k} values for n_differential = {k} and "
                f"{n} values in y0, but returned {lengths[0]} and {lengths[1]}"
            )
        prepared = copy.copy(self)
        prepared.fun = _joined(self.f, self.g, k)
        prepared.n_differential = k
        prepared.fyp = _first_ones(n, k)
        return prepared

    def guessed_names(self, n: int) -> list[str]:
        k = self.n_differential or 0
        names = [f"y[{j}]" for j in range(n)]
        for fun in (self.g, self.f):
            parts = ((1, 0, k), (2, k, n - k))
            read = [
                name for place, first, count in parts
                for name in guess_names(code_of(fun), count, place, first)
            ]
            for j, name in enumerate(read):
                if name != f"y[{j}]":
                    names[j] = name
        return [name if names.count(name) == 1 else f"y[{j}]" for j, name in enumerate(names)]

    def _lengths(self, t: float, y: np.ndarray, k: int, swallow: bool = True) -> tuple[int, int]:
        """Count the values f and g return if x had k values; a wrong k may well raise."""
        try:
            return (
                np.size(self.f(t, y[:k].copy(), y[k:].copy(), *self.args)),
                np.size(self.g(t, y[:k].copy(), y[k:].copy(), *self.args)),
            )
        except (IndexError, ValueError, TypeError):
            if swallow:
                return -1, -1
            raise


def _first_ones(n: int, k: int) -> Any:
    """Return the n by n diagonal matrix with k ones, then zeros; sparse if n is large."""
    ones = (np.arange(n) < k).astype(float)
    if n <= MAX_DENSE:
        return np.diag(ones)
    from scipy.sparse import diags_array  # late, to save time

    return diags_array(ones, format="csr")


def _joined(f: Callable, g: Callable, n_x: int) -> Callable[..., None]:
    """Residual of x' = f, 0 = g, where the first n_x unknowns are x."""

    def residual(t: float, y: np.ndarray, yp: np.ndarray, out: np.ndarray, *args: Any) -> None:
        x, z = y[:n_x], y[n_x:]
        out[:n_x] = yp[:n_x] - np.asarray(f(t, x, z, *args))
        out[n_x:] = g(t, x, z, *args)

    return residual


def _check_args(args: Any) -> tuple:
    if type(args) is tuple:
        return args
    if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
        raise TypeError(f"args must be a tuple or list, got {type(args).__name__}; write (value,)")
    return tuple(args)


def check_signature(
    name: str, fun: Any, expected: str, count: int, args: Sequence[Any] = ()
) -> None:
    """Refuse what cannot be called with `count` values followed by those of `args`."""
    if not callable(fun):
        raise TypeError(f"{name} must be callable, got {type(fun).__name__}")
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return                         # a builtin without a signature
    if expected == "(t, y, yp)":
        refuse_swapped(name, list(signature.parameters))
    try:
        signature.bind(*range(count), *args)
    except TypeError:
        followed = f" followed by the {len(args)} values of args" if args else ""
        hint = "" if args else _hint_at_args(signature, count)
        raise TypeError(
            f"{name} must accept {expected}{followed}, but its signature is {signature}{hint}"
        ) from None


def plain_parameters(fun: Any) -> tuple[str, ...] | None:
    """Return the names of the parameters if all are positional and have no defaults.

    Reading the code object takes a tenth of the time of `inspect.signature`.

    Examples
    --------
    >>> from tether.problem.problem import plain_parameters
    >>> plain_parameters(lambda t, y: y), plain_parameters(lambda t, y, k=1: y)
    (('t', 'y'), None)
    """
    if not isinstance(fun, types.FunctionType) or hasattr(fun, "__wrapped__"):
        return None
    code = fun.__code__
    if code.co_kwonlyargcount or fun.__defaults__ or code.co_flags & inspect.CO_VARARGS:
        return None
    return None if hasattr(fun, "__signature__") else code.co_varnames[: code.co_argcount]


def _hint_at_args(signature: inspect.Signature, count: int) -> str:
    """Hint that values of further parameters are passed by `args`, if a function has any."""
    further = list(signature.parameters)[count:]
    return f"; give the value of {', '.join(further)} by args=" if further else ""


def refuse_swapped(name: str, parameters: Sequence[str]) -> None:
    """Refuse a function whose parameters are named (t, yp, y), in the wrong order.

    Examples
    --------
    >>> from tether.problem.problem import refuse_swapped
    >>> refuse_swapped("fun", ["t", "y", "yp"])
    """
    if len(parameters) < 3:
        return
    second, third = parameters[1:3]
    if third.lower() not in second.lower():
        return                         # the usual case
    slopes = {form.format(third).lower() for form in NAMES_OF_SLOPES}
    if second.lower() in slopes:
        raise TypeError(
            f"{name} must take the unknowns before their derivatives, (t, y, yp), but its "
            f"parameters are ({', '.join(parameters[:3])}): {second!r} and {third!r} are the wrong "
            "way round"
        )


def _right_hand_side(f: Callable[..., Any], t: float, y: np.ndarray, args: tuple) -> np.ndarray:
    """Values of f, checked: a single value would be broadcast to all equations."""
    values = np.asarray(f(t, y, *args))
    if values.shape == () and len(y) == 1:
        return np.array([values])
    if values.shape != y.shape:
        hint = ": join its parts with np.concatenate" if values.ndim > 1 else ""
        raise WrongResult(
            f"f must return {len(y)} values, one per unknown in y0, but returned "
            f"an object of shape {values.shape}{hint}"
        )
    return values


def _mass_at(matrix_at: Callable[..., Any], t: float, y: np.ndarray) -> Any:
    matrix = matrix_at(t, y)
    if np.shape(matrix) != (len(y), len(y)):
        raise WrongResult(
            f"M must return a matrix of shape {(len(y), len(y))}, got {np.shape(matrix)}"
        )
    return matrix


def _check_var_index(var_index: Any) -> np.ndarray | None:
    if var_index is None:
        return None
    kinds = np.asarray(var_index)
    if kinds.ndim != 1 or kinds.dtype.kind not in "iu":
        raise TypeError(f"var_index must be a vector of integers, got {var_index!r}")
    if np.any((kinds < 0) | (kinds > 3)):
        raise ValueError(f"var_index must be 0, 1, 2 or 3 for every unknown, got {var_index!r}")
    return kinds.astype(int)


def _check_jac(jac: Any, n_args: int) -> Callable[..., Any] | None:
    if callable(jac):
        check_signature("jac", jac, "(t, y, yp)", 3, range(n_args))
    if jac is None or callable(jac):
        return jac
    if isinstance(jac, Sequence) and len(jac) == 2:
        constant = tuple(jac)
        return lambda t, y, yp, *args: constant
    raise TypeError(
        "jac must be a function (t, y, yp) -> (F_y, F_yp) or the pair of constant matrices, "
        f"got {type(jac).__name__}"
    )


def _fills_its_argument(fun: Callable[..., Any], n_args: int) -> bool:
    """Tell ``fun(t, y, yp, out)`` from ``fun(t, y, yp)``; refuse what is neither."""
    names = plain_parameters(fun)
    if names is not None:
        refuse_swapped("fun", names)
        if len(names) == 3 + n_args and "out" not in names[3:4]:
            return False
        if len(names) == 4 + n_args:
            return True
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return False                   # a builtin without a signature; assume that it returns
    refuse_swapped("fun", [p.name for p in parameters])
    keyword_only = [
        p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]
    if keyword_only:
        raise TypeError(f"fun needs the keyword arguments {keyword_only}, which are never passed")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    required = sum(p.default is p.empty for p in positional)
    named_out = len(positional) >= 4 and positional[3].name == "out"
    fills = named_out or required == 4 + n_args
    passed = 3 + fills + n_args
    if required > passed or (passed > len(positional) and not open_ended):
        followed = f", followed by the {n_args} values of args" if n_args else ""
        hint = "" if n_args else _hint_at_args(inspect.signature(fun), 3)
        if len(positional) == 2:
            hint = "; for M y' = f(t, y) use Problem.mass_matrix(M, f)"
        raise TypeError(
            f"fun must accept (t, y, yp) or (t, y, yp, out){followed}, but its signature is "
            f"{inspect.signature(fun)}{hint}"
        )
    return fills
