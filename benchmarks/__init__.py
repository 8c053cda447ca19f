"""tether and its peers, measured in one run."""

import os

# One thread each: the question is what a solver does, not how many cores BLAS finds.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
