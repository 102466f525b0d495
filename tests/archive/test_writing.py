import errno
import multiprocessing
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import threading
import tracemalloc
import zipfile
from contextlib import nullcontext

import pytest

from workbench import backend
from workbench.archive import document, placing
from workbench.archive.key import ROOT
from workbench.archive.members import nbytes_in_zip
from workbench.archive.root import group_metadata, read_root
from workbench.archive.store import open_store
from workbench.archive.writing import Draft, write
from workbench.errors import WorkbenchError

OURS = document.to_bytes(group_metadata({"kind": "test"}))
ENTRIES = {ROOT: OURS, "a/c/0/0": b"first", "a/c/0/1": b"", "a/c/1/0": b"third"}
NAMES = ["some.zarr", "some.zip", "some.zarr.zip", "some"]


@pytest.fixture(params=["some.zarr", "some.zip"])
def target(request, tmp_path):
    return tmp_path / request.param


def content(path):
    store = open_store(path)
    return {key: store.read(key) for key in store.keys()}   # noqa: SIM118 - not a dictionary


def beside(path):
    """What else stands in the same folder."""
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(tmp_path, name):
    assert write(tmp_path / name, ENTRIES.items()) == tmp_path / name
    assert (tmp_path / name).is_file() == name.endswith(".zip")
    assert content(tmp_path / name) == ENTRIES
    assert beside(tmp_path / name) == []
    assert read_root(open_store(tmp_path / name)).attributes == {"kind": "test"}


