"""Sources that are not what they say, or that change while they are read: an error names the part, and nothing is lost."""

import os
import pickle

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import OnDask
from workbench.subdomains.sources import chunked

VALUES = np.random.default_rng(1).standard_normal((24, 40)).cumsum(1)
WEB = wb.synthetic.cosmic_web(n=10, seed=2)
PARTICLES = wb.Particles(WEB.positions, WEB.box, WEB.velocities, WEB.ids)
READS = 20   # of a chunk, more than any call makes


def fail(array):
    raise ValueError("it ends early")


def changed(array):
    array = array.copy()
    array[5] = (array[5] + 0.7) % WEB.box[0]
    return array


class Changing(ParticlesInMemory):
    """The second chunk is another one after some reads."""

    def __init__(self, change, after, sizes=None):
        super().__init__(PARTICLES, even_sizes(1000, 300))
        self.change, self.left, self.extent = change, after, None
        self.sizes = sizes or self.sizes

    def read(self, number):
        found = super().read(number)
        if number != 1:
            return found
        self.left -= 1
        return found if self.left >= 0 else self.change(found)


class Grid:
    """A field by the protocol of a source, of which parts are others after some reads."""

    shape, dtype, chunks = VALUES.shape, VALUES.dtype, (4, 40)

    def __init__(self, change, after):
        self.change, self.left = change, after

    def __getitem__(self, place):
        self.left -= 1
        return VALUES[place] if self.left >= 0 else self.change(VALUES[place])


def refused_until_it_keeps_still(call, source, out, names):
    """The call with a source that changes after the first, second, ... read: all that is not refused is of one version."""
    wb.compress([1.0], wb.Absolute(0.1), out=out)
    seen = []
    for after in range(READS):
        bad, old = source(after), wb.open(out).certificate
        try:
            call(bad, overwrite=True)
        except WorkbenchError as error:
            seen.append(str(error))
            assert wb.open(out).certificate == old
        if bad.left >= 0:
            break
    else:
        pytest.fail("the source was read more often than is tried here")
    assert seen
    for message in seen:
        assert any(name in message for name in names), message
    return seen


CHUNKS = {
    "one row less": (lambda a: a[:-1], ["chunk 2 of 4 of particles in memory must be float32 of shape (250, 3); got"]),
    "no row": (lambda a: a[:0], ["chunk 2 of 4 of particles in memory must be float32"]),
    "another type": (lambda a: a.astype(np.float64), ["chunk 2 of 4 of particles in memory must be float32"]),
    "not a number": (lambda a: a * np.nan, ["chunk 2 of 4 of particles in memory: positions must be finite"]),
    "outside": (lambda a: a + 20, ["chunk 2 of 4 of particles in memory: positions in a periodic box must lie"]),
    "an error": (fail, ["chunk 2 of 4 of particles in memory cannot be read: it ends early"]),
}


@pytest.mark.few
@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("case", CHUNKS)
def test_particles(tmp_path, case, order):
    change, names = CHUNKS[case]
    keep = wb.KeepClusters(0.2) if case == "one row less" else ()
    options = {"order": order, "keep": keep, "chunk_values": 900, "parts": 2, "out": tmp_path / "a.zarr"}
    refused_until_it_keeps_still(
        lambda source, **more: wb.compress(source, wb.Absolute(0.05), **options, **more),
        lambda after: Changing(change, after), tmp_path / "a.zarr", names,
    )
    with pytest.raises(WorkbenchError) as raised:
        wb.friends_of_friends(Changing(change, 0), parts=2, scratch=tmp_path / "scratch")
    assert names[0] in str(raised.value)
    assert not list((tmp_path / "scratch").iterdir())


