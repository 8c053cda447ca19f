"""An exception of a user's function that smaller steps did not avoid."""

from __future__ import annotations

import linecache
import os
import traceback

from tether.base.status import Status
from tether.explain.causes import Cause
from tether.explain.diagnosis import Diagnosis
from tether.explain.examine.case import Case
from tether.explain.examine.singularity import singularity

__all__ = ["raised", "words_of"]

OWN_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep
LONGEST_LINE = 60


def raised(case: Case) -> Diagnosis | None:
    """Say what a function raised where the run ended, unless the solution has blown up.

    Exceptions that did not end the run are ignored.
    """
    error = case.run.exception
    if error is None or case.status not in (Status.NON_FINITE, Status.NO_CONSISTENT_START):
        return None
    if not case.run.start.success:
        return case.say(
            Cause.EXCEPTION, words_of(error), (), case.run.given[0],
            situation="where the run begins",
        )
    grown = singularity(case)
    if grown is not None and grown.cause == Cause.BLOW_UP:
        return grown
    return case.say(Cause.EXCEPTION, words_of(error), (), case.t)


def words_of(error: BaseException) -> str:
    """Say what was raised, and in which line of the user's code.

    Examples
    --------
    >>> from tether.explain.examine.raised import words_of
    >>> words_of(ValueError("math domain error"))
    'ValueError: math domain error'
    """
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = frame.f_code.co_filename
        if path.startswith(OWN_FOLDER) or "tether/_core" in path:
            continue
        source = linecache.getline(path, line, frame.f_globals).strip()
        text += f", raised in line {line} of {os.path.basename(path)}"
        if len(source) > LONGEST_LINE:
            source = source[:LONGEST_LINE] + "..."
        return f"{text}: {source}" if source else text
    return text
