from tether._core.adapters cimport evaluate
from tether._core.arrays cimport address, doubles_of
from tether._core.codes cimport MAX_NORM, NO_CONVERGENCE, OF_Y, OF_YP, OK
from tether._core.linear cimport assemble_and_factor, solve_scaled
from tether._core.norms cimport set_weights, weighted_norm
from tether._core.state cimport State
