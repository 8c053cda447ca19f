"""The result of a start in words: the one table of texts about starting values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tether.base.frozen import with_changed
from tether.base.reason import Kind, Reason, Row
from tether.problem.names import NO_NAMES, Names, counted, listed
from tether.structure.start import Start

if TYPE_CHECKING:
    from tether.run.integration import Integration

__all__ = ["refuse_off_constraints", "start_of_run", "start_words", "with_words"]

MOST_OFF = 5
TIMES = ("", ", differentiated once,", ", differentiated twice,")


def start_words(reason: Reason, names: Names = NO_NAMES) -> str:
    """Say what was done with starting values, or what is wrong with them.

    Examples
    --------
    >>> from tether.base.reason import Kind, Reason, Row
    >>> from tether.explain.start_words import start_words
    >>> from tether.problem.names import Names
    >>> reason = Reason(Kind.LEFT_OVER, (Row(1),), values=(0.5,))
    >>> start_words(reason, Names(("x", "v"), ("mass", "force")))
    "equation 1 'force' is left with a residual of 0.5"
    """
    text = TEXTS[reason.kind]
    if callable(text):
        text = text(reason, names)
    elif "{" in text:
        text = text.format(
            equation=_row(reason.rows[0], names) if reason.rows else "",
            unknowns=listed([names.variable(j) for j in reason.columns]),
            values=reason.values, index=reason.index,
        )
    if reason.index is not None and reason.kind in WITH_INDEX:
        text += f" (local index {reason.index})"
    if reason.earlier is None:
        return text
    return f"{start_words(reason.earlier, names)}; {text}"


def with_words(start: Start, names: Names = NO_NAMES) -> Start:
    """Return a start with its message."""
    return with_changed(start, message=start_words(start.reason, names))


def start_of_run(run: Integration, start: Start) -> Start:
    """Return the user's part of a start of a run, with its message."""
    names = run.names if start.reason.names_something else NO_NAMES     # finding them takes time
    return with_words(start.restricted(run.n), names)


def refuse_off_constraints(run: Integration) -> None:
    """Raise if the run was given starting values that are not on the constraints given with them.

    The values are then wrong, or the constraints: both are arguments.
    """
    if not run.start.on_constraints and run.model.constraints.all:
        reason = start_words(run.start.reason, run.names)
        raise ValueError(f"y0 is not on the constraints: {reason}")


# --- texts ------------------------------------------------------------------------------------


def _row(row: Row, names: Names) -> str:
    if row.constraint:
        return row.constraint
    times = TIMES[row.order] if row.order < len(TIMES) else f", differentiated {row.order} times,"
    return names.equation(row.equation) + times


def _off(reason: Reason, names: Names, most: int) -> str:
    """Name rows and how far they are off, up to a number of them."""
    parts = [
        f"{_row(row, names).replace(', ', ' ').removesuffix(',')} (off by {value:.3g})"
        for row, value in zip(reason.rows[:most], reason.values, strict=False)
    ]
    return ", ".join(parts)


def _no_derivative(reason: Reason, names: Names) -> str:
    shown = [
        f"{names.number(row.equation)} (off by {value:.3g})"
        for row, value in zip(reason.rows[:MOST_OFF], reason.values, strict=False)
    ]
    more = len(reason.rows) - len(shown)
    tail = f" and {more} more" if more else ""
    noun = "equation" if len(reason.rows) == 1 else "equations"
    return f"y is inconsistent: no derivative satisfies {noun} {', '.join(shown)}{tail}"


def _guess_not_finite(reason: Reason, names: Names) -> str:
    numbers = ", ".join([names.number(i) for i in reason.equations[:MOST_OFF]])
    return f"the residual is not finite at the guess{f', equation {numbers}' if numbers else ''}"


def _singular(reason: Reason, names: Names) -> str:
    numbers = listed([names.number(i) for i in reason.equations])
    what = (
        f"equation {numbers} determines nothing and leaves" if len(reason.rows) == 1
        else f"equations {numbers} depend on each other and leave"
    )
    unknowns = listed([names.variable(j) for j in reason.columns])
    return f"the equations do not determine the solution: {what} {unknowns} open"


