"""What is promised of a member: the rule of the caller, or what the lossy file states itself.

A statement that the original has, too, is about an earlier loss, and promises nothing of the difference. What a format
states of several steps adds up. Packing, scale-offset filters and trajectories round once more when numbers are computed
from what is stored: there, a promise has two units in the last place of the largest value beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.grib import half_steps
from workbench.archive.collection.plugin_filters import losses_of_filters
from workbench.archive.earlier_loss import earlier_loss
from workbench.archive.stated_filters import Stated, bound_of, loss_of_codecs
from workbench.auditing.sides import Side
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Exact, Limit, Limits, PointwiseRelative, Relative

OF_RULE, OF_FILE = "the rule given", "the lossy file"
ROUNDINGS = 2   # units in the last place


@dataclass(frozen=True)
class Promise:
    """A promise in words, its bound (None if nothing is bounded), and who made it.

    `limits` are those of an archive, which may differ from slice to slice; `rounds` allows for one more rounding.
    """

    words: str
    bound: Bound | None
    source: str
    rounds: bool = False
    limits: Limits | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the same values are promised."""
        return self.bound is not None and self.bound.eb == 0 and not self.rounds

    @property
    def needs_range(self) -> bool:
        """Whether its limit follows from the values."""
        return self.limits is None and (self.rounds or isinstance(self.bound, Relative))

    def limit(self, low: float, high: float, dtype: np.dtype) -> Limits | None:
        """The limit for values between these ends, that are decoded as this type."""
        if self.limits is not None:
            return self.limits
        if self.bound is None:
            return None
        limit = self.bound.limit_between(low, high)
        if not self.rounds or limit.relative or dtype.kind != "f":
            return limit
        largest = min(max(abs(low), abs(high)), float(np.nextafter(np.finfo(dtype).max, dtype.type(0))))
        room = ROUNDINGS * float(np.spacing(dtype.type(largest)))
        return Limit("absolute", limit.value + room)


def ruled(bound: Bound) -> Promise:
    """The promise of a rule."""
    return Promise(_words(bound), bound, OF_RULE)


class Statements:
    """What one side states of the errors of its members."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._filters = losses_of_filters(side.path) if side.path is not None and side.archive is None else {}
        self._packing = half_steps(side.path) if side.path is not None and side.archive is None else {}

    def of(self, name: str, member: Any, own: str = "") -> list[Stated]:
        """The statements about a member, or about an array of particles (`own`)."""
        metadata = getattr(member, "metadata", {})
        described = metadata.get("attributes", metadata)
        if own:
            described = metadata.get(own) or metadata.get("losses", {}).get(own, {})
        found = []
        if isinstance(described, Mapping) and (loss := earlier_loss(described)) is not None:
            found.append(Stated(loss[0], bound_of(loss[1]), rounds=loss[0].startswith("Lossy compression filter DScale")))
        found += self._filters.get(name, [])
        found += _of_zarr(self.side.path, name)
        if (step := _step(metadata)) is not None:
            found.append(Stated(f"packed in steps of {step:g}", Absolute(step / 2), rounds=True))
        if (half := self._packing.get(name.rpartition("/")[2])) is not None:
            found.append(Stated(f"GRIB packing in steps of {2 * half:g}", Absolute(half), rounds=True))
        if own == "positions" and (precision := metadata.get("precision")):
            found.append(Stated(f"xtc with {precision:g} steps a unit", Absolute(0.5 / precision), rounds=True))
        return found


def stated(original: Sequence[Stated], lossy: Sequence[Stated], largest: Callable[[], float]) -> Promise | None:
    """The promise that follows from the statements of a lossy file that its original does not share.

    `largest` is the size of the largest value, which bounds of several kinds together need.
    """
    new = [one for one in lossy if one not in original]
    bounds = [one.bound for one in new if one.bound is not None]
    if not new:
        return None
    words = "; ".join(one.words for one in new)
    if len(bounds) < len(new):
        return Promise(words, None, OF_FILE)
    rounds = any(one.rounds for one in new)
    return Promise(words, _together(bounds, largest), OF_FILE, rounds)


def of_archive(archive: Archive, array: str) -> Promise | None:
    """The promise in the certificate of an archive about one of its arrays."""
    try:
        certified = archive.certificate[array]
    except WorkbenchError:
        return None
    bound = Exact() if certified.bound is None else certified.bound
    return Promise(f"certificate: {_words(bound)}", bound, OF_FILE, limits=certified.limit or Limit("absolute", 0.0))


def _words(bound: Bound) -> str:
    """A bound, as briefly as a table needs it."""
    return "exact" if getattr(bound, "eb", 1) == 0 else bound.describe().removeprefix("every value ")


def archive_of(side: Side, name: str) -> Archive | None:
    """The archive of a member, if it is in one."""
    return side.archive[name] if isinstance(side.archive, Collection) else side.archive


def _together(each: Sequence[Bound], largest: Callable[[], float]) -> Bound:
    """The bound of several steps one after the other."""
    if len(each) == 1:
        return each[0]
    kinds = {type(one) for one in each if one.eb > 0}
    if kinds <= {PointwiseRelative}:
        total = float(np.prod([1 + one.eb for one in each])) - 1
        return PointwiseRelative(total) if total < 1 else Absolute(total * largest())
    if kinds <= {Absolute}:
        return Absolute(sum(one.eb for one in each))
    size = largest()
    return Absolute(sum(_absolute(one, size) for one in each))


def _absolute(bound: Bound, largest: float) -> float:
    """An absolute error that a bound does not exceed where no value is larger: the range is twice that at most."""
    size = {PointwiseRelative: largest, Relative: 2 * largest}.get(type(bound), 1.0)
    return float(bound.eb) * size


def _step(metadata: Mapping[str, Any]) -> float | None:
    """The step of integers that a file has packed floats into."""
    encoding = metadata.get("encoding", {})
    factor, dtype = encoding.get("scale_factor"), str(encoding.get("dtype", ""))
    packed = dtype[1:2] in ("i", "u") and isinstance(factor, int | float)
    return abs(float(factor)) if packed and factor else None


def _of_zarr(path: Path | None, name: str) -> list[Stated]:
    """The statements of the codecs of a Zarr array in a folder."""
    if path is None or not path.is_dir():
        return []
    for folder in (path / name, path):
        for document in ("zarr.json", ".zarray"):
            if (file := folder / document).is_file():
                described = json.loads(file.read_bytes())
                codecs = described.get("codecs") or [*(described.get("filters") or []), described.get("compressor") or {}]
                if described.get("node_type", "array") == "array":
                    return loss_of_codecs(codecs)
    return []
