"""The result of a sweep, as a table, as a chart, and reduced to its Pareto front."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workbench.bounds.pareto import unbeaten
from workbench.bounds.run import Run
from workbench.bounds.table import table
from workbench.charts.description import Axis, Chart, Point, joined
from workbench.charts.table import data_frame
from workbench.codecs.registry import looks
from workbench.errors import WorkbenchError
from workbench.json_values import json_value

TITLES = {
    "psnr": "PSNR [dB]", "ssim": "SSIM", "nbytes": "bytes", "nrmse": "rms error / peak", "bits_per_value": "bits per value",
    "bits_per_particle": "bits per particle", "rms_error": "rms error", "encode_seconds": "time to compress [s]",
    "decode_seconds": "time to decompress [s]",
}


@dataclass(frozen=True, repr=False)
class Sweep:
    """One row for each codec at each bound, in the order of the arguments.

    >>> from workbench.guarantees import Absolute
    >>> found = Sweep((Run({"id": "a"}, "a", Absolute(1), figures={"bits_per_value": 2.0, "psnr": 40.0}),
    ...                Run({"id": "b"}, "b", Absolute(1), figures={"bits_per_value": 3.0, "psnr": 30.0})))
    >>> [run.label for run in found.pareto().rows]
    ['a']
    """

    rows: tuple[Run, ...]
    missing: int = 0   # runs not done because the sweep was cancelled

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.rows)

    def __getitem__(self, place: int) -> Run:
        return self.rows[place]

    @property
    def complete(self) -> bool:
        """Whether all requested runs were done, successfully or not."""
        return self.missing == 0

    @property
    def size(self) -> str:
        """The name of the size figure: bits per particle, or bits per value."""
        return "bits_per_particle" if any("bits_per_particle" in run.figures for run in self.rows) else "bits_per_value"

    def pareto(self, x: str | None = None, y: str = "psnr") -> Sweep:
        """The Pareto front: the rows that no other row dominates (as good in both figures, better in one).

        `x` is bits per particle, or per value, by default. `ratio`, `psnr`, `ssim` and similar figures are maximised;
        sizes, times and errors are minimised. Rows without both figures are left out.
        """
        return Sweep(tuple(unbeaten(self.rows, x or self.size, y)), self.missing)

    def plot(self, x: str | None = None, y: str = "psnr") -> Chart:
        """A chart with one line for each codec and kind of bound, shown by notebooks and written by `save`.

        `x` and `y` are any two figures.
        """
        x = x or self.size
        _require_measured(self.rows, x, y)
        several = len({run.bound.kind for run in self.rows}) > 1
        points = [
            point for run in self.rows
            if (point := point_of(run, x, y, f"{run.label}, {run.bound.kind}" if several else run.label)).finite
        ]
        across, up = ([getattr(point, axis) for point in points] for axis in "xy")
        missing = len(self.rows) - len(points)
        return Chart(
            f"{_title(y)} against {_title(x)}" if points else f"nothing to draw: no run has a finite {x} and {y}",
            Axis.around(_title(x), across, None), Axis.around(_title(y), up, None), tuple(joined(points, looks())),
            note=f"not drawn: {missing:,} without finite figures" if missing and points else "", height=340,
        )

    def to_dataframe(self) -> Any:
        """The rows as a pandas DataFrame; options and notes are text, and absent figures are missing values."""
        rows = [run.row() for run in self.rows]
        texts = [{"options": json.dumps(row["options"], sort_keys=True), "notes": "; ".join(row["notes"])} for row in rows]
        return data_frame([{**row, **text} for row, text in zip(rows, texts, strict=True)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON types; NaN and infinite numbers become None."""
        rows = [json_value(run.row()) for run in self.rows]
        return {"complete": self.complete, "missing": self.missing, "rows": rows}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def __repr__(self) -> str:
        return f"Sweep({self._summary})"

    def _repr_html_(self) -> str:
        """A table for notebooks, by bound, the smallest archive first, in the colours of the page."""
        return table(self.rows, self.size, self._summary)

    @property
    def _summary(self) -> str:
        failed = sum(run.error is not None for run in self.rows)
        texts = [f"{_counted(len(self.rows), 'run')} of {_counted(len({run.label for run in self.rows}), 'codec')}"]
        texts += [f"{failed:,} failed"] if failed else []
        texts += [] if self.complete else [f"stopped before {self.missing:,} more"]
        return ", ".join(texts)


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _require_measured(rows: tuple[Run, ...], *names: str) -> None:
    known = list(dict.fromkeys(name for run in rows for name in run.figures))
    for name in names:
        if known and name not in known:
            raise WorkbenchError(f"x and y must be measured figures ({', '.join(known)}); got {name!r}")


def point_of(run: Run, x: str, y: str, line: str) -> Point:
    """The place of a run by two of its figures; figures that it has not are NaN."""
    across, up = (float(run.figures.get(name, math.nan)) for name in (x, y))
    return Point(line, across, up, f"{run}: {_title(x)} {across:.6g}, {_title(y)} {up:.6g}")


def _title(figure: str) -> str:
    return TITLES.get(figure, figure.replace("_mb_per_s", " [MB/s]").replace("_", " "))
