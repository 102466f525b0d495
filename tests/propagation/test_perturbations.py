"""Perturbations: bits of every format, random choices by trial, bounds that hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import BitFlip, Bounded, Noise, Pipeline, StuckAt
from workbench.propagation.draws import draws_of
from workbench.propagation.number_format import NumberFormat, from_bfloat16, to_bfloat16

DTYPES = [
    np.float16, np.float32, np.float64, np.complex64, np.complex128, bool,
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
]


def some(dtype, seed=0, shape=(3, 4)):
    """Random values of any type."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype) == bool:
        return random.random(shape) < 0.5
    if np.dtype(dtype).kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    values = np.asarray(random.normal(size=shape))
    return values.astype(dtype) if np.dtype(dtype).kind == "f" else np.rint(100 * values).astype(np.int64).astype(dtype)


def bits(values):
    return values.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_flip_of_a_flip_is_the_identity_for_every_bit(dtype):
    values = some(dtype)
    original = bits(values)
    for bit in range(NumberFormat.of(dtype).bits):
        flip = BitFlip("x", bit=bit, index=5)
        once = flip.apply(values).values
        assert bits(once) != original, bit
        assert bits(flip.apply(once).values) == original, bit
    assert bits(values) == original


def test_the_flip_of_a_flip_is_the_identity_for_bfloat16():
    values = from_bfloat16(to_bfloat16(some(np.float32)))
    for bit in range(16):
        flip = BitFlip("x", bit=bit, index=(1, 2), format="bfloat16")
        once = flip.apply(values).values
        assert np.count_nonzero(once.view(np.uint32) != values.view(np.uint32)) == 1
        assert (once.view(np.uint32) ^ values.view(np.uint32)).max() == 1 << (bit + 16)
        np.testing.assert_array_equal(flip.apply(once).values.view(np.uint32), values.view(np.uint32))


def test_float16_flips_are_those_of_its_own_bits():
    values = np.float32([1.0, -0.1, 7e4, 1e-7, np.nan])
    for bit, place in itertools.product(range(16), range(5)):
        flip = BitFlip("x", bit=bit, index=place, format="float16")
        with np.errstate(over="ignore"):
            expected = (values[place : place + 1].astype(np.float16).view(np.uint16) ^ (1 << bit)).view(np.float16)
        changed = flip.apply(values).values
        np.testing.assert_array_equal(changed[place : place + 1], expected.astype(np.float32))
        np.testing.assert_array_equal(np.delete(changed, place), np.delete(values, place))
    assert NumberFormat.of(np.float32, "float16").fields["exponent_top"] == range(14, 15)


def test_bfloat16_rounds_to_the_nearest_ties_to_even():
    step = 2.0**-7
    given = np.array([1 + 0.5 * step, 1 + 1.5 * step, 1 + 0.51 * step, -1 - 0.5 * step, np.inf, 3.4e38], np.float32)
    expected = [1.0, 1 + 2 * step, 1 + step, -1.0, np.inf, np.inf]
    assert from_bfloat16(to_bfloat16(given)).tolist() == expected
    assert np.isnan(from_bfloat16(to_bfloat16(np.array([np.nan], np.float32)))).all()


