"""The input file of a command with the options for opening it, and the printing of results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.archive import Archive, Collection, Series
from workbench.archive.opening import ARCHIVE, opened
from workbench.cli.damaged import damage_told_apart
from workbench.cli.notes import warnings_as_notes
from workbench.cli.visible import visible
from workbench.data import Field, Particles
from workbench.data.readers import open_file, open_trajectory
from workbench.data.readers.particle_types import ALL, NAMES
from workbench.data.readers.paths import is_several
from workbench.data.readers.source import Source
from workbench.data.readers.trajectories import has_frames
from workbench.errors import WorkbenchError
from workbench.json_values import json_value

KINDS = (
    "a snapshot, field, trajectory or dataset, recognised by its content; of a set of many files one, the folder, or a "
    "pattern in quotes"
)
OPEN = "open"
OPTIONS = {
    "format": "read as this format instead of the one recognised",
    "kind": "whether a bare array is particles or a field",
    "box": "box to use instead of the file's own: a length, lengths separated by commas, or `open`",
    "wrap": "replace positions outside the box by their periodic images inside, instead of refusing them",
    "name": "which variable or data set of the file",
    "shape": "shape of a raw file, comma-separated",
    "dtype": "number type of a raw file: float32 or float64",
    "frame": "which frame of a trajectory, from 0, as particles",
    "particle_type": "which particle type of a snapshot: 0 to 5, gas, dark_matter, stars, black_holes, or all",
    "positions": "data set of the positions in an HDF5 or Zarr file of any layout, or one for each axis: x,y,z",
    "velocities": "data set of the velocities there, or one for each axis",
    "ids": "data set of the ids there",
    "masses": "data set of the masses there",
    "columns": "further columns of particles to read, separated by commas, or `all`; of `--positions` names of data sets",
    "external": "also read data that an HDF5 or BOV file keeps in other files outside of its folder",
}
SWITCHES = ("wrap", "external")
FOR_FRAMES = ("format", "most_bytes", "scaled", "name")   # the options that make sense for all frames of a trajectory


def add_file(
    parser: argparse.ArgumentParser, metavar: str = "FILE", text: str = KINDS, *, optional: bool = False,
    several: bool = False, limited: bool = True,
) -> None:
    """Add FILE, under this name, and its options to a command; several are `files`. `limited` adds one of memory."""
    if several:
        parser.add_argument("files", metavar=metavar, nargs="+", help=text)
    else:
        parser.add_argument("file", metavar=metavar, nargs="?" if optional else None, help=text)
    group = parser.add_argument_group(f"opening {metavar}")
    for option, meaning in OPTIONS.items():
        switch = {"action": "store_const", "const": True}
        how: dict[str, Any] = switch if option in SWITCHES else {"type": READ.get(option, str)}
        group.add_argument(flag(option), help=meaning, **how)
    if limited:
        add_most_bytes(group, "refuse an array that takes more than N bytes in memory, and accept any that takes less")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_archive(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Add the archive, under this name, that a command works on."""
    text = "what `workbench compress` wrote: a zip file or a folder, here or at an address"
    parser.add_argument("archive", metavar=metavar, help=text)
    add_most_bytes(add_trust(parser), "decode at most N bytes")