def _index_of_many(reason: Reason, names: Names) -> str:
    shown = ", ".join([names.number(i) for i in reason.equations[:MOST_OFF]])
    more = int(reason.values[0]) - min(MOST_OFF, len(reason.rows))
    tail = f" and {more} more" if more > 0 else ""
    return (
        f"the index is {reason.index}, judging by where derivatives occur: equations {shown}{tail} "
        "have to be differentiated to determine all unknowns, and with so many unknowns a start is "
        "only looked for at index 1. Pass a function that can be traced, or equations of index 1"
    )


def _would_have_to_be(argument: str) -> Callable[[Reason, Names], str]:
    def text(reason: Reason, names: Names) -> str:
        entry = names.entry(argument, reason.columns[0])
        instead = _instead_of(*reason.values)
        return f"{argument} is inconsistent: {entry} would have to be {instead}"

    return text


def _of_count(template: str, noun: str) -> Callable[[Reason, Names], str]:
    return lambda reason, names: template.format(counted(int(reason.values[0]), noun))


def _instead_of(wanted: float, given: float) -> str:
    """Write two numbers with as many digits as are needed to tell them apart."""
    for digits in (6, 9, 12, 17):
        texts = f"{wanted:.{digits}g}", f"{given:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return " instead of ".join(texts)


def _far_from_constraints(reason: Reason, names: Names) -> str:
    value, change, found, beyond = reason.values
    return (
        f"{_row(reason.rows[0], names)} is {value:.3g} at the start; the nearest point on the "
        f"constraints changes {names.entry('y0', reason.columns[0])} by {change:.3g} to "
        f"{found:.6g}, {beyond:.3g} times its tolerance. Correct y0, or pass "
        "options={'accept_projected_start': True}"
    )


def _too_much(reason: Reason, names: Names) -> str:
    unknowns = listed([names.variable(j) for j in reason.columns])
    rows = _off(reason, names, MOST_OFF)
    return f"too much is fixed: {rows} cannot hold with {unknowns} fixed"


def _all_is_fixed(reason: Reason, names: Names) -> str:
    rows = _off(reason, names, len(reason.rows))
    return f"too much is fixed: {rows} cannot hold with all of y fixed"


def _contradiction(reason: Reason, names: Names) -> str:
    rows = _off(reason, names, MOST_OFF)
    return f"{rows} cannot hold near the guess: equations depend on or contradict each other"


# --- the table --------------------------------------------------------------------------------

WITH_INDEX = {Kind.AS_GIVEN, Kind.CHANGED, Kind.FOUND_SLOPES_ONLY}

