"""Everything that the statistics panel shows, as a fast, pure function of state and results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive import Archive
from workbench.archive.statistics import Histogram, Statistic
from workbench.charts.description import Axis, Cells, Chart
from workbench.lab import levels, slices
from workbench.lab.description import Charts, Fact, Picture, Shown, Table
from workbench.lab.remembered import remembered
from workbench.lab.statistics_panel.measuring import Decoded, Figures, Slice
from workbench.lab.statistics_panel.state import PARTS, StatisticsState

CERTAIN, POSSIBLE = "#4d7ea8", "#c9d8e6"   # bars of a histogram
ORDER = ("mean", "std", "min", "max", "sum")
TITLES = {"mean": "mean", "std": "standard deviation", "min": "smallest", "max": "largest", "sum": "sum"}
SOURCE = "what they are of"   # a group of figures
MEANING = "the value of the original data is within the bound of this one, which is proven"


def draw(archive: Archive, state: StatisticsState, results: Mapping[str, Any], view: Slice | None) -> Shown:
    """The answer, the slice, the histogram, and the figures beside those after decoding."""
    known: Figures | None = results.get("histogram") or results.get("figures")
    decoded: Decoded | None = results.get("decoded")
    line = view is not None and len(view.field.shape) == 1
    counts = None if known is None else known.histogram
    charts = {} if counts is None else {"histogram": histogram_chart(counts, _unit(archive))}
    pictures = () if view is None or line else (slice_picture(archive, state, view),)
    return Shown(
        answer=() if known is None else answer(known, _unit(archive)),
        pictures=pictures,
        charts=Charts(charts, coming=("histogram",)),
        beside=("histogram",),
        facts=() if known is None else facts(known, _unit(archive)),
        tables={} if known is None or decoded is None else {"after decoding": decoding_table(known, decoded)},
        note=_note(known, view),
        settings=settings(archive, state),
    )


def answer(known: Figures, unit: str) -> tuple[str | Fact, ...]:
    """Mean and standard deviation with their bounds, and what was read for them."""
    mean, deviation = (_fact(known[name], unit) for name in ("mean", "std"))
    read = known["mean"]
    share = f"{size(read.bytes_read)} of {size(read.bytes_stored)}"
    cost = Fact("read", share, meaning=f"what the answers were computed from: {read.stage}")
    return (
        "The mean of the original values is", mean, "and their standard deviation", deviation, "(read:", cost,
        f"in {_duration(known.seconds)}).",
    )


def facts(known: Figures, unit: str) -> tuple[Fact, ...]:
    """All figures with their bounds, and what they are of."""
    one = known["mean"]
    of = [
        Fact("values", f"{one.count:,}", meaning="finite and not masked", group=SOURCE),
        Fact("read", f"{one.bytes_read:,} of {one.bytes_stored:,} bytes", meaning=one.stage, group=SOURCE),
    ]
    if one.missing:
        of.append(Fact("missing", f"{one.missing:,}", meaning="masked, NaN or infinite", group=SOURCE))
    return (*(_fact(known[name], unit, "of the original data") for name in ORDER), *of)


def decoding_table(known: Figures, decoded: Decoded) -> Table:
    """The figures from the archive beside those of decoded values."""
    rows = []
    for name in ORDER:
        figure, value = known[name], decoded.values[name]
        rows.append((TITLES[name], str(figure), f"{value:.10g}", f"{abs(value - figure.value):.2g}"))
    read = known["mean"]
    rows.append(("bytes read", f"{read.bytes_read:,}", f"{decoded.bytes_read:,}", ""))
    faster = decoded.seconds / known.seconds
    rows.append(("time", _duration(known.seconds), _duration(decoded.seconds), f"{faster:.1f} x"))
    return Table(("figure", "from the archive", "of decoded values", "difference"), tuple(rows))


def histogram_chart(counts: Histogram, unit: str) -> Chart:
    """How many values each bin has for certain, and how many more it may have."""
    edges = counts.edges.tolist()
    bins = list(zip(edges[:-1], edges[1:], counts.low.tolist(), counts.high.tolist(), strict=True))
    certain = [(start, 0.0, stop, float(low)) for start, stop, low, _ in bins]
    possible = [(start, float(low), stop, float(high)) for start, stop, low, high in bins]
    words = [f"{start:.5g} to {stop:.5g}: {low:,} to {high:,} values" for start, stop, low, high in bins]
    value = f"value [{unit}]" if unit else "value"
    high = float(counts.high.max(initial=1))
    return Chart(
        "Histogram", Axis(value, edges[0], edges[-1]), Axis("values in a bin", 0.0, 1.05 * high),
        (Cells("certainly", certain, CERTAIN, tooltips=words), Cells("possibly", possible, POSSIBLE, tooltips=words)),
    )


def slice_picture(archive: Archive, state: StatisticsState, view: Slice) -> Picture:
    """The slice; coarse ones are means of blocks, with the colours of the exact one."""
    cut = slices.Cut(window=state.window, pixels=state.pixels)

    def made() -> Picture:
        low, high = slices.slice_range(view.field, cut)
        raster = slices.slice_raster(view.field, cut)
        axes = dataclasses.replace(cut.axes(view.field), depth=_depth(archive, state))
        return Picture(
            "means of blocks" if view.blocks else "decoded", levels.bytes_of(raster.values, low, high, False, np.uint16),
            raster.window, "values", low, high, unit=_unit(archive), empty=True, axes=axes,
            quantity=view.field.name or "value",
        )

    return remembered(view.field, "pictures", (state.window, state.pixels, state.axis, state.index, state.time), made)


def settings(archive: Archive, state: StatisticsState) -> dict[str, str]:
    """The choices in words, for a report."""
    chosen = {"statistics of": next(words for words, part in PARTS.items() if part == state.of)}
    return chosen | ({"slice": _depth(archive, state)} if len(archive.data.layout.shape) > 2 else {})


def _depth(archive: Archive, state: StatisticsState) -> str:
    """Where the slice is."""
    shape, crossed = archive.data.layout.shape, state.crossed(archive)
    names = (archive.attributes.get("metadata") or {}).get("dimensions") or [f"axis {axis}" for axis in range(len(shape))]
    places = zip(reversed(crossed), (state.index, state.time), strict=False)
    return ", ".join(f"{names[axis]} = {at} of {shape[axis]}" for axis, at in places)


def _note(known: Figures | None, view: Slice | None) -> str:
    parts = []
    if view is not None and view.blocks:
        parts.append(f"means of blocks of {' x '.join(map(str, view.blocks))}; the slice itself is being decoded")
    if known is not None:
        parts.append(f"statistics are from {known['mean'].stage}")
    return "; ".join(parts)


def _fact(figure: Statistic, unit: str, group: str = "") -> Fact:
    return Fact(TITLES[figure.name], str(figure), meaning=MEANING, unit=unit, group=group)


def _unit(archive: Archive) -> str:
    units = (archive.attributes.get("metadata") or {}).get("units")
    return units if isinstance(units, str) else ""


def size(nbytes: int) -> str:
    """A number of bytes with three digits.

    >>> size(120_961), size(999)
    ('121 kB', '999 bytes')
    """
    for unit, of_it in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= of_it:
            return f"{nbytes / of_it:.3g} {unit}"
    return f"{nbytes} bytes"


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(0.0042), _duration(3.21)
    ('4.2 ms', '3.2 s')
    """
    if seconds < 0.0995:
        return f"{1000 * seconds:.2g} ms"
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2g} s"
