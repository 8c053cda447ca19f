"""Wrong arguments are refused by name before any step; the user's exceptions pass unchanged."""

import ctypes

import numpy as np
import pytest
from scipy import LowLevelCallable, sparse
from support.helpers import C_ARGUMENTS, c_function, circle, decay

from tether import Bdf, Options, Problem, Status, solve_dae

BOTH = (ValueError, TypeError)
NAN, INF = float("nan"), float("inf")


def refused(match, error=BOTH, *, fun=decay, t_span=(0, 1), y0=(1.0,), yp0=None, **more):
    """Assert that solve_dae refuses the arguments with a message, and without a step."""
    steps = []
    more.setdefault("callback", lambda t, y, yp: steps.append(t))
    with pytest.raises(error, match=match):
        solve_dae(fun, t_span, y0, yp0, **more)
    assert not steps


# --- starting values -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y0", "error"),
    [
        ([], ValueError),
        (1.0, ValueError),
        ([[1.0]], ValueError),
        ([[1.0], [1.0, 2.0]], ValueError),
        ([NAN], ValueError),
        ([INF], ValueError),
        ([-INF], ValueError),
        ([1j], TypeError),
        (np.array([1.0], np.complex64), TypeError),
        (["1.0"], TypeError),
        ([None], TypeError),
        (None, TypeError),
        ({"a": 1.0}, TypeError),
    ],
)
def test_y0(y0, error):
    refused(r"\by0\b", error, y0=y0)


def test_non_finite_y0_is_named_by_its_index():
    refused(r"y0\[1\] is nan", ValueError, fun=circle, y0=[1.0, NAN])


@pytest.mark.parametrize("yp0", [[], [0.0, 0.0], 0.0, [[0.0]], [NAN], [INF], [1j], ["0"]])
def test_yp0(yp0):
    refused(r"\byp0\b", yp0=yp0)


# --- tolerances ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1e-6, ValueError),
        (NAN, ValueError),
        (INF, ValueError),
        ([1e-6, -1e-6], ValueError),
        ([1e-6, NAN], ValueError),
        ([1e-6, 1e-6, 1e-6], ValueError),
        ([1e-6], ValueError),
        ([], ValueError),
        (np.full((2, 1), 1e-6), ValueError),
        ([[1e-6], [1e-6, 1e-6]], ValueError),
        ("1e-6", TypeError),
        (["1e-6", "1e-6"], TypeError),
        (1e-6j, TypeError),
        (None, TypeError),
        (True, TypeError),
    ],
)
def test_tolerances(name, value, error):
    refused(rf"\b{name}\b", error, fun=circle, y0=[1.0, 0.0], **{name: value})


@pytest.mark.parametrize(
    ("rtol", "atol", "component"),
    [(0, 0, 0), (0.0, [1e-9, 0.0], 1), ([0.0, 1e-6], [0.0, 0.0], 0)],
)
def test_both_tolerances_zero(rtol, atol, component):
    refused(
        rf"rtol and atol .* component {component}", ValueError,
        fun=circle, y0=[1.0, 0.0], rtol=rtol, atol=atol,
    )


# --- times ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "t_span",
    [
        (0,), (0, 1, 2), 1.0, None, (0, 0), (0, NAN), (NAN, 1), (0, INF), (-INF, 0), (0, 1j),
        (np.complex64(0), 1), ("0", "1"), ([0], [1]), (0, None),
    ],
)
def test_t_span(t_span):
    refused(r"\bt_span\b", t_span=t_span)


@pytest.mark.parametrize(
    "t_eval",
    [
        [-0.1, 0.5], [0.5, 1.1], [0.5, 0.2], [0.2, 0.2], [[0.1, 0.2]], 0.5, [0.1, NAN], [0.1j],
        ["0.1"], [[0.1], [0.1, 0.2]],
    ],
)
def test_t_eval(t_eval):
    refused(r"\bt_eval\b", t_eval=t_eval)


