"""solve_fixed: BDF with a constant step and a constant order, for study."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tether._core import probe
from tether._core.adapters import raise_user_error
from tether._core.state import State
from tether.base.capacity import OF_FIXED_STEPS, require_matrices
from tether.base.checks import as_numbers, check_time, check_vector
from tether.base.reason import Kind, Reason
from tether.base.status import Status
from tether.explain.start_words import with_words
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.names import NO_NAMES, Names
from tether.problem.options import Options
from tether.problem.problem import Problem, as_problem, prepared
from tether.result.solution import DaeResult
from tether.run.statistics import Statistics
from tether.start.discrete import Blocks, check_blocks, correct_velocities
from tether.structure.start import Start

__all__ = ["solve_fixed"]

MAX_ORDER = 6                    # from 7 on the BDF are unstable
STARTS = ("exact", "discrete")
STEP_COUNT_TOLERANCE = 1e-9      # the interval is a whole number of steps up to this share of it
STAGNATION = 0.5                 # an increment above this share of the last is down to round-off
ROUND_OFF = 4 * np.finfo(float).eps
LARGEST_CONDITION = 1e15
AS_GIVEN = Reason(Kind.HISTORY_GIVEN)

MESSAGES = {
    Status.NO_CONVERGENCE: (
        "Newton's iteration did not converge in {iterations} iterations. Take a smaller step, "
        "check a jac that was passed in, or start from values closer to the solution."
    ),
    Status.SINGULAR_MATRIX: (
        "The matrix F_y + c F_y' is singular. Two equations may say the same, or one unknown may "
        "appear in no equation."
    ),
    Status.NON_FINITE: (
        "The residual or its Jacobian is infinite or not a number. Look for a logarithm, root or "
        "division that leaves its domain near this time, or take a smaller step."
    ),
}


def solve_fixed(
    fun: Any,
    t_span: Sequence[float],
    y0: ArrayLike | None,
    yp0: ArrayLike | None = None,
    *,
    order: int,
    step: float,
    start: str = "exact",
    history: ArrayLike | None = None,
    blocks: tuple[Sequence[int], Sequence[int]] | None = None,
    args: Sequence[Any] = (),
    jac: Any = None,
    names: Sequence[str] | None = None,
    newton_tolerance: float = 1e-8,
    max_iterations: int = 30,
) -> DaeResult:
    """Solve F(t, y, y') = 0 by the BDF of one order with one step size.

    Every step solves F(t_n, y_n, (α_0 y_n + ... + α_k y_{n-k}) / h) = 0 by Newton's method with a
    new Jacobian in every iteration, down to round-off. There is no error control: this is for the
    study of the method, on problems of index 0, 1, 2 and of index 3 in mechanical form, for
    which the order is k at constant step (Lötstedt and Petzold 1986).

    Parameters
    ----------
    fun : callable or Problem
        The residual, as in `solve_dae`.
    t_span : pair of float
        Start and end; the end may lie before the start.
    y0 : array_like, shape (n,)
        Starting values. They are used as they are.
    yp0 : array_like, shape (n,), optional
        Starting derivative, returned in ``yp``; the method does not need it.
    order : int
        k, 1 to 6.
    step : float
        Size of the steps, positive. The interval must hold a whole number of them, at least k.
    start : {"exact", "discrete"}
        "exact": y0 is on the solution. For k > 1 the k - 1 values after it are found by Radau IIA
        collocation with k + 1 stages in each step; from consistent y0 their error is at most
        O(h^(k+1)), and O(h^k) in multipliers of index 3. In index 3 the multipliers lose one
        order during the first k steps even so: with k = 1 the error of the first step does not
        shrink with h.
        "discrete", for k = 1 and mechanical systems of index 3: the velocities in y0 are moved by
        O(h), so that the multipliers are accurate to O(h) from the first step on (Arévalo 2008).
    history : array_like, shape (n, k), optional
        The solution at t0, t0 + h, ..., t0 + (k - 1) h, if it is known. The first column replaces
        `y0`, which may then be None.
    blocks : pair of lists of int, optional
        For ``start="discrete"``: the indices of the multipliers among the unknowns and of the
        constraints among the equations. When left out, those are the unknowns whose derivative
        does not appear and the equations without a derivative.
    args : sequence
        Further arguments of `fun` and `jac`.
    jac : callable or pair of matrices, optional
        ``jac(t, y, yp, *args) -> (F_y, F_yp)``; differences when left out.
    names : sequence of str, optional
        Names of the unknowns; read off the function when left out, as in ``x, v = y``.
    newton_tolerance : float
        The iteration continues until its increments no longer shrink; it has converged if they are
        then smaller than this, relative to the solution, in equilibrated variables.
    max_iterations : int
        Newton iterations per step.

    Returns
    -------
    DaeResult
        ``t``, ``y`` and ``yp`` at every step. ``yp`` is the difference formula of the method; at
        the k starting values the derivative of the polynomial through the first k + 1 points.
        ``start.moved`` has what ``start="discrete"`` changed. A numerical failure is returned with
        ``success=False`` and all that was computed.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong, or the system lacks the form that ``start="discrete"`` needs.

    Examples
    --------
    The error of order 2 falls by 4 when the step is halved:

    >>> import numpy as np
    >>> from tether import solve_fixed
    >>> def error(step):
    ...     sol = solve_fixed(lambda t, y, yp: [yp[0] + y[0]], (0, 1), [1.0], order=2, step=step)
    ...     return abs(sol.y[0, -1] - np.exp(-1))
    >>> print(round(error(1 / 100) / error(1 / 200), 1))
    4.0
    """
    problem = _check_problem(as_problem(fun, jac, args))
    order = _check_count("order", order, MAX_ORDER)
    t = _grid(t_span, step, order)
    if start not in STARTS:
        raise ValueError(f"start must be one of {STARTS}, got {start!r}")
    known = _check_history(y0, history, order)
    n = len(known)
    discrete = start == "discrete"
    if discrete and (order != 1 or history is not None):
        raise ValueError('start="discrete" corrects y0 for order=1 and takes no history')
    if blocks is not None and not discrete:
        raise ValueError('blocks are for start="discrete" only')
    found = None if blocks is None else check_blocks(blocks, n)
    slope = None if yp0 is None else check_vector("yp0", yp0, n)
    tolerance = check_time("newton_tolerance", newton_tolerance)
    if tolerance <= 0:
        raise ValueError(f"newton_tolerance must be positive, got {newton_tolerance!r}")
    iterations = _check_count("max_iterations", max_iterations)

    require_matrices(len(known), OF_FIXED_STEPS)
    problem = prepared(problem, float(t[0]), known[:, 0])
    run = _Run(_new_state(problem, n, t), t, order, known, slope, tolerance, iterations)
    run.names = Names.of(problem, n, names)
    run.run(discrete, found)
    return run.result()


# --- the run ------------------------------------------------------------------------------------


class _StepError(Exception):
    """A step cannot be completed, for the reason in `status`."""

    def __init__(self, status: Status) -> None:
        self.status = status


@dataclass
class _Run:
    """A run under way: the grid, and the columns of y that are known so far."""

    state: State
    t: np.ndarray
    order: int
    known: np.ndarray                 # the starting values that were given, as columns
    yp0: np.ndarray | None
    newton_tolerance: float
    max_iterations: int
    status: Status = Status.RUNNING
    reason: Reason = AS_GIVEN
    names: Names = NO_NAMES
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.h = self.state.h
        self.y = np.empty((len(self.known), len(self.t)))
        self.done = self.known.shape[1]          # columns of y that are known
        self.y[:, : self.done] = self.known
        # derivative at the last of k + 1 equal steps: α_k, ..., α_0
        self.alpha = differentiation(np.arange(self.order + 1.0))[-1]

    def run(self, discrete: bool, blocks: Blocks | None) -> None:
        """Complete the starting values, then take steps to the end or to a failure."""
        try:
            if discrete:
                self._correct_start(blocks)
            elif self.done < self.order:
                self._start_by_radau()
            while self.done < len(self.t):
                self._accept(self._bdf_step())
                self.state.steps += 1
            self.status = Status.REACHED_END
        except _StepError as failure:
            self.status = failure.status

    def _accept(self, y: np.ndarray) -> None:
        self.y[:, self.done] = y
        self.done += 1

    def _bdf_step(self) -> np.ndarray:
        """Solve F(t_n, y_n, (1/h) sum α_i y_{n-i}) = 0 for y_n."""
        past = self.y[:, self.done - self.order : self.done]
        fixed = past @ self.alpha[:-1] / self.h
        stages = self._solve_stages(
            self.t[[self.done]], self.alpha[-1:, None] / self.h, fixed[:, None],
            extrapolate(past)[:, None],
        )
        return stages[:, -1]

    def _start_by_radau(self) -> None:
        """Find the starting values by collocation at the Radau points of each step.

        The unknowns of the system are the values at the points, which works for differential and
        algebraic unknowns; the derivative is that of the polynomial through them and the old value.
        """
        count = self.order + 1
        self.reason = Reason(Kind.HISTORY_BY_RADAU, values=(self.order - 1, count))
        nodes = np.append(0.0, radau_nodes(count))
        D = differentiation(nodes) / self.h
        while self.done < self.order:
            y, t = self.y[:, self.done - 1], self.t[self.done - 1]
            stages = self._solve_stages(
                t + self.h * nodes[1:], D[1:, 1:], np.outer(y, D[1:, 0]),
                np.repeat(y[:, None], count, axis=1),
            )
            self._accept(stages[:, -1])

    def _correct_start(self, blocks: Blocks | None) -> None:
        """Try one step and correct the velocities by its result (A08)."""
        y0, y1 = self.y[:, 0], self._bdf_step()
        corrected = correct_velocities(self.state, float(self.t[1]), self.h, y0, y1, blocks)
        if corrected is None:
            raise _StepError(Status.NON_FINITE)
        self.reason = Reason(Kind.SUITS_DIFFERENCES)
        self.y[:, 0] = corrected

    # --- Newton's method

    def _solve_stages(
        self, times: np.ndarray, D: np.ndarray, fixed: np.ndarray, guess: np.ndarray
    ) -> np.ndarray:
        """Solve F(t_i, Y_i, sum_j D_ij Y_j + fixed_i) = 0 for the columns Y_i.

        One stage with D = α_0 / h is a step of the BDF.
        """
        Y = guess
        past_size = np.abs(self.y[:, : self.done]).max(axis=1)
        previous = np.inf
        for _ in range(self.max_iterations):
            r, A = self._linearise(times, D, fixed, Y)
            size = np.maximum(np.abs(Y).max(axis=1), past_size)
            dY, change = self._increment(r, A, size)
            converged = change <= self.newton_tolerance
            if converged and change >= STAGNATION * previous:
                return Y
            Y, previous = Y + dY, change
            if change <= ROUND_OFF:
                return Y
        if not converged:
            raise _StepError(Status.NO_CONVERGENCE)
        return Y

    def _linearise(
        self, times: np.ndarray, D: np.ndarray, fixed: np.ndarray, Y: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the residuals and the matrix of all stages."""
        s, (n, count) = self.state, Y.shape
        slopes = Y @ D.T + fixed
        r, A = np.empty(n * count), np.empty((n * count, n * count))
        for i in range(count):
            rows = slice(i * n, (i + 1) * n)
            s.fyp_constant = False                # so that every Jacobian is computed anew
            probe.move_to(s, times[i], Y[:, i], slopes[:, i])
            status, fy, fyp = probe.jacobian_at(s, times[i], Y[:, i], slopes[:, i])
            raise_user_error(s)
            if status != 0:
                raise _StepError(Status.NON_FINITE)
            r[rows] = s.array("r")
            A[rows] = np.kron(D[i], fyp)
            A[rows, rows] += fy
        if not np.isfinite(A).all():
            raise _StepError(Status.NON_FINITE)
        return r, A

    def _increment(
        self, r: np.ndarray, A: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Return Newton's increment and its relative size.

        Rows and then columns are divided by their largest entry, which takes out most of the
        powers of 1/h that make the matrix ill-conditioned in index 2 and 3 (PL2 section 3). The
        increment is measured in the same scaled variables (PL2 section 4), in which an unknown
        counts as much as it matters in the equations.
        """
        rows = np.abs(A).max(axis=1)
        scaled = A / np.where(rows == 0.0, 1.0, rows)[:, None]
        columns = np.abs(scaled).max(axis=0)
        scaled /= np.where(columns == 0.0, 1.0, columns)
        self.state.nlu += 1
        self.state.iterations += 1
        try:
            inverse = np.linalg.inv(scaled)
        except np.linalg.LinAlgError:
            raise _StepError(Status.SINGULAR_MATRIX) from None
        condition = np.abs(scaled).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max()
        if not condition < LARGEST_CONDITION:
            raise _StepError(Status.SINGULAR_MATRIX)
        z = -(inverse @ (r / rows))
        n, change = len(size), float(np.abs(z).max())
        whole = float(np.max(columns.reshape(-1, n) * size)) + change
        return (z / columns).reshape(-1, n).T, change / whole if change else 0.0

    # --- what is returned

    def result(self) -> DaeResult:
        """Collect what was computed."""
        t, y = self.t[: self.done], self.y[:, : self.done]
        yp = self._slopes(y)
        moved = y[:, 0] - self.known[:, 0]
        steps = np.arange(self.order, max(self.done, self.order))
        stats = Statistics.of(
            self.state, seconds=time.perf_counter() - self.began, history={
                "t": t[steps], "h": np.full(len(steps), self.h),
                "order": np.full(len(steps), self.order),
            },
        )
        start = Start(
            y[:, 0], yp[:, 0], self.done >= self.order, self.reason,
            moved={int(i): float(moved[i]) for i in np.flatnonzero(moved)},
        )
        return DaeResult(
            t=t, y=y, yp=yp, sol=None, t_events=None, y_events=None, yp_events=None,
            status=self.status, message=self._message(), start=with_words(start), stats=stats,
            naming=self.names,
        )

    def _slopes(self, y: np.ndarray) -> np.ndarray:
        """Return y' by the difference formula of the method."""
        k = self.order
        first = min(k, self.done - 1)            # degree of the polynomial at the beginning
        yp = np.full_like(y, np.nan)
        if first:
            D = differentiation(np.arange(first + 1.0)) / self.h
            yp[:, : first + 1] = y[:, : first + 1] @ D.T
        for n in range(k + 1, self.done):
            yp[:, n] = y[:, n - k : n + 1] @ self.alpha / self.h
        if self.yp0 is not None:
            yp[:, 0] = self.yp0
        return yp

    def _message(self) -> str:
        if not self.status.failed:
            return self.status.text
        reason = MESSAGES[self.status].format(iterations=self.max_iterations)
        return f"{reason} (t = {self.t[self.done]:.10g}, step size {self.h:.3g})"


# --- coefficients -------------------------------------------------------------------------------


def differentiation(nodes: np.ndarray) -> np.ndarray:
    """Return D such that D @ values are the slopes, at the nodes, of the polynomial through them.

    Examples
    --------
    The last row at equal nodes is the BDF, here of order 2:

    >>> from tether.fixed import differentiation
    >>> import numpy as np
    >>> differentiation(np.arange(3.0))[-1].tolist()
    [0.5, -2.0, 1.5]
    """
    distance = nodes[:, None] - nodes
    np.fill_diagonal(distance, 1.0)
    weight = 1.0 / distance.prod(axis=1)
    D = weight / weight[:, None] / distance
    np.fill_diagonal(D, 0.0)
    np.fill_diagonal(D, -D.sum(axis=1))
    return D


def radau_nodes(stages: int) -> np.ndarray:
    """Return the points of Radau IIA in (0, 1]: the zeros of P_s - P_{s-1}, shifted and scaled.

    Examples
    --------
    >>> from tether.fixed import radau_nodes
    >>> radau_nodes(2).round(6).tolist()
    [0.333333, 1.0]
    """
    coefficients = np.zeros(stages + 1)
    coefficients[-2:] = -1.0, 1.0
    nodes = np.sort(np.polynomial.legendre.legroots(coefficients).real)    # complex from NumPy 2.5
    nodes[-1] = 1.0
    return (1.0 + nodes) / 2.0


def extrapolate(past: np.ndarray) -> np.ndarray:
    """Continue the polynomial through the columns of `past` by one step."""
    value = past[:, -1].copy()
    difference = past
    while difference.shape[1] > 1:
        difference = np.diff(difference, axis=1)
        value += difference[:, -1]
    return value


# --- arguments ----------------------------------------------------------------------------------


def _check_problem(problem: Problem) -> Problem:
    if problem.constraints or problem.invariants:
        raise ValueError(
            "fun is a Problem with constraints or invariants; solve_fixed does not project"
        )
    return problem


def _new_state(problem: Problem, n: int, t: np.ndarray) -> State:
    state = new_state(AsWritten(problem, n), Options())
    state.retries = False                      # the step size is fixed
    state.t_end, state.h = float(t[-1]), float(t[1] - t[0])
    state.direction = float(np.sign(state.h))
    return state


def _check_count(name: str, value: Any, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1 or (most is not None and value > most):
        limits = "positive" if most is None else f"from 1 to {most}"
        raise ValueError(f"{name} must be {limits}, got {value!r}")
    return int(value)


def _grid(t_span: Any, step: Any, order: int) -> np.ndarray:
    """Return the times of all steps; refuse a span that is not a whole number of steps."""
    try:
        t0, t_end = t_span
    except (TypeError, ValueError):
        raise ValueError(f"t_span must be a pair (start, end), got {t_span!r}") from None
    t0, t_end = check_time("t_span[0]", t0), check_time("t_span[1]", t_end)
    step = check_time("step", step)
    if step <= 0:
        raise ValueError(f"step must be positive, got {step!r}; t_span gives the direction")
    ratio = abs(t_end - t0) / step
    count = round(ratio)
    if count < order:
        raise ValueError(f"t_span must hold at least order={order} steps, but holds {ratio:.6g}")
    if abs(ratio - count) > STEP_COUNT_TOLERANCE * ratio:
        raise ValueError(f"t_span must hold a whole number of steps, but holds {ratio:.12g}")
    return np.linspace(t0, t_end, count + 1)


def _check_history(y0: Any, history: Any, order: int) -> np.ndarray:
    """Return the given starting values as columns."""
    if history is None:
        return check_vector("y0", y0)[:, None]
    values = as_numbers("history", history)
    if values.ndim != 2 or values.shape[1] != order or values.shape[0] == 0:
        raise ValueError(
            f"history must have one column for each of the order={order} starting values, "
            f"got shape {values.shape}"
        )
    if values.dtype.kind not in "fiu":
        raise TypeError("history must be an array of real numbers")
    if y0 is not None:
        check_vector("y0", y0, len(values))
    if not np.isfinite(values).all():
        raise ValueError("history must be finite")
    return values.astype(float)
