"""Sparse matrices that are factored by a user's object.

They are stored as in `sparse.py`; the object's `factor` and `solve` are called with the GIL. The
object knows one matrix at a time, while there may be several here: that of a run, those of a
diagnosis or of a start; and other runs may use the same object, in other threads too. A `Guard`
records for every object who has factored last; all others factor again before they solve.

A solver reports a singular matrix by numpy.linalg.LinAlgError, or as SciPy's SuperLU does. Any
other exception is kept, to be raised again unchanged (`adapters.raise_user_error`).
"""

import threading
from weakref import WeakValueDictionary

import cython
import numpy as np

from tether._core.adapters import REAL, WrongResult

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.sparse import Sparse

NAN = cython.declare(cython.double, float("nan"))
# The guard of every object that is in use, by the object's id.
GUARDS = WeakValueDictionary()


class Guard:
    """Lets one user at a time use an object, and knows whose factors it has."""

    def __init__(self, solver):
        self.solver = solver               # keeps the object alive, so that nothing else has its id
        self.lock = threading.RLock()
        self.owner = None


def guard_of(solver):
    """Return the guard of an object, the same one for all who use the object."""
    found = GUARDS.get(id(solver))
    return GUARDS.setdefault(id(solver), Guard(solver)) if found is None else found


def says_singular(error):
    """Tell whether an exception is a solver's way of saying that a matrix is singular."""
    if isinstance(error, np.linalg.LinAlgError):
        return True
    return isinstance(error, RuntimeError) and "singular" in str(error).lower()


class Foreign(Sparse):
    """Matrices of one pattern, factored by a user's object.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries of F_y and F_y'.
    solver : object
        Has ``factor(matrix)`` and ``solve(b)``, and may have ``refactor(matrix)`` for a matrix with
        the pattern of the last one.
    """

    def __init__(self, pattern, solver):
        self.solver, self.seen = solver, None
        self.guard, self.token = guard_of(solver), object()
        Sparse.__init__(self, pattern)

    @property
    def name(self):
        """Name of the solver."""
        return getattr(self.solver, "name", None) or type(self.solver).__name__

    @property
    def words(self):
        """Short description, for people."""
        return f"sparse matrices of {self.room} entries, factored by {self.name}"

    def factor(self):
        """Let the object factor the assembled matrix."""
        with cython.gil:
            return self.call_factor()

    def solve(self, b):
        """Let the object solve; `b` becomes NaN if there is no solution."""
        i: cython.int
        status: cython.int
        with cython.gil:
            status = self.call_solve(b)
        if status != OK:
            for i in range(self.n):
                b[i] = NAN

    def pivot_ratio(self):
        """Nothing is known about the pivots."""
        return 0.0

    def reciprocal_condition(self, norm):
        """Estimate the reciprocal condition number with our own factors."""
        return Sparse.reciprocal_condition(self, norm) if self.factor_here() else 0.0

    # --- calls of the object, with the GIL

    def call_factor(self):
        """Return OK or SINGULAR; keep any exception."""
        if self.failed:
            return SINGULAR
        try:
            with self.guard.lock:
                return self.hand_over()
        except BaseException as error:
            self.keep(error)
        return SINGULAR

    def call_solve(self, b):
        """Solve in place; return OK or SINGULAR."""
        i: cython.int
        data: cython.p_double
        if self.failed:
            return SINGULAR
        try:
            given = np.empty(self.n)
            data = address(given)
            for i in range(self.n):
                data[i] = b[i]
            with self.guard.lock:
                found = self.ask(given)
            if found is None:
                return SINGULAR
            data = address(found)
            for i in range(self.n):
                b[i] = data[i]
        except BaseException as error:
            self.keep(error)
            return SINGULAR
        return OK

    def keep(self, error):
        """Keep an exception until it is raised again."""
        self.failed, self.error, self.seen = True, error, None

    @property
    def stored(self):
        """The matrix object that was assembled last."""
        return self.split if self.mixed else self

    def hand_over(self):
        """Give the object the matrix; return OK or SINGULAR."""
        stored = self.stored
        pattern, values = stored.pattern, stored.memory[2, : stored.room]
        again = self.seen is pattern and self.guard.owner is self.token
        self.seen = None
        if not np.isfinite(values).all():
            return SINGULAR
        # a copy: the object may keep it or change it
        matrix = pattern.matrix(values).copy()
        refactor = getattr(self.solver, "refactor", None) if again else None
        try:
            if refactor is None or not try_refactor(refactor, matrix):
                self.guard.owner = None
                self.solver.factor(matrix)
        except Exception as error:
            if says_singular(error):
                return SINGULAR
            raise
        self.guard.owner = self.token
        self.seen = pattern
        return OK

    def ask(self, b):
        """Return the object's solution, or None if the matrix is numerically singular."""
        if not np.isfinite(b).all():
            return None
        if self.guard.owner is not self.token and self.hand_over() != OK:
            return None
        try:
            found = self.solver.solve(b.copy())
        except Exception as error:
            if says_singular(error):
                return None
            raise
        x = np.asarray(found)
        if x.shape != b.shape or x.dtype.kind not in REAL:
            what = "None" if found is None else f"an object of shape {x.shape} of {x.dtype}"
            raise WrongResult(
                f"linear_solver {self.name}: solve must return {self.n} real numbers, but returned "
                f"{what}"
            )
        if np.isfinite(x).all():
            return np.ascontiguousarray(x, float)
        if self.factor_here() and np.isfinite(self.stored.solution(b)).all():
            raise WrongResult(
                f"linear_solver {self.name}: solve returned values that are not finite, though the "
                "matrix is not singular"
            )
        return None

    def factor_here(self):
        """Factor the assembled matrix by `sparse_lu.py`; tell whether that worked."""
        stored = self.stored
        return stored.open_factors().take(stored.memory[2, : stored.room])


def try_refactor(refactor, matrix):
    """Tell whether a solver has renewed its factors; the old pivots may not be usable any more."""
    try:
        refactor(matrix.copy())
    except Exception as error:
        if says_singular(error):
            return False
        raise
    return True
