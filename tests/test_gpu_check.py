"""The one command that proves the kernels on a GPU, run on the stand-in; with faults, so that it is known to see them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import fake_cupy
import workbench as wb
from conftest import why_no_gpu
from workbench import backend, host_library
from workbench.device_code import CACHE
from workbench.errors import WorkbenchError

ROOT = Path(__file__).resolve().parents[1]
COUNT = 400   # particles: enough that every kernel is launched
# Only for a moment: the folder has modules with the names of folders of tests.
with mock.patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
    import gpu
    from gpu_check import agreement, machine, peers, programs, shadow, speed
    from gpu_check.budget import Budget
    from gpu_check.cases import Case, all_cases
    from gpu_check.machine import HostKernels, Machine
    from gpu_check.report import Report


def command(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), *arguments], capture_output=True, text=True, env=env
    )


@pytest.fixture
def there(stand_in: ModuleType) -> Machine:
    return Machine(stand_in, real=False)


@pytest.mark.long
def test_the_whole_command_on_the_stand_in(tmp_path: Path) -> None:
    ended = command("--cpu", "--sizes", "300", "--compared", str(COUNT), "--out", str(tmp_path))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("The stand-in for CuPy: no GPU is used. It launches the CPU's build of the kernels.")
    written = sorted(tmp_path.iterdir())
    assert [path.suffix for path in written] == [".json", ".md"]
    found = json.loads(written[0].read_text())
    assert found["holds"]
    assert found["agreement"]["agreed"] > 500
    assert found["agreement"]["failed"] == found["agreement"]["left_out"] == {}
    assert found["agreement"]["kernels_never_launched"] == []
    measured = {row["part"] for row in found["rows"]}
    assert measured == {"transfers", "groups", "bounds", "codec", "compress", "kept clusters"}
    assert all(row["seconds"] > 0 for row in found["rows"])
    assert "| groups | clustered, b = 0.2 |" in written[1].read_text()


def test_without_a_gpu_it_says_what_is_missing() -> None:
    reason = why_no_gpu()
    if reason is None:
        pytest.skip("there is a GPU")
    ended = command()
    assert (ended.returncode, ended.stderr.strip()) == (2, reason)


def test_stored_results_are_those_of_this_code() -> None:
    assert json.loads(agreement.STORED.read_text()) == agreement.digests(), "python benchmarks/gpu.py --write-stored"


# What it must see.

def some(*names: str) -> list[Case]:
    return [case for case in all_cases() if case.name in names]


@pytest.fixture
def with_a_wrong_bit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Kernels of the stand-in that write one wrong bit to an array."""
    def spoil(kernel: str, argument: int) -> None:
        run = fake_cupy.Function.__call__

        def wrong(self: Any, grid: Any, block: Any, args: tuple[Any, ...]) -> None:
            run(self, grid, block, args)
            if self.symbol.startswith(kernel) and args[argument].size:
                args[argument]._held.reshape(-1)[-1:].view(np.uint8)[0] ^= 1

        monkeypatch.setattr(fake_cupy.Function, "__call__", wrong)

    return spoil


@pytest.mark.parametrize(("kernel", "argument", "name"), [("split_words", 2, "word"), ("place_runs", 5, "start")])
def test_one_wrong_bit_of_a_kernel_is_named(there: Machine, with_a_wrong_bit: Any, kernel: str, argument: int, name: str):
    with_a_wrong_bit(kernel, argument)
    found = agreement.compared_with_cpu(there, [200], Budget(60), some("sorting"))
    assert not found.holds
    assert found.kernels.differences[0].startswith(f"ordering/{kernel} f32_3d: {name} differs in 1 of ")
    assert bool(found.different) == (kernel == "split_words")   # what the last run begins with is overwritten


def test_a_kernel_that_writes_to_its_input_is_named(there: Machine, with_a_wrong_bit: Any) -> None:
    with_a_wrong_bit("count_runs", 2)
    found = agreement.compared_with_cpu(there, [200], Budget(60), some("sorting"))
    assert "ordering/count_runs f32_3d: key differs" in found.kernels.differences[0]


