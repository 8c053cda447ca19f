"""Rows of equal shape: one short program, run over many rows, without Python.

A template is a program of a few inputs. Index tables say, for every row, which element of the
memory each input is, and where the result or the entries of the Jacobian go. Rows are run in
blocks, so that every instruction is a loop over adjacent numbers in the cache.

Values, entries that change from point to point and those that follow from constants and args alone
are three passes over the steps that compute them. Entries that do not change are written once. If
they are terms of entries that do, their sums are kept, and the pass for the latter starts from
them.

The memory holds y, y', t, the args, numbers, and intermediate results, which templates or sums
(`TEMPLATE`, `SUM` steps) compute for others. Derivatives by way of intermediate results are
products of entries, listed in `target`, `factor` and `through`.
"""

import cython
import numpy as np

from tether._core.runner import check_reach, reach_of, vector

if not cython.compiled:
    from tether._core.arrays import address
    from tether._core.row_operations import run_instruction
    from tether._core.runner import addresses_of, keep

if not cython.compiled:
    BLOCK = 128
TEMPLATE, SUM = cython.declare(cython.int, 0), cython.declare(cython.int, 1)
# Destinations of results and entries: F_y, F_y', the list of entries to be multiplied, the memory,
# or the values. A step for entries has no result.
TO_FY = cython.declare(cython.int, 0)
TO_FYP = cython.declare(cython.int, 1)
TO_FACTORS = cython.declare(cython.int, 2)
TO_MEMORY = cython.declare(cython.int, 3)
TO_VALUES = cython.declare(cython.int, 4)
TO_NOTHING = cython.declare(cython.int, 5)
# What steps are run for, as bits.
VALUES = cython.declare(cython.int, 1)
CHANGING = cython.declare(cython.int, 2)
CONSTANT = cython.declare(cython.int, 4)
# Where an input comes from: y, y', or the memory of everything.
OF_Y = cython.declare(cython.int, 0)
OF_YP = cython.declare(cython.int, 1)
UNIFORM = cython.declare(cython.int, -2)          # instead of a table: the same place for all rows
# Instead of the place of a block's first row: places by the table, or RUNS - where its runs are
# listed, with the end of each and how far its places are from those in the block.
ONE_BY_ONE = cython.declare(cython.int, -1)
RUNS = cython.declare(cython.int, -2)


