"""Order the instructions of a program so that the machine makes few decisions.

A program is straight-line code on slots: constants, t, y, y', args, then one slot for every
instruction. It is rearranged twice. First into segments, by when a value changes: with the args
alone, with t as well, or with y and y'; each of the latter two is divided by whether the values
need it or only the entries of the Jacobian. Then, inside a segment, into runs of one operation, so
that choosing the operation costs once per run and not once per instruction: a processor mispredicts
a varying choice and loses more time than the arithmetic takes.
"""

import cython
import numpy as np

if not cython.compiled:
    from tether._core.opcodes import (
        ABSORBED,
        ADD,
        AND,
        ATAN2,
        DIV,
        EQ,
        HYPOT,
        LE,
        LT,
        MAX,
        MIN,
        MOD,
        MUL,
        MULADD,
        MULSUB,
        NE,
        OPERATIONS,
        OR,
        POW,
        POWI,
        SEGMENTS,
        SELECT,
        SPECIAL,
        SUB,
        SUBMUL,
        TABLE,
        UNUSED,
    )



OPERANDS = np.ones(OPERATIONS, np.intc)
OPERANDS[[ADD, SUB, MUL, DIV, POW, ATAN2, HYPOT, MIN, MAX, LT, LE, EQ, NE, AND, OR, MOD]] = 2
OPERANDS[SELECT] = 3
NUMBERED = [POWI, SPECIAL, TABLE]        # operations with a number in b, not a slot


class Schedule:
    """A program in the order of the machine; it never changes, so states may share it.

    Attributes
    ----------
    n, n_args, n_constants : int
        Numbers of unknowns, args and constants.
    base : int
        Slot of the first instruction's result.
    slots : ndarray
        Constants in their slots, zeros elsewhere: the initial memory of a machine.
    a, b, c : ndarray
        Operands of the instructions.
    run_op, run_start : ndarray
        Operation of each run, and its first instruction (one more than there are runs).
    segment_start : ndarray
        First run of each segment, and the number of runs.
    values, entries : ndarray
        Slots of the results.
    static_entries : ndarray
        Whether each entry follows from constants and args alone.
    takes_t, takes_yp : bool
        Whether any instruction or result reads t, or y'.
    tables : ndarray
        Piecewise polynomials, one after the other.
    """

    def __init__(self, n, n_args, n_constants, slots, a, b, c, run_op, run_start, segment_start,
                 values, entries, static_entries, takes_t, takes_yp, tables):
        self.n = n
        self.n_args = n_args
        self.n_constants = n_constants
        self.base = n_constants + 1 + 2 * n + n_args
        self.slots = slots
        self.a = a
        self.b = b
        self.c = c
        self.run_op = run_op
        self.run_start = run_start
        self.segment_start = segment_start
        self.values = values
        self.entries = entries
        self.static_entries = static_entries
        self.takes_t = takes_t
        self.takes_yp = takes_yp
        self.tables = tables


@cython.cfunc
@cython.inline
def has_number(code: cython.int) -> cython.bint:
    """Tell whether b of an operation is a number, not a slot."""
    return code == POWI or code == TABLE or code == SPECIAL


def check(op, a, b, c, outputs, base, tables):
    """Raise an error for reads outside slots and tables, which the machine does not check."""
    count = len(op)
    known = base + np.arange(count)
    operands = np.take(OPERANDS, op, mode="clip")
    right = (op >= 0) & (op < MULADD) & (a >= 0) & (a < known)
    right &= (operands < 2) | ((b >= 0) & (b < known))
    right &= (operands < 3) | ((c >= 0) & (c < known))
    right &= (operands >= 2) | np.isin(op, NUMBERED) | (b == -1)
    right &= (op != TABLE) | np.isin(b, table_places(tables))
    right &= (operands >= 3) | (c == -1)
    if not np.all(right):
        raise ValueError(f"instruction {np.argmin(right)} is not valid")
    if np.any((outputs < 0) | (outputs >= base + count)):
        raise ValueError("an output is not a slot of the program")


def table_places(tables):
    """Return the positions where tables begin; raise an error unless these are whole tables."""
    places = []
    place = 0
    while place + 1 < len(tables):
        count, width = int(tables[place]), int(tables[place + 1])
        if count < 0 or width < 1:
            raise ValueError(f"there is no table at {place}")
        places.append(place)
        place += 2 + count + (count + 1) * (width + 1)
    if place != len(tables):
        raise ValueError("the last table is not complete")
    return places


