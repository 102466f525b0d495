"""Archives verified chunk by chunk: the report of one process, and every kind of damage found."""

import numpy as np
import pytest

import workbench as wb
from workbench.archive.store import MemoryStore
from workbench.clusters.keep import partition
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import GuaranteeBroken, WorkbenchError

SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=3)
WEB = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)
KEEPS = [(), wb.KeepClusters([0.15, 0.2]), wb.KeepClusters(0.2, min_members=5)]


def in_chunks(particles: wb.Particles) -> ParticlesInMemory:
    return ParticlesInMemory(particles, even_sizes(len(particles), 700))


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("keep", KEEPS, ids=["no-groups", "two-lengths", "large-groups"])
def test_the_report_is_that_of_one_process(tmp_path, monkeypatch, order, keep):
    monkeypatch.setattr(partition, "BLOCK", 1500)   # labels of several chunks, and some of one chunk
    archive = wb.compress(WEB, wb.Absolute(0.05), keep=keep, order=order, chunk_values=3000)
    path = archive.save(tmp_path / "web.zarr")
    for source, expected in ((None, archive.verify()), (in_chunks(WEB), archive.verify(WEB))):
        found = wb.distributed.verify(path, source, parts=3 if order == "keep" else 20)
        assert (found.figures, found.checks, found.notes) == (expected.figures, expected.checks, expected.notes)


def test_velocities_are_checked_against_their_checksums(tmp_path):
    path = wb.compress(SNAPSHOT, wb.Absolute(0.05), order="free").save(tmp_path / "web.zarr")
    report = wb.distributed.verify(path, SNAPSHOT)
    assert report.passed
    assert any(note.startswith("velocities: checked against checksums only") for note in report.notes)


def test_another_original_is_refused(tmp_path):
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KEEPS[1], chunk_values=3000).save(tmp_path / "web.zarr")
    moved = WEB.positions.copy()
    moved[17] = (moved[17] + 3) % WEB.box[0]
    with pytest.raises(GuaranteeBroken, match=r"of 12,288 values of positions break the promise"):
        wb.distributed.verify(path, wb.Particles(moved, WEB.box))
    with pytest.raises(WorkbenchError, match=r"original positions must be float32 of shape \(4096, 3\)"):
        wb.distributed.verify(path, wb.Particles(WEB.positions[:-1], WEB.box))
    with pytest.raises(WorkbenchError, match="must be in the box of the archive"):
        wb.distributed.verify(path, wb.Particles(WEB.positions))
    free = wb.compress(WEB, wb.Absolute(0.05), order="free", chunk_values=3000).save(tmp_path / "free.zarr")
    with pytest.raises(GuaranteeBroken, match="another order along the curve"):
        wb.distributed.verify(free, wb.Particles(moved, WEB.box))


def test_within_the_bound_but_with_other_groups_is_refused(tmp_path):
    """The original of an archive may differ from the given one by less than the bound: the groups show it."""
    original = wb.Particles([[0.1, 0.5], [0.19, 0.5], [0.5, 0.5]], box=1.0)
    keep = wb.KeepClusters(0.1, "length")
    path = wb.compress(original, wb.Absolute(0.02), keep=keep).save(tmp_path / "few.zarr")
    decoded = wb.open(path).decompress().positions
    other = decoded.copy()
    other[:2, 0] = decoded[:2, 0] + [-0.015, 0.015]
    with pytest.raises(GuaranteeBroken, match=r"groups of this original differ"):
        wb.distributed.verify(path, wb.Particles(other, 1.0))


def test_damage_is_named(tmp_path):
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KEEPS[1], chunk_values=3000).save(tmp_path / "web.zarr")
    chunk = path / "positions" / "c" / "2" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(bytes(data))
    with pytest.raises(GuaranteeBroken, match=r"1 of \d+ chunks are damaged.*positions/c/2/0"):
        wb.distributed.verify(path, in_chunks(WEB))
    chunk.unlink()
    with pytest.raises(GuaranteeBroken, match=r"positions/c/2/0: it is missing"):
        wb.distributed.verify(path)


def test_edits_that_break_groups_are_found(tmp_path):
    """The certificate of one archive over the chunks of another: intact bytes, within the bound, other groups."""
    kept = wb.compress(WEB, wb.Absolute(0.3), keep=wb.KeepClusters(0.2), chunk_values=3000)
    plain = wb.compress(WEB, wb.Absolute(0.3), chunk_values=3000)
    keys = plain.store.keys()
    entries = {key: plain.store.read(key) for key in keys}
    forged = wb.Archive(MemoryStore(entries))
    forged.attributes["certificate"] = kept.attributes["certificate"]
    with pytest.raises(GuaranteeBroken, match="groups of the decoded particles at linking length"):
        wb.distributed.verify(forged, parts=4)


def test_a_field_is_checked_against_its_checksums(tmp_path):
    field = wb.Field(np.linspace(0, 1, 5000, dtype=np.float32).reshape(50, 100))
    path = wb.compress(field, wb.Absolute(1e-3), "prequantised", chunk_values=1000).save(tmp_path / "field.zarr")
    assert wb.distributed.verify(path).passed
    with pytest.raises(WorkbenchError, match="compared in one process"):
        wb.distributed.verify(path, WEB)
