"""What each PTX instruction does, as a statement of C++; written from NVIDIA's description, PTX ISA 9.0.

A function here translates all forms of one opcode. It takes the modifiers that it knows one by one, so that a form with
another modifier (saturation, a rounding mode, flushing of subnormal numbers) is an error, never something similar.
`machine.hpp` has the functions and macros of which the statements consist.
"""

from __future__ import annotations

from collections.abc import Callable

from device_code.ptx import Instruction, Variable

BITS = ("b8", "b16", "b32", "b64")
SIGNED = ("s8", "s16", "s32", "s64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("f32", "f64")
WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64", "s64": "s128", "u64": "u128"}
SPECIAL = {f"%{name}": name for name in ("tid.x", "ntid.x", "ctaid.x", "nctaid.x")}   # the grid has one dimension
COMPARED = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}
UNORDERED = {"neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}   # true for NaN: the opposite, denied
JOINED = {"and": "&&", "or": "||", "xor": "!="}
ORDERS = {"": "WEAK", "volatile": "STRONG", "relaxed": "STRONG"}
ROUNDED = {"rni": "nearbyint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


class Form:
    """An instruction whose modifiers are taken one by one."""

    def __init__(self, instruction: Instruction, registers: dict[str, str], symbols: set[str]) -> None:
        self.instruction, self.registers, self.symbols = instruction, registers, symbols
        self.left = list(instruction.modifiers)
        self.operands = instruction.operands

    def take(self, *known: str, default: str | None = None) -> str:
        """The next modifier, which must be one of these; the default if it is none of them."""
        if self.left and self.left[0] in known:
            return self.left.pop(0)
        if default is None:
            raise self.instruction.unknown(f"one of {', '.join(known)} must follow")
        return default

    def value(self, operand: str, type: str) -> str:
        """An operand as a value of this type."""
        if operand.startswith("!"):
            return f"!{self.value(operand[1:], type)}"
        if operand in SPECIAL:
            return f"as<{type}>(thread.{SPECIAL[operand].replace('.', '_')})"
        if operand in self.registers:
            return f"as<{type}>({named(operand)})"
        if operand in self.symbols:
            return f"as<{type}>((u64){named(operand)})"
        if operand[:2] in ("0f", "0d") and len(operand) in (10, 18):
            return f"as<{type}>(bits<{'f32' if operand[1] == 'f' else 'f64'}>(0x{operand[2:]}ull))"
        try:
            return f"({type})({int(operand.removesuffix('U'), 0) % 2**64:#x}ull)"
        except ValueError:
            raise self.instruction.unknown(f"an operand that is not known, {operand}") from None

    def set(self, operand: str, value: str, type: str) -> str:
        """Give a register a value of this type; `_` takes none."""
        if operand == "_":
            return f"(void)({value});"
        if operand not in self.registers:
            raise self.instruction.unknown(f"a register must be there, got {operand}")
        return f"put({named(operand)}, ({type})({value}));"

    def address(self, operand: str) -> str:
        """The address in brackets: a register or symbol, and an offset."""
        base, _, offset = operand.strip("[]").partition("+")
        shift = f" + (u64)({int(offset, 0)}ll)" if offset else ""
        return self.value(base, "u64") + shift

    def parts(self, operand: str, count: int) -> list[str]:
        """The registers of a vector."""
        found = operand.strip("{}").split(",")
        if len(found) != count:
            raise self.instruction.unknown(f"a vector of {count} must be there, got {operand}")
        return found

    def number_of_operands(self, *known: int) -> None:
        """Refuse another number of operands."""
        if len(self.operands) not in known:
            raise self.instruction.unknown(f"{' or '.join(map(str, known))} operands must be there")

    def begins(self, modifier: str) -> bool:
        """Whether this modifier comes next, which is taken then."""
        return bool(self.left) and self.left[0] == modifier and self.left.pop(0) == modifier

    def overflow(self, *sources: str) -> str:
        """Whether a source holds a sum or product of 32 bits that has overflowed as a signed number, for `WIDENED`."""
        flags = [flag(source) for source in sources if self.registers.get(source) == "b32"]
        return " | ".join(flags) or "false"

    def flagged(self, code: str, over: str) -> str:
        """Code that sets the target, and whether what it holds then has overflowed."""
        return f"{{ FLAG(const bool over = {over};) {code} FLAG({flag(self.operands[0])} = over); }}"


def named(operand: str) -> str:
    """A register or symbol as a name of C++."""
    return f"{'v' if operand.startswith('%') else 'at'}_{operand.lstrip('%').replace('$', '_')}"


def flag(register: str) -> str:
    """The variable that says whether a 32-bit register holds what overflowed."""
    return f"{named(register)}_over"


def statement(instruction: Instruction, registers: dict[str, str], symbols: set[str]) -> str:
    """The C++ statement for an instruction; an error names one that is not known.

    >>> from device_code.ptx import read_instruction
    >>> statement(read_instruction("add.s64 %rd1, %rd2, 8", 1), {"%rd1": "b64", "%rd2": "b64"}, set())
    'put(v_rd1, (s64)(as<u64>(v_rd2) + (u64)(0x8ull)));'
    """
    if instruction.opcode not in OPCODES:
        raise instruction.unknown("an instruction that is not known")
    form = Form(instruction, registers, symbols)
    code = OPCODES[instruction.opcode](form)
    if form.left:
        raise instruction.unknown(f"a modifier that is not known, .{form.left[0]}")
    target = form.operands[0] if form.operands else ""
    if registers.get(target) == "b32" and flag(target) not in code:
        code += f" FLAG({flag(target)} = false);"
    if instruction.guard:
        return f"if ({form.value(instruction.guard, 'pred')}) {{ {code} }}"
    return code


# Arithmetic.

def add_or_subtract(form: Form) -> str:
    sign = {"add": "+", "sub": "-"}[form.instruction.opcode]
    form.number_of_operands(3)
    target, a, b = form.operands
    if form.begins("rn"):
        type = form.take(*FLOATS)
        return form.set(target, f"number({form.value(a, type)} {sign} {form.value(b, type)})", type)
    type = form.take("s16", "u16", "s32", "u32", "s64", "u64")
    unsigned = "u" + type[1:]
    code = form.set(target, f"{form.value(a, unsigned)} {sign} {form.value(b, unsigned)}", type)
    if type == "s32":
        check = f"over_{form.instruction.opcode}({form.value(a, 's32')}, {form.value(b, 's32')})"
        return form.flagged(code, f"{check} | {form.overflow(a, b)}")
    return code


def multiply(form: Form) -> str:
    form.number_of_operands(3)
    target, a, b = form.operands
    kind = form.take("rn", "lo", "hi", "wide")
    if kind == "rn":
        type = form.take(*FLOATS)
        return form.set(target, f"number({form.value(a, type)} * {form.value(b, type)})", type)
    type = form.take("s16", "u16", "s32", "u32", *(() if kind == "wide" else ("s64", "u64")))
    wide = WIDER[type]
    product = f"({wide}){form.value(a, type)} * ({wide}){form.value(b, type)}"
    if kind == "wide":
        checked = f"WIDENED({form.overflow(a, b)}); " if type == "s32" else ""
        return checked + form.set(target, product, wide)
    if kind == "hi":
        return form.set(target, f"({product}) >> {type[1:]}", type)
    unsigned = "u" + type[1:]
    code = form.set(target, f"(u64){form.value(a, unsigned)} * {form.value(b, unsigned)}", unsigned)
    if type == "s32":
        check = f"over_mul({form.value(a, 's32')}, {form.value(b, 's32')})"
        return form.flagged(code, f"{check} | {form.overflow(a, b)}")
    return code


def multiply_add(form: Form) -> str:
    form.number_of_operands(4)
    target, a, b, c = form.operands
    kind = form.take("lo", "wide")
    type = form.take("s32", "u32", *(("s64", "u64") if kind == "lo" else ()))
    if kind == "wide":
        wide = WIDER[type]
        checked = f"WIDENED({form.overflow(a, b)}); " if type == "s32" else ""
        product = f"({wide}){form.value(a, type)} * ({wide}){form.value(b, type)}"
        return checked + form.set(target, f"(u64)({product}) + {form.value(c, 'u64')}", wide)
    unsigned = "u" + type[1:]
    code = form.set(
        target, f"{form.value(a, unsigned)} * {form.value(b, unsigned)} + {form.value(c, unsigned)}", unsigned
    )
    if type == "s32":
        check = f"over_mad({form.value(a, 's32')}, {form.value(b, 's32')}, {form.value(c, 's32')})"
        return form.flagged(code, f"{check} | {form.overflow(a, b, c)}")
    return code


def fused(form: Form) -> str:
    form.number_of_operands(4)
    form.take("rn")
    type = form.take(*FLOATS)
    target, *factors = form.operands
    return form.set(target, f"number(std::fma({', '.join(form.value(each, type) for each in factors)}))", type)


def divide(form: Form) -> str:
    form.number_of_operands(3)
    target, a, b = form.operands
    if form.begins("rn"):
        type = form.take(*FLOATS)
        return form.set(target, f"number({form.value(a, type)} / {form.value(b, type)})", type)
    type = form.take("s16", "u16", "s32", "u32", "s64", "u64")
    return form.set(target, f"QUOTIENT({form.value(a, type)}, {form.value(b, type)})", type)


def remainder(form: Form) -> str:
    form.number_of_operands(3)
    type = form.take("s16", "u16", "s32", "u32", "s64", "u64")
    target, a, b = form.operands
    return form.set(target, f"REMAINDER({form.value(a, type)}, {form.value(b, type)})", type)


def reciprocal_or_root(form: Form) -> str:
    form.number_of_operands(2)
    form.take("rn")
    type = form.take(*FLOATS)
    target, a = form.operands
    pattern = {"rcp": "1 / {}", "sqrt": "std::sqrt({})"}[form.instruction.opcode]
    return form.set(target, f"number({pattern.format(form.value(a, type))})", type)


def negate(form: Form) -> str:
    form.number_of_operands(2)
    type = form.take("s16", "s32", "s64", *FLOATS)
    target, a = form.operands
    if type in FLOATS:
        return form.set(target, f"-{form.value(a, type)}", type)
    return form.set(target, f"(u64)0 - {form.value(a, 'u' + type[1:])}", "u" + type[1:])


def magnitude(form: Form) -> str:
    form.number_of_operands(2)
    type = form.take("s16", "s32", "s64", *FLOATS)
    target, a = form.operands
    return form.set(target, f"magnitude({form.value(a, type)})", type)


def with_sign(form: Form) -> str:
    form.number_of_operands(3)
    type = form.take(*FLOATS)
    target, sign, size = form.operands
    return form.set(target, f"std::copysign({form.value(size, type)}, {form.value(sign, type)})", type)


def smaller_or_larger(form: Form) -> str:
    form.number_of_operands(3)
    type = form.take("s16", "u16", "s32", "u32", "s64", "u64", *FLOATS)
    target, a, b = form.operands
    name = {"min": "smaller", "max": "larger"}[form.instruction.opcode]
    code = form.set(target, f"{name}({form.value(a, type)}, {form.value(b, type)})", type)
    if type == "s32":
        return form.flagged(code, form.overflow(a, b))
    return code


# Bits.

def logic(form: Form) -> str:
    form.number_of_operands(3)
    type = form.take("pred", "b16", "b32", "b64")
    target, a, b = form.operands
    sign = {"and": "&", "or": "|", "xor": "^"}[form.instruction.opcode]
    code = form.set(target, f"{form.value(a, type)} {sign} {form.value(b, type)}", type)
    if type == "b32" and sign == "|":   # compilers write `4 * i + 1` as a shift and this
        return form.flagged(code, form.overflow(a, b))
    return code


def complement(form: Form) -> str:
    form.number_of_operands(2)
    type = form.take("pred", "b16", "b32", "b64")
    target, a = form.operands
    return form.set(target, f"{'!' if type == 'pred' else '~'}{form.value(a, type)}", type)


def shift(form: Form) -> str:
    form.number_of_operands(3)
    target, a, b = form.operands
    left = form.instruction.opcode == "shl"
    type = form.take(*(("b16", "b32", "b64") if left else ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")))
    name = "shifted_left" if left else "shifted_right"
    code = form.set(target, f"{name}({form.value(a, type)}, {form.value(b, 'u32')})", type)
    if type == "b32" and left:
        check = f"over_shift({form.value(a, 's32')}, {form.value(b, 'u32')})"
        return form.flagged(code, f"{check} | {form.overflow(a)}")
    return code


def count(form: Form) -> str:
    form.number_of_operands(2)
    type = form.take("b32", "b64")
    target, a = form.operands
    name = {"popc": "count_ones", "clz": "leading_zeros", "brev": "reversed"}[form.instruction.opcode]
    return form.set(target, f"{name}({form.value(a, type)})", type if form.instruction.opcode == "brev" else "u32")


def permute(form: Form) -> str:
    form.number_of_operands(4)
    form.take("b32")
    target, a, b, selection = form.operands
    values = ", ".join(form.value(each, "u32") for each in (a, b, selection))
    return form.set(target, f"permuted({values})", "u32")


def insert_bits(form: Form) -> str:
    form.number_of_operands(5)
    type = form.take("b32", "b64")
    target, field, into, place, length = form.operands
    values = [form.value(field, type), form.value(into, type), form.value(place, "u32"), form.value(length, "u32")]
    return form.set(target, f"inserted({', '.join(values)})", type)


def extract_bits(form: Form) -> str:
    form.number_of_operands(4)
    type = form.take("u32", "u64", "s32", "s64")
    target, a, place, length = form.operands
    values = [form.value(a, type), form.value(place, "u32"), form.value(length, "u32")]
    return form.set(target, f"extracted({', '.join(values)})", type)


def funnel_shift(form: Form) -> str:
    form.number_of_operands(4)
    side, mode = form.take("l", "r"), form.take("wrap", "clamp")
    form.take("b32")
    target, low, high, by = form.operands
    amount = f"{form.value(by, 'u32')} & 31" if mode == "wrap" else f"smaller({form.value(by, 'u32')}, (u32)32)"
    both = f"((u64){form.value(high, 'u32')} << 32 | {form.value(low, 'u32')})"
    return form.set(target, f"{both} << ({amount}) >> 32" if side == "l" else f"{both} >> ({amount})", "u32")


def any_logic(form: Form) -> str:
    form.number_of_operands(5)
    form.take("b32")
    target, a, b, c, table = form.operands
    return form.set(target, f"by_table({', '.join(form.value(each, 'u32') for each in (a, b, c, table))})", "u32")


# Comparing, moving and converting.

def compare(form: Form) -> str:
    comparison = form.take(*COMPARED, *UNORDERED, "equ", "num", "nan")
    joined = form.take(*JOINED, default="")
    type = form.take(*(each for each in BITS + INTEGERS if each[1:] != "8"), *FLOATS)
    form.number_of_operands(4 if joined else 3)
    target, a, b = (operand for operand in form.operands[:3])
    x, y = form.value(a, type), form.value(b, type)
    if comparison in ("num", "nan"):
        found = f"({x} == {x} && {y} == {y})" if comparison == "num" else f"({x} != {x} || {y} != {y})"
    elif comparison in UNORDERED:
        found = f"!({x} {UNORDERED[comparison]} {y})"
    elif comparison in ("ne", "equ") and type in FLOATS:
        found = f"{'!' if comparison == 'equ' else ''}differ({x}, {y})"
    else:
        found = f"({x} {COMPARED[comparison]} {y})"
    if joined:
        found = f"({found} {JOINED[joined]} {form.value(form.operands[3], 'pred')})"
    return form.set(target, found, "pred")


def select(form: Form) -> str:
    form.number_of_operands(4)
    type = form.take("b16", "b32", "b64", "s16", "s32", "s64", "u16", "u32", "u64", *FLOATS)
    target, a, b, chosen = form.operands
    code = form.set(target, f"{form.value(chosen, 'pred')} ? {form.value(a, type)} : {form.value(b, type)}", type)
    if form.registers.get(target) == "b32":
        return form.flagged(code, f"{form.value(chosen, 'pred')} ? ({form.overflow(a)}) : ({form.overflow(b)})")
    return code


def move(form: Form) -> str:
    form.number_of_operands(2)
    type = form.take("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", *FLOATS)
    target, a = form.operands
    half = {"b64": "u32", "b32": "u16"}.get(type, "")
    if a.startswith("{"):
        low, high = form.parts(a, 2)
        return form.set(target, f"({type}){form.value(high, half)} << {half[1:]} | {form.value(low, half)}", type)
    if target.startswith("{"):
        low, high = form.parts(target, 2)
        whole = f"const {type} whole = {form.value(a, type)};"
        return f"{{ {whole} {form.set(low, 'whole', half)} {form.set(high, f'whole >> {half[1:]}', half)} }}"
    code = form.set(target, form.value(a, type), type)
    if form.registers.get(target) == "b32":
        return code + f" FLAG({flag(target)} = {form.overflow(a)});"
    return code


def convert(form: Form) -> str:
    form.number_of_operands(2)
    rounding = form.take("rn", *ROUNDED, default="")
    to, source = form.take(*INTEGERS, *FLOATS), form.take(*INTEGERS, *FLOATS)
    target, a = form.operands
    value = form.value(a, source)
    if to in INTEGERS and source in INTEGERS and not rounding:
        checked = f"WIDENED({form.overflow(a)}); " if (to, source) == ("s64", "s32") else ""
        return checked + form.set(target, f"({to}){value}", to)
    if to in INTEGERS and source in FLOATS and rounding in ROUNDED:
        return form.set(target, f"to_integer<{to}>(std::{ROUNDED[rounding]}({value}))", to)
    if to in FLOATS and source in INTEGERS and rounding == "rn":
        return form.set(target, f"({to}){value}", to)
    if (to, source, rounding) in (("f64", "f32", ""), ("f32", "f64", "rn")):
        return form.set(target, f"number(({to}){value})", to)
    if to == source and to in FLOATS and rounding in ROUNDED:
        return form.set(target, f"number(std::{ROUNDED[rounding]}({value}))", to)
    raise form.instruction.unknown("a conversion that is not known")


def convert_address(form: Form) -> str:
    form.number_of_operands(2)
    form.take("to", default="")
    form.take("global", "local")
    form.take("u64")
    return form.set(form.operands[0], form.value(form.operands[1], "u64"), "u64")   # all memory has one kind of address


# Memory.

def load(form: Form) -> str:
    form.number_of_operands(2)
    target, place = form.operands
    if form.take("param", default=""):
        type = form.take(*BITS, *INTEGERS, *FLOATS)
        return form.set(target, f"parameter<{type}>(launch, {named(place.strip('[]'))})", type)
    order = ORDERS[form.take("volatile", "relaxed", default="")]
    if order == "STRONG":
        form.take("gpu", "sys", default="")
    space = form.take("global", "local", default="any")
    form.take("nc", default="")
    count = int(form.take("v2", "v4", default="v1")[1:])
    type = form.take(*BITS, *INTEGERS, *FLOATS)
    targets = form.parts(target, count) if count > 1 else [target]
    values = [f"LOAD({type}, {space.upper()}, {order}, at + {number} * sizeof({type}))" for number in range(count)]
    sets = " ".join(form.set(each, value, type) for each, value in zip(targets, values, strict=True))
    flags = "".join(f" FLAG({flag(each)} = false);" for each in targets if form.registers.get(each) == "b32")
    return f"{{ const u64 at = {form.address(place)}; ALIGNED(at, {count} * sizeof({type})); {sets}{flags} }}"


def store(form: Form) -> str:
    form.number_of_operands(2)
    place, source = form.operands
    order = ORDERS[form.take("volatile", "relaxed", default="")]
    if order == "STRONG":
        form.take("gpu", "sys", default="")
    space = form.take("global", "local", default="any")
    count = int(form.take("v2", "v4", default="v1")[1:])
    type = form.take(*BITS, *INTEGERS, *FLOATS)
    sources = form.parts(source, count) if count > 1 else [source]
    stores = " ".join(
        f"STORE({type}, {space.upper()}, {order}, at + {number} * sizeof({type}), {form.value(each, type)});"
        for number, each in enumerate(sources)
    )
    return f"{{ const u64 at = {form.address(place)}; ALIGNED(at, {count} * sizeof({type})); {stores} }}"


def atomic(form: Form) -> str:
    with_result = form.instruction.opcode == "atom"
    form.take("relaxed", default="")
    form.take("gpu", "sys", default="")
    space = form.take("global", default="any")
    operation = form.take("add", "cas", "exch", "min", "max", "and", "or", "xor")
    type = form.take("b32", "b64", "u32", "u64", "s32", "s64")
    target, place, *values = form.operands if with_result else ("_", *form.operands)
    if len(values) != (2 if operation == "cas" else 1):
        raise form.instruction.unknown("another number of operands")
    given = ", ".join(form.value(each, type) for each in values)
    done = f"ATOMIC({type}, {space.upper()}, at, {operation}_of<{type}>, {given})"
    return f"{{ const u64 at = {form.address(place)}; ALIGNED(at, sizeof({type})); {form.set(target, done, type)} }}"


# Control.

def branch(form: Form) -> str:
    form.take("uni", default="")
    form.number_of_operands(1)
    return f"goto {named('%' + form.operands[0])};"


def leave(form: Form) -> str:
    form.take("uni", default="")
    form.number_of_operands(0)
    return "return;"


def fence(form: Form) -> str:
    """Nothing is reordered here that a fence would keep in order."""
    for known in (("sc", "acq_rel"), ("cta", "gl", "gpu", "sys", "cluster")):
        form.take(*known, default="")
    form.number_of_operands(0)
    return ";"


def trap(form: Form) -> str:
    form.number_of_operands(0)
    return 'FAULT("a trap");'


OPCODES: dict[str, Callable[[Form], str]] = {
    "add": add_or_subtract, "sub": add_or_subtract, "mul": multiply, "mad": multiply_add, "fma": fused,
    "div": divide, "rem": remainder, "rcp": reciprocal_or_root, "sqrt": reciprocal_or_root,
    "neg": negate, "abs": magnitude, "copysign": with_sign, "min": smaller_or_larger, "max": smaller_or_larger,
    "and": logic, "or": logic, "xor": logic, "not": complement, "shl": shift, "shr": shift,
    "popc": count, "clz": count, "brev": count, "prmt": permute, "bfi": insert_bits, "bfe": extract_bits,
    "shf": funnel_shift, "lop3": any_logic,
    "setp": compare, "selp": select, "mov": move, "cvt": convert, "cvta": convert_address,
    "ld": load, "st": store, "atom": atomic, "red": atomic,
    "bra": branch, "ret": leave, "exit": leave, "trap": trap,
    "membar": fence, "fence": fence,
}


def initial(variable: Variable) -> str:
    """The value of a variable of a module, in C++."""
    if variable.value.startswith(("0f", "0d")):
        return f"bits<{variable.type}>(0x{variable.value[2:]}ull)"
    return f"({variable.type})({int(variable.value, 0) % 2**64:#x}ull)"
