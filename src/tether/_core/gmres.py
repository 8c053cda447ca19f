"""GMRES: linear systems by iteration, in memory that grows like n.

The solution is sought in the space of M^-1 b, (M^-1 A) M^-1 b, ..., where M is close to A and easy
to solve with (Saad and Schultz, SIAM J. Sci. Stat. Comput. 7, 1986, 856-869). Increments are
measured with the weights of the error test, as in DASPK (Brown, Hindmarsh and Petzold, SIAM J. Sci.
Comput. 15, 1994, 1467-1488), so that the units of the unknowns make no difference, and the
iteration ends early: Newton's method corrects what is left over.

The classes derived from `Gmres` define the product with A, and M: `krylov.py` knows the entries of
A, `matrix_free.py` does not.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

from tether._core.adapters import REAL, WrongResult
from tether._core.foreign import guard_of

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors

# Residual that a solution may leave, as a share of the right-hand side, in the equations and after
# multiplication by M^-1.
LEFT_OVER = 1e-3
LEFT = cython.declare(cython.double, LEFT_OVER)
# A solution with a relative residual above this is a failure.
FAILED_RESIDUAL = cython.declare(cython.double, 0.1)
NAN = cython.declare(cython.double, float("nan"))
# Directions before a restart from the solution so far, and the most in all.
DIRECTIONS, FEWER, MANY = 50, 20, 100_000         # ... fewer with so many unknowns
MOST = cython.declare(cython.int, 200)


class Gmres(Factors):
    """Solutions by iteration.

    Parameters
    ----------
    n : int
        Size.
    user : object, optional
        Replaces M: has ``solve(b)``.

    Attributes
    ----------
    solutions, iterations, failures : int
        Systems solved so far, products with the matrix they took, and systems not solved within the
        largest number of iterations.
    """

    def __init__(self, n, user=None):
        self.n, self.factored = n, False
        self.solutions = self.iterations = self.failures = 0
        self.directions = min(DIRECTIONS if n < MANY else FEWER, max(n, 1))
        self.weight = cython.NULL
        self.user, self.by_user = user, user is not None
        self.guard, self.token = guard_of(user) if self.by_user else None, object()
        m: cython.longlong = self.directions
        self.memory = [
            np.zeros((m + 1) * n), np.zeros((m + 1) * m + 3 * (m + 1)), *np.zeros((4, n)),
        ]
        self.space, self.small = address(self.memory[0]), address(self.memory[1])
        self.x, self.r = address(self.memory[2]), address(self.memory[3])
        self.b, self.row_size = address(self.memory[4]), address(self.memory[5])

    @property
    def by(self):
        """What takes the place of M, for people."""
        return type(self.user).__name__

    @property
    def words(self):
        """Short description, for people."""
        each = float(self.iterations) / max(self.solutions, 1)
        return f"solved by GMRES with {self.by}, {each:.1f} iterations each"

    def weigh(self, weight):
        """Measure solutions with these weights; NULL: all entries alike."""
        self.weight = weight

    def solve(self, b):
        """Solve A x = b in place, as accurately as Newton's method needs."""
        iterate(self, b, False)

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        iterate(self, b, True)

    def multiply(self, x, out, transposed):
        """Set `out` to A x, or to A^T x."""

    def precondition(self, v, out):
        """Set `out` to M^-1 v."""

    def precondition_transposed(self, v, out):
        """Set `out` to M^-T v; `v` is overwritten."""

    # --- calls of the user's object, with the GIL

    def hand_over(self):
        """Let the object set up what it needs."""

    def call_factor(self):
        """Let the object set up what it needs; keep any exception."""
        try:
            with self.guard.lock:
                self.guard.owner = None
                self.hand_over()
                self.guard.owner = self.token
        except np.linalg.LinAlgError:
            return SINGULAR
        except BaseException as error:
            self.failed, self.error = True, error
            return SINGULAR
        return OK

    def call_solve(self, v, out):
        """Let the object apply its approximate inverse; keep any exception."""
        i: cython.int
        data: cython.p_double
        try:
            given = np.empty(self.n)
            data = address(given)
            for i in range(self.n):
                data[i] = v[i]
            with self.guard.lock:
                if self.guard.owner is not self.token and self.call_factor() != OK:
                    return SINGULAR
                found = np.asarray(self.user.solve(given))
            if found.shape != given.shape or found.dtype.kind not in REAL:
                raise WrongResult(
                    f"preconditioner {type(self.user).__name__}: solve must return {self.n} real "
                    f"numbers, but returned an object of shape {found.shape} of {found.dtype}"
                )
            found = np.ascontiguousarray(found, float)
            data = address(found)
            for i in range(self.n):
                out[i] = data[i]
        except BaseException as error:
            self.failed, self.error = True, error
            return SINGULAR
        return OK


def ask_user(f, v, out):
    """Set `out` to the object's solution for v, or to NaN."""
    i: cython.int
    status: cython.int
    with cython.gil:
        status = f.call_solve(v, out)
    if status != OK:
        for i in range(f.n):
            out[i] = NAN


