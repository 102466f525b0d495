"""Cells coded by the bonds of molecules: any cells come back, and rigid molecules take the bits of their freedom."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance
from workbench.codecs.curve import Lattice
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.lattice_stream import Stream
from workbench.codecs.molecules import BLOCK_ATOMS, MOST_CELLS, CodedMolecules
from workbench.codecs.together import Pieces


def lattice(last: int, periodic: bool = False) -> Lattice:
    return Lattice((0.0,) * 3, 1.0, (last,) * 3, (float(last + 1),) * 3, periodic)


def coded(cells: np.ndarray, of: Lattice, piece: int | None = None) -> list[CodedMolecules]:
    return CodedMolecules.of_pieces(cells, Pieces.of(len(cells), piece or len(cells)), of)


def firsts(cells: np.ndarray, piece: int | None = None) -> np.ndarray:
    starts = Pieces.of(len(cells), piece or len(cells)).block_starts(BLOCK_ATOMS)[:-1]
    return cells[starts].astype(np.int64)


def water(count: int, seed: int = 0, side: float = 3.0) -> np.ndarray:
    """Rigid molecules of three atoms (the geometry of SPC/E), in nm, turned and placed at random."""
    random = np.random.default_rng(seed)
    axis = random.normal(size=(count, 2, 3))
    one = axis[:, 0] / np.linalg.norm(axis[:, 0], axis=1, keepdims=True)
    other = axis[:, 1] - (axis[:, 1] * one).sum(1, keepdims=True) * one
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    angle = math.radians(109.47)
    atoms = np.stack([0 * one, 0.1 * one, 0.1 * (math.cos(angle) * one + math.sin(angle) * other)], 1)
    return (atoms + side * random.random((count, 1, 3))).reshape(-1, 3).astype(np.float32)


def some_cells(kind: str, count: int, last: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    steps = {
        "chain": random.integers(-3, 4, (count, 3)), "line": np.full((count, 3), [1, 0, 0]),
        "coincident": np.zeros((count, 3)),
        "wide": (random.normal(size=(count, 3)) * last / 20), "uniform": random.integers(0, last + 1, (count, 3)),
        "ends": random.integers(0, 2, (count, 3)) * last,
    }[kind]
    places = steps if kind in ("uniform", "ends") else last // 2 + np.cumsum(steps, axis=0)
    return np.ascontiguousarray(np.mod(places, last + 1).astype(np.int32))


@given(
    seed=st.integers(0, 2**32 - 1), count=st.integers(1, 200), last=st.sampled_from([0, 1, 7, 1000, 2**20, MOST_CELLS - 1]),
    periodic=st.booleans(), kind=st.sampled_from(["chain", "line", "coincident", "wide", "uniform", "ends"]),
)
def test_any_cells_come_back(seed, count, last, periodic, kind):
    cells, of = some_cells(kind, count, last, seed), lattice(last, periodic)
    found, = coded(cells, of)
    again = CodedMolecules.from_bytes(found.to_bytes(), count)
    assert np.array_equal(CodedMolecules.cells_of_pieces([again], firsts(cells), of), cells)


def test_pieces_have_the_bytes_of_single_arrays_on_any_number_of_threads():
    of = lattice(2999)
    cells = (water(7000, side=2.8) * 900 + 100).astype(np.int32)
    piece = BLOCK_ATOMS + 100
    with backend.using_threads(1):
        alone = [coded(cells[a : a + piece], of)[0].to_bytes() for a in range(0, len(cells), piece)]
    with backend.using_threads(3):
        together = coded(cells, of, piece)
    assert [one.to_bytes() for one in together] == alone
    assert np.array_equal(CodedMolecules.cells_of_pieces(together, firsts(cells, piece), of), cells)


def test_rigid_molecules_take_the_bits_of_their_freedom():
    """Anywhere in the box, any direction, any turn; and some bits, as lattice points are near a sphere, not on it."""
    positions, step = water(2500), 0.001
    data = LatticeCodec(order="keep", coder="molecules").encode(positions, Tolerance(absolute=step / 2))
    bond = 0.1 / step
    free = 3 * math.log2(3.0 / step) + math.log2(4 * math.pi * bond**2) + math.log2(2 * math.pi * bond)
    assert 0 < len(data) * 8 / 2500 - free < 6
    deltas = LatticeCodec(order="keep", coder="context").encode(positions, Tolerance(absolute=step / 2))
    assert len(data) < 0.75 * len(deltas)


def test_molecules_across_a_face_of_the_box_take_no_more_room():
    """Their bonds go the short way round."""
    whole = (water(1000, side=2.8) * 900 + 100).astype(np.int32)
    across, of = np.mod(whole + 1000, 2720).astype(np.int32), lattice(2719, periodic=True)
    inside, wrapped = (coded(cells, of)[0] for cells in (whole, across))
    assert len(wrapped.words) < 1.005 * len(inside.words)
    assert np.array_equal(CodedMolecules.cells_of_pieces([wrapped], firsts(across), of), across)


def test_damage_is_found_and_damage_with_a_right_checksum_gives_cells_of_the_lattice():
    of, cells = lattice(2999, periodic=True), (water(300, side=2.8) * 900 + 100).astype(np.int32)
    found, = coded(cells, of)
    for place in range(0, len(found.words), 7):
        words = found.words.copy()
        words[place] ^= np.uint16(1 << place % 16)
        damaged = CodedMolecules(found.count, words, found.word_first, found.checksums)
        with pytest.raises(CodecFailed, match="block 0 of 1 fails its checksum"):
            CodedMolecules.cells_of_pieces([damaged], firsts(cells), of)
        sums = np.array([zlib.crc32(words.tobytes())], np.uint32)
        forged = CodedMolecules(found.count, words, found.word_first, sums)
        wrong = CodedMolecules.cells_of_pieces([forged], firsts(cells), of)
        assert wrong.min() >= 0
        assert wrong.max() <= 2999


@pytest.mark.parametrize(("change", "message"), [
    (lambda data: data[:10], "a header of 16 bytes"), (lambda data: data + b"1", "must have"),
    (lambda data: data[:18] + b"\xff" + data[19:], "fail their checksum"),
])
def test_bytes_that_contradict_themselves_are_refused(change, message):
    found, = coded(np.zeros((9, 3), np.int32), lattice(5))
    with pytest.raises(CodecFailed, match=message):
        CodedMolecules.from_bytes(change(found.to_bytes()), 9)


def test_what_cannot_be_coded_is_refused_and_left_to_deltas():
    positions = np.random.default_rng(0).random((100, 3))
    for values, tolerance in ((positions[:, :2].copy(), 0.01), (positions, 1e-12)):
        with pytest.raises(CodecFailed, match="choose another coder"):
            LatticeCodec(order="keep", coder="molecules").encode(values, Tolerance(absolute=tolerance))
        data = LatticeCodec(order="keep").encode(values, Tolerance(absolute=tolerance))
        assert not isinstance(Stream.of(data, values.shape).coded, CodedMolecules)
    with pytest.raises(CodecFailed, match="codes particles in their own order"):
        LatticeCodec(coder="molecules").encode(positions, Tolerance(absolute=0.01))


def cases() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    crowd = random.normal(size=(3000, 3)) * 1e-3 + 500
    crowd[:2] = [[0, 0, 0], [1000, 1000, 1000]]
    grid = np.stack(np.meshgrid(*[np.arange(16)] * 3), -1).reshape(-1, 3) / 16
    return {
        "coincident": np.full((3000, 3), 0.25), "line": np.repeat(np.linspace(0, 1, 3000), 3).reshape(-1, 3),
        "lattice": grid,
        "crowd": crowd, "single": np.ones((1, 3)), "uniform": random.random((3000, 3)), "water": water(1000).astype(float),
    }


@pytest.mark.parametrize("case", cases())
def test_neither_auto_nor_small_is_larger_than_deltas(case):
    positions, aim = cases()[case], Tolerance(absolute=1 / 512)
    codecs = [LatticeCodec(order="keep", coder=coder) for coder in ("small", "auto", "context")]
    small, auto, context = (len(codec.encode(positions, aim)) for codec in codecs)
    assert small <= auto <= context
    for coder in ("small", "molecules"):
        codec = LatticeCodec(order="keep", coder=coder)
        decoded = codec.decode(codec.encode(positions, aim), positions.shape, positions.dtype)
        assert np.abs(decoded - positions).max() <= 1 / 512


def test_each_chunk_of_an_archive_chooses_for_itself():
    random = np.random.default_rng(0)
    positions = np.concatenate([water(1000), 3 * random.random((3000, 3), np.float32) ** 8])
    archive = wb.compress(wb.Particles(positions), wb.Absolute(0.0005), chunk_values=9000)
    assert archive.verify(wb.Particles(positions)).passed
    codec = LatticeCodec(order="keep", lower=(0.0,) * 3, upper=(3.2,) * 3)
    aim = Tolerance(absolute=0.0005)
    together = codec.encode_together(positions, 3000, aim)
    kinds = [isinstance(Stream.of(data, (3000, 3)).coded, CodedMolecules) for data in together]
    assert kinds == [True, False]
    assert together == [codec.encode(part, aim) for part in (positions[:3000], positions[3000:])]
