"""Rows of equal shape: one short program, run over many rows, without Python.

A template is a program of a few inputs. Index tables say, for every row, which element of the
memory each input is, and where the result and the entries of the Jacobian go. Rows are run in
blocks, so that every instruction is a loop over numbers that lie side by side in the cache.

The memory holds y, y', t, the args, numbers, and intermediate results, which templates or sums
(`TEMPLATE`, `SUM` steps) compute for others. Derivatives by way of intermediate results are
products of entries; a list of them (`target`, `factor`, `through`) says which.
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
# Where the result or an entry of a step goes: to F_y, to F_y', to the list of entries that are
# multiplied, to the memory, or to the values.
TO_FY = cython.declare(cython.int, 0)
TO_FYP = cython.declare(cython.int, 1)
TO_FACTORS = cython.declare(cython.int, 2)
TO_MEMORY = cython.declare(cython.int, 3)
TO_VALUES = cython.declare(cython.int, 4)
# Where an input comes from: y, y', or the memory of everything.
OF_Y = cython.declare(cython.int, 0)
OF_YP = cython.declare(cython.int, 1)
UNIFORM = cython.declare(cython.int, -2)          # in place of a table: one place for all rows


class Rows:
    """Memory of templates at work.

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
        self.first_of_entries = keep_table(self, table.first_of_entries)
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
        self.for_entries = keep_table(self, table.for_entries)
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
        self.n_products = len(table.target)
        self.target = keep_table(self, table.target)
        self.factor = keep_table(self, table.factor)
        self.through = keep_table(self, table.through)
        self.n_totals = table.n_totals
        self.fyp_is_static = table.fyp_is_static
        self.copies_point = table.copies_point
        self.own_memory()
        self.place(np.arange(self.n_fy), np.arange(self.n_fyp))
        self.set_args(args)

    def own_memory(self):
        """Take memory that no other runner has."""
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

    def point_at_slots(self):
        """Let every slot be read in its own place."""
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
        self.arrays = self.arrays.copy()           # a twin has the list of its model
        self.fy_position = keep_table(self, fy)
        self.fyp_position = keep_table(self, fyp)
        zeros = [both[chosen] for both, chosen in zip((fy, fyp), self.table.added, strict=True)]
        self.n_fy_zeros, self.n_fyp_zeros = len(zeros[0]), len(zeros[1])
        self.fy_zero = keep_table(self, zeros[0])
        self.fyp_zero = keep_table(self, zeros[1])
        self.reach = reach_of(fy, fyp)

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

    @property
    def args(self):
        """Values of the args."""
        return self.memory_array[2 * self.n + 1:2 * self.n + 1 + self.n_args].copy()

    def values(self, t, y, yp):
        """Return the values at a point, for tests and for everything outside the core."""
        y, yp, out = vector(y, self.n), vector(yp, self.n), np.zeros(self.n_values)
        row_values(self, t, address(y), address(yp), address(out))
        return out

    def values_into(self, t, y, yp, out):
        """Write the values at a point into an array; all of them are contiguous."""
        if min(len(y), len(yp)) < self.n or len(out) < self.n_values:
            raise ValueError(f"expected {self.n}, {self.n} and {self.n_values} numbers")
        row_values(self, t, address(y), address(yp), address(out))

    def entries_into(self, t, y, yp, fy, fyp):
        """Write the entries at a point into the memory of F_y and F_y'; all are contiguous."""
        if min(len(y), len(yp)) < self.n:
            raise ValueError(f"expected {self.n} and {self.n} numbers")
        check_reach(self.reach, fy, fyp)
        row_entries(self, t, address(y), address(yp), address(fy), address(fyp))

    def constraint_addresses(self):
        """Addresses of the C functions G(t, y), of its Jacobian, and of their user data."""
        return addresses_of(rows_constraint, rows_constraint_jacobian, self)


def keep_table(rows, array):
    """Keep an array of C integers alive and return the address of its first element."""
    return keep(rows.arrays, array)


