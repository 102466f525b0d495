"""The packed particles of Abacus, against a decoder that reads the published layout bit by bit; and their ids."""

import blosc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from readers.test_abacus import HEADER, LENGTH, write
from workbench import WorkbenchError
from workbench.data.readers import open_file
from workbench.data.readers.pack9 import unpack_pack9

SPEED = 123.5
SLAB = {**HEADER, "VelZSpace_to_kms": SPEED, "ParticleMassHMsun": 2.1e9}


def bits(numbers):
    """Nine bytes for six numbers of 12 bits: two numbers share three bytes, of which the middle one is split."""
    row = []
    for first, second in zip(numbers[0::2], numbers[1::2], strict=True):
        low, high = first + 2048, second + 2048
        row += [low >> 4, (low & 0b1111) | ((high >> 8) << 4), high & 0b11111111]
    return row


def slab(cells, seed=0):
    """Rows of pack9: for each number, a cell with so many particles."""
    generator = np.random.default_rng(seed)
    rows, along = [], 40
    for count in cells:
        place = generator.integers(0, along, 3).tolist()
        rows.append(bits([2032 + 15, along - 2000, int(generator.integers(-1999, 2000)), *(i - 2000 for i in place)]))
        rows += [bits(generator.integers(-1000, 1000, 6).tolist()) for _ in range(count)]
    return np.array(rows, np.uint8).reshape(-1, 9)


def decoded_slowly(rows, length, speed):
    """One row after the other, one number after the other, in plain Python."""
    positions, velocities, cell = [], [], None
    for row in rows.tolist():
        numbers = []
        for a, b, c in (row[0:3], row[3:6], row[6:9]):
            numbers += [((a << 4) | (b & 0b1111)) - 2048, (((b >> 4) << 8) | c) - 2048]
        if row[0] == 0xFF:
            along = numbers[1] + 2000
            side = length / along
            scale = (numbers[2] + 2000) * 0.0005 / along * speed
            cell = side, scale, [(index + 2000 + 0.5) * side - length / 2 for index in numbers[3:]]
            continue
        side, scale, centre = cell
        positions.append([x * 0.0005 * side + middle for x, middle in zip(numbers[:3], centre, strict=True)])
        velocities.append([v * scale for v in numbers[3:]])
    shape = len(positions), 3
    return np.array(positions).reshape(shape), np.array(velocities).reshape(shape)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 2**32), st.sampled_from([1.0, 2000.0]))
def test_every_number_is_that_of_the_layout(cells, seed, length):
    rows = slab(cells, seed)
    found = unpack_pack9(rows, length, SPEED)
    positions, velocities = decoded_slowly(rows, length, SPEED)
    np.testing.assert_allclose(found["positions"], positions, rtol=0, atol=6e-8 * length)
    np.testing.assert_allclose(found["velocities"], velocities, rtol=6e-8, atol=1e-12)
    assert found["positions"].dtype == found["velocities"].dtype == np.float32


def test_blocks_change_nothing(monkeypatch):
    rows = slab([3, 0, 7, 1, 12])
    whole = unpack_pack9(rows, 1.0, SPEED)
    monkeypatch.setattr("workbench.data.readers.pack9.BLOCK", 4)
    for name, values in unpack_pack9(rows, 1.0, SPEED).items():
        np.testing.assert_array_equal(values, whole[name])


def summit(folder, cells=((3, 4), (0, 5)), ids=True):
    """Slabs with ids in the folder beside, in signed bytes, as Abacus writes them; returns the rows of all slabs."""
    (folder / "L0_pack9").mkdir(parents=True)
    (folder / "L0_pack9_pid").mkdir()
    everything = []
    for number, counts in enumerate(cells):
        rows = slab(counts, seed=number)
        write(folder / "L0_pack9" / f"slab{number:04d}.L0.pack9.asdf", {"pack9": rows.view(np.int8)}, SLAB)
        packed = np.arange(sum(counts), dtype=np.uint64) + np.uint64(1000 * number) | np.uint64(0x07FF << 48)
        if ids:
            write(folder / "L0_pack9_pid" / f"slab{number:04d}.L0.pack9.pid.asdf", {"packedpid": packed}, SLAB)
        everything.append(rows)
    return everything


def test_slabs_with_ids_beside_them(tmp_path):
    rows = summit(tmp_path)
    slowly = [decoded_slowly(one, LENGTH, SPEED) for one in rows]
    positions, velocities = (np.concatenate(column) for column in zip(*slowly, strict=True))
    for given_as in (tmp_path / "L0_pack9", f"{tmp_path}/L0_pack9/*.asdf"):
        particles = open_file(given_as)
        np.testing.assert_allclose(particles.positions, positions % LENGTH, atol=3e-4)
        np.testing.assert_allclose(particles.velocities, velocities, rtol=1e-6)
        assert particles.ids.tolist() == [*range(7), *range(1000, 1005)]
        assert particles.metadata["particle_mass"] == 2.1e9
    source = wb.open_chunked(tmp_path / "L0_pack9")
    assert (source.sizes, source.columns) == ((7, 5), ("velocities", "ids", "masses"))
    assert source.chunk(1, ("ids",)).ids.tolist() == [*range(1000, 1005)]
    assert source.column(1, "masses").tolist() == [2.1e9] * 5
    np.testing.assert_array_equal(source.joined().positions, particles.positions)


