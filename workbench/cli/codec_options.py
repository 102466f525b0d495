"""`--codec`, `--option` and `--model`: a codec and its options, whose types come from the schema of the codec."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, get_args

from workbench.archive.choice import Profile, is_free, of_profile
from workbench.codecs import Codec, Model, ParticleCodec
from workbench.codecs.interpolation import Interpolation
from workbench.codecs.registry import codec_class
from workbench.errors import WorkbenchError

NONE = "none"
BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}
# Options of particle codecs that `compress` always sets itself.
SET_ELSEWHERE = {
    "order": "use --order",
    "lower": "it follows from the particles",
    "upper": "it follows from the particles",
    "box": "use --box",
}


def add_codec(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a codec, and its options."""
    names = "`workbench doctor` lists them; auto, the default: the smallest of the built-in ones; fast: the fastest of them"
    parser.add_argument("--codec", default="auto", metavar="NAME", help=f"codec ({names})")
    text = "an option of the codec, such as algorithm=lorenzo_reg; may be given several times"
    parser.add_argument("--option", dest="codec_options", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = f"a model that `workbench train` wrote, for the codec {Interpolation.id}, which it chooses"
    parser.add_argument("--model", metavar="MODEL", help=text)


def add_profile(parser: argparse.ArgumentParser) -> None:
    """Add the choice of who can read the arrays."""
    text = "portable: arrays that zarr-python and xarray read without lossbench (default: own, which is smaller)"
    parser.add_argument("--profile", choices=get_args(Profile), default="own", help=text)


def profiled_codec(options: argparse.Namespace) -> str | Codec:
    """The requested codec, or that of the profile."""
    if options.profile != "own" and (options.codec_options or options.model or options.codec != "auto"):
        raise WorkbenchError(f"--profile {options.profile} chooses the codec: leave out --codec, --option and --model")
    return of_profile(options.profile, chosen_codec(options))


def chosen_codec(options: argparse.Namespace) -> str | Codec:
    """The requested codec, checked to be available here; "auto" and "fast" are resolved later from the data."""
    if options.model is not None and options.codec not in ("auto", Interpolation.id):
        raise WorkbenchError(f"--model is for the codec {Interpolation.id}; got --codec {options.codec}: leave one out")
    if options.model is not None:
        return Interpolation(**{**_typed(Interpolation, options.codec_options), "model": Model.load(options.model).text})
    if is_free(options.codec):
        if options.codec_options:
            raise WorkbenchError(f"--option {options.codec_options[0]} needs --codec NAME, to say whose option it is")
        return str(options.codec)
    found = codec_class(options.codec)
    codec = found(**_typed(found, options.codec_options))
    codec.require()
    return codec


def _typed(codec: type[Codec], given: Sequence[str]) -> dict[str, Any]:
    """The options by name; the codec itself checks the ranges of their values."""
    properties = codec.schema()["properties"]
    typed: dict[str, Any] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise WorkbenchError(f"--option must be KEY=VALUE; got {text!r}")
        if key in typed:
            raise WorkbenchError(f"--option {key} must be given once; got it again as {text!r}")
        if key not in properties:
            raise WorkbenchError(f"{codec.id} has the options {', '.join(properties) or '(none)'}; got --option {text}")
        if key in SET_ELSEWHERE and issubclass(codec, ParticleCodec):
            raise WorkbenchError(f"--option {key} has no effect: {SET_ELSEWHERE[key]}")
        declared = properties[key]["type"]
        typed[key] = _value(f"--option {key} of {codec.id}", value, [declared] if isinstance(declared, str) else declared)
    return typed


def _value(name: str, text: str, types: Sequence[str]) -> Any:
    """The text as the first of these JSON types, or as null if that is allowed."""
    if "null" in types and text.lower() == NONE:
        return None
    kind = types[0]
    try:
        return _READ[kind](text)
    except (KeyError, ValueError):
        expected = f"{kind} or {NONE}" if "null" in types else kind
        raise WorkbenchError(f"{name} must be {expected}; got {text!r}") from None


def _boolean(text: str) -> bool:
    return BOOLEANS[text.lower()]


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


_READ: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": _boolean,
    "array": _numbers,
    "object": json.loads,
}
