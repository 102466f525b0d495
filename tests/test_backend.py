"""The one place that starts kernels: it refuses what would corrupt memory, and no setting changes a result."""

import concurrent.futures
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fake_cupy
from conftest import ROOT
from workbench import backend, host_library, memory
from workbench.errors import WorkbenchError


def extent(positions: np.ndarray, chunks: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest coordinates, by a kernel: the call that most tests here make."""
    dimensions = positions.shape[1]
    lower = np.empty((chunks, dimensions))
    upper = np.empty_like(lower)
    kernel = backend.kernel("extent", "extent", positions.dtype, dimensions)
    kernel(chunks, chunks, len(positions), len(positions), positions, lower, upper)
    return lower.min(axis=0), upper.max(axis=0)


@pytest.fixture
def positions():
    return np.random.default_rng(7).random((10_007, 3), np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_variant_runs(dtype, dimensions):
    positions = np.random.default_rng(1).normal(size=(1000, dimensions)).astype(dtype)
    lower, upper = extent(positions)
    np.testing.assert_array_equal(lower, positions.min(axis=0))
    np.testing.assert_array_equal(upper, positions.max(axis=0))


# What a launcher refuses.

def runs_kernel() -> backend.Kernel:
    return backend.kernel("ordering", "place_runs")


def good_arguments() -> dict[str, object]:
    """Right arguments of `place_runs`, for tests that spoil one."""
    key, first, start = np.array([1, 1, 2], np.uint64), np.zeros(1, np.int64), np.zeros(2, np.int32)
    return {"n": 3, "key": key, "shift": 0, "first": first, "start": start}


def test_right_arguments_pass():
    arguments = good_arguments()
    runs_kernel()(1, *arguments.values())
    assert arguments["start"].tolist() == [0, 2]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("key", np.zeros(3, np.int64), "place_runs: key must be a uint64 array; got int64"),
        ("key", np.zeros(3, np.float64), "key must be a uint64 array; got float64"),
        ("key", np.zeros(3, ">u8"), "key must be a uint64 array; got >u8"),
        ("key", np.zeros(6, np.uint64)[::2], r"key must be C-contiguous; got strides \(16,\)"),
        ("key", np.zeros((3, 3), np.uint64).T[:, :2], "key must be C-contiguous"),
        ("key", [1, 1, 2], "key must be a uint64 array; got list"),
        ("key", None, "key must be a uint64 array; got NoneType"),
        ("key", np.uint64(3), "key must be a uint64 array; got uint64"),
        ("first", 3, "first must be a int64 array; got int"),
        ("start", np.zeros(2, np.int64), "start must be a int32 array; got int64"),
    ],
)
def test_a_wrong_array_is_refused(name, value, message):
    with pytest.raises(TypeError, match=message):
        runs_kernel()(1, *(good_arguments() | {name: value}).values())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("key", np.zeros(2, np.uint64), r"place_runs: key must have 3 elements, SIZE\(n\); got 2"),
        ("key", np.zeros(4, np.uint64), r"key must have 3 elements, SIZE\(n\); got 4"),
        ("key", np.zeros((3, 2), np.uint64), r"key must have 3 elements, SIZE\(n\); got 6"),
        ("first", np.zeros(0, np.int64), r"first must have 1 elements, SIZE\(chunks\); got 0"),
    ],
)
def test_an_array_of_the_wrong_size_is_refused(name, value, message, on_each_machine):
    arguments = good_arguments() | {name: value}
    with pytest.raises(TypeError, match=message):
        runs_kernel()(1, *on_each_machine(arguments))


def test_a_size_that_depends_on_a_number_is_checked_where_this_makes_nobody_wait(stand_in):
    """On a GPU, reading the number would make the host wait; the stand-in checks what a GPU would punish."""
    arguments = good_arguments() | {"first": np.array([5])}
    with pytest.raises(TypeError, match=r"start must have at least 5 elements, SIZE\(>= LAST\(first\)\); got 2"):
        runs_kernel()(1, *arguments.values())
    on_gpu = [stand_in.asarray(value) if isinstance(value, np.ndarray) else value for value in arguments.values()]
    with pytest.raises(AssertionError, match=r"start has 2 elements, SIZE\(>= LAST\(first\)\)"):
        runs_kernel()(1, *on_gpu)


def test_an_unaligned_array_is_refused(on_each_machine):
    key = np.zeros(25, np.uint8)[1:].view(np.uint64)
    with pytest.raises(TypeError, match="place_runs: key must be aligned to 8 bytes: copy it"):
        runs_kernel()(1, *on_each_machine(good_arguments() | {"key": key}))


@pytest.fixture(params=["cpu", "gpu"])
def on_each_machine(request, stand_in):
    """Puts the arrays among some arguments on the machine under test, at the same alignment."""
    def placed(arguments: dict[str, object]) -> list[object]:
        if request.param == "cpu":
            return list(arguments.values())
        return [fake_cupy.ndarray(v) if isinstance(v, np.ndarray) else v for v in arguments.values()]

    return placed


def test_a_read_only_output_is_refused_and_a_read_only_input_is_not():
    key, start = np.array([1, 1, 2], np.uint64), np.zeros(2, np.int32)
    key.flags.writeable = start.flags.writeable = False
    runs_kernel()(1, *(good_arguments() | {"key": key}).values())
    with pytest.raises(TypeError, match="start is written to; got a read-only array"):
        runs_kernel()(1, *(good_arguments() | {"start": start}).values())


@pytest.mark.parametrize("drop", [1, 4])
def test_a_wrong_number_of_arguments_is_refused(drop):
    arguments = list(good_arguments().values())[:-drop]
    names = "chunks, n, key, shift, first, start"
    with pytest.raises(TypeError, match=rf"place_runs takes 6 arguments \({names}\); got {6 - drop}"):
        runs_kernel()(1, *arguments)


def test_arrays_of_two_machines_are_refused():
    start = fake_cupy.asarray(np.zeros(2, np.int32))
    with pytest.raises(WorkbenchError, match="must be on one machine; got NumPy and CuPy arrays"):
        runs_kernel()(1, *(good_arguments() | {"start": start}).values())


def test_no_work_is_no_call():
    arguments = good_arguments() | {"first": np.zeros(0, np.int64)}
    runs_kernel()(0, *arguments.values())
    assert arguments["start"].tolist() == [0, 0]


def test_arguments_are_checked_even_when_there_is_no_work():
    with pytest.raises(TypeError, match="key must be"):
        runs_kernel()(0, *(good_arguments() | {"key": np.zeros(3)}).values())


def test_an_unknown_kernel_or_type_is_a_key_error():
    with pytest.raises(KeyError, match="extend"):
        backend.kernel("extent", "extend")
    with pytest.raises(KeyError, match="float16"):
        backend.kernel("extent", "extent", np.float16)


# Which machine.

def test_the_type_of_the_arrays_decides():
    assert backend.namespace(np.zeros(1), np.zeros(2)) is np
    assert not backend.on_device(np.zeros(1))
    assert not backend.on_device([1.0])
    assert backend.on_device(fake_cupy.zeros(1))
    with pytest.raises(WorkbenchError, match=r"use cupy\.asarray\(\.\.\.\) or array\.get\(\) first"):
        backend.namespace(np.zeros(1), fake_cupy.zeros(1))


def test_to_host_copies_only_from_a_gpu():
    array = np.zeros(3)
    assert backend.to_host(array) is array
    assert type(backend.to_host(fake_cupy.zeros(3))) is np.ndarray


def test_a_missing_gpu_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)   # as when it is not installed
    with pytest.raises(WorkbenchError, match=r"not installed: pip install 'lossbench\[gpu\]'"):
        backend.gpu()
    fake = fake_cupy.module()
    fake.is_available = lambda: False
    monkeypatch.setitem(sys.modules, "cupy", fake)
    with pytest.raises(WorkbenchError, match="no usable NVIDIA GPU or driver"):
        backend.gpu()


# Every kernel.

@pytest.mark.parametrize("source", sorted(path.stem for path in host_library.kernel_folder().glob("*.cu")))
def test_every_kernel_in_the_folder_can_be_called(source):
    """The first parameter counts the work, the launcher knows all types, and every variant is in the library."""
    kernels = backend.declared(source)
    assert kernels, f"{source}.cu declares no kernel"
    for name, parameters in kernels.items():
        assert (parameters[0].type, parameters[0].pointer) == ("i64", False)
        assert {p.type for p in parameters if not p.pointer} <= set(backend._SCALARS)
        assert {p.type for p in parameters if p.pointer} <= {*backend._DTYPES, "real"}
        for real in (np.float32, np.float64):
            for dimensions in host_library.DIMENSIONS:
                kernel = backend.kernel(source, name, real, dimensions)
                assert kernel._host_function
                assert kernel._sizes


@pytest.mark.parametrize("source", sorted(path.stem for path in host_library.kernel_folder().glob("*.cu")))
def test_every_array_of_every_kernel_states_its_size(source):
    for name, parameters in backend.declared(source).items():
        assert [p.name for p in parameters if p.pointer and not p.size] == [], name


def test_the_device_source_stands_alone():
    text = backend.device_source("fof")
    assert "#include" not in text.replace("#include <cmath>", "")   # which only the CPU's half of the header asks for
    assert "#define KERNEL" in text
    assert "KERNEL(link)" in text


# Threads.

@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_threads_never_change_a_result(positions, threads):
    with backend.using_threads(1):
        expected = extent(positions, chunks=16)
    with backend.using_threads(threads):
        assert backend.threads() == threads
        np.testing.assert_array_equal(extent(positions, chunks=16), expected)


def test_using_threads_puts_back_what_was():
    before = backend.threads()
    with pytest.raises(RuntimeError, match="on purpose"), backend.using_threads(before + 1):
        raise RuntimeError("on purpose")
    assert backend.threads() == before


def test_threads_of_the_program_do_not_disturb_each_other():
    with backend.using_threads(5), ThreadPoolExecutor(1) as other:
        elsewhere = other.submit(backend.threads).result()
        assert backend.threads() == 5
    assert elsewhere == backend.threads()


def test_work_side_by_side_keeps_its_order_and_runs_kernels_on_one_thread():
    def work(number: int) -> tuple[int, int]:
        return number, backend.threads()

    with backend.using_threads(3):
        assert list(backend.side_by_side(work, range(20))) == [(number, 1) for number in range(20)]
        assert backend.threads() == 3


def test_an_error_in_work_side_by_side_drops_the_rest():
    begun = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 2:
            raise RuntimeError("on purpose")
        return number

    with backend.using_threads(2), pytest.raises(RuntimeError, match="on purpose"):
        list(backend.side_by_side(work, range(1000)))
    assert len(begun) < 20


@pytest.mark.parametrize("count", [0, -1])
def test_no_threads_is_refused(count):
    with pytest.raises(WorkbenchError, match=f"must be at least 1; got {count}"):
        backend.set_threads(count)


def test_the_environment_sets_the_first_number_of_threads():
    program = "from workbench import backend; print(backend.threads())"
    environment = os.environ | {"OMP_NUM_THREADS": "3"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == "3\n"


@pytest.mark.parametrize("count", [0, 1, 5, 100, 10**6, 10**9])
def test_chunks_are_few_on_a_cpu_and_many_on_a_gpu(count):
    with backend.using_threads(2):
        on_host = backend.chunks(count, np.zeros(1))
    on_device = backend.chunks(count, fake_cupy.zeros(1))
    assert 1 <= on_host <= max(1, count)
    assert 1 <= on_device <= max(1, count)
    if count >= 10**6:
        assert 4 <= on_host <= 128
        assert on_device >= 10_000   # what keeps a GPU busy


def test_several_python_threads_may_call_at_once(positions):
    """As the threads of a Dask worker do: each call starts OpenMP threads of its own."""
    parts = [positions[start : start + 5000] for start in range(0, 5000, 100)]
    with backend.using_threads(2), concurrent.futures.ThreadPoolExecutor(8) as pool:
        for part, (lower, upper) in zip(parts, pool.map(extent, parts), strict=True):
            np.testing.assert_array_equal(lower, part.min(axis=0))
            np.testing.assert_array_equal(upper, part.max(axis=0))


def child(answers: "multiprocessing.Queue[object]", positions: np.ndarray) -> None:
    answers.put((backend.threads(), *extent(positions)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")   # Python 3.12 warns; that is the point
def test_a_forked_child_can_run_kernels(positions):
    """OpenMP's threads do not survive a fork; a child that waits for them hangs for ever."""
    with backend.using_threads(2):
        extent(positions)   # now OpenMP has threads to lose
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        process = context.Process(target=child, args=(answers, positions))
        process.start()
        try:
            threads, lower, upper = answers.get(timeout=60)
        finally:
            process.join(timeout=10)
            if process.is_alive():
                process.kill()
    assert process.exitcode == 0
    assert threads == 1
    np.testing.assert_array_equal(lower, positions.min(axis=0))
    np.testing.assert_array_equal(upper, positions.max(axis=0))


# The library.

@pytest.fixture
def no_library_yet():
    """The library as before the first kernel; what was loaded for this test is forgotten again."""
    backend._library.cache_clear()
    backend._kernel.cache_clear()
    yield
    backend._library.cache_clear()
    backend._kernel.cache_clear()


@pytest.mark.usefixtures("no_library_yet")
def test_a_missing_library_is_named(monkeypatch, tmp_path, positions):
    monkeypatch.setattr(host_library, "LIBRARY", tmp_path / "_host.so")
    with pytest.raises(WorkbenchError, match=r"are missing \(_host\.so\); run `make build`, or reinstall lossbench"):
        extent(positions)


@pytest.mark.usefixtures("no_library_yet")
@pytest.mark.parametrize("change", ["edit", "add", "remove"])
def test_a_library_older_than_its_sources_is_refused(monkeypatch, tmp_path, positions, change):
    folder = shutil.copytree(host_library.kernel_folder(), tmp_path / "kernels")
    monkeypatch.setattr(host_library, "kernel_folder", lambda: folder)
    if change == "edit":
        (folder / "portable.cuh").write_text((folder / "portable.cuh").read_text() + "\n")
    elif change == "add":
        (folder / "more.cu").touch()
    else:
        (folder / "mesh.cu").unlink()
    with pytest.raises(WorkbenchError, match="older than their sources; run `make build`, or reinstall lossbench"):
        extent(positions)


@pytest.mark.usefixtures("no_library_yet")
def test_a_changed_flag_makes_the_library_stale(monkeypatch, positions):
    monkeypatch.setattr(host_library, "HOST_FLAGS", (*host_library.HOST_FLAGS, "-ffast-math"))
    with pytest.raises(WorkbenchError, match="older than their sources"):
        extent(positions)


@pytest.fixture
def copied_build(tmp_path):
    """A copy of the build module with one kernel beside it, to build from without touching the checkout."""
    (tmp_path / "workbench").mkdir()
    shutil.copy(ROOT / "workbench" / "host_library.py", tmp_path / "workbench")
    others = shutil.ignore_patterns(*{path.name for path in host_library.kernel_folder().glob("*.cu")} - {"extent.cu"})
    shutil.copytree(host_library.kernel_folder(), tmp_path / "kernels", ignore=others)

    def build(**environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "workbench" / "host_library.py")]
        return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)

    return tmp_path, build


