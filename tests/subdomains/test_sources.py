"""What the distributed functions accept as particles: how often it is read, and on which machine."""


import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run.executors import InProcess
from workbench.subdomains import sources
from workbench.subdomains.sources import outline_of

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=7)
EXPECTED = wb.friends_of_friends(SNAPSHOT).labels


class Counting(ParticlesInMemory):
    """Counts how often each chunk is read."""

    def __init__(self, *given):
        super().__init__(*given)
        self.reads, self.extent = [], None

    def read(self, number):
        self.reads.append(number)
        return super().read(number)


def counting(box):
    return Counting(wb.Particles(SNAPSHOT.positions, box), even_sizes(len(SNAPSHOT), 1000))


def test_a_linking_length_in_a_box_needs_no_reading():
    source = counting(SNAPSHOT.box)
    outline = outline_of(source, InProcess())
    assert (outline.spacing, outline.dimensions, len(outline)) == (SNAPSHOT.spacing, 3, len(SNAPSHOT))
    assert source.reads == []
    assert (outline.lower == SNAPSHOT.lower).all()
    assert (outline.upper == SNAPSHOT.upper).all()
    assert source.reads == list(range(len(source.sizes)))


def test_a_survey_reads_each_chunk_once_for_extent_and_sample(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "SAMPLE", 500)
    source = counting(None)
    outline, sample = sources.surveyed(source, InProcess(), tmp_path, 1)
    assert source.reads == list(range(len(source.sizes)))
    assert (outline.corners == outline_of(source, InProcess()).corners).all()
    assert 400 < len(sample) <= 500 + len(source.sizes)
    np.testing.assert_array_equal(sample, sources.sample_of(source, InProcess(), tmp_path, 1))


def test_a_chunk_that_was_read_is_not_copied_again():
    read = np.random.default_rng(0).random((5, 3))
    source = ParticlesInMemory(wb.Particles(np.zeros((5, 3))), (5,))
    object.__setattr__(source, "read", lambda number: read)
    assert np.shares_memory(source.chunk(0).positions, read)


@pytest.mark.parametrize(("box", "times"), [(SNAPSHOT.box, 2), (None, 3)])
def test_how_often_particles_are_read(box, times):
    """For the sample, and to send them to subdomains; in an open space, also for the extent."""
    source = counting(box)
    with wb.friends_of_friends(source, parts=3) as groups:
        assert groups.parts == 3
    assert len(source.reads) == times * len(source.sizes)


def test_memory_and_its_columns():
    source = ParticlesInMemory(SNAPSHOT, (4000, 96))
    assert source.columns == ("velocities", "ids")
    part = source.chunk(1, ("velocities", "ids"))
    np.testing.assert_array_equal(part.velocities, SNAPSHOT.velocities[4000:])
    np.testing.assert_array_equal(source.joined().ids, SNAPSHOT.ids)


# Dask arrays.


def in_blocks(chunks=(1000, 3)):
    return da.from_array(np.array(SNAPSHOT.positions), chunks=chunks)


@pytest.mark.parametrize("chunks", [(1000, 3), ((1, 4000, 95), (2, 1)), (4096, 3)])
def test_blocks_are_chunks(chunks):
    ids = da.from_array(np.array(SNAPSHOT.ids), chunks=77)
    source = wb.distributed.from_dask(in_blocks(chunks), SNAPSHOT.box, ids=ids)
    np.testing.assert_array_equal(source.joined().positions, SNAPSHOT.positions)
    np.testing.assert_array_equal(source.joined().ids, SNAPSHOT.ids)
    with wb.friends_of_friends(source, parts=3) as groups:
        np.testing.assert_array_equal(groups.gathered().labels, EXPECTED)


def test_a_chunk_computes_its_block_alone():
    computed = []

    def block(positions, block_info=None):
        computed.append(block_info[0]["chunk-location"][0])
        return positions

    lazy = in_blocks().map_blocks(block, meta=np.empty((0, 3), np.float32))
    source = wb.distributed.from_dask(lazy, SNAPSHOT.box)
    computed.clear()
    np.testing.assert_array_equal(source.chunk(2).positions, SNAPSHOT.positions[2000:3000])
    assert computed == [2]