def copy_plan(a: Rows, b: Rows):
    """Let a runner do what another does, with memory that it will have."""
    b.table, b.arrays = a.table, a.arrays
    b.n, b.n_args, b.n_values, b.n_steps = a.n, a.n_args, a.n_values, a.n_steps
    b.n_fy, b.n_fyp, b.reach, b.fyp_is_static = a.n_fy, a.n_fyp, a.reach, a.fyp_is_static
    b.kind, b.count, b.code, b.to, b.a, b.b, b.c = a.kind, a.count, a.code, a.to, a.a, a.b, a.c
    b.second = a.second
    b.first, b.first_of_entries, b.t_slot = a.first, a.first_of_entries, a.t_slot
    b.pieces = a.pieces
    b.load_start, b.load_slot, b.load_table = a.load_start, a.load_slot, a.load_table
    b.load_of, b.load_blocks, b.result_first = a.load_of, a.load_blocks, a.result_first
    b.result_slot, b.result_to, b.for_entries = a.result_slot, a.result_to, a.for_entries
    b.result_table, b.entry_start, b.entry_slot = a.result_table, a.entry_start, a.entry_slot
    b.entry_kind, b.entry_table, b.index = a.entry_kind, a.entry_table, a.index
    b.sum_start, b.sum_end = a.sum_start, a.sum_end
    b.n_products, b.n_totals, b.copies_point = a.n_products, a.n_totals, a.copies_point
    b.target, b.factor, b.through = a.target, a.factor, a.through
    b.fy_position, b.fyp_position, b.entry_sets = a.fy_position, a.fyp_position, a.entry_sets
    b.n_fy_zeros, b.n_fyp_zeros = a.n_fy_zeros, a.n_fyp_zeros
    b.fy_zero, b.fyp_zero = a.fy_zero, a.fyp_zero


def pointer_to(array, place):
    """Address of an element; without the compiler, the rest of the array from there on."""
    if cython.compiled:
        return cython.address(array[place])
    return array[place:]


