"""Places where Python can keep a number: how each is made, read and written.

A leaf makes an object `o_U` that keeps the number 2.0. READ and WRITE speak of OBJ, an expression
for that object, and VAL, the new number. ``U`` at the end of a name is replaced by a number, so
that a module can have many of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Leaf:
    """A place for a number."""

    name: str
    setup: str
    read: str
    write: str
    declare: str = ""        # what a function says before it writes
    ordinary: bool = False   # engineers write this: reading it must be traced
    writable: bool = True    # can be written from inside a function


def _leaf(name, setup, read, write="", **flags):
    return Leaf(name, setup.strip("\n"), read, write, **flags)


_CLASS = "class K_U{base}:\n    {body}\n"

LEAVES = [
    # names
    _leaf("global", "o_U = 2.0", "o_U", "o_U = VAL", declare="global o_U", ordinary=True),
    _leaf("global int", "o_U = 2", "o_U", "o_U = VAL", declare="global o_U", ordinary=True),
    _leaf("global by globals()", "o_U = 2.0", "globals()['o_U']", "globals()['o_U'] = VAL"),
    _leaf("global by setattr on module", "import sys\no_U = 2.0\nm_U = sys.modules[__name__]",
          "m_U.o_U", "setattr(m_U, 'o_U', VAL)"),
    _leaf("global by exec", "o_U = 2.0", "eval('o_U')", "exec('o_U = VAL', globals())"),
    _leaf("nonlocal", """
def make_U():
    value = 2.0
    def get():
        return value
    def put(new):
        nonlocal value
        value = new
    return get, put
o_U = make_U()""", "OBJ[0]()", "OBJ[1](VAL)", ordinary=True),
    _leaf("closure of a list", """
def make_U():
    value = [2.0]
    def get():
        return value[0]
    return get
o_U = make_U()""", "OBJ()", "OBJ.__closure__[0].cell_contents[0] = VAL", ordinary=True),
    _leaf("closure cell", """
def make_U():
    value = 2.0
    def get():
        return value
    return get
o_U = make_U()""", "OBJ()", "OBJ.__closure__[0].cell_contents = VAL", ordinary=True),
    # functions
    _leaf("function attribute", "def o_U(z):\n    return z\no_U.gain = 2.0", "OBJ.gain",
          "OBJ.gain = VAL"),
    _leaf("function attribute read by itself", "def o_U(z=1.0):\n    return o_U.gain * z\n"
          "o_U.gain = 2.0", "OBJ()", "OBJ.gain = VAL"),
    _leaf("default", "def o_U(gain=2.0):\n    return gain", "OBJ()",
          "OBJ.__defaults__ = (VAL,)", ordinary=True),
    _leaf("keyword default", "def o_U(*, gain=2.0):\n    return gain", "OBJ()",
          "OBJ.__kwdefaults__ = {'gain': VAL}", ordinary=True),
    _leaf("mutable default", "def o_U(gain=[2.0]):\n    return gain[0]", "OBJ()",
          "OBJ.__defaults__[0][0] = VAL", ordinary=True),
    _leaf("code of a function", "def o_U():\n    return 2.0\ndef other_U(v):\n"
          "    def f():\n        return v\n    return f",
          "OBJ()", "OBJ.__code__ = eval('lambda: VAL').__code__", writable=False),
    _leaf("partial", "import functools\ndef id_U(z):\n    return z\n"
          "o_U = functools.partial(id_U, 2.0)", "OBJ()",
          "OBJ.__setstate__((id_U, (VAL,), {}, {}))"),
    _leaf("partial keywords", "import functools\ndef id_U(z=1.0):\n    return z\n"
          "o_U = functools.partial(id_U, z=2.0)", "OBJ()", "OBJ.keywords['z'] = VAL"),
    _leaf("partial attribute", "import functools\no_U = functools.partial(float, 1.0)\n"
          "o_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("lru_cache over a global", "import functools\ng_U = [2.0]\n@functools.lru_cache\n"
          "def o_U():\n    return g_U[0]", "OBJ()", "g_U[0] = VAL; OBJ.cache_clear()"),
    _leaf("__wrapped__", """
import functools
class Limit_U:
    def __init__(self, f):
        functools.update_wrapper(self, f)
        self.gain = 2.0
    def __call__(self):
        return self.gain
