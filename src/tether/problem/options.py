"""Options of the integration: one field, one line, one default, one source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether.base.checks import as_numbers
from tether.base.frozen import make_frozen

__all__ = ["Options"]

CONTROLLERS = ("h211b", "dassl")
NORMS = ("max", "rms")
# Which systems an error estimate may be used for: those of index 0 and 1 as they are written, those
# reduced to index 1, those of index 2 and 3 as they are written.
PLAIN, REDUCED, HIGH = "plain", "reduced", "high"
ESTIMATES_FOR = {
    "classical": (PLAIN, REDUCED, HIGH),
    "exclude": (REDUCED, HIGH),
    "scaled": (HIGH,),
    "local": (PLAIN, HIGH),
    "mechanical": (HIGH,),
}
# The core's code of an estimate is its position in this tuple.
ESTIMATES = tuple(ESTIMATES_FOR)
SCALINGS = ("none", "rows", "kinds")
NEWTON_TESTS = ("y", "yp")
FORMS = ("auto", "given", 2)
TRACES = ("auto", "never", "always")
BACKENDS = ("auto", "machine", "c")
STARTS = ("auto", "quiet", "assume", "check")
OWN_SOLVERS = ("auto", "dense", "band", "sparse", "krylov")
LINEAR_SOLVERS = (*OWN_SOLVERS, "klu", "superlu", "pardiso")
PROJECTION_SOLVERS = ("auto", "orthogonal", "cholesky", "sparse")
PLACEMENTS = ("before", "after")
CHOICES = {
    "controller": CONTROLLERS,
    "error_norm": NORMS,
    "newton_norm": NORMS,
    "newton_test": NEWTON_TESTS,
    "estimate": ("auto", *ESTIMATES),
    "scaling": SCALINGS,
    "form": FORMS,
    "trace": TRACES,
    "backend": BACKENDS,
    "start": STARTS,
    "linear_solver": LINEAR_SOLVERS,
    "projection_solver": PROJECTION_SOLVERS,
    "projection_placement": PLACEMENTS,
}


@dataclass(frozen=True)
class Options:
    """Everything that controls an integration.

    `solve_dae` takes the common ones as arguments, the others through its `options`.

    Parameters
    ----------
    rtol, atol : float or array_like
        Relative and absolute tolerance of each component; the error of a step is kept below
        ``rtol * abs(y) + atol``.
    first_step : float, optional
        Size of the first step; chosen from the slope when left out.
    max_step : float
        Largest size of a step.
    max_order : int
        Highest order of the BDF, 1 to 6.
    max_steps, max_seconds : optional
        Stop with a failure after so many accepted steps or so much time, which includes that of
        tracing and of the start.
    controller : {"h211b", "dassl"}
        Söderlind's digital filter H211b with b = 4 and a dead band, or DASSL's rule
        (keep, halve or double).
    error_norm, newton_norm : {"max", "rms"}
        Weighted norm of the error test and of the convergence test (PL2 section 5).
    newton_tolerance : float
        Share of the tolerance that Newton's iteration may leave as an error.
    newton_test : {"y", "yp"}
        Newton's iteration ends when the error left in y is within that share (P82 eq. 5.9), or when
        h y' is, with the error of y held to h times the tolerance (P82 eq. 5.10).
    estimate : {"auto", "classical", "exclude", "scaled", "local", "mechanical"}
        What the error test looks at: corrector minus predictor; the same without unknowns of
        index 2 and 3, or with theirs times h and h**2 (as RADAU5); its effect on the solution (P82
        eq. 4.5); the same, of the velocities only where they are free (PL2 eq. 5.2-5.5).
        "auto" is "classical" for index 0 and 1 and "mechanical" for 2 and 3
        (docs/studies/error-estimates.md).
        For index 0 and 1 "classical" and "local" are possible, for a reduced system "classical" and
        "exclude"; the others are refused there.
    scaling : {"none", "rows", "kinds"}
        Scaling of the iteration matrix: none, every row to largest entry 1, or rows and columns by
        powers of h according to their kind (PL2 section 3).
    form : {"auto", "given", 2}
        Integrate a traced system of index 2 or more at index 1, on all of its constraints; as it
        is written; or reduced to index 2.
    trace : {"auto", "never", "always"}
        Run `fun` as a program if it can be traced; always call it; or refuse it if it cannot be
        traced.
    backend : {"auto", "machine", "c"}
        What runs the program: the core's machine; C code (or the machine, if there is no compiler);
        or C code where it exists already or is worth compiling. ``sol.how`` says which it was.
    start : {"auto", "quiet", "assume", "check"}
        Make the starting values consistent, with a warning if `y0` was changed or without, take
        them as they are, or refuse inconsistent ones.
    linear_solver : {"auto", "dense", "band", "sparse", "krylov", ...} or object
        How the matrices of Newton's iteration are stored and factored: all of their entries, those
        within the narrowest band that reordering rows and columns gives, only those that can be
        nonzero, or whichever costs least; "krylov" iterates with incomplete factors, for fields of
        very many unknowns. ``sol.how`` says which it was.
        "klu", "superlu" and "pardiso" factor sparse matrices by libraries; SuperLU comes with
        SciPy. So does any object with ``factor(matrix)``, which gets a SciPy CSC array, and
        ``solve(b)``, which returns x; ``refactor(matrix)``, if there is one, gets matrices of the
        same pattern as the one before. It raises `numpy.linalg.LinAlgError` for a singular matrix.
    preconditioner : object, optional
        For "krylov", in place of the incomplete factors: has ``factor(matrix)``, as a linear solver
        of your own, and ``solve(b)``, which returns something close to the solution. With
        ``setup(t, y, yp, c)`` in place of ``factor`` there is no matrix at all: `fun` is called,
        and the product of F_y + c F_y' and a vector is a difference of two residuals. A function
        that is called, and whose sparsity is not given, is also treated like this if it has more
        than 20,000 unknowns, or more than 1,000 of which nearly all occur in all equations; there
        are no incomplete factors then, and dependent equations are not noticed.
    projection_power : float
        The projection onto constraints minimises the length of ``dy / W**p`` with
        ``W = rtol * abs(y) + atol`` and this power p.
    projection_solver : {"auto", "orthogonal", "cholesky", "sparse"}
        Row-pivoted orthogonal factors (any rank), normal equations (independent constraints),
        or the sparse compound system (many constraints, independent). "auto" takes the latter for
        many constraints of few unknowns each, as long as they are independent, and orthogonal
        factors otherwise.
    projection_placement : {"before", "after"}
        Project before the error test, or after a step that passed it.
    accept_projected_start : bool
        Accept a start that has to be moved by more than the tolerance to meet the constraints.
    sensitivity_test : bool
        Whether the errors of ``sol.sens`` are kept within the tolerances too, those of dy/dp within
        ``rtol * abs(dy/dp) + atol / abs(p)``: a run whose steps were too long for that is repeated
        with shorter ones there, unless an event or callback has changed its state.
    tape_memory : float
        Bytes of memory for the steps of a run that is differentiated; the rest goes to a temporary
        file.
    quadratures_tested : bool
        Keep the errors of `quadratures` below the tolerances, like those of unknowns. Otherwise the
        steps are as long as the unknowns allow, and nothing is promised about the integrals: over
        long steps, where unknowns hardly change, they may be inaccurate.

    Examples
    --------
    >>> from tether import Options
    >>> Options(rtol=1e-8, controller="dassl").max_order
    6
    """

    rtol: ArrayLike = 1e-6
    atol: ArrayLike = 1e-9
    first_step: float | None = None   # DASSL's rule when None
    max_step: float = math.inf        # SciPy
    max_order: int = 6                # from 7 on the BDF are unstable
    max_steps: int | None = None
    max_seconds: float | None = None
    controller: str = "h211b"         # Söderlind 2003; measured, docs/mathematics.md
    error_norm: str = "max"           # PL2 section 5; measured equal to rms
    newton_norm: str = "max"          # PL2 section 5
    newton_tolerance: float = 0.1     # measured: 0.33 of DASSL costs up to twice the steps
    newton_test: str = "y"            # P82 eq. 5.9
    estimate: str = "auto"            # measured, docs/studies/error-estimates.md
    scaling: str = "none"             # measured, docs/studies/error-estimates.md
    form: str | int = "auto"          # measured, docs/studies/formulations.md
    trace: str = "auto"
    backend: str = "auto"             # measured, benchmarks/results/machine.md
    start: str = "auto"               # repair what is free, keep the rest
    linear_solver: Any = "auto"       # measured, benchmarks/results/large.md
    preconditioner: Any = None
    projection_power: float = 1.0     # measured, docs/studies/projection-choices.md
    projection_solver: str = "auto"         # HK
    projection_placement: str = "before"    # measured, docs/studies/projection-choices.md
    accept_projected_start: bool = False    # HK: refuse a start off the constraints
    sensitivity_test: bool = False          # IDAS: off; the run is repeated for it
    tape_memory: float = 1e9
    quadratures_tested: bool = True         # IDAS: off; here results keep to the tolerances

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            _check_tolerance(name, getattr(self, name))
        if self.first_step is not None:
            _check_positive("first_step", self.first_step)
        _check_positive("max_step", self.max_step, finite=False)
        if not _is_integer(self.max_order) or not 1 <= self.max_order <= 6:
            raise ValueError(f"max_order must be an integer from 1 to 6, got {self.max_order!r}")
        if self.max_steps is not None and (not _is_integer(self.max_steps) or self.max_steps < 1):
            raise ValueError(f"max_steps must be a positive integer, got {self.max_steps!r}")
        if self.max_seconds is not None:
            _check_positive("max_seconds", self.max_seconds, finite=False)
        for name, choices in CHOICES.items():
            if name == "linear_solver" and not isinstance(self.linear_solver, str):
                _check_solver(
                    f"linear_solver must be one of {LINEAR_SOLVERS} or", self.linear_solver
                )
            elif getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}")
        if self.preconditioner is not None:
            if not isinstance(self.linear_solver, str) or self.linear_solver != "krylov":
                raise ValueError("preconditioner needs linear_solver='krylov'")
            _check_preconditioner(self.preconditioner)
            if self.is_matrix_free and self.trace == "always":
                raise ValueError(
                    "trace='always' goes with a preconditioner that has factor(matrix): one with "
                    "setup(t, y, yp, c) gets no matrix, and fun is called"
                )
        _check_positive("newton_tolerance", self.newton_tolerance)
        power = self.projection_power
        if not isinstance(power, (int, float)) or not math.isfinite(power):
            raise TypeError(f"projection_power must be a finite number, got {power!r}")
        for name in ("accept_projected_start", "sensitivity_test", "quadratures_tested"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, got {getattr(self, name)!r}")
        _check_positive("tape_memory", self.tape_memory, finite=False)

    @property
    def is_matrix_free(self) -> bool:
        """Whether the preconditioner needs no matrix entries."""
        return self.preconditioner is not None and not hasattr(self.preconditioner, "factor")

    @property
    def repairs_start(self) -> bool:
        """Whether starting values are made consistent."""
        return self.start in ("auto", "quiet")

    @property
    def same_for_all(self) -> bool:
        """Whether `rtol` and `atol` are two numbers, the same for every unknown."""
        rtol = self.rtol
        return isinstance(rtol, float) and rtol > 0.0 and isinstance(self.atol, float)

    def tolerances(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rtol and atol as one value per unknown."""
        both = np.empty((2, n))
        if self.same_for_all:
            both[0], both[1] = self.rtol, self.atol
            return both[0], both[1]
        for place, (name, value) in enumerate((("rtol", self.rtol), ("atol", self.atol))):
            if not isinstance(value, float):
                value = np.asarray(value, float)
                if value.ndim == 1 and len(value) != n:
                    raise ValueError(
                        f"{name} must be a number or have one value per unknown ({n}), "
                        f"got {len(value)} values"
                    )
            both[place] = value
        if not both.any(axis=0).all():
            nothing = int(np.argmin(both.any(axis=0)))
            raise ValueError(
                f"rtol and atol are both zero for component {nothing}; one must be positive"
            )
        return both[0], both[1]


