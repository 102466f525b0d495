"""Trajectories in the shell: there and back, parts, and the sentences about what is left out or refused."""

import re

import numpy as np
import pytest

import workbench as wb
from workbench.data.writers import write_trajectory


@pytest.fixture
def walk(tmp_path):
    random = np.random.default_rng(4)
    positions = np.round(random.random((9, 20, 3)) * 3, 3).astype("f4")
    walk = wb.Trajectory(
        positions, cells=[[3.0, 3.0, 3.0]] * 9, times=np.arange(9) * 2.0, steps=np.arange(9),
        atoms={"name": ["OW", "HW"] * 10}, metadata={"units": {"length": "nm", "time": "ps"}},
    )
    for suffix in (".xtc", ".gro"):
        write_trajectory(walk, tmp_path / f"walk{suffix}", suffix)
    return tmp_path / "walk.xtc"


def test_there_and_back(run, walk, tmp_path):
    described = run("info", walk, "--json").json
    assert {name: described[name] for name in ("kind", "frames", "atoms", "times", "cell_changes")} == {
        "kind": "trajectory", "frames": 9, "atoms": 20, "times": [0, 16], "cell_changes": False,
    }
    assert described["next"].endswith("--abs 0.0005")
    out = tmp_path / "walk.zip"
    assert run("compress", walk, out, "--abs", "0.0005nm", "--topology", tmp_path / "walk.gro", "--quiet").status == 0
    assert run("verify", out, walk, "--quiet").status == 0
    about = run("info", out, "--json").json
    assert (about["holds"], about["shape"], about["times"]) == ("trajectory", [9, 20, 3], [0, 16])
    back = tmp_path / "back.xtc"
    found = run("decompress", out, back, "--json", "--quiet")
    assert (found.json["rounding"], found.json["largest_error"], found.json["units"]) == (0, 0.0005, "nm")
    assert back.read_bytes() == walk.read_bytes()
    assert run("decompress", out, back, "--quiet").status == 2   # it exists


def test_parts(run, walk, tmp_path):
    out = tmp_path / "walk.zip"
    run("compress", walk, out, "--abs", "0.01", "--topology", tmp_path / "walk.gro", "--quiet")
    assert run("decompress", out, tmp_path / "part.dcd", "--frames", "2:8:3", "--atoms", "OW", "--quiet").status == 0
    part = wb.open_trajectory(tmp_path / "part.dcd")
    assert part.shape == (2, 10, 3)
    assert np.allclose(part.times, [4, 10])
    found = run("decompress", out, tmp_path / "part.npz", "--frames", "3", "--atoms", "0:3,7", "--quiet")
    assert found.status == 0
    with np.load(tmp_path / "part.npz") as arrays:
        assert arrays["positions"].shape == (1, 4, 3)
        assert arrays["atom_name"].tolist() == ["OW", "HW", "OW", "HW"]
    rounded = run("decompress", out, tmp_path / "part.xtc", "--frames", ":4", "--quiet")
    assert "note: .xtc rounds positions, here by up to " in rounded.err
    assert " nm; with the bound" in rounded.err
    assert "positions are within 0.01" in rounded.err
    assert "left out: the column name of atoms" in rounded.err


def test_one_frame_is_particles(run, walk, tmp_path):
    out = tmp_path / "one.zip"
    assert run("compress", walk, out, "--abs", "0.01", "--frame", "3", "--quiet").status == 0
    assert wb.open(out).kind == "particles"
    assert run("verify", out, walk, "--frame", "3", "--quiet").status == 0
    assert run("info", walk, "--frame", "3", "--json").json["kind"] == "particles"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compress", "{walk}", "{out}", "--abs", "1", "--wrap"), "--wrap is for one frame; .* choose one by --frame"),
        (("compress", "{walk}", "{out}", "--abs", "1", "--order", "free"), "are for particles; .*: give --frame"),
        (("compress", "{walk}", "{out}", "--abs", "1", "--frame", "0", "--topology", "{walk}"), "--topology is for a"),
        (("decompress", "{archive}", "{dir}/x.h5"), "holds a trajectory: let OUT end in .npz, .xtc"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--region", "0:1,0:1,0:1"), "--region is for particles and fields"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--frames", "9:"), "at least one frame"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--frames", "a"), "expected first:end"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--frames", "::0"), "a slice whose step is 0"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--atoms", "0:1000000000000"), "--atoms must end at most at 20"),
        (("decompress", "{archive}", "{dir}/x.xtc", "--atoms", "C"), "have no names|no atom is named"),
        (("decompress", "{field}", "{dir}/x.xtc"), r"\.xtc is for trajectories; .* holds a field"),
        (("decompress", "{field}", "{dir}/x.npy", "--frames", "1"), "--frames is for trajectories"),
        (("verify", "{archive}", "{walk}", "--frame", "1"), "--frame is not for all frames"),
    ],
)
def test_refusals(run, walk, tmp_path, words, said):
    places = {"walk": walk, "dir": tmp_path}
    places |= {"out": tmp_path / "out.zip", "archive": tmp_path / "a.zip", "field": tmp_path / "f.zip"}
    wb.compress(walk, wb.Absolute(0.01), out=places["archive"])
    wb.compress(np.zeros((4, 4)), wb.Absolute(0.01), out=places["field"])
    found = run(*(word.format(**places) for word in words))
    assert found.status == 2
    assert re.search(said, " ".join(found.err.split())), found.err


def test_what_is_left_of_a_damaged_archive(run, walk, tmp_path):
    wb.compress(walk, wb.Absolute(0.01), chunks=3, out=tmp_path / "walk.zip")
    path = tmp_path / "walk.zip"
    data, chunk = bytearray(path.read_bytes()), wb.open(path).store.read("positions/c/1/0/0")
    data[data.index(chunk) + 40] ^= 1
    path.write_bytes(data)
    assert run("verify", path).status == 1
    assert run("salvage", path, tmp_path / "rest.xtc", "--quiet").status == 1
    assert wb.open_trajectory(tmp_path / "rest.xtc").times.tolist() == [0, 2, 4, 12, 14, 16]


def test_a_file_that_is_cut_short_says_so(run, walk, tmp_path):
    walk.write_bytes(walk.read_bytes()[:-20])
    found = run("compress", walk, tmp_path / "walk.zip", "--abs", "0.01", "--quiet")
    assert found.status == 0
    assert "the frame after it is cut short" in found.err


def test_h5md_there_and_back(run, walk, tmp_path):
    source, out, back = tmp_path / "walk.h5md", tmp_path / "h5md.zip", tmp_path / "back.h5md"
    write_trajectory(wb.open_trajectory(walk, tmp_path / "walk.gro"), source, ".h5md")
    assert run("compress", source, out, "--abs", "0.001nm", "--name", "all", "--quiet").status == 0
    assert run("verify", out, source, "--quiet").status == 0
    found = run("decompress", out, back, "--json", "--quiet")
    assert (found.json["rounding"], found.json["largest_error"]) == (0, 0.001)
    given, decoded = wb.open_trajectory(source), wb.open_trajectory(back)
    assert np.abs(given.positions.astype("f8") - decoded.positions).max() <= 0.001
    assert (decoded.cells == given.cells).all()
    assert (decoded.atoms["name"] == given.atoms["name"]).all()
    refused = run("compress", source, tmp_path / "no.zip", "--abs", "0.001nm", "--name", "gas", "--quiet")
    assert "no group of particles 'gas'; it has all" in refused.err
