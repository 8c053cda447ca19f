"""Build of the compiled core; everything else is declared in pyproject.toml."""
import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("src/tether/_core")
TRACE = Path("src/tether/trace")
# Outside the core what makes and flattens expressions is compiled: a first call waits for it.
COMPILED = [
    *(source for source in sorted(CORE.glob("*.py"))
      if source.stem not in ("__init__", "codes", "libm", "opcodes")),
    *(TRACE / f"{name}.py" for name in ("derive", "emit", "graph", "rewrite")),
]
# What Cython needs for memory views, compiled once instead of in every module that uses them:
# half of the compiler's time.
SHARED = "tether._core._cyutility"
# No fast-math: the core tells NaN from numbers and sums in the order that is written. No
# contraction of products and sums: a program gives the same digits on every processor. No symbols
# for debuggers: they are a fifth of the compiler's time and most of what a wheel would hold. Loops
# over fewer than four vectors are not worth one: small systems are solved 6 % faster.
FLAGS = ["/O2", "/fp:precise"] if os.name == "nt" else [
    "-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "--param=min-vect-loop-bound=4",
]


def extension(name: str, sources: list[str]) -> Extension:
    """Return an extension module with the flags of all of them."""
    return Extension(
        name,
        sources,
        include_dirs=[numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=FLAGS,
    )


class BuildOnAllCores(build_ext):
    """Translate and compile as many modules at a time as there are cores, unless `-j` says less."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = os.cpu_count() or 1

    def run(self) -> None:
        # Here, and not where the extensions are listed: an sdist and metadata need no C.
        translated = {module.name: module for module in cythonize(
            self.extensions,
            nthreads=int(self.parallel),
            force=self.force,
            # the C text depends on the declarations of the NumPy at hand
            build_dir=f"build/{sys.implementation.cache_tag}-numpy-{numpy.__version__}",
            shared_utility_qualified_name=SHARED,
            compiler_directives={
                "language_level": 3,
                "boundscheck": False,
                "wraparound": False,
                "initializedcheck": False,
                "cdivision": True,
                "embedsignature": True,
            },
        )}
        for module in self.extensions:
            module.sources = translated[module.name].sources
            module.depends = translated[module.name].depends
        super().run()


# The processes that translate import this file anew where they are not forked.
if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildOnAllCores},
        ext_modules=[
            extension(SHARED, []),
            *(extension(".".join(source.with_suffix("").parts[1:]), [source.as_posix()])
              for source in COMPILED),
        ],
    )
