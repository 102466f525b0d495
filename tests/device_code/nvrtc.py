"""NVIDIA's compiler from its wheel: CUDA source to PTX. It needs neither a GPU nor a driver."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import NamedTuple


class CompileError(Exception):
    """What the compiler printed."""


class Compiled(NamedTuple):
    """What the compiler has made, and what it printed."""

    ptx: str
    log: str


class Nvrtc:
    """The compiler's C interface, as far as it is needed here."""

    def __init__(self, folder: Path) -> None:
        ctypes.CDLL(str(next(folder.glob("libnvrtc-builtins.so.*"))))
        self.library = ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))

    @classmethod
    def installed(cls) -> Nvrtc | None:
        """The compiler of the wheel `nvidia-cuda-nvrtc-cu12`, if it is installed."""
        try:
            spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
        except ModuleNotFoundError:
            return None
        if spec is None or not spec.submodule_search_locations:
            return None
        return cls(Path(next(iter(spec.submodule_search_locations)), "lib"))

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("Version", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def call(self, name: str, *arguments: object) -> None:
        """A function that must succeed."""
        status = getattr(self.library, f"nvrtc{name}")(*arguments)
        if status:
            raise CompileError(f"nvrtc{name} failed with status {status}")

    def text(self, what: str, program: ctypes.c_void_p) -> bytes:
        """One of the texts that belong to a program."""
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", program, buffer)
        return buffer.raw

    def compile(self, code: str, options: tuple[str, ...]) -> Compiled:
        """The PTX of a source text; where the options name a real architecture, it has been assembled, too."""
        program = ctypes.c_void_p()
        self.call("CreateProgram", ctypes.byref(program), code.encode(), b"kernel.cu", 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if self.library.nvrtcCompileProgram(program, len(options), given):
                raise CompileError(self.text("ProgramLog", program).rstrip(b"\0").decode())
            if "-arch=sm" in " ".join(options) and self.text("CUBIN", program)[:4] != b"\x7fELF":
                raise CompileError("the compiler made no machine code")
            ptx, log = (self.text(what, program).rstrip(b"\0").decode() for what in ("PTX", "ProgramLog"))
            return Compiled(ptx, log)
        finally:
            self.call("DestroyProgram", ctypes.byref(program))
