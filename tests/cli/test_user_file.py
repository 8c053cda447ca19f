"""Files of the user's: which function, which values, whose mistake."""

import math

import pytest
from support.command_line import TANK

DECAY = "def fun(t, y, yp):\n    return [yp[0] + y[0]]\n"


def last(out):
    """Return the last line of a CSV table as numbers."""
    return [float(part) for part in out.splitlines()[-1].split(",")]


def solved(tether, *arguments):
    code, out, err = tether("solve", *arguments, "--points", 2, "--csv", "-", "-q")
    assert (code, err) == (0, "")
    return last(out)


def test_everything_from_the_file(tether):
    assert solved(tether, tether.write(TANK))[1] == pytest.approx(math.exp(-2.0), rel=1e-4)


def test_the_command_line_wins(tether):
    file = tether.write(TANK)
    t, level, flow = solved(tether, file, "--t", "0:1", "--args", "k=3,g=1", "--y0", "2,6")
    assert t == 1.0
    assert level == pytest.approx(2 * math.exp(-3.0), rel=1e-4)
    assert flow == pytest.approx(3 * level, rel=1e-9)


def test_an_end_alone_keeps_the_start(tether):
    file = tether.write(DECAY + "y0 = [1.0]\nt_span = (1, 2)\n")
    assert solved(tether, file, "--t", "4") == pytest.approx([4.0, math.exp(-3.0)], rel=1e-4)


@pytest.mark.parametrize("args", ["args = (0.5,)", "args = [0.5, 2.0]", "args = {'k': 0.5}",
                                  "args = {'g': 2.0, 'k': 0.5}"])
def test_arguments_in_order_or_by_name(tether, args):
    file = tether.write(TANK.replace("args = (0.5,)", args))
    assert solved(tether, file)[1] == pytest.approx(math.exp(-2.0), rel=1e-4)


def test_functions_that_fill_their_argument(tether):
    file = tether.write(
        "def fun(t, y, yp, out, k):\n    out[0] = yp[0] + k * y[0]\ny0, t_span = [1.0], (0, 1)\n"
    )
    assert solved(tether, file, "--args", "k=2")[1] == pytest.approx(math.exp(-2.0), rel=1e-4)


@pytest.mark.parametrize(("text", "words"), [
    (DECAY, ["y0", "--y0"]),
    (DECAY + "y0 = [1.0]\n", ["t_span", "--t"]),
    (TANK.replace("args = (0.5,)\n", ""), ["'k'", "--args k="]),
    ("x = 1\n", ["t, y, yp"]),
    ("def a(t, y, yp): pass\ndef b(t, y, yp): pass\n", ["a, b", "model.py:a"]),
    (TANK + "args = {'other': 1}\n", ["'other'"]),
    (TANK + "args = 3\n", ["args"]),
])
def test_what_is_missing_is_named_with_the_remedy(tether, text, words):
    code, _, err = tether("solve", tether.write(text))
    assert code == 2
    assert err.count("\n") == 1
    assert all(word in err for word in words)


def test_unknown_parameters_and_functions(tether):
    file = tether.write(TANK)
    code, _, err = tether("solve", file, "--args", "q=1")
    assert code == 2
    assert "'q'" in err
    assert "k, g" in err
    code, _, err = tether("solve", f"{file}:other")
    assert code == 2
    assert "it has drain" in err


def test_the_function_after_the_colon(tether):
    file = tether.write(DECAY + "def grow(t, y, yp):\n    return [yp[0] - y[0]]\n"
                        "y0, t_span = [1.0], (0, 1)\n")
    assert solved(tether, file)[1] == pytest.approx(math.exp(-1.0), rel=1e-4)
    assert solved(tether, f"{file}:grow")[1] == pytest.approx(math.exp(1.0), rel=1e-4)


