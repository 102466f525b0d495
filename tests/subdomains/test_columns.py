"""Columns of particles travel to workers as velocities do: the archive is the one that this process writes."""

import numpy as np
import pytest

import workbench as wb
from archive.samples import parts
from combinations import in_pairs
from workbench.errors import WorkbenchError

BOUND = wb.Absolute(0.01)
RULES = {"Potential": wb.Relative(1e-3), "B": wb.Absolute(0.01)}


def sample() -> wb.Particles:
    web, random = wb.synthetic.cosmic_web(n=12, seed=2), np.random.default_rng(0)
    columns = {
        "Potential": random.normal(size=len(web)).astype(np.float32), "B": random.normal(size=(len(web), 3)),
        "Type": random.integers(0, 6, len(web)).astype(np.uint8), "IsGas": random.random(len(web)) < 0.3,
        "sample-0": random.random(len(web)),   # as files of the scratch folder are called
    }
    return wb.Particles(web.positions, web.box, ids=web.ids, columns=columns)


@pytest.mark.parametrize(("order", "source"), in_pairs(["keep", "free"], ["memory", "dask"]))
def test_workers_write_the_bytes_of_one_process(client, tmp_path, order, source):
    da, particles = pytest.importorskip("dask.array"), sample()
    given = particles
    if source == "dask":
        arrays = {name: da.from_array(values, chunks=500) for name, values in particles.columns.items()}
        positions, ids = da.from_array(particles.positions, chunks=(700, 3)), da.from_array(particles.ids, chunks=600)
        given = wb.distributed.from_dask(positions, particles.box, ids=ids, columns=arrays)
    options = {"order": order, "columns": RULES, "chunk_values": 1800}
    wb.compress(given, BOUND, **options, client=client, parts=2, scratch=tmp_path, out=tmp_path / "many.zarr")
    one, many = wb.compress(particles, BOUND, **options), wb.open(tmp_path / "many.zarr")
    assert parts(one) == parts(many)
    assert many.verify(given, client=client, parts=2, scratch=tmp_path).passed


def test_dask_columns_have_a_row_for_each_position():
    da = pytest.importorskip("dask.array")
    positions = da.zeros((10, 3), chunks=(5, 3))
    for wrong in (da.zeros(9, chunks=5), np.zeros(10), da.zeros((10, 2, 2), chunks=5), da.zeros(10, chunks=5, dtype="c8")):
        with pytest.raises(WorkbenchError, match="the column x must be a Dask array of 10 numbers or rows"):
            wb.distributed.from_dask(positions, columns={"x": wrong})