def test_a_missing_compiler_is_named(copied_build):
    folder, build = copied_build
    run = build(CXX="no-such-compiler")
    assert run.returncode == 1
    assert run.stderr.startswith("Lossbench needs a C++ compiler, and 'no-such-compiler' was not found")
    assert "apt install g++" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (folder / "workbench" / "_host.so").exists()


def test_a_kernel_that_does_not_compile_is_shown_and_keeps_the_old_library(copied_build):
    folder, build = copied_build
    (folder / "workbench" / "_host.so").write_bytes(b"the old one")
    (folder / "kernels" / "extent.cu").write_text('#include "portable.cuh"\nKERNEL(broken)(i64 n) { oops; }\n')
    run = build()
    assert run.returncode == 1
    assert run.stderr.startswith("Lossbench's kernels did not compile; they need a C++17 compiler (g++ 9 or")
    assert "oops" in run.stderr
    assert "Traceback" not in run.stderr
    assert (folder / "workbench" / "_host.so").read_bytes() == b"the old one"


@pytest.mark.long
def test_a_build_is_quiet_leaves_nothing_behind_and_keeps_what_the_compiler_warns_of(copied_build):
    folder, build = copied_build
    (folder / "pyproject.toml").touch()   # a checkout
    with (folder / "kernels" / "extent.cu").open("a") as kernel:
        kernel.write("static int never_called() { return 0; }\n")
    run = build()
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    names = {path.name for path in (folder / "workbench").iterdir()} - {"__pycache__"}
    assert names == {"_host.so", "host_library.py"}
    warnings = {path.name.split("-")[0]: path.read_text() for path in (folder / "build" / "objects").rglob("*.warnings")}
    assert set(warnings) == {f"extent_f{bits}_{axes}d" for bits in (32, 64) for axes in (2, 3)}
    assert all("never_called" in text for text in warnings.values())