def test_events_names_and_output_times_of_the_file(tether):
    file = tether.write(
        "def ball(t, y, yp):\n    return [yp[0] - y[1], yp[1] + 9.81]\n"
        "def ground(t, y, yp):\n    return y[0]\n"
        "ground.terminal = True\nevents = [ground]\nnames = ['height', 'speed']\n"
        "y0, t_span, t_eval = [1.0, 0.0], (0, 2), [0.0, 0.1, 1.9]\n"
    )
    code, out, _ = tether("solve", file, "--csv", "-", "-q")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "t,height,speed"
    assert [float(line.split(",")[0]) for line in lines[1:3]] == [0.0, 0.1]
    assert all(float(line.split(",")[0]) < 0.46 for line in lines[1:])


def test_problems_and_modules_beside_the_file(tether):
    tether.write("RATE = 2.0\n", "constants_of_model.py")
    file = tether.write(
        "import numpy as np\nfrom tether import Problem\nfrom constants_of_model import RATE\n"
        "fun = Problem.mass_matrix(np.eye(1), lambda t, y: -RATE * y)\n"
        "y0, t_span = [1.0], (0, 1)\n"
    )
    assert solved(tether, file)[1] == pytest.approx(math.exp(-2.0), rel=1e-4)
    code, _, err = tether("solve", file, "--args", "k=1")
    assert code == 2
    assert "Problem" in err


def test_classes_that_look_their_module_up(tether):
    file = tether.write(
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Rate:\n    value: float = 2.0\n"
        "def fun(t, y, yp, rate=Rate()):\n    return [yp[0] + rate.value * y[0]]\n"
        "y0, t_span = [1.0], (0, 1)\n"
    )
    assert solved(tether, file)[1] == pytest.approx(math.exp(-2.0), rel=1e-4)


@pytest.mark.parametrize("trace", ["auto", "never"])
@pytest.mark.parametrize(("line", "words"), [
    ("    1 / 0", "ZeroDivisionError: division by zero"),
    ("    raise ValueError('too\\n  hot')", "ValueError: too hot"),
    ("    unknown_name", "NameError: name 'unknown_name' is not defined"),
])
def test_the_users_exception_names_his_line(tether, trace, line, words):
    text = f"# a comment\ndef fun(t, y, yp):\n{line}\n    return [yp[0] + y[0]]\n"
    file = tether.write(text + "y0, t_span = [1.0], (0, 1)\n")
    code, _, err = tether("solve", file, "--trace", trace)
    assert code == 2
    assert err == f"tether: error: {file}:3: in fun: {words}\n"


@pytest.mark.parametrize(("text", "line", "words"), [
    ("x = (\n", 1, "SyntaxError"), ("x = 1\nimport no_such_module\n", 2, "ModuleNotFoundError"),
    ("\n\nx = {}['a']\n", 3, "KeyError: 'a'"),
])
def test_a_file_that_cannot_be_run_names_the_line(tether, text, line, words):
    file = tether.write(text)
    code, _, err = tether("analyze", file)
    assert code == 2
    assert err.startswith(f"tether: error: {file}:{line}:")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("argument", "code", "words"), [
    ("'not today'", 2, "tether: error: not today\n"), ("3", 3, ""), ("", 0, ""),
])
def test_a_file_may_refuse(tether, argument, code, words):
    file = tether.write(f"import sys\nsys.exit({argument})\n")
    assert tether("solve", file) == (code, "", words)


@pytest.mark.parametrize("text", [
    "class Model:\n    def __call__(self, t, y, yp):\n        return yp + y\nfun = Model()\n",
    "def fun(t, y, yp, *rest):\n    return [yp[0] + rest[0] * y[0]]\nargs = (1.0,)\n",
    "import numpy as np\ndef fun(t, y, yp):\n    return yp + y\nnames = np.array(['a'])\n",
])
def test_functions_of_other_kinds(tether, text):
    file = tether.write(text + "y0, t_span = [1.0], (0, 1)\n")
    assert solved(tether, file)[1] == pytest.approx(math.exp(-1.0), rel=1e-4)