def iterate(f, b, transposed):
    """Replace b by the solution, or by NaN if the iteration comes nowhere near one."""
    n: cython.int = f.n
    i: cython.int
    made: cython.int
    count: cython.int = 0
    left: cython.double
    target: cython.double = -1.0
    whole: cython.double = 0.0
    rest: cython.double = 0.0
    f.solutions += 1
    for i in range(n):
        f.b[i] = b[i]
        f.x[i] = f.r[i] = 0.0
    while True:
        for i in range(n):
            f.r[i] = f.b[i] - f.r[i]
        rest = residual_size(f, transposed)
        if target < 0.0:
            whole = rest
        if rest <= LEFT * whole or count >= MOST:
            break
        apply_preconditioner(f, f.space, transposed)
        left = sqrt(dot(f.space, f.space, n))
        if not 0.0 < left <= 1e300:                # also true of NaN
            break
        # M^-1 may hide what matters: the target is lowered until the equations agree
        target = LEFT * (left if target < 0.0 else min(left, target))
        made = extend_space(f, left, target, transposed, min(f.directions, MOST - count))
        count += max(made, 1)
        combine(f, made, transposed)
        f.multiply(f.x, f.r, transposed)
    f.iterations += count
    if not rest <= LEFT * whole:
        f.failures += 1
    for i in range(n):
        b[i] = f.x[i] if rest <= FAILED_RESIDUAL * whole else NAN


def residual_size(f, transposed):
    """Size of the residual, each equation measured by its largest term."""
    i: cython.int
    term: cython.double
    total: cython.double = 0.0
    for i in range(f.n):
        term = f.r[i] * weight_of(f, i, False) if transposed else f.r[i] / f.row_size[i]
        total += term * term
    return sqrt(total)


def extend_space(f, left, target, transposed, most):
    """Add directions until the residual is below the target; return how many there are.

    The last column of `f.small` then has the coordinates of the correction.
    """
    n: cython.int = f.n
    m: cython.int = f.directions
    i: cython.int
    j: cython.int = 0
    k: cython.int
    size: cython.double
    first: cython.double
    second: cython.double
    h: cython.p_double                             # a column of the triangle
    cosine: cython.p_double = part(f.small, (m + 1) * m)
    sine: cython.p_double = part(f.small, (m + 1) * (m + 1))
    g: cython.p_double = part(f.small, (m + 1) * (m + 2))
    old: cython.p_double
    new: cython.p_double
    for i in range(n):
        f.space[i] /= left
    g[0] = left
    while j < most:
        old, new = direction(f, j), direction(f, j + 1)
        h = part(f.small, j * (m + 1))
        for i in range(n):
            new[i] = old[i] / weight_of(f, i, transposed)
        f.multiply(new, f.r, transposed)
        apply_preconditioner(f, new, transposed)
        for k in range(j + 1):
            old = direction(f, k)
            h[k] = dot(old, new, n)
            for i in range(n):
                new[i] -= h[k] * old[i]
        size = sqrt(dot(new, new, n))
        for k in range(j):
            first, second = h[k], h[k + 1]
            h[k] = cosine[k] * first + sine[k] * second
            h[k + 1] = cosine[k] * second - sine[k] * first
        first = h[j]
        second = sqrt(first * first + size * size)
        if not 0.0 < second <= 1e300:              # this direction adds nothing
            break
        for i in range(n):
            new[i] = new[i] / size if size > 0.0 else 0.0
        cosine[j], sine[j] = first / second, size / second
        h[j] = second
        g[j + 1] = -sine[j] * g[j]
        g[j] *= cosine[j]
        j += 1
        if fabs(g[j]) <= target:
            break
    for k in range(j - 1, -1, -1):
        for i in range(k + 1, j):
            g[k] -= f.small[i * (m + 1) + k] * g[i]
        g[k] /= f.small[k * (m + 1) + k]
    return j


def combine(f, count, transposed):
    """Add the combination of the first `count` directions to the solution."""
    n: cython.int = f.n
    i: cython.int
    k: cython.int
    g: cython.p_double = part(f.small, (f.directions + 1) * (f.directions + 2))
    v: cython.p_double
    for k in range(count):
        v = direction(f, k)
        for i in range(n):
            f.x[i] += g[k] * v[i] / weight_of(f, i, transposed)


def apply_preconditioner(f, out, transposed):
    """Set `out` to M^-1 times `f.r`, scaled by the weights; `f.r` is overwritten."""
    i: cython.int
    if transposed:
        f.precondition_transposed(f.r, out)
    else:
        f.precondition(f.r, out)
    for i in range(f.n):
        out[i] *= weight_of(f, i, transposed)


def weight_of(f, i, transposed):
    """Weight of an unknown; in the transposed system, of an equation."""
    if transposed:
        return f.row_size[i]
    return 1.0 if f.weight is cython.NULL else f.weight[i]


def dot(a, b, n):
    """Dot product, in four independent sums."""
    i: cython.int
    whole: cython.int = n - n % 4
    s0: cython.double = 0.0
    s1: cython.double = 0.0
    s2: cython.double = 0.0
    s3: cython.double = 0.0
    for i in range(0, whole, 4):
        s0 += a[i] * b[i]
        s1 += a[i + 1] * b[i + 1]
        s2 += a[i + 2] * b[i + 2]
        s3 += a[i + 3] * b[i + 3]
    for i in range(whole, n):
        s0 += a[i] * b[i]
    return (s0 + s1) + (s2 + s3)


def direction(f, k):
    """Return the k-th direction."""
    return part(f.space, k * cython.cast(cython.longlong, f.n))


def part(array, start):
    """Return an array from index `start` on."""
    return array + start if cython.compiled else array[start:]
