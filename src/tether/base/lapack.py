"""SciPy's LAPACK routines for the core, without the rest of SciPy.

Importing `scipy.linalg` takes longer than tracing and solving a system of thirty unknowns, and
forty times as long as loading only the extension that has the routines.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

__all__ = ["capsules"]

NAME = "scipy.linalg.cython_lapack"


def capsules(names: tuple[str, ...]) -> list[Any]:
    """Return capsules with the addresses of routines; the capsules' names are their signatures.

    Examples
    --------
    >>> from tether.base.lapack import capsules
    >>> "int *" in repr(capsules(("dgetrf",))[0])
    True
    """
    module = sys.modules.get(NAME) or _alone() or importlib.import_module(NAME)
    return [module.__pyx_capi__[name] for name in names]


def _alone() -> ModuleType | None:
    """Load only the extension; None if it cannot be found as a file.

    It is removed from `sys.modules`: a later import of `scipy.linalg` loads it as usual, with this
    same module.
    """
    import scipy

    folder = os.path.join(os.path.dirname(scipy.__file__), "linalg")
    file = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec("cython_lapack")
    spec = file and spec_from_file_location(NAME, file.origin)
    if spec is None or spec.loader is None:
        return None
    try:
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    finally:
        sys.modules.pop(NAME, None)
    return module
