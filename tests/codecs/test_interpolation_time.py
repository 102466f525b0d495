import dataclasses
import itertools
import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slow_interpolation import Decoder
from turbulence import turbulent
from workbench import backend
from workbench.archive.choice import chosen
from workbench.codecs import CodecFailed, Tolerance, get
from workbench.codecs.earlier import Earlier
from workbench.codecs.interpolation_encoding import Encoding, _Encoder
from workbench.codecs.interpolation_grid import passes
from workbench.codecs.interpolation_stream import _HEADER, IN_TIME
from workbench.codecs.interpolation_time import Known, Multiples
from workbench.codecs.pieces import join, split
from workbench.codecs.prequantised import lattice_step
from workbench.guarantees.bounds import Limit
from workbench.guarantees.enforce import decode_guarded, encode_guarded

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def after(*values):
    """The codec for the step after these, of which the latest is first."""
    times = tuple(float(-number) for number in range(len(values) + 1))
    return get("interpolation").following(Earlier(values, times))


def sizes(values, earlier, size):
    """The bytes of a step alone, and after earlier ones."""
    tolerance = Tolerance(absolute=size)
    return len(get("interpolation").encode(values, tolerance)), len(after(*earlier).encode(values, tolerance))


def drifting(shape, dtype="float32", step=0.1, steps=3):
    """A field that changes slowly; the last step is first, and rough everywhere."""
    rng = np.random.default_rng(3)
    rough, changes = turbulent(shape) + 0.3 * rng.normal(size=shape), [turbulent(shape, seed=seed) for seed in range(steps)]
    return [(rough + step * sum(changes[: number + 1])).astype(dtype) for number in reversed(range(steps))]


def interpolated(values, earlier, size, frozen=()):
    """The code of a step after others without a lattice, whether it is smaller or not."""
    step = lattice_step(size, float(np.abs(values).max()), values.dtype)
    known = Known.of(Earlier(tuple(earlier), tuple(-float(n) for n in range(1 + len(earlier)))), values.shape, values.dtype)
    code = Encoding.of(values, frozen, 12, size, step, known=known).to_bytes()
    return join("interpolation", [code], values.shape, values.dtype, 2**28)


@pytest.mark.parametrize(("shape", "frozen", "dtype"), [
    ((700,), (), "float32"), ((37, 41), (), "float64"), ((9, 14, 11), (), "float32"), ((3, 6, 9, 10), (1,), "float32"),
])
def test_kernels_decode_what_plain_python_decodes(shape, frozen, dtype, monkeypatch):
    values, *earlier = drifting(shape, dtype)
    values.reshape(-1)[3::97] *= 1e6   # some are kept as they are
    several = itertools.cycle([[3000, 0], [3000, 0], [0, 0], [8000, -4000], [-1, 2**15 - 1], [0, 500]])
    for steps, size in itertools.product((earlier, earlier[:1]), (0.3, 0.01)):
        if size > 0.1:   # any multiples, which change within a block
            monkeypatch.setattr(_Encoder, "_multiples", lambda *_: np.array(next(several), np.int16))
        else:
            monkeypatch.undo()
        data = interpolated(values, steps, size, frozen)
        slow = Decoder(data, shape, np.dtype(dtype), earlier=steps).decode().reshape(shape)
        assert after(*steps).decode(data, shape, dtype).tobytes() == slow.tobytes()
        assert size < 0.1 or after(*steps).remark(data, shape, np.dtype(dtype)) == "predicted from earlier steps"


def test_a_field_that_hardly_changes_takes_half():
    values, *earlier = drifting((120, 130), step=0.02)
    alone, in_time = sizes(values, earlier[:1], 1e-2 * np.ptp(values))
    assert in_time < 0.5 * alone


def test_two_steps_of_a_field_that_grows_steadily_are_extrapolated():
    first, change = drifting((100, 90))[0], turbulent((100, 90), seed=7)
    steps = [first + number * change for number in range(3)]
    one, two = (sizes(steps[2], steps[1::-1][:count], 1e-3 * np.ptp(steps[2]))[1] for count in (1, 2))
    assert two < 0.7 * one


