"""Build of the compiled core; everything declarative is in pyproject.toml."""

import os
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

CORE = Path("fastpd_sklearn/core")

# Bits must not depend on the processor: no contraction to fused multiply-add, never fast-math.
# Generated C is no joy to debug, and without symbols for it a wheel is a third as large.
UNIX_FLAGS = ["-O3", "-g0", "-ffp-contract=off", "-fno-trapping-math"]
OPENMP_FLAGS = [(["-fopenmp"], ["-fopenmp"]), (["-Xpreprocessor", "-fopenmp"], ["-lomp"])]

DIRECTIVES = {
    "language_level": 3,
    "wraparound": False,
    "initializedcheck": False,
    "nonecheck": False,
    "cdivision": True,
    "freethreading_compatible": True,
}


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


def _builds(compiler, source: str, compile_flags: list[str], link_flags: list[str]) -> bool:
    """Whether a small program compiles and links with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "probe.c")
        path.write_text(source)
        try:
            objects = compiler.compile([str(path)], output_dir=folder, extra_postargs=compile_flags)
            compiler.link_executable(objects, "probe", output_dir=folder, extra_postargs=link_flags)
        except Exception:
            return False
    return True


class BuildCore(build_ext):
    """Finds out what the compiler can do, then translates to C and builds."""

    def finalize_options(self):
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self):
        if not _builds(self.compiler, "int main(void) { return 0; }", [], []):
            raise CompileError(
                "fastpd_sklearn needs a C compiler to build its core and found none that works "
                "(Debian/Ubuntu: apt-get install gcc libc6-dev; macOS: xcode-select --install; "
                "Windows: the Visual Studio Build Tools)."
            )
        self._translate()
        compile_flags, link_flags = self._flags(self.compiler)
        for extension in self.extensions:
            extension.extra_compile_args = compile_flags
            extension.extra_link_args = link_flags
        super().build_extensions()

    def _translate(self):
        """Replace the Cython sources by C files, which stay out of the source tree."""
        from Cython.Build import cythonize

        translated = cythonize(
            self.extensions,
            build_dir=self.build_temp,
            compiler_directives={**DIRECTIVES, "boundscheck": _is_set("FASTPD_DEBUG")},
            nthreads=0 if sys.platform == "win32" else min(4, os.cpu_count() or 1),
        )
        for extension, made in zip(self.extensions, translated, strict=True):
            extension.sources, extension.depends = made.sources, made.depends

    def _flags(self, compiler):
        if compiler.compiler_type == "msvc":
            return ["/O2", "/fp:precise", "/openmp"], []
        compile_flags, link_flags = list(UNIX_FLAGS), []
        if not _is_set("FASTPD_NO_OPENMP"):
            probe = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }"
            for extra_compile, extra_link in OPENMP_FLAGS:
                if _builds(compiler, probe, extra_compile, extra_link):
                    compile_flags += extra_compile
                    link_flags += extra_link
                    break
            else:
                print("fastpd_sklearn: no OpenMP found; the core will use one thread.")
        clones = (
            '__attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))\n'
            "int f(int x) { return x + 1; }\nint main(void) { return f(-1); }"
        )
        if _builds(compiler, clones, ["-Werror"], []):
            compile_flags.append("-DFASTPD_TARGET_CLONES")
        return compile_flags, link_flags


def _extensions() -> list[Extension]:
    headers = [str(path) for path in CORE.glob("*.h")]
    return [
        Extension(
            f"fastpd_sklearn.core.{path.stem}",
            [str(path)],
            include_dirs=[str(CORE)],
            depends=headers,
        )
        for path in sorted(CORE.glob("*.pyx"))
    ]


setup(ext_modules=_extensions(), cmdclass={"build_ext": BuildCore})
