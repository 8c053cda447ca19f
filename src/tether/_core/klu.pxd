from libc.math cimport fabs

from tether._core.arrays cimport address
from tether._core.codes cimport OK, SINGULAR
from tether._core.factors cimport Factors

# KLU's functions for C integers and doubles.
ctypedef int (*defaults_t)(void* common) noexcept nogil
ctypedef void* (*analyze_t)(int n, int* start, int* row, void* common) noexcept nogil
ctypedef void* (*factor_t)(int* start, int* row, double* values, void* symbolic,
                           void* common) noexcept nogil
ctypedef int (*refactor_t)(int* start, int* row, double* values, void* symbolic, void* numeric,
                           void* common) noexcept nogil
ctypedef int (*solve_t)(void* symbolic, void* numeric, int rows, int columns, double* b,
                        void* common) noexcept nogil
ctypedef int (*judge_t)(void* symbolic, void* numeric, void* common) noexcept nogil
ctypedef int (*free_t)(void** what, void* common) noexcept nogil

cdef class Library:
    cdef public str path
    cdef object handle
    cdef defaults_t defaults
    cdef analyze_t analyze
    cdef factor_t factor
    cdef refactor_t refactor
    cdef refactor_t growth
    cdef solve_t solve
    cdef solve_t solve_transposed
    cdef judge_t pivots
    cdef free_t free_symbolic
    cdef free_t free_numeric

cdef class KluFactors(Factors):
    cdef Library library
    cdef double common[64]            # KLU's struct of settings and results, kept here like
    cdef free_t free_symbolic         # these, as __dealloc__ needs them
    cdef free_t free_numeric
    cdef int* integers                # ... its fields, as integers
    cdef list owners                  # own the memory of the pattern
    cdef int* start
    cdef int* row
    cdef void* symbolic
    cdef void* numeric
    cdef double first_growth          # growth when the pivots were chosen
    cdef public long long full, again
    cdef int factor_with_new_pivots(self, double* values) noexcept nogil
    cdef bint refactor(self, double* values) noexcept nogil
    cdef void free_factors(self) noexcept nogil

cdef void* pointer_to(object handle, str name) except NULL
