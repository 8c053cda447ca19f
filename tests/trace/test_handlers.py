"""Functions that handle exceptions: every path through a `try`, taken at the start or not."""

import warnings

import numpy as np
import pytest
from support.handlers import NUMBERS, assert_same_values, function_of

from tether import solve_dae
from tether.trace import trace
from tether.trace.tracer import TraceFailure

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
def test_exceptions_that_are_not_handled_make_no_paths(name):
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
