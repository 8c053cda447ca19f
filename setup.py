"""Build of the compiled core; everything else is declared in pyproject.toml."""
import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

CORE = Path("src/tether/_core")
# No fast-math: the core tells NaN from numbers and sums in the order that is written. No
# contraction of products and sums: a program gives the same digits on every processor.
FLAGS = ["/O2"] if os.name == "nt" else [
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
]

extensions = [
    Extension(
        f"tether._core.{source.stem}",
        [source.as_posix()],
        include_dirs=[numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS,
    )
    for source in sorted(CORE.glob("*.py"))
    if source.stem not in ("__init__", "codes", "libm", "opcodes")
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
