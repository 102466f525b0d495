"""Files whose payloads were forged, checksums and all: one sentence for the chunk, and nothing else happens to the reader.

Libraries really crash on some of these bytes, and really inflate others to gigabytes. So the reader is a process of its own
here, and its memory is measured.
"""

import bz2
import gzip
import importlib.util
import json
import lzma
import re
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from archive import samples
from archive.forging import mutated, payload_of, with_payload
from archive.samples import CODECS
from workbench.archive.store import MemoryStore
from workbench.codecs import CodecFailed
from workbench.codecs.isolation import limits

READER = """
import json, pathlib, resource, sys, time
import workbench as wb
try:
    import zarr
except ImportError:
    zarr = None
found = []
for path in sys.argv[2:]:
    begun, told = time.monotonic(), {}
    archive = wb.open(path)
    if sys.argv[1] == "damage":
        damage = archive.damage()
    else:
        try:
            archive.verify()
        except wb.GuaranteeBroken as error:
            told["verify"] = str(error)
        salvaged, damage = archive.salvage()
        told["lost"] = 0 if salvaged.mask is None else int(salvaged.mask.sum())
        try:
            zarr and zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")["values"][:, 13:26]
        except wb.WorkbenchError as error:
            told["zarr"] = str(error)
    told["damage"] = {found.where: found.reason for found in damage}
    told["seconds"] = time.monotonic() - begun
    found.append(told)
from workbench.codecs.isolation import decoders
decoders.end_all()
# Not ru_maxrss of this process, which begins with the memory of the process that started it.
own = int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
memory = [own / 1024, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024]
print(json.dumps({"found": found, "memory": memory}))
"""
ZARR = importlib.util.find_spec("zarr") is not None
MEGABYTES_OF_A_READER = 250      # an interpreter with NumPy, Zarr and this package
MEGABYTES_OF_A_DECODER = 150 + limits.MARGIN / 2**20


def read_by_another(paths: list[Path], uses: str = "all") -> tuple[list[dict], list[float]]:
    """What a reader in another process finds in these files, and the megabytes that it and its decoders took."""
    command = [sys.executable, "-c", READER, uses, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    told = json.loads(done.stdout)
    return told["found"], told["memory"]


SLOWER = [pytest.param(codec, marks=pytest.mark.long) for codec in ("sperr", "sz3", "zfp")]


# fpzip crashes on some of these bytes, depending on what lies in its memory; that a crash is a sentence is tested with
# decoders that always crash, in `tests/codecs/test_isolation.py`.
@pytest.mark.parametrize("codec", ["fpzip", *SLOWER])
def test_mutated_payloads_are_a_sentence_and_the_other_chunks_are_read(codec, tmp_path):
    if codec not in CODECS:
        pytest.skip(f"{codec} is not installed")
    values = samples.field((12, 50))
    archive = wb.compress(values, wb.Absolute(0.01), codec, chunk_values=250)
    payload, lost = payload_of(archive, 1), np.prod(archive.data.layout.chunk_extent((0, 1)))
    made = [with_payload(archive, 1, mutated(payload, seed), tmp_path / f"{seed}.zip") for seed in range(2)]
    found, memory = read_by_another([path for path, _ in made])
    for told, (_, key) in zip(found, made, strict=True):
        assert set(told["damage"]) <= {key}
        assert told["lost"] == (lost if told["damage"] else 0)
        assert ("verify" in told) == bool(told["damage"])
        assert ("zarr" in told) == bool(told["damage"]) or not ZARR
    assert memory[0] < MEGABYTES_OF_A_READER
    assert memory[1] < MEGABYTES_OF_A_DECODER


def bombs() -> dict[str, bytes]:
    """For codecs of numcodecs: payloads of at most a megabyte that decode to half a gigabyte and more."""
    zeros = bytes(2**26)
    deflate = zlib.compressobj(9)
    made = {
        "bz2": bz2.compress(zeros) * 96,             # 6 GB
        "zlib": b"".join([*(deflate.compress(zeros) for _ in range(8)), deflate.flush()]),
        "gzip": gzip.compress(zeros, 9) * 8,
        "lzma": lzma.compress(zeros, preset=0) * 60,
    }
    numcodecs = pytest.importorskip("numcodecs")
    half = np.zeros(2**29, np.uint8)
    made["zstd"] = bytes(numcodecs.Zstd(1).encode(half))
    made["blosc"] = bytes(numcodecs.Blosc("zstd", 5).encode(half))
    made["lz4"] = bytes(numcodecs.LZ4().encode(half[: 2**27]))
    return made


@pytest.mark.long
def test_bombs_do_not_go_off(tmp_path):
    """A field of four values whose payload inflates to gigabytes."""
    paths, four = [], np.arange(4, dtype=np.float32)
    for name, payload in bombs().items():
        assert len(payload) <= 2**20
        archive = wb.compress(four, wb.Absolute(0.1), wb.codecs.get("numcodecs", codec=name))
        paths.append(with_payload(archive, 0, payload, tmp_path / f"{name}.zip")[0])
    found, memory = read_by_another(paths, "damage")
    for told, path in zip(found, paths, strict=True):
        (reason,) = told["damage"].values()
        assert re.search("must decode to 4 values of float32|asked for more than .* bytes of memory", reason), path.name
        assert told["seconds"] <= limits.Limits.for_size(16).clock
    assert memory[0] < MEGABYTES_OF_A_READER
    assert memory[1] < MEGABYTES_OF_A_DECODER


def test_a_bomb_in_memory_does_not_go_off_either(tmp_path):
    """Decompressors that can be stopped need no other process."""
    archive = wb.compress(np.arange(4, dtype=np.float32), wb.Absolute(0.1), wb.codecs.get("numcodecs", codec="bz2"))
    path, key = with_payload(archive, 0, bz2.compress(bytes(2**26)) * 4, tmp_path / "some.zip")
    opened = wb.open(path, isolate=False)
    assert opened.data.decoder == opened.codec
    in_memory = wb.Archive(MemoryStore(samples.parts(opened)))
    for one in (opened, in_memory):
        assert [found.where for found in one.damage()] == [key]


@pytest.mark.parametrize("name", ["zlib", "gzip", "bz2", "zstd", "lz4", "pcodec"])
def test_too_few_and_too_many_values_are_told(name):
    pytest.importorskip("numcodecs")
    codec, values = wb.codecs.get("numcodecs", codec=name), np.arange(100.0)
    for count in (1, 99, 101, 5000):
        data = codec.encode(np.arange(float(count)), wb.codecs.Tolerance(absolute=0.0))
        with pytest.raises(CodecFailed, match=r"must decode to 100|could not decode 100"):
            codec._decode_piece(data[5:], values.shape, values.dtype)
