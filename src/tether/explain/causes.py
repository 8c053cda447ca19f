"""Why a run fails: one table for the messages and for docs/reference/messages.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["CAUSES", "UNTRACED", "Cause"]


class Cause(StrEnum):
    """Why a run failed, or what is doubtful about its result.

    Examples
    --------
    >>> from tether import Cause
    >>> Cause.BLOW_UP
    <Cause.BLOW_UP: 'blow-up'>
    """

    NONE = "none"
    STRUCTURE = "structure"
    SINGULAR = "singular"
    INDEX = "index"
    START = "start"
    DISCONTINUITY = "discontinuity"
    BLOW_UP = "blow-up"
    FOLD = "fold"
    CONDITION = "condition"
    LINEAR_SOLVER = "linear-solver"
    JACOBIAN = "jacobian"
    NON_FINITE = "non-finite"
    EXCEPTION = "exception"
    NOISE = "noise"
    TOLERANCE = "tolerance"
    CONTRADICTION = "contradiction"
    EVENT_STORM = "event-storm"
    CREEPING = "creeping"
    CHANGED = "changed"
    TRACE = "trace"
    LIMIT = "limit"
    MEMORY = "memory"
    STOPPED = "stopped"
    DOUBTFUL = "doubtful"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Text:
    """The texts of a cause; each ``{...}`` is filled in by a diagnosis."""

    title: str
    sentence: str                    # what happened, and where
    meaning: str                     # why it happens, for the documentation
    remedies: tuple[str, ...] = ()
    example: str = ""                # an example of {what}, for the documentation
    # other remedies, for situations in which those above do not help
    instead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


CAUSES = {
    Cause.NONE: Text(
        "Nothing is wrong",
        "Nothing is wrong.",
        "The run reached its goal, and its result passed the checks that follow every run.",
    ),
    Cause.STRUCTURE: Text(
        "Equations are missing or repeated",
        "The equations do not fit the unknowns: {what}.",
        "Whatever the numbers are, these equations cannot determine these unknowns: an unknown "
        "occurs in no equation, or several equations share too few unknowns. Usually an equation "
        "was written twice with small changes, or one was forgotten.",
        (
            "one of {equations} is too many, and an equation with {variables} is missing: replace "
            "the former by the latter",
            "check whether {variables} was left out of an equation by mistake",
        ),
        example="current occurs in no equation and equations 0, 1 share too few unknowns",
        instead={
            "where one equation contains no unknown": (
                "write an equation that determines {variables} in place of {equations}",
                "check that the function assigns a value to the residual of {equations}",
            ),
        },
    ),
    Cause.SINGULAR: Text(
        "The equations depend on each other",
        "The equations do not determine the solution{at}: {what}.",
        "Linearised, some equations are combinations of others (the pencil F_y + c F_y' is "
        "singular for every c), so that some unknowns are left open. Typical are the same balance "
        "written twice, a floating electrical network without a ground, a pressure that is only "
        "determined up to a constant, and a dropped term.",
        (
            "replace one of {equations} by an equation that determines {variables}: a ground, a "
            "reference, a prescribed value",
            "look for a term that is missing, or for terms that cancel",
        ),
        example="equations 0, 1 depend on each other and leave voltage, current open",
        instead={
            "where one equation determines nothing": (
                "write an equation that determines {variables} in place of {equations}",
                "check that the function assigns a value to the residual of {equations}",
            ),
            "where constraints depend on each other in one position": (
                "end the interval before t = {t}",
                "prescribe another coordinate, one that moves on through this position",
                "model what carries the real system through: play, elasticity, a guide",
            ),
        },
    ),
    Cause.INDEX: Text(
        "The index is too high",
        "The index is too high{at}: {what}.",
        "Some unknowns are found by differentiating others twice or more. The error of such an "
        "unknown does not shrink with the step, and as h goes to zero the iteration diverges as "
        "well (P82 section 5). BDF integrates index 2, and index 3 in the form of a mechanism; "
        "everything above must be reduced first.",
        (
            "let tether reduce the index: form='auto' with a function that can be traced, "
            "and no var_index",
            "differentiate the constraint that determines {variables} by hand",
            "leave {variables} out of the system and compute it afterwards",
        ),
        example="it is 3, and current could only be found by differentiating given functions",
        instead={
            "where tracing was forbidden": (
                "pass trace='auto': what can be traced is reduced to index 1",
                "differentiate the constraint that determines {variables} by hand",
                "leave {variables} out of the system and compute it afterwards",
            ),
            "where only derivatives show the index": (
                "write the constraints as equations of their own, not combined with others",
                "start from other values, where the equations are further from singular",
            ),
        },
    ),
    Cause.START: Text(
        "The start is inconsistent",
        "There are no consistent values near the given ones{at}: {what}.",
        "The starting values violate an equation without derivatives, or one that follows from the "
        "equations by differentiation, and no values close by satisfy all of them.",
        (
            "correct y0 so that {equations} can hold",
            "call consistent_start to see which values can be kept",
        ),
        example="3*voltage - current is 8 instead of 0 (equation 1)",
        instead={
            "where the run restarts": (
                "check what the `apply` of the event returns, or the equations after the break: "
                "{equations} must have a solution near these values",
            ),
            "where y' is not unique": (
                "pass yp0, with a guess of y' of {variables} that tells the solutions apart",
            ),
            "where a derivative of an equation is violated": (
                "change {variables} in y0 so that the time derivative of {equations} holds too",
                "call consistent_start with that derivative as one of its constraints",
            ),
        },
    ),
    Cause.DISCONTINUITY: Text(
        "A discontinuity",
        "{what} at t = {t}.",
        "A forcing, a table or an `if` jumps, or has a kink where its derivative is needed (an "
        "unknown of index 2 is the derivative of the forcing). No step across it is small enough. "
        "The failure is reported one step later, when the jump has entered the history "
        "(P82 section 3); the time given is that of the jump itself, found by bisection.",
        (
            "pass t_breaks={breaks} and all other times at which it happens, if they are known "
            "beforehand: the run stops there and starts again with a consistent start",
            "add an event with `apply` if it depends on the solution",
            "make the transition smooth, over a width that suits the problem",
        ),
        example="equation 1 jumps by 2",
        instead={
            "where the switch depends on the solution": (
                "make the transition smooth, over a width that suits the problem",
                "add an event where the switch happens, whose `apply` changes a parameter that "
                "{equations} reads instead of the switch",
            ),
        },
    ),
    Cause.BLOW_UP: Text(
        "The solution blows up",
        "The solution blows up: {what}.",
        "The solution has a pole or another singularity in finite time, towards which steps get "
        "shorter and shorter, in proportion to the distance that is left; or it has grown "
        "exponentially, until small unknowns are lost in the round-off of large ones, or numbers "
        "overflow.",
        (
            "check the sign of the term that makes {variables} grow",
            "end the interval before t = {t}, or stop with a terminal event at a large value",
            "integrate another quantity, such as the reciprocal or the logarithm of {variables}",
        ),
        example="current grows without bound as t approaches 0.5",
    ),
    Cause.FOLD: Text(
        "The solution ends",
        "The solution ends at t = {t}: the slope of {variables} grows without bound while its "
        "value does not.",
        "An algebraic equation turns back (a fold, or impasse point: two of its solutions "
        "meet and vanish), or a root or logarithm reaches the end of its domain. The Jacobian is "
        "singular there, and there is no solution beyond.",
        (
            "end the interval before t = {t}",
            "model what carries the real system further: an inductance, a mass, another regime",
            "check which of several solutions of the algebraic equation y0 belongs to",
        ),
    ),
    Cause.CONDITION: Text(
        "The iteration matrix is too ill-conditioned",
        "The iteration matrix is too ill-conditioned{at}: {what}.",
        "For index 2 and 3 the condition number of the matrix grows as the step shrinks, and "
        "round-off keeps the iteration from converging: a smaller step makes it worse (P82 section "
        "5, PL2 section 3). Equations in very different units have the same effect.",
        (
            "pass a larger first_step, or options={{'scaling': 'rows'}}",
            "loosen rtol and atol",
            "write {equations} in units that make its terms of size one",
        ),
        example="the iteration does not converge, and shorter steps make it worse",
    ),
    Cause.LINEAR_SOLVER: Text(
        "The linear systems are not solved",
        "The linear systems of Newton's iteration could not be solved{at}: {what}.",
        "With linear_solver='krylov' the systems are solved by iteration, which needs an "
        "approximation of the matrix: incomplete factors, or a preconditioner of your own. For "
        "many discretised fields this is close enough, but not for every matrix.",
        (
            "use complete factors: options={{'linear_solver': 'sparse'}}",
            "pass a preconditioner in options that is closer to the matrix",
        ),
        example="the iterations for 12 of 40 did not converge",
    ),
    Cause.JACOBIAN: Text(
        "The Jacobian is wrong",
        "The Jacobian passed as jac is wrong{at}: {what}.",
        "It was compared with differences of the residual. A wrong entry makes the "
        "iteration converge slowly or not at all.",
        (
            "correct the derivative of {equations} with respect to {variables}",
            "leave jac out: traced functions have an exact Jacobian, others are differenced",
        ),
        example="the entry of F_y for equation 1 and current is -1, differences give 1",
        instead={
            "where it is transposed": (
                "transpose it: row i belongs to equation i, column j to unknown j",
                "leave jac out: traced functions have an exact Jacobian, others are differenced",
            ),
            "where the two matrices are interchanged": (
                "return (F_y, F_yp) in this order",
                "leave jac out: traced functions have an exact Jacobian, others are differenced",
            ),
            "where all of F_y has the wrong sign": (
                "return derivatives of the residual F(t, y, y'), not of the right-hand side of "
                "y' = f(t, y)",
                "leave jac out: traced functions have an exact Jacobian, others are differenced",
            ),
        },
    ),
    Cause.NON_FINITE: Text(
        "The residual is not a number",
        "The residual of {equations} is {what} at t = {t}.",
        "A logarithm, root, power or division left its domain, however small the step became.",
        (
            "check the signs in {equations}, unless the solution is meant to leave the domain",
            "end the interval or stop with a terminal event before the domain is left",
            "extend the function smoothly beyond its domain",
        ),
        example="nan with current = -1",
        instead={
            "at the start": (
                "change y0 so that {equations} is finite there: a guess may be too large for an "
                "exponential, of the wrong sign, or in the wrong unit",
                "if it is 0/0 there, start at a point nearby, or write the limit into {equations}",
            ),
            "where a slope is infinite at the start": (
                "start slightly away from this value of {variables}",
                "add a small number under the root, or smooth the function near this value",
                "pass trace='never': differences do not see that the slope is infinite",
            ),
            "at the time of the start": (
                "start slightly later than t = {t}, or write the limit at t = {t} into {equations}",
            ),
        },
    ),
    Cause.EXCEPTION: Text(
        "A function raises an exception",
        "{what}, at every point that was tried beyond t = {t}.",
        "A `ValueError`, `ZeroDivisionError`, `OverflowError` or `FloatingPointError` at a point "
        "that the solver tries, such as the domain error of `math.sqrt`, is a reason for a smaller "
        "step, like a residual that is not a number. This one came however small the step became. "
        "It is in `sol.diagnosis.exception`, with its traceback. At the given starting values such "
        "an exception passes through to you, and all other exceptions always do.",
        (
            "check the signs in that line, unless the solution is meant to leave the domain",
            "end the interval or stop with a terminal event before the domain is left",
            "extend the function smoothly beyond its domain",
        ),
        example="ValueError: math domain error, raised in line 12 of model.py: "
        "return math.log(current)",
        instead={
            "where the run begins": (
                "start with values for which that line gives a number",
                "check what the `apply` of an event returns, or the values after a break",
            ),
        },
    ),
    Cause.NOISE: Text(
        "The residual is noisy",
        "The residual of {equations} is noisy{at}: {what}.",
        "Called twice with the same arguments, the function returns different values: it "
        "draws random numbers, or remembers earlier calls, such as the last iterate of a solver "
        "inside it. Or it computes in single precision. Differences of it are meaningless, and no "
        "step is small enough.",
        (
            "let {equations} depend on t, y and y' alone",
            "draw random numbers beforehand and interpolate between them",
            "raise the tolerances above the noise, and solve inner problems to round-off",
        ),
        example="two calls with the same arguments differ by 0.003",
        instead={
            "in single precision": (
                "compute in double precision: look for float32 in {equations} and all it uses",
                "pass jac, and tolerances above 1e-5",
            ),
        },
    ),
    Cause.TOLERANCE: Text(
        "The tolerance is below round-off",
        "The tolerance of {variables} is below round-off{at}: {what}.",
        "Double precision has about 16 digits, and the residual loses some of them to "
        "cancellation. A component without atol has no tolerance at all where it passes through "
        "zero.",
        (
            "raise rtol or atol of {variables}",
            "choose units in which {variables} is not tiny beside the values it is computed from",
        ),
        example="current is 0 and its atol is zero",
    ),
    Cause.CONTRADICTION: Text(
        "A constraint contradicts the equations",
        "The equations and {what} contradict each other at t = {t}.",
        "The projection undoes what the equations ask for, step after step, or finds no point at "
        "all. A constraint must hold along the exact solution; an invariant must keep its value.",
        (
            "solve the equations without the constraint, and check whether that solution keeps it",
            "check that the equations conserve the invariant: with friction, energy is not "
            "conserved",
            "pass the time derivative of a constraint too, if the equations do not contain it: "
            "positions on a circle need velocities along it",
        ),
        example="invariants[0], value 0",
    ),
    Cause.EVENT_STORM: Text(
        "Events pile up",
        "Events pile up at t = {t}: {what}.",
        "Every event comes sooner after the last than the one before (Zeno's paradox: a ball that "
        "bounces infinitely often in finite time), or two events switch back and forth. "
        "No integration passes such a point.",
        (
            "stop, or change to another model (the ball at rest), when the rebound is too small",
            "leave a gap between the thresholds at which the events switch",
        ),
        example="the last 16 changes of the state came within 0.9",
        instead={
            "at one time": (
                "let the `apply` of one event leave the function of the next on its side of zero",
                "give the events a `direction`, so that crossing zero the other way does nothing",
            ),
            "at equal intervals": (
                "leave a gap between the thresholds at which the events switch",
                "let `apply` move the state clearly away from the place of the event",
            ),
        },
    ),
    Cause.CREEPING: Text(
        "No progress",
        "No progress: {what}.",
        "Steps succeed, but at this pace the run would never end. Typical are a right-hand side "
        "that switches back and forth on a surface that the solution cannot leave (dry friction, "
        "relays), oscillations that become infinitely fast, and noise in the residual.",
        (
            "if something switches in {equations}, or has an infinite slope: make it smooth, or "
            "write the equations of a solution that stays there",
            "loosen the tolerance of {variables}",
            "pass max_steps or max_seconds if steps this short are right and the run is to go on",
        ),
        example="the last 100000 steps hardly advanced the time, at t = 0.5",
    ),
    Cause.CHANGED: Text(
        "The equations changed during the run",
        "The equations changed during the run{at}: they can no longer be traced.",
        "An event, a callback or a global variable changed something that the residual reads. The "
        "residual would now have to be called as it is, which trace='always' does not allow.",
        (
            "pass trace='auto'",
            "solve in two parts, before and after the change",
        ),
    ),
    Cause.TRACE: Text(
        "A trace differs from its function",
        "The trace differs from the function{at}: {what}.",
        "A function was traced, its trace was integrated, and at a checked step the two gave "
        "different values. The function may read something that changes without notice, or "
        "tracing has misread it. Such a run is repeated with the function called as it is, unless "
        "that cannot be done without side effects: a callback was called, or an event has changed "
        "the state. The function is not traced again.",
        (
            "repeat the run: this function is called from now on; or pass trace='never'",
            "let the function depend on t, y, y' and its arguments alone",
        ),
        example="equation 1 (model.py, line 7) was traced to something else: at t = 0.5 the trace "
        "gives 1.0, the function 2.0",
        instead={
            "where trace='always' was passed": (
                "pass trace='auto' or trace='never'",
                "let the function depend on t, y, y' and its arguments alone",
            ),
        },
    ),
    Cause.LIMIT: Text(
        "A limit was reached",
        "{what} at t = {t}.",
        "The limit was passed as max_steps or max_seconds.",
        ("raise the limit", "loosen the tolerances, or shorten the interval"),
        example="the limit of 1000 steps was reached",
        instead={
            "where max_step limits the steps": (
                "raise max_step: all of the last steps were as long as it allows",
                "raise the limit",
            ),
        },
    ),
    Cause.MEMORY: Text(
        "No memory is left",
        "No memory is left at t = {t}: {what}.",
        "Every accepted step is kept unless t_eval says which times are wanted.",
        (
            "pass t_eval with the times that are needed: nothing else is kept then",
            "solve in parts, each from the end of the one before",
        ),
        example="the 4194304 steps that were kept take 3.2 GB, and twice as much is not free",
    ),
    Cause.STOPPED: Text(
        "Interrupted",
        "The run was interrupted at t = {t}.",
        "By Ctrl-C, or by an exception of a function or a linear solver. What was computed so far "
        "is in the exception's attribute `result`.",
    ),
    Cause.DOUBTFUL: Text(
        "Check the result",
        "Check the result: {what}.",
        "The run reached its goal, but something about its result may not be what you expect: a "
        "residual or a constraint is larger than the tolerance explains, the equations hardly "
        "determine an unknown, the function returns different values for the same arguments, or "
        "the order stayed at one while steps failed.",
        (
            "compare with a run at a tenth of the tolerances",
            "if the start was assumed to be consistent, pass one that is, or start='auto'",
            "if a constraint does not hold, compare it with the solution of the equations alone",
            "if an unknown is hardly determined, add a term that determines it, such as a leakage "
            "or friction",
            "if the residual is noisy, let it depend on t, y and y' alone",
        ),
        example="the start was assumed to be consistent, but equation 1 has the value 0.3 there",
    ),
    Cause.UNKNOWN: Text(
        "No cause was found",
        "No cause was found{at}: {what}.",
        "None of the known patterns fits.",
        (
            "look at the last values and at sol.diagnosis.plot()",
            "try tolerances ten times looser and ten times tighter",
        ),
        example="the error of current stays above the tolerance",
        instead={
            "at a late time": (
                "measure time from the start of the run: near t = {t} floating-point numbers are "
                "too far apart",
            ),
        },
    ),
}

# What tracing would have done for a function that was called because it cannot be traced.
UNTRACED = {
    Cause.INDEX: "its equations would be differentiated and the index reduced",
    Cause.SINGULAR: "its hidden constraints would be found and its Jacobians exact",
    Cause.START: "hidden constraints would be kept, and a start looked for with exact derivatives",
    Cause.DISCONTINUITY: "its conditions would be known and steps would end where they change",
    Cause.CREEPING: "its conditions would be known, and the run could slide along a surface onto "
                    "which both sides push it",
    Cause.CONDITION: "its Jacobians would be exact",
    Cause.UNKNOWN: "its conditions would be known and its Jacobians exact",
}
