"""Fields, and comparisons of groups, on the workers of a real cluster."""

import numpy as np
import pytest

import workbench as wb
from subdomains.test_fields import assert_same_bytes, sample
from workbench.distributed import ChunkedField
from workbench.errors import WorkbenchError

distributed = pytest.importorskip("distributed", reason="needs the dask extra")
da = pytest.importorskip("dask.array", reason="needs the dask extra")
zarr = pytest.importorskip("zarr", reason="needs the io extra")


@pytest.fixture
def client(client):
    """The folder's, for Dask arrays too."""
    with client.as_current():
        yield client


def test_workers_write_the_bytes_of_one_process(client, tmp_path):
    field = sample((30, 21, 10), "f8", masked=True)
    stored = zarr.create_array(str(tmp_path / "values"), shape=field.shape, dtype="f8", chunks=(7, 8, 9))
    stored[...] = field.values
    stored_mask = zarr.create_array(str(tmp_path / "mask"), shape=field.shape, dtype=bool, chunks=(9, 9, 9))
    stored_mask[...] = field.mask
    described = {"spacing": field.spacing, "name": field.name, "metadata": field.metadata}
    lazy = da.from_zarr(stored)
    sources = [
        field,
        ChunkedField(lazy, mask=da.from_array(field.mask, 11), **described),
        ChunkedField(client.persist(lazy), mask=stored_mask, **described),
    ]
    for source in sources:
        assert_same_bytes(tmp_path, field, source, wb.Relative(1e-3), client=client, chunk_values=2500)
    pytest.importorskip("compression_safeguards", reason="needs the safeguards extra")
    assert_same_bytes(
        tmp_path, field, sources[1], wb.Absolute(0.1), client=client, keep=[wb.Safeguard("sign")], chunk_values=2500
    )


def test_figures_are_those_of_one_process(client, tmp_path):
    field = sample((40, 31), "f8", masked=True)
    archive = wb.compress(field, wb.Absolute(0.01), chunk_values=300)
    archive.save(tmp_path / "field.zarr")
    lazy = ChunkedField(da.from_array(field.values, 13), mask=field.mask)
    for decoded in (archive, wb.open(tmp_path / "field.zarr")):
        for source in (field, lazy):
            assert wb.compare(source, decoded, bound=0.01, client=client).passed is True
    (run,) = wb.sweep(lazy, "prequantised", wb.Absolute(0.1), client=client)
    (expected,) = wb.sweep(lazy, "prequantised", wb.Absolute(0.1))
    assert (run["nbytes"], run["max_error"]) == (expected["nbytes"], expected["max_error"])


def test_workers_compare_the_groups_whose_labels_they_have(client):
    snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
    noise = np.random.default_rng(1).normal(0, 0.05, snapshot.positions.shape).astype("f4")
    moved = wb.Particles.wrapped(snapshot.positions + noise, snapshot.box)
    with (
        wb.friends_of_friends(snapshot, client=client, parts=3) as first,
        wb.friends_of_friends(moved, client=client, parts=5) as second,
    ):
        found = wb.compare_groups(first, second, min_members=5)
        expected = wb.compare_groups(first.gathered(), second.gathered(), min_members=5)
    assert found.counts == expected.counts
    assert found.counts["split"] > 5
    assert found.most_different() == expected.most_different()


@pytest.mark.parametrize(("codec", "times"), [("prequantised", 1), ("auto", 2)])   # to choose, the middle is read first
def test_what_blocks_share_is_computed_once(client, tmp_path, codec, times):
    counted = tmp_path / "counted"

    def once(block):
        with counted.open("ab") as file:
            file.write(b".")
        return block

    values = da.from_array(np.arange(4096.0).reshape(64, 64), 64).map_blocks(once, dtype="f8", meta=np.zeros((0, 0)))
    field = ChunkedField((values - values.mean()).rechunk(8))
    wb.compress(field, wb.Absolute(0.1), codec, out=tmp_path / "f.zarr", client=client, chunk_values=256)
    assert counted.stat().st_size == times


def test_a_block_that_fails_is_named_and_no_archive_appears(client, tmp_path):
    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (1, 0):
            raise OSError("no such tape")
        return block

    field = ChunkedField(da.zeros((10, 10), chunks=5).map_blocks(fail, dtype="f8"))
    with pytest.raises(WorkbenchError, match=r"encode-chunks \d of 4 failed on the cluster: OSError: no such tape"):
        wb.compress(field, wb.Absolute(0.1), "sz3", out=tmp_path / "f.zarr", client=client, chunk_values=25)
    assert not (tmp_path / "f.zarr").exists()