WRAPPERS = {
    "without OpenMP": """
        for given; do case $given in -fopenmp) echo "unsupported option '-fopenmp'" >&2; exit 1;; esac; done
        exec c++ "$@"
    """,
    # Apple's clang with Homebrew's libomp: the flag is the front end's, and the library has a folder of its own.
    "as Apple's clang": """
        set -- "$@" END; own=
        while [ "$1" != END ]; do
            case $1 in
                -fopenmp) echo "unsupported option '-fopenmp'" >&2; exit 1;;
                -Xpreprocessor) [ "$2" = -fopenmp ] || exit 1; shift; set -- "$@" -fopenmp;;
                -I/usr/local/opt/libomp/include) own=yes;;
                -L/usr/local/opt/libomp/lib) own=yes;;
                -lomp) set -- "$@" -fopenmp;;
                *) set -- "$@" "$1";;
            esac
            shift
        done
        shift
        case "$* " in *-fopenmp*) [ -n "$own" ] || { echo "'omp.h' file not found" >&2; exit 1; };; esac
        exec c++ "$@"
    """,
}


@pytest.mark.few(1)
@pytest.mark.usefixtures("no_library_yet")
@pytest.mark.parametrize("compiler", WRAPPERS)
def test_compilers_that_refuse_openmp_are_served(copied_build, monkeypatch, positions, compiler):
    folder, build = copied_build
    wrapper = folder / "compiler"
    wrapper.write_text(f"#!/bin/sh\n{WRAPPERS[compiler]}")
    wrapper.chmod(0o755)
    run = build(CXX=str(wrapper))
    assert (run.returncode, run.stdout) == (0, "")
    monkeypatch.setattr(host_library, "LIBRARY", folder / "workbench" / "_host.so")
    monkeypatch.setattr(host_library, "kernel_folder", lambda: folder / "kernels")
    if compiler == "without OpenMP":
        assert run.stderr.startswith(f"Note: {wrapper} has no OpenMP, so each kernel will run on one thread (macOS: brew ")
        assert (backend.has_openmp(), backend.threads()) == (False, 1)
    else:
        assert (run.stderr, backend.has_openmp()) == ("", True)
    np.testing.assert_array_equal(extent(positions)[0], positions.min(axis=0))


