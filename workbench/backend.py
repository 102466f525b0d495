"""Which machine an array lives on, and how its kernels are started there.

This is the only module that knows about CuPy and about the host library; everything above it takes arrays. The type
of the arrays decides: NumPy arrays go to the kernels compiled for the CPU when the package was installed, CuPy arrays
to the same sources compiled for the GPU when first used. There is no switch to set, and no hidden copy.

The kernels have no fixed signature table: a launcher reads the declaration in the source (`declarations.py`) and checks
every argument against it (type, number of elements, contiguity, alignment, machine), because a wrong pointer or a short
array would corrupt memory instead of raising.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from workbench import host_library
from workbench.declarations import Expected, Parameter, declared_constants, declared_kernels, expected_sizes, sizes_hold
from workbench.device_code import code_on_disk
from workbench.errors import WorkbenchError

Array = Any   # numpy.ndarray or cupy.ndarray; CuPy has no types to name without importing it

Item = TypeVar("Item")
Result = TypeVar("Result")

DEVICE_FLAGS = ("-std=c++17", "--fmad=false", "--ftz=false")


_BLOCK = 256
_USABLE, _WRITEABLE = 0x101, 0x400   # flags of NumPy: contiguous and aligned, writeable
_DATA = object.__basicsize__         # where a NumPy array has the address of its data, as compiled extensions read it
_HERE, _EXCHANGE = -100, 2           # of renameat2: names from the working directory, both are kept
_SCALARS = {"i32": ctypes.c_int, "i64": ctypes.c_longlong, "double": ctypes.c_double}
_DTYPES = {
    "u8": np.uint8, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "float": np.float32, "double": np.float64,
}
_REAL_NAMES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}


def on_device(array: object) -> bool:
    """Whether an array lives on a GPU."""
    kind = type(array)   # a launch asks this of each argument, so the common answer comes first
    return kind is not np.ndarray and kind.__module__.split(".")[0] == "cupy"


def namespace(*arrays: object) -> Any:
    """The module (`numpy` or `cupy`) of these arrays; mixing them is refused.

    >>> namespace(np.zeros(3), np.ones(2)).__name__
    'numpy'
    """
    devices = {on_device(array) for array in arrays}
    if devices == {True, False}:
        raise WorkbenchError(
            "all arrays must be on one machine; got NumPy and CuPy arrays: use cupy.asarray(...) or array.get() first"
        )
    return sys.modules["cupy"] if devices == {True} else np


def to_host(array: Array) -> np.ndarray:
    """The array as NumPy: the one place where data leave the GPU."""
    return array.get() if on_device(array) else np.asarray(array)


def numbers(*values: Array) -> list[int]:
    """Several whole numbers or truths, each an array without dimensions: from a GPU in one copy, so the host waits once.

    >>> numbers(np.arange(3).sum(), np.ones(2, bool).any())
    [3, 1]
    """
    if not on_device(values[0]):
        return [int(value) for value in values]
    xp = namespace(*values)
    return [int(value) for value in xp.stack([value.astype(np.int64) for value in values]).get()]


def read_only(array: Array) -> Array:
    """A read-only view, for data that were checked and must not change; CuPy has no such flag.

    >>> read_only(np.zeros(3)).flags.writeable
    False
    """
    if on_device(array):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel in one precision and number of dimensions; call it with the number of work items first.

    The other arguments follow in order, or by name. Arguments that several kernels take travel as named bundles:
    dictionaries before the keywords, of which a kernel takes the entries that it declares.
    """

    source: str
    name: str
    real: str
    dimensions: int
    parameters: tuple[Parameter, ...]

    def __call__(self, items: int, /, *arguments: Any, **named: Any) -> None:
        """Run so many work items on the machine where the array arguments live."""
        bundles = [given for given in arguments if isinstance(given, dict)]
        if (bundles or named) and len(bundles) != len(arguments):
            raise TypeError(f"{self.name} takes its arguments in order, or by name and in bundles; got a mixture")
        given = (items, *(self._in_order((*bundles, named)) if bundles or named else arguments))
        if len(given) != len(self.parameters):
            names = ", ".join(p.name for p in self.parameters)
            raise TypeError(f"{self.name} takes {len(self.parameters)} arguments ({names}); got {len(given)}")
        at_once = self._for_host(given)
        if at_once is not None and self._fits(*given):   # nearly always on a CPU, so that launches take little time
            if items:
                self._host_function(*at_once)
            return
        for number, expected in self._arrays:
            self._check(self.parameters[number], given[number], expected)
        xp = namespace(*(given[number] for number, _ in self._arrays))
        self._check_sizes(given, self._sizes if xp is np else self._sizes_on_device)
        if items == 0:
            return
        if xp is np:
            self._run_on_host(given)
        else:
            self._run_on_device(given)

    def _in_order(self, sources: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The arguments after the number of work items, as declared, from these bundles and the keywords."""
        names = tuple(map(tuple, sources))
        found = self._places.get(names)
        if found is None:
            found = self._places[names] = self._places_in(names)
        return [sources[number][name] for number, name in found]

    @functools.cached_property
    def _places(self) -> dict[tuple[tuple[str, ...], ...], list[tuple[int, str]]]:
        """For bundles with these names: in which of them each argument is."""
        return {}

    def _places_in(self, names: tuple[tuple[str, ...], ...]) -> list[tuple[int, str]]:
        declared = [parameter.name for parameter in self.parameters[1:]]
        if unknown := sorted(set(names[-1]) - set(declared)):
            raise TypeError(f"{self.name} has no parameter {', '.join(unknown)}; it takes {', '.join(declared)}")
        places = {name: [number for number, those in enumerate(names) if name in those] for name in declared}
        if twice := sorted(name for name, several in places.items() if len(several) > 1):
            raise TypeError(f"{self.name}: {', '.join(twice)} must be given once; got it in several bundles")
        if missing := [name for name, several in places.items() if not several]:
            raise TypeError(f"{self.name} also needs {', '.join(missing)}")
        return [(number, name) for name, (number,) in places.items()]

    def _for_host(self, given: tuple[Any, ...]) -> list[Any] | None:
        """The arguments as the host library takes them; None unless all arrays are NumPy's and as declared."""
        arguments = []
        for value, (dtype, flags) in zip(given, self._of_host, strict=True):
            if dtype is None:
                arguments.append(value)
                continue
            if type(value) is not np.ndarray or value.dtype != dtype:
                return None
            if value.flags.num & flags != flags:
                return None
            arguments.append(_address(value))
        return arguments

    @functools.cached_property
    def _of_host(self) -> list[tuple[np.dtype | None, int]]:
        """The type and flags that each array must have; None for scalars."""
        types = dict(self._arrays)
        flags = [_USABLE | (_WRITEABLE if p.writable else 0) for p in self.parameters]
        return [(types.get(number), flags[number]) for number in range(len(self.parameters))]

    @functools.cached_property
    def _fits(self) -> Callable[..., bool]:
        """Whether all arrays have their declared sizes, as a function of all arguments."""
        return sizes_hold(self.parameters, self.dimensions)

    @functools.cached_property
    def _arrays(self) -> list[tuple[int, np.dtype]]:
        """Which parameters are arrays, and of which type."""
        return [(number, np.dtype(self._dtype(p.type))) for number, p in enumerate(self.parameters) if p.pointer]

    @functools.cached_property
    def _sizes(self) -> Expected:
        """The declared sizes, as a function of all arguments."""
        return expected_sizes(self.parameters, self.dimensions)

    @functools.cached_property
    def _sizes_on_device(self) -> Expected:
        """The same without those for which the host would wait for a GPU: None."""
        return expected_sizes(self.parameters, self.dimensions, reading=False)

    def _check(self, parameter: Parameter, value: Array, expected: np.dtype) -> None:
        got = value.dtype if isinstance(value, np.ndarray) or on_device(value) else type(value).__name__
        if not isinstance(got, np.dtype) or got != expected:
            raise TypeError(f"{self.name}: {parameter.name} must be a {expected} array; got {got}")
        flags = value.flags
        if not flags.c_contiguous:
            raise TypeError(f"{self.name}: {parameter.name} must be C-contiguous; got strides {value.strides}")
        if not _aligned(value):
            raise TypeError(f"{self.name}: {parameter.name} must be aligned to {expected.alignment} bytes: copy it")
        if parameter.writable and not getattr(flags, "writeable", True):
            raise TypeError(f"{self.name}: {parameter.name} is written to; got a read-only array")

    def _check_sizes(self, given: tuple[Any, ...], expected_of: Expected) -> None:
        sizes = expected_of(*given)
        for number, _ in self._arrays:
            size, expected, parameter = given[number].size, sizes[number], self.parameters[number]
            if expected is None:
                continue
            if size != expected and not (parameter.at_least and size > expected):
                elements = f"{'at least ' if parameter.at_least else ''}{expected} elements"
                raise TypeError(f"{self.name}: {parameter.name} must have {elements}, SIZE({parameter.size}); got {size}")

    def _dtype(self, type_name: str) -> type:
        return _DTYPES[host_library.REALS[self.real] if type_name == "real" else type_name]

    @functools.cached_property
    def _host_function(self) -> Any:
        function = getattr(_library(), f"{self.name}_{host_library.variant(self.real, self.dimensions)}")
        function.restype = None
        function.argtypes = [ctypes.c_void_p if p.pointer else _SCALARS[p.type] for p in self.parameters]
        return function

    def _run_on_host(self, given: tuple[Any, ...]) -> None:
        self._host_function(*[_address(v) if p.pointer else v for p, v in zip(self.parameters, given, strict=True)])

    def _run_on_device(self, given: tuple[Any, ...]) -> None:
        card = sys.modules["cupy"].cuda.Device()
        for number, _ in self._arrays:
            if given[number].data.device_id != card.id:
                there = given[number].data.device_id
                raise WorkbenchError(
                    f"all arrays must be on the current GPU, number {card.id}; got one on number {there}: "
                    f"with cupy.cuda.Device({there}): ..."
                )
        function = _device_function(self.source, self.name, self.real, self.dimensions, int(card.compute_capability))
        blocks = min(-(-int(given[0]) // _BLOCK), 2**20)
        arguments = (v if p.pointer else self._dtype(p.type)(v) for p, v in zip(self.parameters, given, strict=True))
        function((blocks,), (_BLOCK,), tuple(arguments))


def _address(array: np.ndarray) -> int | None:
    """Where the data begin: as `array.ctypes.data`, in a fifth of the time."""
    address: int | None = ctypes.c_void_p.from_address(id(array) + _DATA).value
    return address


def _aligned(array: Array) -> bool:
    """Whether an array begins where its type may: CuPy has no flag for it."""
    return array.data.ptr % array.dtype.itemsize == 0 if on_device(array) else array.flags.aligned


def kernel(source: str, name: str, real: Any = np.float32, dimensions: int = 3) -> Kernel:
    """The kernel `name` of `kernels/<source>.cu` for one floating-point type and number of dimensions.

    >>> kernel("ordering", "count_runs").parameters[2]
    Parameter(name='key', type='u64', pointer=True, writable=False, size='n')
    """
    return _kernel(source, name, _REAL_NAMES[np.dtype(real)], dimensions)


@functools.cache
def _kernel(source: str, name: str, real: str, dimensions: int) -> Kernel:
    return Kernel(source, name, real, dimensions, declared(source)[name])


@functools.cache
def declared(source: str) -> dict[str, tuple[Parameter, ...]]:
    """The kernels of `kernels/<source>.cu`, with their parameters.

    >>> sorted(declared("packing"))
    ['group_widths', 'pack_groups', 'sums_from_bases', 'unpack_groups']
    """
    return declared_kernels((host_library.kernel_folder() / f"{source}.cu").read_text())


@functools.cache
def constant(file: str, name: str) -> int:
    """A whole number that a file of kernels defines, so that Python and kernels cannot disagree about it.

    >>> constant("moves.cuh", "FINE")
    16
    """
    return _constants(file)[name]


@functools.cache
def _constants(file: str) -> dict[str, int]:
    return declared_constants((host_library.kernel_folder() / file).read_text())


def device_source(source: str) -> str:
    """The text of a kernel file for the GPU compiler, with its headers inlined.

    They are inlined so that the compiler's cache, which hashes this text, sees every change.
    """
    folder = host_library.kernel_folder()

    def header(include: re.Match[str]) -> str:
        return (folder / include[1]).read_text().replace("#pragma once", "")

    return re.sub(r'#include "(\w+\.cuh)"', header, (folder / f"{source}.cu").read_text())


# The CPU.

@functools.cache
def _library() -> ctypes.CDLL:
    # The variable names a library elsewhere: one for tests, built with sanitisers or shuffling work, or, on a machine where
    # this folder cannot be written to, the one that `benchmarks/gpu.py` has built.
    path = Path(os.environ.get("LOSSBENCH_HOST_LIBRARY", host_library.LIBRARY))
    if not path.exists():
        raise WorkbenchError(f"the compiled kernels are missing ({path.name}); run `make build`, or reinstall lossbench")
    library = _load(path)
    library.host_source_hash.restype = ctypes.c_char_p
    if library.host_source_hash().decode() != host_library.source_hash(host_library.kernel_folder()):
        raise WorkbenchError(
            f"the compiled kernels ({path.name}) are older than their sources; run `make build`, or reinstall lossbench"
        )
    os.register_at_fork(after_in_child=_single_thread_after_fork)
    return library


def exchange_names(one: Path, other: Path) -> bool:
    """Let two files or folders exchange their names in one step; False where the system or file system cannot do so."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)   # of Linux
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    if (reason := ctypes.get_errno()) in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(reason, os.strerror(reason), str(one), None, str(other))


def _load(path: Path) -> ctypes.CDLL:
    """The library, with OpenMP set to passive waiting unless the user chose otherwise.

    OpenMP reads the setting when it is loaded. By default threads wait actively, and beside any other program (such as a
    browser that draws the last result) a call can then take several times as long.
    """
    chosen = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:   # made for another C library, another processor, or without a runtime that it needs
        reason = "it is for other processors" if _for_other_processors(path) else str(error)
        raise WorkbenchError(_cannot_load(path, reason)) from error
    finally:
        if chosen is None:
            del os.environ["OMP_WAIT_POLICY"]
    if not hasattr(library, "host_source_hash"):
        raise WorkbenchError(_cannot_load(path, "it is another library"))
    return library


def _for_other_processors(path: Path) -> bool:
    """Whether a library is for another kind of processor than Python: the loader says that no such ELF file exists."""
    try:
        headers = [program.read_bytes()[:20] for program in (path, Path(sys.executable))]
    except OSError:
        return False   # the loader has said why
    there, here = headers
    return there[:4] == here[:4] == b"\x7fELF" and (there[4], there[18:]) != (here[4], here[18:])


def _cannot_load(path: Path, reason: str) -> str:
    return (
        f"the compiled kernels ({path.name}) cannot be loaded on this {platform.system()} {platform.machine()}: {reason}. "
        "Install a wheel for this machine (pip install --force-reinstall lossbench), or compile them here with a C++ "
        "compiler (pip install --force-reinstall --no-binary lossbench lossbench; in a checkout, `make build`)"
    )


def _single_thread_after_fork() -> None:
    """OpenMP's threads do not survive a fork, and waiting for them would hang; one thread gives the same result."""
    set_threads(1)
    _library().host_use_threads_here(0)


def threads() -> int:
    """How many CPU threads a kernel uses; `OMP_NUM_THREADS` sets it before the first use.

    >>> threads() >= 1
    True
    """
    return _library().host_threads()


def has_openmp() -> bool:
    """Whether the kernels were compiled with OpenMP; otherwise each runs on one thread.

    >>> has_openmp() in (True, False)
    True
    """
    return bool(_library().host_openmp())


def set_threads(count: int) -> None:
    """Use this many CPU threads from now on; no result depends on it."""
    _library().host_use_threads(_thread_count(count))


def work_order() -> str:
    """The order in which CPU threads are given the work items of a kernel: "rising", or "shuffled" in a library for tests.

    >>> work_order() in ("rising", "shuffled")
    True
    """
    library = _library()
    library.host_work_order.restype = ctypes.c_char_p
    return str(library.host_work_order().decode())


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Use this many CPU threads for kernels started in a `with` block; other threads of the program are not affected.

    >>> with using_threads(1):
    ...     threads()
    1
    """
    library = _library()
    before = library.host_threads_here()
    library.host_use_threads_here(_thread_count(count))
    try:
        yield
    finally:
        library.host_use_threads_here(before)


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The results of some work on each item, in order: several items at once, on as many CPU threads as a kernel would use.

    Each item's kernels then run on one thread. Only a few items are processed ahead of the caller, so that results do not
    accumulate; items that have not begun are dropped when the caller stops.

    >>> list(side_by_side(lambda n: n * n, range(5)))
    [0, 1, 4, 9, 16]
    """
    workers = min(threads(), len(items))
    if workers < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers, initializer=lambda: _library().host_use_threads_here(1)) as pool:
        ahead = deque(pool.submit(work, item) for item in items[: 2 * workers])
        try:
            for number in range(len(items)):
                result = ahead.popleft().result()
                if number + 2 * workers < len(items):
                    ahead.append(pool.submit(work, items[number + 2 * workers]))
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


def c_function(name: str) -> Callable[..., Any]:
    """A function of the C library, or one that does nothing where there is none of this name."""
    found: Callable[..., Any] = getattr(ctypes.CDLL(None), name, lambda *given: None)
    return found


def _thread_count(count: int) -> int:
    if count < 1:
        raise WorkbenchError(f"the number of threads must be at least 1; got {count}")
    return count


def chunks(count: int, array: Array) -> int:
    """The number of runs into which to cut `count` items that a kernel processes in order, on the machine of `array`.

    A few for each CPU thread, so that uneven runs balance; as many as keep a GPU busy. No result depends on it.
    """
    most = max(count // 8, 1) if on_device(array) else 8 * threads()
    return max(1, min(most, count))


# The GPU.

@functools.cache
def _device_function(source: str, name: str, real: str, dimensions: int, capability: int) -> Any:
    module = _device_module(source, real, dimensions, capability)
    return module.get_function(f"{name}_{host_library.variant(real, dimensions)}")


@functools.cache
def _device_module(source: str, real: str, dimensions: int, capability: int) -> Any:
    """The kernels of a file for cards of this capability, the current one among them: CuPy loads them on each of these."""
    options, cupy = (*DEVICE_FLAGS, *host_library.definitions(real, dimensions)), sys.modules["cupy"]
    return cupy.RawModule(path=str(code_on_disk(cupy, device_source(source), options, capability)))


def gpu() -> ModuleType:
    """CuPy, when it is installed and has a GPU; otherwise an error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            raise WorkbenchError("a GPU needs CuPy, which is not installed: pip install 'lossbench[gpu]'") from None
        raise WorkbenchError(f"CuPy is installed, but cannot be imported: {_first_line(error)}") from None
    try:
        if cupy.is_available():
            return cupy
        reason = f"{cupy.cuda.runtime.getDeviceCount()} cards are visible"
    except Exception as error:   # CuPy has errors of its own for a missing driver, an old one, and hidden cards
        reason = _first_line(error)
    raise WorkbenchError(f"CuPy is installed, but it finds no usable NVIDIA GPU or driver on this machine: {reason}")


def _first_line(error: BaseException) -> str:
    return next((line for line in map(str.strip, str(error).splitlines()) if line.strip("= ")), type(error).__name__)
