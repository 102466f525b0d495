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


@pytest.mark.few(2)
@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("keep", KEEPS, ids=["no-groups", "two-lengths", "large-groups"])
def test_the_report_is_that_of_one_process(tmp_path, monkeypatch, order, keep):
    monkeypatch.setattr(partition, "BLOCK", 1500)   # labels of several chunks, and some of one chunk
    archive = wb.compress(WEB, wb.Absolute(0.05), keep=keep, order=order, chunk_values=3000)
    path = archive.save(tmp_path / "web.zarr")
    for source, expected in ((None, archive.verify()), (in_chunks(WEB), archive.verify(WEB))):
        found = wb.open(path).verify(source, parts=3 if order == "keep" else 20)
        assert (found.figures, found.checks, found.notes) == (expected.figures, expected.checks, expected.notes)


@pytest.mark.parametrize("order", ["keep", "free"])
@pytest.mark.parametrize("given", [lambda particles: particles, in_chunks], ids=["in-memory", "in-chunks"])
def test_velocities_ids_and_masses_are_compared_with_the_original(order, given):
    masses = np.random.default_rng(1).random(len(WEB)).astype(np.float32)
    original = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box, SNAPSHOT.velocities, SNAPSHOT.ids, masses=masses)
    archive = wb.compress(original, wb.Absolute(0.05), order=order, chunk_values=3000, velocities=wb.Absolute(0.5))
    report = archive.verify(given(original))
    assert 0 < report.figures["velocities_max_error"] <= 0.5
    changed = {"velocities": SNAPSHOT.velocities + np.float32(1), "ids": SNAPSHOT.ids + 1, "masses": masses * 2}
    for name, values in changed.items():
        fields = {"velocities": original.velocities, "ids": original.ids, "masses": masses, name: values}
        with pytest.raises(GuaranteeBroken, match=f"{name}"):
            archive.verify(given(wb.Particles(original.positions, original.box, **fields)))
    bare = archive.verify(given(WEB))
    assert any(note.startswith("velocities: checked against checksums only") for note in bare.notes)


@pytest.mark.parametrize("given", [lambda particles: particles, in_chunks], ids=["in-memory", "in-chunks"])
def test_another_original_is_refused(tmp_path, given):
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KEEPS[1], chunk_values=3000).save(tmp_path / "web.zarr")
    moved = WEB.positions.copy()
    moved[17] = (moved[17] + 3) % WEB.box[0]
    with pytest.raises(GuaranteeBroken, match=r"of 12,288 values of positions break the promise"):
        wb.open(path).verify(given(wb.Particles(moved, WEB.box)))
    with pytest.raises(WorkbenchError, match=r"must be float32 of shape \(4096, 3\)|must be 4,096 particles"):
        wb.open(path).verify(given(wb.Particles(WEB.positions[:-1], WEB.box)))
    with pytest.raises(WorkbenchError, match=r"must be in the box of the archive|must be 4,096 particles in a box"):
        wb.open(path).verify(given(wb.Particles(WEB.positions)))
    free = wb.compress(WEB, wb.Absolute(0.05), order="free", chunk_values=3000).save(tmp_path / "free.zarr")
    with pytest.raises(GuaranteeBroken, match="another order along the curve"):
        wb.open(free).verify(given(wb.Particles(moved, WEB.box)))


def test_within_the_bound_but_with_other_groups_is_refused(tmp_path):
    """The original of an archive may differ from the given one by less than the bound: the groups show it."""
    original = wb.Particles([[0.1, 0.5], [0.19, 0.5], [0.5, 0.5]], box=1.0)
    keep = wb.KeepClusters(0.1, "length")
    path = wb.compress(original, wb.Absolute(0.02), keep=keep).save(tmp_path / "few.zarr")
    decoded = wb.open(path).decompress().positions
    other = decoded.copy()
    other[:2, 0] = decoded[:2, 0] + [-0.015, 0.015]
    with pytest.raises(GuaranteeBroken, match=r"groups of this original differ"):
        wb.open(path).verify(wb.Particles(other, 1.0))


