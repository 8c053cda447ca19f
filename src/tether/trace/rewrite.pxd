import cython

from tether.trace.derive cimport choice
from tether.trace.graph cimport Graph
from tether.trace.opcodes cimport *


@cython.locals(old=tuple, operands=list, fields=tuple, changed=bint, code=int)
cpdef int rebuilt(Graph graph, int node, dict new) except -1


cdef int _of_one(Graph graph, int code, int a) except -1


cdef int _of_two(Graph graph, int code, int a, int b) except -1
