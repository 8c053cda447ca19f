import cython

from tether.trace.graph cimport Graph, arity
from tether.trace.opcodes cimport *


@cython.locals(fields=tuple, code=int, a=int, b=int, c=int)
cpdef tuple choice(Graph g, int node)


@cython.locals(fields=tuple, code=int)
cdef tuple _partials(Graph g, int node)


@cython.locals(uses=dict, fields=tuple, k=int, node=int)
cdef dict _count_uses(Graph graph, list cone, outputs)


@cython.locals(fields=tuple, operands=tuple, partials=tuple, code=int, a=int, b=int, k=int,
               partial=int, chosen=tuple, result=dict)
cdef dict _gradient(Graph graph, int node, dict known, dict uses)


@cython.locals(found=dict)
cdef dict _scaled(Graph graph, int factor, dict gradient)


@cython.locals(fields=tuple, code=int, condition=int, a=int, b=int)
cdef int _product(Graph graph, int factor, int slope) except -1


cdef dict _joined(Graph graph, dict target, dict other)


@cython.locals(first=dict, second=dict, result=dict)
cdef dict _sum_gradient(Graph graph, int code, int a, int b, dict known, dict uses)


@cython.locals(condition=int, first=dict, second=dict, zero=int, found=dict)
cdef dict _chosen_gradient(Graph graph, tuple choice, dict known)


@cython.locals(node=int)
cdef list _directional(Graph graph, outputs, dict seeds, dict known)


@cython.locals(operands=tuple, partials=tuple, chosen=tuple, total=int, k=int, rate=int)
cdef int _rate(Graph graph, int node, dict known) except -1
