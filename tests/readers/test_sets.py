"""Snapshots in many files: whatever their division, the particles are those of one file, whole and in chunks."""

import itertools
import pickle
import shutil
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from readers import written
from readers.test_abacus import write as write_abacus
from readers.test_hdf5 import gadget as write_hdf5
from workbench import WorkbenchError

N = 40
POSITIONS, VELOCITIES = written.points(N), written.velocities(N)
IDS = np.random.default_rng(5).permutation(N).astype(np.uint64)
COLUMNS = {"positions": "grid/pos", "velocities": "grid/vel", "ids": "id", "masses": "mass"}


def parts_of(sizes):
    """The rows of each file."""
    ends = [0, *itertools.accumulate(sizes)]
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def hdf5_set(folder, sizes):
    """Dark matter in several files, with gas in the first."""
    for number, rows in enumerate(parts_of(sizes)):
        path = folder / f"snap_099.{number}.hdf5"
        header = {"totals": [2, N, 0, 0, 0, 0], "MassTable": [0, 0.5, 0, 0, 0, 0]}
        write_hdf5(path, POSITIONS[rows], number=number, files=len(sizes), **header)
        with h5py.File(path, "a") as file:
            if rows.stop > rows.start:
                file["PartType1/Velocities"][...] = VELOCITIES[rows]
                file["PartType1/ParticleIDs"][...] = IDS[rows]
            if number == 0:
                file["PartType0/Coordinates"] = POSITIONS[:2]
                file["PartType0/Masses"] = np.array([1.5, 2.5], np.float32)
    return {}


def gadget_set(folder, sizes, version=1):
    for number, rows in enumerate(parts_of(sizes)):
        count = rows.stop - rows.start
        content = written.gadget(
            POSITIONS[rows], VELOCITIES[rows], IDS[rows], (0, count, 0, 0, 0, 0), version=version,
            totals=(0, N, 0, 0, 0, 0), files=len(sizes),
        )
        (folder / f"snap_003.{number}").write_bytes(content)
    return {}