DEFAULTS = {field.name: field.default for field in fields(Options)}
NAMES = tuple(DEFAULTS)


class Default:
    """Stands for an argument that was left out; its repr is that of the default value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


def default(name: str) -> Any:
    """Return the default of an option for a signature, which shows that it was not passed.

    Examples
    --------
    >>> from tether.problem.options import default, merge
    >>> default("rtol")
    1e-06
    >>> merge({"rtol": 1e-3}, rtol=default("rtol")).rtol, merge({"rtol": 1e-3}, rtol=1e-6).rtol
    (0.001, 1e-06)
    """
    return Default(DEFAULTS[name])


def merge(options: Options | Mapping[str, Any] | None, **arguments: Any) -> Options:
    """Combine `options` with arguments; an argument that was passed overrides the option."""
    if isinstance(options, Options) and not arguments:
        return options
    if options is None:
        try:
            return _merged(tuple(arguments), *arguments.values())
        except TypeError:              # not hashable: a vector, or a wrong type, reported below
            given: dict[str, Any] = {}
    elif isinstance(options, Options):
        given = {name: getattr(options, name) for name in NAMES}
    elif isinstance(options, Mapping):
        unknown = sorted(set(options) - set(NAMES))
        if unknown:
            raise TypeError(f"options has unknown names {unknown}; known are {list(NAMES)}")
        given = dict(options)
    else:
        raise TypeError(f"options must be Options or a mapping, got {type(options).__name__}")
    given.update(_passed(arguments))
    if not isinstance(given.get("linear_solver", ""), str):
        return Options(**given)        # not cached: that would keep an object's factors alive
    return _with_tolerances(given)


def _passed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return those arguments that were not left out."""
    return {
        name: value for name, value in arguments.items() if not isinstance(value, Default)
    }


