"""A bound to begin with, and the command that uses it: what `workbench info` says last about a file.

The bound is a start, not an answer: a hundredth of the standard deviation of a field, or of the mean spacing of particles,
rounded down to one digit. Both are scales of the data themselves, so that a unit cannot be mistaken, and outliers hardly
change the first. How to go on from there is `docs/choosing.md`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from workbench.archive.plausibility import spread_of
from workbench.archive.series.opening import is_series
from workbench.bounds import predict
from workbench.data import Field, Particles, Trajectory
from workbench.data.readers.leaving import left_out
from workbench.data.unit_grammar import factor_between
from workbench.data.units import unit_of
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute

SHARE = 0.01   # of the scale of the data
HALO_LENGTH = 0.2   # mean spacings, as is usual for halos
RELATIVE = 0.001   # of the range, for variables that are not read here
OF_WEIGHTS = 0.05   # root mean squares of each tensor
MOST_RULES = 8   # of a dataset in one command
FIGURES_OF_COSMOLOGY = ("redshift", "hubble", "omega_m")


def suggestion(data: Any, file: str, opening: str = "") -> dict[str, str]:
    """Lines for the end of a description; none where there is nothing to suggest. `opening` are options of the file.

    >>> suggestion(Field([1.0, 2.0, 5.0, 2.0]), "t.npy")["next"]
    'workbench compress t.npy t.zip --abs 0.01'
    """
    bound = beginning(data)
    if bound is None:
        return {}
    if isinstance(data, Trajectory):
        about = f"--abs {bound:g}: {_of_trajectory(data)}"
        return {"start_with": about, "next": f"{compress(file)} --abs {bound:g}"}
    command = f"{compress(file)} {_rules(data, bound, opening)}"
    if bound == 0:
        return {"start_with": "--abs 0: every value as it is", "next": command}
    if isinstance(data, Particles):
        return {"start_with": _of_particles(bound), "next": command + _for_halos(data)}
    return {"start_with": _of_field(data, bound), "next": command}


def _rules(data: Any, bound: float, opening: str) -> str:
    """The bound; for a variable of a NetCDF file, those beside it, such as coordinates, are kept as they are."""
    alone = opening or not isinstance(data, Field) or not str(data.metadata.get("format")).startswith("NetCDF")
    if alone or not any(one.startswith("variable") for one in left_out(data)):
        return f"--abs {bound:g}{opening}"
    name = data.metadata.get("path", data.name)   # in a group
    return f"--abs {shlex.quote(f'{name}={bound:g}')} --exact '*'"


def suggestion_for_dataset(arrays: Iterable[Mapping[str, Any]], file: str) -> dict[str, str]:
    """The same for the arrays of a dataset as they are described, each with a bound of its own.

    >>> arrays = [{"name": "T", "start_with": 0.2}, {"name": "P", "start_with": None}, {"name": "time"}]
    >>> suggestion_for_dataset(arrays, "o.nc")
    {'next': "workbench compress o.nc o.zip --abs T=0.2 --rel P=0.001 --exact '*'"}
    """
    if PurePath(file).suffix == ".safetensors":
        return {"next": f"workbench compress-model {shlex.quote(file)} {shlex.quote(_target(file))} --rms {OF_WEIGHTS:g}"}
    rules = [_rule(array["name"], array["start_with"]) for array in arrays if "start_with" in array]
    if not rules:
        return {}
    if len(rules) > MOST_RULES:
        return {"next": f"{compress(file)} --rel '*={RELATIVE:g}'"}
    return {"next": " ".join([compress(file), *rules, "--exact '*'"])}


def _rule(name: str, bound: float | None) -> str:
    given = f"{name}={RELATIVE if bound is None else bound:g}"
    return f"--{'rel' if bound is None else 'abs'} {shlex.quote(given)}"


def compress(file: str) -> str:
    """The command, with the archive's path."""
    return f"workbench compress {shlex.quote(file)} {shlex.quote(_target(file))}"


