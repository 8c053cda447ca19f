"""Programs compiled by the system's C compiler; `library_cache` keeps the libraries on disk.

The machine needs no compiler and is the ordinary way to run a program. C computes the same numbers
with the same roundings two to five times faster, once the time for the compiler has been spent;
`worth_compiling_from` weighs the two.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import platform
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tether._core import native
from tether._core.opcodes import STATIC, TIME
from tether._core.schedule import check, segment_of_each
from tether.trace import library_cache
from tether.trace import opcodes as op
from tether.trace.emit import Program
from tether.trace.operations import OPERATIONS

__all__ = [
    "CompiledProgram", "NotCompiled", "compile_program", "find_compiler",
    "worth_compiling_from",
]

MOST_INSTRUCTIONS = 20_000  # the compiler takes seconds for that many
TIMEOUT = 120.0             # seconds for the compiler
# No contraction of products and sums: the results are those of the machine, digit for digit,
# except where two C libraries differ in functions such as sin and exp.
FLAGS = ("-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared")

PIECE = 250                 # instructions in one C function
NOT_INLINED = "static __attribute__((noinline))"

FUNCTIONS = ("fill_static", "fill_time", "values", "static_entries", "entries")

# Measured by benchmarks/machine.py; only their ratios matter. C saves this much per instruction
# of a program and evaluation of its values ...
SAVED_NS = 0.5
# ... and compiling costs this many seconds, fixed and per instruction.
COMPILING_SECONDS = (0.04, 2.5e-4)


class NotCompiled(Exception):  # noqa: N818 - the machine does the work instead
    """A program could not be compiled; the message says why."""


@dataclass(frozen=True, eq=False)
class CompiledProgram:
    """A loaded library; nothing in it changes, so states may share it.

    Attributes
    ----------
    n, n_args, n_values, n_fy, n_fyp : int
        Numbers of unknowns, args, values and entries of F_y and F_y'.
    n_slots : int
        Doubles that a `Native` has to provide.
    tables : ndarray
        Piecewise polynomials; they follow the args in that memory, so that a library serves
        every spline of the same size.
    has_time : bool
        Whether any instruction depends on t but not on the unknowns.
    fyp_is_static : bool
        Whether F_y' depends on constants and args only.
    addresses : tuple of int
        Addresses of the functions named in `FUNCTIONS`.
    library : ctypes.CDLL
        The library; the reference keeps it loaded.
    path : Path
        Path of the library.
    """

    n: int
    n_args: int
    n_values: int
    n_fy: int
    n_fyp: int
    n_slots: int
    tables: np.ndarray
    has_time: bool
    fyp_is_static: bool
    addresses: tuple[int, ...]
    library: Any
    path: Path


def compile_program(
    program: Program,
    n_values: int | None = None,
    n_fy: int = 0,
    *,
    only_cached: bool = False,
) -> CompiledProgram:
    """Compile a program, or load it if it has been compiled before.

    Parameters
    ----------
    program : Program
        Its outputs are first the values, then the entries of F_y, then those of F_y'.
    n_values : int, optional
        How many outputs are values; all of them when left out.
    n_fy : int
        How many of the entries are those of F_y.
    only_cached : bool
        Do not call the compiler.

    Raises
    ------
    NotCompiled
        There is no compiler, it failed, or the program is too large for it.
    """
    if not native.AVAILABLE:
        raise NotCompiled("the core runs interpreted and cannot call compiled functions")
    if program.size > MOST_INSTRUCTIONS:
        raise NotCompiled(
            f"{program.size} operations are too many for a C compiler (at most {MOST_INSTRUCTIONS})"
        )
    if op.SPECIAL in program.op:
        raise NotCompiled("a program that calls special functions of SciPy is not compiled")
    compiler = find_compiler()
    if compiler is None:
        raise NotCompiled("no C compiler found: there is no cc, gcc or clang on PATH, and no CC")
    n_values = len(program.outputs) if n_values is None else n_values
    check(*code_of(program), program.base, program.tables)
    arguments = program, n_values, n_fy
    found = library_cache.load(key_of(*arguments, compiler))
    if found is None:
        if only_cached:
            raise NotCompiled("not in the cache")
        found = build(Source(*arguments).text, compiler, key_of(*arguments, compiler))
    library, path = found
    n_slots, has_time, fyp_is_static = (ctypes.c_int * 3).in_dll(library, "facts")
    return CompiledProgram(
        n=program.n,
        n_args=program.p,
        n_values=n_values,
        n_fy=n_fy,
        n_fyp=len(program.outputs) - n_values - n_fy,
        n_slots=n_slots,
        tables=program.tables,
        has_time=bool(has_time),
        fyp_is_static=bool(fyp_is_static),
        addresses=tuple(
            ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in FUNCTIONS
        ),
        library=library,
        path=path,
    )


def worth_compiling_from(program: Program) -> float:
    """Return the number of evaluations from which compiling saves time; infinity if none.

    Examples
    --------
    >>> from tether.trace import trace
    >>> from tether.trace.compile_c import worth_compiling_from
    >>> program = trace(lambda t, y, yp: [yp[0] + y[0] ** 2], 1).program()
    >>> 1e4 < worth_compiling_from(program) < 1e9
    True
    """
    if program.size > MOST_INSTRUCTIONS:
        return math.inf
    fixed, each = COMPILING_SECONDS
    return (fixed + each * program.size) / (max(program.size, 1) * SAVED_NS * 1e-9)


# --- the text -------------------------------------------------------------------------------

PREAMBLE = """\
#include <math.h>
static inline double smaller(double x, double y) { return x <= y || x != x ? x : y; }
static inline double larger(double x, double y) { return x >= y || x != x ? x : y; }
static inline double sign(double x)
{ return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x == 0.0 ? 0.0 : x; }
static inline double modulo(double x, double y)
{
    double rest = fmod(x, y);
    if (rest == 0.0)
        return copysign(0.0, y);
    return (y < 0.0) != (rest < 0.0) ? rest + y : rest;
}
static double piecewise(const double *table, double x)
{
    int count = (int)table[0], width = (int)table[1], low = 0, high = count;
    double total = 0.0, power = 1.0, distance;
    if (x != x)
        return x;
    table += 2;
    while (low < high) {
        int middle = (low + high) / 2;
        if (table[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    table += count + low * (width + 1);
    distance = x - table[0];
    for (int k = 1; k <= width; k++) {
        total += table[k] * power;
        power *= distance;
    }
    return total;
}
"""

def code_of(program: Program) -> list[np.ndarray]:
    """Instructions and outputs in the form that the core takes."""
    parts = (program.op, program.a, program.b, program.c, program.outputs)
    return [np.ascontiguousarray(part, np.intc) for part in parts]


class Source:
    """C text of a program: one function for each of `FUNCTIONS`."""

    def __init__(self, program: Program, n_values: int, n_fy: int) -> None:
        self.program, self.n_values = program, n_values
        *code, outputs = code_of(program)
        n_fyp = len(outputs) - n_values - n_fy
        self.first_kept = program.p + len(program.tables)
        segment, changes = segment_of_each(
            *code, outputs, self.n_values, program.n_const, program.base - program.p, program.base
        )
        self.segment = segment.tolist()
        self.op, self.a, self.b, self.c = (part.tolist() for part in code)
        self.outputs = outputs.tolist()
        targets = [f"fy[{k}]" for k in range(n_fy)] + [f"fyp[{k}]" for k in range(n_fyp)]
        entries = list(zip(targets, self.outputs[self.n_values :], strict=True))
        is_static = (changes[self.n_values :] == 0).tolist()
        fixed = [entry for entry, static in zip(entries, is_static, strict=True) if static]
        moving = [entry for entry, static in zip(entries, is_static, strict=True) if not static]
        values = [(f"out[{i}]", slot) for i, slot in enumerate(self.outputs[: self.n_values])]
        fyp_is_static = all(is_static[n_fy:])
        self.leaves = self._leaves()
        self.kept = self._kept(slot for _, slot in values + fixed)
        self.scratch = 0                # doubles in w for results used within one function only
        point = ("double *w", "double t", "const double *y", "const double *yp")
        matrices = ("double *fy", "double *fyp")
        functions = (
            ("fill_static", ("double *w",), self._keeping(STATIC), ()),
            ("fill_time", ("double *w", "double t"), self._keeping(TIME), (STATIC,)),
            ("values", (*point, "double *out"), values, (STATIC, TIME)),
            ("static_entries", ("double *w", *matrices), fixed, (STATIC,)),
            ("entries", (*point, *matrices), moving, (STATIC, TIME)),
        )
        parts = [PREAMBLE, *(self._function(*each) for each in functions)]
        n_slots = self.first_kept + len(self.kept) + self.scratch
        facts = n_slots, int(TIME in self.segment), int(fyp_is_static)
        parts.append(f"const int facts[] = {{{', '.join(map(str, facts))}}};\n")
        self.text = "\n".join(parts)

    def _leaves(self) -> list[str]:
        """C expressions of the slots before the first instruction."""
        program = self.program
        return [
            *(literal(value) for value in program.constants.tolist()),
            "t",
            *(f"y[{i}]" for i in range(program.n)),
            *(f"yp[{i}]" for i in range(program.n)),
            *(f"w[{i}]" for i in range(program.p)),
        ]

    def _operands(self, i: int) -> tuple[int, ...]:
        b = -1 if self.op[i] in (op.POWI, op.TABLE) else self.b[i]
        return tuple(slot for slot in (self.a[i], b, self.c[i]) if slot >= 0)

    def _kept(self, results: Iterable[int]) -> dict[int, int]:
        """Instructions whose results are kept for other functions, and their places in w."""
        base = self.program.base
        used = {slot - base for slot in results}
        for i, segment in enumerate(self.segment):
            if segment > STATIC:
                used |= {
                    slot - base
                    for slot in self._operands(i)
                    if slot >= base and self.segment[slot - base] != segment
                }
        early = [i for i, segment in enumerate(self.segment) if segment in (STATIC, TIME)]
        kept = [i for i in early if i in used]
        return {i: self.first_kept + place for place, i in enumerate(kept)}

    def _keeping(self, segment: int) -> list[tuple[str, int]]:
        return [
            (f"w[{place}]", self.program.base + i)
            for i, place in self.kept.items()
            if self.segment[i] == segment
        ]

    def _function(
        self, name: str, parameters: Sequence[str], results: list[tuple[str, int]],
        done: Sequence[int],
    ) -> str:
        """Text of a function that stores results; those of the segments `done` are in w already.

        A long function is cut into pieces, which share results in w, since the compiler's time
        grows with the square of a function's length.
        """
        base = self.program.base
        instructions = self._wanted(results, done)
        pieces = [instructions[k : k + PIECE] for k in range(0, len(instructions), PIECE)] or [[]]
        piece_of = {i: number for number, piece in enumerate(pieces) for i in piece}
        shared: dict[int, int] = {}     # results for later pieces, and their places in w
        for i in instructions:
            for slot in self._operands(i):
                if piece_of.get(slot - base, piece_of[i]) != piece_of[i]:
                    shared.setdefault(slot - base, self.first_kept + len(self.kept) + len(shared))
        self.scratch = max(self.scratch, len(shared))
        stores: list[list[tuple[str, int]]] = [[] for _ in pieces]
        for target, slot in results:
            stores[piece_of.get(slot - base, 0)].append((target, slot))
        for i, place in shared.items():
            stores[piece_of[i]].append((f"w[{place}]", base + i))
        if len(pieces) == 1:
            return self._piece(f"void {name}", parameters, pieces[0], stores[0], shared)
        heads = [f"{name}_{number}" for number in range(len(pieces))]
        names = ", ".join(parameter.split()[-1].lstrip("*") for parameter in parameters)
        texts = [
            self._piece(f"{NOT_INLINED} void {head}", parameters, piece, store, shared)
            for head, piece, store in zip(heads, pieces, stores, strict=True)
        ]
        calls = [f"    {head}({names});" for head in heads]
        return "\n".join([*texts, f"void {name}({', '.join(parameters)})", "{", *calls, "}", ""])

    def _wanted(self, results: list[tuple[str, int]], done: Sequence[int]) -> list[int]:
        """Instructions that a function has to run, in their order."""
        base = self.program.base
        wanted: set[int] = set()
        stack = [slot - base for _, slot in results if slot >= base]
        while stack:
            i = stack.pop()
            if i not in wanted and not (i in self.kept and self.segment[i] in done):
                wanted.add(i)
                stack += [slot - base for slot in self._operands(i) if slot >= base]
        return sorted(wanted)

    def _piece(
        self, head: str, parameters: Sequence[str], instructions: list[int],
        stores: list[tuple[str, int]], shared: dict[int, int],
    ) -> str:
        """Text of a function that runs instructions and stores some of their results."""
        base = self.program.base
        local = set(instructions)

        def name(slot: int) -> str:
            i = slot - base
            if i < 0:
                return self.leaves[slot] if slot >= 0 else ""
            return f"v{i}" if i in local else f"w[{shared[i] if i in shared else self.kept[i]}]"

        lines = [f"{head}({', '.join(parameters)})", "{"]
        for i in instructions:
            if self.op[i] == op.POWI:
                lines += power(i, name(self.a[i]), self.b[i])
                continue
            second = str(self.program.p + self.b[i]) if self.op[i] == op.TABLE else name(self.b[i])
            text = OPERATIONS[self.op[i]].c.format(
                a=name(self.a[i]), b=second, c=name(self.c[i])
            )
            lines.append(f"    const double v{i} = {text};")
        lines += [f"    {target} = {name(slot)};" for target, slot in stores]
        return "\n".join([*lines, "}", ""])


def literal(value: float) -> str:
    """Exact C literal of a number."""
    if value != value:
        return "NAN"
    if value in (np.inf, -np.inf):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = float(value).hex()
    return f"({text})" if text.startswith("-") else text


def power(i: int, base: str, exponent: int) -> list[str]:
    """Statements for an integer power, with the same squarings as in the machine."""
    lines: list[str] = []
    square, product, left = base, "", abs(exponent)
    while left:
        if left & 1:
            product = f"{product} * {square}" if product else square
        left >>= 1
        if left:
            name = f"v{i}_{2 ** (len(lines) + 1)}"
            lines.append(f"    const double {name} = {square} * {square};")
            square = name
    product = product or "1.0"
    text = f"1.0 / ({product})" if exponent < 0 else product
    return [*lines, f"    const double v{i} = {text};"]


# --- the compiler ---------------------------------------------------------------


def find_compiler() -> str | None:
    """Path of the C compiler, or None: the variable CC, else cc, gcc or clang."""
    candidates = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


def key_of(program: Program, n_values: int, n_fy: int, compiler: str) -> str:
    """Key of a program, a compiler and a platform; the numbers in tables are not compiled.

    The compiler is identified by its file, which changes with its version. Running it to ask for
    the version would take longer than many runs, and so would writing the C text just to compare.
    """
    file = os.stat(compiler)
    arrays = (program.op, program.a, program.b, program.c, program.outputs, program.constants)
    parts = (
        program.n, program.p, n_values, n_fy, len(program.tables),
        *(library_cache.digest(part.tobytes()) for part in arrays),
        translator_digest(), FLAGS, os.path.realpath(compiler), file.st_size, file.st_mtime_ns,
        platform.system(), platform.machine(),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@functools.cache
def translator_digest() -> str:
    """Digest of this file, which changes when programs are translated to C differently."""
    return library_cache.digest(Path(__file__).read_bytes())


def build(text: str, compiler: str, key: str) -> tuple[ctypes.CDLL, Path]:
    """Compile in a temporary folder, move the finished library into the cache and load it."""
    import subprocess  # late, to save time: most runs call no compiler

    with library_cache.workplace(key) as (work, keep):
        source, library = os.path.join(work, "program.c"), os.path.join(work, "program.so")
        Path(source).write_text(text, encoding="ascii")
        try:
            outcome = subprocess.run(
                [compiler, *FLAGS, "-o", library, source, "-lm"],
                capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotCompiled(f"{compiler} did not compile the program: {error}") from None
        if outcome.returncode != 0:
            reason = (outcome.stderr.strip().splitlines() or ["no message"])[0]
            raise NotCompiled(f"{compiler} did not compile the program: {reason}")
        try:
            keep(library)
        except OSError as error:
            raise NotCompiled(f"the library could not be kept: {error}") from None
    found = library_cache.load(key)
    if found is None:
        raise NotCompiled(f"the library that {compiler} made could not be loaded")
    return found
