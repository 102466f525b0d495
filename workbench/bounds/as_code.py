"""Bounds and codecs as Python, for scripts that reproduce a result."""

from __future__ import annotations

import dataclasses

from workbench.codecs import Codec
from workbench.guarantees import Bound


def bound_code(bound: Bound) -> str:
    """The bound as Python.

    >>> from workbench.guarantees import Absolute
    >>> bound_code(Absolute(0.05))
    'wb.Absolute(0.05)'
    """
    return f"wb.{type(bound).__name__}({bound.eb!r})"


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