def test_t_eval_must_run_backwards_when_the_span_does():
    refused(r"\bt_eval\b", ValueError, t_span=(1, 0), t_eval=[0.2, 0.5])


# --- options -------------------------------------------------------------------------------

BAD_OPTIONS = [
    ("first_step", 0.0), ("first_step", -0.1), ("first_step", NAN), ("first_step", INF),
    ("first_step", "0.1"), ("first_step", [0.1]), ("first_step", 0.1j),
    ("max_step", 0), ("max_step", -1.0), ("max_step", NAN), ("max_step", "1"),
    ("max_step", None), ("max_step", [1.0, 2.0]),
    ("max_order", 0), ("max_order", 7), ("max_order", 2.5), ("max_order", "5"),
    ("max_order", True), ("max_order", None),
    ("max_steps", 0), ("max_steps", -1), ("max_steps", 1.5), ("max_steps", "10"),
    ("max_steps", True),
    ("max_seconds", 0), ("max_seconds", -1.0), ("max_seconds", NAN), ("max_seconds", "1"),
]
HIDDEN_OPTIONS = [
    ("controller", "pid"), ("controller", None), ("error_norm", "l1"), ("error_norm", 2),
    ("newton_norm", "l1"), ("newton_tolerance", 0.0), ("newton_tolerance", -1),
    ("newton_tolerance", INF), ("newton_tolerance", "0.1"),
]


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS)
def test_option_as_argument(name, value):
    refused(rf"\b{name}\b", **{name: value})


@pytest.mark.parametrize(("name", "value"), BAD_OPTIONS + HIDDEN_OPTIONS)
def test_option_in_mapping(name, value):
    if value is None and name in ("first_step", "max_steps", "max_seconds"):
        pytest.skip("None is the default")
    refused(rf"\b{name}\b", options={name: value})
    with pytest.raises(BOTH, match=rf"\b{name}\b"):
        Options(**{name: value})


def test_first_step_longer_than_the_interval():
    refused(r"\bfirst_step\b", ValueError, first_step=2.0)


def test_unknown_option_is_named_beside_the_known():
    refused(r"options.*'max_stpe'.*'max_step'", TypeError, options={"max_stpe": 1.0})


def test_unknown_keyword():
    refused("max_stpe", TypeError, max_stpe=1.0)


@pytest.mark.parametrize("options", [3, "rtol", [("rtol", 1e-3)]])
def test_options_of_another_type(options):
    refused(r"\boptions\b", TypeError, options=options)


# --- what is not callable, or not with these arguments -------------------------------------


def falling(t, y, yp):
    return y[0] - 0.5


def event_with(**attributes):
    """A fresh event function with attributes."""
    def event(t, y, yp):
        return y[0] - 0.5

    for name, value in attributes.items():
        setattr(event, name, value)
    return event


@pytest.mark.parametrize("fun", [None, 3, "fun", [decay], np.zeros(1)])
def test_fun_not_callable(fun):
    refused(r"\bfun\b", TypeError, fun=fun)


@pytest.mark.parametrize("jac", [3, "jac", [np.eye(1)], (np.eye(1),) * 3, np.eye(1)])
def test_jac_not_callable(jac):
    refused(r"\bjac\b", TypeError, jac=jac)


@pytest.mark.parametrize("events", [3, "events", [None], [falling, 3]])
def test_events_not_callable(events):
    refused(r"\bevents\b", TypeError, events=events)


def test_events_of_wrong_attributes():
    for bad in (-1, 1.5, "yes", [1]):
        refused(r"events\[0\]\.terminal", ValueError, events=event_with(terminal=bad))
    for bad in ("up", None, [1, 2], NAN):
        refused(r"events\[1\]\.direction", TypeError, events=[falling, event_with(direction=bad)])
    for bad in (3, [1.0]):
        refused(r"events\[0\]\.apply", TypeError, events=event_with(apply=bad))


