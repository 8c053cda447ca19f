from tether._core.arrays cimport address
from tether._core.row_operations cimport run_instruction
from tether._core.runner cimport addresses_of, keep

cdef enum:
    BLOCK = 128

cdef class Rows:
    cdef public object table
    cdef public object memory_array, slots_array, factors_array, totals_array
    cdef list arrays                  # owns the memory behind the pointers
    cdef public int n, n_args, n_values, n_fy, n_fyp
    cdef public bint fyp_is_static, copies_point
    cdef public long long reach       # one more than the largest position
    cdef int n_steps
    cdef int* kind
    cdef int* count                   # rows of each step
    # --- programs: slots are numbered through, BLOCK numbers each
    cdef int* code
    cdef int* to
    cdef int* a
    cdef int* b
    cdef int* c
    cdef int* second                  # slot of b, where it is one
    cdef int* first
    cdef int* first_of_entries
    cdef int* t_slot
    cdef double* pieces
    # --- inputs, results, entries: by tables in `index`, or first and stride
    cdef int* load_start
    cdef int* load_slot
    cdef int* load_of
    cdef int* load_table
    cdef int* load_blocks             # places of the first rows of blocks; -1: by the table
    cdef int* result_slot
    cdef int* result_to
    cdef int* for_entries             # whether no value needs the step
    cdef int* result_table
    cdef int* result_first            # of rows that lie side by side; -1: by the table
    cdef int* entry_start
    cdef int* entry_slot
    cdef int* entry_kind
    cdef int* entry_table
    cdef int* entry_sets              # whether nothing was written there before
    cdef int* index
    cdef int* sum_start
    cdef int* sum_end
    # --- products of entries
    cdef int n_products, n_totals
    cdef int* target
    cdef int* factor
    cdef int* through
    cdef int* fy_position
    cdef int* fyp_position
    cdef int n_fy_zeros, n_fyp_zeros  # entries that are sums of several
    cdef int* fy_zero
    cdef int* fyp_zero
    # --- memory
    cdef double* memory
    cdef double* slots
    cdef double** at                  # where each slot is read
    cdef object addresses
    cdef double* factors
    cdef double* totals

cdef int* keep_table(Rows rows, object array) except? NULL
cdef int load_block(Rows m, int step, int block, double* y, double* yp) noexcept nogil
cdef double* pointer_to(double* array, long long place) noexcept nogil
cdef void run_block(Rows m, int begin, int end, int count) noexcept nogil
cdef void run_template(Rows m, int step, double t, double* y, double* yp, double* out, double* fy,
                       double* fyp) noexcept nogil
cdef void put(double* matrix, int* position, int* index, long long place, double* found,
              int count, bint sets) noexcept nogil
cdef void run_sums(Rows m, int step, double* y, double* yp) noexcept nogil
cdef void run_steps(Rows m, double t, double* y, double* yp, double* out, double* fy,
                    double* fyp) noexcept nogil
cdef void row_values(Rows m, double t, double* y, double* yp, double* out) noexcept nogil
cdef void row_entries(Rows m, double t, double* y, double* yp, double* fy,
                      double* fyp) noexcept nogil
cdef void rows_constraint(double t, double* y, double* g, void* rows) noexcept nogil
cdef void rows_constraint_jacobian(double t, double* y, double* gy, void* rows) noexcept nogil
cdef void row_slopes(Rows m, double t, double* y, double* gy) noexcept nogil
