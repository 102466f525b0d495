"""What the documents show must run, and what they point to must exist."""

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.codecs import status
from workbench.data.readers import formats

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_ten_lines_of_the_readme_run(capsys: pytest.CaptureFixture) -> None:
    code, on_datasets = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    xarray = pytest.importorskip("xarray")
    xarray.Dataset({"T": ("x", np.zeros(9), {"units": "K"}), "P": ("x", np.ones(9))}).to_netcdf("ocean.nc")
    exec(compile(on_datasets, "README.md", "exec"), {"wb": wb})
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    halos = [int(re.search(r"(\d+) with at least 20 members", text)[1]) for text in (code, capsys.readouterr().out)]
    assert halos[1] == pytest.approx(halos[0], abs=10)   # other processors round the simulation in another way
    (shown,) = re.findall(r"```pycon\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    runner = doctest.DocTestRunner()
    runner.run(doctest.DocTestParser().get_doctest(shown, names, "README", None, 0))
    assert runner.failures == 0


def test_the_lines_about_compression_run(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/compression.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, "compression.md", "exec"), {})
    assert (tmp_path / "snapshot.zip").is_file()


def test_the_lines_about_datasets_run(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs/datasets.md").read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(code, "datasets.md", "exec"), names)
    assert (tmp_path / "coarse.zarr/zarr.json").is_file()


def test_the_lines_about_audits_run(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/audit.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "audit.md", "exec"), names)
    assert names["found"].passed
    assert (tmp_path / "audit.html").is_file()


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr")
def test_the_lines_about_files_for_others_run(tmp_path: Path) -> None:
    for library in ("xarray", "zarr", "numcodecs", "netCDF4", "h5py"):
        pytest.importorskip(library)
    wb.compress(wb.Particles(np.random.default_rng(0).random((99, 3))), wb.Absolute(0.01)).save(tmp_path / "snapshot.zip")
    blocks = re.findall(r"```(python)?\n(.*?)```", (ROOT / "docs/portable.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    for language, text in blocks:
        if language:
            exec(compile(text, "portable.md", "exec"), names)
        else:
            assert [main(shlex.split(line)[1:]) for line in text.splitlines()] == [0, 0, 0]
    assert wb.open("snapshot.hdf5").positions.shape == (99, 3)
    assert names["plain"].certificate["values"].limit.value == 0.00125


@pytest.mark.long_with("choosing.md")
@pytest.mark.parametrize("page", ["slices.md", "series.md", "choosing.md", "weights.md"])
def test_the_lines_of_a_page_run(page: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, page, "exec"), {})


def test_the_ways_there_and_back_run(tmp_path: Path) -> None:
    """Every block of the page in turn; lines of other commands than ours are examples for files that are not there."""
    pytest.importorskip("netCDF4")
    pytest.importorskip("MDAnalysis")
    blocks = re.findall(r"```(python)?\n(.*?)```", (ROOT / "docs/there-and-back.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    commands = 0
    for language, text in blocks:
        if language:
            exec(compile(text, "there-and-back.md", "exec"), names)
            continue
        for line in text.splitlines():
            if line.startswith("workbench "):
                assert main(shlex.split(line)[1:]) == 0, line
                commands += 1
    assert commands == 10
    assert (tmp_path / "back.nc").is_file()
    from MDAnalysis.coordinates.XTC import XTCReader

    written = XTCReader(str(tmp_path / "back.xtc"), convert_units=False)
    assert len(written) == 3
    np.testing.assert_allclose(written[2].positions, names["decoded"].positions[2], atol=0.02)


def test_the_example_of_a_trajectory_runs(capsys: pytest.CaptureFixture) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/trajectories.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, "trajectories.md", "exec"), {})
    assert capsys.readouterr().out.endswith("(10, 200, 3)\n")


def test_every_codec_is_documented() -> None:
    text = (ROOT / "docs" / "compression.md").read_text(encoding="utf-8")
    assert [name for name in status() if f"`{name}`" not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (document.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("document", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/how-it-works.md"])
def test_files_that_are_named_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`((?:workbench|kernels|tests|benchmarks|docs|binder)/[\w./]*)`", text)
    assert named or document == "README.md"
    assert not [name for name in named if not (ROOT / name).exists()]


def test_every_format_is_documented() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    for known in formats():
        assert f"`{known.key}`" in text, known.key
        (row,) = [line for line in text.splitlines() if f"`{known.key}`" in line and line.startswith("| `")]
        for option in known.options:
            assert f"`{option}`" in row, (known.key, option)