@lru_cache(maxsize=32, typed=True)
def _merged(names: tuple[str, ...], *values: Any) -> Options:
    """Make `Options` of hashable arguments; equal arguments get the same object."""
    return _with_tolerances(_passed(dict(zip(names, values, strict=True))))


def _with_tolerances(given: dict[str, Any]) -> Options:
    """Make `Options`; options that differ only in tolerances have the rest checked once."""
    tolerances = {name: given.pop(name) for name in ("rtol", "atol") if name in given}
    try:
        rest = _checked(**given)
    except TypeError:                  # a wrong type: let the arguments be checked one by one
        return Options(**given, **tolerances)
    for name, value in tolerances.items():
        _check_tolerance(name, value)
    return make_frozen(Options, rest.__dict__ | tolerances)


@lru_cache(maxsize=32, typed=True)
def _checked(**given: Any) -> Options:
    return Options(**given)


def _check_solver(must: str, solver: Any) -> None:
    """Refuse an object that cannot factor and solve."""
    missing = [
        name for name in ("factor", "solve") if not callable(getattr(solver, name, None))
    ]
    if missing or isinstance(solver, type):
        what = f"the class {solver.__name__}" if isinstance(solver, type) else repr(solver)
        lacks = f", which has no method {missing[0]}" if missing else ", not an instance of it"
        raise TypeError(
            f"{must} an object with the methods factor(matrix) and solve(b), got {what}{lacks}"
        )
    if not callable(getattr(solver, "refactor", solver.factor)):
        raise TypeError("linear_solver has a refactor that is not callable")


def _check_preconditioner(given: Any) -> None:
    """Refuse an object that is no preconditioner, neither with matrix entries nor without."""
    if isinstance(given, type) or not callable(getattr(given, "setup", None)):
        _check_solver("preconditioner must be", given)
    elif not callable(getattr(given, "solve", None)):
        raise TypeError(
            "preconditioner must be an object with the methods setup(t, y, yp, c) and solve(b), "
            f"got {given!r}, which has no method solve"
        )


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_positive(name: str, value: Any, finite: bool = True) -> None:
    if isinstance(value, float) and value > 0.0 and not (finite and value == math.inf):
        return
    number = as_numbers(name, value)
    if number.ndim != 0 or number.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a positive number, got {value!r}")
    if not number > 0 or (finite and np.isinf(number)):
        raise ValueError(f"{name} must be positive, got {value!r}")


def _check_tolerance(name: str, value: Any) -> None:
    if isinstance(value, float) and 0.0 <= value < math.inf:
        return
    array = as_numbers(name, value)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a real number or an array of them, got {value!r}")
    if array.ndim > 1:
        raise ValueError(f"{name} must be a number or a vector, got shape {array.shape}")
    if array.size and not (array.min() >= 0 and array.max() < np.inf):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
