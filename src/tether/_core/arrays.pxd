cimport numpy as cnp

cdef bint is_plain_array(object array, int kind)
cdef double* address(object array) except? NULL
cdef object doubles_of(object array, int n)
cdef int* integer_address(object array) except? NULL
cdef signed char* byte_address(object array) except? NULL
