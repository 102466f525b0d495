"""The promise about each array of an archive, how it was checked, and the figures of the check."""

from __future__ import annotations

import html
import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_UP, Context
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.archive.derivation import Derivation
from workbench.clusters.keep.words import listed
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Limit, Limits, PerSlice, Relative, SliceLimits
from workbench.guarantees.enforce import Figures
from workbench.guarantees.guarantee import Promised, known
from workbench.guarantees.per_slice import stated_bound, stated_limit
from workbench.slabs import Slices

CHECKED = "every value was decoded from the stored bytes and compared exactly with the original when the archive was made"
DERIVED = (
    "the promise was derived from those of the sources, and holds if theirs do; no original was compared: the stored bytes "
    "were decoded and compared with the combination of the decoded sources when the archive was made"
)
CONVERTED = (
    "every value was decoded from the stored bytes and compared, bit for bit, with the archive that it was made from, and "
    "that with the original when it was made"
)
LISTED, LONGEST = 32, 2000   # reasons, and letters of one, that a certificate states
NONE: Mapping[str, Any] = {"invalid": 0, "corrected": 0, "largest_error": 0.0, "chunks_stored_exactly": {}}
Counts = Mapping[str, Mapping[str, int]]   # by array
COUNTS = ("values", "chunks")   # figures that follow from the array
SIX_DIGITS = Context(prec=6, rounding=ROUND_UP)
SHARE = "largest_share_of_limit"   # the largest error as a share of the limit of its slice, where slices have limits


@dataclass(frozen=True)
class Promise:
    """The promise about one array. `limit` is the bound for these data; without a bound, the array is kept bit for bit."""

    array: str
    bound: Bound | None
    limit: Limits | None
    keep: tuple[Mapping[str, Any], ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    derived: Derivation | None = None   # of a combination of archives: where the limit comes from

    def describe(self) -> str:
        """The promise in words.

        >>> from workbench.guarantees import Absolute
        >>> Promise("positions", Absolute(0.5), Limit("absolute", 0.5)).describe()
        'positions: every value within 0.5 of the original'
        """
        words = "every value exactly as it was, bit for bit" if self.bound is None else self.bound.describe()
        kept = [f"; kept: {_class_of(kind).describe(kind)}" for kind in self.keep]
        if self.derived is not None:
            words += f", where the original is {self.derived.expression}, of the originals of its sources"
        return f"{self.array}: {words}{''.join(kept)}"

    def limit_at(self, place: Slices) -> Limit | None:
        """The limit of a chunk."""
        return None if self.limit is None else self.limit.at(place)

    def valid_values(self, stored: int) -> int:
        """The number of finite, unmasked values among `stored` ones, by the certificate's count of the others.

        >>> Promise("values", None, None, figures={"invalid": 3}).valid_values(10)
        7
        """
        invalid = self.figures.get("invalid", 0)
        return stored - invalid if isinstance(invalid, int) and 0 <= invalid <= stored else stored

    def to_dict(self) -> dict[str, Any]:
        """The promise, ready for JSON."""
        return {
            "array": self.array,
            "promise": self.describe(),
            "bound": self.bound and self.bound.to_dict(),
            "limit": self.limit and self.limit.to_dict(),
            "keep": [dict(kind) for kind in self.keep],
            "figures": dict(self.figures),
            **({} if self.derived is None else {"derived": self.derived.to_dict()}),
        }

    def to_document(self) -> dict[str, Any]:
        """The promise as an archive states it: without what is zero or follows from the rest."""
        figures = {name: figure for name, figure in self.figures.items() if figure or name not in NONE}
        figures = {name: figure for name, figure in figures.items() if name not in COUNTS}
        if "largest_error" in figures:
            figures["largest_error"] = stated_error(figures["largest_error"], self.limit)
        parts = {
            "bound": self.bound and self.bound.to_dict(),
            "limit": None if self.limit == _own_limit(self.bound) else self.to_dict()["limit"],
            "keep": [dict(kind) for kind in self.keep],
            "derived": self.derived and self.derived.to_dict(),
        }
        stated = {"figures": figures} if self.figures else {}
        return {"array": self.array, **{name: part for name, part in parts.items() if part}, **stated}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any], counts: Counts = MappingProxyType({})) -> Promise:
        """The promise that `to_dict` or `to_document` described; `counts` are the figures that follow from the arrays."""
        try:
            array, bound, limit, figures = (described.get(name) for name in ("array", "bound", "limit", "figures"))
            known = None if bound is None else stated_bound(bound)
            promised = _own_limit(known) if limit is None else stated_limit(limit)
            derived = None if (stated := described.get("derived")) is None else Derivation.from_dict(stated)
            if derived is not None and derived.limit != promised:
                raise WorkbenchError("the certificate contradicts itself: a derived limit must be the sum of its parts")
            zero = NONE if derived is None else {name: figure for name, figure in NONE.items() if name != "largest_error"}
            return cls(
                str(described["array"]),
                known,
                promised,
                tuple(dict(kind) for kind in described.get("keep", ())),
                {} if figures is None else _checked_figures({**zero, **figures, **counts.get(str(array), {})}),
                derived,
            )
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise WorkbenchError(f"the certificate of the archive cannot be read: {error!r}") from None


