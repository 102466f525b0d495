"""`wb.distributed.predict`: ratio and PSNR of a field that does not fit into memory, from a few parts of it.

The range of all values must be known, so the field is read once. Then parts that are spread over it are surveyed as
`wb.predict` surveys whole fields. Bits and noise are means over parts; how much they differ between parts widens the
intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from workbench import codecs
from workbench.archive import choice
from workbench.archive.documents import Outline
from workbench.archive.fields import surveyed
from workbench.archive.survey import Survey
from workbench.bounds import Expert, Prediction
from workbench.bounds.prediction.expert import shipped
from workbench.bounds.prediction.features import LEAST_BITS, LEAST_NOISE
from workbench.bounds.prediction.gaps import bytes_of_gaps
from workbench.bounds.prediction.predict import Surveyed, Whole, expert_for, unlike
from workbench.bounds.sweep import bounds_of
from workbench.codecs import Codec
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.run.chunked_field import ChunkedField, Slices, grid, parts_at
from workbench.run.clients import executor_of
from workbench.run.executors import Executor, Progress
from workbench.subdomains.sources import scratch_folder

PARTS = 12
NINETY = 1.645    # standard deviations on both sides of a mean that contain 90%


def predict(
    source: Any, codec: str | Codec, bounds: Bound | Iterable[Bound], *, expert: Expert | None = None, client: Any = None,
    scratch: str | Path | None = None, progress: Progress | None = None,
) -> Prediction:
    """The ratio and PSNR of a field at each bound, like `wb.predict`; the field is read once, and nothing is compressed.

    `source` is what `ChunkedField` takes. The range of the values is found on the workers of `client`, if one is given.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((128, 128), 3, seed=1)
    >>> row = predict(waves, "prequantised", wb.Absolute(0.01))[0]
    >>> row.ratio_low < wb.compress(waves, wb.Absolute(0.01), "prequantised").ratio < row.ratio_high
    True
    """
    asked = bounds_of(bounds)
    known = expert or (shipped().get(codec) if isinstance(codec, str) else None)
    known = expert_for(codecs.get(codec) if isinstance(codec, str) else codec, known)
    executor = executor_of(client, progress, source)
    with scratch_folder(scratch, executor) as folder:
        executor = executor.within(folder)
        field = ChunkedField.of(source).reachable(executor, folder, "field")
        return Parts(field, surveyed(field, executor), executor).at(asked, known)


class Parts:
    """Parts of a field that were looked at once; they are predicted for any codec at any bounds."""

    def __init__(self, field: ChunkedField, known: Survey, executor: Executor) -> None:
        require_floats(field)
        parts = parts_at(executor, field, _places(field))
        self._surveyed = [Surveyed(part) for part in parts if _varies(part)]
        if not self._surveyed:
            raise WorkbenchError(f"wb.distributed.predict needs values that differ in some part; got none in {field!r}")
        self._described = field.described   # says what the unit is
        self._flat = len(parts) - len(self._surveyed)
        size = math.prod(field.shape)
        gaps = sum(bytes_of_gaps(part, part.valid) for part in parts if not part.valid.all())
        gaps *= size / sum(part.values.size for part in parts)
        self.whole = Whole(Outline.of(field), known.statistics.count, known.ends, gaps)

    def at(self, bounds: Iterable[Bound], expert: Expert) -> Prediction:
        """The prediction at these bounds, by an expert on a codec."""
        asked = [bound.for_data(self._described) for bound in bounds]
        limits = self.whole.limits(asked)
        each = [surveyed.figures(self.whole.within_reason(limits), expert) for surveyed in self._surveyed]
        least = {"bits": LEAST_BITS, "noise": LEAST_NOISE}
        figures = {name: self._mean(np.array([found[name] for found, _ in each]), least[name]) for name in least}
        distance = float(np.median([distance for _, distance in each]))
        notes = (unlike(distance),) if distance > 1 else ()
        return Prediction(expert.made, self.whole.rows(asked, limits, figures, expert.made), distance, notes)

    def _mean(self, figures: np.ndarray, least: float) -> np.ndarray:
        """The mean over parts, and the ends of its interval, which allows for the differences between parts."""
        flat = np.full((self._flat, *figures.shape[1:]), least)
        together = np.concatenate([figures, flat])
        middle = together[:, 0].mean(axis=0)
        own = np.log(figures[:, 2] / figures[:, 0]).mean(axis=0)
        others = NINETY * together[:, 0].std(axis=0) / (middle * math.sqrt(len(together)))
        half = np.hypot(own, others)
        return np.array([middle, middle * np.exp(-half), middle * np.exp(half)])


def require_floats(field: ChunkedField) -> None:
    """Refuse integers."""
    if field.dtype.kind != "f":
        raise WorkbenchError(f"predictions need floating-point values; got {field!r}: convert with .astype('float32')")


def _places(field: ChunkedField) -> list[Slices]:
    """The middles of chunks that are spread over the field."""
    chunks = grid(field.shape, field.chunk_shape)
    count = min(PARTS, len(chunks))
    chosen = [chunks[int((number + 0.5) * len(chunks) / count)] for number in range(count)]
    return [_middle(place) for place in chosen]


def _middle(place: Slices) -> Slices:
    inside = choice.middle([part.stop - part.start for part in place])
    return tuple(slice(part.start + own.start, part.start + own.stop) for part, own in zip(place, inside, strict=True))


def _varies(part: Field) -> bool:
    values = part.values[part.valid]
    return bool(values.size) and bool(values.min() < values.max())
