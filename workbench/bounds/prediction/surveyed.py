"""What is known of a field that was looked at, to predict any codec at any bounds: samples of its parts, and its range.

A field in memory is one part. Of others, parts that are spread over them are read; how much these differ widens the
intervals. The range of all values must be known, so such a field is read once before.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from workbench.archive import choice
from workbench.archive.documents import Outline, documents_nbytes
from workbench.bounds.prediction.expert import Expert
from workbench.bounds.prediction.features import LEAST_BITS, LEAST_NOISE, Counts, features_of
from workbench.bounds.prediction.gaps import bytes_of_gaps
from workbench.bounds.prediction.prediction import Predicted, Prediction, unlike
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.sources import FieldInParts
from workbench.codecs import Codec
from workbench.data import Field
from workbench.data.labelled import width_in_file
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, Relative
from workbench.run.chunked_field import ChunkedField, grid, parts_at
from workbench.slabs import Slices

_documents_nbytes = functools.lru_cache(64)(documents_nbytes)   # steps of a series, and bounds, have the same documents

Figures = Mapping[str, np.ndarray]   # by name, three rows each: what is expected, and the ends of its interval

PARTS = 12
NINETY = 1.645           # standard deviations on both sides of a mean that contain 90%
OF_CHUNK = 46            # bytes that each chunk takes besides those of the codec,
OF_AXIS = 8              # and for each of its axes
OF_STORED = 160          # bytes besides the values, at most, where a codec stores them as they are
FEW = 64                 # values, of which codecs may always store more than is foreseen
FINEST = 4e-6            # of the range: smaller bounds are in no training
RANGES = 1e-140, 1e140   # of values, whose squares are numbers
BEYOND = 1e3             # times the range: larger bounds make no difference
MOST_REMEMBERED = 4      # fields whose surveys are kept


@dataclass(frozen=True)
class Whole:
    """What must be known of a whole field, besides samples: the figures of an archive follow from those of its values.

    `gaps` are bytes for masks and what they hide.
    """

    outline: Outline
    count: int       # of valid values
    ends: np.ndarray
    gaps: float = 0.0

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.outline.shape)

    @property
    def dtype(self) -> np.dtype:
        """Their type."""
        return self.outline.dtype

    @property
    def width(self) -> int:
        """The bytes of a value as its file stored it, which ratios count."""
        return width_in_file(self.dtype, self.outline.metadata)

    @property
    def peak(self) -> float:
        """The range of the values."""
        return float(self.ends[1]) - float(self.ends[0])

    def limits(self, bounds: Iterable[Bound]) -> np.ndarray:
        """The limit for each bound."""
        found = []
        low, high = self.ends.tolist()
        for bound in bounds:
            limit = bound.limit_between(low, high)
            if limit.relative or not limit.value > 0:
                raise WorkbenchError(f"wb.predict takes bounds above 0, absolute or relative to the range; got {bound!r}")
            found.append(limit.value)
        return np.array(found)

    def within_reason(self, limits: np.ndarray) -> np.ndarray:
        """The limits, none below the resolution of the values, nor far beyond their range: these make no difference."""
        finest = max(float(np.abs(self.ends).max()) * float(np.finfo(self.dtype).eps) / 16, self.peak * 1e-18)
        found: np.ndarray = np.clip(limits, finest, BEYOND * self.peak)
        return found

    def finest(self, limits: np.ndarray) -> np.ndarray:
        """Which limits are so fine that codecs may store many values as they are: their experts have seen none of these."""
        return np.asarray(limits < FINEST * self.peak)

    def beside(self, bound: Bound, codec: Codec) -> float:
        """The bytes of an archive besides those of the codec: documents, masks and what they hide, frames of chunks."""
        chunks = -(-self.size // codec.chunk_values)
        documents = _documents_nbytes(self.outline, codec, relative=isinstance(bound, Relative))
        return documents + self.gaps + chunks * (OF_CHUNK + OF_AXIS * len(self.outline.shape))

    def rows(self, asked: Sequence[Bound], limits: np.ndarray, figures: Figures, codec: Codec) -> tuple[Predicted, ...]:
        """What is predicted at each bound, given bits, noise and the loss of similarity."""
        as_they_are = 8.0 * self.dtype.itemsize   # bits, at most, but for what a codec takes besides
        bits = np.minimum(figures["bits"], as_they_are)
        stored = self.finest(limits) | (figures["bits"][2] > as_they_are) | (self.size < FEW)
        bits[2] = np.where(stored, as_they_are + 8 * OF_STORED / self.size, bits[2])
        beside = self.beside(asked[0], codec)
        nbytes = beside + bits * self.size / 8
        ratio = self.count * self.width / nbytes
        seen = self.within_reason(limits)
        psnr = 20 * np.log10(self.peak / seen) - 10 * np.log10(figures["noise"] / 3)
        ssim = np.clip(1 - figures["loss"], -1, 1) if "loss" in figures else np.full(ratio.shape, math.nan)
        columns = [(middle, np.minimum(*ends), np.maximum(*ends)) for middle, *ends in (ratio, psnr, ssim)]
        each = [part.tolist() for column in columns for part in column]
        return tuple(Predicted(bound, *numbers) for bound, *numbers in zip(asked, limits.tolist(), *each, strict=True))


class SurveyedPart:
    """A part of a field that was looked at once; without the part itself."""

    def __init__(self, part: Field) -> None:
        self.shape = part.shape
        self.survey = Survey(part)
        self._counts = Counts(self.survey, np.empty(0))
        self._looking = threading.RLock()   # samples are taken when they are first needed

    def figures(self, limits: np.ndarray, expert: Expert) -> tuple[Figures, float]:
        """Bits and noise at each limit, with the ends of their intervals, as three rows; and how far the data are off."""
        with self._looking:
            self.survey.look_at(expert.starts if expert.shape == self.shape else None)
            if not np.array_equal(limits, self._counts.limits):
                self._counts = Counts(self.survey, limits)
            found = features_of(self._counts, expert.made)
        figures, distance = expert.figures(limits, found)
        if not self._has_windows:
            figures.pop("loss", None)
        return figures, distance

    @property
    def _has_windows(self) -> bool:
        sides = [n for n in self.shape if n > 1]
        return len(sides) > 1 and min(sides[-3:]) >= 7


class Surveyed:
    """What is known of a field that was looked at once; without the field itself.

    `flat` is the number of parts, beside those given, whose values do not differ.
    """

    def __init__(self, field: Field | ChunkedField, whole: Whole, parts: Sequence[SurveyedPart], flat: int = 0) -> None:
        low, high = RANGES
        if not low < whole.peak < high:
            raise WorkbenchError(
                f"wb.predict needs values that differ, by {low:g} to {high:g}; all of {field!r} lie within {whole.peak:g}"
            )
        if not parts:
            raise WorkbenchError(f"wb.predict needs values that differ in some part; got none in {field!r}")
        self.whole, self.parts, self._flat = whole, parts, flat

    @classmethod
    def of(cls, field: Field) -> Surveyed:
        """Of a field in memory."""
        part = SurveyedPart(field)
        _require_values(part.survey.count, field)
        gaps = bytes_of_gaps(field, part.survey.valid)
        return cls(field, Whole(Outline.of(field), part.survey.count, part.survey.ends, gaps), [part])

    @classmethod
    def of_parts(cls, source: FieldInParts) -> Surveyed:
        """Of a field in parts."""
        field, known = source.field, source.survey
        _require_values(known.statistics.count, field)
        parts = [(part, SurveyedPart(part)) for part in parts_at(source.executor, field, _places(field))]
        gaps = sum(bytes_of_gaps(part, seen.survey.valid) for part, seen in parts)
        gaps *= math.prod(field.shape) / sum(seen.survey.size for _, seen in parts)
        seen = [each for _, each in parts if each.survey.count]
        varied = [part for part in seen if part.survey.reach > 0]
        whole = Whole(Outline.of(field), known.statistics.count, known.ends, gaps)
        return cls(field, whole, varied, len(parts) - len(varied))

    def at(self, bounds: Iterable[Bound], expert: Expert) -> Prediction:
        """The prediction at these bounds, by an expert on a codec."""
        asked = [bound if bound.unit is None else bound.for_data(self._described) for bound in bounds]
        limits = self.whole.limits(asked)
        figures, distance = self.figures(self.whole.within_reason(limits), expert)
        notes = [unlike(distance)] if distance > 1 else []
        if self.whole.finest(limits).any():
            notes.append(f"within bounds below {FINEST:g} of the range a codec may store many values as they are: ratios "
                         "may be as low as without loss")
        return Prediction(expert.made, self.whole.rows(asked, limits, figures, expert.made), distance, tuple(notes))

    @property
    def _described(self) -> Field:
        """A field that says what the unit is."""
        return Field(np.zeros(1), metadata=self.whole.outline.metadata)

    def figures(self, limits: np.ndarray, expert: Expert) -> tuple[Figures, float]:
        """What an expert says at these limits, and the distance of the data; means over parts, where SSIM is not known."""
        each = [part.figures(limits, expert) for part in self.parts]
        if self.parts[0].shape == self.whole.outline.shape:
            return each[0]
        least = {"bits": LEAST_BITS, "noise": LEAST_NOISE}
        figures = {name: self._mean(np.array([found[name] for found, _ in each]), least[name]) for name in least}
        return figures, float(np.median([distance for _, distance in each]))

    def _mean(self, figures: np.ndarray, least: float) -> np.ndarray:
        """The mean over parts, and the ends of its interval, which allows for the differences between parts."""
        flat = np.full((self._flat, *figures.shape[1:]), least)
        together = np.concatenate([figures, flat])
        middle = together[:, 0].mean(axis=0)
        own = np.log(figures[:, 2] / figures[:, 0]).mean(axis=0)
        others = NINETY * together[:, 0].std(axis=0) / (middle * math.sqrt(len(together)))
        half = np.hypot(own, others)
        return np.array([middle, middle * np.exp(-half), middle * np.exp(half)])


_REMEMBERED: WeakKeyDictionary[Field, Surveyed] = WeakKeyDictionary()
_REMEMBERING = threading.Lock()


def surveyed(data: Field | FieldInParts) -> Surveyed:
    """What is known of a field; remembered for the last few in memory without gaps, as long as they exist.

    The values of a field never change. A field with gaps is surveyed on a filled copy, which is not kept.

    >>> field = Field(np.sin(np.arange(4096.0)))
    >>> surveyed(field) is surveyed(field)
    True
    """
    if isinstance(data, FieldInParts):
        return Surveyed.of_parts(data)
    with _REMEMBERING:
        if (known := _REMEMBERED.get(data)) is not None:
            return known
    found = Surveyed.of(data)
    if found.whole.count == found.whole.size:
        with _REMEMBERING:
            while len(_REMEMBERED) >= MOST_REMEMBERED:
                _REMEMBERED.pop(next(iter(_REMEMBERED)))
            _REMEMBERED[data] = found
    return found


def _require_values(count: int, field: Field | ChunkedField) -> None:
    if not count:
        raise WorkbenchError(f"wb.predict needs values; all of {field!r} are masked or not finite")


def _places(field: ChunkedField) -> list[Slices]:
    """The middles of parts that are spread over the field."""
    chunks = grid(field.shape, field.chunk_shape)
    count = min(PARTS, len(chunks))
    return [_middle(chunks[int((number + 0.5) * len(chunks) / count)]) for number in range(count)]


def _middle(place: Slices) -> Slices:
    inside = choice.middle([part.stop - part.start for part in place])
    return tuple(slice(part.start + own.start, part.start + own.stop) for part, own in zip(place, inside, strict=True))