@given(st.integers(0, 2**63), st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_share_that_becomes_infinite_is_that_between_1_and_2(seed, trial):
    random = np.random.default_rng(seed)
    values = (random.normal(size=200) * 2.0 ** random.integers(-3, 4, 200)).astype(np.float32)
    flipped = np.array([BitFlip("x", bit=30, index=i).apply(values).values[i] for i in range(200)])
    assert (~np.isfinite(flipped) == ((abs(values) >= 1) & (abs(values) < 2))).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("to", [0, 1])
def test_a_stuck_bit_has_the_value_it_is_stuck_at(dtype, to):
    values = some(dtype)
    for bit in range(NumberFormat.of(dtype).bits):
        stuck = StuckAt("x", bit=bit, index=3, to=to)
        once = stuck.apply(values).values
        assert bits(stuck.apply(once).values) == bits(once)
        changed = bits(once) != bits(values)
        assert changed == (bits(BitFlip("x", bit=bit, index=3).apply(values).values) == bits(once))


def test_a_bit_stuck_at_0_does_not_harm_a_zero():
    assert bits(StuckAt("x", bit="exponent", count=4).apply(np.zeros(4), draws_of(0, 0)).values) == bits(np.zeros(4))


def test_numbers_without_axes_transposes_and_swapped_bytes_are_flipped_too():
    assert BitFlip("x", bit=63, index=0).apply(np.array(3.0)).values == -3.0
    transposed = np.arange(6.0).reshape(2, 3).T
    assert BitFlip("x", bit=63, index=(2, 1)).apply(transposed).values.tolist() == [[0, 3], [1, 4], [2, -5]]
    swapped = np.array([1.0, 2.0], ">f8")
    pipeline = Pipeline([("same", lambda x: x + 0)])
    assert pipeline.perturbed(pipeline.run(swapped), BitFlip("input", bit=63, index=1))["same"].tolist() == [1.0, -2.0]


def test_a_field_hits_its_own_bits_only():
    values = np.full(4000, 1.5, np.float32)
    for field, allowed in NumberFormat.of(np.float32).fields.items():
        hit = {
            BitFlip("x", bit=field).drawn(values, draws_of(1, trial))[0].bit for trial in range(40 * len(allowed))
        }
        assert hit == set(allowed)


def test_drawn_choices_can_be_repeated_from_the_trial():
    values = np.random.default_rng(0).normal(size=(40, 3))
    for number, flip in enumerate([BitFlip("x"), BitFlip("x", bit="exponent", count=7), StuckAt("x", count=5, to=1)]):
        done = flip.apply(values, draws_of(5, 11, number))
        single = flip.drawn(values, draws_of(5, 11, number))
        assert len(single) == flip.count
        again = values
        for each in single:
            again = each.apply(again).values
        assert bits(again) == bits(done.values)
        assert eval(repr(single[0])) == single[0]
        assert set(np.flatnonzero(done.values != values)) <= set(done.where)


def test_several_flips_hit_different_values():
    done = BitFlip("x", bit="mantissa", count=12).apply(np.ones(12), draws_of(0, 0))
    assert (done.values != 1).all()


def test_trials_differ_and_do_not_depend_on_each_other():
    values = np.ones(10**6)
    index = [BitFlip("x").apply(values, draws_of(0, trial)).notes[0]["index"] for trial in range(50)]
    assert len(set(index)) > 45
    assert index[7] == BitFlip("x").apply(values, draws_of(0, 7)).notes[0]["index"]


BAD = [
    (lambda: BitFlip("x", bit=32, index=0).apply(np.ones(2, "f4")), "bit must be between 0 and 31 for float32; got 32"),
    (lambda: BitFlip("x", bit=64), "bit must be a whole number, between 0 and 63; got 64"),
    (lambda: BitFlip("x", bit=-1), "got -1"),
    (lambda: BitFlip("x", bit=(3, 3)), "one or several different bits"),
    (lambda: BitFlip("x", bit="exponent", index=0).apply(np.ones(2, "i4")), "int32 has the fields sign, magnitude, or any"),
    (lambda: BitFlip("x", bit="power", index=0).apply(np.ones(2)), "float64 has the fields sign, exponent"),
    (lambda: BitFlip("x", bit=1, index=2).apply(np.ones(2)), "index must be less than the 2 values at 'x'; got 2"),
    (lambda: BitFlip("x", bit=1, index=(0, 5)).apply(np.ones((2, 2))), r"within the shape \(2, 2\) of 'x'; got \(0, 5\)"),
    (lambda: BitFlip("x", index="first"), "index must be a whole number, or one for each axis; got 'first'"),
    (lambda: BitFlip("x", index=1, count=2), "count must be 1 where the index is given"),
    (lambda: BitFlip("x", count=3).apply(np.ones(2), draws_of(0, 0)), "count must be at most the 2 values"),
    (lambda: BitFlip("x", bit=1).apply(np.ones(2)), "is random: give draws"),
    (lambda: BitFlip("x", format="bfloat16").apply(np.ones(2)), "for float32 values; got 'bfloat16' for float64"),
    (lambda: BitFlip("x", bit=1, index=0).apply(np.ones(2, np.longdouble)), "floats up to 64 bits"),
    (lambda: BitFlip(3), "BitFlip needs the name of a site; got 3"),
    (lambda: StuckAt("x", to=2), "to must be a whole number, between 0 and 1; got 2"),
    (lambda: Noise("x", 0), "amplitude must be positive and finite; got 0"),
    (lambda: Noise("x", 1, "cauchy"), "distribution must be one of uniform, normal; got 'cauchy'"),
    (lambda: Noise("x", 1, unit="std"), "unit must be one of rms, range, value; got 'std'"),
    (lambda: Noise("x", 1).apply(np.ones(2, int), draws_of(0, 0)), "noise needs floating-point values at 'x'; got int64"),
    (lambda: Bounded("x", 1e-3), "bound must be Absolute, Relative or PointwiseRelative; got 0.001"),
    (lambda: Bounded("x", wb.Absolute(1)).apply(np.ones(2, np.float16)), "a bounded error needs float32, float64"),
    (lambda: draws_of(-1, 0), "seed must be a whole number"),
]


@pytest.mark.parametrize(("work", "complaint"), BAD, ids=range(len(BAD)))
def test_bad_perturbations_are_refused_with_a_reason(work, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        work()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(), (7,), (5, 6), (3, 4, 5), (2, 2, 2, 2), (2, 1, 2, 1, 3)])
def test_a_bounded_error_stays_within_its_bound_for_every_shape(dtype, shape):
    values = np.asarray(some(dtype, shape=shape))
    perturbation = Bounded("x", wb.Absolute(0.01), codec="prequantised")
    done = perturbation.apply(values)
    assert done.values.dtype == values.dtype
    assert done.values.shape == values.shape
    assert (abs(done.values - values) <= perturbation.radius(values, done.values)).all()
    assert done.notes[0]["largest_error"] <= 0.0142


