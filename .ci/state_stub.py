"""Write the types of the core's `State` for the type checker, from its .pxd and its methods.

python .ci/state_stub.py > src/tether/_core/state.pyi      (a test compares)
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

CORE = Path(__file__).parents[1] / "src" / "tether" / "_core"
TYPES = {
    "int": "int", "long long": "int", "unsigned long long": "int", "bint": "bool",
    "double": "float", "object": "Any", "list": "list[Any]", "dict": "dict[str, Any]",
    "Matrix": "Matrix",
}
HEAD = '''"""Types of the core's State; written by .ci/state_stub.py from state.pxd and state.py."""

from typing import Any

import numpy as np

from tether._core.matrix import Matrix

class State:
'''


def attributes() -> list[str]:
    """Public attributes with their types, in the order of the .pxd."""
    lines = []
    for kind, names in re.findall(
        r"^    cdef (?:public|readonly) ([A-Za-z ]+?) (\w+(?:, \w+)*)\s*(?:#.*)?$",
        (CORE / "state.pxd").read_text(), flags=re.M,
    ):
        lines += [f"    {name}: {TYPES[kind]}" for name in names.split(", ")]
    return lines


def methods() -> list[str]:
    """Methods; properties are arrays."""
    tree = ast.parse((CORE / "state.py").read_text())
    state = next(node for node in tree.body if isinstance(node, ast.ClassDef))
    lines = []
    for method in state.body:
        if not isinstance(method, ast.FunctionDef):
            continue
        if method.decorator_list:
            lines += ["    @property", f"    def {method.name}(self) -> np.ndarray: ..."]
            continue
        arguments = method.args.args[1:]
        optional = len(arguments) - len(method.args.defaults)
        typed = [
            f"{argument.arg}: Any" + ("" if number < optional else " = ...")
            for number, argument in enumerate(arguments)
        ]
        result = "np.ndarray" if method.name == "array" else "None"
        lines.append(f"    def {method.name}({', '.join(['self', *typed])}) -> {result}: ...")
    return lines


def stub() -> str:
    """Return the text of the stub."""
    return HEAD + "\n".join(attributes() + methods()) + "\n"


if __name__ == "__main__":
    print(stub(), end="")
