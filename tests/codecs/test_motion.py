"""The codec for series: beside a decoder in plain Python, at the faces of boxes, on hard and damaged input."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combinations import in_pairs
from slow_motion import Decoder
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance, motion_steps
from workbench.codecs.earlier import Earlier
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.motion import IN_TIME, THROUGH_FACES, Motion
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit, decode_guarded, encode_guarded

BOX = (1.0, 0.7, 2.5)


def moving(steps: int, count: int, components: int = 3, seed: int = 0, box=None, dtype="f4") -> np.ndarray:
    """Particles that move smoothly, with a few that jump."""
    random = np.random.default_rng(seed)
    start, speed = random.random((count, components)), 0.02 * random.normal(size=(count, components))
    speed = np.cumsum(speed, axis=0) / np.sqrt(np.arange(1, count + 1))[:, None]
    t = np.arange(steps)[:, None, None]
    found = start + speed * t + 0.002 * speed * t * t + 0.001 * random.normal(size=(steps, count, components))
    found[:, :: max(count // 3, 1)] += random.normal(size=found[:, :: max(count // 3, 1)].shape)
    if box is not None:
        found = found % np.array(box)[:components]
    found = found.astype(dtype)
    if box is not None:
        found = np.where(found < np.array(box, dtype)[:components], found, 0).astype(dtype)
    return found


def after(values: np.ndarray, how: str) -> Earlier:
    """What is known before the last of these steps."""
    count, rates = {"one": (1, False), "two": (2, False), "rates": (1, True), "both": (2, True)}[how]
    speed = values[-1] - values[-2] if rates else None
    return Earlier(tuple(values[-2 - k] for k in range(count)), tuple(range(count, -1, -1)), speed)


@pytest.mark.parametrize(
    ("how", "count", "components", "dtype", "box", "tolerance"),
    in_pairs(
        ["one", "two", "rates", "both"], [1, 5, 120], [1, 2, 3], ["f4", "f8"], [None, BOX], [1e-2, 1e-5]
    ),
)
def test_a_step_is_decoded_as_by_the_slow_decoder(how, count, components, dtype, box, tolerance):
    values = moving(3, count, components, box=box, dtype=dtype)
    inside = None if box is None else box[:components]
    codec = dataclasses.replace(Motion(), box=inside).following(after(values, how))
    data = codec.encode(values[-1], Tolerance(absolute=tolerance))
    decoded = codec.decode(data, values[-1].shape, dtype)
    assert abs(decoded.astype(float) - values[-1]).max() <= tolerance
    if box is not None:
        assert (decoded >= 0).all()
        assert (decoded < np.array(inside)).all()
    if data[0] == IN_TIME:
        slow = Decoder(data, (1, count, components), np.dtype(dtype), inside, codec.earlier).decode()
        assert (slow[0] == decoded).all()
    else:
        assert count < 120 or components == 1


@pytest.mark.parametrize(
    ("steps", "count", "dtype", "box"), in_pairs([2, 3, 7], [3, 150], ["f4", "f8"], [None, BOX])
)
def test_frames_are_decoded_as_by_the_slow_decoder(steps, count, dtype, box):
    values = moving(steps, count, box=box, dtype=dtype)
    codec = Motion(box)
    data = codec.encode(values, Tolerance(absolute=1e-3))
    decoded = codec.decode(data, values.shape, dtype)
    assert abs(decoded.astype(float) - values).max() <= 1e-3
    if data[0] == IN_TIME:
        assert (Decoder(data, values.shape, np.dtype(dtype), box, None).decode() == decoded).all()
    else:
        assert count < 150


@pytest.mark.parametrize("count", [13, 25, 26, 27, 39, 52, 60])   # whole blocks in pairs, one that is left, a shorter one
@pytest.mark.parametrize("threads", [1, 2, 99])
def test_blocks_that_are_decoded_in_turns_are_decoded_as_by_the_slow_decoder(count, threads, monkeypatch):
    monkeypatch.setattr(motion_steps, "LEAST_BLOCK", 13)
    monkeypatch.setattr(motion_steps, "IN_BLOCK", 1)
    values = moving(4, count, box=BOX)
    codec = Motion(BOX).following(Earlier((values[1], values[0]), (2, 1, 0)))
    data = codec.encode(values[2:], Tolerance(absolute=1e-3))
    assert data[0] == IN_TIME
    monkeypatch.setattr(backend, "threads", lambda: threads)
    slow = Decoder(data, values[2:].shape, np.dtype("f4"), BOX, codec.earlier).decode()
    assert (codec.decode(data, values[2:].shape, "f4") == slow).all()


def test_particles_that_move_as_expected_take_hardly_any_bits():
    values = moving(3, 20_000)
    steady = 2 * values[1].astype(float) - values[0]
    known = after(values, "two")
    data = Motion().following(known).encode(steady.astype("f4"), Tolerance(absolute=1e-3))
    alone = LatticeCodec(order="keep").encode(steady.astype("f4"), Tolerance(absolute=1e-3))
    assert len(data) < 0.02 * len(alone)
    speed = dataclasses.replace(known, values=known.values[:1], times=(1, 0), rates=7e3 * (values[1] - values[0]))
    speed = dataclasses.replace(speed, rates=speed.rates.astype("f8"))   # of another type than positions
    assert len(Motion().following(speed).encode(steady.astype("f4"), Tolerance(absolute=1e-3))) < 0.02 * len(alone)


def test_without_anything_earlier_a_step_takes_what_the_lattice_takes():
    values = moving(1, 2000)[0]
    alone = LatticeCodec(order="keep").encode(values, Tolerance(absolute=1e-3))
    data = Motion().encode(values, Tolerance(absolute=1e-3))
    assert data[1:] == alone
    assert Motion().remark(data, values.shape, values.dtype) is None
    unrelated = Motion().following(Earlier((50 * moving(1, 2000, seed=5)[0],), (1.0, 0.0)))
    data = unrelated.encode(values, Tolerance(absolute=1e-3))
    assert len(data) == len(alone) + 1
    assert unrelated.remark(data, values.shape, values.dtype) == "coded without time"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("tolerance", [0.3, 0.01, 1e-4])
def test_particles_cross_the_faces_of_a_box_within_the_bound(dtype, tolerance):
    random = np.random.default_rng(1)
    edge = np.finfo(dtype).eps
    before = random.choice([0, edge, 1e-3, 0.5, 1 - 1e-3, 1 - edge], (2000, 3)).astype(dtype) % dtype_of(1, dtype)
    moved = (before + random.choice([0, edge, -edge, 0.02, -0.02, 0.3], before.shape)) % 1
    moved = np.where(moved.astype(dtype) < 1, moved.astype(dtype), 0).astype(dtype)
    codec = Motion((1.0, 1.0, 1.0)).following(Earlier((before,), (1.0, 0.0)))
    data = codec.encode(moved, Tolerance(absolute=tolerance))
    decoded = codec.decode(data, moved.shape, dtype)
    assert abs(decoded.astype(float) - moved).max() <= tolerance
    assert (decoded < 1).all()
    assert (decoded >= 0).all()


def dtype_of(number: float, dtype: str):
    return np.dtype(dtype).type(number)


def test_a_box_saves_what_jumps_would_take():
    values = moving(3, 5000, box=(1.0, 1.0, 1.0))
    earlier = after(values, "two")
    inside, outside = (
        len(Motion(box).following(earlier).encode(values[-1], Tolerance(absolute=1e-3))) for box in ((1.0, 1.0, 1.0), None)
    )
    assert inside < 0.97 * outside


@pytest.mark.parametrize("how", ["one", "two", "both"])
def test_particles_that_did_not_exist_are_not_predicted_from(how):
    values = moving(3, 1000)
    values[0, ::3] = np.nan
    values[1, ::5] = np.nan
    values[1, 7:20] = np.inf
    codec = Motion().following(after(np.concatenate([values[:2], moving(3, 1000)[2:]]), how))
    now = moving(3, 1000)[2]
    data = codec.encode(now, Tolerance(absolute=1e-3))
    assert data[0] == IN_TIME
    assert abs(codec.decode(data, now.shape, now.dtype).astype(float) - now).max() <= 1e-3


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_random_particles(data):
    count, components = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 4))
    dtype = np.dtype(data.draw(st.sampled_from(["f4", "f8"])))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    size = 10.0 ** data.draw(st.integers(-30, 30))
    steps = data.draw(st.sampled_from([0, 1, 2, 3, 9]))
    values = (random.normal(size=(max(steps, 1), count, components)) ** data.draw(st.integers(1, 5)) * size).astype(dtype)
    codec = Motion()
    if data.draw(st.booleans()):
        spread = 10.0 ** -data.draw(st.integers(0, 9))
        known = (values[0] * (1 + spread * random.normal(size=values[0].shape))).astype(dtype)
        codec = codec.following(Earlier((known, known[::-1]), (2.0, 1.0, 0.0), known if data.draw(st.booleans()) else None))
    given = values if steps else np.ascontiguousarray(values[0])
    limit = Limit("absolute", float(abs(values).max()) * 10.0 ** -data.draw(st.integers(0, 12)))
    guarded = encode_guarded(codec, given, limit)
    decoded = decode_guarded(codec, guarded.sections, given.shape, dtype)
    assert abs(decoded.astype(float) - given.astype(float)).max() <= limit.value
    assert guarded.figures.corrected == 0


@pytest.mark.parametrize("kind", ["step", "frames", "cells"])
def test_damaged_bytes_are_refused_or_decode_to_other_numbers(kind):
    values = moving(5, 700, box=BOX)
    codec = {
        "step": Motion(BOX).following(after(values, "both")), "frames": Motion(BOX),
        "cells": Motion().in_cells(np.tile(np.diag(BOX), (5, 1, 1))),
    }[kind]
    given = values[-1] if kind == "step" else values
    data = codec.encode(given, Tolerance(absolute=1e-3))
    assert data[0] == (THROUGH_FACES if kind == "cells" else IN_TIME)
    random, refused = np.random.default_rng(3), 0
    places = [*range(min(len(data), 140)), *random.integers(0, len(data), 300).tolist()]
    for place in places:
        forged = bytearray(data)
        forged[place] ^= 1 << random.integers(8)
        try:
            decoded = codec.decode(bytes(forged), given.shape, given.dtype)
        except WorkbenchError:
            refused += 1
        else:
            assert decoded.shape == given.shape
    assert refused > 100
    for length in range(0, len(data) - 1, 97):
        with pytest.raises(WorkbenchError):
            codec.decode(data[:length], given.shape, given.dtype)


def test_what_is_missing_or_does_not_fit_is_said():
    values = moving(3, 500)
    data = Motion().following(after(values, "two")).encode(values[-1], Tolerance(absolute=1e-3))
    with pytest.raises(CodecFailed, match="open the folder of the series"):
        Motion().decode(data, values[-1].shape, values.dtype)
    with pytest.raises(CodecFailed, match="earlier steps must be float32 of 500 particles"):
        Motion().following(after(moving(3, 400), "one")).decode(data, values[-1].shape, values.dtype)
    with pytest.raises(CodecFailed, match="box"):
        Motion((1.0, 1.0)).following(after(values, "one")).encode(values[-1], Tolerance(absolute=1e-3))
    with pytest.raises(CodecFailed, match=r"damaged, or follows other steps|are not what their blocks take"):
        Motion().following(after(-moving(3, 500, seed=3), "two")).decode(data, values[-1].shape, values.dtype)


def wrapped(values: np.ndarray, edges: np.ndarray, low: float, together: int = 1) -> np.ndarray:
    """Frames in their cells (frames, 3, 3), of which each fraction begins at `low`; so many atoms are wrapped as one."""
    found = values.astype(float)
    for frame, cell in zip(found, edges, strict=True):
        first = frame[::together].repeat(together, axis=0)[: len(frame)]
        frame -= np.floor(first @ np.linalg.pinv(cell) - low) @ cell
    return found.astype(values.dtype)


CUBE = np.tile(np.eye(3), (9, 1, 1))
BREATHING = CUBE * (1 + 0.01 * np.sin(np.arange(9)))[:, None, None]
OBLIQUE = BREATHING + np.tril(np.full((3, 3), 0.3), -1) * np.cos(np.arange(9))[:, None, None] * 0.1
TURNED = BREATHING @ np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
SLAB = BREATHING * [[1], [1], [0]]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("low", "together"), [(0.0, 1), (-0.5, 1), (0.3, 3)])
@pytest.mark.parametrize(
    "edges", [CUBE, BREATHING, OBLIQUE, TURNED, SLAB], ids=["cube", "breathing", "oblique", "turned", "slab"]
)
def test_atoms_cross_the_faces_of_cells(edges, low, together, dtype):
    values = wrapped(moving(9, 600, dtype=dtype), edges, low, together)
    tolerance = Tolerance(absolute=1e-4)
    data = Motion().in_cells(edges).encode(values, tolerance)
    assert data[0] == THROUGH_FACES
    assert len(data) < len(Motion().encode(values, tolerance))
    decoded = Motion().decode(data, values.shape, values.dtype)   # which knows no cells
    assert abs(decoded.astype(float) - values).max() <= 1e-4


def test_cells_cost_nothing_where_no_atom_crosses_a_face():
    values, tolerance = moving(9, 300), Tolerance(absolute=1e-3)
    plain = Motion().encode(values, tolerance)
    for edges in (100 * CUBE, 0 * CUBE, np.full_like(CUBE, np.nan), CUBE[:, [0, 0, 0]]):
        assert Motion().in_cells(edges).encode(values, tolerance) == plain
    far = np.random.default_rng(0).random((9, 300, 3)).astype("f4")   # frames that have nothing to do with each other
    assert Motion().in_cells(CUBE).encode(far, tolerance) == Motion().encode(far, tolerance)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38, 1e30])
def test_values_that_are_no_positions_come_back_in_cells(bad):
    values = wrapped(moving(9, 600), CUBE, 0.0)
    values[4, ::50] = bad
    guarded = encode_guarded(Motion().in_cells(CUBE), values, Limit("absolute", 1e-3))
    decoded = decode_guarded(Motion(), guarded.sections, values.shape, values.dtype)
    same = (decoded == values) | (np.isnan(decoded) & np.isnan(values))
    assert (abs(decoded[~same].astype(float) - values[~same]) <= 1e-3).all()