@pytest.mark.parametrize("callback", [3, "print", [print]])
def test_callback_not_callable(callback):
    refused(r"\bcallback\b", TypeError, callback=callback)


@pytest.mark.parametrize(
    "fun",
    [
        lambda t, y: [y[0]],
        lambda t, y, yp, out, more: [y[0]],
        lambda: [0.0],
        lambda t, y, yp, *, key: [y[0]],
        lambda t, y, *, yp: [y[0]],
    ],
)
def test_signature_of_fun(fun):
    refused(r"\bfun\b", TypeError, fun=fun)


def test_signature_of_fun_counts_args():
    refused(r"\bfun\b", TypeError, fun=lambda t, y, yp, k: [yp[0] + k * y[0]], args=(1.0, 2.0))
    refused(r"\bfun\b", TypeError, fun=lambda t, y, yp, a, b, c: [yp[0] + y[0]], args=(1.0,))


def test_fun_with_a_parameter_too_many_that_returns_values():
    """Without args the fourth parameter is taken for `out`; that must not go unnoticed."""
    refused(r"\bfun\b.*(out|args)", TypeError, fun=lambda t, y, yp, k: [yp[0] + 2.0 * y[0]])


def test_signatures_of_the_others():
    refused(r"\bjac\b.*\(t, y, yp\)", TypeError, jac=lambda t, y: (np.eye(1), np.eye(1)))
    refused(r"events\[0\].*\(t, y, yp\) or \(t, y\)", TypeError, events=lambda y: y[0])
    refused(r"events\[0\].*\(t, y, yp\) or \(t, y\)", TypeError, events=lambda t, y, yp, k: y[0])
    refused(r"events\[0\].*args", TypeError, events=falling, args=(1.0,),
            fun=lambda t, y, yp, k: [yp[0] + k * y[0]])
    refused(r"events\[0\]\.apply.*\(t, y, yp\)", TypeError, events=event_with(apply=lambda y: y))
    refused(r"\bcallback\b.*\(t, y, yp\)", TypeError, callback=lambda t, y: None)


@pytest.mark.parametrize("args", [3.0, "ab", None, {1.0}, np.ones(2)])
def test_args_not_a_sequence(args):
    refused(r"\bargs\b", TypeError, fun=lambda t, y, yp, k: [yp[0] + k * y[0]], args=args)


# --- what the user's functions return --------------------------------------------------------


@pytest.mark.parametrize(
    "residual",
    [
        [0.0], [0.0] * 3, (0.0,), (0.0,) * 3, np.zeros(1), np.zeros(3), np.zeros((2, 1)),
        np.zeros((1, 2)), np.zeros((2, 2)), np.array(0.0), 0.0, None, [], [[0.0], [0.0]],
        [0.0, None], [0.0, "0"], ["a", "b"], ("a", "b"), {0.0, 1.0}, [np.zeros(1), np.zeros(1)],
    ],
    ids=repr,
)
def test_residual_of_wrong_shape(residual):
    refused(r"\bfun\b", fun=lambda t, y, yp: residual, y0=[1.0, 0.0])


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_complex_residual(kind):
    refused(r"\bfun\b", TypeError, fun=lambda t, y, yp: kind([yp[0] + 1j * y[0]]))


def test_residual_that_grows_later():
    """A length that is right at the start and wrong later is an error too, not a failure."""
    def fun(t, y, yp):
        return [yp[0] + y[0]] if t < 0.5 else [yp[0] + y[0], 0.0]

    with pytest.raises(ValueError, match=r"\bfun\b"):
        solve_dae(fun, (0, 1), [1.0])