def test_positions_at_a_face_follow_the_rule_for_files():
    """In this process and from the files that workers write: rounding is wrapped."""
    points = np.array(SNAPSHOT.positions)
    points[5, 2] = SNAPSHOT.box[2]
    source = wb.distributed.from_dask(da.from_array(points, chunks=(1000, 3)), SNAPSHOT.box)
    assert source.chunk(0).positions[5, 2] == 0
    points[5, 2] = SNAPSHOT.box[2] + 1
    with pytest.raises(WorkbenchError, match="outside the box of length 16"):
        wb.distributed.from_dask(da.from_array(points, chunks=(1000, 3)), SNAPSHOT.box).chunk(0)


def test_empty_blocks_are_left_out():
    positions = da.concatenate([da.zeros((0, 3)), da.full((3, 3), 0.5), da.zeros((0, 3)), da.full((2, 3), 0.25)])
    assert wb.distributed.from_dask(positions, 1.0).sizes == (3, 2)


@pytest.mark.parametrize(
    ("positions", "more", "message"),
    [
        (np.zeros((3, 3)), {}, "must be a Dask array of float32 or float64, .* got ndarray"),
        (da.zeros((3, 4)), {}, r"got float64 \(3, 4\)"),
        (da.zeros((0, 3)), {}, "at least one particle"),
        (da.zeros((3, 3), dtype="i4"), {}, r"got int32 \(3, 3\)"),
        (da.ones((9, 3))[da.ones(9) > 0], {}, r"known sizes: call positions\.compute_chunk_sizes\(\) first"),
        (da.zeros((3, 3)), {"ids": da.zeros(3)}, r"ids must be a Dask array of integers of shape \(3,\)"),
        (da.zeros((3, 3)), {"velocities": da.zeros((4, 3))}, r"velocities must be a Dask array of floats of shape"),
        (da.zeros((3, 3)), {"box": -1.0}, "box lengths must be positive"),
    ],
)
def test_arrays_that_cannot_be_particles(positions, more, message):
    with pytest.raises(WorkbenchError, match=message):
        wb.distributed.from_dask(positions, **more)


# On the workers of a cluster.


def test_files_are_read_by_workers(client, tmp_path, monkeypatch):
    """Paths given here lead the workers to the files, wherever they run."""
    for number in range(3):
        np.save(tmp_path / f"part.{number}.npy", SNAPSHOT.positions[number * 1500 : (number + 1) * 1500])
    monkeypatch.chdir(tmp_path)
    source = wb.open_chunked("part.*.npy", box=SNAPSHOT.box, chunk=700)
    with wb.friends_of_friends(source, client=client, parts=3) as groups:
        np.testing.assert_array_equal(groups.gathered().labels, EXPECTED)
    (tmp_path / "part.1.npy").unlink()
    with pytest.raises(WorkbenchError, match=r"part\.1\.npy"):
        wb.friends_of_friends(source, client=client, parts=3)


def test_a_persisted_array(client):
    """Its blocks are on the workers, and nowhere else."""
    source = wb.distributed.from_dask(in_blocks().persist(), SNAPSHOT.box)
    with wb.friends_of_friends(source, client=client, parts=3) as groups:
        np.testing.assert_array_equal(groups.gathered().labels, EXPECTED)


def test_a_bare_array_is_in_an_open_space(client):
    expected = wb.friends_of_friends(wb.Particles(SNAPSHOT.positions), 0.5, "length").labels
    with wb.friends_of_friends(in_blocks(), 0.5, "length", client, parts=2) as groups:
        np.testing.assert_array_equal(groups.gathered().labels, expected)


def test_a_block_that_fails_is_told(client):
    def block(positions):
        raise OSError("input/output error")

    lazy = in_blocks().map_blocks(block, meta=np.empty((0, 3), np.float32))
    with pytest.raises(WorkbenchError, match="a block of a Dask array failed on the cluster: OSError: input/output error"):
        wb.friends_of_friends(lazy, 0.5, "length", client, parts=2)


def test_particles_of_this_process_take_their_columns_along(client, tmp_path):
    from workbench.run.executors import OnDask
    from workbench.subdomains.sources import chunked

    source = chunked(SNAPSHOT, OnDask(client), tmp_path)
    for column in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(source.joined(), column), getattr(SNAPSHOT, column))
    assert source.box == SNAPSHOT.box
    (written,) = tmp_path.rglob("*positions*")   # what is known of them needs no reading
    written.unlink()
    assert (outline_of(source, OnDask(client)).upper == SNAPSHOT.upper).all()
