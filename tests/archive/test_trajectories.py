"""Trajectories in archives: all frames within their bound, parts of them, and what belongs to the frames as it was."""

import numpy as np
import pytest

import workbench as wb
from workbench.archive.content.trajectory import TRAJECTORY
from workbench.data.writers import write_trajectory
from workbench.errors import GuaranteeBroken, WorkbenchError

FRAMES, ATOMS, BOUND = 23, 40, 0.003
NM = {"length": "nm", "time": "ps"}
ALL = ("positions", "velocities", "images", "cells", "origins", "times", "steps")


def sample(frames=FRAMES, dtype="f4", digits=None, **more) -> wb.Trajectory:
    """Atoms that move smoothly and shake, in a cell that changes; wrapped as it happens."""
    random = np.random.default_rng(2)
    time = np.arange(frames)[:, None, None]
    start, speed = random.random((ATOMS, 3)) * 4, random.normal(size=(ATOMS, 3)) * 0.05
    positions = start + speed * time + 0.01 * random.normal(size=(frames, ATOMS, 3))
    if digits is not None:
        positions = np.round(positions, digits)
    given = {
        "cells": (4 + 0.01 * random.random((frames, 3, 3))).astype(dtype), "times": np.arange(frames) * 0.5,
        "steps": np.arange(frames) * 100, "atoms": {"name": np.array(["C", "CA", "N", "O"] * 10), "charge": np.ones(ATOMS)},
        "metadata": {"units": NM, "format": "test"},
    }
    return wb.Trajectory(positions.astype(dtype), **{**given, **more})


def with_all(frames=FRAMES) -> wb.Trajectory:
    random = np.random.default_rng(3)
    return sample(
        frames, velocities=random.normal(size=(frames, ATOMS, 3)).astype("f4"), origins=random.normal(size=(frames, 3)),
        images=random.integers(-3, 4, (frames, ATOMS, 3)).astype("i4"),
    )


def require_same(back: wb.Trajectory, walk: wb.Trajectory, within: float) -> None:
    for name in walk.arrays:
        one, other = (each.read(0, len(each), (name,))[name] for each in (back, walk))
        if name == "positions":
            assert np.abs(one.astype(float) - other).max() <= within
        else:
            assert one.tobytes() == other.tobytes()
    assert back.atoms.keys() == walk.atoms.keys()
    assert all(np.array_equal(back.atoms[name], column) for name, column in walk.atoms.items())


@pytest.mark.parametrize(
    ("codec", "chunks"),
    [("auto", None), ("motion", 5), ("motion", (6, 17, 3)), ("interpolation", None), ("pcodec", {"atom": 11})], ids=str,
)
def test_what_is_compressed_is_decoded_within_the_bound(tmp_path, codec, chunks):
    walk = with_all()
    wb.compress(walk, wb.Absolute(BOUND), codec, chunks=chunks, out=tmp_path / "walk.zip")
    archive = wb.open(tmp_path / "walk.zip")
    back = archive.decompress()
    require_same(back, walk, BOUND)
    assert back.metadata == walk.metadata
    assert archive.verify(walk).passed
    assert archive.verify().passed
    assert tuple(name for name in ALL if name in archive.arrays) == ALL
    if chunks is not None:
        expected = {5: (5, 40, 3), (6, 17, 3): (6, 17, 3)}.get(chunks if not isinstance(chunks, dict) else 0, (23, 11, 3))
        assert archive.data.layout.chunk_shape == expected


