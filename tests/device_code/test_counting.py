"""Counts of kernels whose accesses are known."""

from pathlib import Path

import numpy as np
import pytest

from device_code.counting import Counting, Total
from device_code.device import Device, missing
from device_code.nvrtc import Nvrtc

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
OPTIONS = ("-std=c++17", "--fmad=false", "-arch=compute_90")
CODE = r"""
#define KERNEL(name) extern "C" __global__ void name
#define ITEM(i, n) const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i < n)
KERNEL(side_by_side)(long long n, const double* a, double* b) { ITEM(i, n) b[i] = a[i]; }
KERNEL(apart)(long long n, const double* a, double* b) { ITEM(i, n) b[i] = a[4 * i]; }
KERNEL(the_same)(long long n, const double* a, double* b) { ITEM(i, n) b[i] = a[0]; }
KERNEL(across)(long long n, const char* a, double* b) { ITEM(i, n) b[i] = *(volatile const double*)(a + 32 * i + 24); }
KERNEL(atomics)(long long n, const double* a, int* b) { ITEM(i, n) atomicAdd(b, a[i] > 0); }
KERNEL(half)(long long n, const double* a, double* b)
{
    ITEM(i, n) {
        double sum = 0;
        for (int k = 0; k < (i % 2 ? 200 : 0); ++k) sum += a[k];
        b[i] = sum;
    }
}
"""
N = 128   # four warps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is compiled once for all of these tests."""
    return tmp_path_factory.mktemp("device_code")


def at_a_sector(count: int) -> np.ndarray:
    """Numbers of which the first begins a sector."""
    room = np.zeros(8 * count + 32, np.uint8)
    return room[-room.ctypes.data % 32 :][: 8 * count].view(float)


def counted(folder: Path, name: str, *arguments: np.ndarray, launches: int = 1) -> Total:
    counting = Counting()
    kernel = Device(Nvrtc.installed(), folder, counting).module(CODE, OPTIONS).kernel(name)
    for _ in range(launches):
        kernel(2, 64, [np.int64(N), *arguments])
    [total] = counting.totals()
    return total


@pytest.mark.parametrize(("name", "sectors"), [
    ("side_by_side", 4 * (8 + 8)), ("apart", 4 * (32 + 8)), ("the_same", 4 * (1 + 8)), ("across", 4 * (32 + 8)),
])
def test_sectors_that_warps_touch(folder, name, sectors):
    given, written = at_a_sector(4 * N), at_a_sector(N)
    total = counted(folder, name, given, written)
    assert (total.sectors, total.requests) == (sectors, 8)
    assert (total.loaded, total.stored, total.local, total.atomics) == (8 * N, 8 * N, 0, 0)
    assert total.divergence == 0
    assert total.instructions == 32 * total.issued
    assert counted(folder, name, given, written, launches=3).sectors == 3 * sectors


def test_atomics_load_and_store(folder):
    total = counted(folder, "atomics", np.ones(N), np.zeros(1, np.int32))
    assert (total.atomics, total.loaded, total.stored) == (N, 12 * N, 4 * N)


def test_lanes_that_wait_for_others_are_divergence(folder):
    assert counted(folder, "half", np.ones(200), np.zeros(N)).divergence == pytest.approx(0.5, abs=0.02)
    assert counted(folder, "side_by_side", np.ones(N), np.zeros(N)).divergence == 0


def test_the_lines_of_a_kernel_share_its_counts(folder):
    counting, given = Counting(), np.ones(200)
    kernel = Device(Nvrtc.installed(), folder, counting).module(CODE, OPTIONS).kernel("half")
    kernel(2, 64, [np.int64(N), given, np.zeros(N)])
    [total], lines = counting.totals(), {each.name: each for each in counting.lines("half")}
    assert sum(each.instructions for each in lines.values()) == total.instructions
    assert sum(each.sectors for each in lines.values()) == total.sectors
    adding = lines["for (int k = 0; k < (i % 2 ? 200 : 0); ++k) sum += a[k];"]
    assert adding.loaded == 200 * 8 * N // 2
    assert lines["b[i] = sum;"].stored == 8 * N


def test_kernels_of_one_name_in_several_modules_are_counted_apart(folder):
    counting, given = Counting(), np.ones(N)
    device = Device(Nvrtc.installed(), folder, counting)
    longer = CODE.replace("b[i] = a[i]; }", "b[i] = sqrt(a[i]) / a[i]; }")
    for code in (CODE, longer, CODE):
        device.module(code, OPTIONS).kernel("side_by_side")(2, 64, [np.int64(N), given, np.zeros(N)])
    short, long = counting.totals()
    assert short.loaded == 2 * 8 * N
    assert long.loaded == 8 * N
    assert long.instructions > short.instructions / 2
