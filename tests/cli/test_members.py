"""`workbench info`, `verify` and `salvage` of datasets: each member has its row, its outcome and its name."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from cli.conftest import Run, damage
from cli.datasets import RULES, dataset, with_groups, written

MEMBERS = ["T", "P", "Q", "flag", "station", "time", "lat", "lon"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "ds.nc")


@pytest.fixture
def archive(run: Run, source: Path, tmp_path: Path) -> Path:
    """Of the dataset, in a folder."""
    assert run("compress", source, tmp_path / "a.zarr", *RULES, "-q").status == 0
    return tmp_path / "a.zarr"


def damage_member(archive: Path, name: str) -> str:
    """Damage the first chunk of a member; returns its key."""
    chunk = sorted(file for file in (archive / name / "c").rglob("*") if file.is_file())[0]
    damage(chunk)
    return chunk.relative_to(archive).as_posix()


# info


def test_info_lists_the_arrays_of_a_file(run: Run, source: Path) -> None:
    found = run("info", source, "--json").json
    arrays = {array["name"]: array for array in found["arrays"]}
    assert (found["kind"], found["attributes"], set(arrays)) == ("dataset", {"title": "a test"}, set(MEMBERS))
    given = dataset()
    assert arrays["T"] == {
        "name": "T", "dimensions": ["time", "lat", "lon"], "shape": [10, 12, 16], "dtype": "float32", "units": "K",
        "coordinate": False, "minimum": given["T"].values.min(), "maximum": given["T"].values.max(),
        "start_with": arrays["T"]["start_with"],
    }
    assert 0.005 < arrays["T"]["start_with"] / given["T"].values.std() <= 0.01
    assert arrays["lat"]["coordinate"] is True
    assert "minimum" not in arrays["station"]
    shown = run("info", source)
    assert (shown.status, shown.err) == (0, "")
    assert "T        time, lat, lon  10 x 12 x 16  float32         K" in shown.out


def test_large_arrays_are_not_read(run: Run, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.cli.datasets.MOST_READ", 100)
    found = {array["name"]: array for array in run("info", source, "--json").json["arrays"]}
    assert "minimum" not in found["T"]
    assert found["lat"]["minimum"] == -80.0


def test_info_of_an_archive_has_a_row_for_each_member(run: Run, archive: Path) -> None:
    found = run("info", archive, "--json").json
    assert (found["kind"], found["holds"], found["attributes"]) == ("archive", "collection", {"title": "a test"})
    assert [member["name"] for member in found["members"]] == MEMBERS
    shown = run("info", archive)
    lines = shown.out.splitlines()
    assert [line.split()[0] for line in lines[-len(MEMBERS) - 1 :]] == [*MEMBERS, "next"]
    assert any(line.startswith("attribute title") for line in lines)


def test_info_shows_groups(run: Run, tmp_path: Path) -> None:
    wb.compress(with_groups(tmp_path / "ds.nc"), {"*": wb.Relative(1e-3)}, out=tmp_path / "a.zip")
    assert set(run("info", tmp_path / "a.zip", "--json").json["groups"]) == {"ocean"}
    assert "group ocean" in run("info", tmp_path / "a.zip").out


def test_info_of_a_member_is_that_of_an_archive(run: Run, archive: Path, field_archive: Path, source: Path) -> None:
    found = run("info", archive, "--member", "T", "--json").json
    other = run("info", field_archive, "--json").json
    assert {name for name in other if "." not in name} == {name for name in found if "." not in name}
    assert run("info", archive, "--member", "station").status == 0
    assert (found["name"], found["shape"], found["bound"]["eb"]) == ("T", [10, 12, 16], 0.01)
    for path, message in (
        (field_archive, "--member is for archives of many members"), (source, "--member is for archives"),
    ):
        refused = run("info", path, "--member", "T")
        assert (refused.status, message in refused.err) == (2, True)
    refused = run("info", archive, "--member", "Tt")
    assert (refused.status, "got 'Tt': did you mean 'T'?" in refused.err) == (2, True)


# verify


def test_all_members_pass(run: Run, archive: Path, source: Path) -> None:
    assert run("verify", archive).out.endswith("all 8 members: passed; without the original, only checksums were checked\n")
    checked = run("verify", archive, source)
    assert (checked.status, checked.err) == (0, "")
    assert checked.out.endswith("all 8 members and their original: passed\n")
    found = run("verify", archive, source, "--json").json
    assert (found["ok"], found["damaged"], [member["name"] for member in found["members"]]) == (True, [], MEMBERS)
    (check,) = [check for check in found["members"][0]["checks"] if check["name"] == "values_max_error"]
    assert 0 < check["value"] <= check["limit"] == 0.01


def test_members_that_fail_are_named_and_their_chunks_listed(run: Run, archive: Path) -> None:
    keys = [damage_member(archive, name) for name in ("T", "flag")]
    failed = run("verify", archive)
    assert failed.status == 1
    assert "2 of 8 members fail: 'T': " in failed.err
    assert "; 'flag': " in failed.err
    assert [line.split()[1] for line in failed.out.splitlines() if line.startswith("damaged")] == keys
    found = run("verify", archive, "--json").json
    assert (found["ok"], found["status"], [chunk["chunk"] for chunk in found["damaged"]]) == (False, 1, keys)
    assert [member["name"] for member in found["members"] if not member["ok"]] == ["T", "flag"]


def test_damaged_documents_are_listed(run: Run, archive: Path) -> None:
    damage(archive / "lossbench" / "root.json.z")
    failed = run("verify", archive)
    assert failed.status == 1
    assert "all 8 members are intact, but documents are damaged: document lossbench/root.json.z" in failed.err


def test_another_original_fails(run: Run, archive: Path, tmp_path: Path) -> None:
    given = dataset()
    for other, message in (
        (given.assign(T=given["T"] + 1), "1 of 8 members fail: 'T': "),
        (given.assign(T=given["T"].astype("f8")), "'T' was made from a field, 10 x 12 x 16 float32; got a field"),
        (given.drop_vars("Q"), "only the archive has 'Q'"),
        (given.assign(U=given["T"]), "only it has 'U'"),
        (given.isel(lon=slice(3)), "is not the original: "),
    ):
        other.to_netcdf(tmp_path / "other.nc")
        failed = run("verify", archive, tmp_path / "other.nc")
        assert (failed.status, message in failed.err) == (1, True), failed.err


def test_an_archive_may_be_the_original(run: Run, archive: Path, source: Path, tmp_path: Path) -> None:
    assert run("compress", source, tmp_path / "exact.zip", "--exact", "*", "-q").status == 0
    assert run("verify", archive, tmp_path / "exact.zip").status == 0
    assert run("verify", tmp_path / "exact.zip", archive).status == 1


def test_an_option_for_one_array_is_refused(run: Run, archive: Path, source: Path) -> None:
    refused = run("verify", archive, source, "--name", "T")
    assert (refused.status, "--name is for one array" in refused.err) == (2, True)


# salvage


def test_an_undamaged_archive_is_salvaged_whole(run: Run, archive: Path, tmp_path: Path) -> None:
    saved = run("salvage", archive, tmp_path / "saved.nc", "--json")
    assert saved.status == 0
    assert (saved.json["lost"], saved.json["damaged"], saved.json["members"]) == (0, [], MEMBERS)


def test_members_that_are_lost_are_left_out(run: Run, archive: Path, tmp_path: Path) -> None:
    key = damage_member(archive, "flag")
    saved = run("salvage", archive, tmp_path / "saved.nc")
    assert saved.status == 1
    assert f"damaged  {key}  " in saved.out
    with xr.open_dataset(tmp_path / "saved.nc") as found:
        assert set(found.variables) == set(MEMBERS) - {"flag"}
    found = run("salvage", archive, tmp_path / "saved.zarr", "--json").json
    assert (found["lost"], found["lost_of_members"], found["status"]) == (192, {"flag": 192}, 1)


def test_lost_chunks_of_a_member_are_missing_values(run: Run, tmp_path: Path) -> None:
    rules = {"T": {"bound": wb.Absolute(0.01), "codec": "prequantised", "chunk_values": 200}, "*": wb.Exact()}
    wb.compress(dataset(), rules).save(tmp_path / "a.zarr")
    damage_member(tmp_path / "a.zarr", "T")
    found = run("salvage", tmp_path / "a.zarr", tmp_path / "saved.nc", "--json").json
    with xr.open_dataset(tmp_path / "saved.nc") as saved:
        assert 0 < found["lost"] == int(np.isnan(saved["T"]).sum()) < saved["T"].size
    one = run("salvage", tmp_path / "a.zarr", tmp_path / "saved.npz", "--member", "T", "--json").json
    assert one["lost"] == found["lost"]


def test_a_cut_file_is_salvaged(run: Run, archive: Path, tmp_path: Path) -> None:
    wb.open(archive).save(tmp_path / "a.zip")
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(data[: 3 * len(data) // 5])
    assert run("verify", tmp_path / "cut.zip").status == 1
    saved = run("salvage", tmp_path / "cut.zip", tmp_path / "saved.nc", "--json")
    assert saved.status == 1
    assert "P" in saved.json["members"]
    assert {chunk["chunk"] for chunk in saved.json["damaged"]} >= {"zarr.json"}


def test_nothing_left_is_a_sentence(run: Run, archive: Path, tmp_path: Path) -> None:
    for name in MEMBERS:
        damage_member(archive, name)
    refused = run("salvage", archive, tmp_path / "saved.nc")
    assert (refused.status, "can be read: 8 parts are damaged" in refused.err) == (1, True)
    assert not (tmp_path / "saved.nc").exists()
