"""What a kernel declares about its parameters: types, and how many elements each array has.

A wrong pointer or a short array would corrupt memory instead of raising. So kernels state both in their source, and
`backend.py` checks every launch against it. A declared array reads

    const u64* steps SIZE(n * D)        exactly so many elements
    i32* start SIZE(>= LAST(first))     at least so many

`SIZE` is a macro that expands to nothing, so that both C++ and CUDA accept it. The expression is in Python's syntax, with
integers, `+ - * **`, `a if b else c`, and these names:

    D           the number of dimensions
    n           a scalar parameter (i32, i64)
    key         an array parameter: how many elements it has
    LAST(first) the last element of an array, 0 when it is empty: for arrays that say where each block begins, and the end
    CEIL(a, b)  a / b, rounded up

The last element of an array on a GPU is not read, because the host would have to wait for all launches before. A size that
depends on it is not checked there; the same launches are checked on a CPU.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Expected = Callable[..., tuple[int | None, ...]]   # of all arguments: the size of each, None for scalars

_KERNEL = re.compile(r"KERNEL\((\w+)\)\s*\(")
_PARAMETER = re.compile(r"\s*(const\s+)?(\w+)(\s*\*\s*|\s+)(\w+)(?:\s+SIZE\((.*)\))?\s*", re.DOTALL)
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Pow)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One declared parameter of a kernel; `size` is what its declaration says about the number of elements."""

    name: str
    type: str
    pointer: bool
    writable: bool
    size: str | None = None

    @property
    def at_least(self) -> bool:
        """Whether an array may have more elements than the declared size."""
        return self.size is not None and self.size.startswith(">=")


def declared_constants(text: str) -> dict[str, int]:
    """The whole-number constants that a source text defines, for Python code that shares them with its kernels.

    >>> declared_constants("static const i32 MIXED = -2, SIDES = 4;   // of a cell")
    {'MIXED': -2, 'SIDES': 4}
    """
    code = re.sub(r"//[^\n]*", "", text)
    lists = re.findall(r"static const (?:i32|i64) ([^;]*);", code)
    return {name: int(value) for several in lists for name, value in re.findall(r"(\w+) = (-?\d+)(?=\s*(?:,|$))", several)}


def declared_kernels(text: str) -> dict[str, tuple[Parameter, ...]]:
    """The parameters of every kernel that a source text declares.

    >>> declared_kernels("KERNEL(copy)(i64 n, const u8* from SIZE(n), u8* to SIZE(>= n)) {}")["copy"][2]
    Parameter(name='to', type='u8', pointer=True, writable=True, size='>= n')
    """
    code = re.sub(r"//[^\n]*", "", text)
    return {found[1]: tuple(map(parameter, _split(_balanced(code, found.end())))) for found in _KERNEL.finditer(code)}


def parameter(declaration: str) -> Parameter:
    """One parameter as a kernel declares it.

    >>> parameter("const real* position SIZE(n * D)")
    Parameter(name='position', type='real', pointer=True, writable=False, size='n * D')
    """
    match = _PARAMETER.fullmatch(declaration)
    pointer = match is not None and "*" in match[3]
    if match is None or pointer != (match[5] is not None):
        raise TypeError(
            f"a kernel parameter must read `type name` or `[const] type* name SIZE(elements)`; got {declaration.strip()!r}"
        )
    size = None if match[5] is None else " ".join(match[5].split())
    return Parameter(match[4], match[2], pointer, pointer and not match[1], size)


@functools.cache
def expected_sizes(parameters: tuple[Parameter, ...], dimensions: int, reading: bool = True) -> Expected:
    """The function of a kernel's arguments that evaluates all declared sizes; if not `reading`, None for those with LAST.

    >>> n_and_positions = parameter("i64 n"), parameter("const real* position SIZE(n * D)")
    >>> expected_sizes(n_and_positions, 3)(5, None)
    (None, 15)
    """
    names, sizes = _sizes(parameters, dimensions)
    sizes = [size if reading or "LAST" not in size else "None" for size in sizes]
    return _function(names, f"({', '.join(sizes)},)")


