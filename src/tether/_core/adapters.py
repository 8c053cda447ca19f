"""The user's functions behind the core's seams: Python callables and C functions.

Only the `python_*` functions take the GIL. They catch whatever the user's code raises and let
`pass_or_refuse` decide what becomes of it.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite

from tether.base.checks import WrongResult, as_vector

if cython.compiled:
    from cython.cimports.cpython.pycapsule import (
        PyCapsule_GetContext,
        PyCapsule_GetName,
        PyCapsule_GetPointer,
    )
else:
    from tether._core.arrays import address
    from tether._core.codes import NON_FINITE, OF_Y, OF_YP, OK, USER_EXCEPTION
    from tether._core.guess import use_guesses
    from tether._core.norms import all_finite
    from tether._core.state import State

if cython.compiled:
    cnp.import_array()

REAL = "fiub"                          # dtype.kind of NumPy's real types
# Exceptions (and their subclasses) that say that a function has no value at a point.
DOMAIN_ERRORS = (ValueError, ZeroDivisionError, OverflowError, FloatingPointError)


def pass_or_refuse(s, error, t, y, yp):
    """Decide what becomes of an exception that one of the user's functions raised at a point.

    If the solver chose the point and the exception says that the function has no value there, the
    point is refused like one at which the residual is not finite. At the point that the user gave,
    and for exceptions of any other kind, the exception is kept to be raised again unchanged.

    The traceback is stored separately, since it would grow each time the exception is raised again.
    """
    if (
        not isinstance(error, DOMAIN_ERRORS)
        or isinstance(error, WrongResult)
        or not s.retries
        or is_given(s, t, y, yp)
    ):
        s.error = error
        return USER_EXCEPTION
    s.trial_error = error, error.__traceback__
    s.trial_error_step = s.steps
    error.__traceback__ = None
    return NON_FINITE


def is_given(s, t, y, yp):
    """Tell whether the user gave this point; constraints have no y' and pass y in its place."""
    i: cython.int
    if s.given is None:
        return False
    start, values, slopes = s.given
    if t != start:
        return False
    for i in range(len(values)):
        if y[i] != values[i]:
            return False
        if yp is not y and yp[i] != (0.0 if slopes is None else slopes[i]):
            return False
    return True


def take_refusal(s: State):
    """Return the exception that made the last attempt at a step fail, and forget it.

    None if no function raised one in that attempt.
    """
    if s.trial_error is None:
        return None
    error, traceback = s.trial_error
    s.trial_error = None
    return error.with_traceback(traceback) if s.trial_error_step == s.steps else None


def evaluate(s, t, y, yp, out):
    """Evaluate the residual, whichever kind of function it is; NaN and infinity are recoverable."""
    status: cython.int
    s.nfev += 1
    status = s.residual(s, t, y, yp, out)
    if status != OK:
        return NON_FINITE if status > 0 else USER_EXCEPTION
    return OK if all_finite(out, s.n) else NON_FINITE


# --- Python callables ----------------------------------------------------------------


class PythonResidual:
    """A plain Python residual and the arrays it is called with, allocated once.

    The function sees copies of the core's vectors: it may keep or overwrite what it
    is given until its next call.
    """

    def __init__(self, fun, n, args, fills):
        self.fun = fun
        self.n = n
        self.args = args
        self.fills = fills
        self.y = np.zeros(n)
        self.yp = np.zeros(n)
        self.out = np.zeros(n)
        self.y_data = address(self.y)
        self.yp_data = address(self.yp)
        self.out_data = address(self.out)

    def call(self, t, y, yp, out):
        """Evaluate into `out`."""
        i: cython.int
        for i in range(self.n):
            self.y_data[i] = y[i]
            self.yp_data[i] = yp[i]
        if self.fills:
            if self.args:
                result = self.fun(t, self.y, self.yp, self.out, *self.args)
            else:
                result = self.fun(t, self.y, self.yp, self.out)
            if result is not None and result is not self.out:
                raise TypeError(
                    "fun returned a value, but its fourth parameter counts as 'out', which it "
                    "must fill; pass values of further parameters in args"
                )
            for i in range(self.n):
                out[i] = self.out_data[i]
            return 0
        if self.args:
            result = self.fun(t, self.y, self.yp, *self.args)
        else:
            result = self.fun(t, self.y, self.yp)
        return read_values(result, out, self.n)


