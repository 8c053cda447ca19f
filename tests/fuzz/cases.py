"""Whole modules put together from values, holders, boxes, memories and shells."""

import random
import re
import textwrap
from dataclasses import dataclass, field

from fuzz.arguments import ARGUMENTS, WRITES
from fuzz.boxes import BOXES
from fuzz.holders import LEAVES
from fuzz.memory import MEMORY
from fuzz.shells import SHELLS, fill
from fuzz.values import VALUES

HEADER = """\
import array, bisect, cmath, collections, contextlib, copy, decimal, fractions, functools
import itertools, json, math, numbers, operator, pickle, random, statistics, struct, warnings
import types
import numpy as np
import scipy.special, scipy.linalg, scipy.integrate, scipy.optimize, scipy.interpolate
"""
SCALARS = ["y[0]", "y[1]", "y[0] * y[1]", "y[0] - 0.5", "t", "3.0 * y[0] - 1.0", "y[1] - y[0]",
           "float(y[0])", "0.8 - t", "-y[0]", "y[0] + p", "(y[0] > 0.5)",
           "np.float64(0.5) + 0.0 * t"]
NOT_ALWAYS_A_NUMBER = ["np.sqrt(y[0] - 0.5)", "1.0 / (y[0] - 0.5)", "np.log(y[0] - 0.5)"]
USES = ["x * READ", "x + READ", "READ", "x ** READ", "x if READ > 1.5 else 0.5 * x",
        "math.sin(READ * x)", "READ * t", "(READ > 1.5) + x", "np.array([x, READ]).sum()",
        "READ / (1.0 + x * x)", "max(x, 0.25 * READ)", "READ ** 2 + t"]
PLACES = {
    "start": "BODY",
    "hidden by y": "w = 0.5\nif y[0] < 0.5:\n    BODY",
    "hidden by t": "w = 0.5\nif t > 0.6:\n    BODY",
    "elsewhere": "w = 0.5\nif y[0] > 3.0:\n    BODY",
    "else": "if y[0] > 0.5 and t < 0.6:\n    w = 0.5\nelse:\n    BODY",
    "nested": "w = 0.5\nif y[0] < 0.6:\n    if t > 0.4:\n        BODY",
    "while": "w = 0.5\nk_ = 0\nwhile y[0] < 0.5 and k_ < 1:\n    k_ += 1\n    BODY",
    "expression": None,      # f(...) if y[0] < 0.5 else 0.5
    "and": None,             # y[0] < 0.5 and f(...)
}
ROWS = {
    "squashed": "[yp[0] + y[0] - 0.1, yp[1] + y[1] - 0.3 * w / (1.0 + w * w), "
                "yp[2] + y[2] - 0.5 * y[0]]",
    "plain": "np.array([yp[0] + y[0] - 0.1, yp[1] + 0.5 * y[1] - w, yp[2] + y[2] - 0.5 * y[0]])",
    "algebraic": "[yp[0] + y[0] - 0.1, yp[1] + y[1] - 0.2 * y[0], y[2] - w]",
}
WRAPPINGS = ["plain", "plain", "plain", "method", "callable", "closure", "partial", "lambda",
             "decorated", "class attribute"]


@dataclass
class Case:
    """A module with a residual `fun`, and what is known about it."""

    source: str
    name: str
    memory: bool = False       # changes from call to call, or writes: must be called
    ordinary: bool = False     # must be traced
    zero: bool = False         # multiplies by zero: what is not a number may become one
    # statements after which it is another function, with VAL for a number
    changes: list = field(default_factory=list)
    args: str = "()"
    others: list = field(default_factory=list)     # further arguments for another run
    seed: object = None


