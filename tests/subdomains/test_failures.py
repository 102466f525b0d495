"""Workers, files and clients that fail while groups are searched: the groups are right, or the error names a place."""

import contextlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import workbench as wb
from subdomains.scripted import ScriptedCluster
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.errors import WorkbenchError
from workbench.run import executors, patience
from workbench.subdomains import groups

distributed = pytest.importorskip("distributed")
SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=7)
SOURCE = ParticlesInMemory(wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), even_sizes(len(SNAPSHOT), 700))
HOW = ("exit", "segfault", "kill", "memory", "raise", "disk")
BEGUN = threading.Event()
PHASES = ("sample-particles", "send-particles", "find-groups", "compare-labels", "measure-groups")
KEEPING = (
    "encode-chunks", "send-particles", "find-groups", "compare-original", "measure-groups", "find-parts", "compare-part",
    "find-lost-links", "repair-inside", "send-surroundings", "repair-across", "apply-moves",
    "find-groups-again", "compare-final", "compare-groups", "hand-back-moves", "arrange-moves", "finish-chunks",
    "write-chunks",
)
COMPARING = ("compare-chunks", "compare-neighbours", "write-parts", "transform-planes", "add-waves")


@pytest.fixture
def script(client, tmp_path, monkeypatch):
    """Searches follow the script in a folder; deaths of a worker count against an item once only."""
    cluster = ScriptedCluster(client, script=tmp_path / "script")
    cluster.script.mkdir()
    monkeypatch.setattr(groups, "executor_of", lambda *given: cluster)

    def allow(deaths):
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", deaths))

    allow(1)
    yield cluster
    allow(3)


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def search(tmp_path, source=SOURCE):
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return wb.friends_of_friends(source, client="the cluster", parts=4, scratch=scratch)


def assert_right(found):
    expected = wb.friends_of_friends(SNAPSHOT)
    with found:
        assert found.gathered().equals(expected)
        assert found.count(20) == expected.count(20)


@pytest.mark.long
def test_a_worker_that_dies_in_each_phase_changes_nothing(script, tmp_path):
    phases, how = ("send-particles-3", "find-groups-1", "compare-labels-2", "measure-groups-0"), HOW[:4]
    deaths = dict(zip(phases, how, strict=True))
    for mark, how in deaths.items():
        (script.script / mark).write_text(how)
    assert_right(search(tmp_path))
    for mark in deaths:
        assert not (script.script / mark).exists()
        name, _, item = mark.rpartition("-")
        assert script.begun(name, int(item)) == 2


def suffered(script, phases, how, item=0):
    """Let every phase fail once in this way."""
    for phase in phases:
        (script.script / f"{phase}-{item}").write_text(how)


def assert_suffered(script, phases, how, item=0, without_files=()):
    for phase in phases:
        assert not (script.script / f"{phase}-{item}").exists()
        assert script.begun(phase, item) >= 2 or (how == "disk" and phase in without_files)


# To Dask, every death of a process is an exit; the first test has the others. A new worker takes seconds to start.


@pytest.mark.long
@pytest.mark.parametrize("how", ["exit", "raise", "disk"])
def test_each_failure_in_each_phase_of_a_search(script, tmp_path, how):
    suffered(script, PHASES, how, 2)
    assert_right(search(tmp_path))
    assert_suffered(script, PHASES, how, 2, ("sample-particles", "measure-groups"))


@pytest.mark.long
@pytest.mark.parametrize("how", ["exit", "raise", "disk"])
def test_each_failure_in_each_phase_of_an_archive_that_keeps_clusters(script, tmp_path, monkeypatch, how):
    request = {"keep": wb.KeepClusters(0.2), "chunk_values": 3000, "parts": 3}
    particles, bound = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box), wb.Absolute(0.05)
    wb.compress(SOURCE, bound, **request, out=tmp_path / "once.zarr")
    monkeypatch.setattr(sys.modules["workbench.archive.compress"], "executor_of", lambda *given: script)
    suffered(script, KEEPING, how)
    archive = wb.compress(SOURCE, bound, **request, out=tmp_path / "again.zarr", scratch=tmp_path)
    assert_suffered(script, KEEPING, how, 0, ("encode-chunks", "write-chunks"))
    assert archive.verify(particles).passed
    assert files(tmp_path / "again.zarr") == files(tmp_path / "once.zarr")