@pytest.mark.parametrize("codec", ["auto", "sz3", "zfp", "prequantised", "bitround"])
@pytest.mark.parametrize("bound", [wb.Absolute(0.02), wb.Relative(1e-3), wb.PointwiseRelative(1e-2)])
def test_any_codec_makes_a_bounded_error(codec, bound):
    if codec not in ("auto", *wb.codecs.available()):
        pytest.skip(f"{codec} is not installed")
    values = (3 + np.sin(np.arange(96) / 20)[:, None] * np.cos(np.arange(96) / 30)).astype(np.float32)
    perturbation = Bounded("x", bound, codec)
    done = perturbation.apply(values)
    error = abs(done.values.astype(float) - values)
    assert (error <= perturbation.radius(values, done.values)).all()
    assert error.max() > 0
    assert done.notes[0]["ratio"] > 1


def test_positions_in_a_box_are_compressed_as_particles():
    particles = wb.synthetic.cosmic_web(n=16, seed=1)
    done = Bounded("x", wb.Absolute(0.05)).apply(particles.positions, box=16.0)
    assert ((done.values >= 0) & (done.values < 16)).all()
    assert 0 < done.notes[0]["largest_error"] <= 0.05


def test_noise_has_the_size_that_it_says():
    values = some(np.float64, shape=(100, 100)) * 3
    rms = np.sqrt((values**2).mean())
    done = Noise("x", 0.01, unit="rms").apply(values, draws_of(0, 0)).values
    assert 0.0099 * rms < abs(done - values).max() <= 0.01 * rms * (1 + 1e-9)
    done = Noise("x", 0.01, "normal", unit="range").apply(values, draws_of(0, 0)).values
    np.testing.assert_allclose((done - values).std(), 0.01 * np.ptp(values), rtol=0.05)
