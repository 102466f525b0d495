"""What code a measured figure depends on, as one hash: a version is not enough.

The version of an editable install stays the same while its sources change, and a codec from a notebook has none. So a cache
asks for the content: the sources of this package and of its kernels and, for a codec from elsewhere, those of the package
that its class is from, with the code of the class itself, which a notebook may have defined anew.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.codecs import Codec, Columns
from workbench.run.code import hash_of, hash_of_files, own_code


def code_of(codec: Codec) -> list[str]:
    """Hashes of all code that takes part when this codec is measured.

    >>> from workbench.codecs import get
    >>> code_of(get("pcodec")) == code_of(get("lattice")) == [own_code()]
    True
    """
    kind = type(codec.codec if isinstance(codec, Columns) else codec)
    top = kind.__module__.partition(".")[0]
    if top == __package__.partition(".")[0]:
        return [own_code()]
    return [own_code(), hash_of_files(_sources(sys.modules.get(top))), hash_of(map(repr, _code_of_class(kind)))]


def _sources(module: types.ModuleType | None) -> list[Path]:
    """The files of a package, or of a module; none when it has no file, as in a notebook."""
    file = getattr(module, "__file__", None)
    if file is None:
        return []
    return sorted(Path(file).parent.rglob("*.py")) if hasattr(module, "__path__") else [Path(file)]


def _code_of_class(kind: type) -> Iterator[Any]:
    """What the functions of a class, and those of its bases from elsewhere, are made of."""
    for base in kind.__mro__:
        if base.__module__.startswith(("workbench.", "builtins", "abc")):
            continue
        for name, value in sorted(vars(base).items()):
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(function, types.FunctionType):
                yield name, *_code(function.__code__)


def _code(code: types.CodeType) -> Iterator[Any]:
    yield code.co_code, code.co_names, code.co_varnames
    for constant in code.co_consts:
        yield from _code(constant) if isinstance(constant, types.CodeType) else [repr(constant)]
