from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.sparse cimport Sparse

cdef class Foreign(Sparse):
    cdef public object solver
    cdef object guard                 # of the solver
    cdef object token                 # marks factors that belong to this matrix
    cdef object seen                  # the pattern of those factors
    cdef int call_factor(self) except -200
    cdef int call_solve(self, double* b) except -200
