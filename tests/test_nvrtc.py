"""Every kernel compiles for the GPUs that people have. NVRTC is only a compiler: it needs neither a GPU nor a driver.

The library comes in the wheel `nvidia-cuda-nvrtc-cu12`; it gets exactly the text and the flags that CuPy gets at run time.
"""

import ctypes
import functools
import importlib.util
import itertools
import re
from pathlib import Path

import pytest

from workbench import backend, host_library

SOURCES = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
VARIANTS = list(itertools.product(host_library.REALS, host_library.DIMENSIONS))
USUAL, OTHERS = 90, [70, 80, 100]   # H100 and H200; V100, A100, B200
# Everything for the usual architecture, and the largest variant for the others: architectures differ in instructions, which
# depend little on the type of a number.
TARGETS = [*((*variant, USUAL) for variant in VARIANTS), *(("f64", 3, architecture) for architecture in OTHERS)]

PTX_TYPES = {"i32": "u32", "i64": "u64", "double": "f64"}


class CompileError(Exception):
    """What the compiler printed."""


class Nvrtc:
    """The compiler's C interface, as far as it is needed here."""

    def __init__(self, folder: Path) -> None:
        ctypes.CDLL(str(next(folder.glob("libnvrtc-builtins.so.*"))))
        self.library = ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))

    def call(self, name: str, *arguments: object) -> None:
        status = getattr(self.library, f"nvrtc{name}")(*arguments)
        assert status == 0, f"nvrtc{name} failed with status {status}"

    def text(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", program, buffer)
        return buffer.raw

    def compile(self, code: str, options: tuple[str, ...], result: str) -> bytes:
        """The `PTX` or the `CUBIN` of a source text."""
        program = ctypes.c_void_p()
        self.call("CreateProgram", ctypes.byref(program), code.encode(), b"kernel.cu", 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            if self.library.nvrtcCompileProgram(program, len(options), given):
                raise CompileError(self.text("ProgramLog", program).rstrip(b"\0").decode())
            return self.text(result, program)
        finally:
            self.call("DestroyProgram", ctypes.byref(program))


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    return Nvrtc(Path(next(iter(spec.submodule_search_locations)), "lib"))


def flags(real: str, dimensions: int, target: str) -> tuple[str, ...]:
    return (*backend.DEVICE_FLAGS, *host_library.definitions(real, dimensions), f"-arch={target}")


@functools.cache
def ptx(nvrtc: Nvrtc, source: str, real: str, dimensions: int) -> str:
    code = backend.device_source(source)
    return nvrtc.compile(code, flags(real, dimensions, "compute_80"), "PTX").rstrip(b"\0").decode()


def entry_points(text: str) -> dict[str, list[str]]:
    """The kernels in a PTX text, with the types of their parameters."""
    entries = re.findall(r"\.visible \.entry (\w+)\(([^)]*)\)", text)
    return {name: re.findall(r"\.param \.(\w+)", parameters) for name, parameters in entries}


def fused(text: str) -> list[str]:
    """Instructions that round once where the CPU rounds twice, or (without `.rn`) that the assembler may still fuse."""
    return re.findall(r"\b(?:fma|mad)\.\w+(?:\.\w+)*\.f(?:32|64)\b|\b(?:mul|add|sub)(?:\.ftz)?\.f(?:32|64)\b", text)


@pytest.mark.parametrize(("real", "dimensions", "architecture"), TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_kernels_compile_for_each_gpu(nvrtc, source, real, dimensions, architecture):
    code = backend.device_source(source)
    binary = nvrtc.compile(code, flags(real, dimensions, f"sm_{architecture}"), "CUBIN")
    assert binary[:4] == b"\x7fELF"


@pytest.mark.parametrize(("real", "dimensions"), VARIANTS)
@pytest.mark.parametrize("source", SOURCES)
def test_entry_points_are_what_the_launcher_calls(nvrtc, source, real, dimensions):
    expected = {}
    for name, parameters in backend.declared(source).items():
        types = ["u64" if p.pointer else PTX_TYPES[p.type] for p in parameters]
        expected[f"{name}_{host_library.variant(real, dimensions)}"] = types
    assert entry_points(ptx(nvrtc, source, real, dimensions)) == expected


@pytest.mark.parametrize(("real", "dimensions"), VARIANTS)
@pytest.mark.parametrize("source", SOURCES)
def test_no_multiplication_is_fused_with_an_addition(nvrtc, source, real, dimensions):
    assert fused(ptx(nvrtc, source, real, dimensions)) == []


def test_a_fused_multiplication_would_be_seen(nvrtc):
    without = tuple(flag for flag in flags("f64", 3, "compute_80") if "fmad" not in flag)
    assert fused(nvrtc.compile(backend.device_source("fof"), without, "PTX").decode())


def test_a_kernel_with_an_error_fails(nvrtc):
    code = backend.device_source("extent") + "KERNEL(broken)(i64 n) { FOR_EVERY(i, n) {} }"
    with pytest.raises(CompileError, match="FOR_EVERY"):
        nvrtc.compile(code, flags("f32", 3, "sm_80"), "CUBIN")


def test_a_host_header_is_not_there(nvrtc):
    with pytest.raises(CompileError, match="vector"):
        nvrtc.compile("#include <vector>\n" + backend.device_source("extent"), flags("f32", 3, "sm_80"), "CUBIN")
