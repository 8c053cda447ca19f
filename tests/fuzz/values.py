"""Ways to compute a number w from a scalar x, an array v of three numbers, and t.

One expression per line in ``ordinary.txt`` and ``unusual.txt``, blocks of statements between empty
lines in ``ordinary_blocks.txt`` and ``unusual_blocks.txt``. What is ordinary is what engineers
write: it must be traced.
"""

from dataclasses import dataclass
from pathlib import Path

# A program takes zero times anything for zero: sparse matrices would be dense otherwise.
ZERO = {"x - x", "x * 0", "0 / x", "0.0 / x", "x ** 0", "x ** 0.0",
        "0.0 * math.inf * x", "x.imag", "np.imag(x)"}


@dataclass(frozen=True)
class Value:
    """One way to compute w."""

    code: str
    ordinary: bool = False

    @property
    def name(self):
        """What to call it in a report."""
        return self.code.replace("\n", "; ")[:70]

    @property
    def zero(self):
        """Whether it multiplies x by zero."""
        return self.code in ZERO or "x - x" in self.code

    @property
    def block(self):
        """Statements that assign w."""
        return self.code if "\n" in self.code else f"w = {self.code}"


def _lines(name):
    return (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()


def _blocks(name):
    return (Path(__file__).parent / name).read_text(encoding="utf-8").strip("\n").split("\n\n")


VALUES = (
    [Value(line, ordinary=True) for line in _lines("ordinary.txt")]
    + [Value(block, ordinary=True) for block in _blocks("ordinary_blocks.txt")]
    + [Value(line) for line in _lines("unusual.txt")]
    + [Value(block) for block in _blocks("unusual_blocks.txt")]
)
