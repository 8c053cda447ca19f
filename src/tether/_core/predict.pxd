from tether._core.codes cimport BLOCK
from tether._core.state cimport State

cdef void predict(State s) noexcept nogil
cdef void predict_some(State s, int first, int last) noexcept nogil
cdef void add_term(State s, double beta, double gamma, long long column, int first,
                   int last) noexcept nogil
cdef void add_terms(State s, double beta, double gamma, long long column, double next_beta,
                    double next_gamma, int first, int last) noexcept nogil
cdef void start_from_prediction(State s, int first, int last) noexcept nogil