@pytest.mark.usefixtures("no_library_yet")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"\x3e\x00", b"\xb7\x00", "it is for other processors"),
        (b"GLIBC_2.14\0", b"GLIBC_9.14\0", "version `GLIBC_9.14' not found"),
        (b"libgomp.so.1\0", b"libgimp.so.1\0", "libgimp.so.1: cannot open shared object file"),
        (b"host_source_hash\0", b"fast_source_hash\0", "it is another library"),
        (b"\x7fELF", b"text", "invalid ELF header"),
    ],
    ids=["another processor", "a newer C library", "no runtime of OpenMP", "another library", "no library"],
)
def test_a_library_for_another_machine_says_what_to_do(monkeypatch, tmp_path, positions, old, new, said):
    whole = host_library.LIBRARY.read_bytes()
    if old not in whole or platform.machine() != "x86_64":
        pytest.skip("the library has been built otherwise here")
    monkeypatch.setattr(host_library, "LIBRARY", tmp_path / "_host.so")
    (tmp_path / "_host.so").write_bytes(whole.replace(old, new, 1))
    expected = r"the compiled kernels \(_host.so\) cannot be loaded on this Linux x86_64: .*" + re.escape(said)
    with pytest.raises(WorkbenchError, match=expected) as found:
        extent(positions)
    assert "pip install --force-reinstall --no-binary lossbench lossbench" in str(found.value)