class Rows:
    """Memory of running templates.

    Parameters
    ----------
    table : RowTable
        What to do (`tether.trace.row_table`).
    args : sequence of float
        Values of the args.
    """

    def __init__(self, table, args=()):
        self.table = table
        self.arrays = []
        self.n = table.n
        self.n_args = table.n_args
        self.n_values = table.n_values
        self.n_steps = len(table.kind)
        self.n_fy = len(table.fy[0])
        self.n_fyp = len(table.fyp[0])
        self.kind = keep_table(self, table.kind)
        self.count = keep_table(self, table.count)
        # --- programs
        self.code = keep_table(self, table.code)
        self.to = keep_table(self, table.to)
        self.a = keep_table(self, table.a)
        self.b = keep_table(self, table.b)
        self.c = keep_table(self, table.c)
        self.second = keep_table(self, table.second)
        self.first = keep_table(self, table.first)
        self.runs_for = keep_table(self, table.runs_for)
        self.t_slot = keep_table(self, table.t_slot)
        self.pieces = address(table.pieces)
        # --- inputs, results, entries
        self.load_start = keep_table(self, table.load_start)
        self.load_slot = keep_table(self, table.load_slot)
        self.load_table = keep_table(self, table.load_table)
        self.load_of = keep_table(self, table.load_of)
        self.load_blocks = keep_table(self, table.load_blocks)
        self.result_slot = keep_table(self, table.result_slot)
        self.result_to = keep_table(self, table.result_to)
        self.result_table = keep_table(self, table.result_table)
        self.result_first = keep_table(self, table.result_first)
        self.entry_start = keep_table(self, table.entry_start)
        self.entry_slot = keep_table(self, table.entry_slot)
        self.entry_kind = keep_table(self, table.entry_kind)
        self.entry_table = keep_table(self, table.entry_table)
        self.entry_sets = keep_table(self, table.entry_sets)
        self.index = keep_table(self, table.index)
        # --- sums
        self.sum_start = keep_table(self, table.sum_start)
        self.sum_end = keep_table(self, table.sum_end)
        # --- products of entries
        self.factor = keep_table(self, table.factor)
        self.through = keep_table(self, table.through)
        self.product_end = keep_table(self, table.product_ends)
        self.n_constant_totals, self.n_changing_totals = map(len, table.total_zeros)
        self.constant_total = keep_table(self, table.total_zeros[0])
        self.changing_total = keep_table(self, table.total_zeros[1])
        self.n_based, self.n_based_slopes = map(len, table.based)
        self.n_zeros, self.n_zero_slopes = map(len, table.zeros)
        self.fyp_is_static = table.fyp_is_static
        self.copies_point = table.copies_point
        self.own_memory()
        self.keep_places(None, None)
        self.set_args(args)

    def own_memory(self):
        """Allocate memory that is not shared with other runners."""
        table = self.table
        self.memory_array = table.memory.copy()
        self.memory = address(self.memory_array)
        self.slots_array = np.repeat(table.slots, BLOCK)
        self.slots = address(self.slots_array)
        self.point_at_slots()
        self.factors_array = table.factors.copy()
        self.factors = address(self.factors_array)
        self.totals_array = np.zeros(max(table.n_totals, 1))
        self.totals = address(self.totals_array)
        self.bases_array = np.zeros(max(self.n_based + self.n_based_slopes, 1))
        self.bases = address(self.bases_array)

    def point_at_slots(self):
        """Let every slot be read from its own memory."""
        k: cython.longlong
        count = len(self.table.slots)
        if cython.compiled:
            self.addresses = np.empty(count, np.uintp)
            view: cython.size_t[::1] = self.addresses
            self.at = cython.cast(cython.pp_double, cython.address(view[0]))
        else:
            self.at = [None] * count
        for k in range(count):
            self.at[k] = pointer_to(self.slots, k * BLOCK)

    def place(self, fy_positions, fyp_positions):
        """Write the entries to other positions in the memory of F_y and of F_y'."""
        fy, fyp = (np.ascontiguousarray(x, np.intc) for x in (fy_positions, fyp_positions))
        if len(fy) != self.n_fy or len(fyp) != self.n_fyp:
            raise ValueError(
                f"there are {self.n_fy} + {self.n_fyp} entries, but {len(fy)} + {len(fyp)} "
                "positions"
            )
        self.arrays = self.arrays.copy()           # a twin shares the list
        self.keep_places(fy, fyp)

    def keep_places(self, fy, fyp):
        """Keep the positions of entries in the memory of F_y and F_y'; None: in their own order."""
        table = self.table
        targets = np.array(table.target, np.intc)
        for which, first in ((fy, 1), (fyp, 2)):
            for group in (first, first + 3):
                part = slice(table.product_ends[group - 1], table.product_ends[group])
                targets[part] = at_positions(which, targets[part])
        self.target = keep_table(self, targets)
        self.fy_place = keep_table(self, at_positions(fy, table.places[0]))
        self.fyp_place = keep_table(self, at_positions(fyp, table.places[1]))
        self.based = keep_table(self, at_positions(fy, table.based[0]))
        self.based_slope = keep_table(self, at_positions(fyp, table.based[1]))
        self.zero = keep_table(self, at_positions(fy, table.zeros[0]))
        self.zero_slope = keep_table(self, at_positions(fyp, table.zeros[1]))
        self.reach = max(self.n_fy, self.n_fyp) if fy is None else reach_of(fy, fyp)
        self.constants_due = True

    def twin(self, args):
        """Make another memory for the same templates."""
        other: Rows = Rows.__new__(Rows)
        copy_plan(self, other)
        other.own_memory()
        other.set_args(args)
        return other

    def set_args(self, args):
        """Take new values of the args."""
        if len(args) != self.n_args:
            raise ValueError(f"the program has {self.n_args} args, got {len(args)}")
        self.memory_array[2 * self.n + 1:2 * self.n + 1 + self.n_args] = args
        self.constants_due = True

    @property
    def args(self):
        """Values of the args."""
        return self.memory_array[2 * self.n + 1:2 * self.n + 1 + self.n_args].copy()

    def values(self, t, y, yp):
        """Return the values at a point, for tests and for callers outside the core."""
        y, yp, out = vector(y, self.n), vector(yp, self.n), np.zeros(self.n_values)
        row_values(self, t, address(y), address(yp), address(out))
        return out

    def values_into(self, t, y, yp, out):
        """Write the values at a point into an array; all arrays must be contiguous."""
        if min(len(y), len(yp)) < self.n or len(out) < self.n_values:
            raise ValueError(f"expected {self.n}, {self.n} and {self.n_values} numbers")
        row_values(self, t, address(y), address(yp), address(out))

    def entries_into(self, t, y, yp, fy, fyp):
        """Write the entries at a point into contiguous memory of F_y and F_y'."""
        if min(len(y), len(yp)) < self.n:
            raise ValueError(f"expected {self.n} and {self.n} numbers")
        check_reach(self.reach, fy, fyp)
        row_entries(self, t, address(y), address(yp), address(fy), address(fyp))

    def changing_into(self, t, y, yp, fy, fyp):
        """Write the entries that change from point to point; the others must already be written."""
        if min(len(y), len(yp)) < self.n:
            raise ValueError(f"expected {self.n} and {self.n} numbers")
        check_reach(self.reach, fy, fyp)
        row_changing(self, t, address(y), address(yp), address(fy), address(fyp))

    def constraint_addresses(self):
        """Addresses of the C functions G(t, y), of its Jacobian, and of their user data."""
        return addresses_of(rows_constraint, rows_constraint_jacobian, self)