class Grammar:
    """Cases made at random from one seed."""

    def __init__(self, seed):
        self.seed = seed
        self.random = random.Random(seed)
        self.number = 0
        self.setup = []
        self.names = []
        self.ordinary = True
        self.changes = []
        self.memory = False
        self.zero = False
        self.args = ""
        self.others = []

    def next(self, items):
        """Choose one."""
        return self.random.choice(items)

    def fresh(self):
        """Return a number that no name has yet."""
        self.number += 1
        return self.number

    def case(self):
        """Return a case."""
        kind = self.random.choices(
            ["value", "two values", "state", "write", "remember", "argument", "write argument"],
            [8, 3, 9, 5, 3, 5, 1])[0]
        block = getattr(self, kind.replace(" ", "_"))()
        for _ in range(self.random.choices([0, 1, 2], [3, 4, 2])[0]):
            block = self.shell(block)
        place = self.next(list(PLACES))
        self.names.append(place)
        block = self.place(block, place)
        return self.finish(block)

    # --- what is computed -----------------------------------------------------------------------

    def value(self):
        """Compute something."""
        value = self.next(VALUES)
        self.note(value.name, value.ordinary)
        self.zero = self.zero or value.zero
        return value.block

    def two_values(self):
        """Compute with what was computed."""
        first, second = self.value(), self.value()
        return f"{first}\nx = w\n{second}"

    def state(self, leaf=None, boxes=None, use=None):
        """Read a number that is kept somewhere."""
        leaf, obj = self.holder(leaf, boxes)
        read = leaf.read.replace("OBJ", obj)
        write = leaf.write.replace("OBJ", obj if self.random.random() < 0.5 else leaf_name(leaf))
        self.changes.append(write)
        return "w = " + self.number_it((use or self.next(USES)).replace("READ", read))

    def write(self, leaf=None, boxes=None, new=None, when=None, order=None):
        """Write a number that is read, or nothing but written."""
        leaf, obj = self.holder(leaf or self.next([x for x in LEAVES if x.writable]), boxes)
        read = leaf.read.replace("OBJ", obj)
        write = leaf.write.replace("OBJ", obj)
        new = new or self.next(["1.25", "x", "t", "1.0 + t", f"0.5 * ({read}) + 0.5",
                                "np.array(x)"])
        if "int(VAL)" in write or "str(VAL)" in write or "'VAL" in write or "= VAL'" in write:
            new = "1.25"
        when = when or self.next(["{}", "if y[0] < 0.4:\n    {}", "if t > 0.7:\n    {}",
                          "for _ in range(2):\n    {}", "try:\n    {}\nfinally:\n    pass"])
        order = order or self.next(["before", "after", "never"])
        write = when.format(write.replace("VAL", new))
        use = "w = " + self.next(USES).replace("READ", read)
        lines = {"before": [write, use], "after": [use, write], "never": [write, "w = x"]}[order]
        block = "\n".join([leaf.declare, *lines]).strip()
        self.memory = True
        self.note(f"written ({new}, read {order})", False)
        block = self.number_it(block)
        if leaf.declare:     # a name may be global in one function and local in another
            return self.enclose(block, SHELLS[0])
        return block

    def remember(self, memory=None):
        """Use something that changes by being used."""
        name, setup, read = memory or self.next(MEMORY)
        number = self.fresh()
        self.note(name, False)
        self.memory = True
        self.setup.append(setup.replace("_U", f"_{number}"))
        return "w = x + " + read.replace("_U", f"_{number}")

    def argument(self, argument=None, use=None):
        """Use further arguments."""
        name, setup, args, other, uses, ordinary = argument or self.next(ARGUMENTS)
        number = f"_{self.fresh()}"
        use = use or self.next(uses)
        self.note(f"argument {name}: {use}", ordinary)
        self.setup.append(setup.replace("_U", number))
        self.args, other = (text.replace("_U", number) for text in (args, other))
        self.others.append(other)
        return f"w = {use.replace('_U', number)}"

    def write_argument(self, write=None, statement=None):
        """Write to arguments."""
        name, self.args, statements, use = write or self.next(WRITES)
        statement = statement or self.next(statements)
        self.note(f"written {name}: {statement}", False)
        self.memory = True
        lines = [statement, f"w = {use}"]
        return "\n".join(lines if self.random.random() < 0.5 else lines[::-1])

    def holder(self, leaf=None, boxes=None):
        """Return a leaf inside boxes, and an expression for it."""
        leaf = leaf or self.next(LEAVES)
        number = self.fresh()
        self.note(leaf.name, leaf.ordinary)
        leaf = type(leaf)(leaf.name, *(part.replace("_U", f"_{number}") for part in
                                       (leaf.setup, leaf.read, leaf.write, leaf.declare)),
                          leaf.ordinary, leaf.writable)
        self.setup.append(leaf.setup)
        obj = f"o_{number}"
        if "OBJ" not in leaf.read:
            return leaf, obj
        if boxes is None:
            boxes = [self.next(BOXES) for _ in range(self.random.choices([0, 1, 2], [5, 3, 2])[0])]
        for box in boxes:
            self.note("in " + box.name, box.ordinary)
            k = self.fresh()
            self.setup.append(box.setup.replace("_U", f"_{k}").replace("INNER", obj))
            obj = box.path.replace("_U", f"_{k}").replace("BOX", f"b_{k}")
        return leaf, obj

    # --- how it is wrapped ------------------------------------------------------------------------

    def shell(self, block):
        """Wrap in a shell chosen at random."""
        return self.enclose(block, self.next(SHELLS))

    def enclose(self, block, shell):
        """Wrap in this shell."""
        if shell.setup and (self.args or "del v" in block.splitlines()):
            return block      # p and q are known in the residual only
        self.note(shell.name, shell.ordinary)
        setup, block = shell.wrap(block, self.fresh())
        self.setup.append(setup)
        return block

    def place(self, block, place):
        """Put a block where it is reached at the start, later, or never."""
        template = PLACES[place]
        if template is None and self.args:
            template = PLACES["hidden by y"]
        if template is None:
            block = self.enclose(block, SHELLS[0])
            call = block.removeprefix("w = ")
            return {"expression": f"w = {call} if y[0] < 0.5 else 0.5",
                    "and": f"w = (y[0] < 0.5 and {call}) + 0.25"}[place]
        return fill(template, block)

    def finish(self, block, rows=None, scalar=None, wrapping=None):
        """Write the residual."""
        rows = rows or self.next(list(ROWS))
        scalar = scalar or self.next(SCALARS + NOT_ALWAYS_A_NUMBER)
        if self.args and "p" in scalar.split():
            scalar = "y[0]"
        if "p" in scalar.split():
            self.args = "(0.3, 1.0)"
            self.others.append("(0.6, 1.0)")
        self.ordinary = self.ordinary and scalar not in NOT_ALWAYS_A_NUMBER
        v = "v = np.array([y[0], y[1], 0.3 + t])" if rows == "algebraic" else \
            self.next(["v = y", "v = y[:3]", "v = y * 1.0", "v = y.copy()"])
        signature = "t, y, yp, p, q" if self.args else "t, y, yp"
        body = textwrap.indent(f"x = {scalar}\n{v}\n{block}\nreturn {ROWS[rows]}", "    ")
        wrapping = wrapping or self.next(WRAPPINGS)
        source = "\n".join([HEADER, *self.setup, "", wrap_function(signature, body, wrapping)])
        self.note(wrapping, True)
        self.note(rows, True)
        return Case(source + "\n", " / ".join(self.names), self.memory,
                    self.ordinary and not self.memory, self.zero, self.changes,
                    self.args or "()", self.others, self.seed)

    # --- book-keeping -----------------------------------------------------------------------------

    def note(self, name, ordinary):
        """Remember what a case is made of."""
        self.names.append(name)
        self.ordinary = self.ordinary and ordinary

    def number_it(self, text):
        """Give names without a number one."""
        return text.replace("_U", f"_{self.fresh()}") if "_U" in text else text


