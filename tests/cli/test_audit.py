"""`workbench audit`: its status may stand before `rm`."""

from pathlib import Path

import numpy as np
import pytest

from cli.conftest import Run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    values = np.sin(np.linspace(0, 20, 900)).reshape(30, 30)
    paths = tmp_path / "a.npz", tmp_path / "b.npz"
    np.savez(paths[0], T=values, q=values + 1)
    np.savez(paths[1], T=np.round(values, 2), q=values + 1)
    return paths


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--abs", "T=0.006"], 0), (["--abs", "0.006"], 0), (["--rel", "T=1e-2", "--tolerance", "T:ssim=0.9"], 0),
        (["--only", "q"], 0), ([], 1), (["--abs", "T=0.001"], 1),
        (["--abs", "T=0.006", "--tolerance", "ssim=0.99999999"], 1),
        (["--abs", "Q=1"], 2), (["--abs", "T"], 2), (["--tolerance", "ssim"], 2), (["--tolerance", "sim=1"], 2),
        (["--only", "r"], 2), (["--tolerance", "ssim=1", "--tolerance", "ssim=0.9"], 2),
    ],
)
def test_the_status_says_whether_all_is_well(run: Run, files: tuple[Path, Path], options: list[str], status: int) -> None:
    printed = run("audit", *files, *options, "--quiet")
    assert printed.status == status, printed
    assert ("passed" in printed.out) == (status == 0)


def test_json_and_a_page(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    found = run("audit", *files, "--abs", "T=0.001", "--json", "--html", page, "--quiet").json
    assert (found["passed"], found["status"]) == (False, 1)
    assert found["rows"][0]["over"] > 0
    assert "bound broken" in {one["kind"] for one in found["findings"]}
    assert page.read_text().startswith("<!DOCTYPE html>")
    again = run("audit", *files, "--abs", "T=0.001", "--html", page)
    assert (again.status, "exists" in again.err) == (2, True)


def test_what_is_no_audit_is_wrong_usage(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("audit", files[0], files[0]).status == 2
    assert "there is no lossy" in run("audit", files[0], tmp_path / "c.nc").err


def test_raw_files_are_opened_by_their_shape(run: Run, tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((8, 9), np.float32)
    paths = [tmp_path / name for name in ("a.raw", "b.raw", "a.npy")]
    values.tofile(paths[0])
    (values + np.float32(1e-4)).tofile(paths[1])
    np.save(paths[2], values)
    options = ["--abs", "0.001", "--shape", "8,9", "--dtype", "float32", "--quiet"]
    assert run("audit", paths[0], paths[1], *options).status == 0
    assert run("audit", paths[2], paths[1], *options).status == 0   # what is recognised needs no options
    assert run("audit", paths[0], paths[1], "--abs", "0.001", "--shape", "8,7").status == 2
