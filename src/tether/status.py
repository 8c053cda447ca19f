"""How a run ended; the text of a status is its remedy."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ConsistencyWarning", "Status"]


class ConsistencyWarning(UserWarning):
    """The starting values were changed by more than the tolerance to make them consistent."""


class Status(IntEnum):
    """How a run ended: zero or positive is a success, negative a failure.

    Every member carries a `text` that says what happened and what to try next.

    Examples
    --------
    >>> from tether import Status
    >>> Status(0)
    <Status.REACHED_END: 0>
    >>> Status.MAX_STEPS.failed
    True
    """

    text: str

    def __new__(cls, code: int, text: str) -> Status:
        """Attach the text to the code."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member

    REACHED_END = 0, "The end of the interval was reached."
    EVENT = 1, "A terminal event occurred."
    STOPPED = 2, "The callback asked to stop."
    RUNNING = 3, "The integration can go on."

    ERROR_TEST_FAILED = -1, (
        "The local error stayed above the tolerance however small the step became. The solution "
        "may jump or blow up here, or the problem may have an index above 1. Look at the last "
        "values; mark a jump with an event; loosen rtol or atol of the component that fails."
    )
    NO_CONVERGENCE = -2, (
        "Newton's iteration did not converge however small the step became. Check a jac that "
        "was passed in, look for a kink or a wrong sign in the residual near this time, or start "
        "from values closer to the solution."
    )
    SINGULAR_MATRIX = -3, (
        "The matrix F_y + c F_y' is singular at every step size. Two equations may say the same, "
        "or one unknown may appear in no equation."
    )
    NON_FINITE = -4, (
        "The residual is infinite or not a number however small the step became. Look for a "
        "logarithm, root or division that leaves its domain near this time."
    )
    MAX_STEPS = -5, "The limit of steps was reached. Raise max_steps or loosen the tolerances."
    MAX_SECONDS = -6, "The time limit was reached. Raise max_seconds or loosen the tolerances."
    ZERO_WEIGHT = -7, (
        "A component with atol = 0 became zero, so that its tolerance vanished. Give it a "
        "positive atol."
    )
    NO_CONSISTENT_START = -8, (
        "No consistent starting values were found near the given ones. Check y0 against the "
        "algebraic equations, or pass a yp0 that satisfies the residual."
    )
    TOO_ACCURATE = -9, (
        "The tolerances ask for more digits than double precision has. Raise rtol or atol."
    )
    INTERRUPTED = -10, "The run was interrupted from the keyboard."

    @property
    def failed(self) -> bool:
        """Whether the run ended before its goal."""
        return self < 0