@pytest.mark.long
@pytest.mark.parametrize("how", ["exit", "raise", "disk"])
def test_each_failure_in_each_phase_of_a_comparison(script, tmp_path, monkeypatch, how):
    wave = wb.synthetic.gaussian_field((24, 24), seed=1)
    np.save(tmp_path / "decoded.npy", np.round(wave.values, 2))
    decoded = wb.distributed.ChunkedField(tmp_path / "decoded.npy", wave.spacing)
    monkeypatch.setattr(sys.modules["workbench.metrics.field_sums"], "executor_of", lambda *given: script)
    for phase in COMPARING[:3]:
        name = f"{phase}-{(0, (slice(0, 24), slice(0, 24)))}"
        (script.script / name).write_text(how)
    suffered(script, COMPARING[3:], how)
    report = wb.compare(wave, decoded, scratch=tmp_path)
    assert not [mark for mark in script.script.iterdir() if not mark.name.startswith("begun-")]
    expected = wb.compare(wave, np.round(wave.values, 2))
    assert report.ssim == pytest.approx(expected.ssim)
    assert report.spectrum_worst == pytest.approx(expected.spectrum_worst)


@pytest.mark.parametrize("how", ["raise", "disk"])
def test_an_error_that_does_not_repeat_changes_nothing(script, tmp_path, how):
    (script.script / "find-groups-1").write_text(how)
    assert_right(search(tmp_path))
    assert script.begun("find-groups", 1) == 2


def test_an_error_that_repeats_names_the_place(script, tmp_path):
    (script.script / "send-particles-3").write_text("raise always")
    with pytest.raises(WorkbenchError, match="send-particles failed on the cluster at chunk 4 of 6: ArithmeticError: a"):
        search(tmp_path)
    assert not list((tmp_path / "scratch").iterdir())
    assert script.begun("send-particles", 3) == 1 + executors.RETRIES


def test_a_full_disk_names_the_file(script, tmp_path):
    (script.script / "compare-labels-1").write_text("disk always")
    with pytest.raises(WorkbenchError, match=r"merged-0-1 cannot be written \(No space left on device\): give"):
        search(tmp_path)
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.long
def test_an_item_that_kills_every_worker_is_named(script, tmp_path):
    (script.script / "find-groups-2").write_text("exit always")
    # Dask may blame what waited on the same worker.
    with pytest.raises(WorkbenchError, match=r"find-groups failed on the cluster at subdomain \d of 4: every worker that"):
        search(tmp_path)
    script.client.wait_for_workers(1, timeout=60)
    (script.script / "find-groups-2").unlink()
    assert_right(search(tmp_path))   # the cluster has not suffered


class Unreadable(ParticlesInMemory):
    """A source with a chunk that cannot be read."""

    def read(self, number):
        if number == 3:
            raise OSError("input/output error")
        return super().read(number)


