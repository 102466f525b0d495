"""Runs that fail leave what is done for the same call; one at a time writes an archive, and all its parts are counted."""

import errno
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

import workbench as wb
from workbench import backend
from workbench.archive import encoded, lock, writing
from workbench.archive.placing import take_name
from workbench.archive.store import open_store
from workbench.archive.writing import Draft
from workbench.errors import WorkbenchError
from workbench.run import owner

compressing = sys.modules["workbench.archive.encoded"]
VALUES = np.random.default_rng(1).standard_normal((8, 24)).cumsum(1)
VALUES[0, 3] = np.nan


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compress(out, source, **options):
    return wb.compress(source, out=out, **{"bound": wb.Relative(1e-3), "codec": "prequantised"} | options)


@pytest.fixture
def failing(monkeypatch):
    """The third chunk of a field fails, once; the list of chunks that were encoded."""
    encode, seen = compressing.encode_values, []

    def encoded(task, values, mask=None):
        seen.append(values.shape)
        if len(seen) == 3:
            raise WorkbenchError("the third chunk fails")
        return encode(task, values, mask)

    monkeypatch.setattr(compressing, "encode_values", encoded)
    with backend.using_threads(1):   # one chunk after the other
        yield seen


@pytest.mark.parametrize("suffix", [".zarr", ".zip"])
def test_a_field_goes_on_from_the_chunks_that_were_done_before_an_error(tmp_path, failing, suffix):
    field = wb.Field(VALUES, mask=np.isnan(VALUES))
    with pytest.raises(WorkbenchError, match="the third chunk fails") as raised:
        compress(tmp_path / f"a{suffix}", field, chunk_values=48)
    assert "the same call goes on from there" in raised.value.__notes__[0]
    failing.clear()
    failing.extend([None] * 3)
    compress(tmp_path / f"a{suffix}", field, chunk_values=48)
    again = len(failing) - 3
    failing.clear()
    failing.extend([None] * 3)
    compress(tmp_path / f"b{suffix}", field, chunk_values=48)
    assert again == len(failing) - 3 - 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a{suffix}", f"b{suffix}"]
    same = files if suffix == ".zarr" else (lambda path: path.read_bytes())
    assert same(tmp_path / f"a{suffix}") == same(tmp_path / f"b{suffix}")


def test_chunks_of_other_values_are_not_taken_over(tmp_path, failing):
    with pytest.raises(WorkbenchError, match="the third chunk fails"):
        compress(tmp_path / "a.zarr", wb.Field(np.nan_to_num(VALUES)), chunk_values=48)
    failing.extend([None] * 3)
    other = wb.Field(np.nan_to_num(VALUES) + 1)
    assert compress(tmp_path / "a.zarr", other, chunk_values=48).verify(other).passed


def test_an_error_before_any_chunk_leaves_nothing(tmp_path, monkeypatch):
    def refuse(task, values, mask=None):
        raise WorkbenchError("no chunk works")

    monkeypatch.setattr(compressing, "encode_values", refuse)
    with pytest.raises(WorkbenchError, match="no chunk works"):
        compress(tmp_path / "a.zarr", wb.Field(VALUES[1:]))
    assert not list(tmp_path.iterdir())


def test_an_archive_that_lacks_parts_does_not_become_one(tmp_path):
    draft = Draft(tmp_path / "a.zarr", token="t")
    draft.put("values/c/0", b"LBC1")
    with pytest.raises(WorkbenchError, match=r"must have 2 parts; 1 are missing, such as values/c/1"):
        draft.commit(b"{}", ["values/c/0", "values/c/1"])
    assert not (tmp_path / "a.zarr").exists()
    assert (draft.partial / "values" / "c" / "0").exists()


def test_a_second_run_of_the_same_call_is_refused_while_the_first_one_lives(tmp_path):
    first, second = (Draft(tmp_path / "a.zarr", token="t") for _ in range(2))
    with first.continued():
        with pytest.raises(WorkbenchError, match="must be written by one run at a time"), second.continued():
            pytest.fail("both write")
        first.put("values/c/0", b"LBC1")
        first.commit(b"{}", ["values/c/0"])
    assert sorted(files(tmp_path / "a.zarr")) == ["values/c/0", "zarr.json"]