def keep_table(rows, array):
    """Keep an array of C integers alive and return the address of its first element."""
    return keep(rows.arrays, array)


def at_positions(positions, numbers):
    """Return the positions of entries, given by number; ~number becomes ~position."""
    if positions is None:
        return numbers
    found = positions[np.where(numbers < 0, ~numbers, numbers)]
    return np.where(numbers < 0, ~found, found)


def copy_plan(a: Rows, b: Rows):
    """Let a runner share all that does not change with another one."""
    b.table, b.arrays = a.table, a.arrays
    b.n, b.n_args, b.n_values, b.n_steps = a.n, a.n_args, a.n_values, a.n_steps
    b.n_fy, b.n_fyp, b.reach, b.fyp_is_static = a.n_fy, a.n_fyp, a.reach, a.fyp_is_static
    b.kind, b.count, b.code, b.to, b.a, b.b, b.c = a.kind, a.count, a.code, a.to, a.a, a.b, a.c
    b.second, b.first, b.runs_for, b.t_slot = a.second, a.first, a.runs_for, a.t_slot
    b.pieces = a.pieces
    b.load_start, b.load_slot, b.load_table = a.load_start, a.load_slot, a.load_table
    b.load_of, b.load_blocks, b.result_first = a.load_of, a.load_blocks, a.result_first
    b.result_slot, b.result_to, b.result_table = a.result_slot, a.result_to, a.result_table
    b.entry_start, b.entry_slot, b.entry_kind = a.entry_start, a.entry_slot, a.entry_kind
    b.entry_table, b.entry_sets, b.index = a.entry_table, a.entry_sets, a.index
    b.fy_place, b.fyp_place = a.fy_place, a.fyp_place
    b.sum_start, b.sum_end, b.copies_point = a.sum_start, a.sum_end, a.copies_point
    b.target, b.factor, b.through, b.product_end = a.target, a.factor, a.through, a.product_end
    b.n_constant_totals, b.n_changing_totals = a.n_constant_totals, a.n_changing_totals
    b.constant_total, b.changing_total = a.constant_total, a.changing_total
    b.n_based, b.n_based_slopes, b.based, b.based_slope = (
        a.n_based, a.n_based_slopes, a.based, a.based_slope
    )
    b.n_zeros, b.n_zero_slopes, b.zero, b.zero_slope = (
        a.n_zeros, a.n_zero_slopes, a.zero, a.zero_slope
    )


