"""Archives written by workers: the same bytes as from one process."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from combinations import in_pairs
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("order", "codec", "box"), in_pairs(["keep", "free"], ["auto", "prequantised"], [True, False])
)
def test_the_bytes_are_those_of_one_process(tmp_path, order, codec, box):
    snapshot = wb.synthetic.cosmic_web(n=24, seed=3)
    particles = wb.Particles(snapshot.positions, snapshot.box if box else None)
    source = ParticlesInMemory(particles, even_sizes(len(particles), 3001))
    for number, bound in enumerate((wb.Absolute(0.01), wb.Relative(1e-3))):
        expected, found = tmp_path / f"one-{number}.zarr", tmp_path / f"many-{number}.zarr"
        wb.compress(particles, bound, codec, order=order, chunk_values=12_000).save(expected)
        archive = wb.compress(source, bound, codec, order=order, chunk_values=12_000, out=found)
        assert files(found) == files(expected)
        assert archive.verify(particles).passed


@pytest.mark.parametrize(
    ("order", "keep", "mass"), in_pairs(["keep", "free"], [[], [wb.KeepClusters(0.2)]], [2.5, "each", None])
)
def test_velocities_ids_and_masses_are_those_of_one_process(tmp_path, monkeypatch, order, keep, mass):
    monkeypatch.setattr("workbench.archive.companions.CHUNK", 500)   # particles in a chunk: so that there are several
    snapshot = wb.synthetic.cosmic_web(n=12, seed=4)
    masses = np.random.default_rng(2).lognormal(size=len(snapshot)).astype(np.float32) if mass == "each" else mass
    particles = wb.Particles(
        snapshot.positions, snapshot.box, snapshot.velocities, snapshot.ids, {"time": 0.5, "units": "Mpc"}, masses
    )
    source, bound = ParticlesInMemory(particles, even_sizes(len(particles), 700)), wb.Absolute(0.02)
    wb.compress(particles, bound, keep=keep, order=order, chunk_values=1800).save(tmp_path / "one.zarr")
    found = wb.compress(
        source, bound, keep=keep, order=order, chunk_values=1800, parts=3, out=tmp_path / "many.zarr"
    )
    expected, found_files = files(tmp_path / "one.zarr"), files(tmp_path / "many.zarr")
    assert any(name.startswith("velocities/c/3/") for name in expected)
    assert found_files.keys() == expected.keys()
    assert [name for name in expected if found_files[name] != expected[name]] == []
    assert found.verify(particles).passed
    assert wb.open(tmp_path / "many.zarr").verify(source).passed


@pytest.mark.few(2)
@pytest.mark.parametrize(("order", "options"), in_pairs(["keep", "free"], [
    {"velocities": wb.Absolute(0.5)}, {"velocities": wb.Relative(0.01), "codec": "prequantised"},
    {"velocities": wb.PointwiseRelative(0.1), "store_permutation": True},
    {"bound": wb.PointwiseRelative(0.01), "codec": "prequantised"},
    {"bound": wb.Absolute(5.0)}, {"bound": wb.Absolute(0.0), "store_permutation": True},
]))
def test_every_option_makes_the_bytes_of_one_process(tmp_path, monkeypatch, order, options):
    monkeypatch.setattr("workbench.archive.companions.CHUNK", 500)
    particles = wb.synthetic.cosmic_web(n=12, seed=4)
    source = ParticlesInMemory(particles, even_sizes(len(particles), 700))
    given = {"bound": wb.Absolute(0.02), "order": order, "chunk_values": 1800} | options
    ours = wb.compress(particles, **given)
    ours.save(tmp_path / "one.zarr")
    wb.compress(source, **given, out=tmp_path / "many.zarr")
    assert files(tmp_path / "many.zarr") == files(tmp_path / "one.zarr")
    assert wb.compress(source, **given, out=tmp_path / "many.zip").verify(particles).passed
    in_memory = wb.compress(source, **given)
    assert (in_memory.nbytes, in_memory.certificate) == (ours.nbytes, ours.certificate)


def test_a_codec_that_reorders_the_particles_of_a_chunk_is_for_one_process(tmp_path):
    source = ParticlesInMemory(wb.synthetic.cosmic_web(n=12, seed=4), (700, 700, 328))
    with pytest.raises(WorkbenchError, match="lattice returns particles in an order of its own: use another codec"):
        wb.compress(source, wb.PointwiseRelative(0.01), order="free", chunk_values=1800, out=tmp_path / "a.zarr")
    assert wb.compress(source, wb.PointwiseRelative(0.01), out=tmp_path / "a.zarr").verify(source.whole).passed


def test_columns_of_one_type_are_demanded(tmp_path):
    class Changing(ParticlesInMemory):
        """The velocities of the last chunk have another type."""

        def column(self, number, name):
            found = super().column(number, name)
            return found.astype(np.float64) if number == 2 else found

    snapshot = wb.synthetic.cosmic_web(n=8, seed=4)
    particles = wb.Particles(snapshot.positions, snapshot.box, snapshot.velocities)
    for order in ("keep", "free"):
        with pytest.raises(WorkbenchError, match=r"velocities must have one type in all of .*, chunk 3 has float64"):
            wb.compress(
                Changing(particles, (200, 200, 112)), wb.Absolute(0.02), order=order, out=tmp_path / "out.zarr"
            )
        assert not (tmp_path / "out.zarr").exists()   # only what the same call would go on from is there


def test_coinciding_particles_keep_their_order(tmp_path):
    points = np.repeat(np.random.default_rng(0).random((300, 3)).astype(np.float32), 5, axis=0)
    particles = wb.Particles(points[np.random.default_rng(1).permutation(len(points))], box=1.0)
    source = ParticlesInMemory(particles, even_sizes(len(particles), 100))
    wb.compress(particles, wb.Absolute(0.01), order="free", chunk_values=900).save(tmp_path / "one.zarr")
    wb.compress(source, wb.Absolute(0.01), order="free", chunk_values=900, out=tmp_path / "many.zarr")
    assert files(tmp_path / "many.zarr") == files(tmp_path / "one.zarr")


class Unreadable(ParticlesInMemory):
    """A source with a chunk that cannot be read the second time."""

    def read(self, number):
        if number == 3:
            raise OSError("input/output error")
        return super().read(number)


def test_an_error_leaves_nothing(tmp_path):
    snapshot = wb.synthetic.cosmic_web(n=16, seed=3)
    source = Unreadable(wb.Particles(snapshot.positions, snapshot.box), even_sizes(len(snapshot), 1000))
    with pytest.raises(WorkbenchError, match="chunk 4 of 5 of particles in memory cannot be read"):
        wb.compress(source, wb.Absolute(0.01), out=tmp_path / "snapshot.zarr")
    assert not list(tmp_path.iterdir())


def steps_of(work):
    """The steps that tell their progress, in order; each goes from 0 to 1."""
    told = []
    work(lambda *now: told.append(now))
    for step in {what for _, what in told}:
        shares = [share for share, what in told if what == step]
        assert (shares[0], shares[-1]) == (0, 1)
    return list(dict.fromkeys(what for _, what in told))


def test_all_that_takes_long_tells_its_progress(tmp_path):
    snapshot = wb.synthetic.cosmic_web(n=12, seed=3)
    particles, bound = wb.Particles(snapshot.positions, snapshot.box), wb.Absolute(0.05)
    keep, out = wb.KeepClusters(0.2), tmp_path / "web.zarr"
    steps = steps_of(lambda told: wb.compress(
        particles, bound, keep=keep, order="free", chunk_values=900, parts=3, out=out, progress=told,
    ))
    assert steps[:3] == ["sample particles", "send particles", "encode chunks"]
    assert {"repair inside", "repair across"} <= set(steps)
    assert steps[-2:] == ["finish chunks", "write chunks"]
    assert "examine positions" in steps_of(lambda told: wb.open(out).verify(particles, progress=told))
    field = wb.synthetic.gaussian_field((16, 16), seed=1)
    for given in (field, wb.distributed.ChunkedField(pytest.importorskip("dask.array").from_array(field.values, 5))):
        out = tmp_path / f"{type(given).__name__}.zarr"
        assert steps_of(lambda told, given=given, out=out: wb.compress(
            given, bound, "prequantised", out=out, progress=told,
        )) == ["encode chunks"]


def test_what_a_cluster_cannot_do_is_said(tmp_path):
    dask = pytest.importorskip("dask")
    snapshot = wb.synthetic.cosmic_web(n=8)
    for how, told in (
        ({"keep": ["clusters"]}, r"keep of particles takes wb\.KeepClusters"),
        ({"keep": [wb.KeepClusters(0.1), wb.KeepClusters(0.2)]}, r"keep takes one wb\.KeepClusters"),
        ({"parts": 0}, "parts must be a whole number"),
        ({"client": "tcp://127.0.0.1:9", "parts": 2}, "no scheduler answers"),
    ):
        with pytest.raises(WorkbenchError, match=told), dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            wb.compress(snapshot, **{"bound": wb.Absolute(0.01), "out": tmp_path / "a.zarr", **how})
    assert not list(tmp_path.iterdir())
