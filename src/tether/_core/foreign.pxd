from tether._core.adapters cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.sparse cimport Sparse

cdef class Foreign(Sparse):
    cdef object __weakref__
    cdef public object solver
    cdef object seen                  # the pattern that the solver's factors belong to
    cdef int call_factor(self) except -200
    cdef int call_solve(self, double* b) except -200
