"""How the core is told to treat the unknowns: kinds, estimate, share of the tolerance."""

import numpy as np
import pytest

from tether import Problem, gallery
from tether.plan.choose import find_model
from tether.plan.memory import new_state
from tether.plan.model import AsWritten
from tether.problem.options import ESTIMATES, Options
from tether.run.kinds import HIGH_INDEX_SHARE, use_kinds
from tether.start.find import kinds_at
from tether.structure.scaling import Units

PENDULUM = gallery.get("pend-i3")


def as_written(name, **options):
    """Model, memory and pencil of a problem of the gallery, as it is written."""
    given = gallery.get(name)
    model = AsWritten(Problem(given.fun), given.n)
    state = new_state(model, Options(**options))
    return model, state, kinds_at(state, model, given.t_span[0], given.y0, given.yp0)


def reduced(**options):
    options = Options(**options)
    y = PENDULUM.y0
    model, _ = find_model(
        Problem(PENDULUM.fun), 0.0, y, None, "auto", "machine", Units.of_options(options, y, 1.0)
    )
    return model, new_state(model, options), options


@pytest.mark.parametrize("name", ["robertson", "trivial"])
def test_index_0_and_1_are_left_alone(name):
    model, state, pencil = as_written(name)
    assert pencil is None
    assert not use_kinds(state, model, Options(), pencil)
    assert state.share == 1.0
    assert ESTIMATES[state.estimate] == "classical"


@pytest.mark.parametrize(
    ("name", "kinds"), [("pend-i2", [0, 0, 0, 0, 2]), ("pend-i3", [0, 0, 2, 2, 3])]
)
def test_high_index_gets_its_estimate_and_its_share(name, kinds):
    model, state, pencil = as_written(name)
    assert use_kinds(state, model, Options(), pencil)
    assert state.kinds.tolist() == kinds
    assert ESTIMATES[state.estimate] == "mechanical"
    assert state.share == HIGH_INDEX_SHARE
    assert not use_kinds(state, model, Options(), pencil)              # already so


def test_an_estimate_of_the_users_keeps_the_whole_tolerance():
    for estimate in ESTIMATES:
        model, state, pencil = as_written("pend-i3")
        use_kinds(state, model, Options(estimate=estimate), pencil)
        assert ESTIMATES[state.estimate] == estimate
        assert state.share == 1.0


def test_kinds_of_the_user_come_before_those_found():
    model = AsWritten(Problem(PENDULUM.fun, var_index=[0, 0, 0, 0, 2]), 5)
    state = new_state(model, Options())
    _, _, pencil = as_written("pend-i3")
    assert use_kinds(state, model, Options(), pencil)
    assert state.kinds.tolist() == [0, 0, 0, 0, 2]


def test_multipliers_of_a_reduced_system_have_no_part_in_the_error_test():
    model, state, options = reduced()
    assert use_kinds(state, model, options, None)
    assert ESTIMATES[state.estimate] == "exclude"
    np.testing.assert_array_equal(state.kinds, 2 * model.reduced.determined)
    assert state.kinds[4] == 2
    assert state.share == 1.0
    assert not use_kinds(state, model, options, None)


def test_an_estimate_without_a_meaning_is_refused_at_the_start():
    model, state, options = reduced(estimate="mechanical")
    with pytest.raises(ValueError, match=r"estimate='mechanical'.*reduced to index 1.*form='given"):
        use_kinds(state, model, options, None)
    model, state, pencil = as_written("robertson")
    with pytest.raises(ValueError, match=r"estimate='exclude'.*there are none"):
        use_kinds(state, model, Options(estimate="exclude"), pencil)
    assert not use_kinds(state, model, Options(estimate="exclude", start="assume"), pencil)
