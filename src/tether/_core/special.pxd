from libc.math cimport NAN as nan
from libc.math cimport M_PI as pi
from libc.math cimport sin

ctypedef double (*without_order_t)(double x, int skip) noexcept nogil
ctypedef double (*with_order_t)(double order, double x, int skip) noexcept nogil

cdef int SPREAD, MIDDLE, POLYGAMMA
cdef double B2, B4, B6, B8, B10, B12, B14
cdef without_order_t without_order[32]
cdef with_order_t with_order[32]

cdef double special(int number, double x) noexcept nogil
cdef double polygamma(int m, double x) noexcept nogil
cdef double bernoulli(int k) noexcept nogil