def test_slabs_without_ids(tmp_path):
    summit(tmp_path, ids=False)
    assert open_file(tmp_path / "L0_pack9").ids is None


def test_ids_that_one_slab_lacks(tmp_path):
    summit(tmp_path)
    (tmp_path / "L0_pack9_pid" / "slab0001.L0.pack9.pid.asdf").unlink()
    with pytest.raises(WorkbenchError, match=r"slab0000\.L0\.pack9\.asdf has ids, slab0001\.L0\.pack9\.asdf has none"):
        open_file(tmp_path / "L0_pack9")


def test_ids_of_another_slab_are_refused(tmp_path):
    summit(tmp_path)
    write(tmp_path / "L0_pack9_pid" / "slab0001.L0.pack9.pid.asdf", {"packedpid": np.zeros(4, np.uint64)}, SLAB)
    with pytest.raises(WorkbenchError, match=r"slab0001\.L0\.pack9\.pid\.asdf must hold the ids of the 5 particles"):
        open_file(tmp_path / "L0_pack9")


def test_a_slab_that_is_missing_is_named(tmp_path):
    summit(tmp_path, cells=((1,), (2,), (3,)))
    (tmp_path / "L0_pack9" / "slab0001.L0.pack9.asdf").unlink()
    with pytest.raises(WorkbenchError, match=r"slab0001\.L0\.pack9\.asdf is missing between slab0000"):
        wb.open_chunked(tmp_path / "L0_pack9")
    listed = [tmp_path / "L0_pack9" / f"slab000{number}.L0.pack9.asdf" for number in (0, 2)]
    assert wb.open_chunked(listed).sizes == (1, 3)


@pytest.mark.parametrize(
    ("columns", "header", "message"),
    [
        ({"pack9": slab([2])[1:]}, SLAB, "pack9 must begin with the header of a cell"),
        ({"pack9": slab([2])[:, :8]}, SLAB, "pack9 must hold nine bytes per row; got uint8 of shape"),
        ({"pack9": slab([2])}, HEADER, "needs? VelZSpace_to_kms in the header; got None"),
    ],
)
def test_damaged_slabs(tmp_path, columns, header, message):
    columns = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    with pytest.raises(WorkbenchError, match=message):
        open_file(write(tmp_path / "a.asdf", columns, header))


def test_two_redshifts_are_two_snapshots(tmp_path):
    summit(tmp_path)
    other = {**SLAB, "Redshift": 1.1}
    write(tmp_path / "L0_pack9" / "slab0001.L0.pack9.asdf", {"pack9": slab([5])}, other)
    with pytest.raises(WorkbenchError, match=r"one time: slab0000\..* has 0\.5, slab0001\..* has 1\.1"):
        open_file([*sorted((tmp_path / "L0_pack9").iterdir())])


@settings(max_examples=15)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=30), st.sampled_from([1, 7, 40]), st.integers(1, 60),
    st.sampled_from(["blsc", None, "zlib"]),
)
def test_any_division_into_chunks(tmp_path_factory, cells, span, chunk, compression):
    """Chunks begin with cells, and Blosc's pieces of 256 bytes end anywhere."""
    if sum(cells) == 0:
        cells = [*cells, 1]
    rows = slab(cells)
    folder = tmp_path_factory.mktemp("slab")
    ids = np.arange(sum(cells), dtype=np.uint64)
    path = write(folder / "a.asdf", {"pack9": rows, "packedpid": ids}, SLAB, compression=compression)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workbench.data.readers.abacus.SPAN", span)
        source = wb.open_chunked(path, chunk=chunk)
        joined = source.joined()
        positions, velocities = decoded_slowly(rows, LENGTH, SPEED)
        np.testing.assert_allclose(joined.positions, positions % LENGTH, atol=3e-4)
        np.testing.assert_allclose(joined.velocities, velocities, rtol=1e-6, atol=1e-12)
        np.testing.assert_array_equal(joined.ids, ids)
        assert max(source.sizes) <= max(chunk, span + 6)


@pytest.mark.parametrize("name", ["pack9", "rvint", "pos"])
def test_other_pieces_are_not_decompressed(tmp_path, name, monkeypatch):
    monkeypatch.setattr("workbench.data.readers.abacus.SPAN", 50)
    rows = slab([5] * 100)
    generator = np.random.default_rng(3)
    column = {
        "pack9": rows,
        "rvint": generator.integers(-(2**30), 2**30, (500, 3)).astype(np.int32),
        "pos": (generator.random((500, 3)) * LENGTH).astype(np.float32),
    }[name]
    path = write(tmp_path / "a.asdf", {name: column}, SLAB)
    whole = open_file(path).positions
    source = wb.open_chunked(path, chunk=100)
    decompressed = []
    original = blosc.decompress
    monkeypatch.setattr(blosc, "decompress", lambda piece: decompressed.append(len(piece)) or original(piece))
    for number, count in enumerate(source.sizes):
        decompressed.clear()
        chunk = source.chunk(number).positions
        np.testing.assert_array_equal(chunk, whole[source.starts[number] :][:count])
        rows = count + 50 if name == "pack9" else count
        assert 0 < len(decompressed) <= rows * column.strides[0] / 256 + 2
    assert len(source.sizes) > 4
