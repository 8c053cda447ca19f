"""Ways to wrap a block of code: helpers, methods, closures, loops, contexts, decorators, ...

A shell takes statements that compute w from x, y, v and t, and gives a setup for the module and
other statements that do the same.
"""

import textwrap
from dataclasses import dataclass

SIGNATURE = "x, y, v, t"


@dataclass(frozen=True)
class Shell:
    """A pair of templates: BODY stands for the block, indented as it is there."""

    name: str
    setup: str
    block: str
    ordinary: bool = False

    def wrap(self, block, number):
        """Return the setup and the new block."""
        return tuple(fill(text, block).replace("_U", f"_{number}")
                     for text in (self.setup, self.block))


def fill(template, block):
    """Put a block in the place of BODY."""
    lines = []
    for line in template.strip("\n").splitlines():
        if line.strip() == "BODY":
            lines.append(textwrap.indent(block, line[: len(line) - len(line.lstrip())]))
        else:
            lines.append(line)
    return "\n".join(lines)


_DEF = "def f_U(x, y, v, t):\n    BODY\n    return w\n"
_CALL = "w = f_U(x, y, v, t)"

SHELLS = [
    Shell("helper", _DEF, _CALL, True),
    Shell("helper with keywords", _DEF, "w = f_U(t=t, v=v, y=y, x=x)", True),
    Shell("helper with star", _DEF, "w = f_U(*(x, y), **{'v': v, 't': t})", True),
    Shell("helper of star", "def f_U(*a, **k):\n    x, y, v = a\n    t = k['t']\n    BODY\n"
          "    return w", "w = f_U(x, y, v, t=t)", True),
    Shell("positional and keyword only", "def f_U(x, /, y, *, v, t):\n    BODY\n    return w",
          "w = f_U(x, y, v=v, t=t)", True),
    Shell("nested def", "", "def g_U(x, y, v, t):\n    BODY\n    return w\nw = g_U(x, y, v, t)",
          True),
    Shell("closure of the arguments", "", "def g_U(x=x, y=y, v=v, t=t):\n    BODY\n    return w\n"
          "w = g_U()", True),
    Shell("closure factory", "def make_U(scale):\n    def f(x, y, v, t):\n        BODY\n"
          "        return w * scale\n    return f\nf_U = make_U(1.0)", _CALL, True),
    Shell("method", "class K_U:\n    def f(self, x, y, v, t):\n        BODY\n        return w\n"
          "k_U = K_U()", "w = k_U.f(x, y, v, t)", True),
    Shell("bound method", "class K_U:\n    def f(self, x, y, v, t):\n        BODY\n"
          "        return w\nf_U = K_U().f", _CALL, True),
    Shell("staticmethod", "class K_U:\n    @staticmethod\n    def f(x, y, v, t):\n        BODY\n"
          "        return w", "w = K_U.f(x, y, v, t)", True),
    Shell("classmethod", "class K_U:\n    @classmethod\n    def f(cls, x, y, v, t):\n"
          "        BODY\n        return w", "w = K_U.f(x, y, v, t)", True),
    Shell("inherited method", "class B_U:\n    def f(self, x, y, v, t):\n        BODY\n"
          "        return w\nclass K_U(B_U):\n    def f(self, *a):\n"
          "        return super().f(*a)\nk_U = K_U()", "w = k_U.f(x, y, v, t)", True),
    Shell("abstract method", "import abc\nclass B_U(abc.ABC):\n    @abc.abstractmethod\n"
          "    def g(self, *a): ...\n    def f(self, *a):\n        return self.g(*a)\n"
          "class K_U(B_U):\n    def g(self, x, y, v, t):\n        BODY\n        return w\n"
          "k_U = K_U()", "w = k_U.f(x, y, v, t)"),
    Shell("dataclass method", "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n"
          "    scale: float = 1.0\n    def f(self, x, y, v, t):\n        BODY\n"
          "        return self.scale * w\nk_U = K_U()", "w = k_U.f(x, y, v, t)", True),
    Shell("frozen dataclass method", "import dataclasses\n@dataclasses.dataclass(frozen=True)\n"
          "class K_U:\n    scale: float = 1.0\n    def f(self, x, y, v, t):\n        BODY\n"
          "        return self.scale * w\nk_U = K_U()", "w = k_U.f(x, y, v, t)", True),
    Shell("dataclass field", "import dataclasses, typing\n" + _DEF + "@dataclasses.dataclass\n"
          "class K_U:\n    f: typing.Callable\nk_U = K_U(f_U)", "w = k_U.f(x, y, v, t)", True),
    Shell("callable object", "class K_U:\n    def __call__(self, x, y, v, t):\n        BODY\n"
          "        return w\nf_U = K_U()", _CALL, True),
    Shell("object made inside", "class K_U:\n    def __init__(self, x, y, v, t):\n        BODY\n"
          "        self.w = w", "w = K_U(x, y, v, t).w", True),
    Shell("property of an object made inside", "class K_U:\n    def __init__(self, *a):\n"
          "        self.a = a\n    @property\n    def w(self):\n        x, y, v, t = self.a\n"
          "        BODY\n        return w", "w = K_U(x, y, v, t).w"),
    Shell("overloaded operator", "class K_U:\n    def __matmul__(self, a):\n"
          "        x, y, v, t = a\n        BODY\n        return w\nk_U = K_U()",
          "w = k_U @ (x, y, v, t)"),
    Shell("reflected operator", "class K_U:\n    def __radd__(self, x):\n        y, v, t = self.a\n"
          "        BODY\n        return w\n    def __init__(self, *a):\n        self.a = a",
          "w = (x, y, v, t)[0] + K_U(y, v, t)"),
    Shell("__getitem__", "class K_U:\n    def __getitem__(self, a):\n        x, y, v, t = a\n"
          "        BODY\n        return w\nk_U = K_U()", "w = k_U[x, y, v, t]"),
    Shell("__getattr__", _DEF + "class K_U:\n    def __getattr__(self, name):\n"
          "        return f_U\nk_U = K_U()", "w = k_U.anything(x, y, v, t)"),
    Shell("descriptor", _DEF + "class D_U:\n    def __get__(self, o, c=None):\n"
          "        return f_U\nclass K_U:\n    f = D_U()\nk_U = K_U()", "w = k_U.f(x, y, v, t)"),
    Shell("lambda", _DEF + "h_U = lambda *a: f_U(*a)", "w = h_U(x, y, v, t)", True),
    Shell("partial", "import functools\n" + _DEF + "h_U = functools.partial(f_U)",
          "w = h_U(x, y, v, t)", True),
    Shell("partial with values", "import functools\n" + _DEF,
          "w = functools.partial(f_U, x, t=t)(y=y, v=v)"),
    Shell("partialmethod", "import functools\nclass K_U:\n    def f(self, k, x, y, v, t):\n"
          "        BODY\n        return w * k\n    g = functools.partialmethod(f, 1.0)\n"
          "k_U = K_U()", "w = k_U.g(x, y, v, t)"),
    Shell("decorator", "def deco_U(f):\n    def inner(*a, **k):\n        return f(*a, **k)\n"
          "    return inner\n@deco_U\n" + _DEF, _CALL, True),
    Shell("decorator with wraps", "import functools\ndef deco_U(f):\n    @functools.wraps(f)\n"
          "    def inner(*a, **k):\n        return 0.5 * f(*a, **k)\n    return inner\n@deco_U\n"
          + _DEF, _CALL, True),
    Shell("decorator with arguments", "import functools\ndef deco_U(scale):\n    def deco(f):\n"
          "        @functools.wraps(f)\n        def inner(*a):\n            return scale * f(*a)\n"
          "        return inner\n    return deco\n@deco_U(0.5)\n" + _DEF, _CALL, True),
    Shell("class decorator", "import functools\nclass Half_U:\n    def __init__(self, f):\n"
          "        functools.update_wrapper(self, f)\n        self.f = f\n"
          "    def __call__(self, *a):\n        return 0.5 * self.f(*a)\n@Half_U\n" + _DEF, _CALL),
    Shell("false __wrapped__", "def other_U(x, y, v, t):\n    return 9.0\n" + _DEF +
          "f_U.__wrapped__ = other_U", _CALL),
    Shell("lru_cache", "import functools\n@functools.lru_cache(maxsize=None)\ndef scale_U(k):\n"
          "    return 0.5 * k\n" + _DEF, "w = scale_U(2) * f_U(x, y, v, t)"),
    Shell("list of functions", _DEF + "fs_U = [None, f_U]", "w = fs_U[1](x, y, v, t)", True),
    Shell("dict of functions", _DEF + "fs_U = {'a': f_U}", "w = fs_U['a'](x, y, v, t)", True),
    Shell("namedtuple of functions", "import collections\n" + _DEF +
          "fs_U = collections.namedtuple('F_U', 'a')(f_U)", "w = fs_U.a(x, y, v, t)"),
    Shell("namespace of functions", "import types\n" + _DEF + "n_U = types.SimpleNamespace(f=f_U)",
          "w = n_U.f(x, y, v, t)", True),
    Shell("enum of functions", "import enum\n" + _DEF + "class E_U(enum.Enum):\n    A = (f_U,)",
          "w = E_U.A.value[0](x, y, v, t)"),
    Shell("module of functions", "import types\n" + _DEF + "m_U = types.ModuleType('m_U')\n"
          "m_U.f = f_U", "w = m_U.f(x, y, v, t)"),
    Shell("function attribute", _DEF + "def g_U():\n    pass\ng_U.f = f_U",
          "w = g_U.f(x, y, v, t)"),
    Shell("class attribute function", _DEF + "class K_U:\n    f = staticmethod(f_U)",
          "w = K_U.f(x, y, v, t)", True),
    Shell("metaclass method", "class M_U(type):\n    def f(cls, x, y, v, t):\n        BODY\n"
          "        return w\nclass K_U(metaclass=M_U):\n    pass", "w = K_U.f(x, y, v, t)"),
    Shell("contextvar of a function", "import contextvars\n" + _DEF +
          "c_U = contextvars.ContextVar('c_U', default=f_U)", "w = c_U.get()(x, y, v, t)"),
    Shell("weakref of a function", "import weakref\n" + _DEF + "r_U = weakref.ref(f_U)",
          "w = r_U()(x, y, v, t)"),
    Shell("globals()", _DEF, "w = globals()['f_U'](x, y, v, t)"),
    Shell("eval", _DEF, "w = eval('f_U')(x, y, v, t)"),
    Shell("eval of a call", _DEF, "w = eval('f_U(x, y, v, t)')"),
    Shell("getattr by name", "class K_U:\n    @staticmethod\n    def f(x, y, v, t):\n        BODY\n"
          "        return w", "w = getattr(K_U, 'f')(x, y, v, t)"),
    Shell("singledispatch", "import functools\n@functools.singledispatch\ndef f_U(k, x, y, v, t):\n"
          "    return 9.0\n@f_U.register\ndef _(k: int, x, y, v, t):\n    BODY\n    return w",
          "w = f_U(1, x, y, v, t)"),
    Shell("generator", "def g_U(x, y, v, t):\n    BODY\n    yield w", "w = next(g_U(x, y, v, t))"),
    Shell("sum of a generator", "def g_U(x, y, v, t):\n    for _ in range(2):\n        BODY\n"
          "        yield w", "w = sum(g_U(x, y, v, t))"),
    Shell("coroutine", "async def co_U(x, y, v, t):\n    BODY\n    return w\n"
          "def run_U(*a):\n    c = co_U(*a)\n    try:\n        c.send(None)\n"
          "    except StopIteration as stop:\n        return stop.value",
          "w = run_U(x, y, v, t)"),
    Shell("recursion", "def f_U(n, x, y, v, t):\n    if n:\n"
          "        return f_U(n - 1, x, y, v, t)\n    BODY\n    return w",
          "w = f_U(3, x, y, v, t)", True),
    Shell("loop", "", "for i_U in range(2):\n    BODY", True),
    Shell("loop with break", "", "for i_U in range(9):\n    BODY\n    if i_U == 1:\n        break",
          True),
    Shell("while", "", "i_U = 0\nwhile i_U < 2:\n    BODY\n    i_U += 1", True),
    Shell("comprehension", _DEF, "w = [f_U(x, y, v, t) for k in range(2)][1]", True),
    Shell("dict comprehension", _DEF, "w = {k: f_U(x, y, v, t) for k in range(2)}[1]"),
    Shell("map", _DEF, "w = list(map(f_U, [x], [y], [v], [t]))[0]"),
    Shell("reduce", "import functools\n" + _DEF,
          "w = functools.reduce(lambda a, k: a + 0.5 * f_U(x, y, v, t), range(2), 0.0)"),
    Shell("try finally", "", "try:\n    BODY\nfinally:\n    z_U = 1"),
    Shell("try else", "", "try:\n    z_U = 1\nexcept ValueError:\n    w = 9.0\nelse:\n    BODY"),
    Shell("return in try", "def f_U(x, y, v, t):\n    try:\n        BODY\n        return w\n"
          "    finally:\n        pass", _CALL),
    Shell("except clause", "", "try:\n    raise KeyError\nexcept KeyError:\n    BODY"),
    Shell("try except nothing", "", "try:\n    BODY\nexcept ZeroDivisionError:\n    w = 9.0"),
    Shell("try except all", "", "try:\n    BODY\nexcept Exception:\n    w = 9.0"),
    Shell("suppress", "import contextlib", "w = 9.0\nwith contextlib.suppress(ArithmeticError):\n"
          "    BODY"),
    Shell("swallowing context", "class Swallow_U:\n    def __enter__(self):\n        return self\n"
          "    def __exit__(self, *e):\n        return True",
          "w = 9.0\nwith Swallow_U():\n    BODY"),
    Shell("plain context", "class Plain_U:\n    def __enter__(self):\n        return self\n"
          "    def __exit__(self, *e):\n        return None", "with Plain_U():\n    BODY"),
    Shell("contextmanager", "import contextlib\n@contextlib.contextmanager\ndef cm_U():\n"
          "    yield 1.0", "with cm_U() as k_U:\n    BODY"),
    Shell("swallowing contextmanager", "import contextlib\n@contextlib.contextmanager\n"
          "def cm_U():\n    try:\n        yield 1.0\n    except ValueError:\n        pass",
          "w = 9.0\nwith cm_U() as k_U:\n    BODY"),
    Shell("ExitStack", "import contextlib", "with contextlib.ExitStack() as s_U:\n    BODY"),
    Shell("errstate", "", "with np.errstate(all='ignore'):\n    BODY", True),
    Shell("match", "", "match 1:\n    case 0:\n        w = 9.0\n    case _:\n        BODY"),
    Shell("if True", "", "if True:\n    BODY", True),
    Shell("if on a constant", "FLAG_U = True", "if FLAG_U:\n    BODY\nelse:\n    w = 9.0", True),
    Shell("early return", "def f_U(x, y, v, t):\n    if x > 1e9:\n        return 9.0\n    BODY\n"
          "    return w", _CALL, True),
    Shell("class body", "", "class C_U:\n    BODY\n    value = w\nw = C_U.value"),
    Shell("exec", _DEF + "ns_U = {'f': f_U}\nexec('def g(*a):\\n    return f(*a)', ns_U)",
          "w = ns_U['g'](x, y, v, t)"),
    Shell("exec without source", "ns_U = dict(globals())\nexec('def g(f, a):\\n"
          "    return f(*a)', ns_U)\n" + _DEF, "w = ns_U['g'](f_U, (x, y, v, t))"),
    Shell("walrus", _DEF, "w = (w_U := f_U(x, y, v, t)) + 0.0 * w_U"),
    Shell("conditional expression", _DEF, "w = f_U(x, y, v, t) if x < 1e9 else 9.0", True),
    Shell("and or", _DEF, "w = (x < 1e9 and f_U(x, y, v, t)) or 0.25"),
    Shell("sorted key", _DEF, "w = sorted([1.0, 2.0], key=lambda k: 0.0 * k)[0] * "
          "f_U(x, y, v, t)"),
    Shell("out argument", "def f_U(out, x, y, v, t):\n    BODY\n    out[0] = w",
          "o_U = np.zeros(1)\nf_U(o_U, x, y, v, t)\nw = o_U[0]", True),
    Shell("filled list", "def f_U(out, x, y, v, t):\n    BODY\n    out.append(w)",
          "o_U = []\nf_U(o_U, x, y, v, t)\nw = o_U[0]", True),
    Shell("filled dict", "def f_U(out, x, y, v, t):\n    BODY\n    out['w'] = w",
          "o_U = {}\nf_U(o_U, x, y, v, t)\nw = o_U['w']", True),
    Shell("array element", "", "BODY\na_U = np.array([w, 1.0])\nw = a_U[0]", True),
    Shell("tuple result", "def f_U(x, y, v, t):\n    BODY\n    return w, 1.0",
          "w, _ = f_U(x, y, v, t)", True),
    Shell("np.vectorize", _DEF, "w = float(np.vectorize(lambda z: f_U(z, y, v, t))(x))"),
    Shell("wrong types", _DEF, "w = f_U(x if isinstance(x, float) else 9.0, y, v, t)"),
    Shell("threading.local function", "import threading\n" + _DEF + "l_U = threading.local()\n"
          "l_U.f = f_U", "w = l_U.f(x, y, v, t)"),
    Shell("subclass of a function holder", _DEF + "class L_U(list):\n    pass\nl_U = L_U([f_U])",
          "w = l_U[0](x, y, v, t)"),
    Shell("type() made class", _DEF + "K_U = type('K_U', (), {'f': staticmethod(f_U)})",
          "w = K_U.f(x, y, v, t)"),
    Shell("function copy", "import types\n" + _DEF + "g_U = types.FunctionType(f_U.__code__, "
          "globals(), 'g_U', f_U.__defaults__, f_U.__closure__)", "w = g_U(x, y, v, t)"),
    Shell("method descriptor", "import types\n" + _DEF + "class K_U:\n    pass\nk_U = K_U()\n"
          "def g_U(self, *a):\n    return f_U(*a)\nk_U.f = types.MethodType(g_U, k_U)",
          "w = k_U.f(x, y, v, t)"),
    Shell("njit", "try:\n    import numba\n    jit_U = numba.njit\nexcept ImportError:\n"
          "    jit_U = lambda f: f\n@jit_U\ndef scale_U(z):\n    return 0.5 * z\n",
          "BODY\nw = scale_U(w)"),
]