def leaf_name(leaf):
    """Return the name that the setup gives to the object."""
    found = re.findall(r"\bo_\d+\b", leaf.setup)
    return found[-1] if found else ""


def wrap_function(signature, body, wrapping):
    """Return the source of `fun`, a function or something else that can be called."""
    plain = f"def fun({signature}):\n{body}\n"
    inner = textwrap.indent(f"def f({signature}):\n{body}\n    ", "    ").rstrip() + "\n"
    method = textwrap.indent(f"def f(self, {signature}):\n{body}\n    ", "    ").rstrip() + "\n"
    return {
        "plain": plain,
        "method": f"class Model:\n{method}\nfun = Model().f",
        "callable": "class Model:\n" + method.replace("def f(", "def __call__(", 1)
                    + "\nfun = Model()",
        "closure": f"def make():\n    one = 1.0\n{inner}    return f\nfun = make()",
        "partial": f"{plain}fun = functools.partial(fun)",
        "lambda": f"{plain}inner_fun = fun\nfun = lambda *a: inner_fun(*a)",
        "decorated": "def deco(f):\n    @functools.wraps(f)\n    def inner(*a):\n"
                     f"        return f(*a)\n    return inner\n@deco\n{plain}",
        "class attribute": "class Model:\n" + textwrap.indent("@staticmethod", "    ") +
                           f"\n{inner}\nfun = Model.f",
    }[wrapping]
