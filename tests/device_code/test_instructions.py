"""Single instructions against plain definitions in Python, on values where machines differ."""

import ctypes
import itertools
import math

import numpy as np
import pytest

from device_code.device import FLAGS, compiled, missing
from device_code.instructions import statement
from device_code.kernel import DeviceError, Kernel
from device_code.ptx import PtxError, read, read_instruction
from device_code.translate import translated

WIDTHS = {"s16": np.int16, "u16": np.uint16, "s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64,
          "f32": np.float32, "f64": np.float64, "b32": np.uint32, "b64": np.uint64}


def edges(type):
    """Numbers at which something changes."""
    dtype = WIDTHS[type]
    if np.issubdtype(dtype, np.floating):
        info = np.finfo(dtype)
        found = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e6 + 0.75, float(info.tiny), float(info.smallest_subnormal),
                 float(info.max), math.inf, -math.inf, math.nan, 2.0**31, -(2.0**31), 2.0**63, 1e30, -3.25]
        return np.array(found, dtype)
    info = np.iinfo(dtype)
    width = 8 * info.dtype.itemsize
    found = {info.min, info.max, 0, 1, 2, 3, 7, width - 1, width, 255, 0x1234, info.max // 3, info.max - 1, info.min + 1}
    return np.array([value for value in sorted(found) if info.min <= value <= info.max], dtype)


def wrapped(value, type):
    """A whole number in the width of a type."""
    info = np.iinfo(WIDTHS[type])
    value %= 2 ** (8 * info.dtype.itemsize)
    return value - 2 ** (8 * info.dtype.itemsize) if value > info.max else value


def source(name, code, types, result):
    """PTX that applies an instruction to each element of arrays: `{d}`, `{0}`, `{1}` ... are its registers."""
    register = {"f32": "f", "f64": "fd", "16": "rs", "32": "r", "64": "rd"}

    def kind(type):
        return register.get(type) or register[type[1:]]

    names = [f"%{kind(type)}{number + 10}" for number, type in enumerate(types)]
    target = f"%{kind(result)}9"
    loads, size = [], {type: WIDTHS[type]().itemsize for type in (*types, result)}
    for number, (type, register_of) in enumerate(zip(types, names, strict=True)):
        loads += [f"ld.param.u64 %rd3, [{name}_param_{number + 1}];", f"mad.lo.s64 %rd4, %rd1, {size[type]}, %rd3;",
                  f"ld.global.{type} {register_of}, [%rd4];"]
    return "\n".join([
        f".visible .entry {name}(", ",\n".join(f".param .u64 {name}_param_{n}" for n in range(len(types) + 2)), ")", "{",
        ".reg .pred %p<9>; .reg .b16 %rs<20>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .f64 %fd<20>;",
        "mov.u32 %r1, %tid.x;", "cvt.u64.u32 %rd1, %r1;", f"ld.param.u64 %rd2, [{name}_param_0];",
        "setp.ge.u64 %p1, %rd1, %rd2;", "@%p1 bra $END;", *loads,
        code.format(*names, d=target), f"ld.param.u64 %rd5, [{name}_param_{len(types) + 1}];",
        f"mad.lo.s64 %rd6, %rd1, {size[result]}, %rd5;", f"st.global.{result} [%rd6], {target};", "$END:", "ret;", "}",
    ])


CASES = []   # code, types, result, oracle
for type in ("s16", "s32", "s64", "u16", "u32", "u64"):
    CASES += [
        (f"add.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: a + b),
        (f"sub.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: a - b),
        (f"mul.lo.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: a * b),
        (f"mul.hi.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b, t=type: a * b >> int(t[1:])),
        (f"min.{type} {{d}}, {{0}}, {{1}};", (type, type), type, min),
        (f"max.{type} {{d}}, {{0}}, {{1}};", (type, type), type, max),
        (f"setp.lt.{type} %p2, {{0}}, {{1}}; selp.b{type[1:]} {{d}}, 1, 0, %p2;", (type, type), type, lambda a, b: a < b),
    ]
for type, wide in (("s16", "s32"), ("u16", "u32"), ("s32", "s64"), ("u32", "u64")):
    CASES += [(f"mul.wide.{type} {{d}}, {{0}}, {{1}};", (type, type), wide, lambda a, b: a * b)]
for type in ("s32", "u32", "s64", "u64"):
    CASES += [
        (f"mad.lo.{type} {{d}}, {{0}}, {{1}}, {{2}};", (type,) * 3, type, lambda a, b, c: a * b + c),
        (f"shr.{type} {{d}}, {{0}}, {{1}};", (type, "u32"), type, lambda a, b: a >> min(b, 64)),
        (f"bfe.{type} {{d}}, {{0}}, 3, 9;", (type,), type,
         lambda a, t=type: ((a >> 3 & 511) ^ (256 * (t[0] == "s"))) - 256 * (t[0] == "s")),
    ]
for type in ("b32", "b64"):
    bits = int(type[1:])
    CASES += [
        (f"shl.{type} {{d}}, {{0}}, {{1}};", (type, "u32"), type, lambda a, b, n=bits: a << b if b < n else 0),
        (f"not.{type} {{d}}, {{0}};", (type,), type, lambda a: ~a),
        (f"xor.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: a ^ b),
        (f"popc.{type} {{d}}, {{0}};", (type,), "u32", lambda a: a.bit_count()),
        (f"clz.{type} {{d}}, {{0}};", (type,), "u32", lambda a, n=bits: n - a.bit_length()),
        (f"brev.{type} {{d}}, {{0}};", (type,), type, lambda a, n=bits: int(f"{a:0{n}b}"[::-1], 2)),
        (f"bfi.{type} {{d}}, {{0}}, {{1}}, 5, 7;", (type, type), type, lambda a, b: (b & ~(127 << 5)) | (a & 127) << 5),
    ]
CASES += [
    ("prmt.b32 {d}, {0}, {1}, 0x6a51U;", ("b32", "b32"), "b32", lambda a, b: sum(
        (255 * (byte >> 7) if chosen & 8 else byte) << 8 * place
        for place, chosen in enumerate((1, 5, 10, 6)) for byte in [(b << 32 | a) >> 8 * (chosen & 7) & 255])),
    ("shf.l.wrap.b32 {d}, {0}, {1}, {2};", ("b32", "b32", "u32"), "b32", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("shf.r.clamp.b32 {d}, {0}, {1}, {2};", ("b32", "b32", "u32"), "b32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("lop3.b32 {d}, {0}, {1}, {2}, 0x96;", ("b32",) * 3, "b32", lambda a, b, c: a ^ b ^ c),
    ("lop3.b32 {d}, {0}, {1}, {2}, 0xca;", ("b32",) * 3, "b32", lambda a, b, c: (a & b) | (~a & c)),
    ("mov.b64 {d}, {{{0}, {1}}};", ("b32", "b32"), "b64", lambda a, b: b << 32 | a),
    ("cvt.s64.s32 {d}, {0};", ("s32",), "s64", lambda a: a), ("cvt.u64.u32 {d}, {0};", ("u32",), "u64", lambda a: a),
    ("cvt.u16.u32 {d}, {0};", ("u32",), "u16", lambda a: a),
    ("cvt.s16.s8 {d}, {0};", ("s16",), "s16", lambda a: ((a & 255) ^ 128) - 128),
]


def to_integer(value, type, source_type):
    """The rule of PTX for numbers that are none of the type."""
    info = np.iinfo(WIDTHS[type])
    if math.isnan(value):
        return 1 << (int(type[1:]) - 1) if "64" in type + source_type else 0
    return min(max(math.trunc(value) if math.isfinite(value) else math.copysign(2**70, value), info.min), info.max)


def least(a, b, sign):
    """min and max: NaN loses, and -0 is less than +0."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return sorted((a, b), key=lambda x: (x, math.copysign(1, x)))[0 if sign < 0 else 1]


FLOATING = []
for type in ("f32", "f64"):
    bits, one = f"b{type[1:]}", WIDTHS[type]
    FLOATING += [
        (f"add.rn.{type} {{d}}, {{0}}, {{1}};", (type, type), type, np.add),
        (f"sub.rn.{type} {{d}}, {{0}}, {{1}};", (type, type), type, np.subtract),
        (f"mul.rn.{type} {{d}}, {{0}}, {{1}};", (type, type), type, np.multiply),
        (f"div.rn.{type} {{d}}, {{0}}, {{1}};", (type, type), type, np.divide),
        (f"rcp.rn.{type} {{d}}, {{0}};", (type,), type, lambda a, one=one: one(1) / a),
        (f"sqrt.rn.{type} {{d}}, {{0}};", (type,), type, np.sqrt),
        (f"neg.{type} {{d}}, {{0}};", (type,), type, np.negative), (f"abs.{type} {{d}}, {{0}};", (type,), type, np.abs),
        (f"copysign.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda sign, size: np.copysign(size, sign)),
        (f"min.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: least(a, b, -1)),
        (f"max.{type} {{d}}, {{0}}, {{1}};", (type, type), type, lambda a, b: least(a, b, 1)),
        (f"cvt.rmi.{type}.{type} {{d}}, {{0}};", (type,), type, np.floor),
        (f"cvt.rni.{type}.{type} {{d}}, {{0}};", (type,), type, np.rint),
    ]
    for to in ("s32", "u32", "s64", "u64"):
        FLOATING += [
            (f"cvt.rzi.{to}.{type} {{d}}, {{0}};", (type,), to, lambda a, to=to, t=type: to_integer(float(a), to, t)),
            (f"cvt.rn.{type}.{to} {{d}}, {{0}};", (to,), type, lambda a, one=one: one(a)),
        ]
    for name, true_for_nan, function in (
        ("eq", False, np.equal), ("ne", False, np.not_equal), ("lt", False, np.less), ("le", False, np.less_equal),
        ("gt", False, np.greater), ("ge", False, np.greater_equal), ("equ", True, np.equal), ("neu", True, np.not_equal),
        ("ltu", True, np.less), ("leu", True, np.less_equal), ("gtu", True, np.greater), ("geu", True, np.greater_equal),
    ):
        FLOATING.append((
            f"setp.{name}.{type} %p2, {{0}}, {{1}}; selp.u32 {{d}}, 1, 0, %p2;", (type, type), "u32",
            lambda a, b, nan=true_for_nan, of=function: nan if math.isnan(a) or math.isnan(b) else bool(of(a, b)),
        ))
FLOATING += [
    ("cvt.f64.f32 {d}, {0};", ("f32",), "f64", np.float64), ("cvt.rn.f32.f64 {d}, {0};", ("f64",), "f32", np.float32),
]


NEEDS_COMPILER = pytest.mark.skipif(missing().startswith("there is no C++"), reason=missing())


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """All cases as kernels of one module."""
    text = "\n".join(source(f"case{number}", *each[:3]) for number, each in enumerate(CASES + FLOATING))
    module = read(text)
    path = tmp_path_factory.mktemp("instructions") / "cases.so"
    path.write_bytes(compiled(translated(module), FLAGS))
    library = ctypes.CDLL(str(path))
    return [Kernel(entry, getattr(library, entry.name), text.splitlines()) for entry in module.entries]


def combined(types):
    """Every combination of edges, as one array for each operand."""
    columns = zip(*itertools.product(*map(edges, types)), strict=True)
    return [np.array(column, WIDTHS[type]) for type, column in zip(types, columns, strict=True)]


def results(kernel, given, result):
    """What a kernel makes of each combination, in blocks of 1,024 threads."""
    found = np.zeros(len(given[0]), WIDTHS[result])
    for begin in range(0, len(found), 1024):
        block = [each[begin : begin + 1024] for each in (*given, found)]
        kernel(1, len(block[-1]), [np.uint64(len(block[-1])), *block])
    return found


@NEEDS_COMPILER
@pytest.mark.parametrize("number", range(len(CASES)), ids=[each[0].replace("{{", "{")[:28] for each in CASES])
def test_whole_numbers(kernels, number):
    _, types, result, oracle = CASES[number]
    given = combined(types)
    found = results(kernels[number], given, result)
    expected = [wrapped(int(oracle(*map(int, values))), result) for values in zip(*given, strict=True)]
    assert found.tolist() == expected


@NEEDS_COMPILER
@pytest.mark.parametrize("number", range(len(FLOATING)), ids=[each[0][:28] for each in FLOATING])
def test_floating_point(kernels, number):
    code, types, result, oracle = FLOATING[number]
    given = combined(types)
    found = results(kernels[len(CASES) + number], given, result)
    with np.errstate(all="ignore"):
        expected = [oracle(*values) for values in zip(*given, strict=True)]
    if result[0] in "us":
        assert found.tolist() == [wrapped(int(value), result) for value in expected]
        return
    expected = np.array(expected, WIDTHS[result])
    np.testing.assert_array_equal(np.signbit(found)[found == found], np.signbit(expected)[found == found])
    np.testing.assert_array_equal(found, expected)
    if result == "f32" and code.split(".")[0] not in ("neg", "abs", "copysign"):   # one NaN alone; no other rule is PTX's
        assert set(found[np.isnan(found)].view(np.uint32)) <= {0x7FFFFFFF}


@NEEDS_COMPILER
def test_a_division_by_zero_is_an_error(tmp_path):
    text = source("halves", "div.s32 {d}, {0}, {1};", ("s32", "s32"), "s32")
    module = read(text)
    (tmp_path / "x.so").write_bytes(compiled(translated(module), FLAGS))
    [entry] = module.entries
    kernel = Kernel(entry, ctypes.CDLL(str(tmp_path / "x.so")).halves, text.splitlines())
    found = np.zeros(2, np.int32)
    kernel(1, 32, [np.uint64(2), np.array([7, -7], np.int32), np.array([2, 2], np.int32), found])
    assert found.tolist() == [3, -3]
    with pytest.raises(DeviceError, match=r"halves: a division by zero, in thread 1, line \d+ of its PTX: div\.s32 %r9"):
        kernel(1, 32, [np.uint64(2), np.array([7, 7], np.int32), np.array([2, 0], np.int32), found])
    with pytest.raises(DeviceError, match="takes 4 arguments; got 1"):
        kernel(1, 32, [np.uint64(2)])
    with pytest.raises(DeviceError, match="must have 64 bits; got uint32"):
        kernel(1, 32, [np.uint32(2), found, found, found])


REGISTERS = {"%f1": "f32", "%f2": "f32", "%f3": "f32", "%r1": "b32", "%r2": "b32", "%rd1": "b64", "%p1": "pred"}


@pytest.mark.parametrize("text", [
    "add.rn.ftz.f32 %f1, %f2, %f3", "add.rz.f32 %f1, %f2, %f3", "add.rn.sat.f32 %f1, %f2, %f3", "add.sat.s32 %r1, %r2, 1",
    "div.approx.f32 %f1, %f2, %f3", "sin.approx.f32 %f1, %f2", "bar.sync 0", "ld.shared.u32 %r1, [%rd1]", "call foo",
    "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1", "mov.u32 %r1, %laneid", "mov.u32 %r1, %tid.y", "cvt.rn.f16.f32 %r1, %f1",
    "atom.shared.add.u32 %r1, [%rd1], 1", "ld.acquire.gpu.u32 %r1, [%rd1]", "setp.lt.s32 %p1|%p2, %r1, %r2",
    "mov.u32 %r7, %r1",
])
def test_what_is_not_known_is_an_error_that_names_it(text):
    with pytest.raises(PtxError, match="line 41: .*" + text.split()[0].replace(".", r"\.")):
        statement(read_instruction(text, 41), REGISTERS, set())


@pytest.mark.parametrize(("text", "message"), [
    (".func (.param .b32 x) foo()\n{ ret; }", "of the module that is not known: .func"),
    (".extern .shared .align 4 .b8 pool[];", "not known: .extern .shared"),
    (".visible .entry a(.param .u64 p)\n{ ret;", "line 2: a body that does not end"),
    (".visible .entry a(.param .u64 p)\n{ .shared .align 4 .b8 pool[16]; ret; }", "a directive that is not known: .shared"),
])
def test_modules_that_are_not_known(text, message):
    with pytest.raises(PtxError, match=message):
        translated(read(text))
