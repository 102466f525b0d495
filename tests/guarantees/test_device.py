"""The way to the GPU, walked on the stand-in for CuPy: arrays stay where they are, and results are those of the CPU."""

import sys
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

import fake_cupy
from guarantees.some_codecs import Misbehaving, Rounding
from workbench import backend
from workbench.codecs import Tolerance
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, PointwiseRelative, Relative, check, encode_guarded
from workbench.guarantees.logarithm import from_logs, to_logs


@pytest.fixture
def cupy(stand_in: ModuleType) -> ModuleType:
    return stand_in


@dataclass(frozen=True)
class OnDevice(Rounding):
    """The rounding codec for arrays on a GPU; everything but its bytes stays there."""

    on_device: ClassVar[bool] = True
    finite: ClassVar[bool] = False   # so that the base class does not look, with functions that the stand-in lacks

    def _encode(self, values: object, tolerance: Tolerance) -> bytes:
        return super()._encode(backend.to_host(values), tolerance)

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> object:
        return sys.modules["cupy"].asarray(super()._decode(data, shape, dtype))


def pair(dtype: type) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    original = random.random((500, 3)).astype(dtype)
    return original, np.abs(original + random.normal(scale=0.05, size=original.shape)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("limit", [Limit("absolute", 0.05), Limit("relative", 0.1)], ids=str)
@pytest.mark.parametrize("period", [None, (1.0, 1.0, 2.0)])
def test_the_check_is_the_same_there(cupy, dtype, limit, period):
    original, decoded = pair(dtype)
    here = check(original, decoded, limit, period)
    there = check(cupy.asarray(original), cupy.asarray(decoded), limit, period)
    assert backend.on_device(there.broken)
    assert there.broken.get().tolist() == here.broken.tolist()
    assert there.largest_error == here.largest_error
    assert [name.rsplit("_", 2)[0] for name in fake_cupy.Function.launches] == ["count_broken", "place_broken"]


def test_masks_are_looked_at_there(cupy):
    original, decoded = pair(np.float32)
    mask = original > 0.5
    here = check(original, decoded, Limit("absolute", 0.05), mask=mask)
    there = check(cupy.asarray(original), cupy.asarray(decoded), Limit("absolute", 0.05), mask=cupy.asarray(mask))
    assert there.broken.get().tolist() == here.broken.tolist()


@pytest.mark.parametrize("limit", [Limit("absolute", 0.05), Limit("relative", 0.01), Limit("absolute", 0.0)], ids=str)
def test_a_chunk_is_encoded_there_as_here(cupy, limit):
    original, _ = pair(np.float32)
    original[0, :2] = np.nan, -0.0
    here = encode_guarded(OnDevice(), original, limit) if limit.value == 0 else encode_guarded(Rounding(), original, limit)
    there = encode_guarded(OnDevice(), cupy.asarray(original), limit)
    assert backend.on_device(there.decoded)
    assert there.decoded.get().tobytes() == here.decoded.tobytes()
    assert there.figures == here.figures


def test_logarithms_are_taken_there(cupy):
    original, _ = pair(np.float64)
    original[3] = 0.0, -1.0, np.inf
    here, there = to_logs(original, 1e-3), to_logs(cupy.asarray(original), 1e-3)
    assert there.extra == here.extra
    assert there.values.get().tobytes() == here.values.tobytes()
    back = from_logs(there.values, there.extra, np.float64)
    assert back.get().tobytes() == from_logs(here.values, here.extra, np.float64).tobytes()


def test_bounds_are_resolved_there(cupy):
    original, _ = pair(np.float32)
    original[0, 0] = np.nan
    for bound in (Relative(0.1), PointwiseRelative(0.1)):
        assert bound.limit(cupy.asarray(original)) == bound.limit(original)


def test_arrays_of_two_machines_are_refused(cupy):
    original, decoded = pair(np.float32)
    with pytest.raises(WorkbenchError, match="all arrays must be on one machine"):
        check(cupy.asarray(original), decoded, Limit("absolute", 0.1))


def test_a_codec_of_the_cpu_says_so(cupy):
    with pytest.raises(WorkbenchError, match="misbehaving works on NumPy arrays; got a CuPy array"):
        encode_guarded(Misbehaving(), cupy.asarray(pair(np.float32)[0]), Limit("absolute", 0.1))
