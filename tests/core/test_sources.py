"""What holds for the sources of the core."""

import re
from pathlib import Path

import pytest

import tether._core

CORE = sorted(Path(tether._core.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.name)
def test_nothing_is_counted_from_the_end(path):
    """The core is compiled without that: what an index of -1 means depends on the Python."""
    assert not re.findall(r"\w\[-\d", path.read_text(encoding="utf-8"))