def test_a_forest_may_be_another_one_with_the_same_roots(there: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    names = "groups, clustered, 3-D float32",
    run = fake_cupy.Function.__call__

    def flattened(self: Any, grid: Any, block: Any, args: tuple[Any, ...]) -> None:
        run(self, grid, block, args)
        if self.symbol.startswith("link_f"):
            args[-1]._held[...] = shadow.roots(args[-1]._held)

    monkeypatch.setattr(fake_cupy.Function, "__call__", flattened)
    assert agreement.compared_with_cpu(there, [1500], Budget(60), some(*names)).holds


def test_a_case_that_fails_is_told_and_the_others_go_on(there: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr("gpu_check.cases.sort_by_key", broken)
    names = "sorting", "symbols"
    sorting, symbols = some(*names)
    failing = Case("sorting", lambda move, count: (_ for _ in ()) if move is np.asarray else sorting.run(move, count))
    found = agreement.compared_with_cpu(there, [200], Budget(60), [failing, symbols])
    assert found.failed == {"sorting, 200": "RuntimeError: illegal memory access"}
    assert len(found.agreed) == 2
    assert not found.holds


@pytest.mark.parametrize("error", [
    ModuleNotFoundError("No module named 'pcodec'", name="pcodec"),
    WorkbenchError("prequantised needs pcodec, which is not installed: pip install 'lossbench[codecs]'"),
])
def test_a_missing_package_is_no_difference(there: Machine, error: Exception) -> None:
    def run(move: Any, count: int) -> Iterator[Any]:
        try:
            raise error
        except Exception as cause:
            raise ValueError("could not encode") from cause
        yield

    found = agreement.compared_with_cpu(there, [200], Budget(60), [Case("codec", run), *some("symbols")])
    assert found.left_out == {"codec, 200": "pcodec is not installed"}
    assert found.holds
    bench = speed.Bench(there, 1e9, wb.Particles(np.zeros((1, 3)), 1.0), "")
    row = bench.row("codec", "encode", 1, lambda: next(run(None, 1)))
    assert (row.note, row.failed) == ("left out: pcodec is not installed", False)


def test_without_time_everything_is_left_out_and_nothing_is_claimed(there: Machine) -> None:
    found = agreement.compared_with_cpu(there, [200], Budget(0))
    assert set(found.left_out.values()) == {"no time left"}
    assert len(found.left_out) == len(all_cases())
    assert not found.holds


def test_without_the_kernels_of_the_cpu_stored_results_are_compared(there: Machine, tmp_path: Path) -> None:
    wrong = json.loads(agreement.STORED.read_text())
    wrong["symbols"]["results"]["words"] = "0" * 16
    wrong["sorting"]["inputs"] = "0" * 16
    (tmp_path / "stored.json").write_text(json.dumps(wrong))
    found = agreement.compared_with_stored(there, Budget(100), tmp_path / "stored.json", some("sorting", "symbols"))
    assert found.different == ["symbols: words"]
    assert found.agreed == ["symbols: symbols"]
    assert found.left_out == {"sorting": "the random numbers of this NumPy differ from the stored ones"}


def test_without_a_compiler_the_kernels_of_the_cpu_are_reported_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(library: Path) -> None:
        raise SystemExit("Lossbench needs a C++ compiler\nand more")

    def missing() -> int:
        raise WorkbenchError("the compiled kernels are missing")

    monkeypatch.setattr(host_library, "build", refuse)
    monkeypatch.setattr(backend, "threads", missing)
    found = machine.host_kernels()
    assert not found.present
    assert found.told.endswith("Lossbench needs a C++ compiler")


# A bare machine: each fault ends in a sentence, and what was found until then is kept.

def on_a_card(fault: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command on a card that is none (see fake_card), with a fault."""
    with tempfile.TemporaryDirectory() as kept:
        changed = {"FAKE_CARD": fault, "PYTHONPATH": str(ROOT / "tests" / "fake_card"), CACHE: kept}
        return command(*arguments, env={**os.environ, **changed})


@pytest.mark.few(1)
@pytest.mark.parametrize(("fault", "sentence"), [
    ("old driver", "finds no usable NVIDIA GPU or driver on this machine: cudaErrorInsufficientDriver: CUDA driver"),
    pytest.param("no card", "finds no usable NVIDIA GPU or driver on this machine: 0 cards", marks=pytest.mark.long),
    pytest.param("old CuPy", "the GPU needs CuPy 13 or newer; got 12.3.0", marks=pytest.mark.long),
    pytest.param("broken installation", "CuPy is installed, but cannot be imported: Failed", marks=pytest.mark.long),
    ("unknown architecture", "(compute capability 7.0): RuntimeError: NVRTC cannot compile a kernel file with -arch=sm_70"),
])
def test_a_card_that_cannot_be_used_is_told_in_one_line(fault: str, sentence: str) -> None:
    ended = on_a_card(fault)
    assert (ended.returncode, ended.stdout, len(ended.stderr.splitlines())) == (2, "", 1)
    assert sentence in ended.stderr


@pytest.mark.long
@pytest.mark.parametrize(("fault", "status", "sentence"), [
    ("", 0, "0 differ; 0 cases failed"),
    ("slow compiler", 1, "variants, for which there was no time"),
    ("illegal access", 1, "cudaErrorIllegalAddress"),
    ("interrupt", 130, "interrupted in the part 'compare'"),
    ("wrong bit", 1, ": gathered differs in 1 of "),
])
def test_a_run_that_goes_wrong_is_reported(tmp_path: Path, fault: str, status: int, sentence: str) -> None:
    ended = on_a_card(fault, "--parts", "compare", "--compared", "200", "--minutes", "0.2", "--out", str(tmp_path))
    assert ended.returncode == status, ended.stderr
    assert sentence in ended.stdout
    assert sentence in next(tmp_path.glob("*.md")).read_text()
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["holds"] == (status == 0)


@pytest.mark.long
def test_a_card_with_little_memory_is_measured_as_far_as_it_goes(tmp_path: Path) -> None:
    ended = on_a_card("little memory", "--parts", "speed", "--sizes", "300", "--minutes", "1", "--out", str(tmp_path))
    rows = json.loads(next(tmp_path.glob("*.json")).read_text())["rows"]
    assert ended.returncode == 0
    too_large = {row["part"] for row in rows if row["note"].startswith("does not fit into memory")}
    assert too_large == {"groups", "kept clusters"}
    assert {row["part"] for row in rows if row["seconds"]} >= {"bounds", "codec", "compress"}


@pytest.mark.parametrize(("error", "noted"), [
    (None, {}), (KeyboardInterrupt(), {"interrupted": "speed"}),
    (RuntimeError("x\ny"), {"failed": {"speed": "RuntimeError: x"}}),
])
def test_a_part_that_ends_early_leaves_a_report(tmp_path: Path, error: BaseException | None, noted: dict[str, Any]) -> None:
    report = Report({"date": "2026-01-01"}, "none", not_compared=True)

    def step() -> None:
        begun = json.loads(next(tmp_path.glob("*.json")).read_text())
        assert begun["interrupted"] == "speed", "a crash must leave a report that names the part"
        if error is not None:
            raise error

    assert gpu.attempt("speed", step, report, Budget(60), tmp_path) == (not isinstance(error, KeyboardInterrupt))
    written = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert {name: written[name] for name in noted} == noted
    assert written["holds"] == (error is None)


def test_a_part_without_time_is_left_out_and_named(tmp_path: Path) -> None:
    report = Report({"date": "2026-01-01"}, "none")
    assert gpu.attempt("peers", lambda: pytest.fail("there was no time"), report, Budget(0), None)
    assert "- left out: peers: no time left" in report.markdown()


def test_results_of_a_checkout_that_cannot_be_written_to_go_elsewhere(there: Machine, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("")
    options = SimpleNamespace(out=tmp_path / "file" / "results")
    found = gpu.folder(options, there)
    assert machine.writable(found)
    assert gpu.folder(options, there) == found
    assert capsys.readouterr().err.count("cannot be written to, so results go to") == 1


def test_the_kernels_of_the_cpu_are_built_elsewhere_where_the_checkout_cannot_be_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[Path] = []
    monkeypatch.setattr(host_library, "build", built.append)
    monkeypatch.setattr(machine, "_usable", lambda: False)
    monkeypatch.setattr(machine, "writable", lambda folder: False)
    monkeypatch.setenv("LOSSBENCH_HOST_LIBRARY", "")
    assert machine.host_kernels().told.endswith("as the checkout cannot be written to")
    assert [str(path) for path in built] == [os.environ["LOSSBENCH_HOST_LIBRARY"]]
    monkeypatch.setattr(host_library, "build", lambda library: (_ for _ in ()).throw(OSError("No space left on device")))
    assert machine.host_kernels() == HostKernels(
        False, "none, so stored results of the CPU are compared: No space left on device"
    )


# The other programs.

def fake_sanitiser(folder: Path, script: str) -> str:
    path = folder / "compute-sanitizer"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(("script", "passed", "told"), [
    ("echo '========= ERROR SUMMARY: 0 errors'; exit 0", True, "ERROR SUMMARY: 0 errors"),
    ("echo '========= ERROR SUMMARY: 3 errors'; exit 99", False, "ERROR SUMMARY: 3 errors"),
    ("echo 'Device not supported' >&2; exit 1", None, "Device not supported"),
    ("sleep 30", None, "stopped after 1 s"),
])
def test_the_verdict_of_compute_sanitizer(tmp_path: Path, script: str, passed: bool | None, told: str) -> None:
    found = programs.sanitised("memcheck", Budget(1), fake_sanitiser(tmp_path, script))
    assert (found.passed, found.told) == (passed, told)


@pytest.mark.parametrize(("body", "passed"), [
    ("assert False", False), pytest.param("assert True", True, marks=pytest.mark.long),
])
def test_the_verdict_of_the_tests(tmp_path: Path, body: str, passed: bool) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = gpu: on a card\n")
    (tmp_path / "test_some.py").write_text(f"import pytest\n\n@pytest.mark.gpu\ndef test_it():\n    {body}\n")
    (tmp_path / "test_none.py").write_text("import a_package_that_is_not_there\n")
    found = programs.gpu_tests(Budget(60), tmp_path)
    assert (found.passed, found.told) == (passed, "1 passed" if passed else "1 failed")


@pytest.mark.long
def test_the_tests_of_a_gpu_pass_on_a_card_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "fake_card"))
    found = programs.gpu_tests(Budget(600))
    assert found.passed, found.told
    assert int(found.told.split()[0]) > 200


def test_peers_that_are_not_installed_or_fail_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", {"jztree": ("a_package_that_is_not_there", ""), "cuml": ("numpy", "")})
    rows = peers.peer_rows(1000, Budget(60))
    assert rows[0].note == "not installed"
    assert rows[1].note.startswith("failed: ModuleNotFoundError: No module named 'cu")


# The measurements.

@pytest.mark.parametrize("count", [1000, 2000, 10_000])
def test_copies_of_a_snapshot_fill_a_longer_box_with_as_many_groups_each(there: Machine, count: int) -> None:
    bench = speed.Bench.on(there, HostKernels(True, ""), 10)
    particles = bench.particles(count)
    assert len(particles) == count
    length = 0.2 * bench.snapshot.spacing
    one = wb.friends_of_friends(bench.snapshot, length, unit="length")
    all_of_them = wb.friends_of_friends(particles, length, unit="length")
    assert abs(len(all_of_them) - len(one) * count // 1000) <= 0.02 * len(all_of_them)   # rounding decides a few links


def test_what_does_not_fit_into_memory_is_told(there: Machine) -> None:
    bench = speed.Bench(there, 1e9, wb.Particles(np.zeros((1, 3)), 1.0), "")

    def too_large() -> None:
        raise MemoryError("2 TiB")

    assert bench.row("groups", "all", 10, too_large).note == "does not fit into memory: 2 TiB"


def test_a_card_is_described_and_timed_by_its_own_clock(stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Machine(with_cuda(stand_in, monkeypatch), real=True)
    told = there.description()
    assert (told["card"], told["driver"], told["NVRTC"]) == ("H100", "13.0", "13.0")
    assert there.seconds(lambda: None) == 0.002
    assert there.copy_bandwidth() == pytest.approx(2 * 2**20 / 0.002)
    report = Report(told, "the library that was there", compile_seconds={"fof f32_3d": 2.0, "repair f32_3d": 5.0})
    assert "longest repair f32_3d, 5.0 s" in report.markdown()
    assert not report.holds


def with_cuda(fake: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The stand-in with as much of `cupy.cuda` as the command uses; every event comes 2 ms after the one before."""
    stream = SimpleNamespace(synchronize=lambda: None)
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    runtime = SimpleNamespace(
        getDeviceProperties=lambda _: {"name": b"H100", "multiProcessorCount": 132}, driverGetVersion=lambda: 13000,
        runtimeGetVersion=lambda: 13000, getDeviceCount=lambda: 2,
    )
    cuda = SimpleNamespace(
        Event=lambda: event, get_current_stream=lambda: stream, get_elapsed_time=lambda *_: 2.0, runtime=runtime,
        Device=lambda: SimpleNamespace(id=0, mem_info=(2**22, 80 * 2**30), compute_capability="90"),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError), set_allocator=lambda _: None,
        nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
    )
    pool = SimpleNamespace(free_all_blocks=lambda: None, total_bytes=lambda: 0)
    vars(fake).update(cuda=cuda, get_default_memory_pool=lambda: pool, __version__="14.2.0")
    return fake
