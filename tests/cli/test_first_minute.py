"""What helps someone who has just come: a bound to begin with, the next command, and completion in the shell."""

import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run
from workbench.cli import COMMANDS, all_commands

xarray = pytest.importorskip("xarray")


def saved(folder: Path, kind: str) -> Path:
    random = np.random.default_rng(1)
    smooth = np.cumsum(random.normal(size=(40, 50)), axis=0).astype(np.float32)
    path = folder / f"my {kind}.npy"
    if kind == "dataset":
        variables = {"T": (("time", "x"), smooth), "n": ("time", np.arange(40))}
        xarray.Dataset(variables, {"time": np.arange(40.0)}).to_netcdf(path := folder / "d.nc")
    elif kind == "variable":   # in a group, with a scalar beside it
        path = folder / "v.nc"
        xarray.Dataset({"mass": 2.0}).to_netcdf(path)
        xarray.Dataset({"T": (("time", "x"), smooth)}, {"time": np.arange(40.0)}).to_netcdf(path, mode="a", group="inner")
    elif kind == "raw":
        smooth.tofile(path := folder / "field.raw")
    else:
        np.save(path, {"field": smooth, "integers": (100 * smooth).astype(np.int32), "constant": smooth * 0}[kind])
    return path


@pytest.mark.parametrize("kind", ["field", "integers", "constant", "dataset", "variable", "raw"])
def test_the_suggested_command_works_and_keeps_its_bound(
    run: Run, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, kind)
    monkeypatch.chdir(tmp_path)
    given = ("--shape", "40,50") if kind == "raw" else ()
    program, *suggested = shlex.split(run("info", path, *given, "--json").json["next"])
    assert program == "workbench"
    made = run(*suggested)
    assert made.status == 0, made.err
    assert run("verify", tmp_path / suggested[2], path, *given).status == 0
    checked = shlex.split(run("info", suggested[2]).out.splitlines()[-1].removeprefix("next").split(",")[0])
    assert run(*checked[1:3]).status == 0


def test_halos_are_kept_where_the_file_is_of_a_universe(run: Run, tmp_path: Path) -> None:
    snapshot = wb.synthetic.cosmic_web(n=8)
    np.savez(tmp_path / "plain.npz", positions=snapshot.positions, box=np.array(snapshot.box))
    assert "keep-clusters" not in run("info", tmp_path / "plain.npz", "--json").json["next"]
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "snap.hdf5", "w") as file:
        file.create_group("Header").attrs.update(
            {"BoxSize": snapshot.box[0], "NumPart_ThisFile": [0, 512, 0, 0, 0, 0], "Redshift": 0.0, "HubbleParam": 0.7}
        )
        file["PartType1/Coordinates"] = snapshot.positions
    assert run("info", tmp_path / "snap.hdf5", "--json").json["next"].endswith("--keep-clusters 0.2")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["com"], {"compress", "combine", "completion", "compress-model"}),
        (["compress", "a.nc", "b.zip", "--ord"], {"--order"}),
        (["compress", "a.nc", "b.zip", "--order", ""], {"keep", "free"}),
        (["tune", "a.nc", "--codec", "interp"], {"interpolation"}),
        (["completion", "f"], {"fish"}),
        (["tune", "a.nc", "--codec", "=", "interp"], {"interpolation"}),   # as bash takes --codec=interp
        (["fof", "a.nc", "--box", "="], set()),
        (["verify", "here"], set()),   # the shell has the names of files
    ],
)
def test_bash_completes(run: Run, tmp_path: Path, typed: list[str], offered: set[str]) -> None:
    (tmp_path / "here.zip").touch()
    words = " ".join(map(shlex.quote, ["workbench", *typed]))
    script = f"""{run("completion", "bash").out}
COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _workbench
printf '%s\\n' "${{COMPREPLY[@]}}"; complete -p workbench | grep -q -- '-o default'"""
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(shown.stdout.split()) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_every_script(run: Run, shell: str) -> None:
    script = run("completion", shell).out
    assert set(all_commands()) == set(COMMANDS)
    for name, parser in all_commands().items():
        assert name in script
        for action in parser._actions:
            for flag in action.option_strings:
                assert (f" {flag.lstrip('-')} -d" if shell == "fish" else flag) in script