def test_a_chunk_that_cannot_be_read_is_named(client, tmp_path):
    source = Unreadable(SOURCE.whole, SOURCE.sizes)
    with pytest.raises(WorkbenchError, match="chunk 4 of 6 of particles in memory cannot be read: input/output error"):
        wb.friends_of_friends(source, 0.3, "length", client, parts=3, scratch=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_file_that_ends_early_is_named(client, tmp_path):
    np.save(tmp_path / "positions.npy", SNAPSHOT.positions)
    source = wb.open_chunked(tmp_path / "positions.npy", box=SNAPSHOT.box)
    np.save(tmp_path / "positions.npy", SNAPSHOT.positions[:-5])
    with pytest.raises(WorkbenchError, match=r"positions\.npy must hold 4,096 particles, as when it was opened"):
        wb.friends_of_friends(source, client=client)


def test_a_scratch_file_that_is_gone_is_named(client, tmp_path):
    with wb.friends_of_friends(SOURCE, client=client, parts=4, scratch=tmp_path) as found:
        next(tmp_path.rglob("label-own-2.npy")).unlink()
        with pytest.raises(WorkbenchError, match=r"label-own-2\.npy cannot be read .*was the scratch folder deleted"):
            found.gathered()
    with wb.friends_of_friends(SOURCE, client=client, parts=4, scratch=tmp_path) as found:
        next(tmp_path.rglob("run-5-0")).write_bytes(b"short")
        with pytest.raises(WorkbenchError, match=r"run-5-0 cannot be read \(it ends too early\)"):
            found.catalogue()


def test_a_bit_that_flips_in_a_scratch_file_never_changes_the_groups(tmp_path):
    """Once in each file that a search leaves: what follows is right, or an error that names the file."""
    rng, named = np.random.default_rng(4), set()
    with wb.friends_of_friends(SOURCE, parts=4, scratch=tmp_path) as found:
        groups, catalogue = found.gathered(), found.catalogue()
        for path in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
            data = path.read_bytes()
            damaged = bytearray(data)
            begin = 128 if path.suffix == ".npy" else 0   # behind the header
            damaged[rng.integers(begin, begin + 64)] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            message = ""
            try:
                assert found.gathered().equals(groups)
                assert found.catalogue().members.tolist() == catalogue.members.tolist()
            except WorkbenchError as error:
                message = str(error)
            if message:
                assert f"{path.name} cannot be read (its bytes have changed" in message
                named.add(path.name)
            path.write_bytes(data)
    assert {"label-own-2.npy", "label-renamed-1-0"} <= named
    assert any(name.startswith("run-") for name in named)


CLIENT = """
import sys
sys.path[:] = sys.argv[3].split(":")
from pathlib import Path
import distributed, workbench as wb
from subdomains.scripted import ScriptedCluster
from subdomains.test_failures import SOURCE
from workbench.subdomains import groups
client = distributed.Client(sys.argv[1])
groups.executor_of = lambda *given: ScriptedCluster(client, script=Path(sys.argv[2]))
wb.friends_of_friends(SOURCE, parts=4)
"""


def test_a_client_that_goes_away_leaves_a_cluster_that_works(script, tmp_path):
    (script.script / "find-groups-1").write_text("sleep always")
    program = [sys.executable, "-c", CLIENT, script.client.scheduler.address, str(script.script), ":".join(sys.path)]
    other = subprocess.Popen(program, env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"})
    wait_until(lambda: script.begun("find-groups", 1) or other.poll() is not None)
    assert other.poll() is None
    other.send_signal(signal.SIGKILL)
    other.wait()
    wait_until(lambda: not script.client.run_on_scheduler(unfinished))
    (script.script / "find-groups-1").unlink()
    assert_right(search(tmp_path))


def test_a_cluster_that_loses_its_workers_or_its_scheduler_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(patience, "PATIENCE_SECONDS", 0.3)
    for loss, told in (
        (lambda cluster: cluster.scale(0), "the cluster has had no worker for"),
        (lambda cluster: cluster.close(), "linger(: the connection| failed on the cluster)"),
    ):
        with (
            distributed.LocalCluster(
                n_workers=1, processes=False, host="127.0.0.1", dashboard_address="127.0.0.1:0", protocol="tcp"
            ) as cluster,
            distributed.Client(cluster, timeout=5) as client,
        ):
            BEGUN.clear()
            thread = threading.Thread(target=once_it_lingers, args=(loss, cluster), daemon=True)
            thread.start()
            with pytest.raises(WorkbenchError, match=told):
                executors.OnDask(client).map("linger", linger, range(50))
            thread.join()


def once_it_lingers(loss, cluster):
    BEGUN.wait(60)
    loss(cluster)


def unfinished(dask_scheduler):
    return [key for key, task in dask_scheduler.tasks.items() if task.state not in ("memory", "erred", "released")]


def linger(number):
    BEGUN.set()
    time.sleep(0.1)


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_bit_that_flips_in_a_part_of_a_spectrum_or_in_the_checksum_of_an_order_is_an_error(tmp_path, monkeypatch):
    from workbench.run import scratch_files

    kept, struck = scratch_files.complete, []

    @contextlib.contextmanager
    def damaged(path):
        with kept(path) as file:
            yield file
            if path.name.startswith(name) and not struck:
                struck.append(path.name)
                file.flush()
                with open(file.name, "r+b") as raw:
                    raw.seek(128)
                    byte = raw.read(1)[0]
                    raw.seek(128)
                    raw.write(bytes([byte ^ 1]))

    monkeypatch.setattr(scratch_files, "complete", damaged)
    wave = wb.synthetic.gaussian_field((24, 24), seed=1)
    np.save(tmp_path / "wave.npy", wave.values)
    np.save(tmp_path / "decoded.npy", np.round(wave.values, 2))
    fields = [wb.distributed.ChunkedField(tmp_path / f"{each}.npy", wave.spacing) for each in ("wave", "decoded")]
    name = "part-"
    with pytest.raises(WorkbenchError, match=r"part-.* cannot be read \(its bytes have changed"):
        wb.compare(*fields)
    name = "order-"
    struck.clear()
    with pytest.raises(WorkbenchError, match=r"order-.* cannot be read \(its bytes have changed"):
        wb.compress(SOURCE, wb.Absolute(0.05), order="free", chunk_values=3000, out=tmp_path / "a.zarr")
    assert struck