def genericio_set(folder, sizes):
    for number, rows in enumerate(parts_of(sizes)):
        halves = [slice(rows.start, (rows.start + rows.stop) // 2), slice((rows.start + rows.stop) // 2, rows.stop)]
        ranks = []
        for half in halves:
            columns = {name: POSITIONS[half, axis].copy() for axis, name in enumerate("xyz")}
            columns |= {name: VELOCITIES[half, axis].copy() for axis, name in enumerate(("vx", "vy", "vz"))}
            ranks.append({**columns, "id": IDS[half].astype(np.int64)})
        (folder / f"m000.full.mpicosmo.50#{number}").write_bytes(written.genericio(ranks))
    return {}


def abacus_set(folder, sizes):
    header = {"BoxSize": written.BOX, "Redshift": 0.5}
    for number, rows in enumerate(parts_of(sizes)):
        columns = {"pos": POSITIONS[rows], "vel": VELOCITIES[rows], "packedpid": IDS[rows]}
        write_abacus(folder / f"field_rv_A_{number:03d}.asdf", columns, header)
    return {}


def npy_set(folder, sizes):
    for number, rows in enumerate(parts_of(sizes)):
        np.save(folder / f"part.{number}.npy", POSITIONS[rows])
    return {"box": written.BOX}


def named_set(folder, sizes):
    for number, rows in enumerate(parts_of(sizes)):
        with h5py.File(folder / f"mine-{number}.h5", "w") as file:
            file["grid/pos"], file["grid/vel"], file["id"] = POSITIONS[rows], VELOCITIES[rows], IDS[rows]
            file["mass"] = POSITIONS[rows, 0]
    return {**COLUMNS, "box": written.BOX}


def axes_set(folder, sizes):
    """A data set for each axis, as in catalogues."""
    for number, rows in enumerate(parts_of(sizes)):
        with h5py.File(folder / f"cat-{number}.h5", "w") as file:
            for axis, name in enumerate("xyz"):
                file[name], file[f"v{name}"] = POSITIONS[rows, axis], VELOCITIES[rows, axis]
    return {"positions": ["x", "y", "z"], "velocities": "vx,vy,vz", "box": written.BOX}


def zarr_set(folder, sizes):
    for number, rows in enumerate(parts_of(sizes)):
        group = zarr.open_group(folder / f"mine-{number}.zarr", mode="w")
        for name, array in (("positions", POSITIONS), ("velocities", VELOCITIES), ("ids", IDS)):
            group.create_array(name, data=array[rows] if rows.stop > rows.start else array[:0], chunks=(4, 3)[: array.ndim])
    return {"box": written.BOX}


SETS = {
    "hdf5": hdf5_set, "gadget": gadget_set, "genericio": genericio_set, "abacus": abacus_set, "npy": npy_set,
    "named": named_set, "axes": axes_set, "zarr": zarr_set,
}


def compared(particles, kind):
    """The arrays that this kind of set has, from particles."""
    names = {"npy": [], "axes": ["velocities"]}.get(kind, ["velocities", "ids"])
    return {"positions": POSITIONS, **{name: {"velocities": VELOCITIES, "ids": IDS}[name] for name in names}}


@pytest.mark.parametrize("kind", SETS)
@settings(max_examples=5)
@given(
    st.lists(st.integers(0, N), max_size=2).map(lambda cuts: np.diff([0, *sorted(cuts), N]).tolist()),
    st.integers(1, 2 * N),
)
def test_any_division_into_files_gives_the_same_particles(tmp_path_factory, kind, sizes, chunk):
    folder = tmp_path_factory.mktemp(kind)
    options = SETS[kind](folder, sizes)
    source = wb.open_chunked(f"{folder}/*", chunk=chunk, **options)
    assert min(source.sizes) > 0
    assert len(source) == N
    assert source.box == (written.BOX,) * 3
    wholes = [source.joined()]
    if kind != "zarr" or len(sizes) > 1:   # one store alone is a field for wb.open, unless its positions are named
        wholes.append(wb.open(f"{folder}/*", **options))
    for whole in wholes:
        for name, expected in compared(whole, kind).items():
            np.testing.assert_array_equal(getattr(whole, name), expected)
    again = pickle.loads(pickle.dumps(source))
    last = len(source.sizes) - 1
    part = again.chunk(last, [name for name in ("velocities", "ids") if name in source.columns])
    np.testing.assert_array_equal(part.positions, POSITIONS[source.starts[last] :])
    if part.ids is not None:
        np.testing.assert_array_equal(part.ids, IDS[source.starts[last] :])
    shutil.rmtree(folder)


def test_gadget_two(tmp_path):
    gadget_set(tmp_path, [15, 25], version=2)
    np.testing.assert_array_equal(wb.open_chunked(tmp_path / "snap_003.0", chunk=10).joined().positions, POSITIONS)


@pytest.mark.parametrize("kind", SETS)
def test_the_ways_to_name_a_set(tmp_path, kind):
    """A pattern, a folder, a list and, where files say how many there are, one of them."""
    options = SETS[kind](tmp_path, [12, 0, 20, 8])
    files = sorted(tmp_path.iterdir())
    ways = [f"{tmp_path}/*", files, [str(file) for file in files]]
    if kind in ("hdf5", "gadget"):
        ways += [files[0], files[2]]
    if kind != "zarr":
        ways.append(tmp_path)
    for given_as in ways:
        np.testing.assert_array_equal(wb.open_chunked(given_as, **options).joined().positions, POSITIONS)


def test_files_follow_their_numbers(tmp_path):
    npy_set(tmp_path, [3] * 12 + [4])
    np.testing.assert_array_equal(wb.open(f"{tmp_path}/part.*.npy", box=written.BOX).positions, POSITIONS)


def test_a_list_keeps_its_order(tmp_path):
    npy_set(tmp_path, [15, 25])
    turned = wb.open([tmp_path / "part.1.npy", tmp_path / "part.0.npy"])
    np.testing.assert_array_equal(turned.positions, np.concatenate([POSITIONS[15:], POSITIONS[:15]]))


@pytest.mark.parametrize("kind", SETS)
def test_groups_are_those_of_the_joined_particles(tmp_path, kind):
    options = SETS[kind](tmp_path, [12, 0, 20, 8])
    expected = wb.friends_of_friends(wb.Particles(POSITIONS, written.BOX), 0.6)
    source = wb.open_chunked(f"{tmp_path}/*", chunk=7, **options)
    with wb.friends_of_friends(source, 0.6, parts=3) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
    assert len(expected) < N


def test_distributed_functions_take_what_open_takes(tmp_path):
    hdf5_set(tmp_path, [12, 0, 28])
    expected = wb.friends_of_friends(wb.open(tmp_path / "snap_099.0.hdf5"), 0.6)
    for given_as in (f"{tmp_path}/snap_099.*.hdf5", tmp_path, tmp_path / "snap_099.0.hdf5", sorted(tmp_path.iterdir())):
        with wb.friends_of_friends(given_as, 0.6, parts=2) as found:
            np.testing.assert_array_equal(found.gathered().labels, expected.labels)
    archive = wb.compress(tmp_path, wb.Absolute(0.01), out=tmp_path / "out.zarr")
    assert archive.verify(wb.Particles(POSITIONS, written.BOX)).passed


# Reading a chunk reads that chunk only.


def poison(path: Path, keep: slice, row_bytes: int, at: int):
    """Make NaN of all rows of float32 in a file except those of a chunk."""
    content = np.fromfile(path, np.uint8)
    nan = np.full(row_bytes * N // 4, np.nan, np.float32).view(np.uint8)
    kept = content[at + keep.start * row_bytes : at + keep.stop * row_bytes].copy()
    content[at : at + row_bytes * N] = nan
    content[at + keep.start * row_bytes : at + keep.stop * row_bytes] = kept
    content.tofile(path)


@pytest.mark.parametrize("kind", ["hdf5", "gadget", "npy", "named"])
def test_other_rows_of_the_file_are_not_read(tmp_path, kind):
    options = SETS[kind](tmp_path, [N])
    (path,) = tmp_path.iterdir()
    source = wb.open_chunked(path, chunk=10, **options)
    at = path.read_bytes().index(POSITIONS.tobytes())
    poison(path, slice(20, 30), 12, at)
    np.testing.assert_array_equal(source.chunk(2).positions, POSITIONS[20:30])
    with pytest.raises(WorkbenchError, match="nan"):
        source.chunk(1)


def test_other_files_are_not_read(tmp_path):
    for kind in ("genericio", "abacus", "gadget"):
        folder = tmp_path / kind
        folder.mkdir()
        SETS[kind](folder, [10, 12, 18])
        source = wb.open_chunked(folder)
        first = sorted(folder.iterdir())[0]
        first.write_bytes(first.read_bytes()[: first.stat().st_size // 2])
        np.testing.assert_array_equal(source.chunk(len(source.sizes) - 1).positions[-5:], POSITIONS[-5:])
        with pytest.raises(WorkbenchError, match=first.name):
            source.chunk(0)


def test_other_ranks_are_not_read(tmp_path):
    genericio_set(tmp_path, [N])
    source = wb.open_chunked(tmp_path, chunk=25)
    assert source.sizes == (20, 20)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    at = content.index(POSITIONS[:20, 0].tobytes())
    content[at : at + 40] = bytes(40)
    path.write_bytes(content)
    np.testing.assert_array_equal(source.chunk(1).positions, POSITIONS[20:])
    with pytest.raises(WorkbenchError, match="checksum of the variable x of rank 0"):
        source.chunk(0)


def test_other_chunks_of_a_store_are_not_decoded(tmp_path):
    zarr_set(tmp_path, [N])
    source = wb.open_chunked(f"{tmp_path}/*.zarr", chunk=8, box=written.BOX)
    assert source.sizes == (8,) * 5
    for chunk in (tmp_path / "mine-0.zarr" / "positions" / "c").iterdir():
        if chunk.name not in ("4", "5"):
            (chunk / "0").write_bytes(b"damaged")
    np.testing.assert_array_equal(source.chunk(2).positions, POSITIONS[16:24])
    with pytest.raises(WorkbenchError, match="zarr cannot read"):
        source.chunk(1)


@pytest.mark.parametrize("form", ["a.zip", "a.zarr"])
def test_archives_are_decoded_chunk_by_chunk(tmp_path, form, monkeypatch):
    particles = wb.Particles(POSITIONS, written.BOX, VELOCITIES, IDS)
    wb.compress(particles, wb.Absolute(0.01), chunk_values=36).save(tmp_path / form)
    decoded = []
    from workbench.archive.reading import StoredArray

    original = StoredArray.chunk
    monkeypatch.setattr(StoredArray, "chunk", lambda self, index: decoded.append(index) or original(self, index))
    source = wb.open_chunked(tmp_path / form, chunk=10)
    whole = wb.open(tmp_path / form).decompress()
    decoded.clear()
    np.testing.assert_array_equal(source.chunk(1).positions, whole.positions[source.starts[1] : source.starts[2]])
    assert decoded == [(1, 0)]
    joined = source.joined()
    for name in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))


@pytest.mark.parametrize("kind", ["hdf5", "gadget", "npy", "abacus", "archive"])
def test_a_chunk_takes_the_memory_of_a_chunk(tmp_path, kind):
    """Of 24 chunks, one is read; files, and copies for checks, take a few times its size."""
    count, chunk = 480_000, 20_000
    points = (np.random.default_rng(0).random((count, 3)) * written.BOX * 0.999).astype(np.float32)
    path = tmp_path / "snap.npy"
    if kind == "hdf5":
        write_hdf5(path, points)
    elif kind == "gadget":
        path.write_bytes(written.gadget(points, points, np.arange(count, dtype=np.uint64), (0, count, 0, 0, 0, 0)))
    elif kind == "npy":
        np.save(path, points)
    elif kind == "abacus":
        write_abacus(path, {"pos": points}, {"BoxSize": written.BOX}, compression=None)
    else:
        archive = wb.compress(wb.Particles(points, written.BOX), wb.Absolute(0.01), chunk_values=3 * chunk)
        path = archive.save(tmp_path / "a.zip")
    source = wb.open_chunked(path, chunk=chunk)
    source.chunk(3)
    tracemalloc.start()
    source.chunk(7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 12 * chunk < 12 * count / 2


def test_an_archive_of_a_field(tmp_path):
    wb.compress(wb.Field(np.ones((4, 4), np.float32)), wb.Absolute(0.1)).save(tmp_path / "a.zip")
    with pytest.raises(WorkbenchError, match="holds a field, and only particles are read in chunks"):
        wb.open_chunked(tmp_path / "a.zip")


# Particle types and masses.


def test_types_and_masses(tmp_path):
    hdf5_set(tmp_path, [12, 0, 28])
    source = wb.open_chunked(tmp_path, chunk=10)
    assert source.metadata["particle_counts"] == {0: 2, 1: N, 2: 0, 3: 0, 4: 0, 5: 0}
    assert source.column(0, "masses").tolist() == [0.5] * source.sizes[0]
    gas = wb.open_chunked(tmp_path, particle_type="gas")
    assert gas.metadata["particle_type"] == 0
    assert (gas.columns, gas.column(0, "masses").tolist()) == (("masses",), [1.5, 2.5])
    everything = wb.open_chunked(tmp_path, particle_type="all", chunk=100)
    assert (everything.sizes, everything.columns) == ((2, 12, 28), ("masses",))
    assert everything.metadata["particle_type"] == [0, 1]
    assert [everything.particle_type(number) for number in range(3)] == [0, 1, 1]
    assert [everything.column(number, "masses").sum() for number in range(3)] == [4, 6, 14]
    np.testing.assert_array_equal(everything.joined().positions, np.concatenate([POSITIONS[:2], POSITIONS]))
    np.testing.assert_array_equal(wb.open(tmp_path, particle_type="all").positions, everything.joined().positions)
    with pytest.raises(WorkbenchError, match="no particles of particle_type 4; it has 2 of type 0, 40 of type 1"):
        wb.open_chunked(tmp_path, particle_type=4)
    with pytest.raises(WorkbenchError, match="has no ids; it has positions, masses"):
        gas.column(0, "ids")
    with pytest.raises(WorkbenchError, match="columns must be some of velocities, ids, masses; got 'spins'"):
        source.chunk(0, ["spins"])
    assert everything.chunk(0, ["masses"]).masses.tolist() == [1.5, 2.5]
    assert (source.mass, source.joined().masses, wb.open(tmp_path).masses) == (0.5, 0.5, 0.5)
    assert wb.open(tmp_path, particle_type="gas").masses.tolist() == [1.5, 2.5]
    for whole in (everything.joined(), wb.open(tmp_path, particle_type="all")):
        assert whole.masses.tolist() == [1.5, 2.5, *[0.5] * N]


@pytest.mark.parametrize("version", [1, 2])
def test_masses_of_gadget_are_in_a_block_or_in_the_header(tmp_path, version):
    """The writer gives type k the mass k, so that of type 0 must be in a block."""
    content = written.gadget(POSITIONS, VELOCITIES, IDS, (10, 30, 0, 0, 0, 0), version=version)
    masses = np.arange(10, dtype=np.float32)
    label = written.record(b"MASS" + (48).to_bytes(4, "little")) if version == 2 else b""
    path = tmp_path / "snap"
    path.write_bytes(content + label + written.record(masses.tobytes()))
    everything = wb.open_chunked(path, particle_type="all", chunk=8)
    found = np.concatenate([everything.column(number, "masses") for number in range(len(everything.sizes))])
    np.testing.assert_array_equal(found, [*range(10), *[1.0] * 30])
    np.testing.assert_array_equal(everything.joined().ids, IDS)


# Input that is refused before any particle is read.


def test_a_missing_file(tmp_path):
    for kind, gone in (("hdf5", "snap_099.1.hdf5"), ("gadget", "snap_003.1"), ("npy", "part.1.npy")):
        folder = tmp_path / kind
        folder.mkdir()
        SETS[kind](folder, [10, 10, 10, 10])
        whole = sorted(folder.iterdir())
        (folder / gone).unlink()
        given_as = [folder, f"{folder}/*", *([whole[0]] if kind != "npy" else [])]
        for one in given_as:
            with pytest.raises(WorkbenchError, match=gone):
                wb.open_chunked(one)


def test_a_list_without_one_of_the_files(tmp_path):
    hdf5_set(tmp_path, [10, 10, 20])
    with pytest.raises(WorkbenchError, match=r"one of 3 files of one snapshot; these are not given: snap_099\.1\.hdf5"):
        wb.open_chunked([tmp_path / "snap_099.0.hdf5", tmp_path / "snap_099.2.hdf5"])


def test_files_of_two_snapshots(tmp_path):
    hdf5_set(tmp_path, [10, 30])
    for number in range(2):
        shutil.copy(tmp_path / f"snap_099.{number}.hdf5", tmp_path / f"snap_100.{number}.hdf5")
    with pytest.raises(WorkbenchError, match=r"snap_100\.0\.hdf5 belongs to another snapshot than snap_099\.0\.hdf5"):
        wb.open(f"{tmp_path}/snap_*.hdf5")
    write_hdf5(tmp_path / "whole.hdf5", POSITIONS)
    with pytest.raises(WorkbenchError, match=r"whole\.hdf5 says that it is a whole snapshot"):
        wb.open_chunked([tmp_path / "snap_099.0.hdf5", tmp_path / "whole.hdf5"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"BoxSize": 20.0}, r"one box: snap_099\.0\.hdf5 has \(10.*snap_099\.1\.hdf5 has \(20"),
        ({"Time": 0.9}, r"one time: snap_099\.0\.hdf5 has 0\.66.*snap_099\.1\.hdf5 has 0\.9"),
    ],
)
def test_headers_that_disagree(tmp_path, change, message):
    hdf5_set(tmp_path, [10, 30])
    with h5py.File(tmp_path / "snap_099.1.hdf5", "a") as file:
        file["Header"].attrs.update(change)
    for opener in (wb.open, wb.open_chunked):
        with pytest.raises(WorkbenchError, match=message):
            opener(tmp_path)


@pytest.mark.parametrize("name", ["Velocities", "ParticleIDs"])
def test_a_column_that_one_file_lacks(tmp_path, name):
    """Nothing is dropped in silence."""
    hdf5_set(tmp_path, [10, 0, 30])
    with h5py.File(tmp_path / "snap_099.2.hdf5", "a") as file:
        del file[f"PartType1/{name}"]
    with pytest.raises(WorkbenchError, match=r"same columns: snap_099\.0\.hdf5 has \w+, snap_099\.2\.hdf5 has none"):
        wb.open(tmp_path)


def test_types_of_numbers_that_disagree(tmp_path):
    np.save(tmp_path / "part.0.npy", POSITIONS)
    np.save(tmp_path / "part.1.npy", POSITIONS.astype(np.float64))
    with pytest.raises(WorkbenchError, match=r"one type of positions: part\.0\.npy has float32, part\.1\.npy has float64"):
        wb.open(tmp_path)
    np.save(tmp_path / "part.1.npy", POSITIONS[:, :2])
    with pytest.raises(WorkbenchError, match=r"one number of dimensions: part\.0\.npy has 3, part\.1\.npy has 2"):
        wb.open_chunked(tmp_path)


def test_a_file_given_twice(tmp_path):
    npy_set(tmp_path, [15, 25])
    (tmp_path / "link.npy").symlink_to(tmp_path / "part.0.npy")
    for twice in ("part.0.npy", "link.npy"):
        with pytest.raises(WorkbenchError, match=r"each file must be given once"):
            wb.open_chunked([tmp_path / "part.0.npy", tmp_path / twice])
    with pytest.raises(WorkbenchError, match=r"each file must be given once"):
        wb.open(tmp_path)


def test_formats_that_do_not_go_together(tmp_path):
    npy_set(tmp_path, [40])
    write_hdf5(tmp_path / "a.hdf5", POSITIONS)
    with pytest.raises(WorkbenchError, match=r"one format; part\.0\.npy is NumPy array \(\.npy\), and a\.hdf5 is not"):
        wb.open([tmp_path / "part.0.npy", tmp_path / "a.hdf5"])


def test_a_truncated_file_is_named(tmp_path):
    for kind in ("gadget", "npy", "hdf5", "genericio"):
        folder = tmp_path / kind
        folder.mkdir()
        options = SETS[kind](folder, [20, 20])
        cut = sorted(folder.iterdir())[1]
        cut.write_bytes(cut.read_bytes()[:-300])
        for opener in (lambda *a, **b: wb.open_chunked(*a, **b).joined(), wb.open):
            with pytest.raises(WorkbenchError, match=cut.name):
                opener(f"{folder}/*", **options)


def test_a_file_of_zero_bytes(tmp_path):
    """One of the set is refused; a marker beside it is left out, and listed."""
    npy_set(tmp_path, [20, 20])
    (tmp_path / "done").touch()
    (tmp_path / "checksums.txt").write_text("0")
    assert wb.open_chunked(tmp_path).metadata["left_out"] == ["files checksums.txt, done"]
    (tmp_path / "part.1.npy").write_bytes(b"")
    for given_as in (tmp_path, f"{tmp_path}/*.npy"):
        with pytest.raises(WorkbenchError, match=r"part\.1\.npy is empty \(0 bytes\)"):
            wb.open(given_as)


def test_a_file_that_shrinks_after_it_was_opened(tmp_path):
    npy_set(tmp_path, [20, 20])
    source = wb.open_chunked(tmp_path)
    np.save(tmp_path / "part.1.npy", POSITIONS[:5])
    with pytest.raises(WorkbenchError, match=r"part\.1\.npy must hold 20 particles, as when it was opened"):
        source.chunk(1)


def test_nothing_there(tmp_path):
    with pytest.raises(WorkbenchError, match="no file matches the pattern"):
        wb.open_chunked(f"{tmp_path}/*.hdf5")
    with pytest.raises(WorkbenchError, match="expected a list of paths, at least one"):
        wb.open_chunked([])
    with pytest.raises(WorkbenchError, match="has no known format, and no files"):
        wb.open_chunked(tmp_path)
    npy_set(tmp_path, [N])
    np.save(tmp_path / "part.0.npy", POSITIONS[:0])
    with pytest.raises(WorkbenchError, match="holds no particles"):
        wb.open_chunked(tmp_path)


def test_formats_without_chunks(tmp_path):
    (tmp_path / "a.xyz").write_text(written.xyz([POSITIONS]))
    with pytest.raises(WorkbenchError, match=r"a\.xyz is read as .* as a whole and alone: open it by wb\.open"):
        wb.open_chunked(tmp_path / "a.xyz")
    named_set(tmp_path, [N])
    with pytest.raises(WorkbenchError, match=r"HDF5 grid .* or name the data set of its positions by positions=\.\.\."):
        wb.open_chunked(tmp_path / "mine-0.h5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positions": "grid/nothing"}, "no data set 'grid/nothing'; those that can be .* grid/pos 40x3, grid/vel 40x3"),
        ({"positions": "mass"}, "positions must be float32 or float64"),
        ({"positions": "grid/pos", "ids": "mass"}, r"ids must be integers of shape \(40,\); mass in mine-0\.h5 is float32"),
        ({"positions": "grid/pos", "velocities": "short"}, r"velocities must be floats of shape \(40, 3\); short in"),
        ({"positions": "grid/pos", "frame": 3}, "'frame' makes no sense for mine-0.h5"),
        ({"positions": ["mass", "id", "mass"]}, "positions must be float32 or float64"),
    ],
)
def test_names_that_do_not_fit(tmp_path, options, message):
    named_set(tmp_path, [N])
    with h5py.File(tmp_path / "mine-0.h5", "a") as file:
        file["short"] = VELOCITIES[:7]
    for opener in (wb.open, wb.open_chunked):
        with pytest.raises(WorkbenchError, match=message):
            opener(tmp_path / "mine-0.h5", **options)


