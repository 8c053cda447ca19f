"""Residuals that handle exceptions, and a comparison of their programs with them."""

import itertools
import linecache
import math
import textwrap

import numpy as np
import pytest

from tether._core.plain import Plain
from tether.trace import trace

NUMBERS = [-1e308, -800.0, -710.0, -3.0, -2.5, -1.0, -0.5, -1e-310, -0.0, 0.0, 1e-310, 1e-160, 0.3,
           1.0, 1.5, 3.0, 170.0, 172.0, 709.782712893384, 709.7827128933841, 710.4, 711.0, 1023.5,
           1024.0, 1e155, 1e306]  # fmt: skip
_files = itertools.count()
_HEAD = "import math\nimport numpy as np\n"


def function_of(block, setup=""):
    """Make a residual of statements that compute w from x = y[0], u = float(y[0]) and t."""
    source = f"{_HEAD}{textwrap.dedent(setup)}\ndef fun(t, y, yp):\n    x = y[0]\n" \
        f"    u = float(x)\n{textwrap.indent(textwrap.dedent(block).strip(), '    ')}\n" \
        "    return [yp[0] - w]\n"
    name = f"<handler {next(_files)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    space = {"__name__": "handlers"}
    exec(compile(source, name, "exec"), space)
    return space["fun"]


def assert_same_values(fun, numbers=NUMBERS):
    """Compare program and function, bit by bit; where the function raises, the program is NaN."""
    program = trace(fun, 1).reference
    for number, t in itertools.product(numbers, (0.0, 0.7)):
        y, yp = np.array([number]), np.zeros(1)
        with np.errstate(all="ignore"):
            found = Plain(program, np.zeros(0)).values(t, y, yp)[0]
            try:
                expected = float(fun(t, y, yp)[0])
            except Exception:
                assert not math.isfinite(found)
                continue
        assert found == pytest.approx(expected, rel=1e-14, nan_ok=True), (number, t)