@functools.cache
def sizes_hold(parameters: tuple[Parameter, ...], dimensions: int) -> Callable[..., bool]:
    """The function of a kernel's arguments that tells whether all arrays have their declared sizes.

    >>> import numpy as np
    >>> n_and_positions = parameter("i64 n"), parameter("const real* position SIZE(n * D)")
    >>> sizes_hold(n_and_positions, 3)(5, np.zeros((5, 3))), sizes_hold(n_and_positions, 3)(5, np.zeros((5, 2)))
    (True, False)
    """
    names, sizes = _sizes(parameters, dimensions)
    tests = [
        f"{name}.size {'>=' if p.at_least else '=='} {size}"
        for name, size, p in zip(names, sizes, parameters, strict=True) if p.pointer
    ]
    return _function(names, " and ".join(tests) or "True")


def _sizes(parameters: tuple[Parameter, ...], dimensions: int) -> tuple[list[str], list[str]]:
    """A name for each argument, and its declared size as Python."""
    names = [f"_{number}" for number in range(len(parameters))]
    return names, [_evaluated(p, dict(zip(names, parameters, strict=True)), dimensions) for p in parameters]


def _function(names: list[str], text: str) -> Callable[..., Any]:
    return eval(f"lambda {', '.join(names)}: {text}", {"__builtins__": {}, "LAST": _last})   # made of checked expressions


def _evaluated(of: Parameter, names: dict[str, Parameter], dimensions: int) -> str:
    """The declared size of a parameter as Python that evaluates it from the arguments with these names."""
    if of.size is None:
        return "None"
    known = {"D": str(dimensions)}
    for name, other in names.items():
        if other.type != "double" or other.pointer:
            known[other.name] = f"{name}.size" if other.pointer else name
    try:
        return _python(ast.parse(of.size.removeprefix(">=").strip(), mode="eval").body, known)
    except (SyntaxError, KeyError) as error:
        message = f"the declared size of {of.name} must be an expression of integer parameters; got {of.size!r}"
        raise TypeError(message) from error


def _python(node: ast.expr, known: dict[str, str]) -> str:
    """An expression of a declaration as Python; only what the module's docstring lists is allowed."""
    match node:
        case ast.Name(name):
            return known[name]
        case ast.Constant(int(value)):
            return repr(value)
        case ast.BinOp(left, operator, right) if isinstance(operator, _OPERATORS):
            sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Pow: "**"}[type(operator)]
            return f"({_python(left, known)} {sign} {_python(right, known)})"
        case ast.IfExp(test, then, otherwise):
            return f"({_python(then, known)} if {_python(test, known)} else {_python(otherwise, known)})"
        case ast.Call(ast.Name("CEIL"), [dividend, divisor]):
            return f"(-(-{_python(dividend, known)} // {_python(divisor, known)}))"
        case ast.Call(ast.Name("LAST"), [ast.Name(array)]) if known[array].endswith(".size"):
            return f"LAST({known[array].removesuffix('.size')})"
    raise SyntaxError(ast.unparse(node))


def _last(array: Any) -> int:
    """The last element."""
    return int(array.reshape(-1)[-1]) if array.size else 0


def _balanced(text: str, start: int) -> str:
    """The text from here up to the closing parenthesis."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if not depth:
            return text[start:end]
    raise TypeError(f"a kernel declaration must end with a parenthesis; got {text[start : start + 80]!r}")


def _split(parameters: str) -> Iterator[str]:
    """The parameters between commas that stand in no parentheses."""
    depth, begin = 0, 0
    for at, letter in enumerate(parameters):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            yield parameters[begin:at]
            begin = at + 1
    yield parameters[begin:]

