"""Functions that handle exceptions: every way through `try`, also those not taken at the start."""

import itertools
import linecache
import math
import textwrap
import warnings

import numpy as np
import pytest

from tether import solve_dae
from tether._core.plain import Plain
from tether.trace import trace
from tether.trace.tracer import TraceFailure

NUMBERS = [-1e308, -800.0, -710.0, -3.0, -2.5, -1.0, -0.5, -1e-310, -0.0, 0.0, 1e-310, 1e-160, 0.3,
           1.0, 1.5, 3.0, 170.0, 172.0, 709.782712893384, 709.7827128933841, 710.4, 711.0, 1023.5,
           1024.0, 1e155, 1e306]  # fmt: skip
_files = itertools.count()
HEAD = "import math\nimport numpy as np\n"


def function_of(block, setup=""):
    """Make a residual of statements that compute w from x = y[0], u = float(y[0]) and t."""
    source = f"{HEAD}{textwrap.dedent(setup)}\ndef fun(t, y, yp):\n    x = y[0]\n" \
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


ARITHMETIC = {
    "exp": ("math.exp(u)", "OverflowError"),
    "expm1": ("math.expm1(u)", "OverflowError"),
    "exp2": ("math.exp2(u)", "OverflowError"),
    "sinh": ("math.sinh(u)", "OverflowError"),
    "cosh": ("math.cosh(x)", "OverflowError"),
    "exp of what may be infinite": ("math.exp(1e3 * x / (x - 1.0))", "OverflowError"),
    "division": ("1.0 / u", "ZeroDivisionError"),
    "division of NumPy": ("1.0 / x", "ZeroDivisionError"),
    "remainder": ("2.0 % u", "ZeroDivisionError"),
    "whole quotient": ("7.0 // u", "ZeroDivisionError"),
    "divmod": ("divmod(7.0, u)[1]", "ZeroDivisionError"),
    "sqrt": ("math.sqrt(u)", "ValueError"),
    "sqrt of x": ("math.sqrt(x - 1.0)", "ValueError"),
    "log": ("math.log(u)", "ValueError"),
    "log2": ("math.log2(u)", "ValueError"),
    "log10": ("math.log10(u)", "ValueError"),
    "log1p": ("math.log1p(u)", "ValueError"),
    "log of a base": ("math.log(3.0, u)", "(ValueError, ZeroDivisionError)"),
    "acos": ("math.acos(u)", "ValueError"),
    "asin": ("math.asin(u)", "ValueError"),
    "acosh": ("math.acosh(u)", "ValueError"),
    "atanh": ("math.atanh(u)", "ValueError"),
    "sin": ("math.sin(1.0 / (u - 1.0)) if u != 1.0 else 0.0", "ValueError"),
    "floor": ("math.floor(x)", "(ValueError, OverflowError)"),
    "fmod": ("math.fmod(7.0, u)", "ValueError"),
    "square": ("abs(u) ** 2", "OverflowError"),
    "high power": ("abs(u) ** 12.5", "OverflowError"),
    "negative power": ("abs(u) ** -2.5", "ArithmeticError"),
    "reciprocal power": ("u ** -1", "ZeroDivisionError"),
    "power of ten": ("10.0 ** u", "OverflowError"),
    "power of a half": ("0.5 ** u", "OverflowError"),
    "power of itself": ("abs(u) ** abs(u)", "OverflowError"),
    "math.pow": ("math.pow(u, 1.5)", "(ValueError, OverflowError)"),
    "math.pow of both": ("math.pow(u, t - 0.5)", "(ValueError, OverflowError)"),
    "gamma": ("math.gamma(u)", "(ValueError, OverflowError)"),
    "lgamma": ("math.lgamma(u)", "(ValueError, OverflowError)"),
    "constants": ("x + 1.0 / 0.0", "ZeroDivisionError"),
    "constants of math": ("x + math.sqrt(-1.0)", "ValueError"),
    "time": ("x / (t * 0.0)", "ZeroDivisionError"),
    "time of Python": ("1.0 / (t - 0.7)", "ZeroDivisionError"),
}


HANDLERS = ["{error}", "Exception", "", "KeyError:\n            pass\n        except {error}"]