@Limit_U
def o_U():
    return 7.0""", "OBJ()", "OBJ.gain = VAL"),
    _leaf("method bound to an object", _CLASS.format(base="", body="gain = 2.0\n    def get(self):"
          "\n        return self.gain") + "k_U = K_U()\no_U = k_U.get", "OBJ()", "k_U.gain = VAL",
          ordinary=True),
    # classes
    _leaf("class attribute", _CLASS.format(base="", body="gain = 2.0") + "o_U = K_U", "OBJ.gain",
          "OBJ.gain = VAL", ordinary=True),
    _leaf("class attribute through instance", _CLASS.format(base="", body="gain = 2.0") +
          "o_U = K_U()", "OBJ.gain", "type(OBJ).gain = VAL", ordinary=True),
    _leaf("attribute of a base class", "class B_U:\n    gain = 2.0\nclass K_U(B_U):\n    pass\n"
          "o_U = K_U()", "OBJ.gain", "B_U.gain = VAL", ordinary=True),
    _leaf("class attribute shadowed later", "class B_U:\n    gain = 2.0\nclass K_U(B_U):\n"
          "    pass\no_U = K_U()", "OBJ.gain", "K_U.gain = VAL"),
    _leaf("instance attribute that shadows", _CLASS.format(base="", body="gain = 2.0") +
          "o_U = K_U()", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("second base class", "class A_U:\n    pass\nclass B_U:\n    gain = 2.0\n"
          "class K_U(A_U, B_U):\n    pass\no_U = K_U()", "OBJ.gain", "A_U.gain = VAL"),
    _leaf("attribute of a metaclass", "class M_U(type):\n    gain = 2.0\n"
          "class K_U(metaclass=M_U):\n    pass\no_U = K_U", "OBJ.gain", "M_U.gain = VAL"),
    _leaf("property of a metaclass", "class M_U(type):\n    @property\n    def gain(cls):\n"
          "        return cls.store[0]\nclass K_U(metaclass=M_U):\n    store = [2.0]\no_U = K_U",
          "OBJ.gain", "OBJ.store[0] = VAL"),
    _leaf("class __dict__ by vars", _CLASS.format(base="", body="gain = 2.0") + "o_U = K_U",
          "vars(OBJ)['gain']", "OBJ.gain = VAL"),
    _leaf("classmethod", _CLASS.format(base="", body="gain = 2.0\n    @classmethod\n"
          "    def get(cls):\n        return cls.gain\n    @classmethod\n    def put(cls, v):\n"
          "        cls.gain = v") + "o_U = K_U", "OBJ.get()", "OBJ.put(VAL)"),
    _leaf("init_subclass registry", "class B_U:\n    registry = {}\n"
          "    def __init_subclass__(cls, gain=1.0, **kw):\n        B_U.registry[cls] = gain\n"
          "class K_U(B_U, gain=2.0):\n    pass\no_U = K_U()", "OBJ.registry[type(OBJ)]",
          "OBJ.registry[type(OBJ)] = VAL"),
    _leaf("class getitem", "class K_U:\n    gain = 2.0\n    def __class_getitem__(cls, i):\n"
          "        return cls.gain\no_U = K_U", "OBJ[0]", "OBJ.gain = VAL"),
    _leaf("metaclass getattr", "class M_U(type):\n    store = {'gain': 2.0}\n"
          "    def __getattr__(cls, name):\n        return M_U.store[name]\n"
          "class K_U(metaclass=M_U):\n    pass\no_U = K_U", "OBJ.gain", "M_U.store['gain'] = VAL"),
    # instances
    _leaf("instance attribute", _CLASS.format(base="", body="def __init__(self):\n"
          "        self.gain = 2.0") + "o_U = K_U()", "OBJ.gain", "OBJ.gain = VAL", ordinary=True),
    _leaf("instance by vars", _CLASS.format(base="", body="pass") + "o_U = K_U()\no_U.gain = 2.0",
          "vars(OBJ)['gain']", "vars(OBJ)['gain'] = VAL"),
    _leaf("getattr with default", _CLASS.format(base="", body="pass") + "o_U = K_U()",
          "getattr(OBJ, 'gain', 2.0)", "OBJ.gain = VAL"),
    _leaf("hasattr", _CLASS.format(base="", body="pass") + "o_U = K_U()",
          "(1.25 if hasattr(OBJ, 'gain') else 2.0)", "OBJ.gain = VAL"),
    _leaf("slots", _CLASS.format(base="", body="__slots__ = ('gain',)") +
          "o_U = K_U()\no_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL", ordinary=True),
    _leaf("slot of a base class", "class B_U:\n    __slots__ = ('gain',)\nclass K_U(B_U):\n"
          "    __slots__ = ()\no_U = K_U()\no_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("property", _CLASS.format(base="", body="_gain = 2.0\n    @property\n"
          "    def gain(self):\n        return self._gain\n    @gain.setter\n"
          "    def gain(self, v):\n        self._gain = v") + "o_U = K_U()", "OBJ.gain",
          "OBJ.gain = VAL", ordinary=True),
    _leaf("descriptor with its own store", """
class D_U:
    def __init__(self):
        self.store = {}
    def __get__(self, obj, owner=None):
        return self if obj is None else self.store.get(id(obj), 2.0)
    def __set__(self, obj, value):
        self.store[id(obj)] = value
class K_U:
    gain = D_U()
o_U = K_U()""", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("descriptor in __dict__", """
class D_U:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, obj, owner=None):
        return obj.__dict__.get(self.name, 2.0)
    def __set__(self, obj, value):
        obj.__dict__[self.name] = value
class K_U:
    gain = D_U()
