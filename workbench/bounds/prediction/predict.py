"""`wb.predict`: ratio, PSNR and SSIM at many bounds, each with an interval, without compressing the whole."""

from __future__ import annotations

import html
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench import codecs
from workbench.archive.documents import Outline, documents_nbytes
from workbench.bounds.prediction.expert import Expert, shipped
from workbench.bounds.prediction.features import Counts, features_of
from workbench.bounds.prediction.gaps import bytes_of_gaps
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.run import Run, label_of
from workbench.bounds.sweep import bounds_of, require_data
from workbench.charts.table import data_frame
from workbench.codecs import Codec
from workbench.data import Field
from workbench.data.labelled import width_in_file
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.json_values import json_value

Figures = Mapping[str, np.ndarray]   # by name, three rows each: what is expected, and the ends of its interval

OF_CHUNK = 70            # bytes that each chunk takes besides those of the codec
RANGES = 1e-140, 1e140   # of values, whose squares are numbers
BEYOND = 1e3             # times the range: larger bounds make no difference
MOST_REMEMBERED = 4      # fields whose surveys are kept


@dataclass(frozen=True)
class Predicted:
    """What is expected at one bound, with the ends of 90% intervals, as measured on kinds of data left out of the training.

    SSIM is NaN for fields of one axis.
    """

    bound: Bound
    limit: float
    ratio: float
    ratio_low: float
    ratio_high: float
    psnr: float
    psnr_low: float
    psnr_high: float
    ssim: float
    ssim_low: float
    ssim_high: float

    def to_dict(self) -> dict[str, Any]:
        """The figures in one flat dictionary."""
        found = {name: value for name, value in asdict(self).items() if name != "bound"}
        return {"bound": self.bound.kind, "eb": self.bound.eb, **found}


