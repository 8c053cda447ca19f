"""Compile and load the C source of a residual."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tether.gallery.base import GalleryProblem


def find_compiler() -> str | None:
    """Path of the C compiler, or None: the variable CC, else cc, gcc or clang."""
    candidates = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


def compile_residual(problem: GalleryProblem, folder: str | os.PathLike[str]) -> Any:
    """Compile the C residual of a problem and load it.

    Parameters
    ----------
    problem : GalleryProblem
        Problem with a `c_source`.
    folder : path
        Existing folder for the library; it has to outlive the function.

    Returns
    -------
    ctypes function
        ``void (double, double *, double *, double *)``, accepted by `scipy.LowLevelCallable`.

    Raises
    ------
    ValueError
        The problem has no C source.
    RuntimeError
        No compiler was found, or it rejected the source.
    """
    if problem.c_source is None:
        raise ValueError(f"{problem.name} has no C residual")
    compiler = find_compiler()
    if compiler is None:
        raise RuntimeError("no C compiler found: install gcc or set CC")
    # with n in the name, problems of the same name and different sizes do not collide
    source = Path(folder) / f"{problem.name}-{problem.n}.c"
    library = source.with_suffix(".so")
    source.write_text(problem.c_source, encoding="utf-8")
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    outcome = subprocess.run(command, capture_output=True, text=True)
    if outcome.returncode:
        raise RuntimeError(f"{compiler} rejected {source.name}:\n{outcome.stderr}")
    function = ctypes.CDLL(str(library)).residual
    pointer = ctypes.POINTER(ctypes.c_double)
    function.restype = None
    function.argtypes = [ctypes.c_double, pointer, pointer, pointer]
    return function
