"""Dropped blocks, and flipped bits in compressed data: what they hit, what notices them, and what cannot be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.propagation import Bounded, CompressedStreamFlip, Detected, Dropped, Pipeline, campaign, trace
from workbench.propagation.draws import draws_of

BOUND = wb.Absolute(1e-3)
WAVE = np.sin(np.arange(4096.0) / 9).reshape(64, 64)


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=3), st.lists(st.integers(1, 9), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=60)
def test_a_dropped_block_is_one_tile_of_the_array(shape, block, trial):
    values = 1.0 + np.arange(np.prod(shape)).reshape(shape)
    named = tuple(block) if len(block) == len(shape) else block[0]
    found = Dropped("x", named).apply(values, draws_of(0, trial))
    lost = np.argwhere(found.values == 0)
    sides = named if isinstance(named, tuple) else (named, *shape[1:])
    assert {tuple(place // np.array(sides)) for place in lost} == {tuple(lost[0] // np.array(sides))}
    begin, end = lost.min(axis=0), lost.max(axis=0) + 1
    assert all(b % s == 0 and (e == n or e - b == s) for b, e, s, n in zip(begin, end, sides, shape, strict=True))
    assert len(lost) == np.prod(end - begin) == len(found.where) == found.notes[0]["values_lost"]
    kept = np.delete(found.values.ravel(), found.where)
    np.testing.assert_array_equal(kept, np.delete(values.ravel(), found.where))
    (drawn,) = Dropped("x", named).drawn(values, draws_of(0, trial))
    assert drawn.apply(values).values.tobytes() == found.values.tobytes()


def test_lost_values_are_filled_as_asked():
    values = np.array([1.0, 2.0, 3.0, 6.0])
    assert np.isnan(Dropped("x", 2, 0, fill=np.nan).apply(values).values).tolist() == [True, True, False, False]
    assert Dropped("x", 2, 0, fill="mean").apply(values).values.tolist() == [4.5, 4.5, 3.0, 6.0]
    assert Dropped("x", 4, fill="mean").apply(values, draws_of(0, 0)).values.tolist() == [0.0] * 4
    pipeline = Pipeline([("sum", np.sum)])
    found = campaign(pipeline, values, [Dropped("input", 2), Dropped("input", 2, fill=np.nan)], until=40)
    assert [each["silent"] for each in found.counts] == [20, 0]
    assert [each["detected"] for each in found.counts] == [0, 20]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Dropped("x", 0), "block must be a whole number, at least 1"),
        (lambda: Dropped("x", 1, -1), "index must be"),
        (lambda: Dropped("x", 1, fill="zero"), "fill must be a number or 'mean'"),
        (lambda: Dropped("x", (2, 2, 2)).check(WAVE), r"a number for each axis of 'x', \(64, 64\)"),
        (lambda: Dropped("x", 32, 2).check(WAVE), "less than the 2 blocks at 'x'; got 2"),
        (lambda: Dropped("x", (32, 32), (1, 2)).check(WAVE), r"within the \(2, 2\) blocks"),
        (lambda: Dropped("x", fill=1.5).check(np.arange(4)), "fill must be 0 at 'x', which holds int64"),
        (lambda: CompressedStreamFlip("x", 1e-3), "bound must be Absolute"),
        (lambda: CompressedStreamFlip("x", BOUND, bits=(1, 1)), "several different places"),
        (lambda: CompressedStreamFlip("x", BOUND, count=0), "count must be a whole number"),
        (lambda: CompressedStreamFlip("x", BOUND).check(np.arange(4)), "needs float32 or float64 at 'x'; got int64"),
        (lambda: CompressedStreamFlip("x", BOUND, "prequantised", bits=10**9).apply(WAVE), "must be less than the"),
        (lambda: CompressedStreamFlip("x", BOUND).apply(WAVE), "is random"),
    ],
)
def test_what_cannot_be_lost_is_refused(make, complaint):
    with pytest.raises(wb.WorkbenchError, match=complaint):
        make()


@pytest.mark.parametrize("codec", ["prequantised", "zfp", "sz3"])
def test_a_flip_in_a_stream_changes_values_or_is_refused_by_the_decoder(codec):
    if codec not in wb.codecs.available():
        pytest.skip(f"{codec} is not installed")
    outcomes = set()
    for trial in range(5):
        flip = CompressedStreamFlip("x", BOUND, codec)
        (drawn,) = flip.drawn(WAVE, draws_of(1, trial))
        try:
            found = flip.apply(WAVE, draws_of(1, trial))
        except Detected:
            outcomes.add("detected")
            with pytest.raises(Detected):
                drawn.apply(WAVE)
            continue
        except wb.propagation.StageFailed:   # the decoder crashed, in a process of its own
            continue
        assert found.values.shape == WAVE.shape
        outcomes.add("changed" if found.notes[0]["values_hit"] else "unchanged")
        assert drawn.apply(WAVE).values.tobytes() == found.values.tobytes()
    assert outcomes - {"unchanged"}


def test_the_checksums_of_an_archive_notice_every_flip_that_changes_values():
    silent = {}
    for checksum in (False, True):
        flip = CompressedStreamFlip("input", BOUND, "pcodec", checksum=checksum)
        found = campaign(Pipeline([("sum", lambda x: (x * x).sum())]), WAVE, [flip], until=60)
        silent[checksum] = found.counts[0]["silent"] + found.counts[0]["benign"]
        if checksum:
            assert found.counts[0]["detected"] > 40
            assert any("fails its checksum" in reason for reason in found.reasons("detected"))
    assert silent[True] == 0
    assert silent[False] > 0


def test_without_a_flip_the_stream_is_what_bounded_gives():
    flip = CompressedStreamFlip("x", BOUND, "pcodec", bits=(4000,))
    plain = Bounded("x", BOUND, "pcodec").apply(WAVE).values
    assert 0 < np.count_nonzero(flip.apply(WAVE).values != plain) == flip.apply(WAVE).notes[0]["values_hit"]


def test_positions_in_a_box_are_compressed_as_particles():
    snapshot = wb.synthetic.cosmic_web(n=8, seed=1)
    pipeline = wb.propagation.halos(snapshot, min_members=5)
    for checksum in (False, True):
        flip = CompressedStreamFlip("input", wb.Absolute(1e-3), checksum=checksum)
        found = campaign(pipeline, snapshot, [flip], until=10)
        assert sum(found.counts[0].values()) == 10
        assert found.drawn(pipeline.run(snapshot), 3)[0].bits


def test_a_trace_of_a_stream_flip_has_the_values_that_were_hit():
    pipeline = Pipeline([("double", lambda x: 2 * x)])
    flip = CompressedStreamFlip("input", BOUND, "pcodec", bits=(4000,))
    assert trace(pipeline, WAVE, flip)["double"].changed > 0
    assert flip.to_dict()["bound"] == {"kind": "absolute", "eb": 1e-3}
    assert eval(repr(flip), {"CompressedStreamFlip": CompressedStreamFlip, **vars(wb)}) == flip
