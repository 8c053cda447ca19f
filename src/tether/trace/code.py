"""Read the bytecode of a function: which names it uses, and whether it handles exceptions."""

from __future__ import annotations

import dis
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator

_READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL")
_NAMING = (*_READS, *_WRITES, "IMPORT_NAME")
_NOTABLE = {
    dis.opmap[name]: name
    for name in (*_NAMING, "MATCH_CLASS", "PUSH_EXC_INFO", "WITH_EXCEPT_START", "CHECK_EG_MATCH")
    if name in dis.opmap
}
# Code with one of these names may ask for any member of a class, an object or a function; those of
# modules are checked while tracing. A pattern such as `case Point(x=0)` has names as constants.
_ASKING_TEXT = """
    getattr hasattr attrgetter methodcaller __getattribute__ __dict__ vars dir getmembers
    getattr_static asdict astuple deepcopy
"""
_ASKING = frozenset(_ASKING_TEXT.split())
# Names by which code makes new objects of the class of an object.
_MAKING = frozenset(("type", "replace"))
_TO_CLASS = "__class__"
# Names by which a function reaches internals that its private copy does not have.
_INSIDE_TEXT = """
    __globals__ __builtins__ __subclasses__ __bases__ __subclasshook__ gi_frame gi_code cr_frame
    ag_frame tb_frame f_back f_locals f_globals f_builtins __import__ __build_class__
    __loader__ __spec__ __array_interface__ __array_struct__ setflags strides ctypes shares_memory
    may_share_memory byte_bounds __annotations__ __type_params__ __annotate__
"""
_INSIDE = frozenset(_INSIDE_TEXT.split())


class CodeFacts:
    """What is known about a code object and those nested in it.

    Attributes
    ----------
    names : dict
        Names it looks up, of variables and attributes, in order.
    globals_read, globals_written : tuple of str
        Names of global variables.
    imports : tuple of str
        Modules that it imports when it runs; for ``a.b`` also ``a``.
    asks : bool
        Whether it may ask for attributes whose names are not written in it.
    makes : bool
        Whether it may make new objects of the class of an object it has.
    handles : int
        Line of its first `except` or `finally`; zero if there is none.
    trouble : str
        Why a copy of it cannot run on symbols; empty if it can.
    line : int
        The line that `trouble` refers to.
    """

    __slots__ = ("asks", "globals_read", "globals_written", "handles", "imports", "line", "makes",
                 "names", "trouble")

    def __init__(self, code: types.CodeType) -> None:
        parts = list(_nested(code))
        count: Counter[str] = Counter()
        named: dict[str, dict[str, None]] = {name: {} for name in _NAMING}
        for part in parts:
            for operation, argument in notable(part):
                count[operation] += 1
                if operation in _NAMING:
                    named[operation][part.co_names[argument]] = None
        self.names = dict.fromkeys(name for part in parts for name in part.co_names)
        self.globals_read = tuple(dict.fromkeys(name for x in _READS for name in named[x]))
        self.globals_written = tuple(dict.fromkeys(name for x in _WRITES for name in named[x]))
        self.imports = tuple(dict.fromkeys(
            name for full in named["IMPORT_NAME"] for name in _packages(full)
        ))
        self.asks = "MATCH_CLASS" in count or not _ASKING.isdisjoint(self.names)
        self.makes = not _MAKING.isdisjoint(self.names) or (
            _TO_CLASS in self.names and not all(map(_only_compares_classes, parts))
        )
        self.trouble, self.line = "", code.co_firstlineno
        # The handler of a `with` has both steps, that of `except` and `finally` only the first.
        self.handles = 0
        if count["PUSH_EXC_INFO"] > count["WITH_EXCEPT_START"] or count["CHECK_EG_MATCH"]:
            self.handles = _line_of_handler(parts) or self.line
        if count["CHECK_EG_MATCH"]:
            self.trouble, self.line = "handles groups of exceptions", self.handles
        elif inside := sorted(_INSIDE.intersection(self.names)):
            self.trouble = f"uses {inside[0]}, which is not known to tracing"
            self.line = _line(parts, lambda step: step.argval == inside[0]) or self.line


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def notable(code: types.CodeType) -> Iterator[tuple[str, int]]:
    """Operations of a code object that matter here, with the indices of their names.

    `dis` would return the same and more, but takes ten times as long.
    """
    raw, more = code.co_code, 0
    for operation, argument in zip(raw[::2], raw[1::2], strict=True):
        argument |= more
        more = argument << 8 if operation == dis.EXTENDED_ARG else 0
        name = _NOTABLE.get(operation)
        if name is not None:
            yield name, argument >> 1 if name == "LOAD_GLOBAL" else argument


def _only_compares_classes(code: types.CodeType) -> bool:
    """Tell whether ``x.__class__`` only occurs in ``x.__class__ is y.__class__``, as in `__eq__`.

    Data classes contain that comparison, and it makes no objects.
    """
    if _TO_CLASS not in code.co_names:
        return True
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "NOP")]
    places = [i for i, step in enumerate(steps) if step.argval == _TO_CLASS]
    pairs = zip(places[::2], places[1::2], strict=False)
    return len(places) % 2 == 0 and all(
        second == first + 2 and steps[second + 1].opname == "IS_OP" for first, second in pairs
    )


def _line(parts: list[types.CodeType], chosen: Callable[[dis.Instruction], bool]) -> int | None:
    """Line of the first of the chosen steps that has one."""
    steps = (step for part in parts for step in dis.get_instructions(part))
    lines = (step.positions.lineno for step in steps if step.positions and chosen(step))
    return next((line for line in lines if line), None)


def _line_of_handler(parts: list[types.CodeType]) -> int | None:
    """Line of the first `except` or `finally`."""
    for part in parts:
        steps = list(dis.get_instructions(part))
        for i, step in enumerate(steps[:-1]):
            if step.opname == "PUSH_EXC_INFO" and steps[i + 1].opname != "WITH_EXCEPT_START":
                later = (x.positions.lineno for x in steps[i:] if x.positions)
                return next((line for line in later if line), None)
    return None


def line_of_name(code: types.CodeType, name: str) -> int | None:
    """Line of a code object, or one nested in it, that first mentions a name."""
    return _line(list(_nested(code)), lambda step: step.argval == name)


def _packages(name: str) -> list[str]:
    """Name a module and the packages it is in, the outermost first."""
    parts = name.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


# By identity, since comparing code objects by content is slow; an entry lives as long as its code.
_facts: dict[int, CodeFacts] = {}
_references: dict[int, weakref.ref[types.CodeType]] = {}


def facts_of(code: types.CodeType) -> CodeFacts:
    """Return what is known about a code object, analysed once."""
    found = _facts.get(id(code))
    if found is None:
        found, number = CodeFacts(code), id(code)

        def forget(_: object) -> None:
            _facts.pop(number, None)
            _references.pop(number, None)

        _references[number] = weakref.ref(code, forget)
        _facts[number] = found
    return found