@pytest.mark.parametrize("bound", [wb.Absolute("3 pm"), wb.Relative(1e-3), wb.PointwiseRelative(1e-3), wb.Exact()], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_bound_holds(bound, dtype):
    walk = sample(dtype=dtype)
    archive = wb.compress(walk, bound)
    x, y = walk.positions.astype(float), archive.decompress().positions.astype(float)
    limit = {"absolute": 0.003, "relative": 1e-3 * (x.max() - x.min()), "exact": 0}.get(bound.kind)
    assert (np.abs(x - y) <= (limit if limit is not None else 1e-3 * np.abs(x))).all()
    assert archive.verify(walk).passed


def test_velocities_have_a_bound_of_their_own():
    walk = with_all()
    archive = wb.compress(walk, wb.Absolute(BOUND), "motion", velocities=wb.Absolute(0.01))
    back = archive.decompress()
    assert 0 < np.abs(back.velocities - walk.velocities).max() <= 0.01
    exact = wb.compress(walk, wb.Absolute(BOUND), "motion")
    assert archive.arrays["velocities"].nbytes < 0.7 * exact.arrays["velocities"].nbytes
    assert archive.verify(walk).passed
    more = {"velocities": wb.Absolute(0.01), "column_codec": "interpolation"}
    by_name = wb.compress(walk, wb.Absolute(BOUND), "motion", **more)
    assert by_name.arrays["velocities"].codec.id == "interpolation"


@pytest.mark.parametrize("frames", [1, 2, FRAMES])
def test_parts_are_those_of_the_whole(frames):
    walk = with_all(frames)
    archive = wb.compress(walk, wb.Absolute(BOUND), "motion", chunks=4)
    whole = archive.decompress()
    last = frames - 1
    several = [(slice(0, last), [3, 1]), ((1, last), "CA")] if frames > 2 else []
    for chosen, atoms in (*several, (last, None), (None, ["O", "N"]), (slice(None, None, 3), [0])):
        part = archive.read(frames=chosen, atoms=atoms)
        place = slice(chosen, chosen + 1) if isinstance(chosen, int) else chosen
        place = slice(*chosen) if isinstance(chosen, tuple) else place
        expected = whole if place is None else whole[place]
        expected = expected if atoms is None else expected.select(atoms)
        require_same(part, expected, 0)
    lazy = TRAJECTORY.source(archive)
    require_same(lazy[last], whole[last], 0)
    assert not lazy.in_memory
    for ask, words in (
        (lambda: archive.read(frames=frames), "frame must be between"),
        (lambda: archive.read(frames=1.5), "frames are a number or a slice"),
        (lambda: archive.read(atoms="H"), "no atom is named"),
        (lambda: archive.read(), "frames and atoms"),
        (lambda: wb.compress(np.zeros(9), wb.Absolute(1)).read(frames=1), "are for trajectories"),
    ):
        with pytest.raises(WorkbenchError, match=words):
            ask()


def test_reading_a_frame_decodes_one_row_of_chunks(monkeypatch):
    archive = wb.compress(sample(), wb.Absolute(BOUND), "motion", chunks=(4, 20, 3))
    read = []
    stored = type(archive.data)
    frame = stored.frame
    monkeypatch.setattr(stored, "frame", lambda self, index, *more: (self.layout.name == "positions" and read.append(index),
                                                                    frame(self, index, *more))[1])
    archive.read(frames=9)
    assert sorted(read) == [(2, 0, 0), (2, 1, 0)]


def test_files_are_read_where_they_are(tmp_path):
    walk, path = sample(digits=3), tmp_path / "walk.xtc"
    write_trajectory(walk, path, ".xtc")
    archive = wb.compress(path, wb.Absolute("0.001 nm"), out=tmp_path / "walk.zip")
    assert archive.kind == "trajectory"
    assert archive.verify(path).passed
    assert archive.verify(wb.open_trajectory(path)).passed
    require_same(wb.open_trajectory(tmp_path / "walk.zip"), wb.open_trajectory(path), 0.001)
    one = wb.compress(wb.open(path, frame=0, wrap=False, box=None), wb.Absolute(BOUND))
    assert one.kind == "particles"
    moved = wb.Trajectory(walk.positions + np.float32(0.5), cells=walk.cells, metadata=walk.metadata)
    write_trajectory(moved, tmp_path / "moved.xtc", ".xtc")
    with pytest.raises(GuaranteeBroken, match="values of positions break the promise"):
        archive.verify(tmp_path / "moved.xtc")
    with pytest.raises(WorkbenchError, match="the original positions must be float32 of shape"):
        archive.verify(wb.open_trajectory(path)[:3])
    single = tmp_path / "one.gro"
    write_trajectory(walk[0], single, ".gro")
    assert wb.compress(single, wb.Absolute(BOUND)).kind == "particles"


@pytest.mark.parametrize("bound", [0.0005, 0.0001, 0.0])
def test_what_the_file_has_rounded_is_kept_exactly(tmp_path, bound):
    path = tmp_path / "walk.xtc"
    write_trajectory(sample(digits=3), path, ".xtc")
    archive = wb.compress(path, wb.Absolute(bound))
    back = archive.decompress()
    assert archive.codec.id == "rounded"
    assert np.array_equal(back.positions, wb.open_trajectory(path).positions)
    assert "multiples of 1/1000, are kept exactly" in str(archive.certificate)
    assert write_trajectory(back, tmp_path / "back.xtc", ".xtc").rounding == 0
    assert (tmp_path / "back.xtc").read_bytes() == path.read_bytes()
    noted = any("the precision of xtc, 1/1000, rounds by up to 0.0005" in note for note in archive.certificate.notes)
    assert noted == (bound == 0.0001)


def test_memory_is_that_of_a_few_blocks(monkeypatch):
    """Frames are asked for block by block, and none is kept."""
    walk, asked = sample(64), []
    read = type(walk.frames).read
    monkeypatch.setattr(type(walk.frames), "read", lambda self, begin, end, names: (
        "positions" in names and asked.append((begin, end)), read(self, begin, end, names))[1])
    archive = wb.compress(walk, wb.Absolute(BOUND), "motion", chunks=8)
    assert asked == [(start, start + 8) for start in range(0, 64, 8)]
    asked.clear()
    archive.verify(walk)
    assert asked == [(start, start + 8) for start in range(0, 64, 8)]


def test_a_run_that_failed_goes_on(tmp_path, monkeypatch):
    import workbench.archive.encoded as module

    walk, encoded = sample(), []
    encode = module.encode_values

    def failing(task, values, mask):
        if len(encoded) == 3:
            raise KeyboardInterrupt
        encoded.append(len(values))
        return encode(task, values, mask)

    arguments = (walk, wb.Absolute(BOUND), "motion")
    monkeypatch.setattr(module, "encode_values", failing)
    with pytest.raises(KeyboardInterrupt):
        wb.compress(*arguments, chunks=4, out=tmp_path / "walk.zip")
    encoded.clear()
    counted = lambda task, values, mask: (encoded.append(len(values)), encode(task, values, mask))[1]   # noqa: E731
    monkeypatch.setattr(module, "encode_values", counted)
    wb.compress(*arguments, chunks=4, out=tmp_path / "walk.zip")
    assert len(encoded) == 3   # of six
    wb.compress(*arguments, chunks=4, out=tmp_path / "again.zip")
    assert (tmp_path / "walk.zip").read_bytes() == (tmp_path / "again.zip").read_bytes()


def test_numbers_that_are_not_finite_come_back():
    walk = sample()
    positions = np.array(walk.positions)
    positions[3, 5], positions[4, 0, 1] = np.nan, np.inf
    back = wb.compress(wb.Trajectory(positions), wb.Absolute(BOUND)).decompress()
    assert np.array_equal(np.isfinite(back.positions), np.isfinite(positions))
    finite = np.isfinite(positions)
    assert np.abs(back.positions[finite] - positions[finite]).max() <= BOUND


def test_requests_that_make_no_sense_are_refused():
    walk = sample()
    for more, words in (
        ({"order": "free"}, "are for particles; got a trajectory: give frame"),
        ({"keep": wb.KeepClusters(0.2)}, "takes nothing"),
        ({"columns": {"charge": wb.Absolute(1)}}, "are exact"), ({"codec": "lattice"}, "takes no arrays of frames"),
        ({"profile": "portable"}, "for fields and datasets"), ({"chunks": (4, 5, 1)}, "holds all three coordinates"),
        ({"store_permutation": True}, "are for particles"),
    ):
        with pytest.raises(WorkbenchError, match=words):
            wb.compress(walk, wb.Absolute(BOUND), **more)
    with pytest.raises(WorkbenchError, match="PerSlice is for fields"):
        wb.compress(walk, wb.PerSlice(wb.Absolute(1), axis=0))
    with pytest.raises(WorkbenchError, match="needs data with a unit"):
        wb.compress(wb.Trajectory(walk.positions), wb.Absolute("1 pm"))


def test_frames_outside_a_damaged_chunk_are_salvaged(tmp_path):
    walk = with_all()
    path = wb.compress(walk, wb.Absolute(BOUND), chunks=5).save(tmp_path / "walk.zip")
    data = bytearray(path.read_bytes())
    chunk = wb.open(path).store.read("positions/c/1/0/0")
    data[data.index(chunk) + len(chunk) // 2] ^= 1
    path.write_bytes(data)
    left, damage = wb.open(path).salvage()
    assert [one.where for one in damage] == ["positions/c/1/0/0"]
    assert left.times.tolist() == [*walk.times[:5], *walk.times[10:]]
    assert np.abs(left.positions - np.delete(walk.positions, slice(5, 10), axis=0)).max() <= BOUND
    with pytest.raises(GuaranteeBroken, match=r"1 of .* chunks are damaged"):
        wb.open(path).verify(walk)


def test_contradictions_are_refused():
    archive = wb.compress(with_all(), wb.Absolute(BOUND))
    layouts = {name: stored.layout for name, stored in archive.arrays.items()}
    assert TRAJECTORY.contradiction(archive.attributes, layouts, False) is None
    small = wb.compress(sample(5), wb.Absolute(BOUND))
    for name in ("velocities", "images", "cells", "origins", "times", "steps", "atom_name"):
        other = small.arrays["times"].layout
        wrong = TRAJECTORY.contradiction(archive.attributes, {**layouts, name: other}, False)
        assert wrong is not None, name
    assert "labels" in TRAJECTORY.contradiction({**archive.attributes, "labels": {"x": 3}}, layouts, False)
    assert "no such column" in TRAJECTORY.contradiction({**archive.attributes, "labels": {"x": ["a"]}}, layouts, False)
    assert "no array 'extents'" in TRAJECTORY.contradiction(
        archive.attributes, {**layouts, "extents": layouts["times"]}, False
    )
