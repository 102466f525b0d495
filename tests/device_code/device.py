"""Compiles CUDA source to PTX and that to a library for this CPU, keeps both on disk, and launches kernels.

    device = Device(Nvrtc.installed(), Path("build/device_code"))
    kernel = device.module(text, ("-std=c++17", "-arch=compute_90")).kernel("add")
    kernel(grid, block, [np.int64(3), array])

Arrays are arrays of NumPy, which the kernel changes in place; scalars are scalars of NumPy, as wide as the kernel declares.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from device_code.counting import Counting
from device_code.kernel import Checks, DeviceError, Kernel
from device_code.nvrtc import Nvrtc
from device_code.ptx import Module, read
from device_code.translate import translated

HERE = Path(__file__).resolve().parent
# As PTX has it: additions round once, signed integers overflow, and any bits may be taken for any type.
FLAGS = (
    "-std=c++17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-shared", "-fPIC", "-Wall", "-Werror",
    "-Wno-unused-label", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-function",
    "-Wno-parentheses",
)


class Executable:
    """The kernels of a module, compiled for this CPU."""

    def __init__(self, module: Module, library: ctypes.CDLL, text: str, watch: Checks | Counting | None) -> None:
        self.entries, self.library = {each.name: each for each in module.entries}, library
        self.lines, self.watch = text.splitlines(), watch

    def kernel(self, name: str) -> Kernel:
        """The kernel with this name."""
        return Kernel(self.entries[name], getattr(self.library, name), self.lines, self.watch)


class Device:
    """What stands for a GPU: a compiler and a folder of what it has made; `watch` says what it looks at."""

    def __init__(self, nvrtc: Nvrtc, folder: Path, watch: Checks | Counting | None = None) -> None:
        self.nvrtc, self.folder, self.watch = nvrtc, folder, watch
        folder.mkdir(parents=True, exist_ok=True)
        self.module = functools.cache(self._module)

    def _module(self, text: str, options: tuple[str, ...]) -> Executable:
        """The kernels of a source text, compiled with these options for NVRTC."""
        module = read(self.ptx(text, (*options, *(("-lineinfo",) if self.watch else ()))))
        return Executable(module, ctypes.CDLL(str(self.library(translated(module)))), text, self.watch)

    def ptx(self, text: str, options: tuple[str, ...]) -> str:
        """What NVRTC makes of a source text."""
        made_from = repr((text, options, self.nvrtc.version))
        return self._kept(made_from, ".ptx", lambda: self.nvrtc.compile(text, options).ptx.encode()).read_text()

    def library(self, code: str) -> Path:
        """Translated code, compiled for this CPU."""
        headers = "".join(path.read_text() for path in sorted(HERE.glob("*.hpp")))
        build = {Checks: ("-DCHECKED",), Counting: ("-DCOUNTED",)}.get(type(self.watch), ())
        flags = (*FLAGS, *build)
        return self._kept(repr((code, headers, flags, compiler())), ".so", lambda: compiled(code, flags))

    def _kept(self, made_from: str, suffix: str, make: Callable[[], bytes]) -> Path:
        """The file that was made from this, made now if it is missing; two processes do not make the same one."""
        path = self.folder / (hashlib.sha256(made_from.encode()).hexdigest()[:32] + suffix)
        if not path.exists():
            with locked(path.with_suffix(".lock")):
                if not path.exists():
                    staged = path.with_suffix(f".{os.getpid()}.tmp")
                    staged.write_bytes(make())
                    staged.replace(path)
        return path


@functools.cache
def compiler() -> tuple[str, str]:
    """The C++ compiler, as `$CXX` has it, and what it calls itself."""
    name = os.environ.get("CXX", "c++")
    told = subprocess.run([*shlex.split(name), "--version"], capture_output=True, text=True, check=True).stdout
    return name, told.splitlines()[0]


@functools.cache
def missing() -> str:
    """What is not there of what a device needs; empty if nothing."""
    if Nvrtc.installed() is None:
        return "NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12"
    try:
        compiler()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"there is no C++ compiler: {error}"
    return ""


def compiled(code: str, flags: tuple[str, ...]) -> bytes:
    """A shared library of this C++ code."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        command = [*shlex.split(compiler()[0]), *flags, f"-I{HERE}", "-x", "c++", "-", "-o", str(library)]
        run = subprocess.run(command, input=code, capture_output=True, text=True)
        if run.returncode:
            raise DeviceError(f"translated code does not compile: {run.stderr[:2000]}")
        return library.read_bytes()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other process is in this block."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
