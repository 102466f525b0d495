"""The work of each item in a search for groups, counted: no item of a launch goes through a whole dense cell.

A GPU waits for its longest item. So the kernels are compiled once more, such that every basic block that runs is counted,
and launched in as many items as on a GPU, on particles that all lie in one cell or in a few neighbouring ones.
"""

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench import backend, host_library

COUNTER = """
static long long work, most, all, begun;
extern "C" void __sanitizer_cov_trace_pc() { ++work; }
static void end() { if (work > most) most = work; all += work; work = 0; }
extern "C" void begin_launch() { most = all = work = begun = 0; }
extern "C" void begin_item() { if (begun++) end(); else work = 0; }
extern "C" long long end_launch() { end(); return most; }
"""
PER_ITEM = """
extern "C" void begin_item();
#undef FOR_EACH
#undef FOR_EACH_UNEVEN
#undef FOR_EACH_LIGHT
#define FOR_EACH(i, n) for (i64 i = 0; i < (n) && (begin_item(), true); ++i)
#define FOR_EACH_UNEVEN FOR_EACH
#define FOR_EACH_LIGHT FOR_EACH
extern "C" int host_threads() { return 1; }
"""
BEHIND = "// How many bits a number needs"   # the loops are defined before this line
SMALL, LARGE = 10_000, 80_000
# One item joins the boxes of all pieces of 1,024 particles of a cell, and of all branches of its tree: so much work for a
# particle at most, where a thread for each particle would do more than one basic block.
JOINING = {"bound_trunks": 0.03, "join_pieces": 0.01}


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("counted")
    text = backend.device_source("fof")
    assert text.count(BEHIND) == 1
    (folder / "fof.cpp").write_text(text.replace(BEHIND, PER_ITEM + BEHIND))
    (folder / "counter.cpp").write_text(COUNTER)
    compiler, flags = host_library.compiler()[0], ["-std=c++17", "-O1", "-fPIC", "-w", *host_library.definitions("f32", 3)]
    for name, more in (("fof", ["-fsanitize-coverage=trace-pc"]), ("counter", [])):
        made = subprocess.run(
            [compiler, *flags, *more, "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=folder, capture_output=True, text=True
        )
        if made.returncode and "coverage" in made.stderr:
            pytest.skip(f"{compiler} does not count basic blocks")
        assert made.returncode == 0, made.stderr
    subprocess.run([compiler, "-shared", "fof.o", "counter.o", "-o", "counted.so"], cwd=folder, check=True)
    library = ctypes.CDLL(str(Path(folder, "counted.so")))
    library.end_launch.restype = ctypes.c_longlong
    return library


@pytest.fixture
def most_work(counted: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """The longest item of each kernel's launches: in basic blocks."""
    found: dict[str, int] = {}
    plain = backend.Kernel.__dict__["_host_function"].func

    def counting(self: backend.Kernel) -> Callable[..., None]:
        if self.source != "fof":
            return plain(self)
        function = getattr(counted, f"{self.name}_f32_3d")
        function.restype, function.argtypes = None, plain(self).argtypes

        def run(*arguments: object) -> None:
            counted.begin_launch()
            function(*arguments)
            found[self.name] = max(found.get(self.name, 0), counted.end_launch())

        return run

    monkeypatch.setattr(backend.Kernel, "_host_function", property(counting))
    monkeypatch.setattr(backend, "chunks", lambda count, array: max(1, count // 8))   # as on a GPU
    return found


def one_cell(count: int) -> np.ndarray:
    return 0.5 + 0.01 * np.random.default_rng(1).random((count, 3))


def one_point(count: int) -> np.ndarray:
    return np.full((count, 3), 0.5)


def two_cells(count: int) -> np.ndarray:
    """Two clumps whose cells are neighbours, but a little farther apart than the linking length."""
    points = one_cell(count)
    points[count // 2 :, 0] += 0.111
    return points


def two_cells_and_one_link(count: int) -> np.ndarray:
    points = two_cells(count)
    points[-1, 0] -= 0.09
    return points


@pytest.mark.parametrize("make", [one_cell, one_point, two_cells, two_cells_and_one_link])
def test_no_item_goes_through_a_whole_cell(make, most_work: dict[str, int]) -> None:
    seen = []
    for count in (SMALL, LARGE):
        most_work.clear()
        wb.friends_of_friends(wb.Particles(make(count).astype(np.float32), 1.0), 0.1, unit="length")
        seen.append(dict(most_work))
    small, large = seen
    assert {"link", "label_particles", "start_cells"} <= set(large)
    for name, most in large.items():
        if name in JOINING:
            assert most <= JOINING[name] * LARGE, name
        else:
            assert most <= 1.5 * small[name] + 100, name   # which does not grow with the cell


def test_an_item_that_goes_through_a_whole_cell_would_be_seen(most_work: dict[str, int], monkeypatch) -> None:
    monkeypatch.setattr(backend, "chunks", lambda count, array: 1)
    wb.friends_of_friends(wb.Particles(one_cell(SMALL).astype(np.float32), 1.0), 0.1, unit="length")
    assert most_work["label_particles"] > SMALL
