from tether._core.arrays cimport address
from tether._core.row_operations cimport run_instruction
from tether._core.runner cimport addresses_of, keep

cdef enum:
    BLOCK = 128

cdef class Rows:
    cdef public object table
    cdef public object memory_array, slots_array, factors_array, totals_array, bases_array
    cdef list arrays                  # owns the memory behind the pointers
    cdef public int n, n_args, n_values, n_fy, n_fyp
    cdef public bint fyp_is_static, copies_point
    cdef public bint constants_due    # args or positions have changed since they were written
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
    cdef int* runs_for                # values, entries that change, entries that do not
    cdef int* t_slot
    cdef double* pieces
    # --- inputs, results, entries: by tables in `index`, or first and stride
    cdef int* load_start
    cdef int* load_slot
    cdef int* load_of
    cdef int* load_table
    cdef int* load_blocks             # places of the first rows of blocks, or where to look
    cdef int* result_slot
    cdef int* result_to
    cdef int* result_table
    cdef int* result_first            # first place if the rows are adjacent; -1: see the table
    cdef int* entry_start
    cdef int* entry_slot
    cdef int* entry_kind
    cdef int* entry_table
    cdef int* entry_sets              # whether entries are set rather than added
    cdef int* index
    cdef int* sum_start
    cdef int* sum_end
    # --- where entries go: positions in F_y and F_y'; ~position where they are added
    cdef int* fy_place
    cdef int* fyp_place
    cdef int n_based, n_based_slopes, n_zeros, n_zero_slopes
    cdef int* based                   # entries that change and start from their constant terms
    cdef int* based_slope
    cdef int* zero                    # entries that do not change and start from zero
    cdef int* zero_slope
    # --- products of entries
    cdef int* target
    cdef int* factor
    cdef int* through
    cdef int* product_end
    cdef int n_constant_totals, n_changing_totals
    cdef int* constant_total
    cdef int* changing_total
    # --- memory
    cdef double* memory
    cdef double* slots
    cdef double** at                  # address from which each slot is read
    cdef object addresses
    cdef double* factors
    cdef double* totals
    cdef double* bases                # the values that `based` and `based_slope` start from

cdef int* keep_table(Rows rows, object array) except? NULL
cdef int load_block(Rows m, int step, int block, double* y, double* yp) noexcept nogil
cdef void copy_runs(Rows m, long long place, double* source, long long slot,
                    int count) noexcept nogil
cdef double* pointer_to(double* array, long long place) noexcept nogil
cdef void run_block(Rows m, int begin, int end, int count) noexcept nogil
cdef void run_template(Rows m, int step, double t, double* y, double* yp, double* out, double* fy,
                       double* fyp) noexcept nogil
cdef bint is_written_in_place(Rows m, int step) noexcept nogil
cdef void point_at_results(Rows m, int step, long long first, double* out) noexcept nogil
cdef void put_results(Rows m, int step, long long first, int count, double* out, double* fy,
                      double* fyp) noexcept nogil
cdef void put_entries(Rows m, int k, long long first, int count, double* fy,
                      double* fyp) noexcept nogil
cdef void put(double* matrix, int* places, long long first, double* found, int count,
              bint sets) noexcept nogil
cdef void run_sums(Rows m, int step, double* y, double* yp) noexcept nogil
cdef void run_steps(Rows m, int wanted, double t, double* y, double* yp, double* out, double* fy,
                    double* fyp) noexcept nogil
cdef void row_values(Rows m, double t, double* y, double* yp, double* out) noexcept nogil
cdef void row_entries(Rows m, double t, double* y, double* yp, double* fy,
                      double* fyp) noexcept nogil
cdef void row_constants(Rows m, double* fy, double* fyp) noexcept nogil
cdef void row_changing(Rows m, double t, double* y, double* yp, double* fy,
                       double* fyp) noexcept nogil
cdef void set_zero(double* vector, int* places, int count) noexcept nogil
cdef void add_products(Rows m, int group, double* fy, double* fyp) noexcept nogil
cdef void add_group(Rows m, int begin, int end, double* sums) noexcept nogil
cdef void rows_constraint(double t, double* y, double* g, void* rows) noexcept nogil
cdef void rows_constraint_jacobian(double t, double* y, double* gy, void* rows) noexcept nogil
cdef void row_slopes(Rows m, double t, double* y, double* gy) noexcept nogil
