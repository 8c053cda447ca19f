"""Build of the compiled core; everything else is declared in pyproject.toml."""
import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CORE = Path("src/tether/_core")
TRACE = Path("src/tether/trace")
# Outside the core what makes and flattens expressions is compiled: a first call waits for it.
COMPILED = [
    *(source for source in sorted(CORE.glob("*.py"))
      if source.stem not in ("__init__", "codes", "libm", "opcodes")),
    *(TRACE / f"{name}.py" for name in ("derive", "emit", "graph", "rewrite")),
]
# No fast-math: the core tells NaN from numbers and sums in the order that is written. No
# contraction of products and sums: a program gives the same digits on every processor.
FLAGS = ["/O2"] if os.name == "nt" else [
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
]

extensions = [
    Extension(
        ".".join(source.with_suffix("").parts[1:]),
        [source.as_posix()],
        include_dirs=[numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS,
    )
    for source in COMPILED
]

setup(
    ext_modules=cythonize(
        extensions,
        nthreads=0,
        # the C text depends on the declarations of the NumPy at hand
        build_dir=f"build/{sys.implementation.cache_tag}-numpy-{numpy.__version__}",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
        },
    )
)
