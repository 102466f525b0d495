"""Reads the text of a PTX module into entries and instructions; what it does not know is an error.

Only the syntax is read here. What the instructions mean stands in `instructions.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

ENTRY = re.compile(r"\.visible\s+\.entry\s+(?P<name>[\w$]+)\s*\((?P<parameters>[^)]*)\)(?P<directives>[^{]*)\{", re.S)
PARAMETER = re.compile(
    r"\.param\s+\.(?P<type>\w+)(?:\s+\.ptr(?:\s+\.(?:global|local))?(?:\s+\.align\s+\d+)?)?\s+(?P<name>[\w$]+)"
)
REGISTERS = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+(?P<names>.+)", re.S)
LOCAL = re.compile(r"\.local\s+\.align\s+(?P<align>\d+)\s+\.b8\s+(?P<name>[\w$]+)\[(?P<size>\d+)\]")
VARIABLE = re.compile(
    r"^\.global\s+\.align\s+\d+\s+\.(?P<type>[us]8|[us]16|[us]32|[us]64|f32|f64)\s+(?P<name>[\w$]+)"
    r"(?:\s*=\s*(?P<value>[-\w]+))?;", re.M,
)
MODULE_LEVEL = re.compile(r"^\.(?:func|(?:visible|extern|weak|common)\s+\.(?!entry)|global|const|shared|alias)\b.*$", re.M)
LOCATION = re.compile(r"\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)\s+\d+")
STATEMENT = re.compile(
    r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<label>[\w$]+:)|(?P<loc>\.(?:loc|pragma)[^\n;]*;?)|(?P<code>[^;]+);)"
)
LABEL = re.compile(r"(?P<name>[\w$]+):")
GUARD = re.compile(r"@(?P<negated>!?)(?P<predicate>%\w+)\s+")
IGNORED = (".pragma", ".maxntid", ".minnctapersm", ".reqntid")   # hints to the assembler


class PtxError(Exception):
    """Text that is no PTX, or PTX that cannot be translated; it names the line."""


@dataclass(frozen=True)
class Label:
    """A place in the code that branches go to."""

    name: str


@dataclass(frozen=True)
class Instruction:
    """One instruction: `@!%p1 setp.lt.s64 %p2, %rd1, 5;`.

    >>> read_instruction("@!%p1 setp.lt.s64 %p2, %rd1, 5", 7)
    Instruction(opcode='setp', modifiers=('lt', 's64'), operands=('%p2', '%rd1', '5'), guard='!%p1', text=..., line=7, ...)
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str          # a predicate, with `!` before it if it must be false; "" for none
    text: str
    line: int           # in the PTX text
    source: int = 0     # in the text that NVRTC compiled, if it got `-lineinfo`

    def unknown(self, what: str) -> PtxError:
        """The error for an instruction that cannot be translated."""
        return PtxError(f"line {self.line}: {what}: {self.text}")


@dataclass(frozen=True)
class Local:
    """Local memory of a thread: a variable that is an array of bytes."""

    name: str
    size: int
    align: int


@dataclass
class Entry:
    """A kernel."""

    name: str
    parameters: list[tuple[str, str]]                              # types and names
    declared: int                                                  # how many parameters the text has
    registers: dict[str, str] = field(default_factory=dict)        # names and types
    locals: list[Local] = field(default_factory=list)
    body: list[Label | Instruction] = field(default_factory=list)

    @property
    def instructions(self) -> list[Instruction]:
        """All instructions in the order of the text."""
        return [each for each in self.body if isinstance(each, Instruction)]


@dataclass(frozen=True)
class Variable:
    """A number in global memory that belongs to the module."""

    name: str
    type: str
    value: str


@dataclass(frozen=True)
class Module:
    """What one source text became."""

    entries: list[Entry]
    variables: list[Variable]


def read(text: str) -> Module:
    """The kernels of a module, and its variables.

    >>> [entry] = read('''
    ... .visible .entry nothing(
    ...     .param .u64 nothing_param_0
    ... )
    ... {
    ...     .reg .pred %p<2>;
    ...     ret;
    ... }''').entries
    >>> entry.name, entry.parameters, entry.registers, len(entry.body)
    ('nothing', [('u64', 'nothing_param_0')], {'%p0': 'pred', '%p1': 'pred'}, 1)
    """
    text = re.sub(r"//[^\n]*", "", text)
    variables = [Variable(each["name"], each["type"], each["value"] or "0") for each in VARIABLE.finditer(text)]
    if rest := MODULE_LEVEL.search(VARIABLE.sub("", text)):
        raise PtxError(f"a function or variable of the module that is not known: {rest[0].strip()}")
    return Module([_entry(text, match) for match in ENTRY.finditer(text)], variables)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _entry(text: str, match: re.Match[str]) -> Entry:
    parameters = [(each["type"], each["name"]) for each in PARAMETER.finditer(match["parameters"])]
    entry = Entry(match["name"], parameters, match["parameters"].count(".param"))
    source = 0
    for place, statement in _statements(text, match.end()):
        line = _line(text, place)
        if found := LOCATION.match(statement):
            source = int(found["line"])
        elif statement.startswith(IGNORED):
            continue
        elif found := REGISTERS.fullmatch(statement):
            entry.registers.update(dict.fromkeys(_names(found["names"]), found["type"]))
        elif found := LOCAL.fullmatch(statement):
            entry.locals.append(Local(found["name"], int(found["size"]), int(found["align"])))
        elif found := LABEL.fullmatch(statement):
            entry.body.append(Label(found["name"]))
        elif statement.startswith("."):
            raise PtxError(f"line {line}: a directive that is not known: {statement}")
        else:
            entry.body.append(read_instruction(statement, line, source))
    return entry


def _statements(text: str, place: int) -> Iterator[tuple[int, str]]:
    """The statements of a body and where they begin; scopes inside the body are opened where inline assembly has some."""
    depth = 1
    while found := STATEMENT.match(text, place):
        place = found.end()
        if found["open"]:
            depth += 1
        elif found["close"]:
            depth -= 1
            if not depth:
                return
        else:
            statement = found["label"] or found["loc"] or found["code"]
            yield found.start(found.lastgroup or 0), " ".join(statement.strip().rstrip(";").split())
    raise PtxError(f"line {_line(text, place)}: a body that does not end")


def _names(declared: str) -> list[str]:
    """The names of registers: `%r<3>` declares %r0, %r1 and %r2."""
    names = []
    for name in declared.replace(" ", "").split(","):
        several = re.fullmatch(r"(%?[\w$]+)<(\d+)>", name)
        names += [f"{several[1]}{number}" for number in range(int(several[2]))] if several else [name]
    return names


def read_instruction(statement: str, line: int, source: int = 0) -> Instruction:
    """One instruction without its semicolon."""
    guard = GUARD.match(statement)
    rest = statement[guard.end():] if guard else statement
    opcode, _, operands = rest.partition(" ")
    name, *modifiers = opcode.replace("::", "__").split(".")
    return Instruction(
        name, tuple(modifiers), tuple(_operands(operands)), guard["negated"] + guard["predicate"] if guard else "",
        statement, line, source,
    )


def _operands(text: str) -> list[str]:
    """Operands are separated by commas, but for those in braces, which are the parts of a vector."""
    return [part.replace(" ", "") for part in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text)]