o_U = K_U()""", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("__getattr__", _CLASS.format(base="", body="def __init__(self):\n"
          "        self.__dict__['store'] = {'gain': 2.0}\n    def __getattr__(self, name):\n"
          "        return self.store[name]\n    def __setattr__(self, name, v):\n"
          "        self.store[name] = v") + "o_U = K_U()", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("__getattribute__", _CLASS.format(base="", body="extra = 2.0\n    gain = 5.0\n"
          "    def __getattribute__(self, name):\n        return K_U.extra") +
          "o_U = K_U()", "OBJ.gain", "K_U.extra = VAL"),
    _leaf("__getitem__", _CLASS.format(base="", body="store = [2.0]\n    def __getitem__(self, i):"
          "\n        return self.store[i]\n    def __setitem__(self, i, v):\n"
          "        self.store[i] = v") + "o_U = K_U()", "OBJ[0]", "OBJ[0] = VAL"),
    _leaf("__float__", _CLASS.format(base="", body="gain = 2.0\n    def __float__(self):\n"
          "        return self.gain") + "o_U = K_U()", "float(OBJ)", "OBJ.gain = VAL"),
    _leaf("__index__", _CLASS.format(base="", body="gain = 2\n    def __index__(self):\n"
          "        return self.gain") + "o_U = K_U()", "range(5)[OBJ]", "OBJ.gain = int(VAL)"),
    _leaf("__bool__", _CLASS.format(base="", body="on = True\n    def __bool__(self):\n"
          "        return self.on") + "o_U = K_U()", "(2.0 if OBJ else 1.25)",
          "OBJ.on = VAL == 2.0"),
    _leaf("__len__", _CLASS.format(base="", body="n = 2\n    def __len__(self):\n"
          "        return self.n") + "o_U = K_U()", "len(OBJ)", "OBJ.n = int(VAL)"),
    _leaf("__eq__", _CLASS.format(base="", body="n = True\n    def __eq__(self, other):\n"
          "        return self.n\n    __hash__ = None") + "o_U = K_U()",
          "(2.0 if OBJ == 1 else 1.25)", "OBJ.n = VAL == 2.0"),
    _leaf("__contains__", _CLASS.format(base="", body="n = True\n    def __contains__(self, z):\n"
          "        return self.n") + "o_U = K_U()", "(2.0 if 1 in OBJ else 1.25)",
          "OBJ.n = VAL == 2.0"),
    _leaf("__iter__", _CLASS.format(base="", body="n = [2.0]\n    def __iter__(self):\n"
          "        return iter(self.n)") + "o_U = K_U()", "sum(OBJ)", "OBJ.n[0] = VAL"),
    _leaf("__rmul__", _CLASS.format(base="", body="n = 2.0\n    def __rmul__(self, z):\n"
          "        return z * self.n\n    __mul__ = __rmul__") + "o_U = K_U()", "(1.0 * OBJ)",
          "OBJ.n = VAL"),
    _leaf("cached_property", "import functools\nclass K_U:\n    @functools.cached_property\n"
          "    def gain(self):\n        return 2.0\no_U = K_U()\no_U.gain", "OBJ.gain",
          "OBJ.gain = VAL"),
    _leaf("dataclass", "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n"
          "    gain: float = 2.0\no_U = K_U()", "OBJ.gain", "OBJ.gain = VAL", ordinary=True),
    _leaf("frozen dataclass", "import dataclasses\n@dataclasses.dataclass(frozen=True)\n"
          "class K_U:\n    gain: float = 2.0\no_U = K_U()", "OBJ.gain",
          "object.__setattr__(OBJ, 'gain', VAL)", ordinary=True),
    _leaf("slotted dataclass", "import dataclasses\n@dataclasses.dataclass(slots=True)\n"
          "class K_U:\n    gain: float = 2.0\no_U = K_U()", "OBJ.gain", "OBJ.gain = VAL",
          ordinary=True),
    _leaf("dataclass ClassVar", "import dataclasses\nfrom typing import ClassVar\n"
          "@dataclasses.dataclass\nclass K_U:\n    b: float = 1.0\n    gain: ClassVar[float] = 2.0"
          "\no_U = K_U()", "OBJ.gain", "K_U.gain = VAL"),
    _leaf("dataclass default factory", "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n"
          "    gains: list = dataclasses.field(default_factory=lambda: [2.0])\no_U = K_U()",
          "OBJ.gains[0]", "OBJ.gains[0] = VAL", ordinary=True),
    _leaf("SimpleNamespace", "import types\no_U = types.SimpleNamespace(gain=2.0)", "OBJ.gain",
          "OBJ.gain = VAL", ordinary=True),
    _leaf("module", "import types\no_U = types.ModuleType('m_U')\no_U.gain = 2.0", "OBJ.gain",
          "OBJ.gain = VAL"),
    _leaf("module in sys.modules", "import types, sys\nsys.modules['fuzz_m_U'] = "
          "types.ModuleType('fuzz_m_U')\nimport fuzz_m_U as o_U\no_U.gain = 2.0", "OBJ.gain",
          "OBJ.gain = VAL"),
    _leaf("function of another module", "import types\no_U = types.ModuleType('m_U')\n"
          "exec('gain = 2.0\\ndef get():\\n    return gain', vars(o_U))", "OBJ.get()",
          "OBJ.gain = VAL"),
    _leaf("enum member", "import enum\nclass K_U(enum.Enum):\n    A = 2.0\no_U = K_U.A",
          "OBJ.value", "OBJ._value_ = VAL", ordinary=True),
    _leaf("attribute of an enum member", "import enum\nclass K_U(enum.Enum):\n    A = 1\n"
          "o_U = K_U.A\no_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("IntEnum", "import enum\nclass K_U(enum.IntEnum):\n    A = 1\n"
          "o_U = K_U.A\no_U.gain = 2.0", "(OBJ.gain * int(OBJ))", "OBJ.gain = VAL"),
    _leaf("Flag", "import enum\nclass K_U(enum.Flag):\n    A = 1\n    B = 2\n"
          "o_U = [K_U.A]", "(2.0 if OBJ[0] & K_U.A else 1.25)", "OBJ[0] = K_U.B"),
    _leaf("threading.local", "import threading\no_U = threading.local()\no_U.gain = 2.0",
          "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("subclass of threading.local", "import threading\nclass K_U(threading.local):\n"
          "    gain = 2.0\no_U = K_U()", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("contextvar", "import contextvars\no_U = contextvars.ContextVar('o_U', default=2.0)",
          "OBJ.get()", "OBJ.set(VAL)"),
    _leaf("weakref", "import weakref\nclass K_U:\n    gain = 2.0\nk_U = K_U()\n"
          "o_U = weakref.ref(k_U)", "OBJ().gain", "OBJ().gain = VAL"),
    _leaf("weakref proxy", "import weakref\nclass K_U:\n    gain = 2.0\nk_U = K_U()\n"
          "o_U = weakref.proxy(k_U)", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("WeakKeyDictionary", "import weakref\nclass K_U:\n    pass\nk_U = K_U()\n"
          "o_U = weakref.WeakKeyDictionary()\no_U[k_U] = 2.0", "OBJ[k_U]", "OBJ[k_U] = VAL"),
    # containers
    _leaf("list", "o_U = [2.0]", "OBJ[0]", "OBJ[0] = VAL", ordinary=True),
    _leaf("length of a list", "o_U = [0, 0]", "len(OBJ)", "OBJ.append(0)", ordinary=True),
    _leaf("dict", "o_U = {'gain': 2.0}", "OBJ['gain']", "OBJ['gain'] = VAL", ordinary=True),
    _leaf("dict.get", "o_U = {}", "OBJ.get('gain', 2.0)", "OBJ['gain'] = VAL", ordinary=True),
    _leaf("setdefault", "o_U = {'gain': 2.0}", "OBJ.setdefault('gain', 1.0)",
          "OBJ['gain'] = VAL"),
    _leaf("key of a dict", "o_U = {2.0: 1}", "next(iter(OBJ))", "OBJ.clear(); OBJ[VAL] = 1"),
    _leaf("order of a dict", "o_U = {'a': 2.0, 'b': 1.25}", "list(OBJ.values())[0]",
          "OBJ.update({'a': OBJ.pop('a')})"),
    _leaf("int keys", "o_U = {1: 2.0}", "OBJ[1]", "OBJ[1] = VAL", ordinary=True),
    _leaf("OrderedDict", "import collections\no_U = collections.OrderedDict(gain=2.0)",
          "OBJ['gain']", "OBJ['gain'] = VAL"),
    _leaf("OrderedDict order", "import collections\no_U = collections.OrderedDict(a=2.0, b=1.25)",
          "next(iter(OBJ.values()))", "OBJ.move_to_end('a')"),
    _leaf("defaultdict", "import collections\no_U = collections.defaultdict(lambda: 2.0)",
          "OBJ['gain']", "OBJ['gain'] = VAL"),
    _leaf("Counter", "import collections\no_U = collections.Counter(a=2)", "OBJ['a']",
          "OBJ['a'] = VAL"),
    _leaf("ChainMap", "import collections\nd_U = {'gain': 2.0}\n"
          "o_U = collections.ChainMap({}, d_U)", "OBJ['gain']", "d_U['gain'] = VAL"),
    _leaf("UserDict", "import collections\no_U = collections.UserDict(gain=2.0)", "OBJ['gain']",
          "OBJ['gain'] = VAL"),
    _leaf("UserList", "import collections\no_U = collections.UserList([2.0])", "OBJ[0]",
          "OBJ[0] = VAL"),
    _leaf("mappingproxy", "import types\nd_U = {'gain': 2.0}\no_U = types.MappingProxyType(d_U)",
          "OBJ['gain']", "d_U['gain'] = VAL"),
    _leaf("__missing__", "class K_U(dict):\n    gain = 2.0\n    def __missing__(self, k):\n"
          "        return K_U.gain\no_U = K_U()", "OBJ['a']", "K_U.gain = VAL"),
    _leaf("set", "o_U = {1}", "(2.0 if 1 in OBJ else 1.25)", "OBJ.discard(1)"),
    _leaf("size of a set", "o_U = {1, 2}", "len(OBJ)", "OBJ.add(VAL)"),
    _leaf("deque", "import collections\no_U = collections.deque([2.0, 1.25])", "OBJ[0]",
          "OBJ.rotate()"),
    _leaf("deque with maxlen", "import collections\no_U = collections.deque([1.25, 2.0], 2)",
          "OBJ[-1]", "OBJ.append(VAL)"),
    _leaf("array.array", "import array\no_U = array.array('d', [2.0])", "OBJ[0]",
          "OBJ[0] = VAL"),
    _leaf("bytearray", "o_U = bytearray([2])", "OBJ[0]", "OBJ[0] = int(VAL)"),
    _leaf("memoryview", "import array\na_U = array.array('d', [2.0])\no_U = memoryview(a_U)",
          "OBJ[0]", "a_U[0] = VAL"),
    _leaf("tuple with a list", "o_U = (1.0, [2.0])", "OBJ[1][0]", "OBJ[1][0] = VAL"),
    _leaf("namedtuple with a list", "import collections\n"
          "o_U = collections.namedtuple('P_U', 'a b')(1.0, [2.0])", "OBJ.b[0]", "OBJ.b[0] = VAL"),
    _leaf("NamedTuple default method", "from typing import NamedTuple\nclass K_U(NamedTuple):\n"
          "    a: float = 1.0\n    def get(self):\n        return self.a * K_U.gain\n"
          "K_U.gain = 2.0\no_U = K_U()", "OBJ.get()", "K_U.gain = VAL"),
    _leaf("slice object", "o_U = [slice(0, 2)]", "len(range(9)[OBJ[0]])",
          "OBJ[0] = slice(0, int(VAL))"),
    # NumPy
    _leaf("ndarray", "import numpy as np\no_U = np.array([2.0, 1.0])", "OBJ[0]", "OBJ[0] = VAL",
          ordinary=True),
    _leaf("0-d array", "import numpy as np\no_U = np.array(2.0)", "OBJ", "OBJ[()] = VAL"),
    _leaf("int array", "import numpy as np\no_U = np.array([2])", "OBJ[0]", "OBJ[0] = VAL"),
    _leaf("bool array", "import numpy as np\no_U = np.array([True])",
          "np.where(OBJ[0], 2.0, 1.25)", "OBJ[0] = False"),
    _leaf("object array", "import numpy as np\no_U = np.array([2.0, None], dtype=object)",
          "OBJ[0]", "OBJ[0] = VAL"),
    _leaf("read-only view", "import numpy as np\na_U = np.array([2.0, 1.0])\no_U = a_U[:]\n"
          "o_U.flags.writeable = False", "OBJ[0]", "a_U[0] = VAL"),
    _leaf("strided view", "import numpy as np\na_U = np.array([1.0, 2.0, 1.0, 3.0])\n"
          "o_U = a_U[1::2]", "OBJ[0]", "a_U[1] = VAL"),
    _leaf("broadcast view", "import numpy as np\na_U = np.array([2.0])\n"
          "o_U = np.broadcast_to(a_U, (3,))", "OBJ[2]", "a_U[0] = VAL"),
    _leaf("structured array", "import numpy as np\n"
          "o_U = np.array([(2.0, 1)], dtype=[('gain', float), ('n', int)])", "OBJ['gain'][0]",
          "OBJ['gain'][0] = VAL"),
    _leaf("recarray", "import numpy as np\n"
          "o_U = np.rec.array([(2.0, 1)], dtype=[('gain', float), ('n', int)])", "OBJ.gain[0]",
          "OBJ.gain[0] = VAL"),
    _leaf("masked array", "import numpy as np\no_U = np.ma.array([2.0, 1.0], mask=[False, True])",
          "OBJ[0]", "OBJ[0] = VAL"),
    _leaf("mask of a masked array", "import numpy as np\n"
          "o_U = np.ma.array([1.0, 1.0], mask=[False, False])", "OBJ.sum()",
          "OBJ.mask[0] = VAL != 2.0"),
    _leaf("np.matrix", "import numpy as np\no_U = np.matrix([[2.0]])", "OBJ[0, 0]",
          "OBJ[0, 0] = VAL"),
    _leaf("ndarray subclass attribute", "import numpy as np\nclass K_U(np.ndarray):\n    pass\n"
          "o_U = np.ones(2).view(K_U)\no_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL"),
    _leaf("flat iterator", "import numpy as np\na_U = np.array([2.0])\no_U = a_U.flat", "OBJ[0]",
          "a_U[0] = VAL"),
    _leaf("np.errstate dict", "import numpy as np\no_U = {'a': np.float64(2.0)}", "OBJ['a']",
          "OBJ['a'] = VAL", ordinary=True),
    _leaf("poly1d", "import numpy as np\no_U = np.poly1d([1.0, 0.0])", "OBJ(2.0)",
          "OBJ.coeffs[0] = VAL / 2"),
    _leaf("sparse matrix", "import scipy.sparse as sp\no_U = sp.csr_matrix([[2.0]])", "OBJ[0, 0]",
          "OBJ.data[0] = VAL"),
    _leaf("spline", "from scipy.interpolate import CubicSpline\n"
          "o_U = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 1.0, 4.0])", "OBJ(0.5 + 0.1 * y[0])",
          "OBJ.c[3, 0] = VAL", ordinary=True),
    # subclasses of builtins
    *[
        _leaf(f"attribute of a subclass of {base}", f"class K_U({base}):\n    pass\n"
              f"o_U = K_U({make})\no_U.gain = 2.0", "OBJ.gain", "OBJ.gain = VAL")
        for base, make in [("float", "1.5"), ("int", "3"), ("str", "'a'"), ("list", "[1.0]"),
                           ("dict", "a=1.0"), ("set", "{1}"), ("tuple", "(1.0,)"),
                           ("bytes", "b'a'"), ("complex", "1j"), ("frozenset", "{1}")]
    ],
    *[
        _leaf(f"class attribute of a subclass of {base}", f"class K_U({base}):\n    gain = 2.0\n"
              f"o_U = K_U({make})", "OBJ.gain", "K_U.gain = VAL")
        for base, make in [("float", "1.5"), ("list", "[1.0]"), ("dict", "a=1.0")]
    ],
    _leaf("float with its own __mul__", "class K_U(float):\n    gain = 2.0\n"
          "    def __mul__(self, other):\n        return K_U.gain * other\n"
          "o_U = K_U(5.0)", "(OBJ * 1.0)", "K_U.gain = VAL"),
    _leaf("list with its own __getitem__", "class K_U(list):\n    gain = 2.0\n"
          "    def __getitem__(self, i):\n        return K_U.gain\no_U = K_U([7.0])", "OBJ[0]",
          "K_U.gain = VAL"),
    _leaf("list with its own __iter__", "class K_U(list):\n    def __iter__(self):\n"
          "        return iter([self.gain])\no_U = K_U([7.0])\no_U.gain = 2.0",
          "[z for z in OBJ][0]", "OBJ.gain = VAL"),
    _leaf("dict with its own get", "class K_U(dict):\n    gain = 2.0\n"
          "    def __getitem__(self, i):\n        return self.gain\no_U = K_U(a=7.0)", "OBJ['a']",
          "OBJ.gain = VAL"),
    # C objects
    _leaf("ctypes", "import ctypes\no_U = ctypes.c_double(2.0)", "OBJ.value", "OBJ.value = VAL"),
    _leaf("ctypes array", "import ctypes\no_U = (ctypes.c_double * 2)(2.0, 1.0)", "OBJ[0]",
          "OBJ[0] = VAL"),
    _leaf("Fraction", "import fractions\no_U = [fractions.Fraction(2)]", "float(OBJ[0])",
          "OBJ[0] = fractions.Fraction(VAL)"),
    _leaf("Decimal", "import decimal\no_U = [decimal.Decimal(2)]", "float(OBJ[0])",
          "OBJ[0] = decimal.Decimal(VAL)"),
    _leaf("operator.attrgetter", "import operator, types\nn_U = types.SimpleNamespace(gain=2.0)\n"
          "o_U = operator.attrgetter('gain')", "OBJ(n_U)", "n_U.gain = VAL"),
    _leaf("operator.itemgetter", "import operator\nn_U = [2.0]\no_U = operator.itemgetter(0)",
          "OBJ(n_U)", "n_U[0] = VAL"),
    _leaf("os.environ", "import os\nos.environ['fuzz_U'] = '2.0'", "float(os.environ['fuzz_U'])",
          "os.environ['fuzz_U'] = str(VAL)"),
    _leaf("string", "o_U = ['2.0']", "float(OBJ[0])", "OBJ[0] = str(VAL)"),
    _leaf("mode string", "o_U = {'mode': 'fast'}", "(2.0 if OBJ['mode'] == 'fast' else 1.25)",
          "OBJ['mode'] = 'slow'", ordinary=True),
    _leaf("None", "o_U = [None]", "(2.0 if OBJ[0] is None else OBJ[0])", "OBJ[0] = VAL"),
    _leaf("lambda in a list", "o_U = [lambda: 2.0]", "OBJ[0]()",
          "OBJ[0] = eval('lambda: VAL')", writable=False),
    _leaf("function in a dict", "def two_U():\n    return 2.0\ndef more_U():\n    return 1.25\n"
          "o_U = {'f': two_U}", "OBJ['f']()", "OBJ['f'] = more_U", ordinary=True),
    _leaf("patched method", "class K_U:\n    def get(self):\n        return 2.0\n"
          "def more_U(self):\n    return 1.25\no_U = K_U()", "OBJ.get()", "K_U.get = more_U"),
    _leaf("changed class", "class K_U:\n    gain = 2.0\nclass L_U:\n    gain = 1.25\n"
          "o_U = K_U()", "OBJ.gain", "OBJ.__class__ = L_U"),
    _leaf("changed bases", "class A_U:\n    gain = 2.0\nclass B_U:\n    gain = 1.25\n"
          "class K_U(A_U):\n    pass\no_U = K_U()", "OBJ.gain", "K_U.__bases__ = (B_U,)"),
    _leaf("isinstance by ABC registration", "import abc\nclass A_U(abc.ABC):\n    pass\n"
          "class K_U:\n    pass\no_U = K_U()", "(1.25 if isinstance(OBJ, A_U) else 2.0)",
          "A_U.register(K_U)"),
    _leaf("__instancecheck__", "class M_U(type):\n    on = True\n"
          "    def __instancecheck__(cls, o):\n        return M_U.on\nclass A_U(metaclass=M_U):\n"
          "    pass\no_U = [1.0]", "(2.0 if isinstance(OBJ, A_U) else 1.25)", "M_U.on = False"),
    _leaf("singledispatch", "import functools\n@functools.singledispatch\ndef o_U(z):\n"
          "    return 2.0\ndef more_U(z):\n    return 1.25", "OBJ('a')",
          "OBJ.register(str, more_U)"),
    _leaf("rounding of numpy print", "import numpy as np\no_U = [np.float32(2.0)]", "OBJ[0]",
          "OBJ[0] = np.float32(VAL)"),
    _leaf("shadowed builtin", "abs_U = abs\ndef my_U(z):\n    return 1.25", "abs_U(-2.0)",
          "abs_U = my_U", declare="global abs_U"),
    _leaf("shadowed math", "import math as math_U\nimport types",
          "(1.0 + math_U.cos(0.0))", "math_U = types.SimpleNamespace(cos=lambda z: 0.25)",
          declare="global math_U"),
    # members asked for without writing their names
    _leaf("alias of hasattr", "has_U = hasattr\nclass K_U:\n    pass\no_U = K_U",
          "(1.25 if has_U(OBJ, 'gain') else 2.0)", "OBJ.gain = 1.25"),
    _leaf("alias of hasattr on an attribute that is there", "has_U = hasattr\nclass K_U:\n"
          "    gain = 1\no_U = K_U", "(2.0 if has_U(OBJ, 'gain') else 1.25)", "del OBJ.gain"),
    _leaf("alias of getattr", "get_U = getattr\nclass K_U:\n    gain = 2.0\no_U = K_U",
          "get_U(OBJ, 'gain', 1.0)", "OBJ.gain = VAL"),
    _leaf("getattr as a default", "class K_U:\n    gain = 2.0\no_U = K_U\n"
          "def f_U(o, get=getattr):\n    return get(o, 'gain', 1.0)", "f_U(OBJ)", "OBJ.gain = VAL"),
    _leaf("getattr in a partial", "import functools\nclass K_U:\n    gain = 2.0\no_U = K_U\n"
          "p_U = functools.partial(getattr, K_U, 'gain', 1.0)", "p_U()", "K_U.gain = VAL"),
    _leaf("getattr in a list", "class K_U:\n    gain = 2.0\no_U = K_U\nfs_U = [getattr]",
          "fs_U[0](OBJ, 'gain', 1.0)", "OBJ.gain = VAL"),
    _leaf("getattr with a made name", "class K_U:\n    gain = 2.0\no_U = K_U",
          "getattr(OBJ, 'ga' + 'in', 1.0)", "OBJ.gain = VAL"),
    _leaf("alias of vars", "vars_U = vars\nclass K_U:\n    gain = 2.0\no_U = K_U()\no_U.gain = 2.0",
          "vars_U(OBJ)['gain']", "OBJ.gain = VAL"),
    _leaf("alias of isinstance",
          "is_U = isinstance\nclass A_U:\n    pass\nclass B_U(A_U):\n    pass"
          "\no_U = B_U()", "(2.0 if is_U(OBJ, A_U) else 1.25)", "OBJ.__class__ = A_U"),
    _leaf("str.format", "class K_U:\n    gain = 2.0\no_U = K_U()",
          "float('{0.gain}'.format(OBJ))", "K_U.gain = VAL"),
    _leaf("str.format_map", "class K_U:\n    gain = 2.0\no_U = K_U()",
          "float('{o.gain}'.format_map({'o': OBJ}))", "K_U.gain = VAL"),
    _leaf("f-string", "class K_U:\n    gain = 2.0\no_U = K_U()", "float(f'{OBJ.gain}')",
          "K_U.gain = VAL"),
    _leaf("match keyword", "class K_U:\n    gain = 2.0\no_U = K_U()\ndef f_U(o):\n    match o:\n"
          "        case K_U(gain=g):\n            return g\n    return 1.0", "f_U(OBJ)",
          "K_U.gain = VAL"),
    _leaf("match positional", "class K_U:\n    __match_args__ = ('gain',)\n    gain = 2.0\n"
          "o_U = K_U()\ndef f_U(o):\n    match o:\n        case K_U(g):\n            return g\n"
          "    return 1.0", "f_U(OBJ)", "K_U.gain = VAL"),
    _leaf("match args", "class K_U:\n    __match_args__ = ('a',)\n    a = 2.0\n    b = 1.25\n"
          "o_U = K_U()\ndef f_U(o):\n    match o:\n        case K_U(g):\n            return g\n"
          "    return 1.0", "f_U(OBJ)", "K_U.__match_args__ = ('b',)"),
    _leaf("match mapping", "o_U = {'gain': 2.0}\ndef f_U(o):\n    match o:\n"
          "        case {'gain': g, **rest}:\n            return g + len(rest)\n    return 1.0",
          "f_U(OBJ)", "OBJ['more'] = 1"),
    _leaf("attrgetter of a class attribute", "import operator\nclass K_U:\n    gain = 2.0\n"
          "o_U = K_U", "operator.attrgetter('gain')(OBJ)", "OBJ.gain = VAL"),
    _leaf("methodcaller", "import operator\nclass K_U:\n    gain = 2.0\n    def get(self):\n"
          "        return self.gain\no_U = K_U()", "operator.methodcaller('get')(OBJ)",
          "K_U.gain = VAL"),
    _leaf("key by attrgetter", "import operator\nclass K_U:\n    gain = 2.0\no_U = K_U()",
          "max([OBJ], key=operator.attrgetter('gain')).gain", "K_U.gain = VAL"),
    _leaf("super attribute", "class B_U:\n    gain = 2.0\nclass K_U(B_U):\n    gain = 5.0\n"
          "    def get(self):\n        return super().gain\no_U = K_U()", "OBJ.get()",
          "B_U.gain = VAL", ordinary=True),
    _leaf("asdict",
          "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n    gain: float = 2.0\n"
          "o_U = K_U()", "sum(dataclasses.asdict(OBJ).values())", "OBJ.gain = VAL"),
    _leaf("fields",
          "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n    gain: float = 2.0\n"
          "o_U = K_U()", "sum(getattr(OBJ, f.name) for f in dataclasses.fields(OBJ))",
          "OBJ.gain = VAL"),
    _leaf("default of a dataclass", "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n"
          "    gain: float = 2.0\no_U = K_U", "OBJ().gain", "OBJ.__init__.__defaults__ = (VAL,)"),
    _leaf("order of a dataclass", "import dataclasses\n@dataclasses.dataclass(order=True)\n"
          "class K_U:\n    gain: float = 2.0\no_U = K_U()", "(2.0 if OBJ > K_U(1.5) else 1.25)",
          "OBJ.gain = 1.25"),
    _leaf("total_ordering", "import functools\n@functools.total_ordering\nclass K_U:\n"
          "    gain = 2.0\n    def __eq__(self, o):\n        return self.gain == o\n"
          "    def __lt__(self, o):\n        return self.gain < o\no_U = K_U()",
          "(2.0 if OBJ >= 1.5 else 1.25)", "K_U.gain = 1.25"),
    _leaf("NewType and Literal", "from typing import NewType\nG_U = NewType('G_U', float)\n"
          "o_U = [G_U(2.0)]", "OBJ[0]", "OBJ[0] = VAL"),
    _leaf("Protocol", "from typing import Protocol\nclass P_U(Protocol):\n    gain: float\n"
          "class K_U(P_U):\n    gain = 2.0\no_U = K_U()", "OBJ.gain", "K_U.gain = VAL"),
    _leaf("Generic", "from typing import Generic, TypeVar\nT_U = TypeVar('T_U')\n"
          "class K_U(Generic[T_U]):\n    gain = 2.0\no_U = K_U[float]()", "OBJ.gain",
          "K_U.gain = VAL"),
    _leaf("enum by name", "import enum\nclass K_U(enum.Enum):\n    A = 2.0\n    B = 1.25\n"
          "o_U = {'k': 'A'}", "K_U[OBJ['k']].value", "OBJ['k'] = 'B'"),
    _leaf("enum by value", "import enum\nclass K_U(enum.Enum):\n    A = 2.0\n    B = 1.25\n"
          "o_U = [2.0]", "K_U(OBJ[0]).value", "OBJ[0] = 1.25"),
    _leaf("enum iteration", "import enum\nclass K_U(enum.Enum):\n    A = 2.0\n    B = 1.25\n"
          "o_U = [0]", "[e.value for e in K_U][OBJ[0]]", "OBJ[0] = 1"),
    _leaf("enum method", "import enum\nclass K_U(enum.Enum):\n    A = 1\n    def get(self):\n"
          "        return g_U[0]\ng_U = [2.0]\no_U = K_U.A", "OBJ.get()", "g_U[0] = VAL"),
    _leaf("enum comparison", "import enum\nclass K_U(enum.Enum):\n    A = 1\n    B = 2\n"
          "o_U = [K_U.A]", "(2.0 if OBJ[0] is K_U.A else 1.25)", "OBJ[0] = K_U.B", ordinary=True),
    # order and identity
    _leaf("order of a set", "o_U = set()\no_U.add(8)\no_U.add(0)", "(2.0 if next(iter(OBJ)) == 8 "
          "else 1.25)", "OBJ.clear(); OBJ.add(0); OBJ.add(8)"),
    _leaf("order of a set that was larger", "o_U = set(range(100))\n"
          "o_U -= set(range(100)) - {2, 9}\nfor k in range(100):\n    if k not in (2, 9):\n"
          "        o_U.discard(k)", "(2.0 if next(iter(OBJ)) == 2 else 1.25)",
          "OBJ.clear(); OBJ.add(2); OBJ.add(9)"),
    _leaf("order of a frozenset", "o_U = [frozenset([8, 0])]",
          "(2.0 if next(iter(OBJ[0])) == 8 else "
          "1.25)", "OBJ[0] = frozenset([0, 8])"),
    _leaf("order of a set of floats", "o_U = {2.0, 1e17, 3.5}", "sum(OBJ) - 1e17", "OBJ.add(VAL)"),
    _leaf("identity of two lists", "p_U = [0]\no_U = [p_U, p_U]", "(2.0 if OBJ[0] is OBJ[1] else "
          "1.25)", "OBJ[1] = list(p_U)"),
    _leaf("identity of two arrays", "import numpy as np\np_U = np.ones(2)\no_U = [p_U, p_U]",
          "(2.0 if OBJ[0] is OBJ[1] else 1.25)", "OBJ[1] = p_U.copy()"),
    _leaf("shared memory", "import numpy as np\np_U = np.ones(4)\no_U = [p_U, p_U[:2]]",
          "(2.0 if np.shares_memory(OBJ[0], OBJ[1]) else 1.25)", "OBJ[1] = OBJ[1].copy()"),
    _leaf("writeable flag", "import numpy as np\no_U = np.ones(2)",
          "(2.0 if OBJ.flags.writeable else 1.25)", "OBJ.flags.writeable = False"),
    _leaf("base of an array", "import numpy as np\np_U = np.ones(4)\no_U = [p_U[:2]]",
          "(1.25 if OBJ[0].base is None else 2.0)", "OBJ[0] = OBJ[0].copy()"),
    _leaf("strides of an array", "import numpy as np\np_U = np.ones(4)\no_U = [p_U[::2]]",
          "OBJ[0].strides[0] / 8", "OBJ[0] = OBJ[0].copy()"),
    _leaf("dtype of an array", "import numpy as np\no_U = [np.array([7], dtype=np.int8)]",
          "2.0 * OBJ[0].dtype.itemsize", "OBJ[0] = np.array([7])"),
    _leaf("int8 overflow", "import numpy as np\no_U = np.array([100, 1], dtype=np.int8)",
          "1e-2 * (OBJ[0] + OBJ[0])", "OBJ[0] = 5"),
    _leaf("shape of an array", "import numpy as np\no_U = np.ones((2, 3))", "OBJ.shape[0]",
          "OBJ.shape = (3, 2)"),
    _leaf("int or float", "o_U = [5]", "(OBJ[0] / 2 if isinstance(OBJ[0], int) else 1.25)",
          "OBJ[0] = 5.0"),
    _leaf("bool or int", "o_U = [True]", "(2.0 if OBJ[0] is True else 1.25)", "OBJ[0] = 1"),
    _leaf("negative zero", "import math\no_U = [0.0]", "(math.copysign(0.5, OBJ[0]) + 1.5)",
          "OBJ[0] = -0.0"),
    _leaf("nan", "import math\no_U = [math.nan]", "(2.0 if OBJ[0] != OBJ[0] else 1.25)",
          "OBJ[0] = 1.0"),
    _leaf("np.float64 or float", "import numpy as np\no_U = [np.float64(2.0)]",
          "(2.0 if isinstance(OBJ[0], np.floating) else 1.25)", "OBJ[0] = 2.0"),
    # what is cached
    _leaf("lru_cache that is not cleared", "import functools\ng_U = [2.0]\n@functools.lru_cache\n"
          "def o_U():\n    return g_U[0]", "OBJ()", "g_U[0] = VAL"),
    _leaf("cached_property that is filled", "import functools\ng_U = [2.0]\nclass K_U:\n"
          "    @functools.cached_property\n    def gain(self):\n        return g_U[0]\no_U = K_U()",
          "OBJ.gain", "g_U[0] = VAL"),
    _leaf("njit with a global",
          "try:\n    import numba\n    jit_U = numba.njit\nexcept ImportError:\n"
          "    jit_U = lambda f: f\ng_U = 2.0\n@jit_U\ndef o_U(z):\n    return g_U * z", "OBJ(1.0)",
          "g_U = VAL", declare="global g_U"),
    # patched libraries and names
    _leaf("attribute of math", "import math\nmath.fuzz_U = 2.0", "math.fuzz_U",
          "math.fuzz_U = VAL"),
    _leaf("attribute of numpy", "import numpy as np\nnp.fuzz_U = 2.0", "np.fuzz_U",
          "np.fuzz_U = VAL"),
    _leaf("name of a builtin", "def f_U():\n    return min_U(2.0, 1.25)\nmin_U = max",
          "f_U()", "min_U = min", declare="global min_U"),
    _leaf("two names of builtins", "def f_U():\n    return min(2.0, 1.0) + max(0.0, 1.0)\n"
          "def zero_U(*a):\n    return 1.0", "f_U()", "min = zero_U", declare="global min"),
    _leaf("function named as a builtin", "def abs(z):\n    return 2.0", "abs(-1.25)", "del abs",
          declare="global abs"),
]
