# What the verbs of the core return; codes.py has the same names for the interpreted core.
cdef enum:
    OK = 0
    # One attempt at a step failed and may be repeated with a smaller step. When
    # repeating does not help either, the run ends with the negative of the code.
    ERROR_TEST = 1
    NO_CONVERGENCE = 2
    SINGULAR = 3
    NON_FINITE = 4
    NOT_ON_CONSTRAINTS = 11
    CONTRADICTION = 12
    SMALLER_IS_WORSE = 13
    # The run cannot go on.
    ZERO_WEIGHT = -7
    TOO_ACCURATE = -9
    USER_EXCEPTION = -100
    # Why `advance` returned without a failure.
    REACHED_END = 20
    PAUSED = 21
    STORE_FULL = 22
    EVENT_FOUND = 23
    STRUCTURE_IN_DOUBT = 24     # the error test keeps failing, or the constraints' rank changed
    NO_EVENT_VALUE = 25         # a program of events gives NaN: call the functions, which may raise
    COMPARISON_DUE = 26         # time to compare the program with the function it was traced from
    # A start that needs no correction.
    AS_GIVEN = 30

cdef enum:
    MAX_ORDER = 6
    COLUMNS = MAX_ORDER + 3     # order k needs differences 0..k, and k+1, k+2 to judge order k+1
    MOST_EFFECTS = 20           # effects of equations on each other are kept up to so many

cdef enum:
    MAX_NORM = 0
    RMS_NORM = 1

cdef enum:
    H211B = 0
    DASSL = 1

# Scaling of the iteration matrix (linear.py).
cdef enum:
    UNSCALED = 0
    ROWS = 1
    KINDS = 2

# Matrices and patterns behind the seam (matrix.py).
cdef enum:
    OF_Y = 0
    OF_YP = 1
    ITERATION = 2
    CANDIDATES = 2

# Unknowns per block: so few that operations on many vectors stay in the processor's cache.
cdef enum:
    BLOCK = 512

# The ring of the last attempts (ring.py).
cdef enum:
    RING_ROWS = 64
    RING_COLUMNS = 11

# Coefficients of a step of order 6.
cdef enum:
    WIDTH = 8