@pytest.mark.parametrize("size", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize(
    "kind", ["noise", "unrelated", "constant", "was constant", "other scale", "zeros", "tiny", "steps"]
)
def test_a_step_is_never_a_hundredth_larger_than_alone(kind, size):
    rng = np.random.default_rng(4)
    values, earlier = turbulent((90, 80)), turbulent((90, 80), seed=9)
    values, earlier = {
        "noise": (rng.normal(size=(90, 80)).astype("f4"), rng.normal(size=(90, 80)).astype("f4")),
        "unrelated": (values, earlier),
        "constant": (np.full((90, 80), 3, "f4"), earlier),
        "was constant": (values, np.full((90, 80), 3, "f4")),
        "other scale": (values, 1e6 * earlier),
        "zeros": (values, 0 * earlier),
        "tiny": (values, 1e-30 * earlier),
        "steps": (np.floor(3 * values), np.floor(3 * earlier)),
    }[kind]
    alone, in_time = sizes(values, [earlier], size)
    assert in_time <= 1.01 * alone + 16


@settings(max_examples=40)
@given(data=st.data(), shape=shapes, size=st.floats(1e-6, 10), dtype=st.sampled_from(["float32", "float64"]))
def test_any_earlier_values_will_do(data, shape, size, dtype):
    numbers = st.one_of(st.floats(width=32), st.sampled_from([math.nan, math.inf, -math.inf, 3e38, 0.0]))
    count = math.prod(shape)
    values = np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)
    earlier = [
        np.array(data.draw(st.lists(numbers, min_size=count, max_size=count)), dtype).reshape(shape)
        for _ in range(data.draw(st.integers(1, 2)))
    ]
    codec, limit = after(*earlier), Limit("absolute", size)
    guarded = encode_guarded(codec, values, limit)
    assert np.abs(guarded.decoded.astype("f8") - values).max() <= size
    assert decode_guarded(codec, guarded.sections, shape, dtype).tobytes() == guarded.decoded.tobytes()


def test_gaps_of_both_steps_are_no_obstacle():
    values, earlier, _ = drifting((80, 90))
    mask = turbulent((80, 90), seed=5) > 1
    values[mask], earlier[mask] = np.nan, np.nan
    earlier[3, 4], values[5, 6] = np.inf, np.nan
    limit = Limit("absolute", 0.01)
    alone, in_time = (encode_guarded(codec, values, limit, mask=mask) for codec in (get("interpolation"), after(earlier)))
    assert in_time.figures.remark == "predicted from earlier steps"
    assert in_time.nbytes < 0.9 * alone.nbytes
    assert decode_guarded(after(earlier), in_time.sections, values.shape, "f4").tobytes() == in_time.decoded.tobytes()


@pytest.mark.parametrize("share", [1e-2, 1e-4])
def test_the_bound_holds_without_corrections(share):
    values, *earlier = drifting((60, 70))
    bound = share * float(np.ptp(values))
    guarded = encode_guarded(after(*earlier), values, Limit("absolute", bound))
    assert guarded.figures.corrected == 0
    assert guarded.figures.largest_error <= bound


def test_bytes_do_not_depend_on_the_number_of_threads():
    values, *earlier = drifting((64, 64, 16))
    found = set()
    for threads in (1, 3):
        with backend.using_threads(threads):
            codec = dataclasses.replace(get("interpolation", frozen=(), block=4096)).following(after(*earlier).earlier)
            data = codec.encode(values, Tolerance(absolute=1e-2))
            found.add((data, codec.decode(data, values.shape, values.dtype).tobytes()))
    assert len(found) == 1
    assert codec.remark(data, values.shape, values.dtype) == "predicted from earlier steps"


