"""Reverse communication (HK): a run that asks for what it needs instead of calling functions.

The core is compiled and calls functions in the middle of a step. So that a program can have its own
loop, the run is executed in a separate thread; whenever it needs something it hands over a request
and waits. Only one of the two is ever running: the thread provides a stack that can be left and
entered again, which Python offers only for its own functions. It ends with the generator.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from tether.base.status import Status

__all__ = ["Handover", "Request"]

SHORT = {"residual": "the residual", "jacobian": "the pair (F_y, F_yp)", "solve": "the solution"}


@dataclass(eq=False)
class Request:
    """What a run of `Bdf.requests` needs, or notice of a step.

    Attributes
    ----------
    kind : str
        "residual": n values of F(t, y, yp); "jacobian": the pair (F_y, F_yp) there, dense or
        sparse; "factor": factors of `matrix`, to be kept, and False if it is singular; "solve": x
        with `matrix` x = `b`, for the matrix of the last request for factors; "step": nothing, a
        step was taken, or the run has ended.
    t, y, yp : float, ndarray, ndarray
        The point; for "factor" and "solve" None.
    matrix, b : sparse array, ndarray
        For "factor" and "solve".
    status : Status
        For "step": RUNNING while the run continues.
    run : Bdf
        For "step": the integrator, which can be examined before the loop continues.
    answer : object
        The answer, unless it is passed by `send`.

    Examples
    --------
    >>> from tether import Request
    >>> Request("residual", t=0.5).kind
    'residual'
    """

    kind: str
    t: float | None = None
    y: np.ndarray | None = None
    yp: np.ndarray | None = None
    matrix: Any = None
    b: np.ndarray | None = None
    status: Status | None = None
    run: Any = None
    answer: Any = None

    @property
    def name(self) -> str:
        """The request in words, for messages."""
        return self.kind if self.t is None else f"{self.kind} at t = {self.t:.10g}"


class Closed(BaseException):
    """Ends a run whose generator was closed; no exception handler should stop it."""


@dataclass
class Raised:
    """An exception instead of an answer."""

    error: BaseException


@dataclass
class Ended:
    """How the thread ended: with a status, or an exception."""

    status: Status | None = None
    error: BaseException | None = None


class Handover:
    """Where a run leaves its requests and finds the answers."""

    name = "answers to requests"         # its name as a linear solver

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._requests: SimpleQueue[Request | Ended] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._closed = False

    # --- called by the run, in its thread

    def ask(self, request: Request) -> Any:
        """Hand over a request and wait for the answer."""
        if self._closed:
            raise Closed
        if threading.current_thread() is not self._thread:
            raise RuntimeError(
                "a run of Bdf.requests takes its steps itself; request.run can only be looked at"
            )
        self._requests.put(request)
        answer = self._answers.get()
        if isinstance(answer, Raised):
            raise answer.error
        return answer

    def residual(self, t: float, y: np.ndarray, yp: np.ndarray) -> Any:
        """Ask for F(t, y, y')."""
        return self.ask(Request("residual", t, y.copy(), yp.copy()))

    def jacobian(self, t: float, y: np.ndarray, yp: np.ndarray) -> Any:
        """Ask for F_y and F_y'."""
        return self.ask(Request("jacobian", t, y.copy(), yp.copy()))

    def factor(self, matrix: Any) -> None:
        """Ask for factors of a matrix, as a linear solver."""
        self._matrix = matrix
        if self.ask(Request("factor", matrix=matrix)) is False:
            raise np.linalg.LinAlgError("the request was answered: singular matrix")

    def solve(self, b: np.ndarray) -> Any:
        """Ask for a solution, as a linear solver."""
        return self.ask(Request("solve", matrix=self._matrix, b=b))

    def _work(self, work: Callable[[], Status]) -> None:
        try:
            ended = Ended(status=work())
        except BaseException as error:
            ended = Ended(error=error)
        self._requests.put(ended)

    # --- called by the loop

    def run(self, work: Callable[[], Status], n: int) -> Generator[Request, Any, Status]:
        """Let `work` run in a thread; yield its requests, and return what it returns."""
        self._thread = thread = threading.Thread(
            target=self._work, args=(work,), name="tether requests", daemon=True
        )
        thread.start()
        try:
            while isinstance(request := self._requests.get(), Request):
                self._answers.put((yield from _answered(request, n)))
            if request.error is not None:
                raise request.error
            assert request.status is not None
            return request.status
        finally:
            self._closed = True
            self._answers.put(Raised(Closed()))
            # when the interpreter shuts down, daemon threads never continue
            if thread is not threading.current_thread() and not sys.is_finalizing():
                thread.join()


def _answered(request: Request, n: int) -> Generator[Request, Any, Any]:
    """Yield a request and return what was sent, left in it or thrown."""
    try:
        sent = yield request
    except GeneratorExit:
        raise
    except BaseException as error:
        return Raised(error)
    return _checked(request, request.answer if sent is None else sent, n)


def _checked(request: Request, answer: Any, n: int) -> Any:
    """Check an answer; raise an error if it does not fit the request."""
    if request.kind == "step":
        return None
    if request.kind == "factor":
        if not (answer is None or isinstance(answer, (bool, np.bool_))):
            raise TypeError(
                f"the request {request.name} takes None, or False for a singular matrix, as its "
                f"answer, got {answer!r}"
            )
        return answer is None or bool(answer)
    if answer is None:
        raise TypeError(
            f"the request {request.name} was not answered: send {SHORT[request.kind]}, or leave it "
            "in request.answer"
        )
    if request.kind == "jacobian":
        if not isinstance(answer, (tuple, list)) or len(answer) != 2:
            raise TypeError(f"the answer to the request {request.name} must be (F_y, F_yp)")
        for matrix in answer:
            _check_shape(request, np.shape(matrix), (n, n))
        return answer
    try:
        values = np.array(answer, float)
    except (TypeError, ValueError):
        raise TypeError(
            f"the answer to the request {request.name} must be {n} real numbers, got {answer!r}"
        ) from None
    _check_shape(request, values.shape, (n,))
    return values


def _check_shape(request: Request, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise ValueError(
            f"the answer to the request {request.name} must have shape {wanted}, got {shape}"
        )