def test_a_snapshot_by_names_of_its_data_sets(tmp_path):
    """The names override the layout that is recognised."""
    write_hdf5(tmp_path / "a.hdf5", POSITIONS)
    found = wb.open(tmp_path / "a.hdf5", positions="/PartType1/Velocities", ids="/PartType1/ParticleIDs")
    np.testing.assert_array_equal(found.positions, -POSITIONS)
    assert found.box is None
    assert len(found.ids) == N


def test_a_zarr_array_with_chunks_that_were_never_written(tmp_path):
    array = zarr.create_array(tmp_path / "a.zarr", shape=(N, 3), chunks=(10, 3), dtype="f4")
    array[:20] = POSITIONS[:20]
    with pytest.raises(WorkbenchError, match="2 of 4 chunks; the others were never written"):
        wb.open_chunked(tmp_path / "a.zarr")
    array[:] = POSITIONS
    sharded = zarr.create_array(tmp_path / "b.zarr", shape=(N, 3), chunks=(5, 3), shards=(10, 3), dtype="f4")
    sharded[:30] = POSITIONS[:30]
    with pytest.raises(WorkbenchError, match="the others were never written"):
        wb.open_chunked(tmp_path / "b.zarr")
    sharded[30:] = POSITIONS[30:]
    assert wb.open_chunked(tmp_path / "b.zarr", chunk=1).sizes == (10,) * 4
    source = wb.open_chunked(tmp_path / "a.zarr", chunk=10)
    np.testing.assert_array_equal(source.joined().positions, POSITIONS)