class PythonJacobian:
    """A user's ``jac(t, y, yp) -> (F_y, F_yp)``."""

    def __init__(self, fun, n, args):
        self.fun = fun
        self.n = n
        self.args = args
        self.y = np.zeros(n)
        self.yp = np.zeros(n)
        self.y_data = address(self.y)
        self.yp_data = address(self.yp)

    def call(self, s, t, y, yp):
        """Evaluate into the state's F_y and F_y'."""
        i: cython.int
        for i in range(self.n):
            self.y_data[i] = y[i]
            self.yp_data[i] = yp[i]
        result = self.fun(t, self.y, self.yp, *self.args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError("jac must return the pair (F_y, F_yp)")
        for which, given in zip((OF_Y, OF_YP), result, strict=True):
            matrix = given if hasattr(given, "toarray") else np.asarray(given)
            if matrix.shape != (self.n, self.n):
                raise WrongResult(
                    f"jac must return two matrices of shape {(self.n, self.n)}, "
                    f"got one of shape {matrix.shape}"
                )
            if matrix.dtype.kind not in REAL:
                raise TypeError("jac must return matrices of real numbers")
            s.matrix.put(which, matrix)
        return 0


class PythonTerms:
    """The terms of a residual that contain y', ``terms(t, y, yp)``, linear in yp."""

    def __init__(self, fun, n, args):
        self.fun = fun
        self.n = n
        self.args = args
        self.y = np.zeros(n)
        self.yp = np.zeros(n)
        self.column = np.zeros(n)
        self.y_data = address(self.y)
        self.column_data = address(self.column)

    def call(self, s, t, y):
        """Evaluate F_y' column by column, as the terms for unit vectors."""
        i: cython.int
        j: cython.int
        count: cython.int
        constant: cython.bint = s.fyp_exists
        s.fyp_constant = False
        for i in range(self.n):
            self.y_data[i] = y[i]
        for j in range(self.n):
            self.yp[:] = 0.0
            self.yp[j] = 1.0
            self.column[:] = self.fun(t, self.y, self.yp, *self.args)
            count = 0
            for i in range(self.n):
                if self.column_data[i] != 0.0:
                    s.column_rows[count] = i
                    s.column_values[count] = self.column_data[i]
                    count += 1
                    if not isfinite(self.column_data[i]):
                        constant = False
            if s.matrix.put_column(OF_YP, j, s.column_rows, s.column_values, count) != 0.0:
                constant = False
        s.fyp_constant = constant
        s.fyp_exists = True
        return 0


class PythonEvents:
    """The user's event functions, evaluated together."""

    def __init__(self, events, n, args):
        self.events = list(events)
        self.n = n
        self.args = args
        self.y = np.zeros(n)
        self.yp = np.zeros(n)
        self.y_data = address(self.y)
        self.yp_data = address(self.yp)

    def call(self, t, y, yp, g):
        """Evaluate all events into `g`."""
        i: cython.int
        for i in range(self.n):
            self.y_data[i] = y[i]
            self.yp_data[i] = yp[i]
        for i in range(len(self.events)):
            value = self.events[i](t, self.y, self.yp, *self.args)
            g[i] = value if isinstance(value, (float, int)) else single_number(i, value)
        return 0


def single_number(event, value):
    """Return the one number that an event returned, also if it is in an array or a list."""
    try:
        numbers = np.asarray(value)
    except ValueError:                         # lists of unequal lengths
        numbers = np.empty(0)
    if numbers.size != 1 or numbers.dtype.kind not in REAL:
        raise TypeError(f"events[{event}] must return one real number, got {value!r}")
    return float(numbers.reshape(()))


def is_plain(result, n):
    """Tell whether `result` is a contiguous vector of n doubles that can be copied as it is."""
    if cython.compiled:
        return (
            cnp.PyArray_CheckExact(result)
            and cnp.PyArray_TYPE(result) == cnp.NPY_DOUBLE
            and cnp.PyArray_IS_C_CONTIGUOUS(result)
            and cnp.PyArray_ISBEHAVED_RO(result)
            and cnp.PyArray_NDIM(result) == 1
            and cnp.PyArray_DIM(result, 0) == n
        )
    return False


def read_values(result, out, n):
    """Copy a returned list, tuple or array of n real numbers."""
    i: cython.int
    if cython.compiled:
        data: cython.p_double
        if is_plain(result, n):
            data = cython.cast(cython.p_double, cnp.PyArray_DATA(result))
            for i in range(n):
                out[i] = data[i]
            return 0
        if isinstance(result, list) and len(cython.cast(list, result)) == n:
            for i in range(n):
                if not isinstance(cython.cast(list, result)[i], (float, int)):
                    break
                out[i] = cython.cast(list, result)[i]
            else:
                return 0
    if result is None:
        raise TypeError(
            "fun returned None; return the residual, or declare a fourth parameter named "
            "'out' and fill it"
        )
    values = as_vector("fun", result, n)
    if values.dtype.kind not in REAL:
        raise TypeError(f"fun must return real numbers, but returned {result!r}")
    for i in range(n):
        out[i] = values[i]
    return 0


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_residual(
    s: State, t: cython.double, y: cython.p_double, yp: cython.p_double, out: cython.p_double
) -> cython.int:
    """Call a `PythonResidual`."""
    try:
        cython.cast(PythonResidual, s.residual_adapter).call(t, y, yp, out)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, yp)
    return OK


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_jacobian(
    s: State, t: cython.double, y: cython.p_double, yp: cython.p_double
) -> cython.int:
    """Call a `PythonJacobian`."""
    try:
        cython.cast(PythonJacobian, s.jacobian_adapter).call(s, t, y, yp)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, yp)
    return OK


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_terms(
    s: State, t: cython.double, y: cython.p_double, yp: cython.p_double
) -> cython.int:
    """Call `PythonTerms`."""
    try:
        cython.cast(PythonTerms, s.slopes_adapter).call(s, t, y)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, yp)
    return OK