def test_damage_is_named(tmp_path):
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KEEPS[1], chunk_values=3000).save(tmp_path / "web.zarr")
    chunk = path / "positions" / "c" / "2" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(bytes(data))
    with pytest.raises(GuaranteeBroken, match=r"1 of \d+ chunks are damaged.*positions/c/2/0"):
        wb.open(path).verify(in_chunks(WEB))
    chunk.unlink()
    with pytest.raises(GuaranteeBroken, match=r"positions/c/2/0: it is missing"):
        wb.open(path).verify()


def test_edits_that_break_groups_are_found(tmp_path):
    """The certificate of one archive over the chunks of another: intact bytes, within the bound, other groups."""
    kept = wb.compress(WEB, wb.Absolute(0.3), keep=wb.KeepClusters(0.2), chunk_values=3000)
    plain = wb.compress(WEB, wb.Absolute(0.3), chunk_values=3000)
    keys = plain.store.keys()
    entries = {key: plain.store.read(key) for key in keys}
    forged = wb.Archive(MemoryStore(entries))
    forged.attributes["certificate"] = kept.attributes["certificate"]
    with pytest.raises(GuaranteeBroken, match="groups of the decoded particles at linking length"):
        forged.verify(parts=4)


def sources_of(field, folder):
    """The same field in memory, in a file, and in blocks of Dask."""
    da = pytest.importorskip("dask.array")
    np.save(folder / "values.npy", field.values)
    blocks = da.from_array(field.values, (13, 40))
    mask = None if field.mask is None else da.from_array(field.mask, (13, 40))
    chunked = wb.distributed.ChunkedField
    return field, chunked(folder / "values.npy", mask=field.mask), chunked(blocks, mask=mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bound", [wb.Absolute(1e-3), wb.Relative(1e-3), wb.PointwiseRelative(1e-3)])
def test_a_field_is_compared_with_its_original_wherever_that_is(tmp_path, masked, bound):
    values = np.linspace(1, 2, 5000, dtype=np.float32).reshape(50, 100)
    field = wb.Field(values, mask=values > 1.9 if masked else None)
    archive = wb.compress(field, bound, "prequantised", chunk_values=1000)
    expected = archive.verify(field)
    for source in sources_of(field, tmp_path):
        assert archive.verify(source).to_dict() == expected.to_dict()
    wrong = values.copy()
    wrong[20, 30] += np.float32(0.01)
    for source in sources_of(wb.Field(wrong, mask=field.mask), tmp_path):
        with pytest.raises(GuaranteeBroken, match=r"1 of 5,000 values of values break the promise"):
            archive.verify(source)
    for source in sources_of(wb.Field(values[:-1]), tmp_path):
        with pytest.raises(WorkbenchError, match=r"must be float32 of shape \(50, 100\)"):
            archive.verify(source)
    with pytest.raises(WorkbenchError, match="holds a field"):
        archive.verify(WEB)
    if masked:
        other = wb.Field(values, mask=values > 1.8)
        with pytest.raises(GuaranteeBroken, match="mask must be bit-identical"):
            archive.verify(other)


@pytest.mark.parametrize("bound", [wb.Absolute(1e-3), wb.Relative(1e-3)])
def test_a_damaged_mask_is_named_whether_or_not_the_bound_depends_on_it(tmp_path, bound):
    values = np.linspace(1, 2, 5000, dtype=np.float32).reshape(50, 100)
    field = wb.Field(values, mask=values > 1.9)
    path = wb.compress(field, bound, "prequantised", chunk_values=1000).save(tmp_path / "field.zarr")
    chunk = max(part for part in (path / "mask" / "c").rglob("*") if part.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"!")
    for source in sources_of(field, tmp_path):
        with pytest.raises(GuaranteeBroken, match=r"1 of \d+ chunks are damaged.*mask/c/"):
            wb.open(path).verify(source)


@pytest.mark.parametrize("given", [lambda particles: particles, in_chunks], ids=["in-memory", "in-chunks"])
def test_an_original_of_another_mass_is_refused(given):
    archive = wb.compress(wb.Particles(WEB.positions, WEB.box, masses=2.5), wb.Absolute(0.05))
    with pytest.raises(WorkbenchError, match=r"must have particles of mass 2\.5; got 3\.5"):
        archive.verify(given(wb.Particles(WEB.positions, WEB.box, masses=3.5)))
