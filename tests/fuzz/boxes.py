"""Objects that hold other objects.

A box makes `b_U`, which holds INNER; PATH leads from BOX, an expression for it, to what it holds.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """An object that holds another."""

    name: str
    setup: str
    path: str
    ordinary: bool = False   # engineers write this: reading through it must be traced


BOXES = [
    Box("list", "b_U = [INNER]", "BOX[0]", True),
    Box("tuple", "b_U = (INNER,)", "BOX[0]", True),
    Box("dict", "b_U = {'k': INNER}", "BOX['k']", True),
    Box("nested dict", "b_U = {'a': {'k': INNER}}", "BOX['a']['k']", True),
    Box("instance", "class B_U:\n    def __init__(self, k):\n        self.k = k\nb_U = B_U(INNER)",
        "BOX.k", True),
    Box("class", "class b_U:\n    k = INNER", "BOX.k", True),
    Box("base class", "class C_U:\n    k = INNER\nclass b_U(C_U):\n    pass", "BOX.k"),
    Box("metaclass", "class M_U(type):\n    k = INNER\nclass b_U(metaclass=M_U):\n    pass",
        "BOX.k"),
    Box("slots", "class B_U:\n    __slots__ = ('k',)\nb_U = B_U()\nb_U.k = INNER", "BOX.k"),
    Box("dataclass", "import dataclasses, typing\n@dataclasses.dataclass\nclass B_U:\n"
        "    k: typing.Any\nb_U = B_U(INNER)", "BOX.k", True),
    Box("frozen dataclass", "import dataclasses, typing\n@dataclasses.dataclass(frozen=True)\n"
        "class B_U:\n    k: typing.Any\nb_U = B_U(INNER)", "BOX.k", True),
    Box("namedtuple", "import collections\nb_U = collections.namedtuple('T_U', 'k')(INNER)",
        "BOX.k", True),
    Box("SimpleNamespace", "import types\nb_U = types.SimpleNamespace(k=INNER)", "BOX.k", True),
    Box("function attribute", "def b_U():\n    pass\nb_U.k = INNER", "BOX.k"),
    Box("closure", "def wrap_U(k):\n    def get():\n        return k\n    return get\n"
        "b_U = wrap_U(INNER)", "BOX()", True),
    Box("default", "def b_U(k=INNER):\n    return k", "BOX()", True),
    Box("partial", "import functools\ndef id_U(k):\n    return k\n"
        "b_U = functools.partial(id_U, INNER)", "BOX()"),
    Box("property",
        "class B_U:\n    @property\n    def k(self):\n        return INNER\nb_U = B_U()",
        "BOX.k"),
    Box("cached_property", "import functools\nclass B_U:\n    @functools.cached_property\n"
        "    def k(self):\n        return INNER\nb_U = B_U()", "BOX.k"),
    Box("descriptor", "class D_U:\n    def __get__(self, obj, owner=None):\n        return INNER\n"
        "class B_U:\n    k = D_U()\nb_U = B_U()", "BOX.k"),
    Box("list subclass", "class B_U(list):\n    pass\nb_U = B_U([INNER])", "BOX[0]"),
    Box("list subclass attribute", "class B_U(list):\n    pass\nb_U = B_U()\nb_U.k = INNER",
        "BOX.k"),
    Box("dict subclass", "class B_U(dict):\n    pass\nb_U = B_U(k=INNER)", "BOX['k']"),
    Box("float subclass", "class B_U(float):\n    pass\nb_U = B_U(1.0)\nb_U.k = INNER", "BOX.k"),
    Box("tuple subclass", "class B_U(tuple):\n    pass\nb_U = B_U([INNER])", "BOX[0]"),
    Box("OrderedDict", "import collections\nb_U = collections.OrderedDict(k=INNER)", "BOX['k']"),
    Box("defaultdict", "import collections\nb_U = collections.defaultdict(lambda: INNER)",
        "BOX['k']"),
    Box("deque", "import collections\nb_U = collections.deque([INNER])", "BOX[0]"),
    Box("object array", "import numpy as np\nb_U = np.empty(1, dtype=object)\nb_U[0] = INNER",
        "BOX[0]"),
    Box("enum", "import enum\nclass B_U(enum.Enum):\n    A = 1\nb_U = B_U.A\nb_U.k = INNER",
        "BOX.k"),
    Box("module", "import types\nb_U = types.ModuleType('b_U')\nb_U.k = INNER", "BOX.k"),
    Box("contextvar", "import contextvars\nb_U = contextvars.ContextVar('b_U', default=INNER)",
        "BOX.get()"),
    Box("threading.local", "import threading\nb_U = threading.local()\nb_U.k = INNER", "BOX.k"),
    Box("lru_cache", "import functools\n@functools.lru_cache\ndef b_U():\n    return INNER",
        "BOX()"),
    Box("__getattr__", "class B_U:\n    def __getattr__(self, name):\n        return INNER\n"
        "b_U = B_U()", "BOX.k"),
    Box("mappingproxy", "import types\nb_U = types.MappingProxyType({'k': INNER})", "BOX['k']"),
    Box("bound method", "class B_U:\n    def get(self):\n        return self.k\nq_U = B_U()\n"
        "q_U.k = INNER\nb_U = q_U.get", "BOX()", True),
    Box("callable object", "class B_U:\n    def __init__(self, k):\n        self.k = k\n"
        "    def __call__(self):\n        return self.k\nb_U = B_U(INNER)", "BOX()", True),
    Box("globals()", "b_U = INNER", "globals()['b_U']"),
    Box("eval", "b_U = INNER", "eval('b_U')"),
    Box("set", "b_U = [INNER]", "next(iter(BOX))"),
    Box("ChainMap", "import collections\nb_U = collections.ChainMap({}, {'k': INNER})",
        "BOX['k']"),
    Box("exception", "b_U = ValueError(INNER)", "BOX.args[0]"),
    Box("generic alias", "class B_U:\n    def __class_getitem__(cls, i):\n        return INNER\n"
        "b_U = B_U", "BOX[0]"),
]
