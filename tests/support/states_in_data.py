"""Places in containers where a function can keep state.

Each maker returns what switches something on, and what tells whether it is on.
"""

import collections
import operator

from support.places import Places

STATES = Places()
state = STATES.add


@state
def list_append():
    log = []
    return lambda: log.append(1), lambda: bool(log)


@state
def list_slice():
    log = [0]

    def on():
        log[:] = [1]

    return on, lambda: log[0] == 1


@state
def list_in_place():
    log = [0, 1]
    return lambda: log.reverse(), lambda: log[0] == 1


@state
def list_by_operator():
    log = [0]
    return lambda: operator.setitem(log, 0, 1), lambda: log[0] == 1


@state
def list_by_unbound_method():
    log = []
    return lambda: list.append(log, 1), lambda: bool(log)


@state
def list_in_a_tuple():
    pair = ([], 1)
    return lambda: pair[0].append(1), lambda: bool(pair[0])


@state
def key_of_a_dictionary():
    class Key:
        flag = False

    table = {Key(): 1.0}

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def element_of_a_set():
    class Key:
        flag = False

    table = {Key()}

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def element_of_a_frozen_set():
    class Key:
        flag = False

    table = frozenset({Key()})

    def on():
        for key in table:
            key.flag = True

    return on, lambda: next(iter(table)).flag


@state
def order_of_a_dictionary():
    table = collections.OrderedDict(a=1, b=2)
    return lambda: table.move_to_end("a"), lambda: next(iter(table)) == "b"


@state
def order_by_reinsertion():
    table = {"a": 1, "b": 2}

    def on():
        table["a"] = table.pop("a")

    return on, lambda: next(iter(table)) == "b"


@state
def dictionary_by_setdefault():
    table = {}
    return lambda: table.setdefault("a", 1), lambda: bool(table)


@state
def default_dictionary():
    table = collections.defaultdict(list)
    return lambda: table["a"], lambda: bool(table)


@state
def default_factory():
    table = collections.defaultdict(float)

    def on():
        table.default_factory = None

    return on, lambda: table.default_factory is None


@state
def counter():
    table = collections.Counter()
    return lambda: table.update("a"), lambda: bool(table)


@state
def chain_map():
    table = collections.ChainMap({}, {})

    def on():
        table["a"] = 1

    return on, lambda: bool(table)


@state
def user_dictionary():
    table = collections.UserDict()

    def on():
        table["a"] = 1

    return on, lambda: bool(table)


@state
def user_list():
    table = collections.UserList()
    return lambda: table.append(1), lambda: bool(table)


@state
def attribute_of_a_library_class():
    def on():
        collections.UserDict.flag_of_a_test = True

    if hasattr(collections.UserDict, "flag_of_a_test"):
        del collections.UserDict.flag_of_a_test
    return on, lambda: hasattr(collections.UserDict, "flag_of_a_test")


@state
def deque_rotation():
    items = collections.deque([0, 1])
    return lambda: items.rotate(), lambda: items[0] == 1


@state
def set_add():
    items = set()
    return lambda: items.add(1), lambda: bool(items)
