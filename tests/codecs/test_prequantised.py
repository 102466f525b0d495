import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.differences import _differences_at, _subtract_before, differenced
from workbench.codecs.pcodec import pack_integers
from workbench.codecs.pieces import join
from workbench.codecs.prequantised import MOST_BITS, lattice_step
from workbench.errors import WorkbenchError

GOLDEN = Path(__file__).parent / "golden" / "prequantised.npz"
shapes = npst.array_shapes(max_dims=4, max_side=5)


@given(st.integers(1, 9), npst.arrays(np.int32, shapes))
def test_differences_are_undone_by_running_sums_even_where_they_wrap_around(at_once, numbers):
    places = np.arange(numbers.size)
    for axis in range(numbers.ndim):
        changed = numbers.copy()
        with pytest.MonkeyPatch.context() as few:
            few.setattr("workbench.codecs.differences.AT_ONCE", at_once)
            _subtract_before(changed, axis)
        assert np.array_equal(changed.reshape(-1), _differences_at(numbers, axis, places))
        exact = np.diff(numbers.astype(np.int64), axis=axis, prepend=0)
        assert np.array_equal(changed, exact.astype(np.int32))   # modulo 2^32
        assert np.array_equal(np.add.accumulate(changed, axis=axis, dtype=np.int32), numbers)


def test_only_axes_that_help_are_differenced():
    rng = np.random.default_rng(0)
    ramps = rng.integers(-10**6, 10**6, (50, 1)) + np.zeros((50, 60), int)
    assert differenced(ramps)[1] == 0b10
    assert differenced(ramps.T.copy())[1] == 0b01
    assert differenced(rng.integers(-1000, 1000, (50, 60)))[1] == 0
    assert differenced(np.arange(3000).reshape(50, 60))[1] == 0b11


@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_a_step_keeps_every_value_within_the_tolerance_in_the_type_itself(data, dtype):
    width = np.dtype(dtype).itemsize * 8
    values = data.draw(npst.arrays(dtype, st.integers(1, 20), elements=st.floats(-1000, 1000, width=width)))
    largest = float(np.abs(values).max())
    tolerance = data.draw(st.floats(-40 if width == 64 else -51, 5).map(lambda bits: max(largest, 1e-20) * 2.0**bits))
    step = lattice_step(tolerance, largest, values.dtype)
    assert tolerance * 0.999 <= step <= 2 * tolerance
    decoded = (np.rint(values.astype(np.float64) / step) * step).astype(dtype)
    assert np.abs(decoded.astype(np.float64) - values).max() <= tolerance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_lattice_too_fine_for_float64_is_refused_with_the_limit(dtype):
    values = np.array([8.0, 1.0], dtype)
    with pytest.raises(WorkbenchError, match=r"tolerance above 2\^-52 of the largest value, 1.78e-15 here; got 1e-16"):
        get("prequantised").encode(values, Tolerance(absolute=1e-16))
    codec, fine = get("prequantised"), Tolerance(absolute=8 * 2.0 ** (1 - MOST_BITS))
    assert np.abs(codec.decode(codec.encode(values, fine), (2,), dtype) - values).max() <= fine.value


def test_numbers_beyond_32_bits_are_kept():
    values = np.array([[2.0**40, -(2.0**40)], [2.0**31, 1.25]])
    codec = get("prequantised")
    assert np.abs(codec.decode(codec.encode(values, Tolerance(absolute=0.125)), (2, 2), "f8") - values).max() <= 0.125


def test_a_smooth_field_takes_far_fewer_bits_than_noise():
    ramp = np.add.outer(np.linspace(0, 10, 200), np.linspace(0, 5, 300)).astype(np.float32)
    shuffled = np.random.default_rng(0).permutation(ramp.reshape(-1)).reshape(ramp.shape)
    sizes = [len(get("prequantised").encode(values, Tolerance(absolute=1e-3))) for values in (ramp, shuffled)]
    assert 5 * sizes[0] < sizes[1]


@pytest.mark.parametrize("head", [(2, 0, 0.1), (4, 0b100, 0.1), (4, 0, 0.0), (4, 0, float("nan")), (4, 0, -1.0)])
def test_a_header_that_describes_no_lattice_is_refused(head):
    body = struct.pack("<BBd", *head) + pack_integers(np.zeros(6, np.int32))
    data = join("prequantised", [body], (2, 3), np.dtype("f8"), 100)
    with pytest.raises(CodecFailed, match=r"describe no lattice|a positive step"):
        get("prequantised").decode(data, (2, 3), "f8")


@pytest.mark.parametrize("span", [2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64 - 1])
@pytest.mark.parametrize("tolerance", [0, 1, 2**31, 2.0**70])
def test_lattices_of_integers_at_the_limits_of_their_arithmetic(span, tolerance):
    low = -(2**63) if span == 2**64 - 1 else -5
    values = np.array([low, low + 1, low + span // 2, low + span - 1, low + span])
    codec = get("prequantised")
    decoded = codec.decode(codec.encode(values, Tolerance(absolute=tolerance)), values.shape, values.dtype)
    assert all(abs(a - b) <= tolerance for a, b in zip(values.tolist(), decoded.tolist(), strict=True))


def test_bytes_of_earlier_versions_decode_as_they_did():
    with np.load(GOLDEN) as golden:
        for name in [name for name in golden if name.endswith(" bytes")]:
            decoded = golden[name.replace("bytes", "decoded")]
            found = get("prequantised").decode(golden[name].tobytes(), decoded.shape, decoded.dtype)
            assert found.tobytes() == decoded.tobytes(), name


@pytest.mark.parametrize(("kind", "fewer"), [("tied", 7.5), ("rows", 1.08), ("table", 1.5)])
def test_numbers_without_neighbours_take_less_than_their_entropy(kind, fewer):
    random = np.random.default_rng(6)
    values = {
        "tied": lambda: np.tile(random.normal(size=(64, 64)), (16, 1))[random.permutation(1024)],
        "rows": lambda: random.normal(size=(800, 80)) * np.exp(random.normal(0, 1, (800, 1))),
        "table": lambda: random.normal(size=(900, 30)) * np.exp(random.normal(0, 1, 30)) + random.normal(0, 40, 30),
    }[kind]().astype(np.float32)
    numbers = np.rint(values / 0.1).astype(int)
    _, counts = np.unique(numbers, return_counts=True)
    entropy = float((counts * np.log2(numbers.size / counts)).sum()) / 8
    data = get("prequantised").encode(values, Tolerance(absolute=0.05))
    assert np.abs(get("prequantised").decode(data, values.shape, values.dtype) - values).max() <= 0.05
    assert fewer * len(data) < entropy


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_missing_values_of_noise_are_marked_and_those_of_smooth_fields_filled(dtype):
    random, codec = np.random.default_rng(2), get("prequantised")
    holes = random.random((90, 120)) < 0.1
    for values in (random.normal(size=holes.shape), np.add.outer(np.linspace(0, 50, 90) ** 2, np.linspace(0, 9, 120) ** 2)):
        given = values.astype(dtype)
        decoded = codec.decode(codec.encode_with_gaps(given, ~holes, Tolerance(absolute=0.05)), given.shape, dtype)
        assert np.abs(decoded - given)[~holes].max() <= 0.05
        assert np.isnan(decoded[holes]).all() == (values.min() < 0)
    nothing = codec.encode_with_gaps(given, np.zeros_like(holes), Tolerance(absolute=0.05))
    assert codec.decode(nothing, given.shape, dtype).shape == given.shape
