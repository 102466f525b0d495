"""The kernels in WebAssembly give the bits of the host library: launches of public calls are recorded, and run in Node."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import workbench as wb
from workbench import backend, ordering, web_library
from workbench.backend import Kernel
from workbench.codecs import Tolerance

ROOT = Path(__file__).resolve().parents[1]
FRONT = ROOT / "workbench" / "lab" / "live" / "front"
COUNT = 400     # particles
MOST = 20       # launches of a kernel that are compared,
LARGEST = 2**22   # of at most so many bytes
NAMES = {np.dtype(t): n for n, t in backend._DTYPES.items()}
with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
    from gpu_check.cases import all_cases, numbers

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node to run WebAssembly (apt install nodejs)")


@dataclass
class Record:
    """Launches on the host, with the bytes of all arrays before and after."""

    launches: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[bytes] = field(default_factory=list)
    size: int = 0
    taken: Counter[str] = field(default_factory=Counter)

    def bytes_of(self, array: np.ndarray) -> int:
        """Keeps the bytes of an array; where they begin."""
        start = self.size
        self.arrays.append(array.tobytes())
        self.size += array.nbytes
        return start

    def written(self, folder: Path) -> list[str]:
        """The paths of the two files that `replay.js` reads."""
        text, data = folder / "launches.json", folder / "arrays"
        declared = web_library.declarations(web_library.all_kernels())
        text.write_text(json.dumps({"declared": declared, "launches": self.launches}))
        data.write_bytes(b"".join(self.arrays))
        return [str(text), str(data)]


@dataclass(frozen=True)
class Recorded:
    """A kernel whose launches in the variant of the module are recorded."""

    kernel: Kernel
    record: Record

    def __call__(self, items: int, /, *arguments: Any, **named: Any) -> None:
        bundles = [a for a in arguments if isinstance(a, Mapping)]
        given = self.kernel._in_order((*bundles, named)) if bundles or named else list(arguments)
        arrays: dict[int, np.ndarray] = {id(a): a for a in given if isinstance(a, np.ndarray)}
        wanted = (self.kernel.real, self.kernel.dimensions) == ("f32", 3) and items
        if not wanted or self.record.taken[self.kernel.name] >= MOST or sum(a.nbytes for a in arrays.values()) > LARGEST:
            self.kernel(items, *given)
            return
        self.record.taken[self.kernel.name] += 1
        before = [self.record.bytes_of(a) for a in arrays.values()]
        self.kernel(items, *given)
        names = {id(v): p.name for p, v in zip(self.kernel.parameters[1:], given, strict=True)}
        places = {key: place for place, key in enumerate(arrays)}
        rows = [
            {"name": names[key], "type": NAMES[a.dtype], "length": a.size, "before": at, "after": self.record.bytes_of(a)}
            for (key, a), at in zip(arrays.items(), before, strict=True)
        ]
        kinds = [p.type for p in self.kernel.parameters[1:]]
        self.record.launches.append({
            "kernel": self.kernel.name, "items": int(items), "arrays": rows,
            "given": [_argument(v, kind, places) for v, kind in zip(given, kinds, strict=True)],
        })


def _argument(value: Any, kind: str, places: dict[int, int]) -> Any:
    if isinstance(value, np.ndarray):
        return {"row": places[id(value)]}
    return float(value) if kind == "double" else {"whole": str(int(value))}


def recorded() -> Record:
    """What the public cases launch in float32 and three dimensions."""
    record, plain = Record(), backend.kernel

    def kernel(*arguments: Any, **named: Any) -> Any:
        return Recorded(plain(*arguments, **named), record)

    with mock.patch.object(backend, "kernel", kernel), backend.using_threads(1):
        for case in all_cases():
            if "2-D" not in case.name and "float64" not in case.name:
                list(case.run(np.asarray, COUNT))
        further()
    return record


def further() -> None:
    """Launches that the cases have in other variants, or on a GPU alone."""
    ordering._device_words(np.arange(COUNT, dtype=np.uint64)[::-1].copy(), 9)
    positions = numbers(1).random((1500, 3)).astype(np.float32)
    wb.codecs.get("lattice").encode(positions, Tolerance(absolute=2e-7))   # more bits than a key has
    codec, velocities = wb.codecs.get("neighbours").beside(positions), np.sin(6 * positions)
    codec.decode(codec.encode(velocities, Tolerance(absolute=1e-4)), velocities.shape, velocities.dtype)
    for case in all_cases():
        if case.name == "crowds, 3-D float32":
            list(case.run(np.asarray, 3000))


def replayed(module: Path, record: Record, folder: Path) -> dict[str, Any]:
    for script in (FRONT / "machine.js", ROOT / "tests" / "web" / "replay.js"):
        shutil.copy(script, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    command = ["node", str(folder / "replay.js"), str(module), *record.written(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_the_module_of_the_package_is_that_of_these_sources() -> None:
    assert web_library.up_to_date(), "python -m workbench.web_library"
    assert web_library.MODULE.stat().st_size < 150_000


@needs_node
@pytest.mark.long
def test_every_kernel_gives_the_bits_of_the_host_library(tmp_path: Path) -> None:
    if reason := web_library.why_not():
        pytest.skip(reason)
    chosen = web_library.all_kernels()
    module = web_library.build(tmp_path / "all.wasm", chosen, [("f32", 3)])
    record = recorded()
    found = replayed(module, record, tmp_path)
    assert found["differences"] == []
    assert {name for names in chosen.values() for name in names} - set(found["compared"]) == set()
    del record.launches[:-1]
    record.arrays[-1] = bytes([record.arrays[-1][0] ^ 1]) + record.arrays[-1][1:]   # one bit of what the last one wrote
    assert [text.split(" differs in ")[1] for text in replayed(module, record, tmp_path)["differences"]] == [
        f"1 of {len(record.arrays[-1])} bytes"
    ]
