"""The certificate of a series: what is promised of each step, and how its chunks were predicted."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from workbench.archive.archive import Archive
from workbench.archive.certificate import Certificate
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.reports import aligned
from workbench.archive.series.steps import Steps
from workbench.charts.table import data_frame, html_table

HEADS = ("step", "time", "key", "bytes", "ratio", "chunks", "in time", "appeared", "vanished")


@dataclass(frozen=True)
class StepRow:
    """One step: its size, how many of its chunks of data were predicted in time, and how many particles changed."""

    step: int
    time: float
    key: bool
    nbytes: int
    ratio: float
    chunks: int
    predicted: int
    appeared: int
    vanished: int

    def cells(self) -> tuple[str, ...]:
        """The row, for people."""
        return (
            str(self.step), f"{self.time:.6g}", "key" if self.key else "", f"{self.nbytes:,}", f"{self.ratio:.3g}",
            str(self.chunks), str(self.predicted), str(self.appeared or ""), str(self.vanished or ""),
        )


@dataclass(frozen=True, repr=False)
class SeriesCertificate:
    """The promises of the steps; each was checked as that of an archive alone."""

    rows: tuple[StepRow, ...]
    certificates: tuple[Any, ...]   # of each step: a certificate, or those of its members by name

    @classmethod
    def of(cls, steps: Steps, count: int) -> Self:
        """The certificate of all steps; nothing is decoded."""
        rows, certificates = [], []
        for number in range(count):
            opened = steps.open(number)
            about, archive = opened.about, opened.archive
            members = list(archive.values()) if isinstance(archive, Collection) else [archive]
            chunks, predicted = (sum(counts) for counts in zip(*map(_counts, members), strict=True))
            rows.append(StepRow(
                number, about.time, not about.before, archive.nbytes, archive.ratio, chunks, predicted, about.appeared,
                about.vanished,
            ))
            certificates.append(
                {name: member.certificate for name, member in archive.items()} if isinstance(archive, Collection)
                else archive.certificate
            )
        return cls(tuple(rows), tuple(certificates))

    @property
    def keys(self) -> tuple[int, ...]:
        """The numbers of the steps that need no other."""
        return tuple(row.step for row in self.rows if row.key)

    @property
    def predicted(self) -> float:
        """The share of chunks that were predicted in time."""
        chunks = sum(row.chunks for row in self.rows)
        return sum(row.predicted for row in self.rows) / chunks if chunks else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The certificate, ready for JSON."""
        return {"steps": [
            {**asdict(row), "certificate": _plain(one)} for row, one in zip(self.rows, self.certificates, strict=True)
        ]}

    def to_dataframe(self) -> Any:
        """The steps as a DataFrame of pandas."""
        return data_frame([asdict(row) for row in self.rows])

    def __str__(self) -> str:
        if not self.rows:
            return "no steps yet"
        words = [dict(zip(HEADS, row.cells(), strict=True)) for row in self.rows]
        return "\n".join([aligned(words, set(HEADS) - {"key"}), *self._promised()])

    __repr__ = __str__

    def _promised(self) -> list[str]:
        """What is promised of every step: once, where all promise the same."""
        chunks = sum(row.chunks for row in self.rows)
        count = sum(row.predicted for row in self.rows)
        keys = f"{len(self.keys)} of {len(self.rows)} are key steps"
        said = [f"{count:,} of {chunks:,} chunks were predicted in time; {keys}"]
        promised = dict.fromkeys(line for one in self.certificates for line in _promises(one))
        return said + [f"promised, and checked, at each step: {line}" for line in promised]

    def _repr_html_(self, title: str = "") -> str:
        table = html_table(HEADS, [row.cells() for row in self.rows], texts=(2,), title=title)
        return f"<div>{table}<p>{'<br>'.join(html.escape(line) for line in self._promised())}</p></div>"


def predicted_chunks(archive: Archive | Collection) -> int:
    """How many chunks of a step were predicted from earlier ones."""
    members = archive.values() if isinstance(archive, Collection) else [archive]
    return sum(_counts(member)[1] for member in members)


def _counts(archive: Archive) -> tuple[int, int]:
    """How many chunks of arrays that codecs encode there are, and how many of them were predicted in time."""
    chunks = predicted = 0
    for promise in archive.certificate.promises:
        stored = archive.arrays.get(promise.array)
        if stored is None or not promise.figures:
            continue
        chunks += stored.layout.chunk_count
        predicted += promise.figures.get("predicted", 0)
    return chunks, predicted


def _promises(one: Any) -> Iterable[str]:
    if isinstance(one, Certificate):
        return [promise.describe() for promise in one.promises]
    names: dict[str, list[str]] = {}
    for name, certificate in one.items():
        for line in _promises(certificate):
            names.setdefault(line, []).append(name)
    return [f"{', '.join(of)}: {line}" for line, of in names.items()]


def _plain(one: Any) -> Any:
    return one.to_dict() if isinstance(one, Certificate) else {name: own.to_dict() for name, own in one.items()}
