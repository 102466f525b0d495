"""Runs in other processes: the same rows, whatever happens to the processes, and nothing left of them."""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.bounds import iter_sweep, parts, sweep, workers
from workbench.bounds.run import TIMES, Question

sweeping = importlib.import_module("workbench.bounds.sweep")   # the module, not the function
BOUNDS = [wb.Absolute(0.1), wb.Relative(1e-3), wb.PointwiseRelative(1e-2)]

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def but_times(run):
    described = run.to_dict()
    described["figures"] = {name: value for name, value in run.figures.items() if name not in TIMES}
    return repr(described)   # repr: NaN is NaN


@pytest.mark.parametrize("kind", ["field", pytest.param("snapshot", marks=pytest.mark.long)])
def test_rows_are_those_of_this_process(coast, snapshot, kind):
    data = coast if kind == "field" else snapshot
    codecs = ["zfp", "lattice", wb.codecs.get("pcodec", level=4), wb.codecs.get("numcodecs", codec="zlib")]
    here = sweep(data, codecs, BOUNDS, workers=1, cache=False)
    there = sweep(data, codecs, BOUNDS, workers=2, cache=False)
    assert [but_times(run) for run in there] == [but_times(run) for run in here]
    assert all(run["threads"] == 1 for run in there if not run.error)
    assert sum(run.error is None for run in here) >= 9


def test_data_survive_being_shared(coast, snapshot):
    unusual = wb.Particles(snapshot.positions[:, :2].astype(np.float64) - 30, ids=np.arange(len(snapshot), dtype=np.uint16))
    for data in (coast, snapshot, unusual, wb.Field(np.float32([1.0])), wb.Field(np.ones((3, 4)).T)):
        with parts.shared(data) as (file, described):
            seen = parts.mapped(file, described)
            assert (type(seen), repr(seen)) == (type(data), repr(data))
            assert parts.digest_of(seen) == parts.digest_of(data)
            for name, values in parts.arrays_of(data).items():
                found = parts.arrays_of(seen)[name]
                assert (found.dtype, found.tobytes()) == (values.dtype, values.tobytes())
                assert found.ctypes.data % 16 == 0