@pytest.mark.parametrize(
    "value",
    [
        np.eye(2),
        None,
        3.0,
        (np.eye(2),),
        (np.eye(2), np.eye(2), np.eye(2)),
        (np.eye(3), np.eye(2)),
        (np.eye(2), np.eye(3)),
        (np.eye(2), np.ones(2)),
        (np.eye(2), 1.0),
        (np.eye(2), None),
        (sparse.eye(3), np.eye(2)),
        (1j * np.eye(2), np.eye(2)),
        ([["a", "b"], ["c", "d"]], np.eye(2)),
    ],
    ids=range(13),
)
def test_jac_of_wrong_shape(value):
    refused(r"\bjac\b", fun=circle, y0=[1.0, 0.0], jac=lambda t, y, yp: value)
    if isinstance(value, tuple) and len(value) == 2:
        refused(r"\bjac\b", fun=circle, y0=[1.0, 0.0], jac=value)


@pytest.mark.parametrize("value", [None, np.zeros(2), [1.0, 2.0], [], 1j, "0"], ids=repr)
def test_event_of_wrong_shape(value):
    refused(r"events\[0\]", events=lambda t, y, yp: value)


@pytest.mark.parametrize(
    "value", [None, 1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [1.0, NAN], [1.0, 1j]], ids=repr
)
def test_apply_of_wrong_shape(value):
    event = event_with(apply=lambda t, y, yp: value)
    with pytest.raises(BOTH, match=r"events\[0\]\.apply"):
        solve_dae(circle, (0, 3), [1.0, 0.0], events=event)


# --- C functions ------------------------------------------------------------------------------


@ctypes.CFUNCTYPE(None, *C_ARGUMENTS)
def c_decay(t, y, yp, out):
    out[0] = yp[0] + y[0]


def test_c_function_with_args():
    refused(r"\bargs\b", ValueError, fun=c_decay, args=(1.0,))


DOUBLE, POINTER = C_ARGUMENTS[:2]


@pytest.mark.parametrize(
    ("returned", "arguments"),
    [
        (None, C_ARGUMENTS[:3]),
        (None, [DOUBLE, DOUBLE, POINTER, POINTER]),
        (None, [POINTER, POINTER, POINTER, POINTER]),
        (None, [*C_ARGUMENTS, DOUBLE]),
        (None, [*C_ARGUMENTS, ctypes.c_void_p, ctypes.c_void_p]),
        (DOUBLE, C_ARGUMENTS),
        (None, [ctypes.c_float, POINTER, POINTER, POINTER]),
        (None, []),
    ],
)
def test_c_function_of_wrong_signature(returned, arguments):
    pointer = ctypes.CFUNCTYPE(returned, *arguments)(lambda *values: 0)
    refused(r"\bfun\b.*signature", ValueError, fun=pointer)
    refused(r"\bfun\b.*signature", ValueError, fun=LowLevelCallable(pointer))


def test_c_function_without_argtypes(library):
    refused(r"\bfun\b.*argtypes", ValueError, fun=library.__getitem__("relax"), y0=[1.0, 1.0])


def test_c_function_with_jac_of_wrong_shape(library):
    fun = c_function(library, "relax")
    refused(r"\bjac\b", fun=fun, y0=[1.0, 1.0], jac=lambda t, y, yp: (np.eye(3), np.eye(3)))


# --- Problem -----------------------------------------------------------------------------------


def test_problem_together_with_its_own_arguments():
    refused(r"\bjac\b", ValueError, fun=Problem(decay), jac=(np.eye(1), np.eye(1)))
    refused(r"\bargs\b", ValueError, fun=Problem(decay), args=(1.0,))
    refused(r"\bargs\b", fun=Problem(decay), args=3.0)


@pytest.mark.parametrize(
    "M", [np.ones((2, 3)), np.ones(2), 1.0, [[1.0, 1j], [0.0, 1.0]], "M", None, [["a"]]], ids=repr
)
def test_mass_matrix_of_wrong_shape(M):
    with pytest.raises(BOTH, match=r"\bM\b"):
        Problem.mass_matrix(M, lambda t, y: -y)


