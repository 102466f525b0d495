"""Kernels that are wrong on purpose, one of each kind: the checks must see them, and nothing in those that are right."""

from pathlib import Path

import numpy as np
import pytest

from device_code.device import Device, missing
from device_code.kernel import Checks, DeviceError
from device_code.nvrtc import Nvrtc

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
OPTIONS = ("-std=c++17", "--fmad=false", "-arch=compute_90")
CODE = r"""
#define KERNEL(name) extern "C" __global__ void name
typedef long long i64;
#define FOR_EACH(i, n) \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x)
KERNEL(right)(i64 n, const double* a, double* b) { FOR_EACH(i, n) b[i] = 2 * a[i]; }
KERNEL(one_beyond)(i64 n, const double* a, double* b) { FOR_EACH(i, n) b[i] = a[i + 1]; }
KERNEL(one_before)(i64 n, const double* a, double* b) { FOR_EACH(i, n) b[i - 1] = a[i]; }
KERNEL(counted)(i64 n, const double* a, int* b) { FOR_EACH(i, n) if (a[i] > 0) atomicAdd(b, 1); }
KERNEL(no_atomic)(i64 n, const double* a, int* b) { FOR_EACH(i, n) if (a[i] > 0) ++*b; }
KERNEL(reads_what_another_writes)(i64 n, const double* a, double* b) { FOR_EACH(i, n) b[i] = i ? b[i - 1] + a[i] : a[i]; }
KERNEL(plain_beside_atomic)(i64 n, const double* a, int* b) { FOR_EACH(i, n) if (b[0] < 5) atomicAdd(b, a[i] > 0); }
KERNEL(the_same_flag)(i64 n, const double* a, int* b)
{
    FOR_EACH(i, n) if (a[i] > 0) b[0] = 1;   // harmless race: all write 1
}
KERNEL(the_same_flag_and_another)(i64 n, const double* a, int* b)
{
    FOR_EACH(i, n) {
        if (i == 0) b[0] = (int)a[i];
        else if (i < n - 1) b[0] = 1;   // harmless race: all write 1
        else b[i] = b[0];
    }
}
__device__ int launches = 5;
KERNEL(variable)(i64 n, const double* a, int* b) { FOR_EACH(i, n) { if (a[i] > 0) atomicAdd(&launches, 1); b[i] = 1; } }
KERNEL(fenced)(i64 n, const double* a, double* b) { FOR_EACH(i, n) { b[i] = a[i]; __threadfence(); b[i] += a[i]; } }
KERNEL(product_and_one)(i64 n, int k, const double* a, double* b)
{
    FOR_EACH(i, n) { const int at = ((int)i + k) * 4 + 1; b[i] = a[at]; }
}
KERNEL(product)(i64 n, int k, const double* a, double* b)
{
    FOR_EACH(i, n) { const int at = (int)(4 * i) * k; b[i] = a[at]; }
}
KERNEL(overflow)(i64 n, int k, const double* a, double* b) { FOR_EACH(i, n) { const int at = (int)i * k; b[i] = a[at]; } }
KERNEL(wrong_space)(i64 n, const double* a, double* b)
{
    FOR_EACH(i, n) {
        double mine[4];
        for (int k = 0; k < 4; ++k) mine[k] = a[k];
        const double* at = mine + (i & 3);
        double value;
        asm volatile("ld.global.f64 %0, [%1];" : "=d"(value) : "l"(at));
        b[i] = value;
    }
}
KERNEL(local_beyond)(i64 n, const double* a, double* b)
{
    FOR_EACH(i, n) {
        double mine[4];
        for (int k = 0; k < 4; ++k) mine[k] = a[k];
        double* at = mine + (i64)a[0];
        b[i] = *(volatile double*)(at + (i & 1));
    }
}
KERNEL(misaligned)(i64 n, const char* a, double* b) { FOR_EACH(i, n) b[i] = *(const double*)(a + 8 * i + 4); }
KERNEL(unwritten)(i64 n, const double* a, double* b) { FOR_EACH(i, n) b[i] += a[i]; }
KERNEL(spins)(i64 n, const double* a, int* b)
{
    FOR_EACH(i, n) { while (atomicAdd(b, 0) != i) {} atomicAdd(b, a[i] > 0); }
}
"""
N = 70


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is compiled once for all of these tests."""
    return tmp_path_factory.mktemp("device_code")


ORDERS = [Checks(), Checks(together=16, seed=1), Checks(together=64, seed=2)]


def run(folder: Path, name: str, *arguments: np.ndarray | np.generic, checks: Checks | None = ORDERS[0]) -> np.ndarray:
    given = [np.int64(N), *arguments]
    Device(Nvrtc.installed(), folder, checks).module(CODE, OPTIONS).kernel(name)(2, 64, given)
    return given[-1]


def ones(count: int = N) -> np.ndarray:
    return np.ones(count)


@pytest.mark.long_with("checks1")
@pytest.mark.parametrize("checks", [None, *ORDERS])
def test_what_is_right_runs(folder, checks):
    assert (run(folder, "right", ones(), ones(), checks=checks) == 2).all()
    assert run(folder, "counted", ones(), np.zeros(1, np.int32), checks=checks).tolist() == [N]
    assert run(folder, "the_same_flag", ones(), np.zeros(1, np.int32), checks=checks).tolist() == [1]


@pytest.mark.parametrize("checks", ORDERS)
@pytest.mark.parametrize(("name", "given", "message"), [
    ("one_beyond", (ones(), ones()), r"reads 8 bytes outside all arrays, 0 bytes behind the end of an array of 560 bytes"),
    ("one_before", (ones(), ones()), r"writes 8 bytes outside all arrays, 8 bytes before the begin of an array"),
    ("no_atomic", (ones(), np.zeros(1, np.int32)), r"pairs of accesses of several threads to one address"),
    ("reads_what_another_writes", (ones(), ones()), r"pairs of accesses of several threads(.|\n)*ld\.global"),
    ("plain_beside_atomic", (ones(), np.zeros(1, np.int32)), r"pairs of accesses of several threads(.|\n)*atom\.global"),
    ("overflow", (np.int32(2**31 - 1), ones(), ones()), r"overflow"),
    ("wrong_space", (ones(), ones()), r"reads 8 bytes outside all arrays.*ld\.global\.f64"),
    ("local_beyond", (np.full(N, 3.0), ones()), r"reads outside the thread's local memory, in thread \d*[13579],"),
    ("the_same_flag_and_another", (ones(), np.zeros(N, np.int32)), r"1 pairs of accesses(.|\n)*b\[0\] = \(int\)a"),
    ("misaligned", (np.zeros(8 * N + 8, np.uint8), ones()), r"an address that is no multiple of 8 bytes"),
])
def test_what_is_wrong_is_seen(folder, checks, name, given, message):
    with pytest.raises(DeviceError, match=f"{name}: (.|\n)*{message}"):
        run(folder, name, *(np.copy(each) if isinstance(each, np.ndarray) else each for each in given), checks=checks)


def test_an_index_of_32_bits_that_overflows_is_seen_where_it_hits_an_array_by_chance(folder):
    assert (run(folder, "product", np.int32(0), ones(), np.zeros(N)) == 1).all()
    with pytest.raises(DeviceError, match=r"product: a number of 32 bits that has overflowed is used with 64 bits"):
        run(folder, "product", np.int32(2**30), ones(), ones())


def test_an_overflow_is_seen_through_a_shift_and_the_bits_added_to_it(folder):
    assert (run(folder, "product_and_one", np.int32(0), ones(4 * N), np.zeros(N)) == 1).all()
    with pytest.raises(DeviceError, match=r"product_and_one: a number of 32 bits that has overflowed"):
        run(folder, "product_and_one", np.int32(2**30), ones(4 * N), ones())


@pytest.mark.parametrize("checks", [None, *ORDERS])
def test_variables_of_a_module_and_fences_are_no_errors(folder, checks):
    assert (run(folder, "variable", ones(), np.zeros(N, np.int32), checks=checks) == 1).all()
    assert (run(folder, "fenced", ones(), np.zeros(N), checks=checks) == 2).all()


@pytest.mark.parametrize(("grid", "block"), [(0, 64), (2, 0), (1, 1025)])
def test_launches_that_no_card_takes_are_refused(folder, grid, block):
    kernel = Device(Nvrtc.installed(), folder).module(CODE, OPTIONS).kernel("right")
    with pytest.raises(DeviceError, match=f"right: a grid must have at least one block(.*)got {grid} and {block}"):
        kernel(grid, block, [np.int64(N), ones(), ones()])


@pytest.mark.parametrize("given", [ones(2 * N)[::2], ones()[::-1]])
def test_arrays_with_gaps_or_backwards_are_refused(folder, given):
    with pytest.raises(DeviceError, match="right: arrays must be contiguous; got strides"):
        run(folder, "right", given, ones(), checks=None)


def test_a_slice_ends_where_it_ends_and_views_of_one_array_stay_together(folder):
    whole = np.arange(4 * N, dtype=float)
    with pytest.raises(DeviceError, match="one_beyond: reads"):
        run(folder, "one_beyond", whole[:N], ones())
    run(folder, "right", whole[:N], whole[2 * N : 3 * N])
    np.testing.assert_array_equal(whole[2 * N : 3 * N], 2 * whole[:N])
    run(folder, "right", whole[N : 2 * N], whole[N : 2 * N])
    np.testing.assert_array_equal(whole[N : 2 * N], 2 * np.arange(N, 2 * N))


def test_what_is_read_before_it_is_written_changes_with_what_is_there(folder):
    found = [run(folder, "unwritten", ones(), np.full(8 * N, byte, np.uint8).view(float)) for byte in (0xA5, 0x5A)]
    assert found[0].tobytes() != found[1].tobytes()


def test_threads_that_wait_for_each_other_go_on_where_all_take_turns(folder):
    assert run(folder, "spins", ones(), np.zeros(1, np.int32), checks=Checks(together=128, seed=4)).tolist() == [N]


def test_the_order_is_that_of_the_seed(folder):
    def outcome(seed):
        checks = Checks(together=64, seed=seed, races=False)
        return run(folder, "no_atomic", ones(), np.zeros(1, np.int32), checks=checks).tolist()

    assert outcome(1) == outcome(1)
    assert len({tuple(outcome(seed)) for seed in range(6)}) > 1   # additions are lost, other ones each time
