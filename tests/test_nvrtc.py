"""Every kernel compiles for the GPUs that people have. NVRTC is only a compiler: it needs neither a GPU nor a driver.

The library comes in the wheel `nvidia-cuda-nvrtc-cu12`; it gets exactly the text and the flags that it gets at run time.
"""

import functools
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from device_code.nvrtc import Compiled, CompileError, Nvrtc
from workbench import backend, host_library

ROOT = Path(__file__).resolve().parents[1]

SOURCES = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
SLOWEST = {"alike", "discord", "interpolation", "repair", "staged", "staged_large"}
EACH = [pytest.param(source, marks=pytest.mark.long if source in SLOWEST else ()) for source in SOURCES]
SINGLE = [pytest.param(source, marks=() if source in {"bounds", "extent"} else pytest.mark.long) for source in SOURCES]
VARIANTS = list(itertools.product(host_library.REALS, host_library.DIMENSIONS))
USUAL, OTHERS = 90, [70, 80, 100]   # H100 and H200; V100, A100, B200
# Compiling takes most of the time, so without `long` this is done for one variant and one architecture.
ASSEMBLED = "f64", 3, USUAL
COMPILED = [pytest.param(*each, marks=() if each == ASSEMBLED[:2] else pytest.mark.long) for each in VARIANTS]
TARGETS = [*((*variant, USUAL) for variant in VARIANTS), *(("f64", 3, architecture) for architecture in OTHERS)]

pytestmark = pytest.mark.slow   # begun first, as it is the longest file of `make test-long`

PTX_TYPES = {"i32": "u32", "i64": "u64", "double": "f64"}


class Needs(NamedTuple):
    """What a thread of a kernel takes: registers, bytes of local memory, and bytes for registers that are lacking."""

    registers: int
    stack: int
    spilled: int


UNLISTED = Needs(registers=64, stack=0, spilled=0)   # what a kernel may need that docs/gpu.md does not list


@pytest.fixture(scope="session")
def nvrtc() -> Nvrtc:
    if (found := Nvrtc.installed()) is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12")
    return found


def flags(real: str, dimensions: int, target: str = f"compute_{USUAL}") -> tuple[str, ...]:
    told = ("--ptxas-options=-v",) if target.startswith("sm") else ()
    return (*backend.DEVICE_FLAGS, *host_library.definitions(real, dimensions), f"-arch={target}", *told)


@functools.cache
def compiled(nvrtc: Nvrtc, source: str, real: str, dimensions: int) -> Compiled:
    kind = "sm" if (real, dimensions, USUAL) == ASSEMBLED else "compute"
    return nvrtc.compile(backend.device_source(source), flags(real, dimensions, f"{kind}_{USUAL}"))


def ptx(nvrtc: Nvrtc, source: str, real: str, dimensions: int) -> str:
    return compiled(nvrtc, source, real, dimensions).ptx


def needs(log: str) -> dict[str, Needs]:
    """What each kernel takes, as the assembler tells it."""
    pattern = r"entry function '(\w+)_f\d+_\dd'.*?(\d+) bytes stack frame, (\d+) bytes spill stores.*?Used (\d+) registers"
    rows = re.findall(pattern, log, re.S)
    return {name: Needs(int(registers), int(stack), int(spilled)) for name, stack, spilled, registers in rows}


@functools.cache
def listed_needs() -> dict[str, Needs]:
    """The kernels that docs/gpu.md lists, as file/kernel."""
    rows = re.findall(r"^\| `(\w+/\w+)` \| (\d+) \| (\d+) \| (\d+) \|", (ROOT / "docs" / "gpu.md").read_text(), re.M)
    return {name: Needs(*map(int, numbers)) for name, *numbers in rows}


def too_much(source: str, found: dict[str, Needs]) -> list[str]:
    """The kernels that need more than docs/gpu.md says."""
    allowed = {name: listed_needs().get(f"{source}/{name}", UNLISTED) for name in found}
    return [
        f"{source}/{name} needs {got}; docs/gpu.md allows {allowed[name]}"
        for name, got in found.items()
        if any(has > most for has, most in zip(got, allowed[name], strict=True))
    ]