def test_mass_matrix_that_does_not_fit_y0():
    refused(r"\bM\b", ValueError, fun=Problem.mass_matrix(np.eye(3), lambda t, y: -y), y0=[1, 1])
    changing = Problem.mass_matrix(lambda t, y: np.eye(3), lambda t, y: -y)
    refused(r"\bM\b", ValueError, fun=changing, y0=[1, 1])


@pytest.mark.parametrize("value", [[1.0], [1.0] * 3, 1.0, None, np.ones((2, 1))], ids=repr)
@pytest.mark.parametrize("M", [np.eye(2), lambda t, y: np.eye(2)], ids=["constant", "changing"])
def test_mass_matrix_with_right_hand_side_of_wrong_length(M, value):
    refused(r"\bf\b", fun=Problem.mass_matrix(M, lambda t, y: value), y0=[1.0, 1.0])


def test_mass_matrix_with_wrong_functions():
    for bad in (3, lambda t: t, lambda t, y, yp: y):
        with pytest.raises(TypeError, match=r"\bf\b"):
            Problem.mass_matrix(np.eye(1), bad)
        with pytest.raises(TypeError, match=r"\bjac\b"):
            Problem.mass_matrix(np.eye(1), lambda t, y: -y, jac=bad)
    with pytest.raises(ValueError, match=r"\bjac\b.*\bM\b"):
        Problem.mass_matrix(lambda t, y: np.eye(1), lambda t, y: -y, jac=lambda t, y: -np.eye(1))
    with pytest.raises(TypeError, match=r"\bargs\b"):
        Problem.mass_matrix(np.eye(1), lambda t, y, k: -k * y, args=2.0)


def test_semi_explicit_with_wrong_functions():
    def good(t, x, z):
        return x - z

    for bad in (3, lambda t, x: x, lambda t, x, z, k: x):
        with pytest.raises(TypeError, match=r"\bf\b"):
            Problem.semi_explicit(bad, good)
        with pytest.raises(TypeError, match=r"\bg\b"):
            Problem.semi_explicit(good, bad)
    with pytest.raises(TypeError, match=r"\bargs\b"):
        Problem.semi_explicit(good, good, args=2.0)


@pytest.mark.parametrize("n_differential", [None, 0, 1, 2, 3, -1])
def test_semi_explicit_that_does_not_split_y0(n_differential):
    problem = Problem.semi_explicit(
        lambda t, x, z: [1.0, 2.0, 3.0], lambda t, x, z: [0.0], n_differential=n_differential
    )
    refused(r"\bf and g\b|\bn_differential\b", ValueError, fun=problem, y0=[1.0, 1.0])


@pytest.mark.parametrize("n_differential", [1.0, "1", True])
def test_semi_explicit_split_that_is_no_integer(n_differential):
    with pytest.raises(TypeError, match=r"\bn_differential\b"):
        Problem.semi_explicit(
            lambda t, x, z: -z, lambda t, x, z: x - z, n_differential=n_differential
        )


# --- Bdf -----------------------------------------------------------------------------------------


def test_bdf_checks_its_arguments():
    with pytest.raises(TypeError, match=r"\bfun\b"):
        Bdf(3, 0.0, [1.0])
    with pytest.raises(ValueError, match=r"\bt0\b"):
        Bdf(decay, NAN, [1.0])
    with pytest.raises(ValueError, match=r"\bt_bound\b"):
        Bdf(decay, 0.0, [1.0], t_bound=0.0)
    with pytest.raises(ValueError, match=r"\bt_bound\b"):
        Bdf(decay, 0.0, [1.0], t_bound=NAN)
    with pytest.raises(ValueError, match=r"\by0\b"):
        Bdf(decay, 0.0, [[1.0]])
    with pytest.raises(ValueError, match=r"\byp0\b"):
        Bdf(decay, 0.0, [1.0], [1.0, 2.0])
    with pytest.raises(TypeError, match=r"\boptions\b"):
        Bdf(decay, 0.0, [1.0], options={"rtl": 1e-3})
    with pytest.raises(RuntimeError, match="step first"):
        Bdf(decay, 0.0, [1.0]).dense_output()


