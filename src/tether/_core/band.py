"""LU factors of a band: rows and columns in an order that keeps all entries near the diagonal.

Entry (i, j) of the permuted matrix is at `kl + ku + i - j` in column j; the first `kl` rows are
extra room for fill-in from row exchanges (the storage of LAPACK's dgbtrf). Narrow bands are
eliminated here, where calling BLAS for each column would cost more than the work on it. Wide ones
are left to LAPACK, which works on blocks of columns.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from tether.base.lapack import capsules

if not cython.compiled:
    from scipy.linalg.lapack import dgbtrf as scipy_dgbtrf
    from scipy.linalg.lapack import dgbtrs as scipy_dgbtrs

    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors, range_of

# The diagonal entry is the pivot unless it is smaller than this share of its column.
PREFERRED = cython.declare(cython.double, 0.1)

if cython.compiled:
    first, second = capsules(("dgbtrf", "dgbtrs"))
    dgbtrf = cython.cast(dgbtrf_t, address_in(first, (
        b"void (int *, int *, int *, int *, double *, int *, int *, int *)")))
    dgbtrs = cython.cast(dgbtrs_t, address_in(second, (
        b"void (char *, int *, int *, int *, int *, double *, int *, int *, double *, int *,"
        b" int *)")))


class BandLU(Factors):
    """Factors of a sparse matrix within a band.

    Parameters
    ----------
    pattern : Pattern
        Positions of the entries; `pattern.band` is the order of its rows and columns.

    Attributes
    ----------
    kl, ku : int
        Diagonals below and above the main one.
    """

    def __init__(self, pattern):
        n: cython.int = pattern.n
        band = pattern.band
        rows, columns = band.rows, band.columns
        self.n, self.size, self.factored = n, pattern.size, False
        self.kl, self.ku, self.narrow = band.below, band.above, band.is_narrow
        self.height = 2 * self.kl + self.ku + 1
        place, across = np.empty(n, np.int64), np.empty(n, np.int64)
        place[rows] = across[columns] = np.arange(n)
        i, j = place[pattern.row], across[pattern.columns]
        self.owned = [
            np.zeros(n * self.height), np.zeros(n), np.zeros(n),
            np.append(j * self.height + self.kl + self.ku + i - j, 0),
            *(np.append(list_, 0).astype(np.intc) for list_ in (rows, columns, np.zeros(n))),
        ]
        self.ab, self.inverse = address(self.owned[0]), address(self.owned[1])
        self.x = address(self.owned[2])
        if cython.compiled:
            where: cython.longlong[::1] = self.owned[3]
            row: cython.int[::1] = self.owned[4]
            column: cython.int[::1] = self.owned[5]
            pivot: cython.int[::1] = self.owned[6]
            self.where, self.pivot = cython.address(where[0]), cython.address(pivot[0])
            self.row, self.column = cython.address(row[0]), cython.address(column[0])
        else:
            self.where, self.row, self.column, self.pivot = self.owned[3:]

    @property
    def entries(self):
        """Number of entries of the factors."""
        return self.n * (self.kl + self.ku + 1)

    @property
    def words(self):
        """Short description, for people."""
        return f"factors in a band of {self.kl} + 1 + {self.ku} diagonals"

    @property
    def operations(self):
        """Number of multiplications in a factorisation without row exchanges."""
        return self.n * self.kl * (self.ku + 1)

    def factor(self, values):
        """Factor the matrix with these entries."""
        p: cython.longlong
        for p in range(cython.cast(cython.longlong, self.n) * self.height):
            self.ab[p] = 0.0
        for p in range(self.size):
            self.ab[self.where[p]] = values[p]
        if self.narrow:
            self.factored = eliminate(self) == OK
        else:
            self.factored = eliminate_by_lapack(self) == OK
        return OK if self.factored else SINGULAR

    def solve(self, b):
        """Solve A x = b in place."""
        n: cython.int = self.n
        k: cython.int
        x: cython.p_double = self.x
        for k in range(n):
            x[k] = b[self.row[k]]
        if not self.narrow:
            solve_by_lapack(self, "N")
        else:
            substitute(self)
        for k in range(n):
            b[self.column[k]] = x[k]

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        n: cython.int = self.n
        k: cython.int
        x: cython.p_double = self.x
        for k in range(n):
            x[k] = b[self.column[k]]
        if not self.narrow:
            solve_by_lapack(self, "T")
        else:
            substitute_transposed(self)
        for k in range(n):
            b[self.row[k]] = x[k]

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        return range_of(self.inverse, self.n)


def eliminate(f):
    """Factor by plain loops; rows are exchanged where the diagonal entry is small."""
    n: cython.int = f.n
    h: cython.longlong = f.height
    middle: cython.int = f.kl + f.ku
    i: cython.int
    j: cython.int
    k: cython.int
    p: cython.int
    below: cython.int
    last: cython.int = 0
    at: cython.longlong
    base: cython.longlong
    size: cython.double
    largest: cython.double
    factor: cython.double
    ab: cython.p_double = f.ab
    f.width = f.ku
    for k in range(n):
        at = k * h + middle
        below = min(f.kl, n - 1 - k)
        p = 0
        largest = fabs(ab[at])
        for i in range(1, below + 1):
            size = fabs(ab[at + i])
            if not size <= largest:                # also true of NaN
                largest = size
                p = i
        if fabs(ab[at]) >= PREFERRED * largest:
            p = 0
        if not 0.0 < largest <= 1e300:
            return SINGULAR
        f.pivot[k] = p
        last = max(last, min(k + f.ku + p, n - 1))
        if p > 0:
            f.width = max(f.width, f.ku + p)
            for j in range(k, last + 1):
                base = j * h + middle + k - j
                ab[base], ab[base + p] = ab[base + p], ab[base]
        f.inverse[k] = 1.0 / ab[at]
        for i in range(1, below + 1):
            ab[at + i] *= f.inverse[k]
        for j in range(k + 1, last + 1):
            base = j * h + middle + k - j
            factor = ab[base]
            if factor != 0.0:
                for i in range(1, below + 1):
                    ab[base + i] -= ab[at + i] * factor
    return OK


def substitute(f):
    """Solve with the factors of `eliminate`."""
    n: cython.int = f.n
    h: cython.longlong = f.height
    middle: cython.int = f.kl + f.ku
    i: cython.int
    k: cython.int
    p: cython.int
    at: cython.longlong
    value: cython.double
    ab: cython.p_double = f.ab
    x: cython.p_double = f.x
    for k in range(n):
        p = f.pivot[k]
        value = x[k + p]
        if p > 0:
            x[k + p] = x[k]
            x[k] = value
        at = k * h + middle
        for i in range(1, min(f.kl, n - 1 - k) + 1):
            x[k + i] -= ab[at + i] * value
    for k in range(n - 1, -1, -1):
        value = x[k] * f.inverse[k]
        x[k] = value
        at = k * h + middle
        for i in range(1, min(f.width, k) + 1):
            x[k - i] -= ab[at - i] * value


def substitute_transposed(f):
    """Solve the transposed system with the factors of `eliminate`."""
    n: cython.int = f.n
    h: cython.longlong = f.height
    middle: cython.int = f.kl + f.ku
    i: cython.int
    k: cython.int
    p: cython.int
    at: cython.longlong
    value: cython.double
    ab: cython.p_double = f.ab
    x: cython.p_double = f.x
    for k in range(n):
        value = x[k]
        at = k * h + middle
        for i in range(1, min(f.width, k) + 1):
            value -= ab[at - i] * x[k - i]
        x[k] = value * f.inverse[k]
    for k in range(n - 1, -1, -1):
        value = x[k]
        at = k * h + middle
        for i in range(1, min(f.kl, n - 1 - k) + 1):
            value -= ab[at + i] * x[k + i]
        p = f.pivot[k]
        x[k] = x[k + p]
        x[k + p] = value


def eliminate_by_lapack(f):
    """Factor by dgbtrf."""
    n: cython.int = f.n
    info: cython.int = 0
    k: cython.int
    pivot: cython.double
    if cython.compiled:
        dgbtrf(cython.address(n), cython.address(n), cython.address(f.kl), cython.address(f.ku),
               f.ab, cython.address(f.height), f.pivot, cython.address(info))
    else:
        made, order, info = scipy_dgbtrf(f.ab.reshape(n, f.height).T, f.kl, f.ku)
        f.ab[:], f.pivot[:n] = made.T.ravel(), order
    for k in range(n):
        pivot = f.ab[k * cython.cast(cython.longlong, f.height) + f.kl + f.ku]
        if not fabs(pivot) <= 1e300 or pivot == 0.0:
            return SINGULAR
        f.inverse[k] = 1.0 / pivot
    return OK if info == 0 else SINGULAR


def solve_by_lapack(f, how):
    """Solve by dgbtrs, transposed or not."""
    n: cython.int = f.n
    one: cython.int = 1
    info: cython.int = 0
    if cython.compiled:
        dgbtrs(how, cython.address(n), cython.address(f.kl), cython.address(f.ku),
               cython.address(one), f.ab, cython.address(f.height), f.pivot, f.x,
               cython.address(n), cython.address(info))
    else:
        made = f.ab.reshape(n, f.height).T
        f.x[:] = scipy_dgbtrs(made, f.kl, f.ku, f.x, f.pivot[:n], trans=how == "T")[0]
