"""What the page computes in JavaScript between its kernels is what the library computes: compared in Node."""

import io
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from workbench import web_library
from workbench.clusters.cells import has_keys, regular_grid
from workbench.clusters.groups import Groups
from workbench.clusters.matching import Halos, match_groups
from workbench.codecs import Tolerance
from workbench.codecs.registry import get
from workbench.data.synthetic import adversarial

FRONT = web_library.MODULE.parent / "front"
NAMES = {"float32": "float", "float64": "double", "int32": "i32", "uint8": "bytes"}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node to run WebAssembly (apt install nodejs)")


@dataclass
class Page:
    """Cases for the modules of the page, answered together."""

    folder: Path
    cases: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[bytes] = field(default_factory=list)

    def add(self, what: str, **given: Any) -> None:
        """One case; arrays go to a file."""
        self.cases.append({"what": what, **{name: self._described(value) for name, value in given.items()}})

    def _described(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        at = sum(map(len, self.arrays))
        self.arrays.append(value.tobytes())
        return {"at": at, "size": value.nbytes, "type": NAMES[value.dtype.name]}

    def answers(self) -> tuple[list[Any], bytes]:
        """What each case returned, and the bytes of all arrays that they computed."""
        for script in (*FRONT.glob("*.js"), ROOT / "tests" / "web" / "answers.js"):
            shutil.copy(script, self.folder)
        cases, arrays, out = (self.folder / name for name in ("cases.json", "arrays", "out"))
        (self.folder / "package.json").write_text('{"type": "module"}')
        cases.write_text(json.dumps({"declared": web_library.declarations(), "cases": self.cases}))
        arrays.write_bytes(b"".join(self.arrays))
        command = ["node", str(self.folder / "answers.js"), *map(str, (web_library.MODULE, cases, arrays, out))]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout), out.read_bytes()


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path)