@dataclass(frozen=True, repr=False)
class Certificate:
    """The promises of an archive, one for each array."""

    promises: tuple[Promise, ...]
    notes: tuple[str, ...] = ()   # what was unusual about the bound or the linking length
    choice: str = ""              # how the codec was chosen, if by trial
    history: tuple[Mapping[str, Any], ...] = ()   # the archives that this one was made from, the oldest first

    def __getitem__(self, array: str) -> Promise:
        """The promise about an array."""
        for promise in self.promises:
            if promise.array == array:
                return promise
        names = ", ".join(promise.array for promise in self.promises)
        raise WorkbenchError(f"array must be one of {names}; got {array!r}")

    @property
    def derived(self) -> bool:
        """Whether a promise follows from those of other archives, so that no original was compared."""
        return any(promise.derived is not None for promise in self.promises)

    @property
    def checked(self) -> str:
        """What the promises rest on, in words."""
        return DERIVED if self.derived else CONVERTED if self.history else CHECKED

    def to_dict(self) -> dict[str, Any]:
        """The certificate, ready for JSON."""
        return {"checked": self.checked, "promises": [promise.to_dict() for promise in self.promises], **self._remarks()}

    def to_document(self) -> dict[str, Any]:
        """The certificate as an archive states it."""
        return {"promises": [promise.to_document() for promise in self.promises], **self._remarks()}

    def _remarks(self) -> dict[str, Any]:
        notes = {"notes": list(self.notes)} if self.notes else {}
        history = {"history": [dict(one) for one in self.history]} if self.history else {}
        return notes | ({"choice": self.choice} if self.choice else {}) | history

    @property
    def _made_from(self) -> list[str]:
        """The archives that this one was made from, in words."""
        return [
            f"made from {one.get('archive')} (checksum {one.get('checksum')}; {one.get('codec')}, written with "
            f"{one.get('versions')}), {one.get('encoding')}" for one in self.history
        ]

    @classmethod
    def from_dict(cls, described: Any, counts: Counts = MappingProxyType({})) -> Certificate:
        """The certificate that `to_dict` or `to_document` described."""
        if not isinstance(described, Mapping) or not isinstance(described.get("promises"), list):
            raise WorkbenchError("the archive has no readable certificate")
        notes = tuple(str(note) for note in listed(described, "notes"))
        promises = tuple(Promise.from_dict(promise, counts) for promise in described["promises"])
        history = tuple({str(name): str(text)[:LONGEST] for name, text in one.items()}
                        for one in listed(described, "history") if isinstance(one, Mapping))
        return cls(promises, notes, str(described.get("choice", "")), history)

    def __str__(self) -> str:
        lines = [line for promise in self.promises for line in (promise.describe(), *_figure_lines(promise))]
        notes = (f"note: {note}" for note in self.notes)
        said = [f"  ({one})" for one in (self.checked, self.choice, *self._made_from) if one]
        return "\n".join([f"{self._title}:", *(f"  {line}" for line in lines), *said, *notes])

    __repr__ = __str__

    @property
    def _title(self) -> str:
        return "promised, as follows from the promises of other archives" if self.derived else "promised, and checked"

    def _repr_html_(self) -> str:
        items = []
        for promise in self.promises:
            figures = "; ".join(line.strip() for line in _figure_lines(promise))
            items.append(f"<li>{html.escape(promise.describe())}<br><small>{html.escape(figures)}</small></li>")
        notes = "".join(f"<p><strong>note:</strong> {html.escape(note)}</p>" for note in self.notes)
        words = [html.escape(one) for one in (self.checked, self.choice, *self._made_from) if one]
        said = f"<small>{'<br>'.join(words)}</small>"
        return f"<div><strong>{self._title}</strong><ul>{''.join(items)}</ul>{said}{notes}</div>"


