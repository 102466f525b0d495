"""The kernels of this project as a card would be given them: translated, executed, and compared with the CPU's build.

The comparison itself is that of the tests for a GPU: in a process of its own, they find the stand-in for CuPy in CuPy's
place, and its kernels are executed PTX.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from device_code.device import missing

TESTS = Path(__file__).resolve().parents[1]
DISPATCH = [
    "test_device_dispatch.py", "test_gpu_check.py", "test_ordering.py", "test_backend.py", "propagation/test_device.py",
    "propagation/protection", "clusters/test_kmeans.py", "clusters/test_broken.py", "codecs/test_crc.py",
    "codecs/test_device.py", "guarantees/test_device.py",
]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]


def passed(
    mode: str, *arguments: str, files: Sequence[str] = ("test_gpu.py",), seed: int = 0, architecture: int = 90,
    unwritten: int = 0xA5,
) -> int:
    """How many tests pass in a process whose cards are executed PTX; all must."""
    environment = os.environ | {
        "LOSSBENCH_DEVICE_CODE": mode, "LOSSBENCH_SEED": str(seed), "LOSSBENCH_ARCHITECTURE": str(architecture),
        "LOSSBENCH_UNWRITTEN": str(unwritten), "PYTHONPATH": str(TESTS / "fake_card"),
    }
    places = [str(TESTS / file) for file in files]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *places, *arguments]
    ended = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    return int(re.findall(r"(\d+) passed", ended.stdout)[-1])


@pytest.mark.long
def test_kernels_that_compile_fast_give_the_bits_of_the_cpu():
    """With threads that take turns by chance and never conflict; `test_all_tests_for_a_gpu_pass` has them in order."""
    assert passed("interleaved", "-k", "extent or (sorting and 31)", seed=1) >= 5


@pytest.mark.long
def test_all_tests_for_a_gpu_pass():
    assert passed("executed", "-m", "gpu", files=[""]) >= 220


@pytest.mark.long
@pytest.mark.parametrize("architecture", [70, 100])
def test_the_code_for_other_cards_gives_the_same_bits(architecture):
    assert passed("executed", "-k", "sorting or extent or groups", architecture=architecture) >= 140


@pytest.mark.long
def test_all_tests_of_the_way_to_a_card_pass():
    assert passed("executed", files=DISPATCH) >= 200


@pytest.mark.long
def test_no_result_depends_on_what_memory_has_before_it_is_written():
    """Results are those of the CPU with one byte there (the other tests) and with another."""
    assert passed("checked", "-k", "not groups and not kept", unwritten=0x5A) >= 80


@pytest.mark.long
def test_no_kernel_leaves_its_arrays_or_races():
    """Kernels that keep clusters are left out: compiling them for this took more than four minutes."""
    assert passed("checked", "-k", "not kept") >= 200


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_no_result_depends_on_the_order_of_threads(seed):
    files = ("test_device_dispatch.py", "clusters/test_kmeans.py", "codecs/test_crc.py", "codecs/test_device.py")
    assert passed("interleaved", files=files, seed=seed) >= 60