def pointer_to(array, place):
    """Address of an element; uncompiled, the rest of the array from there on."""
    if cython.compiled:
        return cython.address(array[place])
    return array[place:]


def load_block(m, step, block, y, yp):
    """Gather the inputs of a block of rows."""
    k: cython.int
    i: cython.int
    place: cython.longlong
    slot: cython.longlong
    first: cython.longlong = cython.cast(cython.longlong, block) * BLOCK
    count: cython.int = cython.cast(cython.int, min(BLOCK, m.count[step] - first))
    w: cython.p_double = m.slots
    index: cython.p_int = m.index
    source: cython.p_double
    for k in range(m.load_start[step], m.load_start[step + 1]):
        slot = cython.cast(cython.longlong, m.load_slot[k]) * BLOCK
        source = y if m.load_of[k] == OF_Y else yp if m.load_of[k] == OF_YP else m.memory
        if m.load_table[k] == UNIFORM:
            for i in range(count):
                w[slot + i] = source[m.load_blocks[k]]
            continue
        place = index[m.load_blocks[k] + block]
        if place >= 0:                 # adjacent, so they can be read where they are
            m.at[m.load_slot[k]] = pointer_to(source, place)
            continue
        m.at[m.load_slot[k]] = pointer_to(w, slot)
        if place != ONE_BY_ONE:
            copy_runs(m, RUNS - place, source, slot, count)
            continue
        place = m.load_table[k] + first
        for i in range(count):
            w[slot + i] = source[index[place + i]]
    return count


def copy_runs(m, place, source, slot, count):
    """Copy the inputs of a block that come from a few runs of adjacent places."""
    i: cython.longlong
    begin: cython.longlong = 0
    end: cython.longlong
    shift: cython.longlong
    w: cython.p_double = m.slots
    while begin < count:
        end = m.index[place]
        shift = m.index[place + 1]
        for i in range(begin, end):
            w[slot + i] = source[shift + i]
        begin = end
        place += 2


def run_block(m, begin, end, count):
    """Run instructions of a template on the rows of a block."""
    k: cython.int
    at: cython.pp_double = m.at
    for k in range(begin, end):
        run_instruction(
            m.code[k], at[m.to[k]], at[m.a[k]], at[m.second[k]], at[m.c[k]], m.b[k], m.pieces,
            count,
        )