def test_the_box_of_zarr_groups(tmp_path):
    """In the attribute `box`; two of them must agree."""
    zarr_set(tmp_path, [15, 25])
    stores = sorted(tmp_path.iterdir())
    for store in stores:
        zarr.open_group(store, mode="a").attrs["box"] = [10.0, 11.0, 12.0]
    assert wb.open_chunked(stores).box == wb.open(stores, positions="positions").box == (10.0, 11.0, 12.0)
    assert wb.open(stores[0], positions="positions", box=None).box is None
    zarr.open_group(stores[1], mode="a").attrs["box"] = 10.0
    with pytest.raises(WorkbenchError, match=r"one box: mine-0\.zarr has \(10.*mine-1\.zarr has \(10"):
        wb.open_chunked(stores)


def test_positions_outside_the_box_follow_the_rule_for_whole_snapshots(tmp_path):
    """Rounding at a face is wrapped; more is refused, by the mean spacing of all particles and not of a chunk."""
    points = POSITIONS.copy()
    points[7, 1] = written.BOX
    np.save(tmp_path / "a.npy", points)
    source = wb.open_chunked(tmp_path / "a.npy", box=written.BOX, chunk=4)
    np.testing.assert_array_equal(source.joined().positions, wb.open([tmp_path / "a.npy"], box=written.BOX).positions)
    points[7, 1] = written.BOX + 0.004   # a thousandth of the spacing in a chunk of 4 is 0.0063, of all 40 it is 0.0029
    np.save(tmp_path / "a.npy", points)
    with pytest.raises(WorkbenchError, match="outside the box of length 10"):
        wb.open([tmp_path / "a.npy"], box=written.BOX)
    with pytest.raises(WorkbenchError, match="outside the box of length 10"):
        source.chunk(1)
    assert wb.open_chunked(tmp_path / "a.npy", box=written.BOX, chunk=4, wrap=True).chunk(1).positions.max() < written.BOX


