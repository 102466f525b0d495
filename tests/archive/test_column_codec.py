"""Velocities and columns in a codec of their own; those predicted from the positions of the particles."""

import numpy as np
import pytest

import workbench as wb
from combinations import in_pairs
from workbench.archive.frame import Damaged

KEEP = wb.KeepClusters(0.2)


@pytest.fixture(scope="module")
def web() -> wb.Particles:
    given = wb.synthetic.cosmic_web(n=20, seed=3)
    potential = np.cos(given.positions[:, 0]).astype("f4")
    return wb.Particles(
        given.positions, given.box, velocities=given.velocities, ids=np.arange(len(given)), columns={"potential": potential}
    )


def compressed(web: wb.Particles, **options) -> wb.Archive:
    given = {"velocities": wb.Absolute(2.0), "columns": {"potential": wb.Absolute(1e-3)}, "column_codec": "neighbours"}
    return wb.compress(web, wb.Absolute(0.05), **{**given, **options})


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("order", "keep", "chunk_values", "parts"), in_pairs(["keep", "free"], [(), KEEP], [None, 3000], [None, 3])
)
def test_columns_beside_positions_keep_their_bounds_in_any_archive(web, tmp_path, order, keep, chunk_values, parts):
    archive = compressed(web, order=order, keep=keep, chunk_values=chunk_values, parts=parts)
    archive.save(tmp_path / "web.zip")
    opened = wb.Archive.open(tmp_path / "web.zip")
    assert opened.arrays["velocities"].codec.id == opened.arrays["potential"].codec.id == "neighbours"
    assert opened.verify(web).passed
    decoded, places = opened.decompress(), opened.permutation(web)
    assert abs(decoded.velocities - web.velocities[places]).max() <= 2
    assert abs(decoded.columns["potential"] - web.columns["potential"][places]).max() <= 1e-3
    part = opened.read([(0, 8)] * 3)
    inside = (decoded.positions <= 8).all(axis=1)
    assert len(part) == inside.sum()
    assert sorted(map(tuple, part.velocities.tolist())) == sorted(map(tuple, decoded.velocities[inside].tolist()))


def test_prediction_makes_archives_of_simulations_smaller(web):
    sizes = {
        codec: compressed(web, column_codec=codec, order="free").arrays["velocities"].nbytes
        for codec in (None, "interpolation", "neighbours")
    }
    assert sizes["neighbours"] < sizes["interpolation"] < sizes[None]


def test_workers_write_the_same_bytes(web, tmp_path):
    one, other = (compressed(web, order="free", out=tmp_path / f"{parts}.zip", parts=parts) for parts in (1, 4))
    assert one.arrays["velocities"].checksums == other.arrays["velocities"].checksums


def test_lost_positions_take_the_columns_that_were_predicted_from_them(web, tmp_path):
    compressed(web, chunk_values=6000).save(tmp_path / "web.zarr")
    (chunk,) = (tmp_path / "web.zarr" / "positions" / "c" / "1").glob("*")
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"?")
    opened = wb.Archive.open(tmp_path / "web.zarr")
    with pytest.raises(Damaged, match="positions"):
        opened.arrays["velocities"].values()
    rest, lost = opened.salvage()
    assert len(rest) == 6000
    assert abs(rest.velocities - web.velocities[rest.ids]).max() <= 2
    assert lost


def test_plain_zarr_is_told_what_to_do(web, tmp_path):
    zarr = pytest.importorskip("zarr")
    compressed(web).save(tmp_path / "web.zarr")
    group = zarr.open(tmp_path / "web.zarr")
    assert group["positions"][:].shape == web.positions.shape
    with pytest.raises(wb.WorkbenchError, match=r"wb\.open\(\.\.\.\)"):
        group["velocities"][:]


def test_codecs_of_positions_are_refused_for_columns(web):
    with pytest.raises(wb.WorkbenchError, match="for positions alone"):
        compressed(web, column_codec="lattice")
    with pytest.raises(wb.WorkbenchError, match=r"^column_codec must be one of"):
        compressed(web, column_codec="zip")


@pytest.mark.parametrize("codec", ["neighbours", wb.codecs.get("neighbours")])
def test_codecs_of_columns_are_refused_for_positions_and_fields(web, codec):
    for data in (web, np.ones((50, 50))):
        with pytest.raises(wb.WorkbenchError, match="column_codec='neighbours'"):
            wb.compress(data, wb.Absolute(0.1), codec=codec)
