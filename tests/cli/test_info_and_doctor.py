"""What `info` says of archives without decoding them, and what `doctor` knows of codecs."""

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from archive.forging import decoding_with
from cli.conftest import Run, damage, particles
from workbench import codecs
from workbench.archive import golden
from workbench.codecs.codec import Codec

KEYS = {
    "file", "kind", "holds", "shape", "dtype", "codec", "bound", "original_bytes", "archive_bytes", "ratio",
    "bits_per_value", "arrays", "certificate", "provenance",
}


def keys(described: dict) -> set[str]:
    return {key for key in described if not key.startswith("metadata.")}


def test_an_archive_of_particles_describes_itself(run: Run, archive: Path) -> None:
    printed = run("info", archive, "--json")
    assert (printed.status, printed.err) == (0, "")
    found, opened = printed.json, wb.open(archive)
    assert keys(found) == KEYS | {"box", "order", "bits_per_particle"}
    assert (found["kind"], found["holds"], found["shape"]) == ("archive", "particles", [4096, 3])
    assert (found["box"], found["order"]) == ([16.0, 16.0, 16.0], "free")
    assert found["codec"] == opened.codec.to_dict()
    assert found["bound"] == {"kind": "absolute", "eb": 0.01}
    assert set(found["arrays"]) == {"positions", "velocities", "ids", "extents"}
    for name, array in found["arrays"].items():
        chunks = [path for path in (archive / name / "c").rglob("*") if path.is_file()]
        assert (array["chunks"], array["bytes"]) == (len(chunks), sum(path.stat().st_size for path in chunks))
    assert found["provenance"]["versions"]["lossbench"] == wb.__version__
    assert found["metadata.seed"] == particles().metadata["seed"]


def test_an_archive_of_a_field_describes_itself(run: Run, field_archive: Path) -> None:
    found = run("info", field_archive, "--json").json
    assert keys(found) == KEYS | {"name", "spacing"}
    assert (found["holds"], found["shape"], found["codec"]["id"]) == ("field", [20, 24, 28], "prequantised")


def test_people_read_sizes_and_certificate(run: Run, archive: Path) -> None:
    out = run("info", archive).out
    assert "4096, 3" in out
    assert "bytes: 4,096 x 3 float32, lattice, chunks: " in out
    assert "positions: every value within 0.01 of the original" in out
    assert "{" not in out


def test_the_promise_about_clusters_is_shown(run: Run, clusters_archive: Path) -> None:
    words = "kept: the friends-of-friends groups of at least 5 members at linking length 0.2 and 0.3, exactly"
    out, found = run("info", clusters_archive).out, run("info", clusters_archive, "--json").json
    kept = wb.open(clusters_archive).certificate["positions"].keep
    assert words in out
    assert kept[0]["partition"][1] in out
    assert kept[0]["not_implied"] in out
    assert found["certificate"]["promises"][0]["keep"] == [dict(promised) for promised in kept]
    assert words in found["certificate"]["promises"][0]["promise"]


def test_nothing_is_decoded_for_it(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Codec, "decode", lambda *_: pytest.fail("a chunk was decoded"))
    for chunk in (archive / "positions" / "c").rglob("0"):
        if chunk.is_file():
            damage(chunk)
    assert run("info", archive).status == 0


def test_a_missing_chunk_is_named(run: Run, archive: Path) -> None:
    (archive / "positions/c/2/0").unlink()
    refused = run("info", archive)
    assert (refused.status, refused.out) == (1, "")
    assert "positions/c/2/0" in refused.err


def test_groups_can_be_found_in_an_archive(run: Run, archive: Path) -> None:
    groups = wb.friends_of_friends(wb.open(archive).decompress(), 0.2)
    assert run("fof", archive, "--json").json["groups"] == len(groups)


def test_doctor_lists_every_codec(run: Run) -> None:
    found = run("doctor", "--json").json
    assert {key: found[key] for key in found if key.startswith("codec_")} == {
        f"codec_{name}": reason or "available" for name, reason in codecs.status().items()
    }


def test_doctor_says_why_a_codec_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.codecs.zfp.ZFP.module", "no_such_module_anywhere")
    printed = run("doctor")
    assert printed.status == 0
    (line,) = [line for line in printed.out.splitlines() if line.startswith("codec zfp ")]
    assert "needs no_such_module_anywhere, which is not installed: pip install 'lossbench[codecs]'" in line