def test_kernels_compile_without_a_warning():
    # Of each object there is the text of its warnings, if there were any, from the time when it was compiled.
    assert [path.read_text() for path in host_library.objects().glob("*.warnings")] == []


@pytest.mark.skipif(shutil.which("nm") is None, reason="nm, of binutils, is not installed")
def test_no_variant_of_a_kernel_runs_code_of_another():
    # The linker keeps one of several weak symbols of a name, as methods of structs are: but they differ between variants.
    command = ["nm", "--defined-only", host_library.LIBRARY]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    symbols = [line.split() for line in listed.splitlines()]
    assert any(name == "link_f32_3d" for *_, name in symbols)
    assert [name for *_, kind, name in symbols if kind in "VWu"] == []


def test_arguments_by_name_and_in_bundles_are_put_in_order():
    key, shift = np.arange(6, dtype=np.uint64) // 2, 0
    counts, expected = np.zeros(1, np.int64), np.zeros(1, np.int64)
    count = backend.kernel("ordering", "count_runs")
    count(1, 6, key, shift, expected)
    count(1, {"n": 6, "key": key, "unused": 5}, shift=shift, counts=counts)
    assert counts.tolist() == expected.tolist() == [3]


@pytest.mark.parametrize(
    ("bundles", "named", "message"),
    [
        ([], {"n": 6, "wrong": 1}, "count_runs has no parameter wrong; it takes n, key, shift, counts"),
        ([{"n": 6}], {"n": 6}, "n must be given once"),
        ([{"n": 6}], {}, "count_runs also needs key, shift, counts"),
        ([6], {"shift": 0}, "by name and in bundles; got a mixture"),
    ],
)
def test_wrong_names_are_refused(bundles, named, message):
    with pytest.raises(TypeError, match=message):
        backend.kernel("ordering", "count_runs")(1, *bundles, **named)