def test_the_same_parts_make_the_same_bytes(tmp_path, monkeypatch):
    write(tmp_path / "one.zip", ENTRIES.items())
    monkeypatch.setattr("time.time", lambda: 2e9)
    monkeypatch.setattr("time.localtime", lambda *_: (2033, 5, 18, 3, 33, 20, 2, 138, 0))
    write(tmp_path / "two.zip", ENTRIES.items())
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_zip_file_is_whole_in_the_eyes_of_others(tmp_path):
    write(tmp_path / "some.zip", ENTRIES.items())
    with zipfile.ZipFile(tmp_path / "some.zip") as opened:
        assert opened.testzip() is None
        assert {key: opened.read(key) for key in opened.namelist()} == ENTRIES
        deflated = {member.filename for member in opened.infolist() if member.compress_type == zipfile.ZIP_DEFLATED}
        assert deflated == {key for key in ENTRIES if key.endswith("zarr.json")}
        assert {member.compress_type for member in opened.infolist()} == {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        stored = sum(member.compress_size for member in opened.infolist())
    assert stored == nbytes_in_zip(ENTRIES)


def test_files_are_as_open_as_the_user_wants_them(target):
    before = os.umask(0o027)
    try:
        write(target, ENTRIES.items())
    finally:
        os.umask(before)
    assert target.stat().st_mode & 0o777 == (0o640 if target.suffix == ".zip" else 0o750)


@pytest.mark.long
def test_a_zip_file_may_have_very_many_parts(tmp_path):
    many = {ROOT: OURS} | {f"a/c/{i}": b"%d" % i for i in range(70_000)}
    write(tmp_path / "some.zip", many.items())
    store = open_store(tmp_path / "some.zip")
    assert len(store.keys()) == 70_001
    assert store.read("a/c/69999") == b"69999"


def test_one_part_at_a_time_is_in_memory(target):
    def large():
        yield ROOT, OURS
        for number in range(40):
            yield f"a/c/{number}", bytes(2**20)

    tracemalloc.start()
    try:
        write(target, large())
        assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
    finally:
        tracemalloc.stop()
    store = open_store(target)
    assert sum(map(store.size, store.keys())) == 40 * 2**20 + len(OURS)


def test_the_root_is_written_last(tmp_path):
    seen = []

    def watched():
        for entry in ENTRIES.items():
            yield entry
            (partial,) = tmp_path.glob(".some.zarr.*.partial")
            seen.append((partial / ROOT).exists())

    write(tmp_path / "some.zarr", watched())
    assert seen == [False] * len(ENTRIES)
    with zipfile.ZipFile(write(tmp_path / "some.zip", ENTRIES.items())) as opened:
        assert opened.namelist()[-1] == ROOT


def test_everything_is_on_the_disk_before_it_gets_its_name(target, monkeypatch):
    events = []
    real = {name: getattr(os, name) for name in ("fsync", "link", "rename")}

    def fsync(descriptor):
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real["fsync"](descriptor)

    def named(step):
        return lambda *given: events.append("named") or real[step](*given)

    monkeypatch.setattr(os, "fsync", fsync)
    for step in ("link", "rename"):
        monkeypatch.setattr(os, step, named(step))
    write(target, ENTRIES.items())
    named = events.index("named")
    events = [re.sub(r"/\.([^/]*)\.[0-9a-f]{8}$", r"/\1", event) for event in events]   # parts get their names when whole
    (partial,) = {event for event in events[:named] if event.endswith((".partial", "/parts"))}
    parts = {path.relative_to(target) for path in target.rglob("*")} if target.is_dir() else set()
    assert set(events[:named]) == {partial, *(f"{partial}/{part}" for part in parts)}
    assert events[named + 1] == str(target.parent)


# failures


def breaking(error, after=2):
    for number, entry in enumerate(ENTRIES.items()):
        if number == after:
            raise error
        yield entry


@pytest.mark.parametrize("error", [RuntimeError("of the caller"), KeyboardInterrupt(), OSError(errno.EIO, "of the caller")])
def test_an_error_on_the_way_leaves_nothing_and_is_passed_on(target, error):
    with pytest.raises(type(error)) as caught:
        write(target, breaking(error))
    assert caught.value is error
    assert not target.exists()
    assert beside(target) == []


@pytest.mark.parametrize("error", [RuntimeError("of the caller"), KeyboardInterrupt()])
def test_an_error_on_the_way_keeps_what_was_there(target, error):
    write(target, ENTRIES.items())
    with pytest.raises(type(error)):
        write(target, breaking(error), overwrite=True)
    assert content(target) == ENTRIES
    assert beside(target) == []


@pytest.mark.parametrize(("entries", "complaint"), [
    ([("a/c/0", b"")], r"an archive needs a zarr\.json; got 1 other parts"),
    ([], r"an archive needs a zarr\.json; got 0 other parts"),
    ([(ROOT, OURS), ("../outside", b"")], "a key must be names of"),
    ([(ROOT, OURS), ("/etc/outside", b"")], "a key must be names of"),
    ([(ROOT, OURS), ("a", b""), ("a", b"")], "must have different keys; got a twice"),
    ([(ROOT, OURS), (ROOT, OURS)], r"must have different keys; got zarr\.json twice"),
])
def test_parts_that_make_no_archive_leave_nothing(target, entries, complaint):
    with pytest.raises(WorkbenchError, match=complaint):
        write(target, entries)
    assert not target.exists()
    assert beside(target) == []


def test_a_part_below_a_part_is_refused_in_a_directory(tmp_path):
    with pytest.raises(WorkbenchError, match=r"cannot write .*some\.zarr: (Not a directory|File exists)"):
        write(tmp_path / "some.zarr", [(ROOT, OURS), ("a", b""), ("a/b", b"")])
    assert list(tmp_path.iterdir()) == []


FULL_DISK = """
import resource, sys
from workbench.archive.writing import write
from workbench.errors import WorkbenchError

resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))   # no file may grow beyond this, as on a full disk
try:
    write(sys.argv[1], [("zarr.json", b"{}"), ("a/c/0", bytes(1000)), ("a/c/1", bytes(2**17))])
except WorkbenchError as error:
    print(error)
"""


def test_a_disk_that_does_not_take_more_is_named_and_nothing_left(target):
    command = [sys.executable, "-W", "error", "-c", FULL_DISK, target]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {target}: File too large\n"
    assert done.stderr == ""
    assert not target.exists()
    assert beside(target) == []


@pytest.mark.parametrize("call", ["fsync", "mkdir", "open", "link", "rename", "replace"])
@pytest.mark.parametrize("failing", [0, 1, 2, 3, 4, 5, 6])
def test_a_disk_that_fails_at_any_moment_keeps_what_was_there(target, monkeypatch, call, failing):
    write(target, ENTRIES.items())
    calls = iter(range(100))
    real = getattr(os, call)

    def fails(*given, **named):
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    monkeypatch.setattr(os, call, fails)
    complaint = ""
    try:
        write(target, (ENTRIES | {"a/c/2/0": b"new"}).items(), overwrite=True)
    except WorkbenchError as error:
        complaint = str(error)
    monkeypatch.undo()
    assert not complaint or "No space left on device" in complaint
    assert content(target) in (ENTRIES, ENTRIES | {"a/c/2/0": b"new"})
    assert all("is written, but the old archive remains as" in complaint and left in complaint for left in beside(target))


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("existed", [False, True])
def test_a_last_step_that_fails_keeps_what_was_there(target, monkeypatch, existed, exchange):
    if existed:
        write(target, ENTRIES.items())

    def failing(real):
        def fails(one, other):
            if str(one).endswith((".partial", "/parts")) and not str(other).endswith(".partial"):
                raise OSError(errno.EXDEV, "Invalid cross-device link")
            return real(one, other)

        return fails

    for step in ("link", "rename", "replace"):
        monkeypatch.setattr(os, step, failing(getattr(os, step)))
    monkeypatch.setattr(backend, "exchange_names", failing(backend.exchange_names) if exchange else lambda *_: False)
    with pytest.raises(WorkbenchError, match=r"cannot write .*: Invalid cross-device link"):
        write(target, [(ROOT, OURS)], overwrite=True)
    assert target.exists() == existed
    assert not existed or content(target) == ENTRIES
    assert beside(target) == []


def test_a_file_system_without_second_names_takes_archives_too(tmp_path, monkeypatch):
    def fails(*given):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", fails)
    target = write(tmp_path / "some.zip", ENTRIES.items())
    assert content(target) == ENTRIES
    assert beside(target) == []


def test_a_folder_is_replaced_where_names_cannot_be_exchanged(tmp_path, monkeypatch):
    target = write(tmp_path / "some.zarr", ENTRIES.items())
    monkeypatch.setattr(backend, "exchange_names", lambda *_: False)
    write(target, [(ROOT, OURS)], overwrite=True)
    assert content(target) == {ROOT: OURS}
    assert beside(target) == []


@pytest.mark.parametrize("reason", [errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EIO])
def test_a_file_system_that_flushes_no_folders_takes_archives_too(target, monkeypatch, reason):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(reason, os.strerror(reason))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(WorkbenchError, match="Input/output error") if reason == errno.EIO else nullcontext():
        write(target, ENTRIES.items())
        assert content(target) == ENTRIES


def test_a_part_that_cannot_be_written_leaves_nothing_in_a_draft(target, monkeypatch):
    def fails(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    draft = Draft(target, token="token")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(WorkbenchError, match="No space left on device") as raised, draft.continued():
        draft.put("a/c/0/0", b"first")
    assert not hasattr(raised.value, "__notes__")   # that something is done
    assert beside(target) == []


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("step", [placing._claim, placing.swap])
def test_what_another_program_wrote_meanwhile_is_not_replaced(tmp_path, monkeypatch, step, exchange):
    target, partial = tmp_path / "some.zarr", tmp_path / ".some.zarr.partial"
    target.write_text("ten years of work") if step is placing._claim else folder_of_others(target)
    partial.mkdir()
    (partial / ROOT).write_bytes(OURS)
    if not exchange:
        monkeypatch.setattr(backend, "exchange_names", lambda *_: False)
    with pytest.raises(WorkbenchError, match=r"some\.zarr was written by another process in the meantime"):
        step(partial, target)
    kept = target if step is placing._claim else target / "thesis.tex"
    assert kept.read_text() == "ten years of work"
    assert (partial / ROOT).read_bytes() == OURS
    assert beside(target) == [partial.name]


def test_a_folder_that_is_continued_is_no_link(tmp_path):
    (tmp_path / ".some.zarr.token.partial").symlink_to(tmp_path)
    with pytest.raises(WorkbenchError, match=r"must be a folder of this user"):
        Draft(tmp_path / "some.zarr", token="token")


@pytest.mark.parametrize("folder", [False, True])
def test_what_an_interrupted_writer_left_empty_counts_as_absent(target, folder):
    target.mkdir() if folder else target.touch()
    write(target, ENTRIES.items())
    assert content(target) == ENTRIES
    assert beside(target) == []


KILLED = """
import sys, time
from workbench.archive import document
from workbench.archive.root import group_metadata
from workbench.archive.writing import write

def entries():
    yield "zarr.json", document.to_bytes(group_metadata({}))
    for number in range(5):
        yield f"a/c/{number}", bytes(10_000)
    print("half", flush=True)
    time.sleep(60)

write(sys.argv[1], entries(), overwrite=True)
"""


@pytest.mark.few
@pytest.mark.parametrize("existed", [False, True])
def test_a_writer_that_is_killed_leaves_what_was_there_and_nothing_that_opens(target, existed):
    if existed:
        write(target, ENTRIES.items())
    with subprocess.Popen([sys.executable, "-c", KILLED, target], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "half\n"
        writer.send_signal(signal.SIGKILL)
    assert target.exists() == existed
    (left,) = beside(target)
    assert left.startswith(f".{target.name}.")
    assert left.endswith(".partial")
    with pytest.raises(WorkbenchError):
        read_root(open_store(target.parent / left))
    write(target, ENTRIES.items(), overwrite=True)
    assert content(target) == ENTRIES


KILLED_AT_NAMING = """
import os, signal, sys
from workbench import backend
from workbench.archive import document
from workbench.archive.root import group_metadata
from workbench.archive.writing import write

def deadly(real, before):
    def step(one, other):
        if str(one).endswith((".partial", "/parts")) and not str(other).endswith(".partial"):
            before or real(one, other)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(one, other)
    return step

for place, name in ((os, "link"), (os, "rename"), (os, "replace"), (backend, "exchange_names")):
    setattr(place, name, deadly(getattr(place, name), sys.argv[2] == "before"))
write(sys.argv[1], [("zarr.json", document.to_bytes(group_metadata({"kind": "test"}))), ("a/c/0", b"new")], overwrite=True)
"""


@pytest.mark.few
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("existed", [False, True])
def test_a_kill_while_the_archive_gets_its_name_leaves_the_old_one_or_the_new_one_or_none(target, moment, existed):
    if existed:
        write(target, ENTRIES.items())
    killed = subprocess.run([sys.executable, "-c", KILLED_AT_NAMING, target, moment], check=False)
    assert killed.returncode == -signal.SIGKILL
    if moment == "after":
        assert content(target) == {ROOT: OURS, "a/c/0": b"new"}
    else:
        assert target.exists() == existed
        assert not existed or content(target) == ENTRIES
    write(target, ENTRIES.items(), overwrite=True)
    assert content(target) == ENTRIES


# what is there already


def test_an_archive_is_not_replaced_unless_asked(target):
    write(target, ENTRIES.items())
    with pytest.raises(WorkbenchError, match=f"{target.name} exists: choose another name, or pass overwrite=True"):
        write(target, [(ROOT, OURS)])
    assert content(target) == ENTRIES
    write(target, [(ROOT, OURS), ("b/c/0", b"new")], overwrite=True)
    assert content(target) == {ROOT: OURS, "b/c/0": b"new"}
    assert beside(target) == []


def test_nothing_is_computed_for_a_target_that_will_be_refused(target):
    write(target, ENTRIES.items())
    started = []
    with pytest.raises(WorkbenchError, match="exists"):
        write(target, (started.append(1) or entry for entry in ENTRIES.items()))
    assert started == []


def folder_of_others(path):
    path.mkdir()
    (path / "thesis.tex").write_text("ten years of work")


def zarr_of_others(path):
    folder_of_others(path)
    (path / ROOT).write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')


def folder_with_broken_root(path):
    folder_of_others(path)
    (path / ROOT).write_bytes(b"{")


def photos(path):
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("beach.jpg", b"pixels")


def text_file(path):
    path.write_text("ten years of work")


@pytest.mark.parametrize("make", [folder_of_others, zarr_of_others, folder_with_broken_root, text_file, photos])
def test_what_is_not_an_archive_is_never_replaced(target, make):
    make(target)
    before = sorted(target.rglob("*")) if target.is_dir() else target.read_bytes()
    with pytest.raises(WorkbenchError, match=r"only an archive written by lossbench is overwritten; .* is not"):
        write(target, ENTRIES.items(), overwrite=True)
    assert before == (sorted(target.rglob("*")) if target.is_dir() else target.read_bytes())
    assert beside(target) == []


def test_an_archive_is_not_replaced_by_one_of_the_other_kind(tmp_path):
    write(tmp_path / "one", ENTRIES.items())
    (tmp_path / "one").rename(tmp_path / "folder.zip")
    write(tmp_path / "two.zip", ENTRIES.items())
    (tmp_path / "two.zip").rename(tmp_path / "file.zarr")
    for name in ("folder.zip", "file.zarr"):
        with pytest.raises(WorkbenchError, match=r"is overwritten; .* is not"):
            write(tmp_path / name, ENTRIES.items(), overwrite=True)
        assert content(tmp_path / name) == ENTRIES


def test_an_archive_of_ours_is_replaced_even_when_damaged(tmp_path):
    write(tmp_path / "some.zarr", ENTRIES.items())
    (tmp_path / "some.zarr" / ROOT).write_bytes(OURS.replace(b"test", b"rest"))
    write(tmp_path / "some.zarr", ENTRIES.items(), overwrite=True)
    assert content(tmp_path / "some.zarr") == ENTRIES


def test_behind_a_link_the_archive_is_replaced_and_not_the_link(target):
    link = target.with_name(f"link{target.suffix}")
    write(target, ENTRIES.items())
    link.symlink_to(target.name)
    write(link, [(ROOT, OURS)], overwrite=True)
    assert link.is_symlink()
    assert content(target) == {ROOT: OURS}


def test_of_two_writers_one_is_told(target, monkeypatch):
    meet = threading.Barrier(2, timeout=30)
    real = placing._claim

    def claim(partial, target):
        meet.wait()   # both have found that there is nothing yet
        real(partial, target)

    monkeypatch.setattr(placing, "_claim", claim)
    outcomes = {}

    def run(name):
        try:
            outcomes[name] = write(target, (ENTRIES | {"writer": name.encode()}).items())
        except WorkbenchError as error:
            outcomes[name] = str(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (name for name, outcome in outcomes.items() if outcome == target)
    (message,) = (outcome for outcome in outcomes.values() if outcome != target)
    assert message == f"{target} was written by another process in the meantime: choose another name"
    assert content(target) == ENTRIES | {"writer": winner.encode()}
    assert beside(target) == []


def test_an_archive_that_came_meanwhile_is_kept(target):
    def slow():
        yield from ENTRIES.items()
        write(target, [(ROOT, OURS)])

    with pytest.raises(WorkbenchError, match="exists: choose another name"):
        write(target, slow())
    assert content(target) == {ROOT: OURS}
    assert beside(target) == []


@pytest.mark.parametrize(("path", "complaint"), [
    ("missing/some.zarr", "must be written into a directory that exists"),
    ("file/some.zarr", "must be written into a directory that exists"),
    ("a\0b", "cannot write to .*null"),
    ("x" * 300, "cannot write .*: File name too long"),
    ("/", "must be written into a directory that exists"),
])
def test_a_place_that_cannot_be_is_refused(tmp_path, path, complaint):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WorkbenchError, match=complaint):
        write(path if path == "/" else f"{tmp_path}/{path}", ENTRIES.items())
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_the_working_directory_is_not_replaced_even_if_it_is_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkbenchError, match=r"the working directory; got '\.': add the archive's name"):
        write(".", ENTRIES.items())
    assert tmp_path.is_dir()


# Drafts.


def put_one(given):
    draft, key, data = given
    draft.put(key, data)


@pytest.mark.few(1)
def test_parts_come_from_any_process(target):
    draft = Draft(target)
    chunks = {key: data for key, data in ENTRIES.items() if key != ROOT}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(put_one, [(draft, key, data) for key, data in chunks.items()])
    assert not target.exists()
    assert pickle.loads(pickle.dumps(draft)).commit(OURS) == target
    assert content(target) == ENTRIES
    assert beside(target) == []


def test_a_draft_makes_the_same_bytes_whatever_the_order_of_its_parts(tmp_path):
    for name, order in (("one.zip", sorted(ENTRIES)), ("two.zip", sorted(ENTRIES, reverse=True))):
        draft = Draft(tmp_path / name)
        for key in order:
            if key != ROOT:
                draft.put(key, ENTRIES[key])
        draft.commit(OURS)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_a_part_that_is_put_again_replaces_the_first_and_remains_of_killed_writers_go(target):
    draft = Draft(target)
    draft.put("a/c/0/0", b"half")
    (draft.partial / "a/c/0/.1.0123abcd").write_bytes(b"of a worker that was killed")
    for key, data in ENTRIES.items():
        draft.put(key, data)
    draft.commit(OURS)
    assert content(target) == ENTRIES
    assert target.suffix == ".zip" or not list(target.rglob(".*"))


def test_a_draft_that_is_given_up_leaves_nothing(target):
    draft = Draft(target)
    draft.put("a/c/0/0", b"something")
    draft.discard()
    assert beside(target) == []
    assert not target.exists()


def test_a_draft_refuses_what_write_refuses(target):
    draft = Draft(target)
    with pytest.raises(WorkbenchError, match="a key must be names of"):
        draft.put("../outside", b"")
    write(target, ENTRIES.items())
    with pytest.raises(WorkbenchError, match="exists: choose another name"):
        draft.commit(OURS)
    assert content(target) == ENTRIES
    assert beside(target) == []
    with pytest.raises(WorkbenchError, match="exists: choose another name"):
        Draft(target)
