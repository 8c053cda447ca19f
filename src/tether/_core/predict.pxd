from tether._core.state cimport State

cdef void predict(State s) noexcept nogil
cdef void start_from_prediction(State s) noexcept nogil
