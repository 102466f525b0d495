"""`wb.predict`: ratio, PSNR and SSIM at many bounds, each with an interval, without compressing the whole."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import codecs
from workbench.bounds.prediction.expert import Expert, shipped
from workbench.bounds.prediction.features import features_of
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.run import Run, label_of
from workbench.bounds.sweep import questions_of, require_data
from workbench.bounds.table import data_frame
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.json_values import json_value
from workbench.metrics.errors import psnr

OVERHEAD = 2690          # bytes of an archive besides its chunks and what it says of the field,
OF_METADATA = 1.57       # for each byte of which it takes so many,
OF_CHUNK = 70            # and bytes that each chunk takes besides those of the codec


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

    The field is surveyed once, however many bounds there are. `expert` is one from `wb.bounds.train`, or one that knows an
    earlier time step (`wb.bounds.calibrated`); by default the one that comes with the package, for sz3, zfp, sperr,
    prequantised and interpolation with their usual options.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((128, 128), 3, seed=1)
    >>> row = predict(waves, "prequantised", wb.Absolute(0.01)).rows[0]
    >>> true = wb.compress(waves, wb.Absolute(0.01), "prequantised").ratio
    >>> row.ratio_low < true < row.ratio_high
    True
    """
    field = require_data(data)
    if not isinstance(field, Field):
        raise WorkbenchError(f"wb.predict is for fields; got {field!r}: use wb.sweep, or wb.find_bound")
    field.require_floats("wb.predict")
    questions = questions_of([codec], bounds)
    chosen = questions[0].codec
    chosen.require()
    return Surveyed(field, chosen, expert_for(chosen, expert)).at([question.bound for question in questions])


def expert_for(codec: Codec, given: Expert | None = None) -> Expert:
    """The expert given, or the one that comes with the package; refused if it knows another codec."""
    if given is None:
        given = shipped().get(codec.id)
    if given is None or codecs.from_dict(given.codec) != codec:
        known = ", ".join(shipped())
        raise WorkbenchError(
            f"a prediction for {label_of(codec)} needs an expert on it; {known} with their usual options come with the "
            f"package: train one with wb.bounds.train(fields, codec, bounds)"
        )
    return given


class Surveyed:
    """A field with an expert, which predicts at any bounds."""

    def __init__(self, field: Field, codec: Codec, expert: Expert) -> None:
        self.field, self.codec, self.expert = field, codec, expert
        valid = field.valid
        self.count = int(valid.sum())
        if not self.count:
            raise WorkbenchError(f"wb.predict needs values; all of {field!r} are masked or not finite")
        values = field.values if self.count == valid.size else field.values[valid]
        self.ends = np.array([values.min(), values.max()])
        self.peak = float(self.ends[1]) - float(self.ends[0])
        if not 0 < self.peak < math.inf:
            raise WorkbenchError(
                f"wb.predict needs values that differ, by a finite number; all of {field!r} lie within {self.peak:g}"
            )
        self.survey = Survey(field, valid)
        self.told = OF_METADATA * len(json.dumps(json_value(field.metadata))) if field.metadata else 0.0

    def at(self, bounds: Iterable[Bound]) -> Prediction:
        """The prediction at these bounds."""
        asked = [bound.for_data(self.field) for bound in bounds]
        resolved = [bound.limit(self.ends) for bound in asked]
        for bound, limit in zip(asked, resolved, strict=True):
            if limit.relative or not limit.value > 0:
                raise WorkbenchError(f"wb.predict takes bounds above 0, absolute or relative to the range; got {bound!r}")
        limits = np.array([limit.value for limit in resolved])
        found = [features_of(self.survey, float(limit), self.codec) for limit in limits]
        expert = self.expert
        ratios = [self._ratio(bits) for bits in expert.figure("bits", limits, found)]
        noises = [self._psnr(noise, limits) for noise in expert.figure("noise", limits, found)]
        if "loss" in expert.learned and self._has_windows:
            losses = [np.clip(1 - loss, -1, 1) for loss in expert.figure("loss", limits, found)]
        else:
            losses = [np.full(len(limits), math.nan)] * 3
        rows = tuple(
            Predicted(
                bound, float(limits[n]), float(ratios[0][n]), float(ratios[2][n]), float(ratios[1][n]),
                float(noises[0][n]), float(noises[2][n]), float(noises[1][n]),
                float(losses[0][n]), float(losses[2][n]), float(losses[1][n]),
            )
            for n, bound in enumerate(asked)
        )
        distance = expert.distance(found)
        return Prediction(self.codec, rows, distance, self._notes(distance))

    def _ratio(self, bits: np.ndarray) -> np.ndarray:
        whole = self.field.values
        chunks = -(-whole.size // self.codec.chunk_values)
        exact = (whole.size - self.count) * whole.dtype.itemsize   # masked and infinite values are stored as they are
        nbytes = OVERHEAD + self.told + chunks * OF_CHUNK + bits * whole.size / 8 + exact
        return self.count * whole.dtype.itemsize / nbytes

    def _psnr(self, noise: np.ndarray, limits: np.ndarray) -> np.ndarray:
        return np.array([psnr(self.peak, limit * math.sqrt(value / 3)) for limit, value in zip(limits, noise, strict=True)])

    @property
    def _has_windows(self) -> bool:
        sides = [n for n in self.field.shape if n > 1]
        return len(sides) > 1 and min(sides[-3:]) >= 7

    def _notes(self, distance: float) -> tuple[str, ...]:
        notes = []
        if distance > 1:
            notes.append(f"these data are unlike the training ({distance:.1f} times too far): do not trust intervals")
        if self.count < self.field.values.size:
            notes.append("masked and infinite values are counted as stored exactly, which is a rough estimate")
        return tuple(notes)


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
    before = Surveyed(Field.of(field), codec, plain).at([run.bound for run in used])
    where = np.log([float(run["limit"]) for run in used])
    size = field.values.size * field.values.dtype.itemsize
    off: dict[str, list[float]] = {"bits": [], "noise": []}
    for run, row in zip(used, before, strict=True):
        overhead = int(run["nbytes"]) - int(run["chunk_nbytes"])
        off["bits"].append(math.log(max(size / float(run["ratio"]) - overhead, 1) / max(size / row.ratio - overhead, 1)))
        finite = math.isfinite(float(run["psnr"]))
        off["noise"].append((row.psnr - float(run["psnr"])) * math.log(10) / 10 if finite else 0.0)
    shifts: Mapping[str, tuple[np.ndarray, np.ndarray]] = {name: (where, np.array(values)) for name, values in off.items()}
    return expert.shifted(shifts)
