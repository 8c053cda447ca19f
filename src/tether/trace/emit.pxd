import cython

from tether.trace.graph cimport Graph, arity
from tether.trace.opcodes cimport *


cdef class _Layout:
    cdef Graph graph
    cdef list outputs
    cdef int size
    cdef readonly list constants
    cdef readonly list opaque_calls
    cdef readonly list table_calls
    cdef int[::1] slots
    cdef int[::1] negative
    cdef int[::1] uses
    cdef int[::1] absorbs
    cdef int[::1] absorbed
    cdef list order
    cdef readonly int n_static
    cdef readonly int n_time

    @cython.locals(uses="int[::1]", nodes=list, fields=tuple, node=int, i=int, k=int)
    cdef _count_uses(self)

    @cython.locals(uses="int[::1]", absorbs="int[::1]", absorbed="int[::1]", nodes=list,
                   fields=tuple, i=int, code=int, inner=int)
    cdef _absorb_signs(self)

    @cython.locals(uses="int[::1]", absorbs="int[::1]", slots="int[::1]", negative="int[::1]",
                   nodes=list, constants=list, fields=tuple, i=int, code=int, number=int)
    cdef _place_constants(self)

    @cython.locals(uses="int[::1]", slots="int[::1]", nodes=list, fields=tuple, i=int, code=int,
                   number=int, order=int)
    cdef _place_leaves(self, int first, int n)

    @cython.locals(uses="int[::1]", slots="int[::1]", absorbed="int[::1]", nodes=list, levels=list,
                   order=list, fields=tuple, group=int, i=int, level=int, code=int)
    cdef _place_instructions(self, int base)

    @cython.locals(order=list, absorbs="int[::1]", slots="int[::1]", negative="int[::1]",
                   nodes=list, columns="int[:, ::1]", fields=tuple, i=int, node=int, code=int,
                   first=int, second=int, third=int)
    cpdef instructions(self, dict places)
    cpdef output_slots(self)