def load_block(m, step, block, y, yp):
    """Bring the inputs of a block of rows together."""
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
        if place >= 0:                 # they lie side by side, and can be read where they are
            m.at[m.load_slot[k]] = pointer_to(source, place)
        else:
            m.at[m.load_slot[k]] = pointer_to(w, slot)
            place = m.load_table[k] + first
            for i in range(count):
                w[slot + i] = source[index[place + i]]
    return count


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
    """Run a template on all of its rows: the results, and the entries where they are wanted.

    Values, F_y and F_y' are wanted unless there is no room for them.
    """
    i: cython.int
    k: cython.int
    count: cython.int
    block: cython.int
    first: cython.longlong = 0
    place: cython.longlong
    found: cython.p_double
    index: cython.p_int = m.index
    if m.t_slot[step] >= 0:
        found = m.at[m.t_slot[step]]
        for i in range(BLOCK):
            found[i] = t
    for block in range((m.count[step] + BLOCK - 1) // BLOCK):
        count = load_block(m, step, block, y, yp)
        run_block(m, m.first[step], m.first_of_entries[step], count)
        found = m.at[m.result_slot[step]]
        place = m.result_table[step] + first
        if m.result_to[step] == TO_MEMORY:
            for i in range(count):
                m.memory[place + i] = found[i]
        elif m.result_to[step] == TO_FY:
            for i in range(count):
                fy[m.fy_position[index[place + i]]] = found[i]
        elif m.result_to[step] == TO_FYP:
            for i in range(count):
                fyp[m.fyp_position[index[place + i]]] = found[i]
        elif out is not cython.NULL:
            if m.result_first[step] >= 0:
                place = m.result_first[step] + first
                for i in range(count):
                    out[place + i] = found[i]
            else:
                for i in range(count):
                    out[index[place + i]] = found[i]
        if fy is not cython.NULL:
            run_block(m, m.first_of_entries[step], m.first[step + 1], count)
            for k in range(m.entry_start[step], m.entry_start[step + 1]):
                found = m.at[m.entry_slot[k]]
                place = m.entry_table[k] + first
                if m.entry_kind[k] == TO_FY:
                    put(fy, m.fy_position, index, place, found, count, m.entry_sets[k])
                elif m.entry_kind[k] == TO_FYP and fyp is not cython.NULL:
                    put(fyp, m.fyp_position, index, place, found, count, m.entry_sets[k])
                elif m.entry_kind[k] == TO_FACTORS:
                    for i in range(count):
                        m.factors[place + i] = found[i]
        first += BLOCK


def put(matrix, position, index, place, found, count, sets):
    """Write the entries of a block into a matrix, where nobody has, or add them to others."""
    i: cython.int
    if sets:
        for i in range(count):
            matrix[position[index[place + i]]] = found[i]
    else:
        for i in range(count):
            matrix[position[index[place + i]]] += found[i]


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


def run_steps(m, t, y, yp, out, fy, fyp):
    """Run all steps at a point that something wanted needs."""
    step: cython.int
    i: cython.int
    if m.copies_point:                 # something reads y and y' together, or with the rest
        for i in range(m.n):
            m.memory[i] = y[i]
            m.memory[m.n + i] = yp[i]
        m.memory[2 * m.n] = t
    for step in range(m.n_steps):
        if m.for_entries[step] and fy is cython.NULL:
            continue
        if m.result_to[step] == TO_FYP and fyp is cython.NULL:
            continue
        if m.kind[step] == TEMPLATE:
            run_template(m, step, t, y, yp, out, fy, fyp)
        else:
            run_sums(m, step, y, yp)


def row_values(m, t, y, yp, out):
    """Values at a point."""
    run_steps(m, t, y, yp, out, cython.NULL, cython.NULL)


def row_entries(m, t, y, yp, fy, fyp):
    """Write the entries at a point into F_y and, unless there is no room for it, F_y'."""
    i: cython.int
    k: cython.int
    value: cython.double
    for i in range(m.n_fy_zeros):              # entries that others are added to
        fy[m.fy_zero[i]] = 0.0
    if fyp is not cython.NULL:
        for i in range(m.n_fyp_zeros):
            fyp[m.fyp_zero[i]] = 0.0
    run_steps(m, t, y, yp, cython.NULL, fy, fyp)
    for i in range(m.n_totals):
        m.totals[i] = 0.0
    for i in range(m.n_products):
        value = m.factors[m.factor[i]]
        if m.through[i] >= 0:
            value *= m.totals[m.through[i]]
        k = m.target[i]
        if k < m.n_totals:
            m.totals[k] += value
        elif k < m.n_totals + m.n_fy:
            fy[m.fy_position[k - m.n_totals]] += value
        elif fyp is not cython.NULL:
            fyp[m.fyp_position[k - m.n_totals - m.n_fy]] += value


# --- as C functions -----------------------------------------------------------------------


def rows_constraint(t, y, g, rows):
    """C function of constraints; y' does not occur in them."""
    row_values(cython.cast(Rows, rows), t, y, y, g)


def rows_constraint_jacobian(t, y, gy, rows):
    """C function of the Jacobian of constraints: a list of entries, or a matrix by rows."""
    row_slopes(cython.cast(Rows, rows), t, y, gy)


def row_slopes(m, t, y, gy):
    """Write the Jacobian with respect to y; zeros as well, unless the entries are a list."""
    i: cython.longlong
    if m.reach > m.n_fy:
        for i in range(cython.cast(cython.longlong, m.n_values) * m.n):
            gy[i] = 0.0
    row_entries(m, t, y, y, gy, cython.NULL)


if not cython.compiled:
    # What the compiled runner does without a word, NumPy's numbers would warn of.
    run_steps = np.errstate(all="ignore")(run_steps)