def test_metadata_may_be_large_and_files_of_the_working_folder_do_not_pass_for_modules(waves, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('not the json you are looking for')")
    monkeypatch.chdir(tmp_path)
    field = wb.Field(waves.values, metadata={"history": "x" * 300_000})
    runs = sweep(field, ["pcodec", "zfp"], BOUNDS[:1], workers=2)
    assert [run.error for run in runs] == [None, None]


@pytest.mark.usefixtures("misbehaving")
def test_a_process_that_dies_costs_only_its_own_run(waves):
    found = sweep(waves, ["dies", "pcodec", "aborts", "zfp"], BOUNDS[:1], workers=2)
    errors = {run.label: run.error for run in found}
    assert errors == {
        "dies": "its process ended with signal SIGKILL",
        "aborts": "its process ended with exit status 3: heap is <corrupted>",
        "pcodec": None,
        "zfp": None,
    }
    assert len(found) == 4
    assert found.complete


@pytest.mark.usefixtures("misbehaving")
def test_a_codec_may_print(waves, capfd):
    runs = sweep(waves, ["prints", "pcodec"], BOUNDS[:2], workers=2)
    assert [run.error for run in runs] == [None] * 4
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("misbehaving")
def test_an_event_ends_runs_that_would_take_for_ever(waves):
    event = threading.Event()
    found = sweep(waves, ["stalls", "pcodec"], BOUNDS[:1], workers=2, progress=lambda *_: event.set(), cancel=event)
    assert {run.label for run in found} <= {"pcodec"}
    assert not found.complete


@pytest.mark.usefixtures("misbehaving")
def test_an_event_that_was_set_before_ends_everything_at_once(waves):
    event = threading.Event()
    event.set()
    assert len(sweep(waves, ["stalls", "pcodec"], BOUNDS, workers=2, cancel=event)) == 0


@pytest.mark.usefixtures("misbehaving")
def test_an_interrupt_ends_them(waves):
    def interrupt(share, what):
        raise KeyboardInterrupt

    found = sweep(waves, ["pcodec", "stalls"], BOUNDS[:1], workers=2, progress=interrupt)
    assert not found.complete


@pytest.mark.usefixtures("misbehaving")
def test_an_error_of_the_caller_ends_them(waves):
    with pytest.raises(ZeroDivisionError):
        sweep(waves, ["pcodec", "stalls"], BOUNDS[:1], workers=2, progress=lambda *_: 1 / 0)


@pytest.mark.usefixtures("misbehaving")
def test_closing_the_iterator_ends_them(waves):
    rows = iter_sweep(waves, ["stalls", "pcodec"], BOUNDS[:1], workers=2)
    assert next(rows).label == "pcodec"
    rows.close()


def test_a_process_that_cannot_start_is_an_error_that_says_why(waves, monkeypatch):
    monkeypatch.setattr(workers, "PROGRAM", "import no_such_module")
    with pytest.raises(wb.WorkbenchError, match=r"no process could be started .* status 1: .*no_such_module.*workers=1"):
        sweep(waves, ["zfp", "pcodec"], BOUNDS, workers=2)


def test_a_full_disk_is_an_error_that_says_what_to_do(waves, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def seek(self, *_):
            return 0

        tell = seek

        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(wb.WorkbenchError, match=r"the data must fit into .*No space left.*: point TMPDIR to another"):
        sweep(waves, ["zfp", "pcodec"], BOUNDS, workers=2)


def test_a_process_ends_when_its_parent_is_gone(waves):
    with parts.shared(waves) as (file, described):
        worker = workers._Worker(file, described)
        assert worker.answer() is None
        worker._questions.close()   # as the end of the parent does
        assert worker._process.wait(timeout=60) == 0
        worker.end()


def test_an_interrupt_is_left_to_the_parent(waves):
    with parts.shared(waves) as (file, described):
        worker = workers._Worker(file, described)
        assert worker.answer() is None
        os.kill(worker._process.pid, signal.SIGINT)
        worker.ask(3, Question(wb.codecs.get("pcodec"), BOUNDS[0]))
        place, run = worker.answer()
        worker.end()
    assert (place, run.error, worker.alive) == (3, None, True)


def test_large_data_get_a_process_for_each_thread_and_small_ones_none(waves, monkeypatch):
    asked = []
    monkeypatch.setattr(sweeping, "in_processes", lambda data, questions, count, cancelled: asked.append(count) or iter(()))
    bounds = [wb.Absolute(eb) for eb in (1, 2, 3)]
    with wb.backend.using_threads(2):
        sweep(waves, "pcodec", bounds, cache=False)
        assert asked == []
        monkeypatch.setattr(sweeping, "WORTH_PROCESSES", 3 * waves.values.nbytes)
        sweep(waves, "pcodec", bounds, cache=False)
        sweep(waves, "pcodec", bounds[:2], cache=False)
        assert asked == [2]
        sweep(waves, "pcodec", bounds, cache=False, workers=7)
        assert asked == [2, 3]


def test_a_script_needs_no_guard_of_its_main_program(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport workbench as wb\nfrom workbench.bounds import sweep\n"
        "print(sweep(np.linspace(0, 1, 99), ['pcodec', 'prequantised'], wb.Absolute(0.1), workers=2))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Sweep(2 runs of 2 codecs)\n", "")


@pytest.mark.long
def test_an_interrupt_from_the_keyboard_leaves_no_process(misbehaving: Path):
    program = (
        f"import sys; sys.path.insert(0, {str(misbehaving)!r})\n"
        "import numpy as np\nimport workbench as wb\nfrom workbench.bounds import sweep\n"
        "show = lambda share, what: print(what, flush=True)\n"
        "found = sweep(np.linspace(0, 1, 99), ['pcodec', 'stalls'], wb.Absolute(0.1), workers=2, progress=show)\n"
        "print(len(found), found.complete)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0) as script:
        assert script.stdout.readline() == "pcodec, absolute 0.1\n"
        os.killpg(script.pid, signal.SIGINT)   # as a terminal does: to all processes
        out, errors = script.communicate(timeout=60)
        assert (out, errors, script.returncode) == ("1 False\n", "", 0)
        with pytest.raises(ProcessLookupError):
            os.killpg(script.pid, 0)