@pytest.mark.parametrize("name", ["a.zarr", "a.zip"])
def test_parts_of_another_plan_are_left_out_and_the_lock_outlives_the_name(tmp_path, name, monkeypatch):
    locked = []
    monkeypatch.setattr(writing, "take_name", lambda *given: (locked.append((draft.folder / lock.LOCK).exists()),
                                                              take_name(*given)))
    draft = Draft(tmp_path / name, token="t")
    with draft.continued():
        for key in ("values/c/0", "mask/c/0", "values/root.json.z"):
            draft.put(key, b"LBC1")
        draft.commit(b"{}", ["values/c/0"])
    assert locked == [True]
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert sorted(open_store(tmp_path / name).keys()) == ["values/c/0", "values/root.json.z", "zarr.json"]


def test_errors_of_the_system_elsewhere_keep_their_names(tmp_path):
    draft = Draft(tmp_path / "a.zarr", token="t")
    with pytest.raises(FileNotFoundError), draft.continued():
        (tmp_path / "snapshot.hdf5").open()


def ended():
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(("host", "age", "free"), [("here", 0, True), ("there", 9999, True), ("there", 0, False)])
def test_locks_of_runs_that_have_ended_are_taken_over(tmp_path, monkeypatch, host, age, free):
    monkeypatch.setattr(owner.socket, "gethostname", lambda: "here")
    place = tmp_path / lock.LOCK
    place.write_text(json.dumps({"host": host, "pid": ended(), "started": "1"}))
    os.utime(place, (time.time() - age,) * 2)
    if free:
        with lock.held(tmp_path, tmp_path / "a.zarr"):
            assert json.loads(place.read_text())["pid"] == os.getpid()
        assert not place.exists()
    else:
        with pytest.raises(WorkbenchError, match="one run at a time"), lock.held(tmp_path, tmp_path / "a.zarr"):
            pytest.fail("both hold it")


def test_locks_need_no_hard_links(tmp_path, monkeypatch):
    def refuse(*given):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    place, target = tmp_path / lock.LOCK, tmp_path / "a.zarr"
    with lock.held(tmp_path, target):
        assert json.loads(place.read_text())["pid"] == os.getpid()
        with pytest.raises(WorkbenchError, match="one run at a time"), lock.held(tmp_path, target):
            pytest.fail("both hold it")
    assert not list(tmp_path.iterdir())
    place.write_text(json.dumps({"host": owner.socket.gethostname(), "pid": ended(), "started": "1"}))
    with lock.held(tmp_path, target):
        assert json.loads(place.read_text())["pid"] == os.getpid()
    assert not list(tmp_path.iterdir())


def test_a_zip_file_for_which_the_disk_has_no_room_is_removed_and_the_next_run_goes_on(tmp_path, monkeypatch):
    fill = writing._fill_zip

    def fill_a_bit(place, *given):
        place.write_bytes(b"PK")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(writing, "_fill_zip", fill_a_bit)
    with pytest.raises(WorkbenchError, match="No space left"):
        compress(tmp_path / "a.zip", wb.Field(VALUES[1:]))
    assert not list(tmp_path.rglob("archive.zip"))
    monkeypatch.setattr(writing, "_fill_zip", fill)
    draft = next(tmp_path.iterdir())
    (draft / "archive.zip").write_bytes(b"of a run that was killed while it wrote")
    compress(tmp_path / "a.zip", wb.Field(VALUES[1:]))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_masked_field_that_goes_on_states_what_a_fresh_one_does(tmp_path):
    values = np.arange(40.0).reshape(8, 5)
    mask = np.zeros(values.shape, bool)
    mask[1, 1] = mask[6, 2] = True
    values[mask] = 5.0   # a value that a valid cell of the first chunk holds
    field, bound = wb.Field(values, mask=mask), wb.Absolute(0)
    whole = wb.compress(field, bound, "prequantised", out=tmp_path / "whole.zarr", chunk_values=10)
    assert "missing_value" not in whole.data.layout.attributes
    put, written = Draft.put, []

    def fail(self, key, data):
        if len(written) > 3:
            raise OSError("the disk is gone")
        written.append(key)
        put(self, key, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft, "put", fail)
        with pytest.raises((OSError, wb.WorkbenchError)):
            wb.compress(field, bound, "prequantised", out=tmp_path / "again.zarr", chunk_values=10)
    again = wb.compress(field, bound, "prequantised", out=tmp_path / "again.zarr", chunk_values=10)
    assert again.data.layout.attributes == whole.data.layout.attributes


