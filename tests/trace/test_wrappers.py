"""Wrappers, context managers, and source that does not match: what runs is what is traced."""

import contextlib
import functools
import linecache
import math

import pytest

from tether import analyze, solve_dae
from tether.trace import TraceFailure, trace

# --- wrappers ---------------------------------------------------------------------------------


class Limiter:
    """A wrapper that says so, and does more than what it wraps."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args):
        (value,) = self.function(*args)
        return [value + 2.0]


def plain(t, y, yp):
    return [yp[0] - y[0]]


def limited(function):
    @functools.wraps(function)
    def wrapper(t, y, yp):
        return [function(t, y, yp)[0] + 2.0]

    return wrapper


class Named:
    py_func = staticmethod(plain)
    __wrapped__ = staticmethod(plain)

    def __call__(self, t, y, yp):
        return [yp[0] - y[0] + 2.0]


@pytest.mark.parametrize("make", [Limiter, limited, lambda fun: Named(),
                                  lambda fun: functools.partial(limited(fun))],
                         ids=["object", "function", "names", "partial"])
def test_a_wrapper_is_what_runs(make):
    fun = make(plain)
    sol = solve_dae(fun, (0, 1), [1.0])
    assert sol.how.startswith("traced")
    assert sol.y[0, -1] == pytest.approx(2.0 - math.e, rel=1e-3)


# --- context managers -------------------------------------------------------------------------


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, where):
        return True


@contextlib.contextmanager
def swallowing():
    with contextlib.suppress(ValueError):
        yield


@contextlib.contextmanager
def passing():
    yield


SUPPRESS = contextlib.suppress(ValueError)


def by_suppress(x):
    with contextlib.suppress(ValueError):
        return math.sqrt(x)
    return 0.0


def by_suppress_from_outside(x):
    with SUPPRESS:
        return math.sqrt(x)
    return 0.0


def by_class(x):
    with Swallows():
        return math.sqrt(x)
    return 0.0


def by_generator(x):
    with swallowing():
        return math.sqrt(x)
    return 0.0


def by_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(SUPPRESS)
        return math.sqrt(x)
    return 0.0


def by_exception_group(x):
    value = 0.0
    try:
        value = math.sqrt(x)
    except* ValueError:
        value = 0.0
    return value


@pytest.mark.parametrize(
    "root",
    [by_suppress, by_suppress_from_outside, by_class, by_generator, by_stack, by_exception_group],
    ids=lambda root: root.__name__,
)
def test_contexts_that_swallow_exceptions_are_not_traced(root):
    def fun(t, y, yp):
        return [yp[0] + 1.0 + root(0.5 - t)]

    with pytest.raises(TraceFailure) as caught:
        trace(fun, 1)
    assert caught.value.line is not None
    ends = [solve_dae(fun, (0, 1), [1.0], trace=how, max_step=0.01).y[0, -1]
            for how in ("never", "auto")]
    assert ends[0] == ends[1] == pytest.approx(-(0.5**1.5) * 2 / 3, abs=1e-3)


# --- source that does not match ----------------------------------------------------------------

SOURCES = {
    "empty": "",
    "unclosed": "def fun(t, y, yp):\n    return [yp[0] + (y[0]\n",
    "dedent": "  def fun(t, y, yp):\n      x = y[0]\n    return [yp[0] + x]\n",
    "quotes": 'def fun(t, y, yp):\n    x = """\n    return [yp[0] + y[0]]\n',
    "another": "class Other:\n    pass\n",
    "short": "x = 1\n",
    "text": "\x00\x01 not Python at all ((( \\\n",
    "lambda": "fun = (lambda t, y, yp: [yp[0] +\n   y[0]],\n",
    "tabs": "if 1:\n\tdef fun(t, y, yp):\n        x = y[0]\n\treturn [x]\n",
    "surrogate": "def fun(t, y, yp):\n    x = '\udc80'; return [yp[0] + y[0]]\n",
}


@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("refused", [False, True], ids=["traced", "refused"])
def test_any_source_may_stand_in_the_file(text, refused):
    """As after edits of a file or a notebook, and for text that was executed."""
    name = f"/nowhere/{abs(hash(text))}.py"
    body = "    return [yp[0] + float(str(y[0]))]" if refused else "    return [yp[0] + y[0]]"
    space = {}
    exec(compile(f"\n\ndef fun(t, y, yp):\n    x = 1\n{body}", name, "exec"), space)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    try:
        found = analyze(space["fun"], 0.0, [1.0])
        assert str(found)
        sol = solve_dae(space["fun"], (0, 1), [1.0], trace="auto")
        assert sol.success
        assert sol.how.startswith("called" if refused else "traced")
        with contextlib.suppress(TraceFailure):
            assert len(trace(space["fun"], 1).names) == 1
    finally:
        del linecache.cache[name]
