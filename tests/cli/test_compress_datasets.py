"""`workbench compress` for datasets: rules by name, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from cli.conftest import Run, names
from cli.datasets import RULES, dataset, with_groups, written

MEMBER = {"name", "kind", "size", "codec", "bound", "bytes", "original_bytes", "ratio", "largest_error", "certificate"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "ds.nc")


def bounds_in(path: Path) -> dict[str, wb.Absolute]:
    archive = wb.open(path)
    return {name: archive[name].certificate["values"].bound for name in archive}


def test_each_member_has_the_bound_of_its_rule(run: Run, source: Path, tmp_path: Path) -> None:
    done = run("compress", source, tmp_path / "a.zip", *RULES, "-q")
    assert (done.status, done.err) == (0, "")
    assert bounds_in(tmp_path / "a.zip") == {
        "T": wb.Absolute(0.01), "P": wb.Relative(1e-3), "Q": wb.PointwiseRelative(1e-3),
        **dict.fromkeys(["flag", "station", "time", "lat", "lon"], wb.Exact()),
    }
    given, decoded = dataset(), wb.open(tmp_path / "a.zip").to_xarray()
    assert abs(decoded["T"] - given["T"]).max() <= 0.01
    assert abs(decoded["P"] - given["P"]).max() <= 1e-3 * (given["P"].max() - given["P"].min())
    assert (abs(decoded["Q"].astype("f8") - given["Q"]) <= 1e-3 * given["Q"].astype("f8")).all()
    xr.testing.assert_identical(decoded["flag"], given["flag"])
    rows = [line.split()[0] for line in done.out.splitlines()]
    assert rows[rows.index("name") + 1 :] == list(wb.open(tmp_path / "a.zip"))
    assert {"holds", "original", "archive", "ratio"} <= set(rows)


def test_json_has_the_members(run: Run, source: Path, tmp_path: Path) -> None:
    found = run("compress", source, tmp_path / "a.zip", *RULES, "--json").json
    assert {member["name"]: member["bound"]["eb"] for member in found["members"]}["T"] == 0.01
    assert all(set(member) == MEMBER for member in found["members"])
    assert found["archive_bytes"] > sum(member["bytes"] for member in found["members"])
    assert found["original_bytes"] == sum(member["original_bytes"] for member in found["members"])
    temperature = found["members"][0]
    assert 0 < temperature["largest_error"] <= temperature["certificate"]["promises"][0]["limit"]["value"] == 0.01


def test_a_bound_alone_is_that_of_all_numbers_that_need_one(run: Run, source: Path, tmp_path: Path) -> None:
    assert run("compress", source, tmp_path / "a.zip", "--rel", "1e-4", "--codec", "prequantised", "-q").status == 0
    assert bounds_in(tmp_path / "a.zip")["P"] == wb.Relative(1e-4)
    assert bounds_in(tmp_path / "a.zip")["lat"] == bounds_in(tmp_path / "a.zip")["flag"] == wb.Exact()
    fields = [archive for archive in wb.open(tmp_path / "a.zip").values() if archive.kind == "field"]
    assert {archive.codec.id for archive in fields} == {"prequantised"}


@pytest.mark.few(1)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_bound_for_all_others_counts_last(run: Run, source: Path, tmp_path: Path, order: tuple[int, int]) -> None:
    for all_others in (["--rel", "1e-4"], ["--rel", "*=1e-4"]):
        rules = [["--abs", "T=0.1"], all_others]
        given = [word for place in order for word in rules[place]]
        assert run("compress", source, tmp_path / "a.zip", *given, "--overwrite", "-q").status == 0
        assert bounds_in(tmp_path / "a.zip")["T"] == wb.Absolute(0.1)
        assert bounds_in(tmp_path / "a.zip")["Q"] == wb.Relative(1e-4)


def test_one_array_by_name_is_an_archive_of_one(run: Run, source: Path, tmp_path: Path) -> None:
    assert run("compress", source, tmp_path / "a.zip", "--abs", "0.1", "--name", "T", "-q").status == 0
    assert wb.open(tmp_path / "a.zip").kind == "field"


def test_groups_have_rules(run: Run, tmp_path: Path) -> None:
    source = with_groups(tmp_path / "groups.nc")
    assert run("compress", source, tmp_path / "a.zip", "--abs", "T=0.1", "--rel", "ocean=1e-3", "-q").status == 0
    found = bounds_in(tmp_path / "a.zip")
    assert (found["T"], found["ocean/P"], found["lat"]) == (wb.Absolute(0.1), wb.Relative(1e-3), wb.Exact())


def test_workers_write_the_members(run: Run, source: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="needs the dask extra")
    for out, how in (("alone.zip", ()), ("workers.zip", ("--workers", 1))):
        assert run("compress", source, tmp_path / out, "--rel", "1e-3", *how, "-q").status == 0
    alone, workers = wb.open(tmp_path / "alone.zip"), wb.open(tmp_path / "workers.zip")
    xr.testing.assert_identical(alone.to_xarray(), workers.to_xarray())
    assert names(tmp_path) == {"ds.nc", "alone.zip", "workers.zip"}


def test_notes_name_their_member(run: Run, source: Path, tmp_path: Path) -> None:
    done = run("compress", source, tmp_path / "a.zip", "--abs", "T=1e5", "--exact", "*", "-q")
    assert done.status == 0
    assert done.err.startswith("note: T: ")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (["--abs", "T=0.01"], "'P', 'Q' have no bound: add a rule, such as --abs 'P=EB', or --exact '*' for all others"),
        (["--abs", "T"], "for a member of a dataset, NAME=EB; got 'T'"),
        (["--abs", "T="], "expected a number, or one with a unit such as \"10 pc\", after the name; got 'T='"),
        (["--rel", "T=1 K"], "expected a number such as 0.001, after the name; got 'T=1 K'"),
        (["--rel", "=1"], "expected a name before the ="),
        (["--exact", "T=1"], "expected the name of a member, without a number"),
        (["--abs", "T=-1", "--rel", "0.1"], "must be finite, not negative; got -1"),
        (["--abs", "Tt=0.01", "--exact", "*"], "got 'Tt': did you mean 'T'?"),
        (["--abs", "X*=0.01", "--exact", "*"], "expected the name of a member, of a group, or a pattern; got 'X*'"),
        (["--abs", "T=0.01", "--rel", "T=0.1"], "'T' must have one bound; got --abs T=0.01 and --rel T=0.1: leave one out"),
        (["--abs", "0.1", "--exact", "*"], "'*' must have one bound; got --abs 0.1 and --exact *"),
        (["--abs", "0.1", "--abs", "0.2"], "'*' must have one bound"),
        (["--abs", "0.1", "--rel", "0.2"], "argument --rel: not allowed with argument --abs"),
        (["--abs", "T=0.1m", "--exact", "*"], "'T': "),
        (["--abs", "T=0.1", "--name", "T"], "--name is for one array or particles"),
        (["--rel", "0.1", "--order", "free"], "--order is for particles"),
        (["--rel", "0.1", "--velocities-abs", "1"], "--velocities-abs is for particles"),
        (["--rel", "0.1", "--keep-clusters", "0.2"], "--keep-clusters is for particles"),
        (["--rel", "0.1", "--store-permutation"], "--store-permutation is for particles"),
        (["--rel", "0.1", "--safeguard", "sign"], "--safeguard is for one field"),
    ],
)
def test_wrong_rules_are_one_sentence(run: Run, source: Path, tmp_path: Path, rules: list[str], message: str) -> None:
    refused = run("compress", source, tmp_path / "a.zip", *rules, "-q")
    assert (refused.status, refused.out) == (2, "")
    last = refused.err.splitlines()[-1]
    assert last.startswith("workbench: ")
    assert message in last
    assert names(tmp_path) == {"ds.nc"}


def test_a_file_that_is_no_dataset_is_refused(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones((4, 5), np.float32))
    refused = run("compress", tmp_path / "one.npy", tmp_path / "a.zip", "--abs", "first=0.1")
    assert refused.status == 2
    assert "must be a file that xarray opens as a dataset" in refused.err


def test_what_is_no_file_of_a_dataset_is_refused(run: Run, source: Path, tmp_path: Path) -> None:
    assert run("compress", source, tmp_path / "a.zip", "--rel", "1e-3", "-q").status == 0
    for path, message in (
        (tmp_path / "missing.nc", "there is no file or folder"),
        (tmp_path / "missing-*.nc", "no file matches the pattern"),
        (tmp_path / "a.zip", "is an archive: compress the original it was made from"),
    ):
        refused = run("compress", path, tmp_path / "b.zip", "--abs", "T=0.1", "--exact", "*")
        assert (refused.status, message in refused.err) == (2, True), refused.err


def test_a_pattern_is_one_dataset(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("dask", reason="needs the dask extra")
    for number, part in enumerate((slice(0, 4), slice(4, 10))):
        dataset().isel(time=part).assign_attrs(number=number).to_netcdf(tmp_path / f"part-{number}.nc")
    pattern = tmp_path / "part-*.nc"
    for bounds in (RULES, ("--rel", "1e-3")):
        done = run("compress", pattern, tmp_path / "a.zip", *bounds, "--overwrite", "-q")
        assert done.status == 0
        assert done.err == "note: left out: attributes of the dataset that differ among the files: number\n"
    assert wb.open(tmp_path / "a.zip")["T"].data.layout.shape == (10, 12, 16)
    assert run("verify", tmp_path / "a.zip", pattern, "-q").status == 0
    described = run("info", pattern, "--json").json
    assert {one["name"]: one["shape"] for one in described["arrays"]}["T"] == [10, 12, 16]
    assert run("tune", pattern, "--ratio", "2", "--codec", "prequantised", "-q").status == 0


def test_commands_for_one_array_refuse_archives_of_many(run: Run, source: Path, tmp_path: Path) -> None:
    assert run("compress", source, tmp_path / "a.zip", "--rel", "1e-3", "-q").status == 0
    for command in (["fof", "-b", "0.2"], ["compress", tmp_path / "b.zip", "--abs", "1"], ["tune", "--ratio", "9"]):
        refused = run(command[0], tmp_path / "a.zip", *command[1:])
        assert refused.status == 2
        said = ": compress the original" if command[0] == "compress" else " of 8 members, and this command takes one array"
        assert f"is an archive{said}" in refused.err