def test_a_lock_that_is_damaged_is_that_of_a_run_until_it_is_old(tmp_path):
    place = tmp_path / lock.LOCK
    here = json.dumps(owner.socket.gethostname())
    texts = ("", "{", "[]", '{"host": 1}', "[" * 10**5, f'{{"host": {here}, "pid": 1e999, "started": "1"}}',
             f'{{"host": {here}, "pid": {2**70}, "started": "1"}}')
    for text in (*(each.encode() for each in texts), b"\xff\xfe"):
        place.write_bytes(text)
        with pytest.raises(wb.WorkbenchError, match="one run at a time"), lock.held(tmp_path, tmp_path / "a.zarr"):
            pass
        os.utime(place, (0, 0))
        with lock.held(tmp_path, tmp_path / "a.zarr"):
            assert [path.name for path in tmp_path.iterdir()] == [lock.LOCK]


def test_the_lock_of_a_run_that_was_killed_and_not_waited_for_is_taken_over(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    text = json.dumps({"host": owner.socket.gethostname(), "pid": holder.pid, "started": owner.started(holder.pid)})
    (tmp_path / lock.LOCK).write_text(text)
    with pytest.raises(WorkbenchError, match="one run at a time"), lock.held(tmp_path, tmp_path / "a.zarr"):
        pytest.fail("both hold it")
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)   # it has ended, and nobody has asked for it
    with lock.held(tmp_path, tmp_path / "a.zarr"):
        assert json.loads((tmp_path / lock.LOCK).read_text())["pid"] == os.getpid()
    holder.communicate()


@pytest.mark.parametrize("exchanged", [True, False])
def test_a_run_killed_when_the_old_archive_has_changed_places_with_the_new_one_can_be_repeated(tmp_path, exchanged):
    out = tmp_path / "a.zarr"
    old = wb.compress(wb.Field(np.arange(9.0), mask=np.arange(9) > 5), wb.Absolute(0.1), out=out)
    before = files(out)
    exchange = backend.exchange_names

    def die(partial, target):
        if exchanged:
            assert exchange(partial, target)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "exchange_names", die)
        with pytest.raises(KeyboardInterrupt):
            compress(out, VALUES, overwrite=True)
    assert (files(out) == before) is not exchanged
    assert exchanged or old.verify().passed
    compress(out, VALUES, overwrite=True)
    compress(tmp_path / "b.zarr", VALUES)
    assert files(out) == files(tmp_path / "b.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zarr", "b.zarr"]


@pytest.mark.parametrize(("name", "step"), [("a.zarr", "rename"), ("a.zarr", "fsync"), ("a.zip", "link")])
def test_nothing_is_encoded_again_after_an_error_while_the_archive_gets_its_name(tmp_path, monkeypatch, name, step):
    real, encode, seen = getattr(os, step), compressing.encode_values, []
    monkeypatch.setattr(compressing, "encode_values", lambda *given: (seen.append(1), encode(*given))[1])

    def fail(*given, **named):
        if len(seen) == 4 and (step != "fsync" or os.path.isdir(f"/proc/self/fd/{given[0]}")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(WorkbenchError, match="No space left"):
            compress(tmp_path / name, np.nan_to_num(VALUES), chunk_values=48)
    assert len(seen) == 4
    compress(tmp_path / name, np.nan_to_num(VALUES), chunk_values=48)
    assert len(seen) == 4
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_record_for_which_the_disk_has_no_room_is_an_error_that_names_it(tmp_path, monkeypatch):
    real = os.replace

    def fail(one, other):
        if encoded.RECORDS in str(other):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(one, other)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(WorkbenchError, match=r"records/0 cannot be written \(No space left on device\): make room"):
        compress(tmp_path / "a.zarr", VALUES)


def test_a_run_that_ends_while_another_asks_for_its_lock_ends_well(tmp_path, monkeypatch):
    draft = Draft(tmp_path / "a.zip", token="t")
    remove, asked = writing.remove, []

    def remove_slowly(path):
        if path != draft.folder / "archive.zip" and not asked:
            asked.append(Draft(tmp_path / "a.zip", token="t"))
            with pytest.raises(WorkbenchError, match="only this error"), asked[0].continued():
                raise WorkbenchError("only this error")
        remove(path)

    with draft.continued():
        draft.put("values/c/0", b"LBC1")
        monkeypatch.setattr(writing, "require_free", lambda *given: None)   # as before the archive has its name
        monkeypatch.setattr(writing, "remove", remove_slowly)
        draft.commit(b"{}", ["values/c/0"])
    assert asked
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
