"""What was once found wrong: values, places to keep a number, arguments, modules."""

from fuzz.arguments import ARGUMENTS
from fuzz.cases import HEADER, Case
from fuzz.holders import LEAVES
from fuzz.values import VALUES

_VALUES_TEXT = """
np.add(x > 0.2, t > 0.5)
np.sum((v > 0.5) + (v > 0.2))
np.max(v > 0.4) + np.max(v > 0.2)
max(v > 0.4) + max(v > 0.2)
np.dot(v > 0.5, v > 0.2)
np.any([x]) + np.all([x])
1.0 * ~(x > 0.5)
isinstance(x > 0.5, np.bool_) * 2.0
np.array([x > 0.5, 2]).dtype == int
(v > 0.5).dtype == bool
(type(x) is np.float64) * 2.0
(type(x) is float) * 2.0
(x.__class__ is float) * 2.0
(type(x).__name__ == 'float64') * 2.0
issubclass(type(x), float) * 2.0
len(type(x).__mro__)
isinstance(x, np.floating) * 2.0
isinstance(x, numbers.Real) * 2.0
isinstance(np.sin(x), np.floating) * 2.0
(type(t) is float) * 2.0
(type(v) is np.ndarray) * 2.0
hasattr(x, 'dtype') * 2.0
hasattr(x, 'node') * 2.0
hasattr(x, 'is_integer') * 2.0
len(str(x)) * 1.0
('-' in str(x)) * 2.0
(x.__hash__() if x == x else 1) % 3
np.sum(v, dtype=int)
np.sum(v, dtype=np.float32)
np.add(x, 1, dtype=np.float32)
np.float32(0.1) * x
np.piecewise(np.array([1, 2]), [np.array([True, False])], [x, 0.0])[0]
np.heaviside(x, 1.0)
np.heaviside(x - 0.5, 0.5)
np.fmin(x, 0.6)
np.fmax(x, 0.4)
np.clip(x, 0.2, 0.7)
np.clip(x, None, 0.5)
np.clip(x, 0.7, 0.3)
min(0.4, x)
max(0.4, x)
max([0.4, x, t])
max(0.2, min(x, 0.7))
math.fsum([1e16, x, -1e16])
math.hypot(1e200 * x, 1e200)
np.hypot(1e200 * x, 1e200)
np.interp(x, [0.0, 0.5, 1.0], [0.0, np.inf, 1.0])
np.interp(x, [0.5], [2.0])
""".strip().splitlines()
_BLOCK_STARTS = (
    "match x > 0.5", "if type(math.sin(x))", "if type(x) is np.float64", "if 'traced' in repr(x)",
    "@functools.singledispatch", "class P(float)", "with contextlib.suppress(ValueError)",
    "class Swallow", "if str(type(x))", "try:\n    w = math.exp(800.0",
    "try:\n    w = 1.0 / float(x)",
    "try:\n    w = float(x) ** -2", "try:\n    try:", "w = 0.0\nfor k in range(3):\n    try:",
)
FOUND_VALUES = [value for value in VALUES
                if value.code in _VALUES_TEXT or value.code.startswith(_BLOCK_STARTS)]

_LEAVES_TEXT = """
class attribute
class attribute through instance
attribute of a base class
class attribute shadowed later
second base class
attribute of a metaclass
property of a metaclass
metaclass getattr
init_subclass registry
__wrapped__
default
keyword default
partial
partial keywords
partial attribute
enum member
attribute of an enum member
threading.local
contextvar
weakref
weakref proxy
descriptor with its own store
__getitem__
__getattribute__
__missing__
attribute of a subclass of float
attribute of a subclass of int
attribute of a subclass of list
attribute of a subclass of dict
attribute of a subclass of tuple
NamedTuple default method
list with its own __iter__
dataclass default factory
ndarray subclass attribute
mask of a masked array
OrderedDict order
order of a dict
ctypes
poly1d
spline
sparse matrix
changed class
changed bases
isinstance by ABC registration
alias of hasattr
match args
order of a set
order of a set that was larger
order of a frozenset
shared memory
writeable flag
base of an array
strides of an array
attribute of numpy
""".strip().splitlines()
FOUND_LEAVES = [leaf for leaf in LEAVES if leaf.name in _LEAVES_TEXT]