def add_trust(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the limits for archives from other people, without the one of memory, which other files have, too."""
    group = parser.add_argument_group("archives from elsewhere")
    text = "only these codecs may decode it, besides the built-in ones; names separated by commas"
    group.add_argument("--codecs", type=_names, metavar="A[,B...]", help=text)
    text = "decode in this process: faster, but a forged archive could crash it"
    group.add_argument("--no-isolation", dest="isolate", action="store_false", default=None, help=text)
    text = "seconds by the clock that the other process may take for each second of processor time; 3 unless given"
    group.add_argument("--patience", type=float, metavar="X", help=text)
    return group


def add_most_bytes(group: argparse._ArgumentGroup, text: str) -> None:
    """Add the limit of memory, in these words."""
    group.add_argument("--most-bytes", type=_count, metavar="N", help=text)


def given_trust(options: argparse.Namespace) -> dict[str, Any]:
    """The limits that were given; archives made here need none."""
    names = ("codecs", "most_bytes", "isolate", "patience")
    return {name: value for name in names if (value := getattr(options, name, None)) is not None}


def open_source(options: argparse.Namespace) -> Particles | Field | Archive:
    """Open FILE with the given options; archives are not decoded yet, and those of many members are refused."""
    data: Particles | Field | Archive | Collection | Series = open_any(options)
    if isinstance(data, Collection):
        raise WorkbenchError(
            f"{options.file} is an archive of {len(data)} members, and this command takes one array: decode one by "
            "`workbench decompress IN OUT --member NAME`"
        )
    if isinstance(data, Series):
        raise WorkbenchError(
            f"{options.file} is a series of {len(data)} steps, and this command takes one array: decode one by "
            "`workbench decompress IN OUT --step N`"
        )
    return data


def open_any(options: argparse.Namespace) -> Any:
    """Open FILE, also an archive of many members."""
    given = {option: getattr(options, option) for option in given_options(options)}
    if "archive" not in options or _is_archive(options.file):   # `verify`: ORIGINAL may be none
        given |= given_trust(options)
    if given.get("box") == OPEN:
        given["box"] = None
    with damage_told_apart(options.file), warnings_as_notes():
        return open_file(options.file, **given)


def open_all_frames(options: argparse.Namespace, topology: str | None = None) -> Any:
    """Open FILE; one of several frames is a trajectory, unless a frame is chosen."""
    given = {option: getattr(options, option) for option in given_options(options)}
    several = not is_several(options.file) and Path(options.file).expanduser().is_file()
    with damage_told_apart(options.file):
        if "frame" in given or not several or not has_frames(options.file, **given):
            if topology is not None:
                raise WorkbenchError(f"--topology is for a trajectory; {options.file} is none, or one frame: leave it out")
            return open_any(options)
        if unfit := [option for option in given if option not in FOR_FRAMES]:
            raise WorkbenchError(
                f"{flag(unfit[0])} is for one frame; {options.file} has several, whose positions stay as they are: choose "
                "one by --frame, or leave it out"
            )
        return open_trajectory(options.file, topology, **given)


def _is_archive(file: str) -> bool:
    return not is_several(file) and ARCHIVE.recognises(Source.at(file))


def open_archive(options: argparse.Namespace, **more: Any) -> Any:
    """Open the named archive, of one array or of many members, with the given limits; nothing is decoded yet."""
    with damage_told_apart(options.archive):
        return opened(options.archive, **given_trust(options), **more)


def open_data(options: argparse.Namespace) -> Particles | Field:
    """The same, with archives decoded."""
    found = open_source(options)
    return found.decompress() if isinstance(found, Archive) else found


def given_options(options: argparse.Namespace) -> list[str]:
    """Which of the options for opening a file were given."""
    names = [*OPTIONS] if "archive" in options else [*OPTIONS, "most_bytes"]   # else that limit is the archive's
    return [option for option in names if getattr(options, option) is not None]


def require_file(options: argparse.Namespace, metavar: str) -> None:
    """Refuse options for opening a file when there is none."""
    if options.file is None and (given := given_options(options)):
        raise WorkbenchError(f"{flag(given[0])} says how to open {metavar}; got no {metavar}")


def print_result(values: Mapping[str, Any], as_json: bool) -> None:
    """Print a result as aligned lines, or as one JSON object."""
    if as_json:
        print(json.dumps(json_value(values), allow_nan=False))
        return
    width = max(len(name) for name in values)
    for name, value in values.items():
        print(visible(f"{name.replace('_', ' '):<{width}}  {readable(value)}".rstrip()))


def readable(value: Any) -> str:
    """A value as text for a table.

    >>> readable({"id": "sz3", "levels": [1, 2000], "exact": False})
    'id=sz3, levels=(1, 2000), exact=no'
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.8g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_enclosed(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_enclosed, value)) or "-"
    return str(value)


def _enclosed(value: Any) -> str:
    """An entry of a list: integers without thousands separators, which would look like commas between entries."""
    if isinstance(value, Mapping | list | tuple):
        return f"({readable(value)})"
    return str(value) if type(value) is int else readable(value)


def flag(option: str) -> str:
    """The option as it is typed.

    >>> flag("particle_type")
    '--particle-type'
    """
    return f"--{option.replace('_', '-')}"


def _lengths(text: str) -> float | tuple[float, ...] | str:
    if text == OPEN:
        return text
    try:
        lengths = tuple(float(part) for part in text.split(","))
    except ValueError:
        expected = f"a length, lengths separated by commas, or {OPEN}"
        raise argparse.ArgumentTypeError(f"expected {expected}; got {text!r}") from None
    return lengths[0] if len(lengths) == 1 else lengths


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _count(text: str) -> int:
    """A whole number from 1 on, as 1000000 or 1e6."""
    value = float(text)
    if not (value.is_integer() and 1 <= value < 2**63):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on; got {text!r}")
    return int(value)


def _particle_type(text: str) -> int | str:
    if text in (ALL, *NAMES):
        return text
    try:
        return int(text)
    except ValueError:
        listed = ", ".join((*NAMES, ALL))
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 5, or one of {listed}; got {text!r}") from None


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers separated by commas; got {text!r}") from None


READ: dict[str, Any] = {"box": _lengths, "shape": _shape, "frame": int, "particle_type": _particle_type}
