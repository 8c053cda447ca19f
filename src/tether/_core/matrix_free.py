"""F_y + c F_y' without its entries: a product with a vector is a difference of residuals.

Moving the residual's arguments along a vector once gives one product (Brown and Saad, SIAM J. Sci.
Stat. Comput. 11, 1990, 450-481; DASPK). Products are always those at the current point. The
preconditioner of GMRES, set up again when c has changed, is a user's object, or the sizes of the
equations, which are measured by random changes within the tolerances.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, sqrt

if not cython.compiled:
    from tether._core.adapters import evaluate
    from tether._core.arrays import address
    from tether._core.codes import OF_Y, OF_YP, OK, SINGULAR, USER_EXCEPTION
    from tether._core.colours import draw
    from tether._core.gmres import Gmres, ask_user, weight_of
    from tether._core.matrix import Matrix
    from tether._core.state import State

ROOT_EPS = cython.declare(cython.double, 1.4901161193847656e-08)
NAN = cython.declare(cython.double, float("nan"))
# In tolerances: moves go so far that the unknown that moves farthest moves by this, and farther
# where that would be lost in the round-off of the equations.
MOVE = cython.declare(cython.double, 1.0)
# Where there is no residual so far away, try the opposite direction, then closer points.
CLOSER = cython.declare(cython.double, 1e-3)
TRIALS = cython.declare(cython.int, 4)
# Random changes from which the sizes of the equations are measured.
PROBES = cython.declare(cython.int, 4)
# In decades: the least distance between groups of sizes, and the greatest width of a group by
# chance.
GAP, WIDE = 1.0, 3.0


class Directional(Gmres):
    """Products by differences of the residual around a point, and solutions by iteration.

    Parameters
    ----------
    state : State
        The state whose residual is used.
    user : object, optional
        Has ``setup(t, y, yp, c)`` and ``solve(b)``, which returns an approximate solution of
        (F_y + c F_y') x = b.
    """

    def __init__(self, n, user=None):
        Gmres.__init__(self, n, user)
        self.state, self.c = None, 0.0
        self.points = np.zeros((5, n))
        self.y, self.yp = address(self.points[0]), address(self.points[1])
        self.unmoved = address(self.points[2])
        self.y_moved, self.yp_moved = address(self.points[3]), address(self.points[4])

    @property
    def by(self):
        """What takes the place of the matrix, for people."""
        return type(self.user).__name__ if self.by_user else "the sizes of the equations"

    def multiply(self, x, out, transposed):
        """Set `out` to A x; A^T is not available."""
        difference(self, x, 1.0, self.c, out)

    def precondition(self, v, out):
        """Set `out` to M^-1 v."""
        i: cython.int
        if self.by_user:
            ask_user(self, v, out)
            return
        for i in range(self.n):
            out[i] = v[i] / (self.row_size[i] * weight_of(self, i, False))

    def hand_over(self):
        """Let the user's object set up what it needs."""
        self.user.setup(self.t, self.points[0].copy(), self.points[1].copy(), self.c)


def difference(f, x, of_y, of_yp, out):
    """Set `out` to (`of_y` F_y + `of_yp` F_y') x, or to NaN if there are no residuals."""
    i: cython.int
    trial: cython.int
    status: cython.int
    far: cython.double = 0.0
    share: cython.double
    for i in range(f.n):
        far = max(far, fabs(x[i]) * f.state.weight[i])
    if of_y == 0.0:                        # changes of y' are like those of y in a step
        far *= fabs(of_yp * f.state.h)
    if far == 0.0:
        for i in range(f.n):
            out[i] = 0.0
        return
    share = max(MOVE, ROOT_EPS * f.state.y_norm) / far
    for trial in range(TRIALS):
        status = try_move(f, x, of_y * share, of_yp * share, out)
        if status == OK:
            for i in range(f.n):
                out[i] = (out[i] - f.unmoved[i]) / share
            return
        if status == USER_EXCEPTION:
            f.interrupted = True
            break
        share = -share if trial % 2 == 0 else -CLOSER * share
    for i in range(f.n):
        out[i] = NAN


def try_move(f, x, by_y, by_yp, out):
    """Evaluate the residual moved along a vector."""
    i: cython.int
    for i in range(f.n):
        f.y_moved[i] = f.y[i] + by_y * x[i]
        f.yp_moved[i] = f.yp[i] + by_yp * x[i]
    return evaluate(f.state, f.t, f.y_moved, f.yp_moved, out)


def measure_equations(f):
    """Measure how far random changes within the tolerances move the equations."""
    i: cython.int
    probe: cython.int
    for i in range(f.n):
        f.row_size[i] = 0.0
    for probe in range(PROBES):
        for i in range(f.n):
            f.x[i] = 2.0 * draw(f.state) - 1.5
            f.x[i] = (0.5 + fabs(f.x[i]) if f.x[i] > 0.0 else f.x[i] - 0.5) / f.state.weight[i]
        f.multiply(f.x, f.r, False)
        for i in range(f.n):
            if not fabs(f.r[i]) <= 1e300:
                return SINGULAR
            f.row_size[i] += f.r[i] * f.r[i] / PROBES
    for i in range(f.n):
        f.row_size[i] = sqrt(f.row_size[i]) if f.row_size[i] > 0.0 else f.state.tolerance[i]
        f.row_size[i] *= f.state.weight[i]
    with cython.gil:
        level(f.memory[5])
    for i in range(f.n):
        f.row_size[i] *= f.state.tolerance[i]
    return OK


def level(sizes):
    """Make sizes equal that differ only by chance.

    Otherwise their differences would hide what neighbours have in common. Sizes without a gap
    between them form a group; those in a wide group stay as they are.
    """
    logs = np.log10(sizes)
    order = np.argsort(logs)
    first = np.append(0, 1 + np.flatnonzero(np.diff(logs[order]) > GAP))
    count = np.diff(np.append(first, len(logs)))
    mean = np.add.reduceat(logs[order], first) / count
    width = logs[order[first + count - 1]] - logs[order[first]]
    mean, width = np.repeat(mean, count), np.repeat(width, count)
    sizes[order] = np.where(width <= WIDE, 10.0**mean, sizes[order])


class MatrixFree(Matrix):
    """F_y + c F_y' known only by its products with vectors.

    Parameters
    ----------
    n : int
        Size.
    user : object, optional
        See `Directional`.
    """

    def __init__(self, n, user=None):
        self.n, self.room, self.arrays, self.has_no_entries = n, 0, {}, True
        self.lu = Directional(n, user)

    @property
    def words(self):
        """Short description, for people."""
        return f"no matrices, products by differences; {self.lu.words}"

    def add_product(self, which, x, out):
        """Add the matrix times x to `out`."""
        i: cython.int
        if which == OF_Y:
            difference(self.lu, x, 1.0, 0.0, self.lu.r)
        elif which == OF_YP:
            difference(self.lu, x, 0.0, 1.0, self.lu.r)
        else:
            self.lu.multiply(x, self.lu.r, False)
        for i in range(self.n):
            out[i] += self.lu.r[i]
        self.take_error()

    def assemble(self, c):
        """Let products be those of F_y + c F_y'."""
        self.lu.c = c

    def weigh(self, weight):
        """Measure inexact solutions with these weights."""
        self.lu.weigh(weight)

    def factor(self):
        """Set up what the iterations need."""
        status: cython.int = measure_equations(self.lu)
        if status == OK and self.lu.by_user:
            with cython.gil:
                status = self.lu.call_factor()
        self.lu.factored = status == OK
        self.take_error()
        return status

    def solve(self, b):
        """Solve in place by iteration."""
        self.lu.solve(b)
        self.take_error()

    def take_error(self):
        """Take over an exception of the user's function or object."""
        if self.lu.failed or self.lu.interrupted:
            with cython.gil:
                self.failed = True
                self.error = self.lu.error if self.lu.failed else self.lu.state.error
                self.lu.interrupted, self.lu.state.error = False, None


def note_point(s, t, y, yp):
    """Let products be those at this point, whose residual is in `s.r`."""
    set_point(cython.cast(MatrixFree, s.matrix).lu, t, y, yp, s.r)
    return OK


def set_point(f, t, y, yp, r):
    """Set the point around which the residual is moved."""
    i: cython.int
    f.t = t
    for i in range(f.n):
        f.y[i] = y[i]
        f.yp[i] = yp[i]
        f.unmoved[i] = r[i]


def use_directions(s: State):
    """Let a state whose matrix is a `MatrixFree` work without its entries."""
    cython.cast(MatrixFree, s.matrix).lu.state = s
    s.jacobian = note_point
    s.random_state = 1


def increment_at(s: State, t, y, yp, r, c, fresh):
    """Return Newton's increment of y, with y' changing by c times as much; None if there is none.

    `r` is the residual at the point. If `fresh`, the preconditioner is set up again.
    """
    status: cython.int = OK
    matrix = cython.cast(MatrixFree, s.matrix)
    point, slopes, x = np.array(y, float), np.array(yp, float), -np.asarray(r, float)
    s.array("r")[:] = r
    note_point(s, t, address(point), address(slopes))
    matrix.assemble(c)
    matrix.weigh(s.weight)
    if fresh or not matrix.lu.factored:
        status = matrix.factor()
    if status == OK:
        matrix.solve(address(x))
    return x if status == OK and np.isfinite(x).all() else None


def sizes_of_equations(s: State):
    """Return how far random changes within the tolerances have moved the equations."""
    return cython.cast(MatrixFree, s.matrix).lu.memory[5]
