"""GRIB files: messages of weather services, by cfgrib. One file often holds what one dataset of xarray cannot.

Messages on levels of other kinds or heights, or accumulated and instantaneous ones, have coordinates that contradict each
other. `cfgrib` puts those that fit together into one dataset each; here, each becomes a group, named after its levels. The
index of the messages is kept in a folder of our own, since cfgrib would write it beside the file.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.data.readers.source import Source
from workbench.errors import WorkbenchError

PACKING = ("bitsPerValue", "binaryScaleFactor", "decimalScaleFactor")
NEAR = 64   # bytes that a bulletin may have before its first message


def is_grib(head: bytes) -> bool:
    """Whether these are the first bytes of a file of GRIB messages, of edition 1 or 2.

    >>> is_grib(b"GRIB" + bytes(3) + bytes([2])), is_grib(b"GRIBBLE!")
    (True, False)
    """
    at = head[:NEAR].find(b"GRIB")
    return at >= 0 and head[at + 7 : at + 8] in (b"\1", b"\2")


@contextmanager
def opened_grib(path: Path) -> Iterator[dict[str, Any]]:
    """The datasets of xarray in a file, by the names of their groups; one alone has none. Values are read where used."""
    import cfgrib
    import xarray

    with tempfile.TemporaryDirectory(prefix="lossbench-grib-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")   # cfgrib takes one that is raised for datasets that do not fit together
        how = {"indexpath": f"{folder}/{{short_hash}}.idx", "errors": "raise"}
        try:
            options: Any = xarray.set_options
            with options(use_new_combine_kwarg_defaults=False):   # the others would override coordinates
                datasets = cfgrib.open_datasets(str(path), backend_kwargs=how, decode_timedelta=False)
        except Exception as error:   # of cfgrib and ecCodes, of many kinds
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise WorkbenchError(f"{path.name} must be a GRIB file; it cannot be read: {reason}") from None
    if not datasets:
        raise WorkbenchError(f"{path.name} must be a GRIB file with messages; it has none that can be read")
    for dataset in datasets:
        for variable in dataset.data_vars.values():   # a message is a map
            sizes = zip(variable.dims, variable.shape, strict=True)
            maps = variable.dims[-2:]
            variable.encoding["preferred_chunks"] = {axis: size if axis in maps else 1 for axis, size in sizes}
    try:
        yield dict(zip(_names(datasets), datasets, strict=True)) if len(datasets) > 1 else {"": datasets[0]}
    finally:
        for dataset in datasets:
            dataset.close()


def _names(datasets: list[Any]) -> list[str]:
    """A name for each: the kind of its levels and, as far as others have the same, more of what sets it apart."""
    apart: list[Callable[[Any], str]] = [_level, _attribute("stepType"), _attribute("dataType"), lambda one: "_".join(one)]
    names = list(map(_attribute("typeOfLevel"), datasets))
    for more in apart:
        longer = ["_".join(filter(None, (name, more(dataset)))) for name, dataset in zip(names, datasets, strict=True)]
        groups = Counter(names), Counter(longer)
        names = [one if groups[0][one] == groups[1][two] else two for one, two in zip(names, longer, strict=True)]
    counted = Counter(names)
    return [f"{name}_{number}" if counted[name] > 1 else name for number, name in enumerate(names, 1)]


def _attribute(key: str) -> Callable[[Any], str]:
    """What the first variable of a dataset states under a key of GRIB."""
    return lambda dataset: str(next(iter(dataset.data_vars.values())).attrs.get(f"GRIB_{key}", "unknown"))


def _level(dataset: Any) -> str:
    """The level of a dataset, if all of it is on one."""
    level = dataset.coords.get(_attribute("typeOfLevel")(dataset))
    return f"{float(level):g}" if level is not None and level.ndim == 0 else ""


def half_steps(path: Path) -> dict[str, float]:
    """Half of the largest step in which GRIB packs each variable of a file, by the names that xarray has.

    A packed number is (R + q 2^E) 10^-D with a whole q, so it is within half of 2^E 10^-D of what was packed. Messages of
    one value have no q, and those of floats no packing.
    """
    if not path.is_file() or not is_grib(Source.at(path).head):
        return {}
    import eccodes

    found: dict[str, float] = {}
    with path.open("rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            try:
                packed = all(eccodes.codes_is_defined(message, key) for key in PACKING)
                bits, binary, decimal = (int(eccodes.codes_get(message, key)) for key in PACKING) if packed else (0, 0, 0)
                if bits:
                    name = eccodes.codes_get(message, "cfVarName")
                    found[name] = max(found.get(name, 0.0), 0.5 * 2.0**binary * 10.0**-decimal)
            finally:
                eccodes.codes_release(message)
    return found
