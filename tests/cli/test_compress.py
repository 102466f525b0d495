"""What `workbench compress` writes and says, and what it refuses before it begins."""

import re
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, names, particles, wave
from workbench.cli import compress as command

KEYS = {
    "file", "out", "holds", "shape", "dtype", "codec", "bound", "original_bytes", "archive_bytes", "ratio",
    "bits_per_value", "seconds", "megabytes_per_second", "certificate", "limit", "left_out",
}


def test_a_snapshot_comes_back_within_the_bound_and_in_its_order(run: Run, snapshot: Path, tmp_path: Path) -> None:
    assert run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.01).status == 0
    decoded = wb.open(tmp_path / "a.zip").decompress()
    assert abs(decoded.positions.astype(float) - particles().positions).max() <= 0.01
    np.testing.assert_array_equal(decoded.ids, particles().ids)
    np.testing.assert_array_equal(decoded.velocities, particles().velocities)
    assert decoded.box == particles().box


def test_json_has_the_figures_of_the_archive_that_was_written(run: Run, snapshot: Path, tmp_path: Path) -> None:
    printed = run("compress", snapshot, tmp_path / "a.zarr", "--abs", 0.01, "--json")
    found, archive = printed.json, wb.open(tmp_path / "a.zarr")
    assert set(found) == KEYS | {"bits_per_particle", "mean_spacing", "extent"}
    assert (found["archive_bytes"], found["ratio"]) == (archive.nbytes, archive.ratio)
    known = particles()
    assert found["original_bytes"] == known.positions.nbytes + known.velocities.nbytes + known.ids.nbytes
    assert (found["holds"], found["shape"], found["dtype"]) == ("particles", [4096, 3], "float32")
    assert found["bound"] == {"kind": "absolute", "eb": 0.01}
    assert found["codec"]["id"] == "lattice"
    assert found["certificate"] == archive.certificate.to_dict()
    assert found["megabytes_per_second"] > 0
    assert printed.out.count("\n") == 1
    assert not printed.err


def test_json_of_a_field_has_no_bits_per_particle(run: Run, field: Path, tmp_path: Path) -> None:
    found = run("compress", field, tmp_path / "a.zip", "--rel", 1e-3, "--json").json
    assert set(found) == KEYS | {"range", "lower", "upper"}
    assert found["shape"] == [20, 24, 28]


def test_people_read_size_speed_and_certificate(run: Run, field: Path, tmp_path: Path) -> None:
    printed = run("compress", field, tmp_path / "a.zip", "--abs", 0.25, "--codec", "zfp")
    assert "id=zfp, mode=accuracy" in printed.out
    assert "values: every value within 0.25 of the original" in printed.out
    assert {line.split("  ")[0] for line in printed.out.splitlines()} > {"ratio", "bits per value", "megabytes per second"}
    low, high = wave().values.min(), wave().values.max()
    assert printed.err == f"range {high - low:.8g}, lower {low:.8g}, upper {high:.8g}, bound 0.25\n"
    assert run("compress", field, tmp_path / "b.zip", "--abs", 0.25, "-q").err == ""


@pytest.mark.parametrize(
    ("given", "kind"), [("--abs", wb.Absolute), ("--rel", wb.Relative), ("--pointwise", wb.PointwiseRelative)]
)
def test_each_bound_is_the_one_that_is_promised(run: Run, field: Path, tmp_path: Path, given: str, kind: type) -> None:
    assert run("compress", field, tmp_path / "a.zip", given, 0.03, "--codec", "prequantised").status == 0
    archive = wb.open(tmp_path / "a.zip")
    assert archive.certificate["values"].bound == kind(0.03)
    assert archive.verify(wave()).passed


def test_speed_may_be_asked_for_in_place_of_a_codec(run: Run, field: Path, tmp_path: Path) -> None:
    assert run("compress", field, tmp_path / "a.zip", "--abs", 0.03, "--codec", "fast", "-q").status == 0
    assert wb.open(tmp_path / "a.zip").codec.id == "staged"
    refused = run("compress", field, tmp_path / "b.zip", "--abs", 0.03, "--codec", "fast", "--option", "deflate=true")
    assert "needs --codec NAME" in refused.err


def test_options_for_particles_arrive(run: Run, snapshot: Path, tmp_path: Path) -> None:
    options = ("--order", "free", "--velocities-abs", "0.5", "--store-permutation")
    assert run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.01, *options).status == 0
    archive = wb.open(tmp_path / "a.zip")
    assert archive.reordered
    assert archive.certificate["velocities"].bound == wb.Absolute(0.5)
    order = archive.permutation()
    assert abs(archive.decompress().positions.astype(float) - particles().positions[order]).max() <= 0.01
    assert (order != np.arange(len(order))).any()