# Real files.


def test_real_files_in_chunks(shared_data):
    for name in ("disperse_32/disperse_simu_32_id.gad", "hacc_nyx_toy/m000.full.mpicosmo.50"):
        whole = wb.open(shared_data / name)
        source = wb.open_chunked(shared_data / name, chunk=5000)
        assert len(source.sizes) > 5
        joined = source.joined()
        for column in ("positions", "velocities", "ids"):
            np.testing.assert_array_equal(getattr(joined, column), getattr(whole, column))
        assert joined.box == whole.box


def test_groups_of_a_real_snapshot_in_chunks(shared_data):
    path = shared_data / "disperse_32/disperse_simu_32_id.gad"
    with wb.friends_of_friends(wb.open_chunked(path, chunk=5000), parts=4) as groups:
        assert groups.count(min_members=20) == 136
        np.testing.assert_array_equal(groups.gathered().labels, wb.friends_of_friends(wb.open(path)).labels)


def test_chunks_of_zeros_that_zarr_does_not_write_are_zeros(tmp_path):
    """Velocities of 0, the id 0, one axis of 0, and one particle at the origin in the last chunk."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    positions = POSITIONS[:9].copy()
    positions[8] = 0
    zeros = np.zeros((9, 3), "f4")
    written_as = {"positions": positions, "velocities": zeros, "ids": np.arange(9)[::-1], "y": zeros[:, 0].copy()}
    for name, array in written_as.items():
        group.create_array(name, data=array, chunks=(4, 3)[: array.ndim])
    for name, axis in (("x", 0), ("z", 2)):
        group.create_array(name, data=positions[:, axis].copy(), chunks=(4,))
    found = wb.open_chunked(tmp_path / "a.zarr").joined()
    for name in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(found, name), written_as[name])
    flat = wb.open_chunked(tmp_path / "a.zarr", positions=["x", "y", "z"]).joined()
    np.testing.assert_array_equal(flat.positions, positions * [1, 0, 1])


@pytest.mark.parametrize("column", ["positions", "velocities", "ids"])
def test_a_zarr_column_of_which_chunks_were_not_copied(tmp_path, column):
    """Zarr would show them as zeros."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    for name, array in (("positions", POSITIONS), ("velocities", VELOCITIES), ("ids", IDS)):
        group.create_array(name, data=array, chunks=(10, 3)[: array.ndim])
    (tmp_path / "a.zarr" / column / "c" / "1" / ("0" if column != "ids" else "")).resolve().unlink()
    with pytest.raises(WorkbenchError, match=f"{column} has 3 of 4 chunks; the others were never written, or not copied"):
        wb.open_chunked(tmp_path / "a.zarr")