def run_template(m, step, t, y, yp, out, fy, fyp):
    """Run a template on all of its rows: for its results, or for entries of the Jacobian."""
    i: cython.int
    k: cython.int
    count: cython.int
    block: cython.int
    first: cython.longlong = 0
    found: cython.p_double
    in_place: cython.bint = is_written_in_place(m, step)
    if m.t_slot[step] >= 0:
        found = m.at[m.t_slot[step]]
        for i in range(BLOCK):
            found[i] = t
    for block in range((m.count[step] + BLOCK - 1) // BLOCK):
        count = load_block(m, step, block, y, yp)
        if in_place:
            point_at_results(m, step, first, out)
        run_block(m, m.first[step], m.first[step + 1], count)
        if not in_place and m.result_to[step] != TO_NOTHING:
            put_results(m, step, first, count, out, fy, fyp)
        for k in range(m.entry_start[step], m.entry_start[step + 1]):
            put_entries(m, k, first, count, fy, fyp)
        first += BLOCK


def is_written_in_place(m, step):
    """Tell whether the results of a template are computed, and belong to adjacent places."""
    if m.first[step] == m.first[step + 1] or m.result_slot[step] < m.to[m.first[step]]:
        return False
    return m.result_to[step] == TO_MEMORY or (
        m.result_to[step] == TO_VALUES and m.result_first[step] >= 0
    )


def point_at_results(m, step, first, out):
    """Let the results of a block be computed where they belong."""
    if m.result_to[step] == TO_MEMORY:
        m.at[m.result_slot[step]] = pointer_to(m.memory, m.result_table[step] + first)
    else:
        m.at[m.result_slot[step]] = pointer_to(out, m.result_first[step] + first)


def put_results(m, step, first, count, out, fy, fyp):
    """Write the results of a block of rows to their destination."""
    i: cython.int
    index: cython.p_int = m.index
    found: cython.p_double = m.at[m.result_slot[step]]
    place: cython.longlong = m.result_table[step] + first
    if m.result_to[step] == TO_MEMORY:
        for i in range(count):
            m.memory[place + i] = found[i]
    elif m.result_to[step] == TO_FY:
        put(fy, m.fy_place, place, found, count, True)
    elif m.result_to[step] == TO_FYP:
        put(fyp, m.fyp_place, place, found, count, True)
    elif m.result_first[step] >= 0:
        place = m.result_first[step] + first
        for i in range(count):
            out[place + i] = found[i]
    else:
        for i in range(count):
            out[index[place + i]] = found[i]


def put_entries(m, k, first, count, fy, fyp):
    """Write one entry of each row of a block to its destination."""
    i: cython.int
    found: cython.p_double = m.at[m.entry_slot[k]]
    place: cython.longlong = m.entry_table[k] + first
    if m.entry_kind[k] == TO_FY:
        put(fy, m.fy_place, place, found, count, m.entry_sets[k])
    elif m.entry_kind[k] == TO_FYP:
        put(fyp, m.fyp_place, place, found, count, m.entry_sets[k])
    else:
        for i in range(count):
            m.factors[place + i] = found[i]


def put(matrix, places, first, found, count, sets):
    """Write the entries of a block into a matrix, or add them to others."""
    i: cython.int
    place: cython.int
    if matrix is cython.NULL:          # not wanted
        return
    if sets:
        for i in range(count):
            matrix[places[first + i]] = found[i]
    else:
        for i in range(count):
            place = places[first + i]
            if place >= 0:
                matrix[place] = found[i]
            else:
                matrix[~place] += found[i]


def run_sums(m, step, y, yp):
    """Add up multiples of elements."""
    i: cython.int
    k: cython.int
    total: cython.double
    begin: cython.int = 0
    source: cython.p_double
    index: cython.p_int = m.index
    load: cython.int = m.load_start[step]
    place: cython.longlong = m.result_table[step]
    terms: cython.longlong = m.load_table[load]
    ends: cython.longlong = m.sum_start[step]
    factors: cython.longlong = m.entry_table[m.entry_start[step]]
    source = y if m.load_of[load] == OF_Y else yp if m.load_of[load] == OF_YP else m.memory
    for i in range(m.count[step]):
        total = 0.0
        for k in range(begin, m.sum_end[ends + i]):
            total += m.factors[factors + k] * source[index[terms + k]]
        begin = m.sum_end[ends + i]
        m.memory[place + i] = total


def run_steps(m, wanted, t, y, yp, out, fy, fyp):
    """Run the steps needed for what is wanted."""
    step: cython.int
    i: cython.int
    if m.copies_point and wanted != CONSTANT:
        for i in range(m.n):           # some step reads y and y' together, or with the rest
            m.memory[i] = y[i]
            m.memory[m.n + i] = yp[i]
        m.memory[2 * m.n] = t
    for step in range(m.n_steps):
        if m.runs_for[step] & wanted:
            if m.kind[step] == TEMPLATE:
                run_template(m, step, t, y, yp, out, fy, fyp)
            else:
                run_sums(m, step, y, yp)


def row_values(m, t, y, yp, out):
    """Values at a point."""
    run_steps(m, VALUES, t, y, yp, out, cython.NULL, cython.NULL)


def row_entries(m, t, y, yp, fy, fyp):
    """Write all entries at a point into F_y and F_y'; F_y' may be NULL."""
    row_constants(m, fy, fyp)
    row_changing(m, t, y, yp, fy, fyp)


def row_constants(m, fy, fyp):
    """Write the entries that follow from constants and args, which nothing overwrites."""
    i: cython.int
    set_zero(fy, m.zero, m.n_zeros)
    set_zero(fyp, m.zero_slope, m.n_zero_slopes)
    set_zero(m.totals, m.constant_total, m.n_constant_totals)
    # no such step reads y or y'
    run_steps(m, CONSTANT, 0.0, m.memory, m.memory, cython.NULL, fy, fyp)
    add_products(m, 0, fy, fyp)
    for i in range(m.n_based):
        m.bases[i] = fy[m.based[i]]
    if fyp is not cython.NULL:
        for i in range(m.n_based_slopes):
            m.bases[m.n_based + i] = fyp[m.based_slope[i]]


def row_changing(m, t, y, yp, fy, fyp):
    """Write the entries that change from point to point; the others must already be written."""
    i: cython.int
    for i in range(m.n_based):
        fy[m.based[i]] = m.bases[i]
    if fyp is not cython.NULL:
        for i in range(m.n_based_slopes):
            fyp[m.based_slope[i]] = m.bases[m.n_based + i]
    set_zero(m.totals, m.changing_total, m.n_changing_totals)
    run_steps(m, CHANGING, t, y, yp, cython.NULL, fy, fyp)
    add_products(m, 3, fy, fyp)


def set_zero(vector, places, count):
    """Make some elements zero."""
    i: cython.int
    if vector is not cython.NULL:
        for i in range(count):
            vector[places[i]] = 0.0


def add_products(m, group, fy, fyp):
    """Add up products for totals, F_y and F_y': three groups."""
    begin: cython.int = m.product_end[group - 1] if group > 0 else 0
    add_group(m, begin, m.product_end[group], m.totals)
    add_group(m, m.product_end[group], m.product_end[group + 1], fy)
    if fyp is not cython.NULL:
        add_group(m, m.product_end[group + 1], m.product_end[group + 2], fyp)


def add_group(m, begin, end, sums):
    """Add products to their targets."""
    i: cython.int
    value: cython.double
    for i in range(begin, end):
        value = m.factors[m.factor[i]]
        if m.through[i] >= 0:
            value *= m.totals[m.through[i]]
        sums[m.target[i]] += value


# --- as C functions -----------------------------------------------------------------------


def rows_constraint(t, y, g, rows):
    """C function for constraints, which do not depend on y'."""
    row_values(cython.cast(Rows, rows), t, y, y, g)


def rows_constraint_jacobian(t, y, gy, rows):
    """C function for the Jacobian of constraints: a list of entries, or a matrix by rows."""
    row_slopes(cython.cast(Rows, rows), t, y, gy)


def row_slopes(m, t, y, gy):
    """Write the Jacobian with respect to y, including zeros unless it is a list of entries."""
    i: cython.longlong
    if m.reach > m.n_fy:
        for i in range(cython.cast(cython.longlong, m.n_values) * m.n):
            gy[i] = 0.0
    row_entries(m, t, y, y, gy, cython.NULL)


if not cython.compiled:
    # NumPy's scalars would warn where the compiled runner is silent.
    run_steps = np.errstate(all="ignore")(run_steps)
