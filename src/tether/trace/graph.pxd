import cython

from tether.trace.opcodes cimport *


@cython.locals(code=int)
cdef int arity(tuple fields) except -1


@cython.final
cdef class Graph:
    cdef public list nodes
    cdef public list level
    cdef public list opaques
    cdef public list tables
    cdef dict _table_numbers
    cdef dict _total
    cdef public dict rates
    cdef dict _index
    cdef readonly int zero
    cdef readonly int one

    cpdef int constant(self, double value) except -1
    cpdef int time(self) except -1
    cpdef int y(self, int component, int order=*) except -1
    cpdef int arg(self, int number) except -1

    @cython.locals(x=tuple)
    cpdef bint is_constant(self, int node) except -1

    @cython.locals(x=tuple, y=tuple, first=int, second=int)
    cpdef int add(self, int a, int b) except -1

    @cython.locals(x=tuple, y=tuple, first=int, second=int)
    cpdef int sub(self, int a, int b) except -1

    @cython.locals(x=tuple, y=tuple, first=int, second=int)
    cpdef int mul(self, int a, int b) except -1

    @cython.locals(product=double, code=int, z=tuple)
    cdef int _scale(self, int a, double factor, int b, tuple y) except -1

    @cython.locals(x=tuple, y=tuple, first=int, second=int, value=double)
    cpdef int div(self, int a, int b) except -1

    @cython.locals(x=tuple, code=int)
    cpdef int neg(self, int a) except -1

    @cython.locals(x=tuple, inner=int)
    cpdef int unary(self, int code, int a) except -1
    cpdef int binary(self, int code, int a, int b) except -1
    cpdef int logical_and(self, int a, int b) except -1
    cpdef int logical_or(self, int a, int b) except -1

    @cython.locals(x=tuple)
    cpdef int logical_not(self, int a) except -1

    @cython.locals(x=tuple, code=int)
    cpdef int select(self, int condition, int a, int b) except -1

    cpdef int minus(self, int a, int b) except -1

    @cython.locals(x=tuple, y=tuple)
    cpdef int times(self, int a, int b) except -1
    cpdef int over(self, int a, int b) except -1

    @cython.locals(fields=tuple)
    cpdef tuple operands(self, int node)

    @cython.locals(marks=bytearray, node=int)
    cpdef list cone(self, outputs)

    @cython.locals(marks=bytearray, node=int)
    cpdef list inputs(self, outputs)

    @cython.locals(nodes=list, wanted=list, marks=bytearray, node=int, fields=tuple, k=int)
    cdef bytearray _marked(self, outputs, bint influences)
    cpdef tuple influences(self, int node)

    @cython.locals(fields=tuple)
    cdef int _code(self, int node) except? -9

    @cython.locals(fields=tuple, code=int, a=int, b=int)
    cdef bint _is_zero(self, int node) except -1

    @cython.locals(x=tuple)
    cdef bint _is(self, int node, double value) except -1
    cdef int _fold(self, int code, int a, int b=*) except -1

    @cython.locals(key=tuple, number=int, found=int, level=int)
    cdef int _operation(self, int code, int a, int b=*) except -1
    cdef int _intern(self, tuple key, int level) except -1

    @cython.locals(number=int)
    cdef int _append(self, tuple fields, int level) except -1
