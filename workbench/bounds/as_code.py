"""Bounds and codecs as Python, for scripts that reproduce a result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from workbench.codecs import Codec
from workbench.guarantees import Bound, Exact


def bound_code(bound: Bound) -> str:
    """The bound as Python.

    >>> from workbench.guarantees import Absolute
    >>> bound_code(Absolute(0.05))
    'wb.Absolute(0.05)'
    """
    return "wb.Exact()" if isinstance(bound, Exact) else f"wb.{type(bound).__name__}({bound.eb!r})"


def bound_of(rule: Any) -> Bound:
    """The bound of a rule of a dataset, which is one, or a mapping of arguments with one."""
    bound: Bound = rule["bound"] if isinstance(rule, Mapping) else rule
    return bound


def rule_code(rule: Any) -> str:
    """The rule as Python.

    >>> from workbench.guarantees import Absolute
    >>> rule_code({"bound": Absolute(0.1), "codec": "sz3"})
    '{"bound": wb.Absolute(0.1), "codec": "sz3"}'
    """
    if isinstance(rule, Bound):
        return bound_code(rule)
    return f"{{{', '.join(f'{json.dumps(name)}: {_code(value)}' for name, value in rule.items())}}}"


def _code(value: Any) -> str:
    if isinstance(value, Bound):
        return bound_code(value)
    if isinstance(value, Codec):
        return codec_code(value)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def codec_code(codec: Codec) -> str:
    """The codec as Python: its name, or a call with the options that differ from the defaults.

    >>> from workbench.codecs import get
    >>> codec_code(get("pcodec")), codec_code(get("pcodec", level=4))
    ('"pcodec"', 'wb.codecs.get("pcodec", level=4)')
    """
    described = codec.to_dict()
    usual = {option.name: option.default for option in dataclasses.fields(codec)}
    changed = [f"{option}={described[option]!r}" for option in usual if getattr(codec, option) != usual[option]]
    return f'wb.codecs.get("{codec.id}", {", ".join(changed)})' if changed else f'"{codec.id}"'
