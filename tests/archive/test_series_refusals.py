"""Series: what is refused, in a sentence, and loses nothing that was appended; damage; runs that are killed."""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from archive.samples import parts, resealed
from workbench.archive import document, writing
from workbench.archive.lock import held
from workbench.archive.writing import write
from workbench.data import Trajectory

GRID = np.random.default_rng(0).normal(size=(12, 12)).cumsum(axis=0).astype("f4")
POINTS = np.random.default_rng(0).uniform(0, 1, (20, 3))


def field(number: int) -> wb.Field:
    return wb.Field(GRID + np.float32(0.01 * number))


def particles(number: int, **given: Any) -> wb.Particles:
    given = {"box": 2.0, "ids": np.arange(20), **given}
    return wb.Particles(POINTS + 0.01 * number, **given)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six steps, of which 0 and 3 are key steps."""
    series = wb.Series(tmp_path_factory.mktemp("six") / "series", wb.Absolute(1e-3), "interpolation", every=3)
    for number in range(6):
        series.append(field(number), number)
    return series.path


@pytest.fixture
def fields(six: Path, tmp_path: Path) -> wb.Series:
    """A copy of these steps."""
    return wb.Series(shutil.copytree(six, tmp_path / "series"))


@pytest.mark.parametrize(
    ("step", "options", "reason"),
    [
        (lambda: wb.Field(GRID[:5]), {}, r"step 6 must have the shape of the steps before it, \(12, 12\); got \(5, 12\)"),
        (lambda: wb.Field(GRID.astype("f8")), {}, "step 6 must have the type of the steps before it, float32; got float64"),
        (lambda: wb.Field(GRID, spacing=0.5), {}, "must have the spacing of the steps before it"),
        (lambda: particles(0), {}, "step 6 must be a field, as the steps before it; got particles"),
        (lambda: Trajectory(np.zeros((5, 2, 3))), {}, "a step of a series is particles, a field or a dataset; got a traj"),
        (lambda: {"T": field(0)}, {}, "step 6 must be a field, as the steps before it; got a dataset"),
        (lambda: field(6), {"time": 5.0}, "times must rise: step 5 is at 5, and step 6 must be later; got 5"),
        (lambda: field(6), {"time": float("nan")}, "the time of a step must be a finite number; got nan"),
        (lambda: field(6), {"time": "noon"}, "the time of a step must be a finite number; got 'noon'"),
        (lambda: field(6), {}, "step 6 must have a time, as the steps before it have"),
        (lambda: "no/such/file.npy", {"time": 6.0}, "no/such/file.npy"),
    ],
)
def test_a_step_that_does_not_follow_is_refused(
    fields: wb.Series, step: Callable[[], Any], options: Any, reason: str
) -> None:
    options = options or ({} if "must have a time" in reason else {"time": 6.0})
    with pytest.raises(wb.WorkbenchError, match=reason):
        fields.append(step(), **options)
    assert len(fields) == 6
    assert fields.verify([field(number) for number in range(6)]).passed
    fields.append(field(6), 6.0)
    assert len(wb.Series(fields.path)) == 7
    assert not list(fields.path.glob(".*"))


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda: particles(1, box=3.0), r"must have the box of the steps before it, \(2\.0, 2\.0, 2\.0\); got \(3\.0"),
        (lambda: particles(1, ids=[1, *range(1, 20)]), "each particle once; a step of a series has id 1 twice"),
        (lambda: particles(1, ids=None), r"must have the columns of the steps before it, ids \(int64\); got none"),
        (lambda: particles(1, ids=np.arange(20, dtype="u4")), r"ids \(int64\); got ids \(uint32\)"),
        (lambda: particles(1, velocities=POINTS), r"the columns of the steps before it, ids \(int64\); got .*velocities"),
        (lambda: wb.Particles(POINTS[:, :2], 2.0, ids=np.arange(20)), "box of the steps|number of dimensions"),
        (lambda: wb.Particles(POINTS.astype("f4"), 2.0, ids=np.arange(20)), "type of the steps before it, float64"),
    ],
)
def test_other_particles_are_refused(tmp_path: Path, step: Callable[[], Any], reason: str) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3))
    series.append(particles(0))
    with pytest.raises(wb.WorkbenchError, match=reason):
        series.append(step())
    assert series.append(particles(1)).verify(particles(1)).passed


def test_particles_without_ids_must_be_as_many_in_their_order(tmp_path: Path) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3))
    series.append(wb.Particles(POINTS))
    series.append(wb.Particles(POINTS + 0.1))
    with pytest.raises(wb.WorkbenchError, match="must have 20 particles, as the steps before it; got 19: give ids"):
        series.append(wb.Particles(POINTS[1:]))
    with pytest.raises(wb.WorkbenchError, match="only particles with ids are read by them"):
        series.read(1, ids=[3])
    free = wb.Series(tmp_path / "free", wb.Absolute(1e-3), order="free")
    with pytest.raises(wb.WorkbenchError, match="order='free' of a series needs ids"):
        free.append(wb.Particles(POINTS))
    assert len(free) == 0
    assert repr(free) == "Series('free': no steps yet)"
    kept = wb.Series(free.path, wb.Absolute(1e-2))   # as no step was made with other arguments
    kept.append(wb.Particles(POINTS))
    assert "every value within 0.01 of the original" in str(wb.Series(free.path).certificate)
    with pytest.raises(wb.WorkbenchError, match=r"bound must be that of the series in free, Absolute\(eb=0\.01\)"):
        free.append(particles(0))
    datasets = wb.Series(tmp_path / "datasets", {"*": wb.Absolute(0.1)})
    datasets.append({"T": field(0)})
    with pytest.raises(wb.WorkbenchError, match="must have the members of the steps before it, T; 'T' is missing"):
        datasets.append({"U": field(0)})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"bound": wb.Absolute(2e-3)}, r"bound must be that of the series in series, Absolute\(eb=0\.001\)"),
        ({"codec": "auto"}, "codec must be that of the series in series, 'interpolation'; got 'auto'"),
        ({"every": None}, "every must be that of the series in series, 3; got None"),
        ({"keep": [wb.KeepClusters(0.2)]}, "keep must be that of the series"),
    ],
)
def test_another_request_is_refused(fields: wb.Series, options: Any, reason: str) -> None:
    given = {"bound": wb.Absolute(1e-3), "codec": "interpolation", "every": 3}
    assert len(wb.Series(fields.path, **given)) == 6
    with pytest.raises(wb.WorkbenchError, match=reason):
        wb.Series(fields.path, **{**given, **options})


def test_folders_that_are_none_are_refused(tmp_path: Path) -> None:
    wrong = {"none": "must be the folder of a series", "a/b": "directory that exists"}
    for path, reason in ((tmp_path / name, reason) for name, reason in wrong.items()):
        with pytest.raises(wb.WorkbenchError, match=reason):
            wb.Series(path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(wb.WorkbenchError, match="a series is a folder"):
        wb.Series(tmp_path / "notes.txt", wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match=r"begins in an empty folder; .* holds notes\.txt"):
        wb.Series(tmp_path, wb.Absolute(0.1)).append(field(0))
    with pytest.raises(wb.WorkbenchError, match="every must be a whole number"):
        wb.Series(tmp_path / "s", wb.Absolute(0.1), every=0)
    with pytest.raises(wb.WorkbenchError, match="between 1 and 64; got 65"):   # as decoding nests
        wb.Series(tmp_path / "s", wb.Absolute(0.1), every=65)
    with pytest.raises(wb.WorkbenchError, match="order must be"):
        wb.Series(tmp_path / "s", wb.Absolute(0.1), order="any")
    series = wb.Series(tmp_path / "empty", wb.Absolute(0.1))
    with pytest.raises(wb.WorkbenchError, match="no steps yet"):
        series.at(1.0)


@pytest.mark.parametrize("name", ["step-999999999999999999999999.zip", "step-000100000.zip", "step-1000000.zip"])
def test_a_file_that_can_be_no_step_is_told(fields: wb.Series, name: str) -> None:
    shutil.copy(fields.path / "step-000005.zip", fields.path / name)
    if name == "step-000100000.zip":   # no name of a step
        assert len(wb.Series(fields.path)) == 6
        return
    with pytest.raises(wb.WorkbenchError, match=r"series has 7 steps, and step-\d+\.zip, which can be none of them"):
        wb.Series(fields.path).verify()


def test_runs_that_are_too_long_are_refused(tmp_path: Path) -> None:
    with pytest.raises(wb.WorkbenchError, match="every must be"):
        wb.Series(tmp_path / "series", wb.Absolute(1e-3), every=65)


@pytest.mark.long
def test_the_last_step_of_the_longest_run_is_read_alone(tmp_path: Path) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), "interpolation", every=64)
    for number in range(64):
        series.append(field(number), number)
    assert series.certificate.keys == (0,)
    last = wb.Series(series.path)[63].decompress()   # which decodes all others, each inside of the next
    assert np.abs(last.values - field(63).values).max() <= 1.0001e-3


def test_several_snapshots_are_no_archive(tmp_path: Path) -> None:
    for number in range(2):
        np.save(tmp_path / f"snap_{number}.npy", POINTS)
    with pytest.raises(wb.WorkbenchError, match=r"are several: append each to a wb\.Series\(path, bound\)"):
        wb.compress(wb.open_series(str(tmp_path / "snap_*.npy")), wb.Absolute(0.1))


def test_two_writers_at_once_are_refused(fields: wb.Series) -> None:
    with held(fields.path, fields.path), pytest.raises(wb.WorkbenchError, match="written by one run at a time"):
        fields.append(field(6), 6.0)
    other = wb.Series(fields.path)
    other.append(field(6), 6.0)
    fields.append(field(7), 7.0)   # which it learns of when it writes
    assert len(other) == 8
    assert other.verify().passed


def test_a_missing_step_names_those_that_need_it(fields: wb.Series) -> None:
    originals = [field(number) for number in range(6)]
    away = fields.path.with_name("away.zip")
    (fields.path / "step-000001.zip").rename(away)
    opened = wb.Series(fields.path)
    assert len(opened) == 6
    assert opened[0].verify(originals[0]).passed
    assert opened[5].verify(originals[5]).passed
    for number in (1, 2):
        with pytest.raises(wb.WorkbenchError, match="step 1 of series cannot be read, and step 2 cannot be "):
            opened[number]
    with pytest.raises(wb.GuaranteeBroken, match=r"2 of 6 steps do not hold: step 1.*; step 2"):
        opened.verify(originals)
    with pytest.raises(wb.WorkbenchError, match=r"step 1 of series is missing, and 5 steps are there: bring step-"):
        opened.append(field(6), 6.0)
    away.rename(fields.path / "step-000001.zip")
    opened.append(field(6), 6.0)
    assert wb.Series(fields.path).verify([*originals, field(6)]).passed


def test_a_step_that_was_exchanged_is_refused(fields: wb.Series, tmp_path: Path) -> None:
    shutil.copy(fields.path / "step-000000.zip", fields.path / "step-000001.zip")
    with pytest.raises(wb.WorkbenchError, match="must be step 1 of this series; it is step 0 of this one"):
        wb.Series(fields.path)[2]
    other = wb.Series(tmp_path / "other", wb.Absolute(1e-3))
    other.append(field(0))
    other.append(field(9))
    shutil.copy(other.path / "step-000001.zip", fields.path)
    with pytest.raises(wb.WorkbenchError, match="it is step 1 of another"):
        wb.Series(fields.path)[1]


def test_a_lock_that_cannot_be_written_is_told(fields: wb.Series, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(place: Path, _: str) -> None:
        place.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(wb.WorkbenchError, match=r"cannot write .*series: No space left on device"):
            fields.append(field(6), 6)
    assert not [place for place in fields.path.iterdir() if place.name.startswith(".")]
    fields.append(field(6), 6)


def test_a_series_that_was_moved_is_not_begun_again(fields: wb.Series, tmp_path: Path) -> None:
    fields.path.rename(tmp_path / "moved")
    with pytest.raises(wb.WorkbenchError, match="no longer there: was it moved"):
        fields.append(field(6), 6)
    assert not fields.path.exists()
    wb.Series(fields.path, wb.Absolute(0.1)).append(field(0))
    with pytest.raises(wb.WorkbenchError, match="another one is there now"):
        fields.append(field(6), 6)
    assert len(wb.Series(tmp_path / "moved")) == 6


@pytest.mark.parametrize("removed", [1, 3])
def test_steps_that_were_removed_are_appended_again(fields: wb.Series, removed: int) -> None:
    list(fields)
    for number in range(6 - removed, 6):
        (fields.path / f"step-{number:06d}.zip").unlink()
    shown = [field(number) if number < 6 - removed else field(2 * number) for number in range(8)]
    for number in range(6 - removed, 8):
        assert fields.append(shown[number], number).verify(shown[number]).passed
    assert wb.Series(fields.path).verify(shown).passed


def spoil(path: Path) -> None:
    """Damage the first chunk of an archive."""
    data = bytearray(path.read_bytes())
    frame = data.index(b"LBC")
    data[frame + (data.index(b"PK", frame) - frame) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("damaged", [0, 1])
def test_damage_is_that_of_the_steps_that_need_it(fields: wb.Series, damaged: int) -> None:
    spoil(fields.path / f"step-{damaged:06d}.zip")
    opened = wb.Series(fields.path)
    with pytest.raises(wb.GuaranteeBroken, match=rf"{3 - damaged} of 6 steps do not hold: step {damaged}: .*step 2"):
        opened.verify()
    with pytest.raises(wb.GuaranteeBroken, match=rf"predicted from values/c/0/0 of step-00000{damaged}\.zip, which"):
        opened[2].decompress()
    values, lost = opened[2].salvage() if damaged > 1 else (None, opened[2].damage())
    assert values is None
    assert [one.where for one in lost] == ["values/c/0/0"]
    for number in (3, 4, 5):
        assert opened[number].verify(field(number)).passed
    opened.append(field(6), 6.0)   # a key step
    spoil(fields.path / "step-000006.zip")
    opened = wb.Series(fields.path)
    with pytest.raises(wb.GuaranteeBroken, match=r"predicted from values/c/0/0 of step-000006\.zip, which is damaged"):
        opened.append(field(7), 7.0)
    assert len(opened) == 7


DAMAGE: dict[str, tuple[Callable[[bytes], bytes | None], str]] = {
    "missing": (lambda data: None, r"series has no series\.json"),
    "cut": (lambda data: data[:60], r"series\.json in series is not valid JSON"),
    "empty": (lambda data: b"", r"series\.json in series is not valid JSON"),
    "changed": (lambda data: data.replace(b"0.001", b"0.002"), r"series\.json in series fails its checksum"),
}


@pytest.mark.parametrize(("damaged", "reason"), DAMAGE.values(), ids=list(DAMAGE))
def test_steps_can_be_read_without_the_document(
    fields: wb.Series, damaged: Callable[[bytes], bytes | None], reason: str
) -> None:
    path, begun = fields.path / "series.json", (wb.Absolute(1e-3), "interpolation")
    before = path.read_bytes()
    if (data := damaged(before)) is None:
        path.unlink()
    else:
        path.write_bytes(data)
    with pytest.warns(UserWarning, match=rf"{reason}.*: steps can be read; to append more, give the arguments"):
        series = wb.Series(fields.path)
    assert series.verify([field(number) for number in range(6)]).passed
    with pytest.warns(UserWarning, match=reason):
        assert len(wb.open(fields.path)) == 6
    with pytest.raises(wb.WorkbenchError, match=rf"{reason}.*: to append more, give the arguments .*series', bound"):
        series.append(field(6), 6.0)
    wb.Series(fields.path, *begun, every=3).append(field(6), 6.0)
    assert path.read_bytes() == before
    series.append(field(7), 7.0)
    assert wb.Series(fields.path).verify([field(number) for number in range(8)]).passed


def test_a_damaged_document_without_steps_is_refused(tmp_path: Path, six: Path) -> None:
    (tmp_path / "series.json").write_bytes((six / "series.json").read_bytes()[:60])
    with pytest.raises(wb.GuaranteeBroken, match=r"series\.json in .* is not valid JSON"):
        wb.Series(tmp_path)
    (tmp_path / "series.json").unlink()
    wb.compress(field(0), wb.Absolute(1e-3), out=tmp_path / "step-000000.zip")   # of no series
    with pytest.raises(wb.WorkbenchError, match="there is none: give a bound to begin a series"):
        wb.Series(tmp_path)
    with pytest.raises(wb.WorkbenchError, match="a series begins in an empty folder"):
        wb.Series(tmp_path, wb.Absolute(1e-3)).append(field(0), 0.0)


def test_the_document_of_a_newer_version_is_not_written_over(fields: wb.Series) -> None:
    path = fields.path / "series.json"
    newer = document.unsealed(document.from_bytes(path.read_bytes(), ""), "")
    newer["attributes"]["format"] = 2
    path.write_bytes(document.to_bytes(document.sealed(newer)))
    with pytest.raises(wb.WorkbenchError, match="another version of lossbench may read it"):
        wb.Series(fields.path, wb.Absolute(1e-3))


@pytest.mark.parametrize("lost", [(1,), (2,), (3,), (0, 5)])
@pytest.mark.parametrize("missing", [False, True], ids=["damaged", "missing"])
def test_whole_steps_are_salvaged(fields: wb.Series, tmp_path: Path, lost: tuple[int, ...], missing: bool) -> None:
    for number in lost:
        path = fields.path / f"step-{number:06d}.zip"
        data = bytearray(path.read_bytes())
        data[len(data) // 3] ^= 1
        path.write_bytes(data)
        if missing:
            path.unlink()

    left = whole_steps(wb.Series(fields.path))
    assert set(left).isdisjoint(lost)
    assert not missing or left == {(1,): [0, 3, 4, 5], (2,): [0, 1, 3, 4, 5], (3,): [0, 1, 2], (0, 5): [3, 4]}[lost]
    damaged = wb.Series(fields.path).salvage(tmp_path / "rest")
    count = len(wb.Series(fields.path))
    assert [one.where for one in damaged] == [f"step {number}" for number in range(count) if number not in left]
    rest = wb.Series(tmp_path / "rest")
    assert whole_steps(rest) == left
    for number in left:
        assert rest[number].verify(field(number)).passed
    with pytest.raises(wb.WorkbenchError, match="exists: choose another name"):
        fields.salvage(rest.path)


def whole_steps(series: wb.Series) -> list[int]:
    """The steps that hold, with all that they need."""
    found = []
    for number in range(len(series)):
        with contextlib.suppress(wb.WorkbenchError):
            found.append(number * series[number].verify().passed)
    return found


def test_steps_are_salvaged_of_which_only_a_copy_is_damaged_or_whose_ids_are_lost(tmp_path: Path) -> None:
    series = wb.Series(tmp_path / "series", wb.Absolute(1e-3), every=4)
    for number in range(8):
        series.append(particles(number).select(np.arange(20 - number)))
    step = series.path / "step-000005.zip"
    with zipfile.ZipFile(step) as file:
        copy = file.getinfo("zarr.json")
    place = copy.header_offset + 30 + len(copy.filename) + copy.compress_size // 2
    (series.path / "step-000006.zip").unlink()
    data = bytearray(step.read_bytes())
    data[place] ^= 1
    step.write_bytes(data)
    assert [one.where for one in wb.Series(series.path).salvage(tmp_path / "rest")] == ["step 5", "step 6", "step 7"]
    rest = wb.Series(tmp_path / "rest")
    assert [len(rest[number].decompress()) for number in (0, 4, 5)] == [20, 16, 15]


def test_nothing_to_salvage(fields: wb.Series, tmp_path: Path) -> None:
    for number in (0, 3):
        (fields.path / f"step-{number:06d}.zip").write_bytes(b"nothing")
    with pytest.raises(wb.GuaranteeBroken, match=r"nothing of series can be read: .*step 0"):
        wb.Series(fields.path).salvage(tmp_path / "rest")
    assert not list(tmp_path.glob("*rest*"))


APPENDING = """
import sys
import numpy as np
import workbench as wb