def test_particles_that_move_between_encoding_and_keeping_clusters(tmp_path):
    """Whatever comes of it is the archive of one version; an error lets the same call go on."""
    moved = np.array(PARTICLES.positions)
    moved[250:500] = changed(moved[250:500])
    versions = [wb.Particles(positions, WEB.box, WEB.velocities, WEB.ids) for positions in (PARTICLES.positions, moved)]
    options = {"keep": wb.KeepClusters(0.2), "chunk_values": 900, "parts": 2, "out": tmp_path / "a.zarr"}
    message, *_ = refused_until_it_keeps_still(
        lambda source, **more: wb.compress(source, wb.Absolute(0.05), **options, **more),
        lambda after: Changing(changed, after), tmp_path / "a.zarr", ["has changed since it was encoded"],
    )
    assert "chunk 2 of 4 of the particles in the order of the archive" in message
    archive = wb.compress(Changing(changed, 0), wb.Absolute(0.05), **options, overwrite=True)
    assert archive.verify(versions[1]).passed
    assert [path.name for path in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("sizes", [(200, 0, 800), (0, 1000), (1100, -100)])
def test_empty_chunks(sizes):
    source = Changing(fail, READS, sizes)
    for call in (lambda: wb.friends_of_friends(source), lambda: wb.compress(source, wb.Absolute(1))):
        with pytest.raises(WorkbenchError, match="must have chunks of at least one particle each; got sizes"):
            call()


SAYS = "must be float64 of shape (12, 10), as the source says; got"
GRIDS = {
    "one row less": (lambda a: a[:-1], f"{SAYS} float64 of shape (11, 10)"),
    "other axes": (lambda a: a.T, f"{SAYS} float64 of shape (10, 12)"),
    "another type": (lambda a: a.astype(np.float32), f"{SAYS} float32"),
    "integers": (lambda a: a.astype(np.int64), f"{SAYS} int64"),
    "no row": (lambda a: a[:0], "values must not be empty"),
    "no array": (lambda a: None, "values must be float32, float64 or integers"),
    "an error": (fail, "cannot be read: it ends early"),
}


@pytest.mark.parametrize("case", GRIDS)
def test_fields(tmp_path, case):
    change, message = GRIDS[case]
    seen = refused_until_it_keeps_still(
        lambda source, **more: wb.compress(source, wb.Absolute(0.01), "prequantised", chunk_values=160, **more,
                                           out=tmp_path / "a.zarr"),
        lambda after: Grid(change, after), tmp_path / "a.zarr", [message],
    )
    assert any("encode-chunks, item 4 of 8" in one for one in seen)
    with pytest.raises(WorkbenchError):
        wb.compare(VALUES, ChunkedField(Grid(change, 0)))


@pytest.mark.parametrize("on_workers", [False, True])
@pytest.mark.parametrize("case", ["one row less", "other axes", "another type", "an error"])
def test_blocks_of_dask_that_are_not_what_the_array_says(request, tmp_path, case, on_workers):
    da = pytest.importorskip("dask.array")
    client = request.getfixturevalue("client") if on_workers else None
    change, message = GRIDS[case]
    lazy = da.from_array(VALUES, chunks=(12, 10)).map_blocks(change, meta=np.empty((0, 0)))
    with pytest.raises((WorkbenchError, ValueError)) as raised:
        wb.compress(lazy, wb.Absolute(0.01), "prequantised", chunk_values=120, out=tmp_path / "a.zarr", client=client)
    assert ("it ends early" if case == "an error" else message) in str(raised.value)
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("damage", ["cut", "another shape", "gone"])
def test_a_file_that_changes_after_it_was_opened(tmp_path, damage):
    path = tmp_path / "values.npy"
    np.save(path, VALUES)
    field = ChunkedField(path)
    damages = {"cut": lambda: os.truncate(path, 4000), "another shape": lambda: np.save(path, VALUES[:10])}
    damages.get(damage, path.unlink)()
    with pytest.raises(WorkbenchError, match=r"values at \[.*\] .*(cannot be read|as the source says)|must not be empty"):
        wb.compress(field, wb.Absolute(0.1), "prequantised", chunk_values=160, out=tmp_path / "a.zarr")
    assert not (tmp_path / "a.zarr").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("by_path", [True, False])
def test_a_zarr_array_is_read_at_its_own_place_or_not_at_all(tmp_path, monkeypatch, zarr_format, by_path):
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    group = zarr.create_group("z.zarr", zarr_format=zarr_format)
    for name, values in {"values": VALUES, "mask": VALUES > 1}.items():
        group.create_array(name, data=values, chunks=(8, 40))
    values, mask = ("z.zarr/values", "z.zarr/mask") if by_path else (group["values"], group["mask"])
    field = ChunkedField(values, mask=mask)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    place = (slice(3, 20), slice(0, 9))
    part = field.part(place)
    assert pickle.loads(pickle.dumps(field.values)) == field.values
    np.testing.assert_array_equal(part.values, VALUES[place])
    np.testing.assert_array_equal(part.mask, VALUES[place] > 1)
    assert field.chunk_shape == (24, 40)
    (tmp_path / "z.zarr").rename(tmp_path / "y.zarr")
    with pytest.raises(WorkbenchError, match="must be a Zarr array that all processes see under this path"):
        field.part(place)


def test_a_zarr_array_outside_of_folders_stays_as_it_is():
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array({}, data=VALUES)
    assert ChunkedField(array).values is array


def test_a_file_that_holds_several_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", VALUES)
    with pytest.raises(WorkbenchError, match=r"a\.npz must be a \.npy file of numbers; open files with wb\.open"):
        ChunkedField(tmp_path / "a.npz")


def test_a_spacing_that_is_not_known_stays_unknown():
    field = ChunkedField(VALUES)
    assert not field.with_metadata({}).knows_spacing
    assert not field.over(VALUES).knows_spacing
    assert field.over(VALUES, spacing=(2.0, 2.0)).with_metadata({}).over(VALUES).knows_spacing


def in_dask(particles):
    da = pytest.importorskip("dask.array")
    return wb.distributed.from_dask(da.from_array(particles.positions, 300), particles.box)


COPIES = {   # in the scratch folder, and how they are read
    "values": (
        lambda executor, folder: ChunkedField(VALUES).reachable(executor, folder, "a"),
        lambda field: field.part((slice(0, 24), slice(0, 40))).values, VALUES,
    ),
    "particles": (
        lambda executor, folder: chunked(PARTICLES, executor, folder),
        lambda source: source.chunk(0, ["velocities", "ids"]).positions, WEB.positions,
    ),
    "particles in Dask": (
        lambda executor, folder: chunked(in_dask(PARTICLES), executor, folder),
        lambda source: source.chunk(1).positions, WEB.positions[300:600],
    ),
}


@pytest.mark.parametrize("kind", COPIES)
def test_a_scratch_copy_that_has_changed_is_an_error_that_names_its_file(client, tmp_path, kind):
    copy, read, expected = COPIES[kind]
    copied = copy(OnDask(client), tmp_path)
    np.testing.assert_array_equal(read(copied), expected)
    for file in tmp_path.iterdir():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    with pytest.raises(WorkbenchError, match=r"\.npy cannot be read \(its bytes have changed since they were written"):
        read(copied)