TEXTS: dict[Kind, str | Callable[[Reason, Names], str]] = {
    Kind.NOTHING: "",
    Kind.AS_GIVEN: "consistent as given",
    Kind.ASSUMED: "assumed to be consistent",
    Kind.NOT_CHECKED: "not checked: a tolerance is zero",
    Kind.FOUND_SLOPES: "found y'",
    Kind.FOUND_SLOPES_ONLY: "found y' for the given y",
    Kind.CHANGED_ALGEBRAIC: _of_count("changed {} and y'", "algebraic value"),
    Kind.CHANGED: _of_count("changed {} and y'", "value"),
    Kind.MADE_CONSISTENT: "made consistent",
    Kind.MOVED_ONTO_CONSTRAINTS: _of_count("moved {} onto the constraints", "value"),
    Kind.MOVED: "moved {unknowns}",
    Kind.SLOPES_OPEN: "y' of {unknowns} is not determined (index above 1)",
    Kind.HIDDEN_UNKNOWN: "hidden constraints were not found (local index {index})",
    Kind.HISTORY_GIVEN: "as given",
    Kind.HISTORY_BY_RADAU: "{values[0]} values by Radau IIA with {values[1]} stages",
    Kind.SUITS_DIFFERENCES: "velocities moved to suit the difference equations",
    Kind.NOT_FINITE: "the residual at the starting values is not finite",
    Kind.INDEX_OF_MANY: _index_of_many,
    Kind.TOO_MANY_UNKNOWNS: (
        "the matrix of a start at index 1 is singular, and a start at a higher index is not looked "
        "for with so many unknowns. If the index is above 1, pass a function that can be traced; "
        "otherwise some equations depend on each other"
    ),
    Kind.GUESS_NOT_FINITE: _guess_not_finite,
    Kind.CONSTRAINT_NOT_FINITE: "a constraint is not finite at the starting values",
    Kind.JACOBIAN_NOT_FINITE: "a Jacobian is not finite",
    Kind.DERIVATIVES_NOT_FINITE: "the Jacobian or F_t is not finite at the guess",
    Kind.ZERO_TOLERANCE: "an entry of y0 is zero, and so is its tolerance",
    Kind.LEFT_OVER: "{equation} is left with a residual of {values[0]:.3g}",
    Kind.CANNOT_HOLD: (
        "{equation} cannot be satisfied near y0: a residual of {values[0]:.3g} is left"
    ),
    Kind.GIVEN_CANNOT_HOLD: "the constraints and invariants passed cannot hold near y0",
    Kind.HIDDEN_VIOLATED: (
        "a hidden constraint is violated: the derivative of {equation} with respect to time "
        "cannot be brought closer to 0 than {values[0]:.3g} by y' at the starting values; correct "
        "y0, for instance with consistent_start and the derivative as one of its constraints"
    ),
    Kind.HIDDEN_CANNOT_HOLD: (
        "hidden constraints (local index {index}) cannot hold with the values fixed or given: "
        "{unknowns} would have to change"
    ),
    Kind.NO_SLOPES: "y' cannot be found",
    Kind.Y0_INCONSISTENT: _would_have_to_be("y0"),
    Kind.YP0_INCONSISTENT: _would_have_to_be("yp0"),
    Kind.NOT_ON_CONSTRAINTS: (
        "{equation} is {values[0]:.3g} at the start and cannot be brought to zero near y0; check "
        "it, and whether constraints contradict or depend on each other"
    ),
    Kind.FAR_FROM_CONSTRAINTS: _far_from_constraints,
    Kind.NO_SOLUTION_NEARBY: (
        "no solution near the guess: {equation} is left with a residual of {values[0]:.3g}"
    ),
    Kind.CONTRADICTION: _contradiction,
    Kind.TOO_MUCH_FIXED: _too_much,
    Kind.ALL_IS_FIXED: _all_is_fixed,
    Kind.TOO_LITTLE_KNOWN: (
        "too little is known: the equations do not determine {unknowns}; fix or guess them, or "
        "pass the hidden constraints that determine them"
    ),
    Kind.SLOPES_NOT_KEPT: (
        "no start was found that keeps y' of {unknowns}; if it follows from other values by "
        "differentiation, fix those instead"
    ),
    Kind.SLOPES_NOT_UNIQUE: (
        "the equations are nonlinear in y' of {unknowns}, which cannot be found from the guess "
        "y' = 0: there may be several solutions"
    ),
    Kind.NO_DERIVATIVE: _no_derivative,
    Kind.DERIVATIVE_OPEN: (
        "y' cannot be found from F and dF/dt: the index is above 1, or equations depend on each "
        "other"
    ),
    Kind.DERIVATIVE_NOT_FOUND: (
        "no y' found: {equation} is left with a residual of {values[0]:.3g}"
    ),
    Kind.STALLED: (
        "no y' found: Newton's iteration on F and dF/dt stalled; {equation} is left with a "
        "residual of {values[0]:.3g}"
    ),
    Kind.SINGULAR: _singular,
    Kind.INDEX_TOO_HIGH: (
        "the index is {index} and the system does not have the form of a mechanism: {unknowns} "
        "would be found by differencing other unknowns twice or more, with errors that do not "
        "shrink with the step when the step changes (nilpotency 3 and above). Differentiate the "
        "constraint that determines them, or leave them out and compute them afterwards"
    ),
    Kind.CONCEALED_INDEX: (
        "the index is {index}, which only derivatives of the equations show, and no derivatives "
        "were found that make a regular system near these values. Write the constraints as "
        "equations of their own, without combining them with others, or start elsewhere"
    ),
}
