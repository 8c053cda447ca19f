"""Where in the code of the user a value is written, or an error raised."""

import linecache
import math

import numpy as np
import pytest

from tether.problem.naming import guess_names, place_of_error, place_of_value


def falls(t, y, yp):
    speed = y[1]
    return [
        yp[0] - speed,
        yp[1] + 1.0 + (0.0 if y[0] > -1.0 else 5.0 * y[1]),
    ]


def late(t, y, yp):
    return [yp[0] + y[0] * (1.0 if t < 3.0 else 2.0)]


def filled(t, y, yp, out):
    out[0] = yp[0] - y[1]
    out[1] = yp[1] + y[0] if y[0] > -0.6 else yp[1] + 2.0 * y[0]


def test_the_place_of_a_value_is_its_line():
    first = falls.__code__.co_firstlineno
    assert place_of_value(falls, 0) == f"test_naming.py, line {first + 3}"
    assert place_of_value(falls, 1) == f"test_naming.py, line {first + 4}"
    first = filled.__code__.co_firstlineno
    assert place_of_value(filled, 1) == f"test_naming.py, line {first + 2}"
    first = late.__code__.co_firstlineno
    assert place_of_value(late) == f"test_naming.py, line {first + 1}"
    assert place_of_value(math.sin) == ""


def test_the_place_of_an_error_is_in_the_users_code():
    with pytest.raises(ValueError, match="reshape") as caught:
        np.array([1.0, 2.0]).reshape(3, 3)
    assert place_of_error(caught.value).startswith("test_naming.py, line")


def test_a_file_that_has_changed_tells_nothing(tmp_path):
    """Lines that have moved since a function was made belong to another one."""
    path = tmp_path / "edited.py"
    path.write_text("def fun(t, y, yp):\n    x, z = y\n    return yp\n")
    namespace = {}
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    assert guess_names(namespace["fun"].__code__, 2) == ["x", "z"]
    for text in ("def other(t, y, yp):\n    p, q = y\n    return yp\n",
                 "def fun(t, w, wp):\n    p, q = w\n    return wp\n"):
        path.write_text(text)
        linecache.clearcache()
        assert guess_names(namespace["fun"].__code__, 2) == ["y[0]", "y[1]"]