def stated_error(error: float, limit: Limits | None) -> float:
    """The largest error as an archive states it: rounded up to six digits, but not beyond the limit.

    >>> stated_error(0.0123456789, Limit("absolute", 0.02)), stated_error(0.0123456789, Limit("absolute", 0.01234568))
    (0.0123457, 0.01234568)
    """
    values = limit.values if isinstance(limit, SliceLimits) else () if limit is None else (limit.value,)
    most = max(values, default=sys.float_info.max)
    return min(float(SIX_DIGITS.create_decimal(repr(float(error)))), max(most, error))


def share_of(error: float, limit: Limit) -> float:
    """An error as a share of its limit."""
    return error / limit.value if limit.value else error


def _own_limit(bound: Bound | None) -> Limits | None:
    """The limit that follows from a bound alone, without the values."""
    if isinstance(bound, PerSlice):
        return bound.own_limits
    return None if bound is None or isinstance(bound, Relative) else bound.limit(np.empty(0))


def summed(figures: Iterable[Figures]) -> dict[str, Any]:
    """The figures of all chunks together."""
    chunks = list(figures)
    reasons = Counter(f.stored_exactly for f in chunks if f.stored_exactly)
    remarks = Counter(f.remark for f in chunks if f.remark)
    return {
        "values": sum(f.values for f in chunks),
        "invalid": sum(f.invalid for f in chunks),
        "corrected": sum(f.corrected for f in chunks),
        "largest_error": max((f.largest_error for f in chunks), default=0.0),
        "chunks": len(chunks),
        "chunks_stored_exactly": _few(reasons),
        **({"remarks": _few(remarks)} if remarks else {}),
    }


def _few(counts: Counter[str]) -> dict[str, int]:
    """What most chunks have in common: the document must not grow with their number."""
    listed = {reason: number for reason, number in counts.items() if len(reason) <= LONGEST}
    if len(listed) < len(counts) or len(listed) > LISTED:
        listed = dict(Counter(listed).most_common(LISTED))
        listed["others"] = counts.total() - sum(listed.values())
    return listed


def _checked_figures(figures: Any) -> dict[str, Any]:
    """Figures that can be shown: finite numbers, and the numbers of chunks stored exactly or with a remark, for each."""
    counts = {name: figures.get(name, {}) for name in ("chunks_stored_exactly", "remarks")}
    plain = {**figures, **dict.fromkeys(counts, 0)}
    numbers = list(itertools.chain(plain.values(), *(count.values() for count in counts.values())))
    if not all(isinstance(number, int | float) and abs(number) <= sys.float_info.max for number in numbers):
        raise WorkbenchError("its figures must be finite numbers")
    return dict(figures)


def _figure_lines(promise: Promise) -> list[str]:
    figures = promise.figures
    if not figures:
        return []
    values, corrected = figures.get("values", 0), figures.get("corrected", 0)
    error = f"largest error {figures.get('largest_error', 0):.6g}; " if promise.derived is None else ""
    lines = [f"  {error}{corrected:,} of {values:,} values were corrected"]
    if promise.derived is not None:
        lines += [f"  {row}" for row in promise.derived.rows()]
    elif isinstance(promise.limit, SliceLimits):
        ends, share = (min(promise.limit.values), max(promise.limit.values)), figures.get(SHARE, 0)
        lines.append(f"  limits of slices {ends[0]:.6g} to {ends[1]:.6g}; the largest error is {share:.4g} of its limit")
    if "own_bytes" in figures:
        lines.append(f"  about {figures['own_bytes']:,} bytes by a codec that only lossbench reads")
    if figures.get("invalid"):
        where = ", and kept bit for bit" if promise.derived is None else " in a source, and missing"
        lines.append(f"  {figures['invalid']:,} values are masked or not finite{where}")
    for reason, count in figures.get("chunks_stored_exactly", {}).items():
        lines.append(f"  {count:,} of {figures.get('chunks', 0):,} chunks are stored exactly, because {reason}")
    for remark, count in figures.get("remarks", {}).items():
        lines.append(f"  {count:,} of {figures.get('chunks', 0):,} chunks are {remark}")
    for kept in promise.keep:
        lines += [f"  {name}: {text}" for name, text in _class_of(kept).rows(kept)]
    return lines


def _class_of(kept: Mapping[str, Any]) -> type[Promised]:
    """What says a promise beyond the bound in words: its class or, where that is not imported, its kind alone."""
    return known(kept.get("kind")) or Promised
