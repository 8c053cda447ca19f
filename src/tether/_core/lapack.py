"""Dense LU by LAPACK, for systems beyond the reach of `linear.py`.

An extension of its own, imported only when needed: SciPy's LAPACK takes as long to load as tether.
"""

import cython

from tether.base.lapack import capsules

if not cython.compiled:
    from scipy.linalg.lapack import dgetrf as scipy_dgetrf
    from scipy.linalg.lapack import dgetrs as scipy_dgetrs

    from tether._core.codes import OK, SINGULAR


def address_in(capsule, signature):
    """Address of a routine, once its arguments are those that it will be called with."""
    given: bytes = PyCapsule_GetName(capsule)
    if given.replace(b"__pyx_t_5scipy_6linalg_13cython_lapack_d", b"double") != signature:
        raise ImportError(f"SciPy's LAPACK has a routine {given!r}, expected was {signature!r}")
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


if cython.compiled:
    first, second = capsules(("dgetrf", "dgetrs"))
    dgetrf = cython.cast(dgetrf_t, address_in(first, (
        b"void (int *, int *, double *, int *, int *, int *)")))
    dgetrs = cython.cast(dgetrs_t, address_in(second, (
        b"void (char *, int *, int *, double *, int *, int *, double *, int *, int *)")))


def use_lapack(s):
    """Install this file's factorisation."""
    s.factor = lapack_factor
    s.solve = lapack_solve


def lapack_factor(s):
    """Factor in place; a zero or non-finite pivot makes the matrix singular."""
    n: cython.int = s.n
    info: cython.int = 0
    i: cython.int
    if cython.compiled:
        dgetrf(cython.address(n), cython.address(n), s.lu, cython.address(n), s.pivot,
               cython.address(info))
    else:
        factors, pivot, info = scipy_dgetrf(s.lu.reshape(n, n).T)
        s.lu[:], s.pivot[:] = factors.T.ravel(), pivot
    for i in range(n):
        if not abs(s.lu[i * n + i]) < 1e300:
            return SINGULAR
    return OK if info == 0 else SINGULAR


def lapack_solve(s, b):
    """Solve in place with the factors of `lapack_factor`."""
    n: cython.int = s.n
    one: cython.int = 1
    info: cython.int = 0
    if cython.compiled:
        dgetrs("N", cython.address(n), cython.address(one), s.lu, cython.address(n), s.pivot, b,
               cython.address(n), cython.address(info))
    else:
        b[:] = scipy_dgetrs(s.lu.reshape(n, n).T, s.pivot, b)[0]
