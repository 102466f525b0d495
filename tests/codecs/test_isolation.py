"""Decoding in other processes: the same values, errors instead of crashes, and nothing left behind."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from workbench.codecs import CodecFailed, Columns, Tolerance, available, get
from workbench.codecs.isolation import CannotIsolate, Isolated, decoders, isolated, limits
from workbench.codecs.isolation.exchange import SharedFile
from workbench.codecs.isolation.limits import Limits

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of processes need POSIX")

TOLERANCE = Tolerance(absolute=0.01)
VALUES = np.sin(np.arange(1200.0, dtype=np.float32)).reshape(30, 40)
ISOLATED = [name for name in available() if not get(name).contained]


@pytest.fixture
def decoding_with(monkeypatch):
    """Runs a few lines in the processes that decode, before they begin."""
    def start(program: str) -> None:
        decoders.end_all()
        monkeypatch.setattr(decoders, "PROGRAM", program + decoders.PROGRAM)

    yield start
    decoders.end_all()


def misbehaving(body: str) -> str:
    """Lines that make ZFP decode by this body, with `data`, `shape` and `dtype`."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"import os, signal, time\nimport numpy as np\nfrom workbench.codecs.zfp import ZFP\n" \
           f"def decode(self, data, shape, dtype):\n{lines}\nZFP._decode_piece = decode\n"


def asked(values: np.ndarray = VALUES) -> np.ndarray:
    codec = get("zfp")
    return Isolated(codec).decode(codec.encode(values, TOLERANCE), values.shape, values.dtype)


def running() -> set[int]:
    """The processes that this one has started."""
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(map(int, (thread / "children").read_text().split()))
    return found


@pytest.mark.parametrize("name", ISOLATED)
def test_values_are_those_of_this_process(name):
    codec, values = get(name), VALUES.reshape(-1, 3) if get(name).dimensions == (2,) else VALUES
    for dtype in (np.float32, np.float64):
        data = codec.encode(values.astype(dtype), TOLERANCE)
        here, there = (one.decode(data, values.shape, dtype) for one in (codec, Isolated(codec)))
        assert (here.dtype, here.tobytes()) == (there.dtype, there.tobytes())
        there += 1   # it is the caller's own


def test_columns_are_decoded_there_together():
    codec, table = Columns(get("zfp")), VALUES.reshape(-1, 3)
    data = codec.encode(table, TOLERANCE)
    assert isinstance(isolated(codec), Isolated)
    assert (isolated(codec).decode(data, table.shape, table.dtype) == codec.decode(data, table.shape, table.dtype)).all()


def test_where_points_went_is_found_there_too():
    pytest.importorskip("DracoPy")
    codec, positions = get("draco", order="free"), np.random.default_rng(0).random((500, 3))
    data = codec.encode(positions, TOLERANCE)
    assert Isolated(codec).reorders
    assert (Isolated(codec).permutation(positions, data) == codec.permutation(positions, data)).all()
    kept = get("draco", order="keep")
    assert Isolated(kept).permutation(positions, kept.encode(positions, TOLERANCE)) is None


def test_what_is_harmless_stays_here():
    for codec in (get("lattice"), get("pcodec"), get("prequantised"), Columns(get("pcodec"))):
        assert isolated(codec) is codec
    for name in {"numcodecs", "bitround"} & set(available()):
        assert isolated(get(name)) == get(name)
    if "numcodecs" in available():
        contained = [get("numcodecs", codec=name).contained for name in ("zstd", "bz2", "blosc", "lzma", "zfpy", "shuffle")]
        assert contained == [True, True, False, False, False, False]


def test_a_process_is_used_again(decoding_with):
    decoding_with(misbehaving("return np.full(shape, os.getpid(), dtype)"))
    assert len({int(asked()[0, 0]) for _ in range(3)}) == 1


def test_threads_get_processes_of_their_own():
    codec = get("zfp")
    arrays = [VALUES + k for k in range(8)]
    encoded = [codec.encode(values, TOLERANCE) for values in arrays]
    found: list[np.ndarray | None] = [None] * 8

    def work(k: int) -> None:
        found[k] = Isolated(codec).decode(encoded[k], VALUES.shape, VALUES.dtype)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, data in enumerate(encoded):
        assert (found[k] == codec.decode(data, VALUES.shape, VALUES.dtype)).all()
    assert len(decoders._pool.idle) <= (os.cpu_count() or 1)