def test_tuning_keeps_the_earlier_steps():
    values, *earlier = drifting((60, 70))
    tolerance = Tolerance(absolute=0.01)
    for codec in (after(*earlier).tuned(values, tolerance), after(*earlier).for_mean_errors(), after(*earlier).worthwhile(
        values, tolerance, values.size
    )):
        data = codec.encode(values, tolerance)
        assert codec.remark(data, values.shape, values.dtype) == "predicted from earlier steps"
        assert np.abs(codec.decode(data, values.shape, values.dtype) - values).max() <= 0.01
    assert codec.to_dict() == get("interpolation").to_dict()


def test_a_choice_knows_earlier_steps():
    values = np.rint(drifting((60, 70))[0] * 50) / 50   # on a lattice, which alone is smaller
    limit, known = Limit("absolute", 1e-3), Earlier((values,), (1.0, 0.0))
    alone, in_time = (chosen(values, None, limit, steps) for steps in (None, known))
    assert alone[0].id != "interpolation"
    assert in_time[0].id == "interpolation"


def test_earlier_steps_that_are_not_given_are_asked_for():
    values, *earlier = drifting((60, 70))
    data = after(*earlier).encode(values, Tolerance(absolute=0.01))
    with pytest.raises(CodecFailed, match="open the series"):
        get("interpolation").decode(data, values.shape, values.dtype)
    with pytest.raises(CodecFailed, match="must be float32 of shape"):
        after(earlier[0].astype("f8")).decode(data, values.shape, values.dtype)
    with pytest.raises(CodecFailed, match="does not decode to the values"):
        after(earlier[0] + 1, earlier[1]).decode(data, values.shape, values.dtype)


@pytest.mark.parametrize("seed", range(3))
def test_forged_bytes_are_refused_or_decoded_to_something(seed):
    values, *earlier = drifting((40, 50))
    codec, random, refused = after(*earlier), np.random.default_rng(seed), 0
    ((_, body),) = split("interpolation", interpolated(values, earlier, 0.01), values.shape, values.dtype)
    *head, coarse, tables = _HEADER.unpack_from(body)
    begin, end = _HEADER.size + coarse, _HEADER.size + coarse + tables
    assert head[0] == IN_TIME
    for _ in range(40):
        side = bytearray(zlib.decompress(body[begin:end]))
        for place in random.integers(0, 60, random.integers(1, 4)):   # multiples and weights
            side[place] = random.integers(256)
        packed = zlib.compress(bytes(side))
        made = _HEADER.pack(*head, coarse, len(packed)) + body[_HEADER.size : begin] + packed + body[end:]
        try:
            data = join("interpolation", [made], values.shape, values.dtype, 2**28)
            assert codec.decode(data, values.shape, values.dtype).shape == values.shape
        except CodecFailed:
            refused += 1
    assert refused > 20


def test_coarse_points_are_decoded_in_time():
    values, *earlier = drifting((60, 70))
    data = interpolated(values, earlier, 0.01)
    whole = after(*earlier).decode(data, values.shape, values.dtype)
    coarse = after(*earlier).coarse(4).decode(data, values.shape, values.dtype)
    assert coarse[::4, ::4].tobytes() == whole[::4, ::4].tobytes()


def test_steps_of_another_shape_are_not_used():
    values, earlier, _ = drifting((60, 70))
    plain = get("interpolation").encode(values, Tolerance(absolute=0.01))
    assert after(earlier[:, 1:]).encode(values, Tolerance(absolute=0.01)) == plain
    assert after(earlier.astype("f8")).encode(values, Tolerance(absolute=0.01)) == plain


@settings(max_examples=50)
@given(data=st.data(), shape=shapes)
def test_multiples_are_read_as_they_were_stored(data, shape):
    order = passes((1,) * (4 - len(shape)) + shape, ())
    rows, pair = 1 + len(order), st.tuples(*[st.sampled_from([0, 1, -(2**15)])] * 2)
    numbers = data.draw(st.lists(pair, min_size=rows, max_size=rows))
    stored = Multiples(np.array(numbers, np.int16)).stored()
    found, rest = Multiples.read(stored + b"behind", order)
    assert found.numbers.tolist() == [list(each) for each in numbers]
    assert rest == b"behind"
    with pytest.raises(CodecFailed, match="truncated"):
        Multiples.read(stored[:-1], order)