def segment_of_each(op: cython.int[::1], a: cython.int[::1], b: cython.int[::1],
                    c: cython.int[::1], outputs: cython.int[::1], n_values: cython.int,
                    t_slot: cython.int, arg_slot: cython.int, base: cython.int):
    """Return the segment of every instruction, and when the outputs change (0, 1 or 2)."""
    count: cython.int = op.shape[0]
    i: cython.int
    k: cython.int
    slot: cython.int
    changes_array = np.zeros(base + count, np.intc)       # 0: with the args, 1: t, 2: y, y'
    changes: cython.int[::1] = changes_array
    needed: cython.int[::1] = np.zeros(base + count, np.intc)  # bit 0: values, bit 1: entries
    segments = np.full(count, UNUSED, np.intc)
    segment: cython.int[::1] = segments
    changes[t_slot] = 1
    for i in range(t_slot + 1, arg_slot):
        changes[i] = 2
    for i in range(count):
        slot = a[i]
        k = changes[slot]
        slot = b[i]
        if slot >= 0 and not has_number(op[i]):
            k = max(k, changes[slot])
        slot = c[i]
        if slot >= 0:
            k = max(k, changes[slot])
        changes[base + i] = k
    for i in range(outputs.shape[0]):
        needed[outputs[i]] |= 1 if i < n_values else 2
    for i in range(count - 1, -1, -1):
        k = needed[base + i]
        if k == 0:
            continue
        needed[a[i]] |= k
        if b[i] >= 0 and not has_number(op[i]):
            needed[b[i]] |= k
        if c[i] >= 0:
            needed[c[i]] |= k
        segment[i] = changes[base + i]
        if segment[i] > 0 and k == 2:
            segment[i] += 2
    return segments, changes_array[np.asarray(outputs)]


def levels_of_each(op: cython.int[::1], a: cython.int[::1], b: cython.int[::1],
                   c: cython.int[::1], t_slot: cython.int, arg_slot: cython.int,
                   base: cython.int):
    """Return the length of the longest chain of instructions that each instruction waits for.

    And whether each slot changes with t, y or y'.
    """
    count: cython.int = op.shape[0]
    i: cython.int
    k: cython.int
    levels_array = np.zeros(base + count, np.intc)
    levels: cython.int[::1] = levels_array
    changes_array = np.zeros(base + count, np.intc)
    changes: cython.int[::1] = changes_array
    for i in range(t_slot, arg_slot):
        changes[i] = 1
    for i in range(count):
        k = levels[a[i]]
        changes[base + i] = changes[a[i]]
        if b[i] >= 0 and not has_number(op[i]):
            k = max(k, levels[b[i]])
            changes[base + i] |= changes[b[i]]
        if c[i] >= 0:
            k = max(k, levels[c[i]])
            changes[base + i] |= changes[c[i]]
        levels[base + i] = k + 1
    return levels_array[base:], changes_array


def fuse(op: cython.int[::1], a: cython.int[::1], b: cython.int[::1], c: cython.int[::1],
         outputs: cython.int[::1], segment: cython.int[::1], base: cython.int):
    """Merge a product into the only sum that uses it; roundings stay the same."""
    count: cython.int = op.shape[0]
    i: cython.int
    k: cython.int
    uses: cython.int[::1] = np.zeros(base + count, np.intc)
    for i in range(count):
        if segment[i] >= 0:
            uses[a[i]] += 1
            if b[i] >= 0 and not has_number(op[i]):
                uses[b[i]] += 1
            if c[i] >= 0:
                uses[c[i]] += 1
    for i in range(outputs.shape[0]):
        uses[outputs[i]] += 1
    for i in range(count):
        if segment[i] < 0 or (op[i] != ADD and op[i] != SUB):
            continue
        k = a[i] - base
        if k >= 0 and op[k] == MUL and uses[a[i]] == 1 and segment[k] == segment[i]:
            op[i] = MULADD if op[i] == ADD else MULSUB
            c[i] = b[i]
        else:
            k = b[i] - base
            if not (k >= 0 and op[k] == MUL and uses[b[i]] == 1 and segment[k] == segment[i]):
                continue
            op[i] = MULADD if op[i] == ADD else SUBMUL
            c[i] = a[i]
        a[i] = a[k]
        b[i] = b[k]
        segment[k] = ABSORBED


