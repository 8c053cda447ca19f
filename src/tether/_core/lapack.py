"""Dense LU by LAPACK, for systems too large for the loop in `dense.py`.

A separate extension module, imported only when needed: SciPy's LAPACK takes as long to load as
tether.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs

from tether.base.lapack import capsules

if not cython.compiled:
    from scipy.linalg.lapack import dgetrf as scipy_dgetrf
    from scipy.linalg.lapack import dgetrs as scipy_dgetrs

    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.dense import Dense


def address_in(capsule, signature):
    """Return the address of a routine after checking that it has the expected signature."""
    given: bytes = PyCapsule_GetName(capsule)
    if given.replace(b"__pyx_t_5scipy_6linalg_13cython_lapack_d", b"double") != signature:
        raise ImportError(f"SciPy's LAPACK has {given!r}, but {signature!r} is needed")
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


if cython.compiled:
    first, second = capsules(("dgetrf", "dgetrs"))
    dgetrf = cython.cast(dgetrf_t, address_in(first, (
        b"void (int *, int *, double *, int *, int *, int *)")))
    dgetrs = cython.cast(dgetrs_t, address_in(second, (
        b"void (char *, int *, int *, double *, int *, int *, double *, int *, int *)")))


class Lapack(Dense):
    """Dense matrices with factors by LAPACK."""

    def open_factors(self):
        """Allocate no lists of factors, but memory for `set_changes`."""
        self.factor_lists, self.sums = (), np.zeros(self.n)
        self.slopes = address(self.sums)

    def set_changes(self, x, share, remainder, product):
        """Set `product`, and subtract `share` F_y' x from `remainder`, in pairs of columns."""
        n: cython.int = self.n
        i: cython.int
        j: cython.int
        p: cython.longlong
        last: cython.longlong = self.room - n
        factor: cython.double
        following: cython.double
        moving: cython.p_double = self.fy if self.all_change else self.moving
        fyp: cython.p_double = self.fyp
        slopes: cython.p_double = self.slopes
        factor = x[n - 1] if n % 2 == 1 else 0.0
        for i in range(n):
            product[i] = moving[last + i] * factor
            slopes[i] = fyp[last + i] * factor
        for j in range(0, n - 1, 2):   # two at once: sums are read and written half as often
            factor = x[j]
            following = x[j + 1]
            for i in range(n):
                p = j * n + i
                product[i] += moving[p] * factor + moving[p + n] * following
                slopes[i] += fyp[p] * factor + fyp[p + n] * following
        for i in range(n):
            remainder[i] -= share * slopes[i]

    def factor(self):
        """Factor in place; a zero or non-finite pivot makes the matrix singular."""
        n: cython.int = self.n
        info: cython.int = 0
        i: cython.int
        if cython.compiled:
            dgetrf(cython.address(n), cython.address(n), self.lu, cython.address(n), self.pivot,
                   cython.address(info))
        else:
            factors, pivot, info = scipy_dgetrf(self.lu.reshape(n, n).T)
            self.lu[:], self.pivot[:] = factors.T.ravel(), pivot
        for i in range(n):
            if not fabs(self.lu[i * n + i]) < 1e300:
                return SINGULAR
        return OK if info == 0 else SINGULAR

    def solve(self, b):
        """Solve in place with the factors."""
        n: cython.int = self.n
        one: cython.int = 1
        info: cython.int = 0
        if cython.compiled:
            dgetrs("N", cython.address(n), cython.address(one), self.lu, cython.address(n),
                   self.pivot, b, cython.address(n), cython.address(info))
        else:
            b[:] = scipy_dgetrs(self.lu.reshape(n, n).T, self.pivot, b)[0]
