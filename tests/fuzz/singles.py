"""Every idiom by itself, at the start or on a hidden branch."""

from fuzz.arguments import ARGUMENTS, WRITES
from fuzz.boxes import BOXES
from fuzz.cases import Grammar
from fuzz.holders import LEAVES
from fuzz.memory import MEMORY
from fuzz.shells import SHELLS
from fuzz.values import VALUES

SCALARS = ("y[0]", "float(y[0])", "np.sqrt(y[0] - 0.5)")


def finished(grammar, block, place, scalar="y[0]"):
    """Return a case of nothing but a block at a place."""
    return grammar.finish(grammar.place(block, place), "plain", scalar, "plain")


def of_value(value, place, scalar):
    """Compute something."""
    grammar = Grammar(f"{value.name} {place} {scalar}")
    grammar.note(value.name, value.ordinary)
    grammar.zero = value.zero
    return finished(grammar, value.block, place, scalar)


def of_leaf(leaf, place, use="x * READ", boxes=()):
    """Read a number."""
    grammar = Grammar(f"{leaf.name} {place}")
    return finished(grammar, grammar.state(leaf, boxes, use), place)


def of_written(leaf, place, new="1.25", order="before"):
    """Write a number."""
    grammar = Grammar(f"{leaf.name} {place} {new} {order}")
    return finished(grammar, grammar.write(leaf, (), new, "{}", order), place)


def of_argument(argument, use, place):
    """Use further arguments."""
    grammar = Grammar(f"{argument[0]} {use} {place}")
    return finished(grammar, grammar.argument(argument, use), place)


def of_written_argument(write, statement, place):
    """Write to further arguments, or to y."""
    grammar = Grammar(f"{write[0]} {statement} {place}")
    return finished(grammar, grammar.write_argument(write, statement), place)


def of_memory(memory, place):
    """Use what changes by being used."""
    grammar = Grammar(f"{memory[0]} {place}")
    return finished(grammar, grammar.remember(memory), place)


def of_shell(shell, place):
    """Wrap something simple."""
    grammar = Grammar(f"{shell.name} {place}")
    return finished(grammar, grammar.enclose("w = x * x", shell), place)


def singles():
    """Yield all of them."""
    a_list = next(leaf for leaf in LEAVES if leaf.name == "list")
    for place in ("hidden by y", "start"):
        for value in VALUES:
            yield from (of_value(value, place, scalar) for scalar in SCALARS)
        for leaf in LEAVES:
            yield from (of_leaf(leaf, place, use)
                        for use in ("x * READ", "x if READ > 1.5 else 0.5 * x"))
            if leaf.writable:
                yield from (of_written(leaf, place, new, order) for new in ("1.25", "x")
                            for order in ("before", "after", "never"))
        for argument in ARGUMENTS:
            yield from (of_argument(argument, use, place) for use in argument[4])
        for write in WRITES:
            yield from (of_written_argument(write, statement, place) for statement in write[2])
        yield from (of_memory(memory, place) for memory in MEMORY)
        yield from (of_shell(shell, place) for shell in SHELLS)
        yield from (of_leaf(a_list, place, boxes=(box,)) for box in BOXES)