# Decoders that do not answer.

@pytest.mark.parametrize(("body", "said"), [
    ("os.kill(os.getpid(), signal.SIGSEGV)", "its decoder ended with signal SIGSEGV"),
    ("os._exit(3)", "its decoder ended with exit status 3"),
    ("return np.ones(2**28).astype(dtype)", "the decoder of zfp asked for more than 536,909,312 bytes of memory"),
], ids=["segmentation fault", "exit", "memory"])
def test_the_end_of_a_decoder_is_an_error(body, said, decoding_with):
    decoding_with(misbehaving(body))
    with pytest.raises(CodecFailed, match=said):
        asked()


def test_what_a_decoder_raises_or_returns_wrongly_is_an_error(decoding_with):
    decoding_with(misbehaving("if shape[0] == 7: raise KeyError('lost')\nreturn np.zeros(3)"))
    raised, returned = "zfp could not decode: KeyError: 'lost'", "zfp must decode to float32 of shape"
    for values, said in ((VALUES[:7], raised), (VALUES, returned)):
        with pytest.raises(CodecFailed, match=said):
            asked(values)


def test_after_the_end_of_a_decoder_the_next_works(decoding_with):
    decoding_with(misbehaving("if shape[0] == 7: os.abort()\nreturn np.ones(shape, dtype)"))
    with pytest.raises(CodecFailed, match="SIGABRT"):
        asked(VALUES[:7])
    assert asked().all()


@pytest.mark.parametrize(("body", "patience", "said"), [
    ("while True: pass", 60, "its decoder took more than 1 s of processor time"),
    ("time.sleep(100)", 1, "its decoder took more than 1 s"),
], ids=["busy", "asleep"])
def test_a_decoder_that_does_not_end_is_ended(body, patience, said, decoding_with, monkeypatch):
    monkeypatch.setattr(limits, "SECONDS", 1)
    monkeypatch.setattr(limits, "PATIENCE", patience)
    decoding_with(misbehaving(body))
    begun = time.monotonic()
    with pytest.raises(CodecFailed, match=f"^{said}$"):
        asked()
    assert time.monotonic() - begun < 30


def test_after_a_few_that_do_not_end_no_more_are_tried(decoding_with, monkeypatch):
    for name in ("SECONDS", "PATIENCE"):
        monkeypatch.setattr(limits, name, 1)
    decoding_with(misbehaving("time.sleep(100)"))
    codec = get("zfp")
    away, data = Isolated(codec), codec.encode(VALUES, TOLERANCE)
    said = []
    for _ in range(5):
        with pytest.raises(CodecFailed) as failed:
            away.decode(data, VALUES.shape, VALUES.dtype)
        said.append(str(failed.value))
    assert said[:3] == ["its decoder took more than 1 s"] * 3
    assert said[3:] == ["it was not tried, since the decoder took too long for 3 chunks before"] * 2


def test_damage_that_one_array_left_behind_does_not_reach_the_next(decoding_with):
    """The first array spoils something, the second crashes by that: in a fresh process it does not."""
    decoding_with(misbehaving(
        "import builtins\nspoilt = getattr(builtins, 'spoilt', False)\nbuiltins.spoilt = True\n"
        "if spoilt: os.abort()\nreturn np.zeros(shape, dtype)"
    ))
    for _ in range(3):
        assert not asked().any()


def test_nothing_is_written_by_a_decoder(decoding_with, tmp_path):
    path = str(tmp_path / "some")
    decoding_with(misbehaving(
        f"import resource\nassert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)\nopen({path!r}, 'wb', 0).write(b'x')"
    ))
    with pytest.raises(CodecFailed, match=r"zfp could not decode: OSError.*File too large"):
        asked()


def test_what_a_library_prints_does_not_get_in_the_way(decoding_with, capfd):
    decoding_with(misbehaving("os.write(1, b'noise')\nprint('noise', flush=True)\nreturn np.zeros(shape, dtype)"))
    assert not asked().any()
    assert "noise" not in "".join(capfd.readouterr())


# Where it cannot be done.