@pytest.mark.parametrize(
    "history",
    [
        3.0,
        ([-0.1],),
        ([], [[]]),
        ([-0.1], [1.1]),
        ([-0.1, -0.2], [[1.1, 1.2]]),
        ([0.1], [[0.9]]),
        ([0.0], [[1.0]]),
        ([-0.1], [[1.1, 1.2]]),
        ([-0.1], [[NAN]]),
        ([NAN], [[1.0]]),
        (["a"], [[1.0]]),
    ],
    ids=repr,
)
def test_bdf_history(history):
    with pytest.raises(ValueError, match=r"\bhistory\b"):
        Bdf(decay, 0.0, [1.0], t_bound=1.0, history=history)


# --- exceptions of the user's functions ------------------------------------------------------


class Mishap(Exception):  # noqa: N818
    pass


def raising_from(t_from, mishap, value):
    """A function of (t, ...) that returns `value(t, ...)` and raises from a time on."""
    def fun(t, *rest):
        if t >= t_from:
            raise mishap
        return value(t, *rest)

    return fun


@pytest.mark.parametrize("mishap", [Mishap("mine"), LookupError("mine"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("t_from", [0.0, 0.7], ids=["at once", "late"])
@pytest.mark.parametrize("where", ["fun", "out", "jac", "event", "apply", "callback"])
@pytest.mark.parametrize("trace", ["auto", "never"])
def test_exceptions_pass_unchanged(where, t_from, mishap, trace):
    arguments = {"fun": decay}
    if where == "fun":
        arguments["fun"] = raising_from(t_from, mishap, decay)
    elif where == "out":
        raising = raising_from(t_from, mishap, decay)

        def fills(t, y, yp, out):
            out[:] = raising(t, y, yp)

        arguments["fun"] = fills
    elif where == "jac":
        arguments["jac"] = raising_from(t_from, mishap, lambda t, y, yp: (np.eye(1), np.eye(1)))
        # a Jacobian is asked for again only when the old one serves no longer
        arguments["fun"] = lambda t, y, yp: [yp[0] + y[0] + 1e3 * (t >= 0.7) * y[0]]
    elif where == "event":
        arguments["events"] = raising_from(t_from, mishap, lambda t, y, yp: y[0] - 0.3)
    elif where == "apply":
        wave = lambda t, y, yp: np.sin(20 * t) - 0.1  # noqa: E731
        wave.apply = raising_from(t_from, mishap, lambda t, y, yp: y)
        arguments["events"] = wave
    else:
        arguments["callback"] = raising_from(t_from, mishap, lambda t, y, yp: False)
    with pytest.raises(type(mishap)) as caught:
        solve_dae(arguments.pop("fun"), (0, 2), [1.0], trace=trace, **arguments)
    assert caught.value is mishap


def test_exception_of_mass_matrix_and_semi_explicit():
    mishap = Mishap("mine")
    mass = Problem.mass_matrix(np.eye(1), raising_from(0.5, mishap, lambda t, y: -y))
    split = Problem.semi_explicit(
        raising_from(0.5, mishap, lambda t, x, z: -z), lambda t, x, z: x - z
    )
    for problem, y0 in ((mass, [1.0]), (split, [1.0, 1.0])):
        with pytest.raises(Mishap) as caught:
            solve_dae(problem, (0, 1), y0)
        assert caught.value is mishap


def test_exception_in_one_step_of_bdf():
    mishap = Mishap("mine")
    bdf = Bdf(raising_from(0.5, mishap, decay), 0.0, [1.0], t_bound=1.0)
    with pytest.raises(Mishap) as caught:
        list(iter(bdf.step, Status.REACHED_END))
    assert caught.value is mishap
    assert 0.0 < bdf.t < 0.5
