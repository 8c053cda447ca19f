from tether._core.codes cimport BLOCK
from tether._core.state cimport State

cdef void predict(State s) noexcept nogil
cdef void predict_some(State s, int first, int last) noexcept nogil
cdef void start_from_prediction(State s, int first, int last) noexcept nogil
