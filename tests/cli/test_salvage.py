"""`workbench salvage`: what is undamaged comes back, what is lost is listed, and the status says whether it was."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, damage, names, wave
from workbench.archive import Archive
from workbench.archive.opening import opened

KEYS = {"file", "out", "holds", "shape", "dtype", "arrays", "left_out", "lost", "status", "damaged"}


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
def test_a_whole_archive_comes_back_with_0(run: Run, archive: Path, tmp_path: Path, suffix: str) -> None:
    saved = run("salvage", archive, tmp_path / f"saved{suffix}", "--json")
    assert (saved.status, saved.err) == (0, "")
    assert set(saved.json) == KEYS
    assert (saved.json["lost"], saved.json["damaged"], saved.json["shape"]) == (0, [], [4096, 3])
    assert run("decompress", archive, tmp_path / f"back{suffix}").status == 0
    assert (tmp_path / f"saved{suffix}").read_bytes() == (tmp_path / f"back{suffix}").read_bytes()


def test_undamaged_particles_are_saved(run: Run, archive: Path, tmp_path: Path) -> None:
    decoded = wb.open(archive).decompress()
    rows = wb.open(archive).data.layout.chunk_slices((3, 0))[0]
    kept = np.delete(np.arange(len(decoded)), rows)
    damage(archive / "positions/c/3/0")
    saved = run("salvage", archive, tmp_path / "saved.npz", "--json")
    assert (saved.status, saved.err) == (1, "")
    assert [lost["chunk"] for lost in saved.json["damaged"]] == ["positions/c/3/0"]
    assert (saved.json["lost"], saved.json["status"]) == (rows.stop - rows.start, 1)
    read = wb.open(tmp_path / "saved.npz")
    for name in ("positions", "velocities", "ids"):
        np.testing.assert_array_equal(getattr(read, name), getattr(decoded, name)[kept], strict=True)


def test_lost_values_of_a_field_are_masked(run: Run, tmp_path: Path) -> None:
    path = wb.compress(wave(), wb.Absolute(0.01), "prequantised", chunk_values=1000).save(tmp_path / "a.zarr")
    decoded = wb.open(path).decompress().values
    key = next(file for file in sorted((path / "values" / "c").rglob("*")) if file.is_file())
    damage(key)
    saved = run("salvage", path, tmp_path / "saved.npz")
    assert saved.status == 1
    lines = [line for line in saved.out.splitlines() if line.startswith("damaged  values/c/")]
    assert len(lines) == 1
    written = np.load(tmp_path / "saved.npz")
    lost = np.isnan(written["values"])
    np.testing.assert_array_equal(written["mask"], lost)
    np.testing.assert_array_equal(written["values"][~lost], decoded[~lost])
    assert 0 < lost.sum() < lost.size
    assert f"lost      {lost.sum():,}\n" in saved.out


def test_lost_integers_are_counted(run: Run, tmp_path: Path) -> None:
    whole = np.arange(600, dtype=np.int32).reshape(20, 30)
    path = wb.compress(wb.Field(whole), wb.Absolute(0), chunk_values=100).save(tmp_path / "a.zarr")
    damage(next(file for file in sorted((path / "values" / "c").rglob("*")) if file.is_file()))
    saved = run("salvage", path, tmp_path / "saved.npz", "--json")
    written = np.load(tmp_path / "saved.npz")
    assert saved.json["lost"] == written["mask"].sum() > 0
    np.testing.assert_array_equal(written["values"][~written["mask"]], whole[~written["mask"]])


@pytest.mark.few(4)
@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
@pytest.mark.parametrize("chunk", [10**6, 500], ids=["the whole mask is lost", "a part of the mask is lost"])
@pytest.mark.parametrize("under", [1e20, np.nan, np.linspace(-1, 1, 10**4)], ids=["one number", "NaN", "any numbers"])
def test_what_a_lost_mask_hid_is_no_value(run: Run, tmp_path: Path, suffix: str, chunk: int, under: np.ndarray) -> None:
    values = wave().values.copy()
    mask = values > np.quantile(values, 0.7)
    values[mask] = np.resize(under, mask.sum())
    archive = wb.compress(wb.Field(values, mask=mask), wb.Absolute(0.01), "prequantised", chunk_values=chunk)
    path = archive.save(tmp_path / f"a{suffix}")
    layout = archive.arrays["mask"].layout
    key = layout.chunk_key((0,) * values.ndim)
    stored = archive.store.read(key)
    if suffix == ".zarr":
        damage(path / key)
    else:
        data = path.read_bytes()
        place = data.index(stored) + len(stored) // 2
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    field, found = wb.open(path, damaged=True).salvage()
    unknown, stated = np.zeros_like(mask), np.ndim(under) == 0
    unknown[layout.chunk_slices((0,) * values.ndim)] = not stated
    assert [one.where for one in found] == [key]
    np.testing.assert_array_equal(field.mask, mask | unknown)
    assert run("salvage", path, tmp_path / "saved.npz", "--json").json["lost"] == unknown.sum()


def test_when_nothing_is_left_nothing_is_written(run: Run, archive: Path, tmp_path: Path) -> None:
    for chunk in (archive / "positions" / "c").rglob("0"):
        if chunk.is_file():
            damage(chunk)
    refused = run("salvage", archive, tmp_path / "saved.npz", "--json")
    assert (refused.status, refused.json["status"]) == (1, 1)
    assert "nothing can be salvaged" in refused.json["error"]
    assert names(tmp_path) == {"snapshot.zarr"}


def test_wrong_input_is_2(run: Run, archive: Path, field: Path, tmp_path: Path) -> None:
    for arguments in ((field, "b.npz"), (tmp_path / "missing", "b.npz"), (archive, "b.zip"), (archive, archive / "b.npz")):
        assert run("salvage", *arguments).status == 2
    assert names(tmp_path) == {"snapshot.zarr", "field.npy"}


def test_a_cut_zip_and_a_damaged_document_give_back_what_is_whole(run: Run, archive: Path, tmp_path: Path) -> None:
    whole = wb.open(archive).decompress()
    zipped = wb.open(archive).save(tmp_path / "a.zip")
    whole_bytes = zipped.read_bytes()
    zipped.write_bytes(whole_bytes[:-500])   # its directory alone
    complete = run("salvage", zipped, tmp_path / "saved.npz", "--json")
    assert (complete.status, complete.json["lost"]) == (0, 0)
    zipped.write_bytes(whole_bytes[: len(whole_bytes) // 2])
    text = (archive / "zarr.json").read_bytes()
    (archive / "zarr.json").write_bytes(text[: len(text) // 2])
    for path in (zipped, archive):
        saved = run("salvage", path, tmp_path / "saved.npz", "--overwrite", "--json")
        assert saved.status == 1, saved.err
        assert saved.json["damaged"]
        found = np.load(tmp_path / "saved.npz")["positions"]
        assert 0 < len(found) <= len(whole)
        assert {row.tobytes() for row in found} <= {row.tobytes() for row in whole.positions}


TRUSTED = ["--codecs", "sz3,lattice", "--most-bytes", "1e6", "--no-isolation"]
TRUST = {"codecs": ("sz3", "lattice"), "most_bytes": 10**6, "isolate": False}


@pytest.mark.parametrize("command", ["verify", "decompress", "salvage"])
def test_trust_is_handed_on_only_when_given(
    run: Run, archive: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr("workbench.cli.source.opened", lambda path, **given: seen.append(given) or opened(path))
    for options in ([], TRUSTED):
        out = [] if command == "verify" else [tmp_path / f"{len(options)}.npz"]
        assert run(command, archive, *out, *options).status == 0
    assert seen == [{}, TRUST]


@pytest.mark.parametrize("command", ["info", "fof"])
def test_trust_is_handed_on_when_a_file_may_be_an_archive(
    run: Run, archive: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    from workbench.data.readers import open_file

    monkeypatch.setattr("workbench.cli.source.open_file", lambda path, **given: seen.append(given) or open_file(path))
    for options in ([], TRUSTED):
        assert run(command, archive, *options).status == 0
    assert seen == [{}, TRUST]


def test_an_original_that_is_no_archive_needs_no_trust(
    run: Run, archive: Path, snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Archive.open
    monkeypatch.setattr(Archive, "open", lambda path, **given: whole(path))
    assert run("verify", archive, snapshot, *TRUSTED).status == 0


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many", "nan"])
def test_most_bytes_is_a_number(run: Run, archive: Path, wrong: str) -> None:
    refused = run("verify", archive, f"--most-bytes={wrong}")
    assert refused.status == 2
    assert "--most-bytes" in refused.err
