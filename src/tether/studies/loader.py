"""C text compiled and loaded: several functions of one library."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tether.gallery.compiled import find_compiler

POINTER = ctypes.POINTER(ctypes.c_double)


def load_library(name: str, text: str) -> ctypes.CDLL:
    """Compile C text and load it.

    Parameters
    ----------
    name : str
        Name of the file.
    text : str
        The C text.

    Raises
    ------
    RuntimeError
        No compiler was found, or it refused the text.
    """
    compiler = find_compiler()
    if compiler is None:
        raise RuntimeError("no C compiler found: install gcc or set CC")
    # a library that is loaded no longer needs its file, except where the system locks it
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source = Path(folder) / f"{name}.c"
        library = source.with_suffix(".so")
        source.write_text(text, encoding="utf-8")
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        outcome = subprocess.run(command, capture_output=True, text=True)
        if outcome.returncode:
            raise RuntimeError(f"{compiler} refused {source.name}:\n{outcome.stderr}")
        return ctypes.CDLL(str(library))


def c_function(library: ctypes.CDLL, name: str, pointers: int) -> Any:
    """Return ``void name(double, double *, ...)`` of a library, with that many pointers."""
    function = getattr(library, name)
    function.restype = None
    function.argtypes = [ctypes.c_double] + [POINTER] * pointers
    return function
