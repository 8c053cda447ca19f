"""Names of the user's in messages and pictures."""

import io

import pytest

import tether
from tether.problem.names import Names


def decay(t, y, yp):
    return [yp[0] + y[0]]


@pytest.mark.parametrize("name", [
    "$$", "$", "$x", "a$b$c", r"\$", "_x", "x_1", r"$\frac$", "%", "{}",
])
def test_names_are_shown_as_they_are(name):
    pytest.importorskip("matplotlib")
    sol = tether.solve_dae(decay, (0, 1), [1.0])
    figure = sol.plot(labels=[name])
    figure.savefig(io.BytesIO())
    assert [text.get_text().replace(r"\$", "$").strip()
            for text in figure.axes[0].get_legend().get_texts()] == [name]
    picture = tether.analyze(decay, 0.0, [1.0], names=[name]).plot()
    picture.savefig(io.BytesIO())


@pytest.mark.parametrize("solve", [
    lambda names: tether.solve_dae(decay, (0, 1), [1.0], names=names),
    lambda names: tether.solve_dae(decay, (0, 1), [1.0], equation_names=names),
    lambda names: tether.analyze(decay, 0.0, [1.0], names=names),
    lambda names: tether.consistent_start(decay, 0.0, [1.0], names=names),
])
@pytest.mark.parametrize("name", ["a\nb", "\x1b[31m", "\x00", "a\u202eb"])
def test_names_that_would_spoil_a_message_are_refused(solve, name):
    with pytest.raises(ValueError, match=r"names\[0\] must be text on one line"):
        solve([name])


def test_a_name_that_looks_like_another_is_left_alone():
    names = Names(("equation 1", "y[0]"), ("y[1]", "equation 0"))
    assert names.translate("y[0] in equation 1") == "equation 1 in equation 1 'equation 0'"