def test_a_process_that_cannot_start_is_not_the_fault_of_the_data(decoding_with):
    decoding_with("import no_such_module\n")
    with pytest.raises(CannotIsolate, match=r"ended with exit status 1 before it began: .*isolate=False"):
        asked()


def test_a_codec_that_only_this_program_knows_is_named(monkeypatch):
    numcodecs = pytest.importorskip("numcodecs")
    monkeypatch.setitem(numcodecs.registry.codec_registry, "mine", type("Mine", (numcodecs.zlib.Zlib,), {
        "codec_id": "mine", "__module__": "mine",
    }))
    codec = get("numcodecs", codec="mine")
    with pytest.raises(CannotIsolate, match=r"another process cannot construct the codec .*'mine'.*isolate=False"):
        isolated(codec).decode(codec.encode(VALUES, TOLERANCE), VALUES.shape, VALUES.dtype)


def test_it_does_not_encode():
    with pytest.raises(CodecFailed, match="zfp only decodes in another process"):
        Isolated(get("zfp")).encode(VALUES.reshape(-1, 2), TOLERANCE)


# Nothing is left behind.

def test_an_interrupt_ends_the_decoder_and_not_the_next_answer(decoding_with):
    decoding_with(misbehaving("if shape[0] == 7: time.sleep(100)\nreturn np.zeros(shape, dtype)"))
    asked()
    before = running()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        asked(VALUES[:7])
    timer.join()
    assert before - running()   # the one that was asked; others, of earlier tests, may be idle
    assert asked().shape == VALUES.shape


def test_a_copy_of_this_process_starts_its_own(decoding_with):
    decoding_with(misbehaving("return np.full(shape, os.getpid(), dtype)"))
    here = int(asked()[0, 0])
    read, write = os.pipe()
    if (child := os.fork()) == 0:   # what multiprocessing does on Linux
        os.write(write, str(int(asked()[0, 0])).encode())
        decoders.end_all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    os.close(write)
    with open(read) as told:
        assert int(told.read()) != here
    assert int(asked()[0, 0]) == here


PROGRAM = """
import os, signal, sys
import numpy as np
from workbench.codecs import Tolerance, get
from workbench.codecs.isolation import Isolated, decoders
codec, values = get("zfp"), np.zeros((4, 4), np.float32)
Isolated(codec).decode(codec.encode(values, Tolerance(absolute=0.1)), values.shape, values.dtype)
print(decoders._pool.idle[0]._process.pid, flush=True)
"""


@pytest.mark.parametrize("end", ["", "os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"], ids=["end", "exit", "kill"])
def test_decoders_end_with_the_process_that_started_them(end):
    done = subprocess.run([sys.executable, "-c", PROGRAM + end], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    decoder = Path(f"/proc/{int(done.stdout)}")
    until = time.monotonic() + 20
    while decoder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not decoder.exists()


@pytest.mark.long
def test_no_process_and_no_file_is_left():
    asked()
    decoders.end_all()
    files, processes = len(os.listdir("/proc/self/fd")), running()
    for _ in range(5):
        asked()
    decoders.end_all()
    gc.collect()   # which may close files of earlier tests, too
    assert len(os.listdir("/proc/self/fd")) <= files
    assert running() <= processes


def test_an_array_outlives_its_file():
    file = SharedFile.of_size(80)
    array = file.array(0, (10,), np.dtype(np.float64))
    file.close()
    del file
    array[:] = 3
    assert array.tolist() == [3.0] * 10


def test_limits_grow_with_the_size():
    small, large = Limits.for_size(0), Limits.for_size(2**30)
    assert (small.memory, small.processor, small.clock) == (512 * 2**20, 10, 30)
    assert large.memory == 512 * 2**20 + 8 * 2**30
    assert large.processor == 10 + 2**30 // 2_000_000


def test_the_library_of_a_codec_is_loaded_before_the_time_for_decoding_begins(decoding_with):
    decoding_with(misbehaving("import sys\nreturn np.full(shape, 'zfpy' in sys.modules, dtype)"))
    assert asked().all()


def test_patience_is_the_time_by_the_clock_for_each_second_of_the_processor():
    assert Limits.for_size(0, patience=50).clock == 500
    assert Limits.for_size(0, patience=50).processor == Limits.for_size(0).processor == 10
