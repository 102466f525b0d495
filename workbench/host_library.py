"""Builds the kernels for this machine's CPU, and knows which sources a built library came from.

The kernels in `kernels/*.cu` are CUDA source; `kernels/portable.cuh` makes the same files C++ with OpenMP.
They are compiled once, when the package is installed, into `_host.so` beside this file. The library carries
a hash of the sources and flags, so that `backend.py` can refuse a stale one instead of running old code. A compiler
without OpenMP makes a library that runs each kernel on one thread; results are the same, and `workbench doctor` says so.

This module imports nothing outside the standard library, because the build hook runs it before NumPy is installed.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent
LIBRARY = PACKAGE / "_host.so"
SANITISED = PACKAGE / "_host_sanitised.so"   # for `tests/fuzz`: stops at every access outside an array
OBJECTS = PACKAGE.parent / "build" / "objects"   # in a checkout
SHUFFLED = PACKAGE / "_host_shuffled.so"     # for `tests/test_order_of_work.py`: takes work items in another order

# Contraction is off here and in `backend.DEVICE_FLAGS`: a fused multiply-add rounds once where the other machine
# rounds twice, and a pair of particles can sit on exactly that last bit.
PROCESSOR_FLAGS = {"x86_64": ("-march=x86-64-v2",)}   # any such processor since 2009; counts bits in one instruction
HOST_FLAGS = (
    "-std=c++17", "-O3", "-fopenmp", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra",
    *PROCESSOR_FLAGS.get(platform.machine(), ()),
)

OPENMP = "-fopenmp"   # in HOST_FLAGS, where it stands for what the compiler takes instead: see `openmp`
PROBE = "#include <omp.h>\nint threads() { return omp_get_max_threads(); }\n"
# Where a libomp may be that the compiler does not find by itself: conda's, while a package is built and later; Homebrew's.
LIBOMP_VARIABLES, LIBOMP_FOLDERS = ("PREFIX", "CONDA_PREFIX"), ("/opt/homebrew/opt/libomp", "/usr/local/opt/libomp")

SANITISED_FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
SHUFFLED_FLAGS = ("-O1", "-DSHUFFLED")

# Every kernel file is compiled once per precision and number of dimensions; the suffix becomes part of each kernel's name.
REALS = {"f32": "float", "f64": "double"}
DIMENSIONS = (2, 3)


def kernel_folder() -> Path:
    """Where the kernel sources are: in the installed package, or beside it in a checkout."""
    installed = PACKAGE / "_kernels"
    return installed if installed.is_dir() else PACKAGE.parent / "kernels"


def variant(real: str, dimensions: int) -> str:
    """The suffix of every kernel compiled for one precision and number of dimensions: `f32_3d`."""
    return f"{real}_{dimensions}d"


def definitions(real: str, dimensions: int) -> tuple[str, ...]:
    """The preprocessor definitions of one variant, the same for both compilers."""
    return (f"-DREAL={REALS[real]}", f"-DDIMENSIONS={dimensions}", f"-DVARIANT={variant(real, dimensions)}")


def source_hash(folder: Path) -> str:
    """A fingerprint of all kernel sources and compiler flags."""
    digest = hashlib.sha256(" ".join(HOST_FLAGS).encode())
    for path in sorted(p for p in folder.iterdir() if p.suffix in {".cu", ".cuh", ".cpp"}):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def compiler() -> list[str]:
    """The C++ compiler to call: `$CXX`, else `c++`."""
    return shlex.split(os.environ.get("CXX") or "c++")


class OpenMP(NamedTuple):
    """The flags with which a compiler takes the pragmas of OpenMP, and those that link its runtime."""

    compiling: tuple[str, ...]
    linking: tuple[str, ...] = ()


WITHOUT_OPENMP = OpenMP(("-Wno-unknown-pragmas",))


def openmp() -> OpenMP:
    """How the compiler takes OpenMP: the first of the known ways in which a small library is compiled and linked."""
    return _openmp_of(tuple(compiler()))


@functools.cache
def _openmp_of(command: tuple[str, ...]) -> OpenMP:
    # Apple's clang refuses the plain flag, but its front end knows it; the runtime is not Apple's, with its own folder.
    apple = ("-Xpreprocessor", OPENMP)
    ways = [OpenMP((OPENMP,)), OpenMP(apple, ("-lomp",)), *(
        OpenMP((*apple, f"-I{folder}/include"), (f"-L{folder}/lib", f"-Wl,-rpath,{folder}/lib", "-lomp"))
        for folder in (*filter(None, map(os.environ.get, LIBOMP_VARIABLES)), *LIBOMP_FOLDERS)
    )]
    with tempfile.TemporaryDirectory() as scratch:
        source, library = Path(scratch, "probe.cpp"), Path(scratch, "probe.so")
        source.write_text(PROBE)
        for way in ways:
            given = [*command, "-fPIC", *way.compiling, "-shared", str(source), *way.linking, "-o", str(library)]
            if _run(given).returncode == 0:
                return way
    print(
        f"Note: {shlex.join(command)} has no OpenMP, so each kernel will run on one thread (macOS: brew install libomp; "
        "Debian and Ubuntu: apt install g++; or name another compiler in CXX)", file=sys.stderr,
    )
    return WITHOUT_OPENMP


def host_flags() -> list[str]:
    """HOST_FLAGS as this compiler takes them."""
    return [part for flag in HOST_FLAGS for part in (openmp().compiling if flag == OPENMP else (flag,))]


def build_sanitised(library: Path = SANITISED) -> Path:
    """The library with address sanitiser and undefined behaviour sanitiser, built when it is missing or stale.

    `backend.py` loads it where the environment variable LOSSBENCH_HOST_LIBRARY names it. The process must have been
    started with `sanitiser_runtime()` in LD_PRELOAD.
    """
    return _built(library, SANITISED_FLAGS)


def build_shuffled(library: Path = SHUFFLED) -> Path:
    """The library whose kernels take their work items in another order, built when it is missing or stale.

    No result may depend on that order. `backend.py` loads it where the variable LOSSBENCH_HOST_LIBRARY names it.
    """
    return _built(library, SHUFFLED_FLAGS)


def _built(library: Path, flags: tuple[str, ...]) -> Path:
    if not library.exists() or source_hash(kernel_folder()).encode() not in library.read_bytes():
        build(library, flags)
    return library


def sanitiser_runtime() -> str:
    """What must be loaded before Python: the runtime of the sanitiser, and the library whose exceptions it watches."""
    names = ("libasan.so", "libstdc++.so")
    found = [_output([*compiler(), f"-print-file-name={name}"]) for name in names]
    missing = [name for name, path in zip(names, found, strict=True) if not Path(path).is_absolute()]
    if missing:
        raise SystemExit(f"{compiler()[0]} has no {' and no '.join(missing)}: the sanitised library needs GCC's sanitisers")
    return " ".join(found)


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def objects(flags: tuple[str, ...] = ()) -> Path:
    """The folder of what the compiler has made of each source with the usual flags and these."""
    return OBJECTS / hashlib.sha256(shlex.join([*compiler(), *host_flags(), *flags]).encode()).hexdigest()[:8]


def build(library: Path = LIBRARY, flags: tuple[str, ...] = ()) -> Path:
    """Compile every kernel for the CPU into `library`, replacing it only when all of it compiled.

    `flags` are added to the usual ones. In a checkout, objects of sources that have not changed are in `build/objects`.
    """
    folder = kernel_folder()
    with tempfile.TemporaryDirectory() as scratch:
        main = ["-c", str(folder / "host.cpp"), f'-DSOURCE_HASH="{source_hash(folder)}"', "-o", f"{scratch}/host.o"]
        kept = objects(flags)
        work: list[Callable[[], object]] = [functools.partial(_compile, [*flags, *main])]
        for source, real, dimensions in itertools.product(sorted(folder.glob("*.cu")), REALS, DIMENSIONS):
            target = Path(scratch, f"{source.stem}_{variant(real, dimensions)}.o")
            arguments = [*flags, *definitions(real, dimensions), "-x", "c++", "-c", str(source), "-o", str(target)]
            work.append(functools.partial(_compile_changed, arguments, source, target, kept))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda compile_one: compile_one(), work))
        linked, parts = Path(scratch) / library.name, sorted(map(str, Path(scratch).glob("*.o")))
        _compile([*flags, "-shared", *parts, *openmp().linking, "-o", str(linked)])
        _replace(linked, library)
    return library


def _compile_changed(arguments: list[str], source: Path, target: Path, kept: Path) -> None:
    """Compile an object, unless there is one of the same text; the older ones of this source and variant go."""
    if not (PACKAGE.parent / "pyproject.toml").is_file():   # an installed package has no place for objects
        _compile(arguments)
        return
    same = kept / f"{target.stem}-{hashlib.sha256(with_headers(source).encode()).hexdigest()[:16]}.o"
    if not same.is_file():
        warnings = _compile(arguments)
        kept.mkdir(parents=True, exist_ok=True)
        for older in kept.glob(f"{target.stem}-*"):
            older.unlink(missing_ok=True)
        if warnings:
            same.with_suffix(".warnings").write_text(warnings)   # which `tests/test_backend.py` does not accept
        _replace(target, same)
    else:
        target.write_bytes(same.read_bytes())


def with_headers(source: Path) -> str:
    """The text of a file with that of all its headers, in any order."""
    included = re.findall(r'#include "(\w+\.cuh)"', source.read_text())
    return source.read_text() + "".join(with_headers(source.with_name(name)) for name in included)


def _replace(made: Path, target: Path) -> None:
    """Put a file in its place in one step: other processes may use the one that is there."""
    staged = target.with_suffix(f".{os.getpid()}.tmp")
    staged.write_bytes(made.read_bytes())
    staged.chmod(0o755)
    staged.replace(target)


def _compile(arguments: list[str]) -> str:
    """Run the compiler; the answer is what it warns of."""
    command = [*compiler(), *host_flags(), *arguments]
    run = _run(command)
    if run.returncode:
        raise SystemExit(
            f"Lossbench's kernels did not compile; they need a C++17 compiler (g++ 9 or newer, or clang 12 or newer).\n"
            f"{shlex.join(command)}\n{run.stderr.strip()}"
        )
    return run.stderr


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit(
            f"Lossbench needs a C++ compiler, and {command[0]!r} was not found: install one (Debian and Ubuntu: apt "
            "install g++; macOS: xcode-select --install; conda: conda install cxx-compiler) or name yours in CXX"
        ) from None


if __name__ == "__main__":
    build()