def test_doctor_says_that_an_installed_library_cannot_be_imported(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library_of_another_machine.py").write_text("raise OSError('wrong ELF class')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("workbench.codecs.zfp.ZFP.module", "library_of_another_machine")
    said = run("doctor", "--json").json["codec_zfp"]
    assert said.startswith("installed, but it cannot be imported: OSError: wrong ELF class"), said


def test_doctor_decodes_an_archive_of_each_codec(run: Run) -> None:
    printed = run("doctor", "--json")
    found = {key: said for key, said in printed.json.items() if key.startswith("archive_")}
    assert set(found) == {f"archive_{name}" for name in golden.expected_arrays()}
    right = ("decodes as when it was written (lossbench ", "not tried: ")
    wrong = [said for said in found.values() if not said.startswith(right)]
    assert (wrong, printed.status) == ([], 0)


def test_doctor_says_which_codec_fails_and_what_wrote_the_archive(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zfpy")
    with decoding_with(monkeypatch, "import workbench.codecs.zfp as z; z.ZFP._decode_piece = lambda *given: 1 / 0\n"):
        printed = run("doctor")
    assert printed.status == 1
    (line,) = [line for line in printed.out.splitlines() if " FAILS: " in line]
    said = r"zfp could not decode: ZeroDivisionError.*\(it was written with lossbench 0.1.0.*zfpy 1.0.1.*"
    assert re.fullmatch(f"archive zfp +FAILS: {said}", line)


def test_doctor_does_not_try_archives_of_codecs_that_are_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.codecs.sz3.SZ3.module", "no_such_module_anywhere")
    printed = run("doctor", "--json")
    assert printed.status == 0
    assert printed.json["archive_sz3"].startswith("not tried: sz3 needs no_such_module_anywhere")


def test_doctor_compares_with_checksums_that_are_not_in_the_archives(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "checksum", lambda values: "another")
    monkeypatch.setattr(golden, "expected_arrays", lambda: {"pcodec": {"values": "one"}, "gone": {"values": "one"}})
    printed = run("doctor", "--json")
    assert printed.status == 1
    assert re.match("FAILS: mask, values: other values than those that lossbench 0.1.0,", printed.json["archive_pcodec"])
    assert printed.json["archive_gone"].startswith("FAILS: ")


def test_doctor_says_that_kernels_run_on_one_thread(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.backend.has_openmp", lambda: False)
    monkeypatch.setattr(golden, "outcomes", lambda: iter(()))
    assert run("doctor", "--json").json["kernels"].startswith("compiled without OpenMP, so each runs on one thread: ")


def test_doctor_decodes_nothing_without_kernels(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> int:
        raise wb.WorkbenchError("the compiled kernels are missing")

    monkeypatch.setattr("workbench.backend.threads", missing)
    printed = run("doctor", "--json")
    assert (printed.status, printed.json["kernels"]) == (1, "the compiled kernels are missing")
    assert not [key for key in printed.json if key.startswith("archive_")]


def test_doctor_knows_whether_zarr_can_open_archives(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("zarr")
    assert run("doctor", "--json").json["zarr_codec"] == "registered: Zarr can open archives"
    broken = importlib.metadata.EntryPoint("lossbench", "workbench.archive.zarr_codec:NoSuchCodec", "zarr.codecs")
    points = importlib.metadata.entry_points
    for pretended, expected in (((), "not registered: install"), ((broken,), "registered, but it cannot be loaded")):
        monkeypatch.setattr(
            importlib.metadata, "entry_points",
            lambda pretended=pretended, **chosen: pretended if chosen == {"group": "zarr.codecs"} else points(**chosen),
        )
        assert run("doctor", "--json").json["zarr_codec"].startswith(expected)


def test_the_mean_of_values_whose_sum_overflows_is_shown(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "large.npy", np.array([1.7e308, 1.7e308, 1.6e308, -1.6e308]))
    printed = run("info", tmp_path / "large.npy", "--json")
    assert (printed.status, printed.err) == (0, "")
    assert printed.json["mean"] == pytest.approx(0.85e308)


@pytest.mark.parametrize("others", [{}, {"T": ("a", [1.0, 2.0])}], ids=["alone", "with others"])
def test_an_array_of_many_axes_is_listed(run: Run, tmp_path: Path, others: dict[str, Any]) -> None:
    xr.Dataset({"many": (tuple("abcde"), np.ones((2, 1, 1, 1, 3))), **others}).to_netcdf(tmp_path / "x.nc")
    done = run("info", tmp_path / "x.nc")
    assert done.status == 0
    assert "2 x 1 x 1 x 1 x 3" in done.out
    assert wb.compress(tmp_path / "x.nc", wb.Exact())["many"].verify().passed
