"""Linear systems by iteration: GMRES with incomplete factors, in memory that grows like n.

The solution is looked for in the space of M^-1 b, (M^-1 A) M^-1 b, ..., where M is close to A and
easily solved with (Saad and Schultz, SIAM J. Sci. Stat. Comput. 7, 1986, 856-869). Increments are
measured by the weights of the error test, as in DASPK (Brown, Hindmarsh and Petzold, SIAM J. Sci.
Comput. 15, 1994, 1467-1488), so that the units of the unknowns make no difference, and the
iteration ends early: Newton's method corrects what is left over.

M is a product of incomplete factors that stand nowhere but where A does (ILU(0)), of rows and
columns that were matched so that no diagonal entry is missing, or whatever the user makes of it.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

from tether._core.adapters import REAL, WrongResult
from tether._core.foreign import guard_of

if not cython.compiled:
    from tether._core.adapters import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors

# The share of the right-hand side that a solution may leave, in the equations and after
# multiplication by M^-1.
LEFT_OVER = 1e-3
LEFT = cython.declare(cython.double, LEFT_OVER)
# A solution that leaves more than this share of the equations is none.
TOO_MUCH = cython.declare(cython.double, 0.1)
NAN = cython.declare(cython.double, float("nan"))
# Directions before the iteration begins anew with what it has found, and how many in all.
DIRECTIONS, FEWER, MANY = 50, 20, 100_000         # ... fewer with so many unknowns
MOST = cython.declare(cython.int, 200)
# A pivot smaller than this share of its row is replaced: an incomplete factor need not be exact.
SMALLEST = cython.declare(cython.double, 1e-6)
# A matching by the size of entries may take time like the square of so many unknowns.
LARGEST_MATCHING = 100_000


class Krylov(Factors):
    """Incomplete factors of a sparse matrix, and solutions by iteration.

    Parameters
    ----------
    pattern : Pattern
        Where the entries stand.
    user : object, optional
        Stands in for the incomplete factors: has ``factor(matrix)`` and ``solve(b)``.

    Attributes
    ----------
    solutions, iterations, failures : int
        Systems solved so far, products with the matrix that took, and systems for which the most
        iterations were not enough.
    """

    def __init__(self, pattern, user=None):
        n: cython.int = pattern.n
        self.n, self.size, self.factored = n, pattern.size, False
        self.solutions = self.iterations = self.failures = 0
        self.directions = min(DIRECTIONS if n < MANY else FEWER, max(n, 1))
        self.weight = cython.NULL
        self.user, self.by_user = user, user is not None
        self.guard, self.token = guard_of(user) if self.by_user else None, object()
        m: cython.int = self.directions
        self.numbers = [
            np.zeros(pattern.size + 1), np.zeros(pattern.size + 1), np.zeros((m + 1) * n),
            np.zeros((m + 1) * m + 3 * (m + 1)), *np.zeros((4, n)),
        ]
        self.values, self.factors = address(self.numbers[0]), address(self.numbers[1])
        self.space, self.small = address(self.numbers[2]), address(self.numbers[3])
        self.x, self.r = address(self.numbers[4]), address(self.numbers[5])
        self.b, self.row_size = address(self.numbers[6]), address(self.numbers[7])
        self.pattern = pattern
        self.arrange(pattern.matching)

    def arrange(self, matched):
        """Let the pivots stand in these rows of the columns."""
        n, pattern = self.n, self.pattern
        self.complete = bool(np.all(matched >= 0))
        column_of = np.full(n, -1, np.intc)
        column_of[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
        # the matrix with its rows in the order of their columns, row by row
        rows = column_of[pattern.row]
        order = np.lexsort((pattern.columns, rows)).astype(np.intc)
        first = np.searchsorted(rows[order], np.arange(n + 1))
        columns = pattern.columns[order]
        diagonal = np.flatnonzero(columns == rows[order]) if self.complete else np.zeros(n)
        self.integers = [
            np.append(array, 0).astype(np.intc)
            for array in (pattern.start, pattern.row, first, columns, order, diagonal, matched,
                          np.full(n, -1))
        ]
        if cython.compiled:
            self.start, self.row = integers(self.integers[0]), integers(self.integers[1])
            self.first, self.column = integers(self.integers[2]), integers(self.integers[3])
            self.source, self.diagonal = integers(self.integers[4]), integers(self.integers[5])
            self.matched, self.place = integers(self.integers[6]), integers(self.integers[7])
        else:
            (self.start, self.row, self.first, self.column, self.source, self.diagonal,
             self.matched, self.place) = self.integers

    def arrange_by_size(self):
        """Make the product of the entries on the diagonal as large as it can be; tell if it is new.

        Duff and Koster, SIAM J. Matrix Anal. Appl. 20, 1999, 889-901.
        """
        from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # late, to save time

        sizes = np.abs(self.numbers[0][: self.size])
        if self.n > LARGEST_MATCHING or not self.size:
            return False
        kept = sizes > 0.0
        price = np.zeros(self.size)
        price[kept] = np.log(sizes[kept])
        price[kept] = 1.0 + price[kept].max() - price[kept]
        matrix = self.pattern.matrix(price).tocsr()     # a copy: the other shares its arrays
        matrix.eliminate_zeros()
        try:
            rows, columns = min_weight_full_bipartite_matching(matrix)
        except ValueError:                         # singular whatever the values
            return False
        matched = np.empty(self.n, np.intc)
        matched[columns] = rows
        if np.array_equal(matched, self.integers[6][: self.n]):
            return False
        self.arrange(matched)
        return True

    @property
    def entries(self):
        """Number of entries of the incomplete factors."""
        return self.size

    @property
    def words(self):
        """What they are, for people."""
        each = float(self.iterations) / max(self.solutions, 1)
        by = type(self.user).__name__ if self.by_user else "incomplete factors"
        return f"solved by GMRES with {by}, {each:.1f} iterations each"

    def weigh(self, weight):
        """Measure solutions by these weights; without, all entries alike."""
        self.weight = weight

    def factor(self, values):
        """Make the incomplete factors; SINGULAR: an entry of the diagonal is missing, or NaN."""
        p: cython.longlong
        for p in range(self.size):
            if not fabs(values[p]) <= 1e300:
                return SINGULAR
            self.values[p] = values[p]
        measure_rows(self)
        if self.by_user:
            with cython.gil:
                self.factored = self.call_factor() == OK
            return OK if self.factored else SINGULAR
        if not self.complete:
            return SINGULAR
        self.factored = eliminate_within(self) == OK
        if self.replaced > 0:
            with cython.gil:
                if self.arrange_by_size():
                    self.factored = eliminate_within(self) == OK
        return OK if self.factored else SINGULAR

    def solve(self, b):
        """Solve A x = b in place, as exactly as Newton's method needs it."""
        iterate(self, b, False)

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        iterate(self, b, True)

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot of the incomplete factors."""
        k: cython.int
        pivot: cython.double
        largest: cython.double = 0.0
        smallest: cython.double = 1e300
        if self.by_user:
            return 0.0
        for k in range(self.n):
            pivot = fabs(self.factors[self.diagonal[k]])
            largest = max(largest, pivot)
            smallest = min(smallest, pivot)
        return largest / smallest if self.n > 0 else 1.0


    # --- calls of the user's object, with the GIL

    def call_factor(self):
        """Let the object make what it needs; keep what it raises."""
        try:
            with self.guard.lock:
                self.guard.owner = None
                self.user.factor(self.pattern.matrix(self.numbers[0][: self.size]).copy())
                self.guard.owner = self.token
        except np.linalg.LinAlgError:
            return SINGULAR
        except BaseException as error:
            self.failed, self.error = True, error
            return SINGULAR
        return OK

    def call_solve(self, v, out):
        """Let the object stand in for the inverse of the matrix; keep what it raises."""
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


# --- the preconditioner


def measure_rows(f):
    """Find the largest entry of each row, each divided by the weight of its unknown."""
    j: cython.int
    p: cython.int
    unit: cython.double
    for j in range(f.n):
        f.row_size[j] = 0.0
    for j in range(f.n):
        unit = 1.0 if f.weight is cython.NULL else 1.0 / f.weight[j]
        for p in range(f.start[j], f.start[j + 1]):
            f.row_size[f.row[p]] = max(f.row_size[f.row[p]], fabs(f.values[p]) * unit)
    for j in range(f.n):
        if f.row_size[j] == 0.0:
            f.row_size[j] = 1.0


def eliminate_within(f):
    """Factor row by row, without entries outside the pattern; pivots are stored as inverses."""
    n: cython.int = f.n
    i: cython.int
    k: cython.int
    p: cython.int
    q: cython.int
    factor: cython.double
    largest: cython.double
    pivot: cython.double
    lu: cython.p_double = f.factors
    f.replaced = 0
    for i in range(n):
        largest = 0.0
        for p in range(f.first[i], f.first[i + 1]):
            lu[p] = f.values[f.source[p]]
            f.place[f.column[p]] = p
            largest = max(largest, fabs(lu[p]) / weight_of(f, f.column[p], False))
        for p in range(f.first[i], f.diagonal[i]):
            k = f.column[p]
            factor = lu[p] * lu[f.diagonal[k]]
            lu[p] = factor
            if factor != 0.0:
                for q in range(f.diagonal[k] + 1, f.first[k + 1]):
                    if f.place[f.column[q]] >= 0:
                        lu[f.place[f.column[q]]] -= factor * lu[q]
        for p in range(f.first[i], f.first[i + 1]):
            f.place[f.column[p]] = -1
        if largest == 0.0:
            return SINGULAR
        pivot = lu[f.diagonal[i]]
        largest *= SMALLEST * weight_of(f, i, False)
        if not fabs(pivot) >= largest:
            f.replaced += 1
            pivot = -largest if pivot < 0.0 else largest
        lu[f.diagonal[i]] = 1.0 / pivot
    return OK


def precondition(f, v, out):
    """Set `out` to M^-1 v."""
    n: cython.int = f.n
    i: cython.int
    p: cython.int
    value: cython.double
    status: cython.int
    lu: cython.p_double = f.factors
    if f.by_user:
        with cython.gil:
            status = f.call_solve(v, out)
        if status != OK:
            for i in range(n):
                out[i] = NAN
        return
    for i in range(n):
        value = v[f.matched[i]]
        for p in range(f.first[i], f.diagonal[i]):
            value -= lu[p] * out[f.column[p]]
        out[i] = value
    for i in range(n - 1, -1, -1):
        value = out[i]
        for p in range(f.diagonal[i] + 1, f.first[i + 1]):
            value -= lu[p] * out[f.column[p]]
        out[i] = value * lu[f.diagonal[i]]


def precondition_transposed(f, v, out):
    """Set `out` to M^-T v; `v` is changed."""
    n: cython.int = f.n
    i: cython.int
    p: cython.int
    value: cython.double
    lu: cython.p_double = f.factors
    if f.by_user:                              # whose object need not know how
        for i in range(n):
            out[i] = v[i]
        return
    for i in range(n):
        value = v[i] * lu[f.diagonal[i]]
        v[i] = value
        for p in range(f.diagonal[i] + 1, f.first[i + 1]):
            v[f.column[p]] -= lu[p] * value
    for i in range(n - 1, -1, -1):
        value = v[i]
        out[f.matched[i]] = value
        for p in range(f.first[i], f.diagonal[i]):
            v[f.column[p]] -= lu[p] * value


def multiply(f, x, out, transposed):
    """Set `out` to A x, or to A^T x."""
    j: cython.int
    p: cython.int
    total: cython.double
    if transposed:
        for j in range(f.n):
            total = 0.0
            for p in range(f.start[j], f.start[j + 1]):
                total += f.values[p] * x[f.row[p]]
            out[j] = total
        return
    for j in range(f.n):
        out[j] = 0.0
    for j in range(f.n):
        for p in range(f.start[j], f.start[j + 1]):
            out[f.row[p]] += f.values[p] * x[j]


# --- GMRES


def iterate(f, b, transposed):
    """Replace b by the solution; by NaN if the iterations lead nowhere near it."""
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
        rest = by_rows(f, transposed)
        if target < 0.0:
            whole = rest
        if rest <= LEFT * whole or count >= MOST:
            break
        condition(f, f.space, transposed)
        left = sqrt(dot(f.space, f.space, n))
        if not 0.0 < left <= 1e300:                # also NaN
            break
        # M^-1 may hide what matters: the target is lowered until the equations agree
        target = LEFT * (left if target < 0.0 else min(left, target))
        made = extend_space(f, left, target, transposed, min(f.directions, MOST - count))
        count += max(made, 1)
        combine(f, made, transposed)
        multiply(f, f.x, f.r, transposed)
    f.iterations += count
    if not rest <= LEFT * whole:
        f.failures += 1
    for i in range(n):
        b[i] = f.x[i] if rest <= TOO_MUCH * whole else NAN


def by_rows(f, transposed):
    """Size of what is left of the equations, each measured by its largest term."""
    i: cython.int
    term: cython.double
    total: cython.double = 0.0
    for i in range(f.n):
        term = f.r[i] * weight_of(f, i, False) if transposed else f.r[i] / f.row_size[i]
        total += term * term
    return sqrt(total)


def extend_space(f, left, target, transposed, most):
    """Make directions until what is left is below the target; return how many there are.

    The last column of the small numbers then has the coordinates of what is to be added.
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
        multiply(f, new, f.r, transposed)
        condition(f, new, transposed)
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
        if not 0.0 < second <= 1e300:              # nothing comes of this direction
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
    """Add what so many directions give to the solution."""
    n: cython.int = f.n
    i: cython.int
    k: cython.int
    g: cython.p_double = part(f.small, (f.directions + 1) * (f.directions + 2))
    v: cython.p_double
    for k in range(count):
        v = direction(f, k)
        for i in range(n):
            f.x[i] += g[k] * v[i] / weight_of(f, i, transposed)


def condition(f, out, transposed):
    """Set `out` to M^-1 times `f.r`, measured by the weights; `f.r` is used up."""
    i: cython.int
    if transposed:
        precondition_transposed(f, f.r, out)
    else:
        precondition(f, f.r, out)
    for i in range(f.n):
        out[i] *= weight_of(f, i, transposed)


def weight_of(f, i, transposed):
    """Weight of an unknown; those of the transposed system belong to the rows."""
    if transposed:
        return f.row_size[i]
    return 1.0 if f.weight is cython.NULL else f.weight[i]


def dot(a, b, n):
    """Sum of the products, in four sums that do not wait for each other."""
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
    """Return an array from some place on."""
    return array + start if cython.compiled else array[start:]


def integers(array):
    """Address of C integers."""
    view: cython.int[::1] = array
    return cython.address(view[0])