def points(random: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Points of the unit box: all over it, in clumps, on a lattice with ties, or so dense that trees are needed."""
    if kind == "lattice":
        return np.floor(random.random((count, 3)) * 32) / 32
    if kind == "uniform":
        return random.random((count, 3))
    spread = 0.003 if kind == "dense" else 0.05
    centres = random.random((max(count // 150, 2), 3))
    return (centres[random.integers(0, len(centres), count)] + spread * random.normal(size=(count, 3))) % 1


def test_groups_are_those_of_the_library(page: Page) -> None:
    random, expected = np.random.default_rng(7), []
    for number in range(160):
        kind, dtype = random.choice(["uniform", "clumps", "lattice", "dense"]), random.choice(["float32", "float64"])
        positions = points(random, kind, int(random.integers(1, 3000))).astype(dtype)
        positions[positions >= 1] = 0
        box = None if random.random() < 0.5 else 1.0
        length = float(random.choice([1 / 32, 1 / 16, 10 ** random.uniform(-3, -0.5)]))
        labels = wb.friends_of_friends(wb.Particles(positions, box), length, unit="length").labels
        page.add("friends", positions=positions, box=None if box is None else [box] * 3, length=length)
        expected.append((f"{number} {kind} {dtype} {box} {length}", labels))
    _, found = page.answers()
    at = 0
    for name, labels in expected:
        assert np.array_equal(np.frombuffer(found, "<i4", len(labels), at), labels), name
        at += 4 * len(labels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_groups_of_hard_cases(page: Page, dtype: str) -> None:
    expected, refused = [], 0
    for particles, length in adversarial.cases(3, np.dtype(dtype), crowd=2000).values():
        box = None if particles.box is None else list(map(float, particles.box))
        page.add("friends", positions=np.ascontiguousarray(particles.positions), box=box, length=float(length))
        if has_keys(regular_grid(particles, length)):
            expected.append(wb.friends_of_friends(particles, length, unit="length").labels)
        else:
            refused += 1
    answers, found = page.answers()
    assert np.array_equal(np.frombuffer(found, "<i4"), np.concatenate(expected))
    assert [text for text in answers if text] == [
        "the linking length is too short for this page, which numbers at most 2²⁹ cells along an axis"
    ] * refused


def test_groups_that_one_pair_of_two_dense_cells_joins(page: Page) -> None:
    random, length, expected = np.random.default_rng(8), 0.1, []
    for _ in range(12):
        positions = 0.32 + 1e-3 * length * random.random((random.integers(200, 5000), 3))
        positions[::2, 0] += 1.002 * length
        positions[random.integers(0, len(positions) // 2) * 2, 0] -= 0.003 * length
        groups = wb.friends_of_friends(wb.Particles(positions, 1.0), length, unit="length")
        assert len(groups.ids) == 1
        page.add("friends", positions=positions, box=[1.0] * 3, length=length)
        expected.append(groups.labels)
    assert np.array_equal(np.frombuffer(page.answers()[1], "<i4"), np.concatenate(expected))


def test_decoded_positions_are_those_of_the_codec_and_sizes_near(page: Page) -> None:
    random, expected = np.random.default_rng(3), []
    for number in range(40):
        kind, dtype = random.choice(["uniform", "clumps", "dense"]), random.choice(["float32", "float64"])
        positions = (points(random, kind, int(random.integers(3, 8000))) * 50).astype(dtype)
        positions[positions >= 50] = 0
        box = None if number % 2 else 50.0
        particles, bound = wb.Particles(positions, box), float(10 ** random.uniform(-4, -0.5))
        ends = {"lower": particles.lower.tolist(), "upper": particles.upper.tolist()}
        page.add("particles", positions=positions, box=None if box is None else [box] * 3, bound=bound, **ends)
        codec = get("lattice", coder="context").prepared(particles)
        data = codec.encode(positions, Tolerance(absolute=bound))
        decoded = np.empty_like(positions)
        order = codec.permutation(positions, data)
        decoded[slice(None) if order is None else order] = codec.decode(data, positions.shape, positions.dtype)
        expected.append((decoded, len(data)))
    sizes, found = page.answers()
    assert found == b"".join(decoded.tobytes() for decoded, _ in expected)
    real = np.array([size for _, size in expected])
    assert (abs(np.array(sizes) - real) < 0.01 * real + 30).all()


def test_decoded_fields_are_those_of_the_codec_and_sizes_near(page: Page) -> None:
    random, expected = np.random.default_rng(4), []
    for number in range(24):
        dtype, shape = random.choice(["float32", "float64"]), ((200, 211), (30, 31, 33))[number % 2]
        slope = random.uniform(0, 3)
        values = np.asarray(wb.synthetic.gaussian_field(shape, slope, seed=number).values, dtype)
        bound = float(values.std() * 10 ** random.uniform(-4, -0.5))
        page.add("field", values=values, shape=list(shape), bound=bound)
        codec = get("prequantised")
        data = codec.encode(values, Tolerance(absolute=bound))
        expected.append((codec.decode(data, shape, values.dtype), len(data)))
    sizes, found = page.answers()
    assert found == b"".join(decoded.tobytes() for decoded, _ in expected)
    real = np.array([size for _, size in expected])
    assert (abs(np.array(sizes) / real - 1) < 0.02).all()


def test_halos_are_matched_as_in_the_library(page: Page) -> None:
    random, expected, least = np.random.default_rng(5), [], 5
    for _ in range(60):
        count = int(random.integers(20, 400))
        before = random.integers(0, count // 10, count)
        after = np.where(random.random(count) < random.random(), before, random.integers(0, count // 8, count))
        before, after = (_labels(labels) for labels in (before, after))
        page.add("matching", before=before.astype(np.int32), after=after.astype(np.int32), least=least)
        one, other = Groups.from_labels(before, 0.1), Groups.from_labels(after, 0.1)
        match = match_groups(Halos.of(one, least), one.labels, other, least)
        expected.append(match.status.tobytes() + match.lost.astype(np.uint8).tobytes())
    assert page.answers()[1] == b"".join(expected)


def test_files_of_numpy(page: Page) -> None:
    arrays = [np.arange(6, dtype=dtype).reshape(2, 3) for dtype in ("<f4", ">f4", "<f8", ">f8")]
    arrays += [np.zeros((2, 3, 4)), np.full((1, 3), np.nan)]
    for array in arrays:
        page.add("npy", file=saved(array))
    answers, found = page.answers()
    assert answers == [{"shape": list(a.shape), "type": NAMES[a.dtype.newbyteorder("=").name]} for a in arrays]
    assert found == b"".join(a.astype(a.dtype.newbyteorder("<")).tobytes() for a in arrays)


def test_files_that_are_refused(page: Page) -> None:
    plain = saved(np.zeros((4, 3)))
    wrong = {
        "this is not an .npy file": np.arange(40, dtype=np.uint8),
        "the header of this file is cut short or damaged": plain[:60],
        "takes float32 and float64; the array is i8": saved(np.zeros((4, 3), np.int64)),
        "the array is c16": saved(np.zeros((4, 3), complex)),
        "the array is of another type": saved(np.zeros(4, [("a", "f4")])),
        "this array has shape (5,)": saved(np.zeros(5)),
        "this array has shape ()": saved(np.array(1.0)),
        "this array has shape (0, 3)": saved(np.zeros((0, 3))),
        "this array has shape (1, 2, 3, 4)": saved(np.zeros((1, 2, 3, 4))),
        "the array is in Fortran order": saved(np.zeros((4, 3), order="F")),
        "has 96 bytes; this file has 95": plain[:-1],
        "has 96 bytes; this file has 100": np.append(plain, np.zeros(4, np.uint8)),
        "the array has infinite values": saved(np.full((2, 3), np.inf)),
        "up to 16,777,216 values": np.frombuffer(
            bytes(plain).replace(b"(4, 3)", b"(9999, 9999)").replace(b"        \n", b"  \n"), np.uint8),
        "does not describe one array": np.frombuffer(bytes(plain).replace(b"shape", b"shade"), np.uint8),
    }
    for file in (*wrong.values(), np.zeros(0, np.uint8)):
        page.add("npy", file=file)
    answers, _ = page.answers()
    for text, answer in zip((*wrong, "this is not an .npy file"), answers, strict=True):
        assert text in answer


def saved(array: np.ndarray) -> np.ndarray:
    """The bytes of a file."""
    stream = io.BytesIO()
    np.save(stream, array)
    return np.frombuffer(stream.getvalue(), np.uint8)


def _labels(groups: np.ndarray) -> np.ndarray:
    """The smallest index in each group, as labels are."""
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    return first[inverse]