def faults_of_arrays():
    """The page faults of arrays of one megabyte, one after the other."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has options for this")
def test_steps_use_freed_memory_again_until_none_has_run_for_a_moment():
    program = (
        "import test_backend, time\nfrom workbench import memory\nfaults = [test_backend.faults_of_arrays()]\n"
        "for _ in range(2):\n    with memory.reusing_memory():\n        faults.append(test_backend.faults_of_arrays())\n"
        "time.sleep(1 + memory.IDLE_SECONDS)\nprint(*faults, test_backend.faults_of_arrays())"
    )
    settings = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    run = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    before, within, again, after = map(int, run.stdout.split())
    assert again <= within < before / 4
    assert after > 4 * within


def test_a_step_does_not_fail_for_the_memory_that_is_returned_after_it(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    options = []
    monkeypatch.setattr(memory, "c_function", lambda name: lambda *given: options.append(given))
    monkeypatch.setattr(memory.threading.Timer, "start", refuse)
    with memory.reusing_memory():
        pass
    for stated, trimmed, mapped in (("65536", 2**16, 2**17), ("64K", 2**17, 2**17), ("", 2**17, 2**17)):
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", stated)
        memory._reused._give_back()
        assert options[-3:] == [(memory.M_TRIM_THRESHOLD, trimmed), (memory.M_MMAP_THRESHOLD, mapped), (0,)]
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "4096")
    memory._reused._give_back()
    assert options[-2] == (memory.M_MMAP_THRESHOLD, 4096)


def test_addresses_of_arrays_are_those_that_numpy_states(tmp_path):
    base = np.arange(24.0)
    mapped = np.memmap(tmp_path / "mapped", np.float32, "w+", shape=(3, 2))
    for array in (base, base[3:], base[::-1], base.reshape(2, 12).T, base[:0], backend.read_only(base), mapped, mapped[1:]):
        assert backend._address(array) == array.ctypes.data