grid = np.random.default_rng(0).normal(size=(40, 40)).cumsum(axis=0).astype("f4")
points = np.random.default_rng(0).uniform(0, 1, (500, 3))
series = {
    "fields": wb.Series(sys.argv[1] + "/fields", wb.Absolute(1e-3), every=4),
    "particles": wb.Series(sys.argv[1] + "/particles", wb.Absolute(1e-3), order="free"),
}
print("ready", flush=True)
for number in range(len(series["particles"]), 40):
    ids = np.arange(number, number + 500)
    if len(series["fields"]) == number:
        series["fields"].append(wb.Field(grid + np.float32(0.01 * number)), number)
    series["particles"].append(wb.Particles(points + 0.001 * number, 2.0, ids=ids), number)
    print(number, flush=True)
"""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_run_that_fails_loses_nothing(fields: wb.Series, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(writing, "take_name", fail)
        with pytest.raises((OSError, wb.WorkbenchError, KeyboardInterrupt)):
            fields.append(field(6), 6.0)
    assert len(wb.Series(fields.path)) == 6
    fields.append(field(6), 6.0)
    assert fields.verify([field(number) for number in range(7)]).passed


@pytest.mark.long
def test_a_run_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    script, rng, done = tmp_path / "append.py", random.Random(0), -1
    script.write_text(textwrap.dedent(APPENDING))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as run:
            assert run.stdout is not None
            assert run.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 1.0))
            run.send_signal(signal.SIGKILL)
            done = max([done, *(int(line) for line in run.stdout.read().split("\n") if line.strip().isdigit())])
        for name in ("fields", "particles"):
            if not (tmp_path / name / "series.json").exists():
                assert done < 0
                continue
            series = wb.Series(tmp_path / name)
            assert len(series) > done
            assert (not len(series) or series.verify().passed)
    assert done >= 1
    series = wb.Series(tmp_path / "particles")
    count = len(series)
    series.append(wb.Particles(POINTS, 2.0, ids=np.arange(20)), 100.0)
    assert len(series) == count + 1
    assert not [path for path in series.path.iterdir() if ".partial" in path.name]


@pytest.mark.parametrize(
    ("step", "stated"),
    [
        (2, {"vanished": 10**12}), (2, {"vanished": 10**12, "appeared": 10**12}), (2, {"vanished": 0}),
        (2, {"appeared": 10**9}), (2, {"ids": 0}), (0, {"ids": None}), (2, {"key": 2}), (2, {"before": ["a"] * 3}),
    ],
)
def test_what_a_step_states_of_its_particles_is_compared(tmp_path: Path, step: int, stated: dict[str, Any]) -> None:
    series = wb.Series(tmp_path / "s", wb.Absolute(1e-3))
    for number in range(3):
        ids = np.concatenate([np.arange(number, 18), 100 + np.arange(2 * number)])
        series.append(wb.Particles(np.random.default_rng(0).random((len(ids), 3)), ids=ids))
    path = series.path / f"step-{step:06d}.zip"
    forged = resealed(parts(wb.open(path)), "zarr.json", lambda root: root["attributes"]["series"].update(stated))
    write(path, forged.items(), overwrite=True)
    with pytest.raises(wb.WorkbenchError, match=r"contradicts itself|must state which|predicted from another"):
        [archive.salvage() for archive in wb.Series(series.path)]
