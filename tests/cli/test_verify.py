"""`workbench verify`: the exit status is the answer, and whatever is wrong has a name."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from cli.conftest import Run, damage, particles, wave
from workbench.archive.frame import unpack

KEYS = {"file", "original", "ok", "error", "status", "damaged", "figures", "checks", "notes", "kept_clusters"}


def test_a_whole_archive_passes_its_checksums(run: Run, archive: Path) -> None:
    printed = run("verify", archive, "--json")
    assert (printed.status, printed.err) == (0, "")
    found = printed.json
    assert set(found) == KEYS
    assert (found["ok"], found["error"], found["damaged"], found["original"]) == (True, None, [], None)
    assert found["figures"]["chunks"] > 30
    assert [(check["name"], check["ok"]) for check in found["checks"]] == [("damaged_chunks", True)]


def test_the_original_is_held_against_the_bound(run: Run, archive: Path, snapshot: Path) -> None:
    found = run("verify", archive, snapshot, "--json").json
    (check,) = [check for check in found["checks"] if check["name"] == "positions_max_error"]
    decoded, order = wb.open(archive).decompress(), wb.open(archive).permutation(particles())
    largest = abs(decoded.positions.astype(float) - particles().positions[order]).max()
    assert check == {"name": "positions_max_error", "limit": 0.01, "value": pytest.approx(largest), "ok": True}


def test_people_get_the_report(run: Run, archive: Path, snapshot: Path) -> None:
    printed = run("verify", archive, snapshot)
    assert (printed.status, printed.err) == (0, "")
    assert "the archive and its original: passed" in printed.out
    assert "positions: every value within 0.01 of the original" in printed.out


def test_clusters_are_found_to_be_kept(run: Run, clusters_archive: Path, snapshot: Path) -> None:
    promised = dict(wb.open(clusters_archive).certificate["positions"].keep[0])
    for original in ((), (snapshot,)):
        found = run("verify", clusters_archive, *original, "--json").json
        assert found["kept_clusters"] == [promised]
        assert [found["figures"][f"groups_at_{length}"] for length in ("0.2", "0.3")] == promised["groups"]
    printed = run("verify", clusters_archive)
    assert "checksums and the fingerprint of its groups only" in printed.out
    assert "groups of at least 5 members at linking length 0.2 and 0.3, exactly" in printed.out


def test_without_a_promise_about_clusters_none_are_found(run: Run, archive: Path, field_archive: Path) -> None:
    for path in (archive, field_archive):
        assert run("verify", path, "--json").json["kept_clusters"] == []


def test_another_original_does_not_have_the_clusters(run: Run, tmp_path: Path) -> None:
    made = wb.compress(particles(), wb.Absolute(0.3), keep=[wb.KeepClusters(0.2, "length")])
    archive, decoded = made.save(tmp_path / "a.zip"), made.decompress().positions.copy()
    labels = wb.friends_of_friends(particles(), 0.2, "length").labels
    pair = np.flatnonzero(np.bincount(labels) == 2)[0]
    for away, status in ((0.0, 0), (0.25, 1)):   # within the bound, and no friend any more
        decoded[pair] += np.float32(away)
        other = wb.Particles.wrapped(decoded, 16.0)
        np.savez(tmp_path / "other.npz", positions=other.positions, box=other.box)
        found = run("verify", archive, tmp_path / "other.npz", "--json")
        assert (found.status, found.json["ok"], bool(found.json["kept_clusters"])) == (status, not status, not status)
    assert "the groups of this original differ from those in the certificate" in found.err


def test_damage_to_what_keeps_clusters_is_named(run: Run, clusters_archive: Path) -> None:
    chunk = clusters_archive / "positions/c/0/0"
    data = bytearray(chunk.read_bytes())
    data[data.index(bytes(unpack(bytes(data), "").sections["edit"]))] ^= 1
    chunk.write_bytes(data)
    refused = run("verify", clusters_archive, "--json")
    assert (refused.status, refused.json["kept_clusters"]) == (1, [])
    (damaged,) = refused.json["damaged"]
    assert damaged["chunk"] == "positions/c/0/0"
    assert "edit" in damaged["reason"]


def test_options_may_stand_between_archive_and_original(run: Run, archive: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "positions.npy", particles().positions)
    found = run("verify", archive, "--box", "16", "--json", tmp_path / "positions.npy").json
    assert found["original"] == str(tmp_path / "positions.npy")
    assert found["checks"]


def test_every_damaged_chunk_is_named(run: Run, archive: Path) -> None:
    hurt = [f"positions/c/{number}/0" for number in range(10)] + ["ids/c/1"]
    for key in hurt:
        damage(archive / key)
    (archive / "velocities/c/2/0").unlink()
    hurt.append("velocities/c/2/0")
    refused = run("verify", archive)
    assert refused.status == 1
    assert refused.err.startswith(f"workbench: {len(hurt)} of ")
    assert refused.err.count("\n") == 1
    assert sorted(line.split()[1] for line in refused.out.splitlines()) == sorted(hurt)
    found = run("verify", archive, "--json")
    assert found.status == 1
    assert set(found.json) == KEYS
    assert found.json["ok"] is False
    assert sorted(chunk["chunk"] for chunk in found.json["damaged"]) == sorted(hurt)
    assert f"workbench: {found.json['error']}\n" == found.err


def test_another_original_breaks_the_promise(run: Run, field_archive: Path, tmp_path: Path) -> None:
    values = wave().values.copy()
    values[3, 4, 5] += 1
    np.save(tmp_path / "other.npy", values)
    refused = run("verify", field_archive, tmp_path / "other.npy", "--json")
    assert refused.status == 1
    assert refused.json["ok"] is False
    assert refused.json["damaged"] == []
    assert "1 of 13,440 values of values break the promise" in refused.err


def test_an_original_of_another_range_is_told_from_the_right_one(run: Run, field: Path, tmp_path: Path) -> None:
    assert run("compress", field, tmp_path / "a.zip", "--rel", 0.1).status == 0
    np.save(tmp_path / "other.npy", wave().values * 2)
    refused = run("verify", tmp_path / "a.zip", tmp_path / "other.npy")
    assert (refused.status, refused.out) == (1, "")
    assert "for this original: it is another one" in refused.err


def test_an_original_of_another_kind_shape_or_type_is_another_one(
    run: Run, archive: Path, field_archive: Path, snapshot: Path, field: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "part.npy", wave().values[:10])
    np.save(tmp_path / "double.npy", wave().values.astype(np.float64))
    pairs = ((archive, field), (field_archive, "part.npy"), (field_archive, "double.npy"), (field_archive, snapshot))
    for made, original in pairs:
        refused = run("verify", made, tmp_path / original)
        assert (refused.status, refused.out) == (1, "")
        assert "is not the original: the archive was made from " in refused.err
        assert refused.err.count("\n") == 1
        found = run("verify", made, tmp_path / original, "--json").json
        assert (set(found), found["ok"], found["status"]) == (KEYS, False, 1)


def test_an_archive_can_stand_for_the_original(run: Run, field: Path, field_archive: Path, tmp_path: Path) -> None:
    assert run("compress", field, tmp_path / "exact.zip", "--abs", 0).status == 0
    assert run("verify", field_archive, tmp_path / "exact.zip").status == 0


def test_a_certificate_that_was_changed_is_found(run: Run, archive: Path) -> None:
    root = archive / "zarr.json"
    text = root.read_text()
    assert "0.01" in text
    root.write_text(text.replace("0.01", "0.02"))
    refused = run("verify", archive)
    assert refused.status == 1
    assert "zarr.json" in refused.err
    assert "fails its checksum" in refused.err


def test_what_is_no_archive_is_bad_input(run: Run, field: Path, snapshot: Path, tmp_path: Path) -> None:
    for path in (field, snapshot, tmp_path, tmp_path / "missing.zip"):
        refused = run("verify", path)
        assert (refused.status, refused.out) == (2, "")
        assert refused.err.startswith("workbench: ")


def test_a_cut_archive_does_not_pass(run: Run, field_archive: Path) -> None:
    field_archive.write_bytes(field_archive.read_bytes()[:-100])
    for arguments in (["verify", field_archive], ["info", field_archive], ["decompress", field_archive, "b.npy"]):
        refused = run(*arguments)
        assert (refused.status, refused.out) == (1, "")
        assert "field.zip" in refused.err


def test_options_for_an_original_need_one(run: Run, archive: Path) -> None:
    refused = run("verify", archive, "--particle-type", 1)
    assert refused.status == 2
    assert "--particle-type says how to open ORIGINAL; got no ORIGINAL" in refused.err


@pytest.mark.parametrize("arguments", [[], ["a", "b", "c"], ["a", "--json", "b", "c"], ["a", "--region", "0:1"]])
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str]) -> None:
    refused = run("verify", *arguments)
    assert refused.status == 2
    assert ("--json" in arguments) == bool(refused.out)
    assert "usage: workbench verify" in refused.err
