"""`workbench tune`: the answer, the archive, and the exit status."""

import pytest

import workbench as wb


def test_the_archive_meets_the_target(run, field, tmp_path):
    out = tmp_path / "field.zip"
    outcome = run("tune", field, "--psnr", "60", "--codec", "sz3", "--out", out, "--json", "-q")
    assert outcome.status == 0, outcome.err
    assert outcome.json["met"]
    archive = wb.open(out)
    decoded, original = archive.decompress(), wb.open(field)
    assert wb.compare(original, decoded, quick=True)["psnr"] == outcome.json["values"]["psnr"] >= 60
    assert archive.certificate["values"].bound.eb == outcome.json["bound"]["eb"]


def test_shares_may_be_in_percent(run, field):
    asked = ("tune", field, "--kmax", "1", "--codec", "prequantised", "--json", "-q")
    first, second = (run(*asked, "--spectrum", share).json for share in ("1%", "0.01"))
    assert first["bound"] == second["bound"]


def test_particles_keep_their_clusters(run, snapshot, tmp_path):
    outcome = run("tune", snapshot, "--keep-clusters", "0.2", "--order", "free", "-q", "--out", tmp_path / "a.zip")
    assert outcome.status == 0, outcome.err
    assert "meets the clusters at linking length 0.2" in outcome.out
    assert wb.open(tmp_path / "a.zip").certificate["positions"].keep


def test_a_target_that_cannot_be_met_is_status_1_and_writes_nothing(run, field, tmp_path):
    outcome = run("tune", field, "--ratio", "1e6", "-q", "--out", tmp_path / "a.zip")
    assert outcome.status == 1
    assert "no bound of" in outcome.out
    assert "nearest" in outcome.out
    assert all(line.count("ratio ") == 1 for line in outcome.out.splitlines() if " bytes, " in line)
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --ratio, --psnr"),
        (["--kmax", "3"], "--kmax needs --spectrum"),
        (["--spectrum", "much"], "a share such as 1% or 0.01"),
        (["--psnr", "nan"], "PSNR"),
        (["--ssim", "2"], "less than 1"),
        (["--mass-function", "5%"], "is for particles"),
        (["--mass-function", "poisson"], "is for particles"),
        (["--psnr", "60", "--out", "/nowhere/a.zip"], "does not exist"),
    ],
)
def test_wrong_usage(run, field, arguments, message):
    outcome = run("tune", field, *arguments, "-q")
    assert outcome.status == 2
    assert message in outcome.err
