"""The result of `wb.predict`: a row for each bound."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from workbench.bounds.run import label_of
from workbench.charts.table import data_frame
from workbench.codecs import Codec
from workbench.guarantees import Bound
from workbench.json_values import json_value


@dataclass(frozen=True)
class Predicted:
    """What is expected at one bound, with the ends of 90% intervals, as measured on real data left out of the training.

    SSIM is NaN for fields of one axis, and for fields in parts.
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

    `distance` says how far the data are from those of the training: the farther, the wider are the intervals. Of the
    training's own kinds, a tenth is farther than 1 from all others; data beyond it are `unlike` the training.
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
        """Whether the data are farther from the training than nine tenths of its own kinds from each other."""
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


def unlike(distance: float) -> str:
    """What is said of data that are far from the training."""
    return f"these data are unlike the training (distance {distance:.1f}), so the intervals are wide"
