"""What changes by being read or called: (name, setup, expression).

A function that uses one of them has a memory of its own and cannot be traced.
"""

MEMORY = [
    # what changes by being read: (setup, read)
    ("itertools.count", "import itertools\no_U = itertools.count()", "1e-3 * next(o_U)"),
    ("itertools.cycle", "import itertools\no_U = itertools.cycle([1.0, 2.0])", "next(o_U)"),
    ("generator", "def g_U():\n    k = 0.0\n    while True:\n        k += 1e-3\n        yield k\n"
     "o_U = g_U()", "next(o_U)"),
    ("generator by send", "def g_U():\n    k = 0.0\n    while True:\n        k += yield k\n"
     "o_U = g_U()\nnext(o_U)", "o_U.send(1e-3)"),
    ("iterator of a list", "o_U = iter([0.1 * k for k in range(10**6)])", "next(o_U)"),
    ("iterator of a range", "o_U = iter(range(10**9))", "1e-3 * next(o_U)"),
    ("zip", "o_U = zip(range(10**9), range(10**9))", "1e-3 * next(o_U)[0]"),
    ("map", "o_U = map(float, range(10**9))", "1e-3 * next(o_U)"),
    ("enumerate", "import itertools\no_U = enumerate(itertools.repeat(0))", "1e-3 * next(o_U)[0]"),
    ("callable iterator", "c_U = [0]\ndef tick_U():\n    c_U[0] += 1\n    return c_U[0]\n"
     "o_U = iter(tick_U, -1)", "1e-3 * next(o_U)"),
    ("random", "import random", "random.random()"),
    ("random.Random", "import random\no_U = random.Random(1)", "o_U.random()"),
    ("np.random", "import numpy as np", "np.random.rand()"),
    ("Generator", "import numpy as np\no_U = np.random.default_rng(1)", "o_U.random()"),
    ("method of a Generator", "import numpy as np\no_U = np.random.default_rng(1).random",
     "o_U()"),
    ("list.pop", "o_U = [0.1] * 10**6", "o_U.pop()"),
    ("deque.popleft", "import collections\no_U = collections.deque([0.1] * 10**6)",
     "o_U.popleft()"),
    ("queue", "import queue\no_U = queue.Queue()\no_U.put(1.0)",
     "o_U.qsize() + (o_U.put(1.0) or 0)"),
    ("StringIO", "import io\no_U = io.StringIO('a' * 10**6)", "len(o_U.read(1)) + o_U.tell()"),
    ("time", "import time", "time.perf_counter()"),
    ("datetime", "import datetime", "datetime.datetime.now().microsecond"),
    ("id of a new object", "", "id(object()) % 7"),
    ("uuid", "import uuid", "uuid.uuid4().int % 99991 / 1e4"),
    ("descriptor that counts", "class D_U:\n    n = 0\n    def __get__(self, obj, owner=None):\n"
     "        D_U.n += 1\n        return 1e-3 * D_U.n\nclass K_U:\n    gain = D_U()\no_U = K_U()",
     "o_U.gain"),
    ("property that counts", "class K_U:\n    n = 0\n    @property\n    def gain(self):\n"
     "        self.n += 1\n        return 1e-3 * self.n\no_U = K_U()", "o_U.gain"),
    ("__getattr__ that counts", "class K_U:\n    def __getattr__(self, name):\n"
     "        self.__dict__['k'] = self.__dict__.get('k', 0) + 1\n        return 1e-3 * self.k\n"
     "o_U = K_U()", "o_U.gain"),
    ("__call__ that counts", "class K_U:\n    n = 0\n    def __call__(self):\n"
     "        self.n += 1\n        return 1e-3 * self.n\no_U = K_U()", "o_U()"),
    ("metaclass __call__", "class M_U(type):\n    n = 0\n    def __call__(cls):\n"
     "        M_U.n += 1\n        return 1e-3 * M_U.n\nclass o_U(metaclass=M_U):\n    pass",
     "o_U()"),
    ("__new__ that counts", "class K_U:\n    n = 0\n    def __new__(cls):\n        K_U.n += 1\n"
     "        return super().__new__(cls)", "1e-3 * K_U().n"),
    ("__init__ that counts", "class K_U:\n    n = 0\n    def __init__(self):\n"
     "        type(self).n += 1", "1e-3 * K_U().n"),
    ("__del__ that counts", "class K_U:\n    n = 0\n    def __del__(self):\n        K_U.n += 1",
     "1e-3 * K_U().n"),
    ("dataclass __post_init__", "import dataclasses\n@dataclasses.dataclass\nclass K_U:\n"
     "    a: float = 1.0\n    def __post_init__(self):\n        K_U.n += 1\nK_U.n = 0",
     "1e-3 * K_U().n"),
    ("default_factory", "import collections, itertools\nc_U = itertools.count()\n"
     "o_U = collections.defaultdict(lambda: next(c_U))", "1e-3 * o_U[len(o_U)]"),
    ("__eq__ that counts", "class K_U:\n    n = 0\n    def __eq__(self, o):\n        K_U.n += 1\n"
     "        return True\n    def __hash__(self):\n        return 1\no_U = K_U()",
     "(o_U == 1) * 1e-3 * K_U.n"),
    ("__len__ that counts", "class K_U:\n    n = 0\n    def __len__(self):\n        K_U.n += 1\n"
     "        return K_U.n\no_U = K_U()", "1e-3 * len(o_U)"),
    ("__bool__ that counts", "class K_U:\n    n = 0\n    def __bool__(self):\n        K_U.n += 1\n"
     "        return K_U.n > 9\no_U = K_U()", "(1.0 if o_U else 2.0)"),
    ("__iter__ that counts", "class K_U:\n    n = 0\n    def __iter__(self):\n        K_U.n += 1\n"
     "        return iter([1e-3 * K_U.n])\no_U = K_U()", "sum(o_U)"),
    ("__radd__ that counts",
     "class K_U:\n    n = 0\n    def __radd__(self, o):\n        K_U.n += 1\n"
     "        return o + 1e-3 * K_U.n\no_U = K_U()", "(x + o_U)"),
    ("__array__ that counts", "import numpy as np\nclass K_U:\n    n = 0\n"
     "    def __array__(self, dtype=None, copy=None):\n        K_U.n += 1\n"
     "        return np.array([1e-3 * K_U.n])\no_U = K_U()", "np.sum(o_U)"),
    ("__format__ that counts", "class K_U:\n    n = 0\n    def __format__(self, s):\n"
     "        K_U.n += 1\n        return '1.0'\no_U = K_U()", "float(f'{o_U}') * 1e-3 * K_U.n"),
    ("__exit__ that counts", "class K_U:\n    n = 0\n    def __enter__(self):\n"
     "        return 1e-3 * K_U.n\n    def __exit__(self, *e):\n        K_U.n += 1\n"
     "def use_U():\n    with K_U() as k:\n        return k", "use_U()"),
    ("sort key that counts", "n_U = []\ndef key_U(z):\n    n_U.append(z)\n    return z",
     "sorted([1.0, 2.0], key=key_U)[0] * len(n_U)"),
    ("lru_cache misses", "import functools\n@functools.lru_cache\ndef o_U(z):\n    return 1.0",
     "o_U(x) * 1e-3 * o_U.cache_info().misses"),
    ("atexit-like registry", "r_U = []", "(r_U.append(x) or 1e-3 * len(r_U))"),
    ("set.add", "r_U = set()", "(r_U.add(float(t)) or 1e-3 * len(r_U))"),
    ("dict.update", "r_U = {}", "(r_U.update({float(t): 1}) or 1e-3 * len(r_U))"),
    ("list extend", "r_U = []", "(r_U.extend([t]) or 1e-3 * len(r_U))"),
    ("list +=", "r_U = [[]]\ndef grow_U():\n    r_U[0] += [1]\n    return 1e-3 * len(r_U[0])",
     "grow_U()"),
    ("array +=", "import numpy as np\nr_U = np.zeros(2)\ndef grow_U():\n    a = r_U[:1]\n"
     "    a += 1e-3\n    return r_U[0]", "grow_U()"),
    ("np.add out=", "import numpy as np\nr_U = np.zeros(2)", "np.add(r_U, 1e-3, out=r_U)[0]"),
    ("np.copyto", "import numpy as np\nr_U = np.zeros(2)",
     "(np.copyto(r_U, r_U + 1e-3) or r_U[0])"),
    ("ndarray.fill", "import numpy as np\nr_U = np.zeros(2)",
     "(r_U.fill(r_U[0] + 1e-3) or r_U[0])"),
    ("ndarray.sort", "import numpy as np\nr_U = np.array([3.0, 1.0])",
     "(r_U[0] + 0 * (r_U.sort() or 0))"),
    ("np.put", "import numpy as np\nr_U = np.zeros(2)",
     "(np.put(r_U, 0, r_U[0] + 1e-3) or r_U[0])"),
    ("np.add.at", "import numpy as np\nr_U = np.zeros(2)", "(np.add.at(r_U, [0], 1e-3) or r_U[0])"),
    ("operator.setitem", "import operator\nr_U = [0.0]",
     "(operator.setitem(r_U, 0, r_U[0] + 1e-3) or r_U[0])"),
    ("setattr", "import types\nr_U = types.SimpleNamespace(a=0.0)",
     "(setattr(r_U, 'a', r_U.a + 1e-3) or r_U.a)"),
    ("list.__setitem__", "r_U = [0.0]", "(list.__setitem__(r_U, 0, r_U[0] + 1e-3) or r_U[0])"),
    ("heapq", "import heapq\nr_U = []", "(heapq.heappush(r_U, 1.0) or 1e-3 * len(r_U))"),
    ("walrus in a comprehension", "k_U = 0.0\ndef f_U():\n    global k_U\n"
     "    [k_U := k_U + 1e-3 for _ in range(2)]\n    return k_U", "f_U()"),
    ("for target attribute", "class K_U:\n    a = 0\ndef f_U():\n    for K_U.a in [K_U.a + 1]:\n"
     "        pass\n    return 1e-3 * K_U.a", "f_U()"),
    ("for target item", "r_U = [0]\ndef f_U():\n    for r_U[0] in [r_U[0] + 1]:\n"
     "        pass\n    return 1e-3 * r_U[0]", "f_U()"),
    ("with target", "import contextlib\nr_U = [0]\ndef f_U():\n"
     "    with contextlib.nullcontext(r_U[0] + 1) as r_U[0]:\n        return 1e-3 * r_U[0]",
     "f_U()"),
    ("import target", "k_U = 0\ndef f_U():\n    global k_U\n    k_U += 1\n    import math as m\n"
     "    return 1e-3 * k_U", "f_U()"),
    ("global def", "def h_U():\n    return 0.0\ndef f_U():\n    global h_U\n    v = h_U() + 1e-3\n"
     "    def h_U():\n        return v\n    return v", "f_U()"),
    ("global class", "class C_U:\n    a = 0.0\ndef f_U():\n    global C_U\n    v = C_U.a + 1e-3\n"
     "    class C_U:\n        a = v\n    return v", "f_U()"),
    ("global del",
     "k_U = 1.0\ndef f_U():\n    global k_U\n    try:\n        v = k_U\n        del k_U\n"
     "    except NameError:\n        v = 0.0\n    return v", "f_U()"),
    ("del item", "r_U = {k: 1.0 for k in range(10**4)}\ndef f_U():\n    if r_U:\n"
     "        del r_U[next(iter(r_U))]\n    return 1e-3 * len(r_U)", "f_U()"),
    ("del slice", "r_U = [1.0] * 10**4\ndef f_U():\n    del r_U[:1]\n    return 1e-3 * len(r_U)",
     "f_U()"),
    ("del attribute", "class K_U:\n    pass\nK_U.a = 1.0\ndef f_U():\n    if hasattr(K_U, 'a'):\n"
     "        del K_U.a\n        return 1.0\n    return 2.0", "f_U()"),
    ("slice assignment", "r_U = [0.0]\ndef f_U():\n    r_U[:] = [r_U[0] + 1e-3]\n    return r_U[0]",
     "f_U()"),
    ("star assignment", "r_U = [[0.0]]\ndef f_U():\n    a, *r_U[0] = [1.0, r_U[0][0] + 1e-3]\n"
     "    return r_U[0][0]", "f_U()"),
    ("match capture", "class K_U:\n    a = 0\ndef f_U():\n    match [K_U.a + 1]:\n"
     "        case [z]:\n            K_U.a = z\n    return 1e-3 * K_U.a", "f_U()"),
    ("exec", "ns_U = {'k': 0.0}\ndef f_U():\n    exec('k += 1e-3', ns_U)\n    return ns_U['k']",
     "f_U()"),
    ("function __dict__", "def f_U():\n    f_U.k = getattr(f_U, 'k', 0.0) + 1e-3\n    return f_U.k",
     "f_U()"),
    ("default as memory", "def f_U(m=[0.0]):\n    m[0] += 1e-3\n    return m[0]", "f_U()"),
    ("closure as memory", "def make_U():\n    k = 0.0\n    def f():\n        nonlocal k\n"
     "        k += 1e-3\n        return k\n    return f\nf_U = make_U()", "f_U()"),
    ("super().__setattr__", "class K_U:\n    a = 0.0\n    def bump(self):\n"
     "        super().__setattr__('a', self.a + 1e-3)\n        return self.a\no_U = K_U()",
     "o_U.bump()"),
    ("object.__setattr__", "class K_U:\n    a = 0.0\no_U = K_U()\ndef f_U():\n"
     "    object.__setattr__(o_U, 'a', o_U.a + 1e-3)\n    return o_U.a", "f_U()"),
    ("type.__setattr__", "class K_U:\n    a = 0.0\ndef f_U():\n"
     "    type.__setattr__(K_U, 'a', K_U.a + 1e-3)\n    return K_U.a", "f_U()"),
    ("warnings registry", "import warnings\ndef f_U():\n    warnings.warn('a')\n"
     "    return 1e-3 * len(globals().get('__warningregistry__', ()))", "f_U()"),
    ("logging", "import logging\nclass H_U(logging.Handler):\n    n = 0\n    def emit(self, r):\n"
     "        H_U.n += 1\nlog_U = logging.getLogger('fuzz_U')\nlog_U.addHandler(H_U())\n"
     "log_U.propagate = False\ndef f_U():\n    log_U.warning('a')\n    return 1e-3 * H_U.n",
     "f_U()"),
    ("sys attribute", "import sys\nsys.fuzz_U = 0.0\ndef f_U():\n    sys.fuzz_U += 1e-3\n"
     "    return sys.fuzz_U", "f_U()"),
    ("builtins attribute", "import builtins\nbuiltins.fuzz_U = 0.0\ndef f_U():\n"
     "    builtins.fuzz_U += 1e-3\n    return fuzz_U", "f_U()"),
    ("async", "c_U = [0.0]\nasync def a_U():\n    c_U[0] += 1e-3\n    return c_U[0]\ndef f_U():\n"
     "    co = a_U()\n    try:\n        co.send(None)\n    except StopIteration as e:\n"
     "        return e.value", "f_U()"),
    ("thread", "import threading\nc_U = [0.0]\ndef work_U():\n    c_U[0] += 1e-3\ndef f_U():\n"
     "    th = threading.Thread(target=work_U)\n    th.start()\n    th.join()\n    return c_U[0]",
     "f_U()"),
    ("contextmanager", "import contextlib\nc_U = [0.0]\n@contextlib.contextmanager\ndef cm_U():\n"
     "    c_U[0] += 1e-3\n    yield c_U[0]\ndef f_U():\n    with cm_U() as k:\n        return k",
     "f_U()"),
    ("finally", "c_U = [0.0]\ndef f_U():\n    try:\n        return c_U[0]\n    finally:\n"
     "        c_U[0] += 1e-3", "f_U()"),
    ("assert", "c_U = [0.0]\ndef f_U():\n    assert c_U.append(1.0) is None\n"
     "    return 1e-3 * len(c_U)", "f_U()"),
    ("class body", "c_U = [0.0]\ndef f_U():\n    class K:\n        c_U[0] += 1e-3\n"
     "    return c_U[0]", "f_U()"),
    ("lambda default", "c_U = [0.0]\ndef bump_U():\n    c_U[0] += 1e-3\n    return c_U[0]\n"
     "def f_U():\n    g = lambda z=bump_U(): z\n    return g()", "f_U()"),
    ("decorator", "c_U = [0.0]\ndef count_U(f):\n    def inner(*a):\n        c_U[0] += 1e-3\n"
     "        return f(*a)\n    return inner\n@count_U\ndef f_U():\n    return c_U[0]", "f_U()"),
    ("any with effects", "c_U = [0.0]\ndef bump_U(z):\n    c_U[0] += 1e-3\n    return False\n"
     "def f_U():\n    any(bump_U(k) for k in range(3))\n    return c_U[0]", "f_U()"),
    ("local dataclass with shared list", "import dataclasses\nc_U = []\n@dataclasses.dataclass\n"
     "class K_U:\n    a: list\ndef f_U():\n    K_U(c_U).a.append(1)\n    return 1e-3 * len(c_U)",
     "f_U()"),
]
