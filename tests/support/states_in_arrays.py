"""Places in arrays and blocks of memory where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import array
import ctypes
import struct

import numpy as np

from support.places import Places

STATES = Places()
state = STATES.add


@state
def whole_array():
    items = np.zeros(2)

    def on():
        items[:] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_fill():
    items = np.zeros(2)
    return lambda: items.fill(1.0), lambda: items[0] == 1.0


@state
def array_view():
    items = np.zeros(2)
    view = items[1:]

    def on():
        view[0] = 1.0

    return on, lambda: items[1] == 1.0


@state
def array_flat():
    items = np.zeros(2)

    def on():
        items.flat[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def flat_iterator():
    items = np.zeros(2)
    flat = items.flat

    def on():
        flat[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_of_integers():
    items = np.zeros(2, dtype=int)

    def on():
        items[0] += 1

    return on, lambda: items[0] == 1


@state
def array_of_booleans():
    items = np.zeros(2, dtype=bool)

    def on():
        items[0] = True

    return on, lambda: bool(items[0])


@state
def array_of_objects():
    items = np.array([[], None], dtype=object)
    return lambda: items[0].append(1), lambda: bool(items[0])


@state
def array_of_objects_itself():
    items = np.array([0, None], dtype=object)

    def on():
        items[0] = 1

    return on, lambda: bool(items[0])


@state
def structured_array():
    items = np.zeros(2, dtype=[("a", float)])

    def on():
        items["a"] = 1.0

    return on, lambda: items["a"][0] == 1.0


@state
def array_made_writeable():
    items = np.zeros(2)

    def on():
        items.setflags(write=True)
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_made_writeable_by_flags():
    items = np.zeros(2)

    def on():
        items.flags.writeable = True
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def base_of_an_array():
    items = np.zeros((2, 1)).T

    def on():
        items.base[0] = 1.0

    return on, lambda: items[0, 0] == 1.0


@state
def numpy_copyto():
    items = np.zeros(2)
    return lambda: np.copyto(items, 1.0), lambda: items[0] == 1.0


@state
def numpy_put():
    items = np.zeros(2)
    return lambda: np.put(items, 0, 1.0), lambda: items[0] == 1.0


@state
def numpy_at():
    items = np.zeros(2)
    return lambda: np.add.at(items, 0, 1.0), lambda: items[0] == 1.0


@state
def numpy_out():
    items = np.zeros(2)
    return lambda: np.add(items, 1.0, out=items), lambda: items[0] == 1.0


@state
def numpy_out_by_place():
    items = np.zeros(2)
    return lambda: np.add(items, 1.0, items), lambda: items[0] == 1.0


@state
def numpy_fill_diagonal():
    items = np.zeros((2, 2))
    return lambda: np.fill_diagonal(items, 1.0), lambda: items[0, 0] == 1.0


@state
def numpy_place():
    items = np.zeros(2)
    return lambda: np.place(items, [True, False], [1.0]), lambda: items[0] == 1.0


@state
def numpy_sort():
    items = np.array([1.0, 0.0])
    return lambda: items.sort(), lambda: items[0] == 0.0


@state
def numpy_shape():
    items = np.zeros((2, 1))

    def on():
        items.shape = (1, 2)

    return on, lambda: items.shape == (1, 2)


@state
def numpy_resize():
    items = np.zeros(2)
    return lambda: items.resize(3, refcheck=False), lambda: items.size == 3


@state
def numpy_matrix():
    items = np.matrix([[0.0]])

    def on():
        items[0, 0] = 1.0

    return on, lambda: items[0, 0] == 1.0


@state
def masked_array():
    items = np.ma.zeros(2)

    def on():
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def numpy_nditer():
    items = np.zeros(2)

    def on():
        with np.nditer(items, op_flags=["readwrite"]) as view:
            for x in view:
                x[...] = 1.0

    return on, lambda: items[0] == 1.0


@state
def numpy_polynomial():
    line = np.poly1d([2.0, 1.0])

    def on():
        line.coef[0] = 1.0

    return on, lambda: line.coef[0] == 1.0


@state
def numpy_random():
    generator = np.random.default_rng(1)
    before = repr(generator.bit_generator.state)
    return lambda: generator.normal(), lambda: repr(generator.bit_generator.state) != before


@state
def numpy_frompyfunc():
    log = []
    note = np.frompyfunc(lambda x: log.append(1), 1, 1)
    return lambda: note(1.0), lambda: bool(log)


@state
def numpy_vectorize():
    log = []
    note = np.vectorize(lambda x: log.append(1) or 0.0)
    return lambda: note(1.0), lambda: bool(log)


@state
def numpy_error_state():
    def on():
        np.seterr(divide="raise")

    np.seterr(divide="warn")
    return on, lambda: np.geterr()["divide"] == "raise"


@state
def print_options():
    def on():
        np.set_printoptions(precision=3)

    np.set_printoptions(precision=8)
    return on, lambda: np.get_printoptions()["precision"] == 3


@state
def memory_view():
    items = np.zeros(1)
    view = memoryview(items)

    def on():
        view[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def memory_view_inside():
    items = np.zeros(1)

    def on():
        memoryview(items)[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def array_of_the_library():
    items = array.array("d", [0.0])

    def on():
        items[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def byte_array():
    items = bytearray(1)

    def on():
        items[0] = 1

    return on, lambda: items[0] == 1


@state
def c_number():
    number = ctypes.c_double(0.0)

    def on():
        number.value = 1.0

    return on, lambda: number.value == 1.0


@state
def c_array():
    numbers = (ctypes.c_double * 2)()

    def on():
        numbers[0] = 1.0

    return on, lambda: numbers[0] == 1.0


@state
def c_pointer_to_an_array():
    items = np.zeros(1)

    def on():
        items.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0] = 1.0

    return on, lambda: items[0] == 1.0


@state
def c_structure():
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_double),)

    pair = Pair()

    def on():
        pair.x = 1.0

    return on, lambda: pair.x == 1.0


@state
def packed():
    items = bytearray(8)
    return lambda: struct.pack_into("d", items, 0, 1.0), lambda: any(items)