def test_clusters_are_kept_when_asked_for(run: Run, snapshot: Path, tmp_path: Path) -> None:
    assert run("compress", snapshot, tmp_path / "plain.zip", "--abs", 0.05).status == 0
    printed = run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.05, "--keep-clusters", 0.2, "--json")
    assert (printed.status, printed.err) == (0, "")
    groups, plain, kept = (
        wb.friends_of_friends(found, 0.2)
        for found in (particles(), *(wb.open(tmp_path / name).decompress() for name in ("plain.zip", "a.zip")))
    )
    assert kept.equals(groups)
    assert not plain.equals(groups)
    (promised,) = printed.json["certificate"]["promises"][0]["keep"]
    assert (promised["linking_length"], promised["unit"], promised["min_members"]) == ([0.2], "spacing", 1)
    assert promised["groups"] == [len(groups)]
    assert promised["edited"] > 0


@pytest.mark.parametrize("solver", ["auto", "pgd", "refine"])
def test_options_for_clusters_arrive(run: Run, snapshot: Path, tmp_path: Path, solver: str) -> None:
    options = ("--keep-clusters", "0.3,0.2", "--cluster-unit", "length", "--min-members", 20, "--solver", solver)
    assert run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.05, "--order", "free", *options).status == 0
    archive = wb.open(tmp_path / "a.zip")
    same = wb.compress(
        particles(), wb.Absolute(0.05), order="free", keep=[wb.KeepClusters([0.2, 0.3], "length", 20, solver)]
    )
    assert archive.certificate == same.certificate
    np.testing.assert_array_equal(archive.decompress().positions, same.decompress().positions)
    assert archive.verify(particles()).passed


def test_people_read_which_clusters_are_kept(run: Run, snapshot: Path, tmp_path: Path) -> None:
    printed = run("compress", snapshot, tmp_path / "a.zip", "--abs", 0.05, "--keep-clusters", "0.2", "-m", "20")
    assert "kept: the friends-of-friends groups of at least 20 members at linking length 0.2, exactly" in printed.out
    assert re.search(r"differences left:? *0\n", printed.out)
    assert printed.err == "mean spacing 1, extent 16, 16, 16, bound 0.05\n"


def test_options_for_opening_arrive(run: Run, tmp_path: Path) -> None:
    wave().values.tofile(tmp_path / "raw.f32")
    assert run("compress", tmp_path / "raw.f32", tmp_path / "a.zip", "--shape", "20,24,28", "--abs", 0.1).status == 0
    assert wb.open(tmp_path / "a.zip").decompress().shape == (20, 24, 28)


def test_a_folder_or_a_zip_file_by_its_name(run: Run, field: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "a.zarr"):
        assert run("compress", field, tmp_path / name, "--abs", 0.1).status == 0
    assert (tmp_path / "a.zip").is_file()
    assert (tmp_path / "a.zarr" / "zarr.json").is_file()
    assert names(tmp_path) == {"field.npy", "a.zip", "a.zarr"}


@pytest.mark.parametrize("name", ["a.zip", "a.zarr"])
def test_an_archive_is_replaced_only_when_asked_for(run: Run, field: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert run("compress", field, out, "--abs", 0.1).status == 0
    before = wb.open(out).nbytes
    refused = run("compress", field, out, "--abs", 0.5)
    assert (refused.status, refused.out) == (2, "")
    assert "exists: choose another name, or pass --overwrite" in refused.err
    assert wb.open(out).nbytes == before
    assert run("compress", field, out, "--abs", 0.5, "--overwrite").status == 0
    assert wb.open(out).certificate["values"].bound == wb.Absolute(0.5)
    assert names(tmp_path) == {"field.npy", name}


@pytest.mark.parametrize("target", ["notes.npy", "folder", "other.zip"])
def test_nothing_but_an_archive_is_overwritten(run: Run, field: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years")
    np.savez(tmp_path / "other.npz", a=1)
    (tmp_path / "other.npz").rename(tmp_path / "other.zip")
    np.save(tmp_path / "notes.npy", np.arange(3))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    refused = run("compress", field, tmp_path / target, "--abs", 0.5, "--overwrite")
    assert refused.status == 2
    assert "--overwrite replaces only archives" in refused.err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_what_cannot_be_written_is_refused_before_work(
    run: Run, field: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "open_all_frames", lambda *options: pytest.fail("the file was read"))
    (tmp_path / "there.zip").write_bytes(b"")
    for out in ("there.zip", "missing/a.zip"):
        assert run("compress", field, tmp_path / out, "--abs", 0.1).status == 2
    assert run("compress", field, tmp_path / "a.zip", "--abs", 0.1, "--codec", "nonsense").status == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--abs", "-1"], "must be finite, not negative; got -1"),
        (["--abs", "nan"], "must be finite, not negative; got nan"),
        (["--pointwise", "1"], "less than 1"),
        (["--abs", "1", "--velocities-abs", "-2"], "must be finite, not negative; got -2"),
        (["--abs", "1", "--order", "free"], "for particles; got a field"),
        (["--abs", "1", "--velocities-abs", "1"], "for particles; got a field"),
        (["--abs", "1", "--codec", "lattice"], "lattice is for particles"),
        (["--abs", "1", "--codec", "gzip"], "--codec must be one of lattice, interpolation, sz3"),
        (["--abs", "1", "--keep-clusters", "0.2"], "--keep-clusters is for particles; "),
        (["--abs", "1", "--min-members", "20"], "--min-members needs --keep-clusters B, the linking length of the groups"),
        (["--abs", "1", "--cluster-unit", "length"], "--cluster-unit needs --keep-clusters B"),
        (["--abs", "1", "--solver", "pgd"], "--solver needs --keep-clusters B"),
        (["--abs", "1", "--keep-clusters", "-1"], "--keep-clusters must be positive and finite; got -1.0"),
        (["--abs", "1", "--keep-clusters", "nan"], "--keep-clusters must be positive and finite; got nan"),
        (["--abs", "1", "--keep-clusters", "0.2", "-m", "0"], "--min-members must be a whole number, at least 1; got 0"),
        (["--abs", "1", "--frame", "1"], "frame"),
        (["--abs", "1", "--shape", "3,3"], "makes no sense"),
    ],
)
def test_wrong_input_is_one_sentence(run: Run, field: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    refused = run("compress", field, tmp_path / "a.zip", *arguments)
    assert (refused.status, refused.out) == (2, "")
    *scale, last = refused.err.splitlines()
    assert last.startswith("workbench: ")
    assert message in last
    assert [line for line in scale if not line.startswith("range ")] == []
    assert names(tmp_path) == {"field.npy"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["in.npy", "out.zip"],
        ["in.npy", "out.zip", "--abs", "1", "--rel", "1"],
        ["in.npy", "--abs", "1"],
        ["in.npy", "out.zip", "--abs", "small"],
        ["in.npy", "out.zip", "--abs", "kpc"],
        ["in.npy", "out.zip", "--rel", "1 %"],
        ["in.npy", "out.zip", "--abs", "1", "--order", "random"],
        ["in.npy", "out.zip", "more.zip", "--abs", "1"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-everything"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-clusters"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-clusters", "0.2,long"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-clusters", "0.2", "--cluster-unit", "metre"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-clusters", "0.2", "--min-members", "1.5"],
        ["in.npy", "out.zip", "--abs", "1", "--keep-clusters", "0.2", "--solver", "magic"],
    ],
)
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str]) -> None:
    refused = run("compress", *arguments)
    assert (refused.status, refused.out) == (2, "")
    assert "usage: workbench" in refused.err


