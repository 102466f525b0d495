"""Keys as numbers of particles: whatever the keys, they come back; few of them cost no more than with the other coders."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import backend
from workbench.codecs import CodecFailed, Tolerance
from workbench.codecs.counts import MOST, MOST_IN_BLOCK, PRECISION, CodedCounts, _begins, _frequencies
from workbench.codecs.lattice import LatticeCodec
from workbench.codecs.lattice_stream import Stream
from workbench.codecs.together import Pieces


def coded(keys: np.ndarray, bits: int, dimensions: int = 3, block: int = 64, piece: int | None = None) -> list[CodedCounts]:
    return CodedCounts.of_pieces(keys, Pieces.of(len(keys), piece or len(keys)), block, dimensions, bits)


def clustered(count: int, bits: int, seed: int = 0) -> np.ndarray:
    """Keys in tight heaps, with duplicates and neighbours across the borders of cells."""
    random = np.random.default_rng(seed)
    heaps = random.integers(0, 1 << bits, 20, dtype=np.uint64)[random.integers(0, 20, count)]
    return np.sort((heaps + (2.0 ** (random.random(count) * bits)).astype(np.uint64)) & np.uint64((1 << bits) - 1))


@given(
    seed=st.integers(0, 2**32 - 1), count=st.integers(1, 700), dimensions=st.integers(2, 3), levels=st.integers(0, 21),
    block=st.sampled_from([64, 100, 1024]), kind=st.sampled_from(["uniform", "heaps", "few", "full"]),
)
def test_any_sorted_keys_come_back(seed, count, dimensions, levels, block, kind):
    random, bits = np.random.default_rng(seed), dimensions * levels
    keys = np.sort(random.integers(0, 1 << bits, count, dtype=np.uint64))
    if kind == "heaps":
        keys = clustered(count, bits, seed)
    if kind == "few":
        keys = np.sort(random.choice(keys[:3], count))
    if kind == "full":
        keys = np.minimum(np.arange(count, dtype=np.uint64), np.uint64((1 << bits) - 1))
    found, = coded(keys, bits, dimensions, block)
    again = CodedCounts.from_bytes(found.to_bytes(), count, block, dimensions, bits)
    assert np.array_equal(again.keys(keys[::block]), keys)


def test_pieces_have_the_bytes_of_single_arrays_and_blocks_are_read_alone():
    keys = clustered(3000, 36)
    together = coded(keys, 36, piece=1300)
    assert [one.to_bytes() for one in together] == [coded(keys[a : a + 1300], 36)[0].to_bytes() for a in (0, 1300, 2600)]
    firsts = np.concatenate([keys[a : a + 1300][::64] for a in (0, 1300, 2600)])
    assert np.array_equal(CodedCounts.keys_of_pieces(together, firsts), keys)
    some = together[0].keys(keys[:1300:64], np.array([3, 0, 20]))
    assert np.array_equal(some, np.concatenate([keys[192:256], keys[:64], keys[1280:1300]]))


def test_the_words_do_not_depend_on_the_room_they_are_given():
    """Pairs across all borders take a coded number for nearly each bit: more than the first slots hold."""
    middle = np.uint64(1 << 62)
    keys = np.sort(np.concatenate([np.repeat(middle - np.uint64(1), 40), np.repeat(middle, 40)]))
    found, = coded(keys, 63, block=128)
    assert np.array_equal(found.keys(keys[:1]), keys)


def test_distributions_are_whole_and_distinct():
    at, frequencies = 0, _frequencies()
    for n in range(1, MOST + 1):
        own = frequencies[:, at : at + n + 1]
        assert (own.sum(axis=1) == 1 << PRECISION).all()
        assert own.min() >= 1
        at += n + 1
    assert at == frequencies.shape[1]
    assert len(np.unique(frequencies, axis=0)) == 256
    assert _begins().max() == 1 << PRECISION


def test_blocks_too_large_and_kept_order_are_refused():
    with pytest.raises(CodecFailed, match="at most 32,768 particles"):
        coded(np.arange(10, dtype=np.uint64), 12, block=MOST_IN_BLOCK + 1)
    with pytest.raises(CodecFailed, match='counts" codes particles in free order'):
        LatticeCodec(order="keep", coder="counts").encode(np.random.default_rng(0).random((9, 3)), Tolerance(absolute=0.1))


def test_first_keys_beyond_the_lattice_are_refused():
    """They would choose cells of the model that do not exist."""
    positions = np.random.default_rng(0).random((500, 3))
    stream = Stream.of(LatticeCodec(coder="counts").encode(positions, Tolerance(absolute=0.01)), positions.shape)
    stream.first[-1] |= np.uint64(1 << 60)
    with pytest.raises(CodecFailed, match="of 18 bits"):
        Stream.of(stream.to_bytes(), positions.shape)


@pytest.mark.few(2)
@pytest.mark.parametrize("count", [1, 10, 100, 1000, 10_000])
def test_few_particles_take_no_more_room_than_with_the_other_coders(count):
    positions = wb.synthetic.cosmic_web(n=32).positions[:: 32**3 // count][:count].copy()
    aim = Tolerance(absolute=0.02 * (32**3 / count) ** (1 / 3))
    usual, counts = (len(LatticeCodec(coder=coder).encode(positions, aim)) for coder in ("auto", "counts"))
    assert counts <= usual


def regular() -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(16)] * 3), -1).reshape(-1, 3) / 16


def crowd() -> np.ndarray:
    positions = np.random.default_rng(0).normal(size=(3000, 3)) * 1e-3 + 500
    positions[:2] = [[0, 0, 0], [1000, 1000, 1000]]
    return positions


@pytest.mark.parametrize(
    "positions",
    [np.full((3000, 3), 0.25), np.repeat(np.linspace(0, 1, 3000), 3).reshape(-1, 3), regular(), crowd(), np.ones((1, 3))],
    ids=["coincident", "line", "lattice", "crowd", "single"],
)
def test_small_is_never_larger_than_auto(positions):
    aim = Tolerance(absolute=1 / 256)
    auto, small = (LatticeCodec(coder=coder).encode(positions, aim) for coder in ("auto", "small"))
    assert len(small) <= len(auto)
    order = LatticeCodec().permutation(positions, small)
    expected = positions if order is None else positions[order]
    assert np.abs(LatticeCodec().decode(small, positions.shape, positions.dtype) - expected).max() <= 1 / 256


def test_archives_are_read_by_region_and_verified():
    web = wb.synthetic.cosmic_web(n=32)
    codec = wb.codecs.get("lattice", coder="counts")
    archive = wb.compress(web, wb.Absolute(0.02), codec, order="free", chunk_values=3 * 9000)
    assert archive.verify(web).passed
    everything = archive.decompress().positions
    inside = ((everything >= 3) & (everything < 11)).all(axis=1)
    assert np.array_equal(archive.read([(3, 11)] * 3).positions, everything[inside])


def test_bytes_do_not_depend_on_threads():
    keys = clustered(200_000, 45)
    with backend.using_threads(1):
        alone = coded(keys, 45, block=1024)[0].to_bytes()
    with backend.using_threads(3):
        assert coded(keys, 45, block=1024)[0].to_bytes() == alone
