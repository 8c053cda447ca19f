from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.dense cimport Dense

ctypedef void (*dgetrf_t)(int*, int*, double*, int*, int*, int*) noexcept nogil
ctypedef void (*dgetrs_t)(char*, int*, int*, double*, int*, int*, double*, int*,
                          int*) noexcept nogil

cdef dgetrf_t dgetrf
cdef dgetrs_t dgetrs

cdef class Lapack(Dense):
    cdef object sums
    cdef double* slopes
    cdef void open_factors(self)

cdef void* address_in(object capsule, bytes signature) except NULL
