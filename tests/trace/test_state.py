"""State in every place where Python can keep it: seen, or the function is called as it is.

Every case here switches something on at a branch that the start does not take. Called, the
function remembers; traced, it must not have been traced at all. And whatever tracing does, it
leaves all that the function can reach as it was.
"""

import pytest
from support import (
    states_in_arrays,
    states_in_classes,
    states_in_data,
    states_in_functions,
    states_in_instances,
    states_in_libraries,
    states_in_protocols,
    states_in_subclasses,
)
from support.walker import Walk

from tether import solve_dae
from tether.trace import TraceFailure, trace

STATES = [
    state
    for places in (
        states_in_functions, states_in_data, states_in_arrays, states_in_classes,
        states_in_instances, states_in_subclasses, states_in_libraries, states_in_protocols,
    )
    for state in places.STATES
]

pytestmark = pytest.mark.usefixtures("nothing_is_known")


# Somebody else swallowed the refusal, or there is too much to look at after every line.
WITHOUT_A_LINE = (states_in_protocols.own_repr, states_in_functions.system_modules)


# Nothing for whom nobody looks.
UNSEEN = (states_in_libraries.cache_information, states_in_libraries.logged)


def residual_with(on, is_on):
    """Decay until y is one half; then, once something is switched on, growth."""
    def fun(t, y, yp):
        if y[0] < 0.5:
            on()
        return [yp[0] + (y[0] if not is_on() else -1.0)]

    return fun


def name_of(make):
    return make.__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", STATES, ids=name_of)
def test_tracing_changes_nothing(make):
    on, is_on = make()
    functions = [residual_with(on, is_on)]
    if make not in UNSEEN:
        functions.append(residual_with(on, lambda: False))
    for fun in functions:
        before = Walk(fun)
        with pytest.raises(TraceFailure) as caught:
            trace(fun, 1)
        after = Walk(fun)
        assert caught.value.line is not None or make in WITHOUT_A_LINE
        assert not before.difference(after)
        assert not after.traced()
    assert not is_on()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", STATES, ids=name_of)
def test_state_is_kept_from_call_to_call(make):
    ends = []
    for how in ("never", "auto"):
        fun = residual_with(*make())
        sol = solve_dae(fun, (0, 2), [1.0], trace=how)
        assert sol.how.startswith("called")
        ends.append((sol.y[0, -1], sol.nfev))
    assert ends[0] == ends[1]
    assert ends[0][0] > 1.0