@cython.cfunc
@cython.with_gil
@cython.exceptval(check=False)
def python_events(
    s: State, t: cython.double, y: cython.p_double, yp: cython.p_double, g: cython.p_double
) -> cython.int:
    """Call `PythonEvents`."""
    try:
        cython.cast(PythonEvents, s.events_adapter).call(t, y, yp, g)
    except BaseException as error:
        return pass_or_refuse(s, error, t, y, yp)
    return OK


def use_python_residual(s: State, fun, args, fills, is_expensive=True):
    """Let the state call a Python residual; if it is expensive, use guesses to save calls."""
    s.residual_adapter = PythonResidual(fun, s.n, args, fills)
    s.residual = python_residual
    s.python_residual = True
    if is_expensive:
        use_guesses(s)


def use_python_jacobian(s: State, fun, args):
    """Let the state call a Python Jacobian."""
    s.jacobian_adapter = PythonJacobian(fun, s.n, args)
    s.jacobian = python_jacobian


def use_python_terms(s: State, fun, args):
    """Compute F_y' from the terms with y' where the Jacobian is found by differences."""
    s.slopes_adapter = PythonTerms(fun, s.n, args)
    s.slopes = python_terms


def use_python_events(s: State, events, args):
    """Let the state call Python event functions."""
    s.events_adapter = PythonEvents(events, s.n, args)
    s.events = python_events


def raise_user_error(s: State):
    """Raise the exception of a user's function or linear solver, if there was one."""
    if s.matrix.failed:
        error = s.matrix.error
        s.matrix.failed, s.matrix.error = False, None
        raise error
    if s.error is not None:
        error = s.error
        s.error = None
        raise error


# --- C functions, called without the GIL ------------------------------------------------


def c_residual(s, t, y, yp, out):
    """Call ``void f(t, y, yp, out)``."""
    cython.cast(c_residual_t, s.c_function)(t, y, yp, out)
    return OK


def c_residual_data(s, t, y, yp, out):
    """Call ``void f(t, y, yp, out, user_data)``."""
    cython.cast(c_residual_data_t, s.c_function)(t, y, yp, out, s.c_data)
    return OK


def c_status(s, t, y, yp, out):
    """Call ``int f(t, y, yp, out)``; nonzero asks for a smaller step."""
    return NON_FINITE if cython.cast(c_status_t, s.c_function)(t, y, yp, out) != 0 else OK


def c_status_data(s, t, y, yp, out):
    """Call ``int f(t, y, yp, out, user_data)``; nonzero asks for a smaller step."""
    if cython.cast(c_status_data_t, s.c_function)(t, y, yp, out, s.c_data) != 0:
        return NON_FINITE
    return OK


def use_c_residual(s: State, capsule, returns_status, takes_data):
    """Let the state call the C function in a `scipy.LowLevelCallable`'s capsule."""
    s.residual_adapter = capsule
    s.python_residual = False
    s.c_function = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    s.c_data = PyCapsule_GetContext(capsule)
    if takes_data:
        s.residual = c_status_data if returns_status else c_residual_data
    else:
        s.residual = c_status if returns_status else c_residual
