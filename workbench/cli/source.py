"""The file that a command works on, and the options for opening it."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from workbench.data import Field, Particles
from workbench.data.readers import open_file

OPEN = "open"
OPTIONS = {
    "format": "read as this format instead of the one recognised",
    "kind": "whether a bare array is particles or a field",
    "box": "box to use instead of the file's own: a length, lengths separated by commas, or `open`",
    "name": "which variable or data set of the file",
    "shape": "shape of a raw file, comma-separated",
    "dtype": "number type of a raw file: float32 or float64",
    "frame": "which frame of a trajectory, from 0",
    "particle_type": "which particle type of a snapshot, 0 to 5",
}


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add FILE and its options to a command."""
    parser.add_argument("file", metavar="FILE", help="a snapshot, field or trajectory, recognised by its content")
    group = parser.add_argument_group("opening the file")
    for option, text in OPTIONS.items():
        group.add_argument(f"--{option.replace('_', '-')}", type=_READ.get(option, str), help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def open_source(options: argparse.Namespace) -> Particles | Field:
    """Open FILE with the options that were given."""
    given = {option: getattr(options, option) for option in OPTIONS if getattr(options, option) is not None}
    if given.get("box") == OPEN:
        given["box"] = None
    return open_file(options.file, **given)


def print_result(values: dict[str, Any], as_json: bool) -> None:
    """Print a result as aligned lines, or as one JSON object."""
    if as_json:
        print(json.dumps(values, default=_plain))
        return
    width = max(len(name) for name in values)
    for name, value in values.items():
        print(f"{name.replace('_', ' '):<{width}}  {_readable(value)}")


def _readable(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.8g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_readable, value))
    return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return str(value)


def _lengths(text: str) -> float | tuple[float, ...] | str:
    if text == OPEN:
        return text
    try:
        lengths = tuple(float(part) for part in text.split(","))
    except ValueError:
        expected = f"a length, lengths separated by commas, or {OPEN}"
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None
    return lengths[0] if len(lengths) == 1 else lengths


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers separated by commas; got {text!r}") from None


_READ: dict[str, Any] = {"box": _lengths, "shape": _shape, "frame": int, "particle_type": int}
