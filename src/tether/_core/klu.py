"""Sparse matrices factored by KLU (Davis and Palamadai Natarajan, ACM TOMS 37, 2010, 36).

KLU is not part of tether: `tether.plan.libraries` finds it on the machine; this module only knows
how to call its functions. They are called by address, without the GIL.

When the pivots of an earlier matrix are used again, KLU reports how much entries have grown during
elimination; if that is much more than when the pivots were chosen, new ones are chosen.
"""

import ctypes

import cython
import numpy as np

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.codes import OK, SINGULAR
    from tether._core.factors import Factors

# Offsets of fields in KLU's struct `klu_common`, in doubles and in integers, and its size in bytes.
RCOND = cython.declare(cython.int, 14)
RGROWTH = cython.declare(cython.int, 16)
STATUS = cython.declare(cython.int, 19)
ROOM = 512
# The first values that `klu_defaults` writes: they tell whether the struct has the expected layout.
DEFAULTS = (0.001, 1.2, 1.2, 10.0, 0.0)
CHOICES = {10: 1, 11: 0, 12: 2, 18: 1}
# Offsets of fields in KLU's `klu_numeric`, in integers; the first field is n.
L_ENTRIES = cython.declare(cython.int, 2)
U_ENTRIES = cython.declare(cython.int, 3)
# Smallest reciprocal growth of the entries, relative to that when the pivots were chosen.
TOO_MUCH_GROWTH = cython.declare(cython.double, 1e-3)


def pointer_to(handle, name):
    """Return the address of a function of a library."""
    where: cython.size_t = ctypes.cast(getattr(handle, name), ctypes.c_void_p).value
    return cython.cast(cython.p_void, where)


class Library:
    """KLU's functions in a shared library; OSError or AttributeError if it has none.

    Parameters
    ----------
    path : str
        Path of the library, or a name that the system's loader knows.
    """

    def __init__(self, path):
        if not cython.compiled:
            raise OSError("KLU needs the compiled core")
        self.path, self.handle = path, ctypes.CDLL(path)
        self.defaults = cython.cast(defaults_t, pointer_to(self.handle, "klu_defaults"))
        self.analyze = cython.cast(analyze_t, pointer_to(self.handle, "klu_analyze"))
        self.factor = cython.cast(factor_t, pointer_to(self.handle, "klu_factor"))
        self.refactor = cython.cast(refactor_t, pointer_to(self.handle, "klu_refactor"))
        self.growth = cython.cast(refactor_t, pointer_to(self.handle, "klu_rgrowth"))
        self.solve = cython.cast(solve_t, pointer_to(self.handle, "klu_solve"))
        self.solve_transposed = cython.cast(solve_t, pointer_to(self.handle, "klu_tsolve"))
        self.pivots = cython.cast(judge_t, pointer_to(self.handle, "klu_rcond"))
        self.free_symbolic = cython.cast(free_t, pointer_to(self.handle, "klu_free_symbolic"))
        self.free_numeric = cython.cast(free_t, pointer_to(self.handle, "klu_free_numeric"))
        settings = np.zeros(ROOM // 8)
        self.defaults(cython.cast(cython.p_void, address(settings)))
        integers = settings.view(np.intc)
        expected = all(integers[place] == value for place, value in CHOICES.items())
        if tuple(settings[:5]) != DEFAULTS or not expected:
            raise OSError(f"{path} is an unknown version of KLU")


class KluFactors(Factors):
    """Factors of a sparse matrix with a fixed pattern, by KLU.

    Parameters
    ----------
    library : Library
        KLU.
    pattern : Pattern
        Positions of the entries.

    Attributes
    ----------
    full, again : int
        Number of factorisations with new pivots, and with those of an earlier one.
    """

    def __init__(self, library, pattern):
        self.library, self.n, self.factored = library, pattern.n, False
        self.full = self.again = 0
        self.free_symbolic = self.library.free_symbolic
        self.free_numeric = self.library.free_numeric
        self.library.defaults(cython.cast(cython.p_void, self.common))
        self.integers = cython.cast(cython.p_int, self.common)
        self.owners = [
            np.append(pattern.start, 0).astype(np.intc), np.append(pattern.row, 0).astype(np.intc)
        ]
        starts: cython.int[::1] = self.owners[0]
        rows: cython.int[::1] = self.owners[1]
        self.start, self.row = cython.address(starts[0]), cython.address(rows[0])
        self.symbolic = self.library.analyze(self.n, self.start, self.row, self.common)

    @property
    def entries(self):
        """Number of entries of the factors, counting one diagonal."""
        fields: cython.p_int = cython.cast(cython.p_int, self.numeric)
        if fields == cython.NULL or fields[0] != self.n:
            return 0
        return fields[L_ENTRIES] + fields[U_ENTRIES] - self.n

    @property
    def words(self):
        """Short description, for people."""
        return "factored by KLU"

    def __dealloc__(self):
        self.free_factors()
        if self.symbolic != cython.NULL:
            self.free_symbolic(cython.address(self.symbolic), self.common)

    def forget(self):
        """Choose new pivots the next time."""
        self.free_factors()

    def free_factors(self):
        """Free the memory of the factors."""
        self.factored = False
        if self.numeric != cython.NULL:
            self.free_numeric(cython.address(self.numeric), self.common)
            self.numeric = cython.NULL

    def factor(self, values):
        """Factor the matrix with these entries; return OK or SINGULAR."""
        p: cython.int
        if self.symbolic == cython.NULL:
            return SINGULAR
        for p in range(self.start[self.n]):
            if not fabs(values[p]) <= 1e300:           # also true of NaN
                return SINGULAR
        if self.numeric != cython.NULL and self.refactor(values):
            self.again += 1
            return OK
        self.full += 1
        return self.factor_with_new_pivots(values)

    def factor_with_new_pivots(self, values):
        """Factor with new pivots."""
        self.free_factors()
        self.numeric = self.library.factor(
            self.start, self.row, values, self.symbolic, self.common
        )
        if self.numeric == cython.NULL or self.integers[STATUS] != 0:
            self.free_factors()
            return SINGULAR
        self.library.growth(
            self.start, self.row, values, self.symbolic, self.numeric, self.common
        )
        self.first_growth = self.common[RGROWTH]
        self.factored = True
        return OK

    def refactor(self, values):
        """Factor with the old pivots; tell whether they are still good enough."""
        self.library.refactor(
            self.start, self.row, values, self.symbolic, self.numeric, self.common
        )
        if self.integers[STATUS] != 0:
            return False
        self.library.growth(
            self.start, self.row, values, self.symbolic, self.numeric, self.common
        )
        return self.common[RGROWTH] >= TOO_MUCH_GROWTH * self.first_growth

    def solve(self, b):
        """Solve A x = b in place."""
        self.library.solve(self.symbolic, self.numeric, self.n, 1, b, self.common)

    def solve_transposed(self, b):
        """Solve A^T x = b in place."""
        self.library.solve_transposed(self.symbolic, self.numeric, self.n, 1, b, self.common)

    def pivot_ratio(self):
        """Ratio of the largest to the smallest pivot."""
        self.library.pivots(self.symbolic, self.numeric, self.common)
        return 1.0 / self.common[RCOND] if self.common[RCOND] > 0.0 else 0.0