def test_an_archive_is_no_original(run: Run, archive: Path, tmp_path: Path) -> None:
    refused = run("compress", archive, tmp_path / "again.zip", "--abs", 1)
    assert refused.status == 2
    assert "is an archive: compress the original it was made from" in refused.err


def test_an_archive_that_appeared_meanwhile_is_kept(
    run: Run, field: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody_is_faster(*arguments: object, **options: object) -> wb.Archive:
        wb.compress(wave(), wb.Absolute(0.3)).save(tmp_path / "a.zip")
        return wb.compress(*arguments, **options)

    monkeypatch.setattr(command, "compress", somebody_is_faster)
    assert run("compress", field, tmp_path / "a.zip", "--abs", 0.1).status == 2
    assert wb.open(tmp_path / "a.zip").certificate["values"].bound == wb.Absolute(0.3)
    assert names(tmp_path) == {"field.npy", "a.zip"}


def test_a_codec_that_cannot_run_here_is_refused_before_work(
    run: Run, field: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.codecs.sz3.SZ3.module", "no_such_module_anywhere")
    monkeypatch.setattr(command, "open_all_frames", lambda *options: pytest.fail("the file was read"))
    refused = run("compress", field, tmp_path / "a.zip", "--abs", 1, "--codec", "sz3")
    assert refused.status == 2
    assert "sz3 needs no_such_module_anywhere, which is not installed" in refused.err


@pytest.mark.parametrize(
    ("file", "opening", "bound"),
    [
        ("disperse_32/disperse_simu_32_id.gad", (), ("--abs", "10", "--order", "free", "--velocities-abs", "1")),
        ("hacc_nyx_toy/m000.full.mpicosmo.50", (), ("--rel", "1e-4")),
        ("sperr_fields/wmag91.float", ("--shape", "91,91,91"), ("--rel", "1e-3", "--codec", "sz3")),
        ("cesm/ihesp14.TS.12mon.nc", ("--name", "TS"), ("--abs", "0.1", "--codec", "zfp")),
    ],
)
def test_real_files_there_and_back(
    run: Run, shared_data: Path, tmp_path: Path, file: str, opening: tuple[str, ...], bound: tuple[str, ...]
) -> None:
    original, out = shared_data / file, tmp_path / "a.zip"
    made = run("compress", original, out, *opening, *bound, "--json")
    assert made.status == 0, made.err
    assert made.json["ratio"] > 2
    verified = run("verify", out, original, *opening, "--json")
    assert verified.status == 0, verified.err
    assert all(check["ok"] for check in verified.json["checks"])
    assert run("decompress", out, tmp_path / "b.npz").status == 0
    assert names(tmp_path) == {"a.zip", "b.npz"}
