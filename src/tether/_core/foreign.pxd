from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.sparse cimport Sparse

cdef class Foreign(Sparse):
    cdef public object solver
    cdef object guard                 # of the solver
    cdef object token                 # tells its factors that are ours from those of others
    cdef object seen                  # the pattern that they belong to
    cdef int call_factor(self) except -200
    cdef int call_solve(self, double* b) except -200