@dataclass(frozen=True, repr=False)
class Prediction:
    """The rows of a prediction, one for each bound.

    `distance` says how far the data are from those of the training: above 1 they are unlike all of them (`unlike`), and the
    intervals cannot be trusted.
    """

    codec: Codec
    rows: tuple[Predicted, ...]
    distance: float
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Predicted]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Predicted:
        return self.rows[place]

    @property
    def unlike(self) -> bool:
        """Whether the data are unlike everything that the expert was trained on."""
        return self.distance > 1

    def to_dict(self) -> dict[str, Any]:
        """Everything in JSON types."""
        rows = [json_value(row.to_dict()) for row in self.rows]
        return {"codec": self.codec.to_dict(), "unlike": self.unlike, "distance": self.distance, "notes": list(self.notes),
                "rows": rows}

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame."""
        return data_frame([row.to_dict() for row in self.rows])

    def __repr__(self) -> str:
        lines = [f"Prediction for {label_of(self.codec)}{', of data unlike the training' if self.unlike else ''}"]
        lines += [
            f"  {row.bound.kind} {row.bound.eb:.6g}: ratio {row.ratio:.3g} ({row.ratio_low:.3g} to {row.ratio_high:.3g}), "
            f"PSNR {row.psnr:.1f} dB ({row.psnr_low:.1f} to {row.psnr_high:.1f})"
            for row in self.rows
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """The same text, for notebooks."""
        return f"<pre>{html.escape(repr(self))}</pre>"


def predict(data: Any, codec: str | Codec, bounds: Bound | Iterable[Bound], *, expert: Expert | None = None) -> Prediction:
    """The ratio, PSNR and SSIM of a field at each bound, from samples; nothing is compressed as a whole.

    A field is surveyed once, however many bounds and codecs it is predicted for. `expert` is one from `wb.bounds.train`, or
    one that knows an earlier time step (`wb.bounds.calibrated`); by default the one that comes with the package, for sz3,
    zfp, sperr, prequantised and interpolation with their usual options.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((128, 128), 3, seed=1)
    >>> row = predict(waves, "prequantised", wb.Absolute(0.01)).rows[0]
    >>> true = wb.compress(waves, wb.Absolute(0.01), "prequantised").ratio
    >>> row.ratio_low < true < row.ratio_high
    True
    """
    field = require_data(data)
    if not isinstance(field, Field):
        columns = ", and wb.predict(particles.velocities, ...) for velocities" if field.velocities is not None else ""
        raise WorkbenchError(f"wb.predict is for fields; got {field!r}: use wb.sweep or wb.find_bound{columns}")
    field.require_floats("wb.predict")
    asked = bounds_of(bounds)
    if expert is None and isinstance(codec, str):
        expert = shipped().get(codec)
    known = expert_for(codec if isinstance(codec, Codec) else codecs.get(codec), expert)
    known.made.require()
    return surveyed(field).at(asked, known)


def expert_for(codec: Codec, given: Expert | None = None) -> Expert:
    """The expert given, or the one that comes with the package; refused if it knows another codec."""
    if given is not None and not isinstance(given, Expert):
        raise WorkbenchError(f"expert must be one of wb.bounds.train, or wb.bounds.Expert.load(path); got {given!r:.60}")
    if given is None:
        given = shipped().get(codec.id)
    if given is None or given.made != codec:
        known = ", ".join(shipped())
        raise WorkbenchError(
            f"a prediction for {label_of(codec)} needs an expert on it; {known} with their usual options come with the "
            f"package: train one with wb.bounds.train(fields, codec, bounds)"
        )
    return given


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

    def rows(self, asked: Sequence[Bound], limits: np.ndarray, figures: Figures, codec: Codec) -> tuple[Predicted, ...]:
        """What is predicted at each bound, given bits, noise and the loss of similarity."""
        chunks = -(-self.size // codec.chunk_values)
        bits = np.minimum(figures["bits"], 8 * self.dtype.itemsize)   # values that take more are stored as they are
        beside = documents_nbytes(self.outline, codec) + self.gaps + chunks * OF_CHUNK
        nbytes = beside + bits * self.size / 8
        ratio = self.count * self.width / nbytes
        seen = self.within_reason(limits)
        psnr = 20 * np.log10(self.peak / seen) - 10 * np.log10(figures["noise"] / 3)
        ssim = np.clip(1 - figures["loss"], -1, 1) if "loss" in figures else np.full(ratio.shape, math.nan)
        columns = [(middle, np.minimum(*ends), np.maximum(*ends)) for middle, *ends in (ratio, psnr, ssim)]
        each = [part.tolist() for column in columns for part in column]
        return tuple(Predicted(bound, *numbers) for bound, *numbers in zip(asked, limits.tolist(), *each, strict=True))


class Surveyed:
    """What is known of a field that was looked at once, to predict any codec at any bounds; without the field itself."""

    def __init__(self, field: Field) -> None:
        valid = field.valid
        count = int(np.count_nonzero(valid))
        if not count:
            raise WorkbenchError(f"wb.predict needs values; all of {field!r} are masked or not finite")
        self.shape = field.shape
        self.survey = Survey(field, valid)
        gaps = 0.0 if count == valid.size else bytes_of_gaps(field, valid)
        self.whole = Whole(Outline.of(field), count, self.survey.ends, gaps)
        low, high = RANGES
        if not low < self.whole.peak < high:
            raise WorkbenchError(
                f"wb.predict needs values that differ, by {low:g} to {high:g}; all of {field!r} lie within "
                f"{self.whole.peak:g}"
            )
        self._described = Field(np.zeros(1), metadata=field.metadata)   # says what the unit is
        self._counts = Counts(self.survey, np.empty(0))
        self._looking = threading.RLock()   # samples are taken when they are first needed

    def at(self, bounds: Iterable[Bound], expert: Expert) -> Prediction:
        """The prediction at these bounds, by an expert on a codec."""
        asked = [bound.for_data(self._described) for bound in bounds]
        limits = self.whole.limits(asked)
        figures, distance = self.figures(self.whole.within_reason(limits), expert)
        notes = [unlike(distance)] if distance > 1 else []
        codec = expert.made
        return Prediction(codec, self.whole.rows(asked, limits, figures, codec), distance, tuple(notes))

    def figures(self, limits: np.ndarray, expert: Expert) -> tuple[Figures, float]:
        """Bits and noise at each limit, with the ends of their intervals, as three rows; and how far the data are off."""
        with self._looking:
            self.survey.look_at(expert.starts if expert.shape == self.shape else None)
            if not np.array_equal(limits, self._counts.limits):
                self._counts = Counts(self.survey, limits)
            found = features_of(self._counts, expert.made)
        figures = expert.figures(limits, found)
        if not self._has_windows:
            figures.pop("loss", None)
        return figures, expert.distance(found)

    @property
    def _has_windows(self) -> bool:
        sides = [n for n in self.shape if n > 1]
        return len(sides) > 1 and min(sides[-3:]) >= 7


_REMEMBERED: WeakKeyDictionary[Field, Surveyed] = WeakKeyDictionary()
_REMEMBERING = threading.Lock()


def surveyed(field: Field) -> Surveyed:
    """What is known of a field, remembered for the last few without gaps, as long as they exist.

    The values of a field never change. A field with gaps is surveyed on a filled copy, which is not kept.

    >>> field = Field(np.sin(np.arange(4096.0)))
    >>> surveyed(field) is surveyed(field)
    True
    """
    with _REMEMBERING:
        if (known := _REMEMBERED.get(field)) is not None:
            return known
    found = Surveyed(field)
    if found.whole.count == found.whole.size:
        with _REMEMBERING:
            while len(_REMEMBERED) >= MOST_REMEMBERED:
                _REMEMBERED.pop(next(iter(_REMEMBERED)))
            _REMEMBERED[field] = found
    return found


def unlike(distance: float) -> str:
    """What is said of data that are too far from the training."""
    return f"these data are unlike the training ({distance:.1f} times too far): do not trust intervals"


def calibrated(expert: Expert, field: Field, runs: Iterable[Run]) -> Expert:
    """The expert corrected by runs of an earlier time step, for predictions of later ones.

    `runs` are those of a sweep of the earlier field with the same codec: by how much the expert is off there is how much it
    is off a step later, to first order.
    """
    codec = codecs.from_dict(expert.codec)
    used = [run for run in runs if run.error is None and codecs.from_dict(run.codec) == codec and run["limit"] > 0]
    if not used:
        raise WorkbenchError(f"runs must hold at least one of {label_of(codec)} that succeeded; got none")
    used.sort(key=lambda run: float(run["limit"]))
    plain = expert.shifted(MappingProxyType({}))
    known = surveyed(Field.of(field))
    before = known.at([run.bound for run in used], plain)
    where = np.log([float(run["limit"]) for run in used])
    size = field.values.size * known.whole.width
    off: dict[str, list[float]] = {"bits": [], "noise": []}
    for run, row in zip(used, before, strict=True):
        overhead = int(run["nbytes"]) - int(run["chunk_nbytes"])
        off["bits"].append(math.log(max(size / float(run["ratio"]) - overhead, 1) / max(size / row.ratio - overhead, 1)))
        finite = math.isfinite(float(run["psnr"]))
        off["noise"].append((row.psnr - float(run["psnr"])) * math.log(10) / 10 if finite else 0.0)
    shifts: Mapping[str, tuple[np.ndarray, np.ndarray]] = {name: (where, np.array(values)) for name, values in off.items()}
    starts = known.survey.wavelets.starts if codec.imitation == "wavelets" else None
    return expert.shifted(shifts, starts, known.shape)
