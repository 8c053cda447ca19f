from tether._core.adapters cimport evaluate
from tether._core.codes cimport OK
from tether._core.norms cimport set_weights
from tether._core.state cimport State
