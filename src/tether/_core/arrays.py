"""Addresses of NumPy arrays, for the pointers of the core.

Whoever makes an array must keep it alive. Uncompiled, an array is its own address.
"""

import cython
import numpy as np

if cython.compiled:
    cnp.import_array()


def is_plain_array(array, kind):
    """Tell whether `array` is a contiguous NumPy vector of the given type."""
    return (
        cnp.PyArray_CheckExact(array)
        and cnp.PyArray_TYPE(array) == kind
        and cnp.PyArray_NDIM(array) == 1
        and cnp.PyArray_IS_C_CONTIGUOUS(array)
        and cnp.PyArray_ISBEHAVED(array)
    )


def address(array):
    """Address of the first element of an array of doubles."""
    if cython.compiled:
        if is_plain_array(array, cnp.NPY_DOUBLE):      # a memory view takes ten times as long
            return cython.cast(cython.p_double, cnp.PyArray_DATA(array))
        view: cython.double[::1] = array
        return cython.address(view[0])
    return array


def doubles_of(array, n):
    """Return n numbers in an array that `address` can take: this one if possible, or a copy."""
    if len(array) < n:                                 # else what is behind it would be read
        raise ValueError(f"{n} numbers are needed, got {len(array)}")
    if cython.compiled:
        if is_plain_array(array, cnp.NPY_DOUBLE):      # a function of NumPy's takes longer
            return array
    return np.ascontiguousarray(array, float)


def integer_address(array):
    """Like `address`, for C integers."""
    if cython.compiled:
        if is_plain_array(array, cnp.NPY_INT):
            return cython.cast(cython.p_int, cnp.PyArray_DATA(array))
        view: cython.int[::1] = array
        return cython.address(view[0])
    return array


def byte_address(array):
    """Like `address`, for signed bytes."""
    if cython.compiled:
        if is_plain_array(array, cnp.NPY_BYTE):
            return cython.cast(cython.pointer(cython.schar), cnp.PyArray_DATA(array))
        view: cython.schar[::1] = array
        return cython.address(view[0])
    return array
