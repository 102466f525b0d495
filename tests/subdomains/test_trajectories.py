"""Trajectories on the workers of a cluster: the bytes of one process, from a file or from memory."""

import numpy as np
import pytest

import workbench as wb


@pytest.mark.parametrize("in_file", [True, False])
@pytest.mark.parametrize("bound", [wb.Absolute(0.003), wb.Relative(1e-3)], ids=["absolute", "relative"])
def test_workers_write_the_bytes_of_one_process(client, tmp_path, in_file, bound):
    random = np.random.default_rng(0)
    steps = random.uniform(0, 4, (60, 3)) + np.cumsum(0.05 * random.normal(size=(20, 60, 3)), axis=0)
    walk = wb.Trajectory((steps % 4).astype("f4"), cells=np.full((20, 3), 4.0), velocities=random.normal(size=steps.shape))
    if in_file:
        wb.compress(walk, wb.Exact(), out=tmp_path / "exact.zip")
        walk = wb.open_trajectory(tmp_path / "exact.zip")
    given = {"velocities": wb.Absolute(0.01), "chunks": 6}
    wb.compress(walk, bound, out=tmp_path / "here.zip", **given)
    archive = wb.compress(walk, bound, out=tmp_path / "there.zip", client=client, **given)
    assert (tmp_path / "there.zip").read_bytes() == (tmp_path / "here.zip").read_bytes()
    assert archive.verify(walk, client=client).passed
