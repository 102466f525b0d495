"""A stand-in for CuPy, so that the device path runs, and is held to CuPy's rules, where there is no GPU.

Its arrays hide host memory behind the manners of a GPU array: they never turn into NumPy arrays unless asked by
`.get()`, never mix with NumPy arrays, and reductions give arrays without dimensions instead of scalars. Its compiler
takes the device source and options; what `RawModule` makes of it checks every launch as strictly as a GPU would punish it,
and then runs the CPU's build of the same kernel. It knows only functions that CuPy has; a missing one is added to FUNCTIONS
after a look there, and so are their options. What CuPy 13, 14.0 and 14.2 do not all do is refused; what a GPU leaves open
(new memory, the last bit of a power, the order of a sum, values written to one place) is not what a CPU happens to do.
"""

import ast
import ctypes
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import executed
from workbench import backend, host_library
from workbench.declarations import Expected, Parameter, declared_kernels, expected_sizes

FUNCTIONS = """
    abs all any append arange argmax argmin argsort array_equal bincount broadcast_to ceil clip concatenate cumsum diff
    empty empty_like equal exp flatnonzero floor full full_like isfinite isinf isnan log log2 max maximum mean median min
    minimum nextafter nonzero ones ones_like prod ravel ravel_multi_index repeat rint roll round searchsorted size sort
    sqrt square stack std sum take unique unravel_index var where zeros zeros_like
""".split()

METHODS = """
    all any argmax argmin argsort astype clip copy cumsum dot fill max mean min nonzero prod ravel repeat reshape round
    searchsorted sort squeeze std sum take transpose var view
""".split()

TYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 dtype".split()

# The keywords that CuPy's functions and methods take; other functions take none, universal ones OF_UFUNCS.
KEYWORDS = {
    name: set(keywords.split())
    for names, keywords in {
        "all any max min": "axis out keepdims", "mean prod sum": "axis dtype out keepdims",
        "std var": "axis dtype out ddof keepdims", "argmax argmin": "axis dtype out keepdims", "cumsum": "axis dtype out",
        "median": "axis out keepdims", "sort argsort": "axis kind", "take": "axis out", "repeat append squeeze": "axis",
        "astype": "order casting copy", "copy ravel reshape unravel_index": "order",
        "view arange ascontiguousarray asfortranarray": "dtype", "searchsorted": "side sorter", "round": "decimals out",
        "diff": "n axis prepend append", "clip": "out", "unique": "return_index return_inverse return_counts axis",
        "concatenate stack": "axis out dtype casting", "roll": "axis", "bincount": "weights minlength",
        "array_equal": "equal_nan", "ravel_multi_index": "mode order", "empty full ones zeros": "dtype order",
        "empty_like full_like ones_like zeros_like": "dtype order shape",
    }.items()
    for name in names.split()
}
OF_UFUNCS = {"out", "dtype", "casting"}
INEXACT = {"power", "exp", "log", "log2"}   # in floating point: off by up to a unit in the last place on a GPU

VIEWS = set("empty empty_like reshape ravel view transpose squeeze broadcast_to size".split())   # no work on a GPU
SYNCHRONISING = {"flatnonzero": 1, "nonzero": 1, "unique": 1, "bincount": 2}   # how often the host waits for their result

copied_to_host: list[int] = []   # how many values each `.get()` took
counted: Counter[str] = Counter()   # what a GPU would do, by the names that `docs/gpu.md` gives it
moved: Counter[str] = Counter()     # bytes that each of CuPy's operations reads and writes
SORT_PASSES = 17   # over the words that CuPy sorts: eight digits of eight bits, read and written, and one count
SECTOR = 32        # bytes that a GPU reads for any value at a random place


def move(name: str, *arrays: Any) -> None:
    """The bytes of one operation's arguments and results."""
    if name not in VIEWS:
        size = sum(array.nbytes for array in arrays if isinstance(array, ndarray))
        moved[name] += SORT_PASSES * size if name in ("sort", "argsort") else size


def count(name: str) -> None:
    """One of CuPy's own operations."""
    if name not in VIEWS:
        counted["array operations"] += 1
    if name in SYNCHRONISING:
        counted["synchronisations"] += SYNCHRONISING[name]


def require_known(name: str, options: dict[str, Any], known: set[str]) -> None:
    """CuPy lacks some of NumPy's keywords: `initial` and `where`, for example."""
    if unknown := set(options) - known:
        raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")


def as_on_a_gpu(name: str, result: Any) -> Any:
    """A result whose last bit may differ there."""
    if name in INEXACT and result.dtype.kind == "f":
        return np.nextafter(result, result.dtype.type(np.inf))
    return result


def count_copy_to_host(size: int, nbytes: int) -> None:
    copied_to_host.append(size)
    counted["synchronisations"] += 1
    counted["bytes to the host"] += nbytes