def order_in_runs(op: cython.int[::1], a: cython.int[::1], b: cython.int[::1],
                  c: cython.int[::1], segment: cython.int[::1], base: cython.int):
    """Return the order of the instructions, the runs and the first run of each segment.

    Within a segment, the next operation is one whose instructions are all ready: it will need no
    other run, so nothing is gained by waiting. If there is none, it is the one with the most ready.
    The run includes what becomes ready meanwhile: an instruction may use a result of its own run.
    """
    count: cython.int = op.shape[0]
    i: cython.int
    k: cython.int
    part: cython.int
    code: cython.int
    n_ordered: cython.int = 0
    n_runs: cython.int = 0
    order_array = np.zeros(count, np.intc)
    run_ops = np.zeros(count, np.intc)
    run_starts = np.zeros(count + 1, np.intc)
    segment_starts = np.zeros(SEGMENTS + 1, np.intc)
    order: cython.int[::1] = order_array
    run_op: cython.int[::1] = run_ops
    run_start: cython.int[::1] = run_starts
    segment_start: cython.int[::1] = segment_starts
    # Users of each result within its segment, as linked lists: three links per instruction.
    user: cython.int[::1] = np.full(count, -1, np.intc)
    next_user: cython.int[::1] = np.full(3 * count, -1, np.intc)
    waiting: cython.int[::1] = np.zeros(count, np.intc)
    # Instructions that are ready, a queue for each operation.
    first: cython.int[::1] = np.full(OPERATIONS, -1, np.intc)
    last: cython.int[::1] = np.full(OPERATIONS, -1, np.intc)
    ready: cython.int[::1] = np.zeros(OPERATIONS, np.intc)
    after: cython.int[::1] = np.full(count, -1, np.intc)
    left: cython.int[::1] = np.zeros(OPERATIONS, np.intc)      # ready or not

    for i in range(count - 1, -1, -1):
        if segment[i] < 0:
            continue
        for part in range(3):
            k = (a[i] if part == 0 else b[i] if part == 1 else c[i]) - base
            if k < 0 or (part == 1 and has_number(op[i])) or segment[k] != segment[i]:
                continue
            waiting[i] += 1
            next_user[3 * i + part] = user[k]
            user[k] = 3 * i + part
    for part in range(SEGMENTS):
        segment_start[part] = n_runs
        for i in range(count):
            if segment[i] == part:
                left[op[i]] += 1
                if waiting[i] == 0:
                    append(first, last, ready, after, op[i], i)
        while True:
            code = 0
            for k in range(OPERATIONS):
                if ready[k] > 0 and ready[k] == left[k]:
                    code = k
                    break
                if ready[k] > ready[code]:
                    code = k
            if ready[code] == 0:
                break
            run_op[n_runs] = code
            run_start[n_runs] = n_ordered
            n_runs += 1
            while ready[code] > 0:
                i = first[code]
                first[code] = after[i]
                ready[code] -= 1
                left[code] -= 1
                order[n_ordered] = i
                n_ordered += 1
                k = user[i]
                while k >= 0:
                    waiting[k // 3] -= 1
                    if waiting[k // 3] == 0:
                        append(first, last, ready, after, op[k // 3], k // 3)
                    k = next_user[k]
    segment_start[SEGMENTS] = n_runs
    run_start[n_runs] = n_ordered
    return order_array[:n_ordered], run_ops[:n_runs], run_starts[: n_runs + 1], segment_starts


@cython.cfunc
def append(first: cython.int[::1], last: cython.int[::1], ready: cython.int[::1],
           after: cython.int[::1], code: cython.int, i: cython.int) -> cython.void:
    """Put instruction `i` at the end of its operation's queue."""
    if ready[code] == 0:
        first[code] = i
    else:
        after[last[code]] = i
    last[code] = i
    ready[code] += 1


def schedule(program, n_values=None, fused=True):
    """Arrange a program for the machine.

    Parameters
    ----------
    program : Program
        `constants`, the values of the first slots; `n` and `p`, the numbers of unknowns and
        args; the instructions `op`, `a`, `b`, `c`, with -1 where there is no operand; `tables`,
        which TABLE instructions read; and `outputs`, the slots of the results: first the
        values, then the entries of the Jacobian.
    n_values : int, optional
        How many of the outputs are values; all of them when left out.
    fused : bool
        Merge products into sums.

    Returns
    -------
    Schedule
    """
    constants = np.asarray(program.constants, float).reshape(-1)
    op, a, b, c, outputs = (
        np.array(part, np.intc).reshape(-1)
        for part in (program.op, program.a, program.b, program.c, program.outputs)
    )
    n, n_args = program.n, program.p
    if n_values is None:
        n_values = len(outputs)
    n_constants, count = len(constants), len(op)
    first_arg = n_constants + 1 + 2 * n
    base = first_arg + n_args
    tables = np.array(program.tables, float)
    check(op, a, b, c, outputs, base, tables)
    squares = (op == POWI) & (b == 2)
    op[squares] = MUL
    b[squares] = a[squares]
    segment, changes = segment_of_each(
        op, a, b, c, outputs, n_values, n_constants, first_arg, base
    )
    if fused:
        fuse(op, a, b, c, outputs, segment, base)
    order, run_op, run_start, segment_start = order_in_runs(op, a, b, c, segment, base)
    place = np.zeros(base + count, np.intc)
    place[:base] = np.arange(base)
    place[base + order] = base + np.arange(len(order))
    numbered = np.isin(op[order], NUMBERED)
    numbers = b[order][numbered]
    b[np.isin(op, NUMBERED)] = -1
    a, b, c = (np.where(part[order] >= 0, place[part[order]], -1) for part in (a, b, c))
    read = np.concatenate([a, b, c, outputs])
    b[numbered] = numbers
    slots = np.zeros(base + len(order))
    slots[:n_constants] = constants
    outputs = place[outputs]
    return Schedule(
        n, n_args, n_constants, slots, a, b, c, run_op, run_start, segment_start,
        outputs[:n_values], outputs[n_values:], changes[n_values:] == 0,
        bool(np.any(read == n_constants)),
        bool(np.any((read > n_constants + n) & (read < first_arg))), tables,
    )