def beginning(data: Any) -> float | None:
    """The bound to begin with, in the unit of the data; None for data that are no numbers, or have no scale.

    >>> beginning(Field([0.0, 100.0])), beginning(Field([3, 4, 5])), beginning(Field([7.0, 7.0]))
    (0.5, 0.0, 0.0)
    """
    if isinstance(data, Trajectory):
        return beginning_of_trajectory(data)
    if isinstance(data, Particles):
        return _rounded(SHARE * float(data.spacing), whole=False)
    return beginning_of_values(data.values, data.mask) if isinstance(data, Field) else None


def beginning_of_trajectory(data: Trajectory) -> float:
    """A picometre, or half a step of a file that is rounded; without a unit, a thousandth of the spread of a frame.

    >>> beginning_of_trajectory(Trajectory([[[0.0, 0.0, 0.0]]], metadata={"units": {"length": "angstrom"}}))
    0.01
    """
    stated = data.metadata.get("precision")
    if isinstance(stated, int | float) and stated > 0:
        return 0.5 / stated
    if unit := unit_of(data):
        return float(f"{factor_between('pm', unit):.6g}")
    return _rounded(0.001 * float(np.std(data[0].positions)), whole=False)


def _of_trajectory(data: Trajectory) -> str:
    if isinstance(data.metadata.get("precision"), int | float):
        return "half a step of the file, which is rounded already: its numbers come back"
    return "a picometre" if unit_of(data) else "a thousandth of the spread of the first frame"


def beginning_of_values(values: Any, mask: Any = None) -> float | None:
    """The same for an array."""
    spread = spread_of(values, mask)
    if spread is None or not math.isfinite(spread.deviation):
        return None
    return _rounded(SHARE * spread.deviation, whole=np.dtype(values.dtype).kind in "iu")


def _rounded(bound: float, whole: bool) -> float:
    """Down to one digit, and for integers to an integer."""
    if not bound > 0 or (whole and bound < 1):
        return 0.0
    digit = 10.0 ** math.floor(math.log10(bound))
    return float(f"{math.floor(bound / digit * (1 + 1e-12)) * digit:.1g}")


def _of_field(field: Field, bound: float) -> str:
    about = f"--abs {bound:g}: a hundredth of the standard deviation"
    try:
        expected = predict(field, "interpolation", Absolute(bound)).rows[0]
    except WorkbenchError:   # integers, or hardly any values
        return about
    if expected.ratio_high < 1:   # the documents of an archive are larger than so few values
        return about
    return f"{about}; {_short(expected.ratio_low)} to {_short(expected.ratio_high)} times smaller"


def _short(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _of_particles(bound: float) -> str:
    return f"--abs {bound:g}: a hundredth of the mean spacing"


def _for_halos(particles: Particles) -> str:
    """The options that keep halos, where the file is of a cosmological simulation."""
    if not any(name in particles.metadata for name in FIGURES_OF_COSMOLOGY):
        return ""
    return f" --keep-clusters {HALO_LENGTH:g}" + ("" if particles.ids is None else " --order free")


def with_archive(file: str) -> dict[str, str]:
    """What to do with an archive.

    >>> with_archive("small.zip")
    {'next': 'workbench verify small.zip ORIGINAL, or workbench decompress small.zip OUT'}
    """
    name, folder = shlex.quote(file), PurePath(file).parent
    if is_series(folder):
        return {"next": f"workbench info {shlex.quote(str(folder))}, the series that this is a step of"}
    return {"next": f"workbench verify {name} ORIGINAL, or workbench decompress {name} OUT"}


def _target(file: str) -> str:
    """The archive's path: in this folder, named after the file.

    >>> _target("../snapshot_099.hdf5"), _target("runs/*.hdf5"), _target("fields.zarr/"), _target("./-x.nc")
    ('snapshot_099.zip', 'small.zip', 'fields.zip', 'small.zip')
    >>> _target("m000.full.mpicosmo.50")   # a number is the step, not the format
    'm000.full.mpicosmo.50.zip'
    """
    path = PurePath(file)
    stem, suffix = (path.name, "") if path.suffix[1:].isdigit() else (path.stem, path.suffix)
    unfit = not stem or stem.startswith("-") or any(mark in stem for mark in "*?[")   # an option, or a pattern
    return "small.zip" if unfit or suffix == ".zip" else f"{stem}.zip"
