"""Forgeries that were found to crash, hang or raise something else than a sentence; each of them literally."""

import dataclasses
import struct
import tracemalloc

import numpy as np
import pytest

import workbench as wb
from archive import samples
from fuzz.mutations import resealed
from fuzz.uses import used
from fuzz.victims import Victim
from workbench.archive.frame import pack, unpack
from workbench.archive.root import CONSOLIDATED
from workbench.clusters.keep.edits import Edits
from workbench.codecs import get
from workbench.codecs.entropy import CodedIntegers
from workbench.codecs.lattice_stream import CODERS, Stream
from workbench.guarantees.sections import CHECKSUM, CODE, EDIT


def victim(count: int = 200, **options: object) -> Victim:
    original = wb.Particles(samples.particles(count, np.float64, 3, None).positions)
    return Victim("", original, samples.parts(wb.compress(original, wb.Absolute(0.01), **options)))


def with_sections(made: Victim, key: str, **sections: bytes) -> dict[str, bytes]:
    opened = unpack(made.entries[key], key)
    found = {tag: bytes(part) for tag, part in opened.sections.items()} | sections
    return samples.with_chunk(made.entries, key, pack(opened.shape, found), found[CHECKSUM])


def require_refused(made: Victim, entries: dict[str, bytes]) -> None:
    outcome, findings = used(made, entries)
    assert findings == []
    assert outcome == "refused"


@pytest.mark.parametrize("coder", list(CODERS))
@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("count", [200, 100_000])
def test_steps_and_gaps_with_another_number_of_components(coder, order, count):
    """With one component in kept order, a kernel wrote three coordinates for each one it had room for: a heap overflow."""
    made = victim(count, codec=get("lattice", coder=coder), order=order, chunk_values=3 * count)
    key = "positions/c/0/0"
    stream = Stream.of(unpack(made.entries[key], key).sections[CODE], (count, 3))
    wrong = (np.arange(count) if order == "keep" else np.zeros((count, 3))).astype(np.uint64)
    coded = CODERS[coder].of(wrong, stream.block, signs=order == "keep")
    require_refused(made, with_sections(made, key, code=dataclasses.replace(stream, coded=coded).to_bytes()))


@pytest.mark.parametrize("order", ["keep", "free"])
def test_a_stream_in_another_order_than_its_codec(order):
    """Reading a region asked the codec for the order and met a TypeError."""
    made, other = victim(order=order), victim(order={"keep": "free", "free": "keep"}[order])
    key = "positions/c/0/0"
    code = bytes(unpack(other.entries[key], key).sections[CODE])
    outcome, findings = used(made, with_sections(made, key, code=code))
    assert findings == []
    assert outcome in ("refused", "contradicted")


@pytest.mark.parametrize("coder", ["packed", "pcodec"])
@pytest.mark.parametrize("bound", [0.01, 1e-10])   # the second has low bits
def test_a_block_that_claims_four_billion_items(coder, bound):
    """Reading a region counted them one by one, in 32 GiB."""
    original = wb.Particles(samples.particles(40, np.float64, 3, None).positions)
    archive = wb.compress(original, wb.Absolute(bound), get("lattice", coder=coder), order="free")
    made = Victim("", original, samples.parts(archive))
    stream = Stream.of(unpack(made.entries["positions/c/0/0"], "").sections[CODE], (40, 3))
    low = stream.low and dataclasses.replace(stream.low, block=2**32 - 1)
    coded = dataclasses.replace(stream.coded, block=2**32 - 1)
    code = dataclasses.replace(stream, block=2**32 - 1, coded=coded, low=low).to_bytes()
    tracemalloc.start()
    outcome, findings = used(made, with_sections(made, "positions/c/0/0", code=code))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (outcome, findings) == ("confirmed", [])
    assert peak < 2**28


@pytest.mark.parametrize("step", [1e299, 1e300, 1.7e308])
def test_moves_with_an_endless_step_beside_a_single_particle(step):
    """The distance to a particle that does not exist passed for one near a linking length: a read behind the array."""
    made = victim(1, order="free", chunk_values=3)
    moves = Edits(np.array([0], np.int32), np.array([1], np.uint16), 1e-3, (0.1,), None).to_bytes(np.zeros((1, 3)))
    edit = moves[:4] + struct.pack("<d", step) + moves[12:]
    _, findings = used(made, with_sections(made, "positions/c/0/0", edit=edit))
    assert findings == []


@pytest.mark.parametrize("shape", [(40, 5), (40, 1), (40,)])
def test_moves_beside_values_that_are_no_positions(shape):
    """A kernel for five dimensions was looked for: AttributeError."""
    values = np.random.default_rng(0).random(shape)
    made = Victim("", wb.Field(values), samples.parts(wb.compress(values, wb.Absolute(0.01), "prequantised")))
    moves = Edits(np.array([3], np.int32), np.array([1], np.uint16), 1e-3, (0.1,), None).to_bytes(np.zeros((40, 2)))
    key = next(k for k in made.entries if k.startswith("values/c/"))
    require_refused(made, with_sections(made, key, **{EDIT: moves[:1] + bytes([shape[-1]]) + moves[2:]}))


@pytest.mark.parametrize("coder", list(CODERS))
@pytest.mark.parametrize("offset", range(4))
def test_coded_numbers_at_an_odd_address(coder, offset):
    """Kernels got pointers to 16- and 32-bit words that were not aligned: undefined behaviour."""
    positions = samples.particles(500, np.float64, 3, None).positions
    data = get("lattice", coder=coder).encode(positions, wb.codecs.Tolerance(absolute=0.01))
    shifted = memoryview(bytes(offset) + data)[offset:]
    coded = Stream.of(shifted, positions.shape).coded
    if isinstance(coded, CodedIntegers):
        assert coded.words.flags.aligned
        assert coded.bits.flags.aligned
    np.testing.assert_array_equal(coded.decode(), Stream.of(data, positions.shape).coded.decode())


def test_an_array_that_belongs_to_another_kind_of_archive():
    """`salvage` took the values of a field for a column of particles: IndexError."""
    made = victim()
    field = wb.compress(samples.field((12, 13)), wb.Absolute(0.1), "prequantised")
    added = {key: data for key, data in samples.parts(field).items() if key.startswith("values/")}
    values = samples.described(samples.parts(field), "values")
    root = lambda described: described[CONSOLIDATED]["metadata"].__setitem__("values", values)   # noqa: E731
    outcome, findings = used(made, resealed({**made.entries, **added}, "zarr.json", root))
    assert findings == []
    assert outcome == "refused"   # a column must have a row for each particle