_ARGUMENTS = [
    ("NumPy floats", "isinstance(p, np.floating) * x"), ("NumPy floats", "float(y[0]) * q"),
    ("floats as numbers", "(type(p) is float) * x"), ("floats as numbers", "x * len(repr(p))"),
    ("same object twice", "(p is q) * x"), ("same array twice", "(p is q) * x"),
    ("global and argument", "(p is same_U) * x"), ("array in odd ways", "p.flags.owndata * x"),
    ("array in odd ways", "p.tobytes()[7] * x"), ("float32 array", "p.sum() * q * t"),
    ("special floats", "math.copysign(0.5, p) + x"), ("namedtuple", "p._replace(a=q).a * x"),
]
FOUND_ARGUMENTS = [(argument, use) for argument in ARGUMENTS for name, use in _ARGUMENTS
                   if argument[0] == name]


def _case(name, setup, on_the_branch, memory=False, changes=()):
    source = f"""{HEADER}
{setup}

def fun(t, y, yp):
    w = 0.5
    if y[0] < 0.5:
        w = {on_the_branch}
    return [yp[0] + y[0] - 0.1, yp[1] + 0.5 * y[1] - w, yp[2] + y[2] - 0.5 * y[0]]
"""
    return Case(source, name, memory, changes=list(changes), seed=name)


FOUND_MODULES = [
    _case("bound method of a generator of random numbers", "draw = np.random.default_rng(1).random",
          "draw()", memory=True),
    _case("NumPy's bool from outside", "a = np.broadcast_to(np.array([2.0]), (3,))",
          "(a[2] > 1.5) + (y[0] > -9.0)"),
    _case("deque held by a member of an enumeration",
          "import enum\nclass E(enum.Enum):\n    A = 1\n"
          "E.A.k = collections.deque([1.25, 2.0], 2)", "E.A.k[-1] * y[0]",
          changes=["E.A.k.append(1.25)"]),
    _case("list behind a metaclass",
          "class M(type):\n    k = [2.0]\nclass K(metaclass=M):\n    pass",
          "K.k[0] * y[0]", changes=["M.k[0] = 1.25"]),
    _case("writing to a list behind a metaclass", "class M(type):\n    k = [2.0]\n"
          "class K(metaclass=M):\n    def put():\n        K.k[0] = 1.25\n        return 1.0",
          "K.put()", memory=True),
    _case("counter behind a default factory", "c = itertools.count()\n"
          "d = collections.defaultdict(lambda: next(c))", "1e-3 * d[len(d)]", memory=True),
    _case("exit that counts", "class K:\n    n = 0\n    def __enter__(self):\n        return K.n\n"
          "    def __exit__(self, *e):\n        K.n += 1\ndef use():\n    with K() as k:\n"
          "        return 1e-3 * k", "use()", memory=True),
    _case("globals of a module made by exec", "m = types.ModuleType('m')\n"
          "exec('gain = 2.0\\ndef get():\\n    return gain', vars(m))\nclass B:\n    k = (m,)",
          "B.k[0].get() * y[0]", changes=["m.gain = 1.25"]),
    _case("generator through a weak reference", "import weakref\ndef g():\n    k = 0.0\n"
          "    while True:\n        k += 1e-3\n        yield k\no = g()\ndef f():\n"
          "    return next(o)\nr = weakref.ref(f)", "r()()", memory=True),
    _case("object that answers everything", "class K:\n    extra = 2.0\n"
          "    def __getattribute__(self, name):\n        return K.extra\no = K()", "o.gain * y[0]",
          changes=["K.extra = 1.25"]),
    _case("limiter made by update_wrapper", "class Limit:\n    def __init__(self, f):\n"
          "        functools.update_wrapper(self, f)\n        self.f = f\n"
          "    def __call__(self, z):\n        return min(self.f(z), 0.2)\n@Limit\ndef f(z):\n"
          "    return 3.0 * z", "f(y[0])"),
]
