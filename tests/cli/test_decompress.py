"""`workbench decompress`: the files that come out, regions of them, and what is left when something goes wrong."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from cli.conftest import Run, damage, names, particles, wave
from workbench.cli import decompress as command
from workbench.cli import main

KEYS = {"file", "out", "holds", "shape", "dtype", "region", "bytes", "seconds", "arrays", "left_out"}


def test_npz_has_all_that_belongs_to_the_particles(run: Run, archive: Path, tmp_path: Path) -> None:
    out = tmp_path / "back.npz"
    printed = run("decompress", archive, out, "--json")
    assert (printed.status, printed.err) == (0, "")
    decoded, read = wb.open(archive).decompress(), wb.open(out)
    for name in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(read, name), getattr(decoded, name), strict=True)
    assert read.box == decoded.box
    found = printed.json
    assert set(found) == KEYS
    assert found["shape"] == [4096, 3]
    assert (found["arrays"], found["left_out"]) == (["positions", "velocities", "ids", "box"], [])
    assert found["bytes"] == out.stat().st_size


def test_npy_has_the_positions_alone_and_says_so(run: Run, archive: Path, tmp_path: Path) -> None:
    found = run("decompress", archive, tmp_path / "back.npy", "--json").json
    np.testing.assert_array_equal(np.load(tmp_path / "back.npy"), wb.open(archive).decompress().positions, strict=True)
    assert (found["arrays"], found["left_out"]) == (["positions"], ["velocities", "ids", "box"])


def test_a_masked_field_keeps_its_mask_and_spacing(run: Run, tmp_path: Path) -> None:
    mask = np.zeros((8, 9), bool)
    mask[2:4, 3] = True
    known = wb.Field(np.arange(72.0).reshape(8, 9), (0.5, 2.0), "height", mask)
    wb.compress(known, wb.Absolute(0.1), "prequantised").save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.npz", "--region", "1:6,:").status == 0
    written = np.load(tmp_path / "b.npz")
    np.testing.assert_array_equal(written["mask"], mask[1:6])
    assert abs(written["values"] - known.values[1:6]).max() <= 0.1
    assert written["spacing"].tolist() == [0.5, 2.0]


def test_particles_in_the_open_have_no_box(run: Run, tmp_path: Path) -> None:
    known = wb.Particles(particles().positions)
    wb.compress(known, wb.Absolute(0.1)).save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.npz", "--json").json["arrays"] == ["positions"]
    assert wb.open(tmp_path / "b.npz").box is None


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("regions")
    wb.compress(wave(), wb.Absolute(0.01), "prequantised", chunk_values=500).save(folder / "field.zip")
    wb.compress(particles(), wb.Absolute(0.01), order="free", chunk_values=3 * 400).save(folder / "particles.zip")
    return folder


def part_of(place: Path, kind: str, region: str) -> tuple[int, dict[str, np.ndarray]]:
    out, quiet = place / "part.npz", io.StringIO()
    out.unlink(missing_ok=True)
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        status = main(["decompress", str(place / f"{kind}.zip"), str(out), f"--region={region}"])
    return status, dict(np.load(out)) if out.exists() else {}


Slices = tuple[tuple[int | None, int | None], ...]
ends = st.one_of(st.none(), st.integers(-40, 40))


@given(st.tuples(*[st.tuples(ends, ends)] * 3))
def test_a_region_of_a_field_is_a_slice_of_the_whole(place: Path, region: Slices) -> None:
    text = ",".join(":".join("" if end is None else str(end) for end in pair) for pair in region)
    expected = wb.open(place / "field.zip").decompress().values[tuple(slice(*pair) for pair in region)]
    status, found = part_of(place, "field", text)
    assert status == (0 if expected.size else 2)
    if expected.size:
        np.testing.assert_array_equal(found["values"], expected, strict=True)


@given(st.tuples(*[st.tuples(st.floats(-20, 20), st.floats(1, 10))] * 3))
def test_a_region_of_space_has_all_particles_in_it(place: Path, region: tuple[tuple[float, float], ...]) -> None:
    region = tuple((round(low, 2), round(low + length, 2)) for low, length in region)
    decoded = wb.open(place / "particles.zip").decompress()
    period, x = 16.0, decoded.positions.astype(float)
    images = [[(x[:, a] >= low + k * period) & (x[:, a] < high + k * period) for k in range(-3, 4)]
              for a, (low, high) in enumerate(region)]
    inside = np.all([np.any(shifted, axis=0) for shifted in images], axis=0)
    near_a_face = min(np.abs((x[:, a] - end + 8) % period - 8).min() for a, pair in enumerate(region) for end in pair)
    status, found = part_of(place, "particles", ",".join(f"{low}:{high}" for low, high in region))
    assert status == (0 if inside.any() else 2) or near_a_face < 1e-9
    if status == 0 and near_a_face >= 1e-9:   # where rounding of the images cannot matter
        np.testing.assert_array_equal(np.sort(found["ids"]), np.sort(decoded.ids[inside]))


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ("0:1", "region must have 3 parts"),
        ("0:0.5,:,:", "must be whole numbers of grid points; got 0:0.5,:,:"),
        ("0:nan,:,:", "must be whole numbers of grid points"),
        ("5:5,:,:", "region must select points"),
    ],
)
def test_a_wrong_region_is_one_sentence(run: Run, field_archive: Path, tmp_path: Path, region: str, message: str) -> None:
    refused = run("decompress", field_archive, tmp_path / "b.npz", "--region", region)
    assert (refused.status, refused.out) == (2, "")
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert names(tmp_path) == {"field.zip"}


@pytest.mark.parametrize("region", ["0:1,0:1", ":,:,:", "0:1,0:1,1:0"])
def test_a_wrong_region_of_space_is_one_sentence(run: Run, archive: Path, tmp_path: Path, region: str) -> None:
    refused = run("decompress", archive, tmp_path / "b.npz", "--region", region)
    assert refused.status == 2
    assert "region must be 3 pairs (lower, upper)" in refused.err


@pytest.mark.parametrize("region", ["all", "1:2:3", "1", "", "a:b,:,:"])
def test_what_is_no_region_is_wrong_usage(run: Run, archive: Path, tmp_path: Path, region: str) -> None:
    refused = run("decompress", archive, tmp_path / "b.npz", "--region", region)
    assert refused.status == 2
    assert "expected x0:x1,y0:y1,z0:z1" in refused.err


def test_the_region_stands_in_the_result(run: Run, archive: Path, tmp_path: Path) -> None:
    found = run("decompress", archive, tmp_path / "b.npz", "--region=-2:4,0:16,0:9.5", "--json").json
    assert found["region"] == [[-2.0, 4.0], [0.0, 16.0], [0.0, 9.5]]
    assert found["shape"][0] == len(np.load(tmp_path / "b.npz")["positions"]) > 0


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_file_is_replaced_only_when_asked_for(run: Run, archive: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"b{suffix}"
    out.write_text("dear to someone")
    refused = run("decompress", archive, out)
    assert refused.status == 2
    assert "exists: choose another name, or pass --overwrite" in refused.err
    assert out.read_text() == "dear to someone"
    assert run("decompress", archive, out, "--overwrite").status == 0
    assert len(wb.open(out)) == 4096
    assert names(tmp_path) == {"snapshot.zarr", out.name}


def test_a_folder_is_never_replaced(run: Run, archive: Path, tmp_path: Path) -> None:
    (tmp_path / "b.npz").mkdir()
    refused = run("decompress", archive, tmp_path / "b.npz", "--overwrite")
    assert refused.status == 2
    assert "cannot write" in refused.err
    assert names(tmp_path) == {"snapshot.zarr", "b.npz"}


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("b.vtk", "OUT must end in .npy, .npz, .nc, .nc4, .zarr, .hdf5, .h5, .xtc"), ("b", "OUT must end in .npy, .npz"),
        ("no/b.npz", "does not exist"), ("no/b.nc", "does not exist"),
    ],
)
def test_a_wrong_target_is_refused_first(
    run: Run, tmp_path: Path, out: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "open_archive_or_step", lambda options: pytest.fail("the archive was opened"))
    refused = run("decompress", tmp_path / "a.zip", tmp_path / out)
    assert refused.status == 2
    assert message in refused.err


def test_after_a_full_disk_nothing_is_left(
    run: Run, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: io.BufferedWriter, arrays: dict[str, np.ndarray]) -> None:
        file.write(b"some of it")
        raise OSError(28, "No space left on device")

    (tmp_path / "b.npz").write_text("the one before")
    monkeypatch.setattr("workbench.cli.numpy_files._save_all", full)
    refused = run("decompress", archive, tmp_path / "b.npz", "--overwrite")
    assert refused.status == 2
    assert refused.err.endswith("b.npz: No space left on device\n")
    assert names(tmp_path) == {"snapshot.zarr", "b.npz"}
    assert (tmp_path / "b.npz").read_text() == "the one before"


def test_a_file_that_appeared_meanwhile_is_kept(
    run: Run, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(file: io.BufferedWriter, arrays: dict[str, np.ndarray]) -> None:
        (tmp_path / "b.npz").write_text("faster")

    monkeypatch.setattr("workbench.cli.numpy_files._save_all", slowly)
    assert run("decompress", archive, tmp_path / "b.npz").status == 2
    assert (tmp_path / "b.npz").read_text() == "faster"
    assert names(tmp_path) == {"snapshot.zarr", "b.npz"}


def test_damage_ends_with_1_and_leaves_nothing(run: Run, archive: Path, tmp_path: Path) -> None:
    damage(archive / "positions" / "c" / "3" / "0")
    refused = run("decompress", archive, tmp_path / "b.npz")
    assert (refused.status, refused.out) == (1, "")
    assert "chunk positions/c/3/0 is damaged" in refused.err
    assert names(tmp_path) == {"snapshot.zarr"}


def test_too_little_memory_is_one_sentence(
    run: Run, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: wb.Archive) -> None:
        raise MemoryError

    monkeypatch.setattr(wb.Archive, "decompress", refuse)
    refused = run("decompress", archive, tmp_path / "b.npz")
    assert (refused.status, refused.err) == (2, "workbench: not enough memory (an allocation failed)\n")


def test_what_is_no_archive_is_bad_input(run: Run, snapshot: Path, field: Path, tmp_path: Path) -> None:
    for path in (snapshot, field, tmp_path, tmp_path / "missing"):
        refused = run("decompress", path, tmp_path / "b.npz")
        assert (refused.status, refused.out) == (2, "")
        assert refused.err.startswith("workbench: ")
        assert refused.err.count("\n") == 1
