"""Tables of a collection: what each member costs, and what its verification found."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Self

from workbench.archive.archive import Archive
from workbench.metrics.report import Report


@dataclass(frozen=True)
class Row:
    """What one member costs."""

    name: str
    kind: str
    size: str
    codec: str
    bound: str
    nbytes: int
    original_nbytes: int
    largest_error: float
    own_nbytes: int | None = None   # of a portable array: about what it would take by a codec that only lossbench reads

    @classmethod
    def of(cls, name: str, archive: Archive) -> Self:
        """The row of a member, from its description; nothing is decoded."""
        promise = archive.certificate[archive.data.layout.name]
        bound = "exact" if promise.bound is None or promise.bound.eb == 0 else repr(promise.bound)
        nbytes = sum(stored.nbytes for stored in archive.arrays.values())
        error = promise.figures.get("largest_error", 0.0)
        return cls(
            name, archive.kind, archive.content.size(archive), archive.codec.to_dict()["id"], bound, nbytes,
            archive.original_nbytes, float(error), promise.figures.get("own_bytes"),
        )

    @property
    def ratio(self) -> float:
        """How many times smaller it is."""
        return self.original_nbytes / self.nbytes if self.nbytes else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The row, ready for JSON."""
        return {**asdict(self), "ratio": self.ratio}

    def in_words(self) -> dict[str, str]:
        """The row, for people."""
        return {
            "name": self.name, "holds": self.size, "bound": self.bound, "codec": self.codec, "bytes": f"{self.nbytes:,}",
            "ratio": f"{self.ratio:.3g}", "largest error": f"{self.largest_error:.4g}",
            **({} if self.own_nbytes is None else {"not portable": f"{self.own_nbytes:,}"}),
        }


def has_errors(archive: Archive) -> bool:
    """Whether the values of an archive may differ from the original, within their bound."""
    bound = archive.certificate[archive.data.layout.name].bound
    return bound is not None and getattr(bound, "eb", 1.0) > 0


class Reports(Mapping[str, Report]):
    """The reports of all members, by name."""

    def __init__(self, reports: Mapping[str, Report]) -> None:
        self._reports = dict(reports)

    def __getitem__(self, name: str) -> Report:
        return self._reports[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)

    @property
    def passed(self) -> bool:
        """Whether every check of every member holds."""
        return all(report.passed is not False for report in self._reports.values())

    def to_dict(self) -> dict[str, Any]:
        """The reports, ready for JSON."""
        return {name: report.to_dict() for name, report in self._reports.items()}

    def __str__(self) -> str:
        """A line for each member, and their checks: once, where several have the same; `reports[name]` says more."""
        rows: list[dict[str, str]] = []
        names: dict[str, list[str]] = {}
        for name, report in self._reports.items():
            passed = {True: "passed", False: "failed", None: "measured"}[report.passed]
            checks = "; ".join(f"{check.name} <= {check.limit:.6g}" for check in report.checks)
            names.setdefault(checks, []).append(name)
            rows.append({"name": name, "": passed, "largest error": _errors(report), "checks": checks})
        if not rows:
            return "no members"
        if not any(row["largest error"] for row in rows):   # nothing was compared with an original
            for row in rows:
                del row["largest error"]
        if len(names) == len(rows):
            return aligned(rows, {"largest error"})
        checked = [f"{_listed(of)}: {checks}" for checks, of in names.items() if checks]
        for row in rows:
            del row["checks"]
        return "\n".join([aligned(rows, {"largest error"}), *checked])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{html.escape(name)}</h4>{report._repr_html_()}" for name, report in self._reports.items())


def _errors(report: Report) -> str:
    """The largest error, or that of each array."""
    if (error := report.figures.get("max_error")) is not None:
        return f"{error:.4g}"
    ending = "_max_error"
    return ", ".join(
        f"{name.removesuffix(ending)} {figure:.4g}" for name, figure in report.figures.items() if name.endswith(ending)
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, ..., {names[-1]}"


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text, with the names of the columns above."""
    return aligned([row.in_words() for row in rows], {"bytes", "ratio", "largest error", "not portable"})


def aligned(words: Sequence[Mapping[str, str]], right: Set[str]) -> str:
    """Rows of text below the names of their columns, of which some are aligned at the right."""
    columns = list(dict.fromkeys(name for row in words for name in row))
    words = [{name: row.get(name, "-") for name in columns} for row in words]
    widths = {name: max(len(name), *(len(row[name]) for row in words)) for name in columns}

    def line(texts: Mapping[str, str]) -> str:
        return "  ".join(
            texts[name].rjust(widths[name]) if name in right else texts[name].ljust(widths[name]) for name in columns
        ).rstrip()

    return "\n".join([line({name: name for name in columns}), *map(line, words)])