@pytest.mark.parametrize("handler", HANDLERS, ids=["by name", "Exception", "bare", "second"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name, handler):
    text, error = ARITHMETIC[name]
    words = handler.format(error=error)
    numbers = [x for x in NUMBERS if name != "lgamma" or abs(x) != 1e-310]
    assert_same_values(function_of(f"""
        try:
            w = {text}
        except {words}:
            w = -7.0 + t
        """.replace("except :", "except:")), numbers)


@pytest.mark.parametrize("name", [name for name in ARITHMETIC if "constants" not in name])
def test_exceptions_that_are_not_handled_make_no_ways(name):
    plain = function_of(f"w = {ARITHMETIC[name][0]}")
    other = function_of(f"try:\n    w = {ARITHMETIC[name][0]}\nexcept KeyError:\n    w = 1.0")
    expected, found = (trace(fun, 1).reference for fun in (plain, other))
    assert len(found.op) == len(expected.op)


BLOCKS = {
    "infinity": """
        try:
            w = math.exp(u)
        except OverflowError:
            w = float("inf")
        """,
    "NaN": """
        try:
            w = math.log(u)
        except ValueError:
            w = math.nan
        """,
    "else and finally": """
        k = 1.0
        try:
            w = math.sqrt(u)
        except ValueError:
            w = -1.0
        else:
            w = 2.0 * w
        finally:
            k = 3.0
        w = w * k
        """,
    "finally alone": """
        k = 1.0
        try:
            w = math.sqrt(u)
        finally:
            k = 2.0
        w = w * k
        """,
    "what was assigned before": """
        w = 1.0
        try:
            w = 2.0 + u
            w = w * math.log(u)
            w = w + 1.0 / (u - 1.0)
        except (ValueError, ZeroDivisionError):
            w = w + 100.0
        """,
    "several handlers": """
        try:
            w = math.log(u) / (u - 3.0)
        except ValueError:
            w = -1.0
        except ZeroDivisionError:
            w = -2.0
        except Exception:
            w = -3.0
        """,
    "as": """
        try:
            w = 1.0 / u
        except ZeroDivisionError as error:
            w = 5.0 if isinstance(error, ArithmeticError) else 6.0
        """,
    "type of it": """
        try:
            w = 1.0 / math.sqrt(u)
        except Exception as e:
            w = {ZeroDivisionError: 1.0, ValueError: 2.0}[type(e)]
        """,
    "nested": """
        try:
            try:
                w = math.log(u)
            except ZeroDivisionError:
                w = 1.0
        except ValueError:
            w = 2.0
        """,
    "raised again": """
        try:
            try:
                w = math.log(u)
            except ValueError:
                raise
        except ValueError:
            w = 2.0
        """,
    "raised as another": """
        try:
            try:
                w = math.log(u)
            except ValueError as e:
                raise KeyError("x") from e
        except KeyError:
            w = 2.0
        """,
    "raised again for good": """
        try:
            w = math.log(u)
        except ValueError:
            if u > -1.0:
                raise
            w = 4.0
        """,
    "a raise of its own": """
        try:
            if x < 0.0:
                raise ValueError("negative")
            w = x
        except ValueError:
            w = 0.0
        """,
    "assert": """
        try:
            assert x > 0.0, "negative"
            w = x
        except AssertionError:
            w = 0.0
        """,
    "a handler that fails": """
        try:
            w = math.log(u)
        except ValueError:
            try:
                w = math.log(u + 2.0)
            except ValueError:
                w = -9.0
        """,
    "a loop that goes on": """
        w = 0.0
        for k in range(4):
            try:
                w += math.sqrt(u - k)
            except ValueError:
                continue
            w += 0.5
        """,
    "a loop that ends": """
        w = 0.0
        for k in range(4):
            try:
                w += 1.0 / (u - k)
            except ZeroDivisionError:
                break
            finally:
                w += 0.25
        """,
    "tries again": """
        for shift in (0.0, 1.0, 3.0):
            try:
                w = math.log(u + shift)
                break
            except ValueError:
                pass
        else:
            w = -5.0
        """,
    "comprehension": """
        try:
            w = sum(math.sqrt(u + k) for k in range(3)) + sum([math.sqrt(u + k) for k in (0, 1)])
        except ValueError:
            w = 0.0
        """,
    "no exception at all": """
        try:
            w = x * x
        except Exception:
            w = 0.0
        """,
    "a key that is missing": """
        try:
            w = x * {"a": 2.0}["k"]
        except KeyError:
            w = 3.0 * x
        """,
    "an index beyond the end": """
        try:
            w = [1.0, 2.0, 3.0][np.searchsorted(np.array([0.0, 1.0, 2.0, 3.0]), x)]
        except IndexError:
            w = x
        """,
    "an index beyond the end that is not handled": """
        w = [1.0, 2.0, 3.0][np.searchsorted(np.array([0.0, 1.0, 2.0, 3.0]), x)]
        """,
    "a condition inside": """
        try:
            w = math.sqrt(u) if x > -1.0 else 1.0 / (u + 3.0)
        except ArithmeticError:
            w = -1.0
        except ValueError:
            w = -2.0
        """,
    "NumPy raises nothing": """
        try:
            w = np.exp(x) + np.sqrt(x) + 1.0 / x + np.log(x)
        except FloatingPointError:
            w = -1.0
        """,
    "inside errstate": """
        with np.errstate(all="ignore"):
            try:
                w = math.sqrt(u) + np.exp(x)
            except:
                w = 0.0
        """,
    "many in a row": "w = 0.0\n" + "".join(
        f"try:\n    w += math.sqrt(u - {k}.0)\nexcept ValueError:\n    w += {k}.5\n"
        for k in range(14)),
    "all of it": "try:\n    w = 0.0\n" + "".join(
        f"    if x > {k}.5:\n        w += x\n    else:\n        w -= 1.0\n" for k in range(12)
    ) + "    w += math.exp(u)\nexcept OverflowError:\n    w = 1e300",
    "all of it, with fits": "try:\n    w = 0.0\n" + "".join(
        f"    if x > {k}.5:\n        w += math.exp(u - {k})\n    else:\n        w -= 1.0\n"
        for k in range(6)) + "except OverflowError:\n    w = 1e300",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    assert_same_values(function_of(BLOCKS[name]))


SETUPS = {
    "helper": ("""
        def safe(u, worst=1e300):
            try:
                return math.exp(u)
            except OverflowError:
                return worst
        """, "w = safe(u) + safe(x - 1.0, 2.0) + sum(safe(u * k) for k in range(5))"),
    "helper that raises": ("""
        def root(u):
            return math.sqrt(u) + math.log(u)
        """, "try:\n    w = root(u)\nexcept ValueError:\n    w = 0.0"),
    "helper with a raise": ("""
        def root(u):
            if u < 0:
                raise ValueError("negative")
            return u
        """, "try:\n    w = root(x)\nexcept ValueError:\n    w = 0.0"),
    "exception of its own": ("""
        class Dry(Exception):
            pass
        def level(x):
            if x < 0.5:
                raise Dry
            return x
        """, "try:\n    w = level(x)\nexcept Dry:\n    w = 0.1"),
    "an attribute that is missing": ("""
        class P:
            a = 2.0
        p = P()
        """, "try:\n    w = x * p.k\nexcept AttributeError:\n    w = p.a * x"),
    "types in a variable": ("errors = (OverflowError, ZeroDivisionError)",
                            "try:\n    w = math.exp(1.0 / u)\nexcept errors:\n    w = 0.1"),
    "return from finally": ("""
        def f(u):
            try:
                return math.log(u)
            finally:
                return 4.0
        """, "w = f(u) + x"),
    "return from all": ("""
        def f(u):
            try:
                v = math.log(u)
            except ValueError:
                return -1.0
            else:
                return v
        """, "w = f(u) + x"),
    "method": ("""
        class Diode:
            i0 = 1e-14
            def current(self, v):
                try:
                    return self.i0 * (math.exp(v / 0.025) - 1.0)
                except OverflowError:
                    return self.i0 * 1e308
        d = Diode()
        """, "w = d.current(u)"),
    "super": ("""
        class A:
            def f(self, u):
                return math.sqrt(u)
        class B(A):
            def f(self, u):
                try:
                    return super().f(u)
                except ValueError:
                    return -1.0
        b = B()
        """, "w = b.f(u)"),
    "lambda": ("root = lambda u: math.sqrt(u)",
               "try:\n    w = root(u)\nexcept ValueError:\n    w = 0.0"),
    "vectorized": ("""
        def root(u):
            try:
                return math.sqrt(u)
            except ValueError:
                return 0.0
        roots = np.vectorize(root, otypes=[float])
        """, "w = roots(np.array([x, x - 1.0, x + 2.0])).sum()"),
    "many helpers": ("""
        def safe(u):
            try:
                return math.log(u)
            except ValueError:
                return -50.0
        """, "w = " + " + ".join(f"safe(u - {k}.0)" for k in range(20))),
    "decorator": ("""
        import functools
        def careful(f):
            @functools.wraps(f)
            def g(*args):
                try:
                    return f(*args)
                except (ValueError, ArithmeticError):
                    return -1.0
            return g
        @careful
        def f(u):
            return math.log(u) / (u - 3.0)
        """, "w = f(u)"),
}


@pytest.mark.parametrize("name", SETUPS)
def test_helpers(name):
    setup, block = SETUPS[name]
    assert_same_values(function_of(block, setup))


REFUSED = {
    "text": ("w = float(str(u))", "ValueError", "makes text"),
    "type": ("w = x + len(u)", "TypeError", "handles TypeError"),
    "index": ("w = y[x > 0.5][0]", "IndexError", "handles IndexError"),
    "shapes": ("w = np.dot(np.ones((2, 2)), np.ones(3))[0] + x", "ValueError",
               "handles ValueError"),
    "a number that may be NumPy's": (
        "w = 1.0 / max(u, x)",
        "ZeroDivisionError", "may be Python's or NumPy's"),
    "matrix": ("w = np.linalg.solve(np.array([[x, 1.0], [1.0, x]]), np.ones(2))[0]",
               "np.linalg.LinAlgError", "may raise LinAlgError"),
    "errstate": ("with np.errstate(all='raise'):\n        w = np.exp(x)", "FloatingPointError",
                 "np.errstate"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_certain_is_refused(name):
    attempt, error, words = REFUSED[name]
    fun = function_of(f"try:\n    {attempt}\nexcept {error}:\n    w = 1.0")
    with pytest.raises(TraceFailure, match=words):
        trace(fun, 1)


def test_without_text_it_is_refused():
    space = {}
    exec("import math\ndef fun(t, y, yp):\n    try:\n        w = math.exp(y[0])\n"
         "    except OverflowError:\n        w = 1.0\n    return [yp[0] - w]", space)
    with pytest.raises(TraceFailure, match="line 5: fun handles exceptions, and its text"):
        trace(space["fun"], 1)


def test_numpy_that_raises_is_noticed():
    fun = function_of("try:\n    w = np.exp(x)\nexcept FloatingPointError:\n    w = 2.0")
    assert_same_values(fun)
    before = solve_dae(fun, (0, 1e-3), [800.0], trace="auto")
    assert not before.success or not np.isfinite(before.y).all()
    with np.errstate(over="raise"):
        with pytest.raises(TraceFailure, match="told to raise"):
            trace(fun, 1)
        sol = solve_dae(fun, (0, 1), [800.0])
    assert sol.y[0, -1] == pytest.approx(802.0)
    assert "told to raise" in sol.how
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fun = function_of("try:\n    w = np.exp(x)\nexcept RuntimeWarning:\n    w = 2.0")
        with pytest.raises(TraceFailure, match="told to raise"):
            trace(fun, 1)


RUNS = {
    "diode": ("""
        try:
            i = 1e-14 * (math.exp(x / 0.02585) - 1.0)
        except OverflowError:
            i = 1e300
        w = 1e3 * (20.0 * math.sin(300.0 * t) - x) - 1e6 * i
        """, 0.0, 0.02),
    "limit": ("""
        try:
            k = math.exp(u)
        except OverflowError:
            k = 0.0
        w = 1000.0 if k else 500.0
        """, 0.0, 1.0),
    "tank": ("""
        try:
            q = math.sqrt(u)
        except ValueError:
            q = 0.0
        w = 0.3 * math.sin(t) - q
        """, 1.0, 10.0),
    "log": ("""
        try:
            q = math.log(x)
        except ValueError:
            q = -20.0
        w = 0.01 * q - 1.0
        """, 1.0, 3.0),
    "zero at the start only": ("""
        try:
            w = math.sin(t) / t
        except ZeroDivisionError:
            w = 1.0
        """, 0.0, 6.0),
    "time": ("""
        try:
            w = math.sqrt(math.cos(t) + 0.5) - 0.5
        except ValueError:
            w = -0.2
        """, 1.0, 9.0),
    "raise": ("""
        try:
            if x > 2.0:
                raise ValueError("too much")
            w = x
        except ValueError:
            w = 0.5
        """, 1.0, 3.0),
}


@pytest.mark.parametrize("name", RUNS)
def test_runs(name):
    block, start, end = RUNS[name]
    fun = function_of(block)
    traced = solve_dae(fun, (0.0, end), [start], rtol=1e-7, atol=1e-9)
    called = solve_dae(fun, (0.0, end), [start], rtol=1e-7, atol=1e-9, trace="never",
                       max_step=end / 1000)
    assert traced.success
    assert called.success
    assert traced.how.startswith("traced")
    assert traced.y[0, -1] == pytest.approx(called.y[0, -1], rel=2e-5)


def test_an_exception_without_a_handler_is_as_it_was():
    plain = function_of("w = math.log(1.0 - t)")
    other = function_of("try:\n    w = math.log(1.0 - t)\nexcept OverflowError:\n    w = 1.0")
    for fun in (plain, other):
        with pytest.raises(ValueError, match="math domain error"):
            solve_dae(fun, (1.5, 2.0), [1.0])
    expected, sol = (solve_dae(fun, (0.0, 2.0), [1.0]) for fun in (plain, other))
    assert not sol.success
    assert (sol.status, sol.t[-1]) == (expected.status, expected.t[-1])


@pytest.mark.parametrize("start", [0.0, 1.5])
def test_an_exception_raised_by_a_handler_passes(start):
    fun = function_of("""
        try:
            w = math.log(1.0 - t)
        except ValueError:
            raise KeyError("beyond the end")
        """)
    assert trace(fun, 1).raises
    with pytest.raises(KeyError, match="beyond the end"):
        solve_dae(fun, (start, 2.0), [1.0])


def test_what_a_handler_reads_may_change_between_runs():
    """Constants, keys and attributes that decide whether something is raised."""
    fun = function_of("""
        try:
            w = p["k"] * math.sqrt(p["low"] + 0.0 * u) + math.log(limit)
        except KeyError:
            w = -1.0
        except ValueError:
            w = -2.0
        """, setup="p = {}\nlimit = 1.0")
    space = fun.__globals__
    for changes, expected in (
        ({}, -1.0), ({"k": 2.0}, -1.0), ({"low": 4.0}, 4.0), ({"low": -1.0}, -2.0),
        ({"low": 9.0}, 6.0), ({"k": 3.0}, 9.0), ({"low": 1.0, "k": 0.0}, 0.0),
        ({"low": -4.0}, -2.0),
    ):
        space["p"].update(changes)
        sol = solve_dae(fun, (0.0, 1.0), [0.0])
        assert sol.y[0, -1] == pytest.approx(expected, abs=1e-12), changes
    space["limit"] = -1.0
    space["p"]["low"] = 4.0
    assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(-2.0)
    space["limit"] = math.e
    assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(1.0)


def test_arguments_that_are_zero():
    fun = function_of("""
        try:
            w = 1.0 / k
        except ZeroDivisionError:
            w = 3.0
        """.replace("k", "k[0]"), setup="k = [2.0]")

    def with_args(t, y, yp, k):
        try:
            w = 1.0 / k
        except ZeroDivisionError:
            w = 3.0
        return [yp[0] - w]

    for value, expected in ((2.0, 0.5), (0.0, 3.0), (4.0, 0.25), (0.0, 3.0), (-1.0, -1.0)):
        fun.__globals__["k"][0] = value
        assert solve_dae(fun, (0.0, 1.0), [0.0]).y[0, -1] == pytest.approx(expected)
        sol = solve_dae(with_args, (0.0, 1.0), [0.0], args=(value,))
        assert sol.y[0, -1] == pytest.approx(expected)
        assert sol.how.startswith("traced")
    with np.errstate(divide="ignore"):
        sol = solve_dae(with_args, (0.0, 1.0), [0.0], args=(np.float64(4.0),))
    assert sol.y[0, -1] == pytest.approx(0.25)