class Flags:
    """What CuPy tells about an array's memory; there is no `writeable`, as everything is."""

    def __init__(self, held: np.ndarray) -> None:
        self.c_contiguous = held.flags.c_contiguous
        self.f_contiguous = held.flags.f_contiguous
        self.owndata = held.flags.owndata


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):   # noqa: N801 - CuPy's name
    __module__ = "cupy"

    def __init__(self, held: np.ndarray) -> None:
        self._held = held

    dtype = property(lambda self: self._held.dtype)
    shape = property(lambda self: self._held.shape)
    ndim = property(lambda self: self._held.ndim)
    size = property(lambda self: self._held.size)
    nbytes = property(lambda self: self._held.nbytes)
    itemsize = property(lambda self: self._held.itemsize)
    strides = property(lambda self: self._held.strides)
    T = property(lambda self: ndarray(self._held.T))
    flags = property(lambda self: Flags(self._held))
    data = property(lambda self: SimpleNamespace(ptr=self._held.ctypes.data, device_id=0))

    def get(self) -> np.ndarray:
        count_copy_to_host(self.size, self.nbytes)
        return self._held.copy()

    def tolist(self) -> list[Any]:
        count_copy_to_host(self.size, self.nbytes)
        return self._held.tolist()

    def item(self) -> Any:
        count_copy_to_host(1, self.itemsize)
        return self._held.item()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()` to make one explicitly.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        require_known(ufunc.__name__, options, OF_UFUNCS)
        if method != "__call__" or any(isinstance(value, list | tuple) for value in inputs):
            raise TypeError(f"CuPy's {ufunc.__name__} takes arrays and scalars, and has no {method} with others")
        if out is not None:
            options["out"] = held(out)
        count(ufunc.__name__)
        result = wrapped(as_on_a_gpu(ufunc.__name__, ufunc(*map(held, inputs), **options)))
        move(ufunc.__name__, *inputs, result)
        return out[0] if out is not None else result

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return getattr(module(), function.__name__)(*args, **options)

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Any:
        return map(wrapped, self._held)

    def __getitem__(self, key: Any) -> Any:
        count_indexing(key)
        found = wrapped(self._held[held(key)])
        if any(isinstance(part, ndarray) for part in (key if isinstance(key, tuple) else (key,))):
            row = max(SECTOR, found.nbytes // max(len(found), 1)) if found.ndim else SECTOR
            moved["indexing"] += found.nbytes + (len(found) if found.ndim else 1) * row + getattr(key, "nbytes", 0)
        return found

    def __setitem__(self, key: Any, value: Any) -> None:
        counted["array operations"] += 1
        counted["synchronisations"] += has_mask(key)
        moved["setting"] += 2 * self._held[held(key)].nbytes
        self._held[held(key)] = held(value)
        now, given = self._held[held(key)], np.asarray(held(value)).astype(self.dtype)
        assert ((now == given) | (given != given)).all(), "several values for one place: a GPU keeps any of them"

    def __bool__(self) -> bool:
        count_scalar(self)
        return bool(self._held)

    def __int__(self) -> int:
        count_scalar(self)
        return int(self._held)

    def __float__(self) -> float:
        count_scalar(self)
        return float(self._held)

    def __index__(self) -> int:
        count_scalar(self)
        return self._held.__index__()

    def __repr__(self) -> str:
        return repr(self._held)


def count_scalar(array: ndarray) -> None:
    """A number on the host, which has to wait for it; those are too small to be listed in `copied_to_host`."""
    counted["synchronisations"] += 1
    counted["bytes to the host"] += array.itemsize


def count_indexing(key: Any) -> None:
    """A slice is a view; an array of indices starts a kernel; a mask makes the host wait for the size of the result."""
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, ndarray):
            counted["array operations"] += 1
    counted["synchronisations"] += has_mask(key)


def has_mask(key: Any) -> bool:
    """Whether the host waits for the number of values that a mask chooses, to read or to write them."""
    return any(isinstance(part, ndarray) and part.dtype == bool for part in (key if isinstance(key, tuple) else (key,)))


def held(value: Any) -> Any:
    """What NumPy shall work on; a NumPy array is refused, as it lives on another machine."""
    if isinstance(value, ndarray):
        return value._held
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, list | tuple):
        return type(value)(map(held, value))
    return value


def wrapped(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(wrapped, value))
    return ndarray(np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value


def function(called: Any) -> Any:
    name, of = called.__name__, getattr(called, "__self__", None)   # the array of a method
    known = OF_UFUNCS if isinstance(called, np.ufunc) else KEYWORDS.get(name, set())

    def counting(*args: Any, **options: Any) -> Any:
        require_known(name, options, known)
        require_possible(name, of, args)
        count(name)
        result = wrapped(as_on_a_gpu(name, called(*map(held, args), **{k: held(v) for k, v in options.items()})))
        move(called.__name__, *args, result, ndarray(of) if isinstance(of, np.ndarray) else None)
        return result

    return counting


def require_possible(name: str, of: Any, args: tuple[Any, ...]) -> None:
    """What CuPy, or one of its versions, refuses or does otherwise than NumPy."""
    if name == "repeat" and isinstance(args[-1], ndarray):
        raise ValueError("'repeats' must be a number before CuPy 14.1; later the host waits for the sum")
    if name == "bincount" and not args[0].size:
        raise ValueError("zero-size array to reduction operation cupy_max which has no identity")
    if name == "sort" and isinstance(of, np.ndarray) and not of.flags.c_contiguous:
        raise NotImplementedError("Sorting non-contiguous array is not supported.")
    if name == "searchsorted" and len({array.dtype.kind for array in (of, *args) if hasattr(array, "dtype")}) > 1:
        raise TypeError("the kernel of searchsorted compares as C does: give both arrays one type")


def method(name: str) -> Any:
    return lambda self, *args, **options: function(getattr(self._held, name))(*args, **options)


for _name in METHODS:
    setattr(ndarray, _name, method(_name))


def backwards(name: str) -> Any:
    """`sum` or `mean`; along an axis, floating-point numbers are added in another order than NumPy has."""
    def added(values: Any, axis: Any = None, **options: Any) -> Any:
        require_known(name, options, KEYWORDS[name])
        count(name)
        array = held(values)
        array = np.flip(array, axis) if axis is not None and array.dtype.kind == "f" else array
        return wrapped(getattr(array, name)(axis=axis, **options))

    return added


for _name in ("sum", "mean"):
    setattr(ndarray, _name, backwards(_name))


def asarray(values: Any, dtype: Any = None) -> ndarray:
    """An array on the "GPU": other memory than the host's."""
    if isinstance(values, ndarray):
        return values if dtype in (None, values.dtype) else values.astype(dtype)
    moved = np.array(values, dtype)
    counted["copies to the GPU"] += 1
    counted["bytes to the GPU"] += moved.nbytes
    return ndarray(moved)


def ascontiguousarray(values: Any, dtype: Any = None) -> ndarray:
    return ndarray(np.ascontiguousarray(asarray(values)._held, dtype))


def asfortranarray(values: Any, dtype: Any = None) -> ndarray:
    return ndarray(np.asfortranarray(asarray(values)._held, dtype))


def array(values: Any, dtype: Any = None) -> ndarray:
    """A copy."""
    return asarray(values, dtype).copy() if isinstance(values, ndarray) else asarray(values, dtype)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    return ndarray(np.zeros(shape, dtype))


def unwritten(made: np.ndarray) -> ndarray:
    """New memory has what was there before: here a number that hurts."""
    made.reshape(-1).view(np.uint8).fill(executed.UNWRITTEN)
    return ndarray(made)


class NVRTCError(Exception):
    """The compiler's."""


class Program:
    """A source text, and what the compiler makes of it: here the text again, with its options."""

    def __init__(self, code: str, name: str, headers: tuple[str, ...], included: tuple[str, ...]) -> None:
        assert type(code) is type(name) is str
        assert headers == included == ()
        assert '#include "' not in code, "NVRTC finds no files"
        self.code = code

    def compile(self, options: tuple[str, ...]) -> None:
        assert type(options) is tuple
        assert all(type(option) is str for option in options)
        assert options[: len(backend.DEVICE_FLAGS)] == backend.DEVICE_FLAGS
        assert options[-1] == f"-arch=sm_{CAPABILITY}"
        self.made = repr((self.code, options)).encode()


CAPABILITY = "70"


def compiler() -> SimpleNamespace:
    """CuPy's interface to NVRTC; the version is none that there is."""
    return SimpleNamespace(
        createProgram=Program, compileProgram=Program.compile, getCUBIN=lambda program: program.made,
        getProgramLog=lambda _: "", destroyProgram=lambda _: None, getSupportedArchs=lambda: (70, 90),
        getVersion=lambda: (0, 0), NVRTCError=NVRTCError,
    )


class RawModule:
    """The code of one variant, from a file: CuPy would add `-ftz=true` to the options of a text, see device_code.py."""

    def __init__(self, *, path: str) -> None:
        self.code, self.options = ast.literal_eval(Path(path).read_text())
        self.defined = dict(option.removeprefix("-D").split("=") for option in self.options if option.startswith("-D"))
        assert set(self.defined) == {"REAL", "DIMENSIONS", "VARIANT"}

    def get_function(self, symbol: str) -> "Function":
        name = symbol.removesuffix("_" + self.defined["VARIANT"])
        assert name != symbol, f"{symbol} is not of the variant that was compiled: {self.defined['VARIANT']}"
        declared = declared_kernels(self.code)[name]
        sizes = expected_sizes(declared, int(self.defined["DIMENSIONS"]))
        run = run_by(self.code, self.options, symbol)
        return Function(symbol, [kind(p, self.defined["REAL"]) for p in declared], declared, sizes, run)


def kind(parameter: Parameter, real: str) -> tuple[np.dtype, bool]:
    """The type of a parameter, and whether it is a pointer."""
    types = {"u8": "u1", "u16": "u2", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8", "float": "f4", "double": "f8"}
    return np.dtype(types[real if parameter.type == "real" else parameter.type]), parameter.pointer


Run = Callable[[int, int, list[Any]], None]   # a kernel: blocks, threads in each, arrays and scalars of NumPy


def host_build(code: str, options: tuple[str, ...], symbol: str) -> Run:
    """The CPU's build of the kernel that this text has."""
    run = getattr(ctypes.CDLL(str(host_library.LIBRARY)), symbol)

    def launched(grid: int, block: int, given: list[Any]) -> None:
        run(*(
            ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else C_TYPES[each.dtype](each.item())
            for each in given
        ))

    return launched


run_by: Callable[[str, tuple[str, ...], str], Run] = executed.kernel if executed.CHOSEN else host_build

_declared = backend.constant


def constant(file: str, name: str) -> int:
    """`backend.constant` as the kernels need it that run here: the CPU's build has the CPU's sizes of blocks."""
    return _declared(file, name if run_by is executed.kernel else name.replace("_ON_GPU", "_ON_CPU"))


C_TYPES = {np.dtype("i4"): ctypes.c_int, np.dtype("i8"): ctypes.c_longlong, np.dtype("f8"): ctypes.c_double}


class Function:
    """A kernel; a launch that would be an error or corrupt memory on a GPU fails."""

    launches: list[str] = []   # noqa: RUF012 - one list for all, which tests look at

    def __init__(
        self, symbol: str, kinds: list[tuple[np.dtype, bool]], declared: tuple[Parameter, ...], sizes: Expected, run: Run
    ) -> None:
        self.symbol, self.kinds, self.declared, self.sizes, self.run = symbol, kinds, declared, sizes, run

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        assert all(type(size) is int for size in (*grid, *block))
        assert 1 <= grid[0] < 2**31
        assert 1 <= block[0] <= 1024
        assert block[0] % 32 == 0
        assert len(grid) == len(block) == 1
        assert len(args) == len(self.kinds)
        for parameter, value, size in zip(self.declared, args, self.sizes(*map(held, args)), strict=True):
            if size is not None:   # the launcher does not check sizes that depend on a number on the card
                large_enough = value.size >= size if parameter.at_least else value.size == size
                assert large_enough, f"{self.symbol}: {parameter.name} has {value.size} elements, SIZE({parameter.size})"
        self.launches.append(self.symbol)
        counted["launches"] += 1
        given = [self.checked(value, *kind) for value, kind in zip(args, self.kinds, strict=True)]
        self.run(int(grid[0]), int(block[0]), given)

    def checked(self, value: Any, dtype: np.dtype, pointer: bool) -> Any:
        if pointer:
            assert type(value) is ndarray, f"{self.symbol}: got {type(value)} where a GPU array must be"
            assert value.dtype == dtype
            assert value.flags.c_contiguous
            return value._held
        assert type(value) is dtype.type, f"{self.symbol}: a scalar's width is its type's; got {type(value)} for {dtype}"
        return value


def module() -> ModuleType:
    """What `sys.modules["cupy"]` is replaced by."""
    fake = ModuleType("cupy")
    vars(fake).update({name: function(getattr(np, name)) for name in FUNCTIONS})
    vars(fake).update({name: getattr(np, name) for name in [*TYPES, "inf", "nan", "newaxis", "pi"]})
    vars(fake).update(sum=backwards("sum"), mean=backwards("mean"))
    vars(fake).update(
        ndarray=ndarray, RawModule=RawModule, asarray=asarray, array=array, ascontiguousarray=ascontiguousarray,
        asfortranarray=asfortranarray,
        asnumpy=lambda array: array.get(), is_available=lambda: True,
        empty=lambda shape, dtype=float: unwritten(np.empty(shape, dtype)),
        empty_like=lambda like, dtype=None: unwritten(np.empty_like(held(like), dtype)),
        get_default_memory_pool=lambda: SimpleNamespace(malloc=lambda size: None),
        cuda=SimpleNamespace(
            nvrtc=compiler(), Device=lambda: SimpleNamespace(id=0, compute_capability=CAPABILITY),
            runtime=SimpleNamespace(getDeviceCount=lambda: 1), set_allocator=lambda allocate: None,
        ),
    )
    return fake
