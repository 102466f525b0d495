"""Turns a module of PTX into one text of C++: a function for each kernel, registers as variables, branches as `goto`."""

from __future__ import annotations

from device_code.instructions import initial, named, statement
from device_code.ptx import Entry, Label, Module, PtxError

TYPES = {"pred": "pred", "b16": "u16", "b32": "u32", "b64": "u64", "f32": "f32", "f64": "f64"}   # of registers
MOST_LOCALS = 4   # of a kernel, as `Thread` of machine.hpp has room for


def translated(module: Module) -> str:
    """The C++ of a module; compile it with the folder of `machine.hpp` in the path.

    >>> from device_code.ptx import read
    >>> text = ".visible .entry none(.param .u64 none_param_0)\\n{\\n.reg .b64 %rd<1>;\\nret;\\n}"
    >>> print(translated(read(text)).splitlines()[-1])
    ENTRY(none)
    """
    parts = ['#include "machine.hpp"']
    parts += [f"VARIABLE({each.type}, {named(each.name)}, {initial(each)})" for each in module.variables]
    for entry in module.entries:
        parts += [function(entry, {each.name for each in module.variables}), f"ENTRY({entry.name})"]
    return "\n".join(parts)


def function(entry: Entry, variables: set[str]) -> str:
    """One kernel as a function of one thread."""
    if len(entry.parameters) != entry.declared:
        raise PtxError(f"{entry.name}: {entry.declared - len(entry.parameters)} parameters whose form is not known")
    if len(entry.locals) > MOST_LOCALS:
        raise PtxError(f"{entry.name}: at most {MOST_LOCALS} variables in local memory; it has {len(entry.locals)}")
    symbols = variables | {each.name for each in entry.locals}
    lines = [f"static void {entry.name}_thread(Launch& launch, Thread& thread)", "{"]
    lines += [f"    enum {{ {', '.join(named(name) for _, name in entry.parameters)} }};"] if entry.parameters else []
    lines += ["    u32 site = 0; (void)site; (void)thread; (void)launch;"]
    lines += [f"    {declaration(name, type)}" for name, type in entry.registers.items()]
    for local in entry.locals:
        lines.append(f"    alignas({max(local.align, 8)}) u8 {named(local.name)}[{local.size}];")
        lines.append(f"    LOCAL({named(local.name)}, {local.size});")
    number = 0
    for each in entry.body:
        if isinstance(each, Label):
            lines.append(f"{named('%' + each.name)}: ;")
            continue
        lines.append(f"    SITE({number}) {statement(each, entry.registers, symbols)}")
        number += 1
    return "\n".join([*lines, "}"])


def declaration(name: str, type: str) -> str:
    """A register as a variable, with a value that is nobody's: code of a compiler reads none before it is set."""
    if type not in TYPES:
        raise PtxError(f"a type of registers that is not known: {type} of {name}")
    kind = TYPES[type]
    extra = f" FLAG(bool {named(name)}_over = false;)" if type == "b32" else ""
    return f"{kind} {named(name)} = NOTHING({kind});{extra}"
