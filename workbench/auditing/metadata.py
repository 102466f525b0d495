"""What members carry beside values: units, calendars, names. Without its unit, a number has lost its meaning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.archive.earlier_loss import INFO, OURS, QUANTISATION
from workbench.auditing.finding import FAILED, NOTE, WARNING, Finding
from workbench.auditing.sides import Side
from workbench.data.particles import Particles
from workbench.data.unit_grammar import factor_between
from workbench.data.units import unit_of
from workbench.errors import WorkbenchError, some_of

MEANING = ("units", "calendar")       # what the numbers mean
DESCRIBING = ("standard_name", "long_name", "cell_methods", "positive", "axis", "bounds", "grid_mapping")
OF_LOSS = {*OURS, *QUANTISATION}
OF_STORAGE = {"_FillValue", "missing_value", "scale_factor", "add_offset", "coordinates", "dtype", "_Unsigned"}


def of_metadata(name: str, original: Any, lossy: Any, bare: bool) -> Iterator[Finding]:
    """Attributes that the lossy member lacks or has changed; a bare array has none, which is a warning."""
    own, other = _attributes(original), _attributes(lossy)
    for key in MEANING:
        if key in own and own[key] != other.get(key) and str(own[key]).strip():
            kept = key in other
            how = f"{other[key]!r} in place of {own[key]!r}" if kept else f"lost; the original has {own[key]!r}"
            severity, kind = WARNING if bare and not kept else FAILED, f"{key} {'changed' if kept else 'lost'}"
            yield Finding(severity, name, kind, f"{key} {how}", {key: own[key]})
    if bare:
        return
    gone = [key for key in DESCRIBING if key in own and key not in other]
    if gone:
        yield Finding(WARNING, name, "attributes lost", f"its attributes {', '.join(gone)} are lost", {"attributes": gone})
    rest = sorted(set(own) - set(other) - OF_LOSS - OF_STORAGE - {*MEANING, *DESCRIBING})
    if rest:
        words = f"it lacks {len(rest)} more attributes: {some_of(rest, 5)}"
        yield Finding(NOTE, name, "attributes", words, {"attributes": rest})


def of_units(name: str, original: Particles, lossy: Particles) -> Iterator[Finding]:
    """The unit of lengths that the lossy particles lack or have changed."""
    own, other = unit_of(original), unit_of(lossy)
    if not own or own == other:
        return
    if not other:
        yield Finding(WARNING, name, "units lost", f"the unit of lengths is lost; the original has {own!r}", {"units": own})
    elif not _is_same(own, other):
        words = f"the unit of lengths is {other!r} in place of {own!r}"
        yield Finding(FAILED, name, "units changed", words, {"units": own})


def _is_same(unit: str, other: str) -> bool:
    try:
        return math.isclose(factor_between(unit, other), 1, rel_tol=1e-6)
    except WorkbenchError:   # not the same kind of unit, or none that is known
        return False


def of_sides(original: Side, lossy: Side, missing: list[str], extra: list[str], some: bool) -> Iterator[Finding]:
    """Members that only one side has, and parts of files that were not read; only `some` members may be wanted."""
    coordinates = [name for name in missing if name in original.coordinates]
    for name in missing:
        if name in coordinates and lossy.bare:
            continue
        what = "this coordinate" if name in coordinates else "this variable"
        yield Finding(FAILED, name, "missing member", f"the lossy file lacks {what}", {})
    if coordinates and lossy.bare:
        words = f"the lossy file is a bare array: it has no {', '.join(coordinates)}"
        yield Finding(WARNING, "", "coordinates lost", words, {"coordinates": coordinates})
    data = [name for name in extra if name != INFO]
    if data:
        yield Finding(NOTE, "", "extra members", f"only the lossy file has {some_of(data, 8)}", {"members": data})
    for side in (original, lossy):
        for part in side.left_out:
            words = f"not compared, since it was not read from {side.name}: {part}"
            yield Finding(FAILED if side is original and not some else NOTE, "", "not compared", words, {})
    lost = sorted(set(original.attributes) - set(lossy.attributes))
    if lost and not lossy.bare:
        words = f"the lossy file lacks {len(lost)} attributes of the whole: {some_of(lost, 6)}"
        yield Finding(NOTE, "", "attributes", words, {"attributes": lost})


def _attributes(member: Any) -> Mapping[str, Any]:
    metadata = getattr(member, "metadata", {})
    found = dict(metadata.get("attributes", {})) if isinstance(metadata.get("attributes", {}), Mapping) else {}
    if isinstance(metadata.get("units"), str) and not metadata["units"].startswith("not stated"):
        found.setdefault("units", metadata["units"])
    return found
