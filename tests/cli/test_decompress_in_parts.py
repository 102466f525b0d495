"""`workbench decompress` of datasets chunk by chunk: the same files as from memory, of which little is used."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import workbench as wb
from cli.conftest import Run, damage, names
from cli.datasets import dataset, without_losses, written
from combinations import in_pairs
from workbench.cli import decoded_variables
from workbench.xarray.decoding import ArchivedValues

RULES = {"T": wb.Absolute(0.01), "P": wb.Absolute(0.9), "Q": wb.Absolute(1e-5), "*": wb.Exact()}
CHUNK = 400
FILE_CHUNK = 5 * 12 * 16   # of T in the source, and so in the file that is written


@pytest.fixture(params=["with Dask", "without Dask"])
def in_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all arrays, also small ones, are written by chunk."""
    monkeypatch.setattr(decoded_variables, "SMALL", 0)
    if request.param == "with Dask":
        pytest.importorskip("dask", reason="needs the dask extra")
        return True
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "dask" else find(name))
    return False


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    wb.compress(written(tmp_path / "ds.nc"), RULES, chunk_values=CHUNK, out=tmp_path / "a.zarr")
    return tmp_path / "a.zarr"


@pytest.mark.few(1)
@pytest.mark.parametrize(("suffix", "region"), in_pairs([".nc", ".zarr"], [None, {"time": (3, 8), "lat": (2, 11)}]))
def test_parts_make_the_whole(
    run: Run, archive: Path, tmp_path: Path, suffix: str, region: dict[str, Any] | None, in_parts: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, sizes = ArchivedValues.read, []

    def seen(self: ArchivedValues, ends: list[tuple[int, int]]) -> Any:
        sizes.append(math.prod(high - low for low, high in ends))
        return read(self, ends)

    monkeypatch.setattr(ArchivedValues, "read", seen)
    ends = ",".join(f"{name}={low}:{high}" for name, (low, high) in (region or {}).items())
    chosen = ("--region", ends) if ends else ()
    done = run("decompress", archive, tmp_path / f"back{suffix}", *chosen, "-q")
    assert done.status == 0, done.err
    assert [line.split()[1] for line in done.err.splitlines()] == ["P"]   # its packing would break the bound
    if region is None:
        assert (max(sizes) <= FILE_CHUNK) is in_parts
    wanted = wb.open(archive).to_xarray().isel({name: slice(*ends) for name, ends in (region or {}).items()})
    how = {"consolidated": False} if suffix == ".zarr" else {}
    with xr.open_dataset(tmp_path / f"back{suffix}", **how) as found:
        xr.testing.assert_identical(without_losses(found.load()), wanted)


@pytest.mark.few(1)
def test_packing_is_compared_in_parts(run: Run, archive: Path, tmp_path: Path, in_parts: bool) -> None:
    wb.compress(tmp_path / "ds.nc", {"*": wb.Exact()}, chunk_values=CHUNK, out=tmp_path / "exact.zip")
    done = run("decompress", tmp_path / "exact.zip", tmp_path / "back.nc", "-q")
    assert (done.status, done.err) == (0, "")
    with xr.open_dataset(tmp_path / "back.nc") as found:
        assert found["P"].encoding["scale_factor"] == 1.0
        np.testing.assert_array_equal(found["P"], dataset()["P"])


@pytest.mark.few(1)
def test_a_damaged_chunk_names_its_member(run: Run, archive: Path, tmp_path: Path, in_parts: bool) -> None:
    chunk = sorted(file for file in (archive / "T" / "c").rglob("*") if file.is_file())[-1]
    damage(chunk)
    for suffix in (".nc", ".zarr"):
        failed = run("decompress", archive, tmp_path / f"back{suffix}")
        assert (failed.status, chunk.relative_to(archive).as_posix() in failed.err) == (1, True)
    assert names(tmp_path) == {"ds.nc", "a.zarr"}


def test_an_array_with_its_coordinates(run: Run, tmp_path: Path, in_parts: bool) -> None:
    given = dataset()["T"]
    wb.compress(given, wb.Absolute(0.01), chunk_values=CHUNK).save(tmp_path / "a.zip")
    assert run("decompress", tmp_path / "a.zip", tmp_path / "b.nc", "--region", "2:9,:,3:").status == 0
    with xr.open_dataset(tmp_path / "b.nc") as found:
        assert abs(found["T"] - given[2:9, :, 3:]).max() <= 0.01
        xr.testing.assert_equal(found["T"].coords.to_dataset(), given[2:9, :, 3:].coords.to_dataset())


def test_masked_integers_and_salvaged_values(run: Run, tmp_path: Path, in_parts: bool) -> None:
    counts = np.ma.masked_less(np.arange(600).reshape(20, 30), 40)
    wb.compress({"n": counts, "m": np.arange(600).reshape(20, 30)}, wb.Exact(), chunk_values=100, out=tmp_path / "a.zarr")
    assert run("decompress", tmp_path / "a.zarr", tmp_path / "b.nc").status == 0
    with xr.open_dataset(tmp_path / "b.nc") as found:
        np.testing.assert_array_equal(found["n"], counts.astype("f8").filled(np.nan))
    damage(sorted(file for file in (tmp_path / "a.zarr" / "m" / "c").rglob("*") if file.is_file())[0])
    saved = run("salvage", tmp_path / "a.zarr", tmp_path / "c.nc", "--json")
    with xr.open_dataset(tmp_path / "c.nc") as found:
        lost = np.isnan(found["m"].values)
        assert saved.json["lost_of_members"] == {"m": lost.sum()}
        np.testing.assert_array_equal(found["m"].values[~lost], np.arange(600).reshape(20, 30)[~lost])
        np.testing.assert_array_equal(found["n"], counts.astype("f8").filled(np.nan))
