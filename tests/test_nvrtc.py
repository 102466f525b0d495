"""Every kernel compiles for the GPUs that people have. NVRTC is only a compiler: it needs neither a GPU nor a driver.

The library comes in the wheel `nvidia-cuda-nvrtc-cu12`; it gets exactly the text and the flags that it gets at run time.
"""

import functools
import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from device_code.nvrtc import CompileError, Nvrtc
from device_code.ptx import read
from device_code.translate import translated
from workbench import backend, host_library

ROOT = Path(__file__).resolve().parents[1]

SOURCES = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))
SLOWEST = {"alike", "discord", "interpolation", "repair", "staged", "staged_large"}
USUAL = 90   # H100 and H200
ASSEMBLED = "f64", 3, USUAL
# Compiling takes nearly all of the time, so each source is compiled once for each variant, and for each generation of cards
# (V100, A100, H100, B200); without `long`, once.
TARGETS = [("f32", 2, 70), ("f64", 2, 80), ASSEMBLED, ("f32", 3, 100)]
EACH = [
    pytest.param(source, *target, marks=() if target == ASSEMBLED and source not in SLOWEST else pytest.mark.long)
    for source, target in itertools.product(SOURCES, TARGETS)
]

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


def flags(real: str, dimensions: int, architecture: int = USUAL) -> tuple[str, ...]:
    target = f"-arch=sm_{architecture}"
    return (*backend.DEVICE_FLAGS, *host_library.definitions(real, dimensions), target, "--ptxas-options=-v")


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


def launched(source: str, variant: str) -> dict[str, list[str]]:
    """The kernels that a launcher calls, with the types of what it gives them."""
    return {
        f"{name}_{variant}": ["u64" if each.pointer else PTX_TYPES[each.type] for each in parameters]
        for name, parameters in backend.declared(source).items()
    }


def fused(text: str) -> list[str]:
    """Instructions that round once where the CPU rounds twice, or (without `.rn`) that the assembler may still fuse."""
    return re.findall(r"\b(?:fma|mad)\.\w+(?:\.\w+)*\.f(?:32|64)\b|\b(?:mul|add|sub)(?:\.ftz)?\.f(?:32|64)\b", text)


@pytest.mark.few(11)
@pytest.mark.parametrize(("source", "real", "dimensions", "architecture"), EACH)
def test_what_a_card_is_given(nvrtc, source, real, dimensions, architecture):
    """Its machine code is made, its kernels are those that are launched, and its PTX computes what the CPU does."""
    made = nvrtc.compile(backend.device_source(source), flags(real, dimensions, architecture))
    assert f".target sm_{architecture}" in made.ptx
    assert entry_points(made.ptx) == launched(source, host_library.variant(real, dimensions))
    assert fused(made.ptx) == []
    assert ".ftz" not in made.ptx   # subnormal numbers are not taken for zero
    found = needs(made.log)
    assert set(found) == set(backend.declared(source))
    assert architecture != USUAL or too_much(source, found) == []   # docs/gpu.md is about the widest variant on that card
    code = translated(read(made.ptx))   # as all tests of the code of a card do it: no instruction is unknown
    assert all(f"ENTRY({name})" in code for name in entry_points(made.ptx))


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
