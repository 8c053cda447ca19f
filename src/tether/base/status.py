"""How a run ended; the text of a status is its remedy."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["REACHED_END", "RUNNING", "TRACE_DIFFERS", "ConsistencyWarning", "Status"]


class ConsistencyWarning(UserWarning):
    """The starting values were changed by more than the tolerance to make them consistent.

    Its text is the same in every run, so that Python shows it once for a line that runs many times.

    Examples
    --------
    If the algebraic part of y0 is only a guess, say so:

    >>> from tether import solve_dae
    >>> sol = solve_dae(lambda t, y, yp: [yp[0] + y[1], y[0] - y[1]], (0, 1), [1.0, 0.0],
    ...                 start="quiet")
    >>> {i: round(change, 6) for i, change in sol.start.moved.items()}
    {1: 1.0}
    """


class Status(IntEnum):
    """How a run ended: zero or positive is a success, negative a failure.

    The `text` of a member says what happened and what to try next.

    Examples
    --------
    >>> from tether import Status
    >>> Status(0)
    <Status.REACHED_END: 0>
    >>> Status.MAX_STEPS.failed
    True
    """

    REACHED_END = 0
    EVENT = 1
    STOPPED = 2
    RUNNING = 3

    ERROR_TEST_FAILED = -1
    NO_CONVERGENCE = -2
    SINGULAR_MATRIX = -3
    NON_FINITE = -4
    MAX_STEPS = -5
    MAX_SECONDS = -6
    ZERO_WEIGHT = -7
    NO_CONSISTENT_START = -8
    TOO_ACCURATE = -9
    INTERRUPTED = -10
    NOT_ON_CONSTRAINTS = -11
    CONTRADICTION = -12
    SMALLER_IS_WORSE = -13
    INDEX_TOO_HIGH = -14
    SINGULAR_SYSTEM = -15
    EQUATIONS_CHANGED = -16
    EVENT_STORM = -17
    NO_PROGRESS = -18
    OUT_OF_MEMORY = -19
    TRACE_DIFFERS = -20

    @property
    def text(self) -> str:
        """What happened and what to try next."""
        return TEXTS[self]

    @property
    def happened(self) -> str:
        """What happened, without the advice."""
        return self.text.split(". ")[0].rstrip(".")

    @property
    def failed(self) -> bool:
        """Whether the run ended before reaching its goal."""
        return self < 0


# Up to Python 3.11, asking an `Enum` for a member takes longer than calling a function, and every
# run asks for these many times.
RUNNING, REACHED_END = Status.RUNNING, Status.REACHED_END
TRACE_DIFFERS = Status.TRACE_DIFFERS

TEXTS = {
    Status.REACHED_END: "The end of the interval was reached.",
    Status.EVENT: "A terminal event occurred.",
    Status.STOPPED: "The callback asked to stop.",
    Status.RUNNING: "The integration can go on.",
    Status.ERROR_TEST_FAILED: (
        "The local error stayed above the tolerance however small the step became. The solution "
        "may jump or blow up here, or the problem may have an index above 1. Look at the last "
        "values; mark a jump with an event; loosen rtol or atol of the component that fails."
    ),
    Status.NO_CONVERGENCE: (
        "Newton's iteration did not converge however small the step became. Check a jac that "
        "was passed in, look for a kink or a wrong sign in the residual near this time, or start "
        "from values closer to the solution."
    ),
    Status.SINGULAR_MATRIX: (
        "The matrix F_y + c F_y' is singular at every step size. Two equations may say the same, "
        "or one unknown may appear in no equation."
    ),
    Status.NON_FINITE: (
        "The residual is infinite or not a number, or a function raises an exception, however "
        "small the step became. Look for a logarithm, root or division that leaves its domain near "
        "this time."
    ),
    Status.MAX_STEPS: "The limit of steps was reached. Raise max_steps or loosen the tolerances.",
    Status.MAX_SECONDS: "The time limit was reached. Raise max_seconds or loosen the tolerances.",
    Status.OUT_OF_MEMORY: (
        "There is no memory left for the steps that are kept. Pass t_eval to keep only the times "
        "that are needed."
    ),
    Status.ZERO_WEIGHT: (
        "A component with atol = 0 became zero, so that its tolerance vanished. Give it a "
        "positive atol."
    ),
    Status.NO_CONSISTENT_START: (
        "No consistent starting values were found near the given ones. Check y0 against the "
        "algebraic equations, or pass a yp0 that satisfies the residual."
    ),
    Status.TOO_ACCURATE: (
        "The tolerances ask for more digits than double precision has. Raise rtol or atol."
    ),
    Status.NOT_ON_CONSTRAINTS: (
        "The solution could not be brought onto the constraints: they contradict each other, or "
        "depend on each other and the solver asked for needs independent ones. Check them one by "
        "one at the last values, or choose projection_solver='orthogonal'."
    ),
    Status.CONTRADICTION: (
        "The constraints and the equations contradict each other: step after step the projection "
        "undoes what the equations ask for. A constraint must hold along the exact solution; an "
        "invariant must keep its starting value there."
    ),
    Status.SMALLER_IS_WORSE: (
        "Newton's iteration fails, and every smaller step begins farther from the solution: the "
        "iteration matrix is too ill-conditioned. Try a larger first_step, scaling='rows', looser "
        "tolerances, or equations of lower index."
    ),
    Status.INDEX_TOO_HIGH: (
        "The system cannot be integrated as written: its index is too high."
    ),
    Status.SINGULAR_SYSTEM: (
        "The equations do not determine a solution: some depend on others, or an unknown is left "
        "open."
    ),
    Status.EQUATIONS_CHANGED: (
        "An event, a callback or something else changed the residual so that it can no longer be "
        "traced, and trace='always' does not allow it to be called. Pass trace='auto'."
    ),
    Status.EVENT_STORM: (
        "Events that change the state follow each other so closely that the run would never end. "
        "Stop, or change to another model, before they accumulate."
    ),
    Status.NO_PROGRESS: (
        "The steps succeed, but are so short that the run would never end. If that is meant, pass "
        "max_steps or max_seconds."
    ),
    Status.TRACE_DIFFERS: (
        "The function returns other values than its trace. Pass trace='never'."
    ),
    Status.INTERRUPTED: "The run was interrupted, from the keyboard or by an exception.",
}