def entry_points(text: str) -> dict[str, list[str]]:
    """The kernels in a PTX text, with the types of their parameters."""
    entries = re.findall(r"\.visible \.entry (\w+)\(([^)]*)\)", text)
    return {name: re.findall(r"\.param \.(\w+)", parameters) for name, parameters in entries}


def fused(text: str) -> list[str]:
    """Instructions that round once where the CPU rounds twice, or (without `.rn`) that the assembler may still fuse."""
    return re.findall(r"\b(?:fma|mad)\.\w+(?:\.\w+)*\.f(?:32|64)\b|\b(?:mul|add|sub)(?:\.ftz)?\.f(?:32|64)\b", text)


@pytest.mark.parametrize(("real", "dimensions"), COMPILED)
@pytest.mark.parametrize("source", EACH)
def test_entry_points_are_what_the_launcher_calls(nvrtc, source, real, dimensions):
    expected = {}
    for name, parameters in backend.declared(source).items():
        types = ["u64" if p.pointer else PTX_TYPES[p.type] for p in parameters]
        expected[f"{name}_{host_library.variant(real, dimensions)}"] = types
    assert entry_points(ptx(nvrtc, source, real, dimensions)) == expected


@pytest.mark.parametrize(("real", "dimensions"), COMPILED)
@pytest.mark.parametrize("source", EACH)
def test_no_multiplication_is_fused_with_an_addition(nvrtc, source, real, dimensions):
    assert fused(ptx(nvrtc, source, real, dimensions)) == []


@pytest.mark.parametrize("source", SINGLE)
def test_subnormal_numbers_are_not_taken_for_zero(nvrtc, source):
    assert ".ftz" not in ptx(nvrtc, source, "f32", 3)


@pytest.mark.parametrize("source", EACH)
def test_no_kernel_needs_more_registers_or_memory_than_is_documented(nvrtc, source):
    found = needs(compiled(nvrtc, source, *ASSEMBLED[:2]).log)
    assert set(found) == set(backend.declared(source))
    assert too_much(source, found) == []


def test_the_kernels_that_are_listed_exist_and_stand_out():
    listed = listed_needs()
    assert set(listed) <= {f"{source}/{name}" for source in SOURCES for name in backend.declared(source)}
    assert listed
    assert [name for name, each in listed.items() if all(n <= m for n, m in zip(each, UNLISTED, strict=True))] == []


def test_more_registers_than_allowed_would_be_seen():
    log = """ptxas info    : Compiling entry function 'extent_f64_3d' for 'sm_90'
ptxas info    : Function properties for extent_f64_3d
ptxas         .     16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 65 registers, used 0 barriers"""
    assert needs(log) == {"extent": Needs(65, 16, 8)}
    assert "extent/extent needs" in too_much("extent", needs(log))[0]


@pytest.mark.long
@pytest.mark.parametrize(("real", "dimensions", "architecture"), [each for each in TARGETS if each != ASSEMBLED])
@pytest.mark.parametrize("source", EACH)
def test_kernels_are_assembled_for_each_gpu(nvrtc, source, real, dimensions, architecture):
    made = nvrtc.compile(backend.device_source(source), flags(real, dimensions, f"sm_{architecture}"))
    assert f".target sm_{architecture}" in made.ptx
    assert architecture != USUAL or too_much(source, needs(made.log)) == []


def test_a_fused_multiplication_would_be_seen(nvrtc):
    without = tuple(flag for flag in flags("f64", 3) if "fmad" not in flag)
    assert fused(nvrtc.compile(backend.device_source("extent"), without).ptx)


def test_subnormal_numbers_taken_for_zero_would_be_seen(nvrtc):
    assert ".ftz" in nvrtc.compile(backend.device_source("extent"), (*flags("f32", 3), "-ftz=true")).ptx


def test_a_kernel_with_an_error_fails(nvrtc):
    code = backend.device_source("extent") + "KERNEL(broken)(i64 n) { FOR_EVERY(i, n) {} }"
    with pytest.raises(CompileError, match="FOR_EVERY"):
        nvrtc.compile(code, flags("f32", 3))


def test_a_host_header_is_not_there(nvrtc):
    with pytest.raises(CompileError, match="vector"):
        nvrtc.compile("#include <vector>\n" + backend.device_source("extent"), flags("f32", 3))
