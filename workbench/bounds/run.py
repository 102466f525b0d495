"""One codec at one bound: the request (`Question`), and the run with all measured figures."""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self

from workbench import codecs
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, bound_from_dict
from workbench.metrics.report import Figure

# Figures measured by the run itself; the others come from `wb.compare` and are explained in `metrics.report.MEANINGS`.
MEANINGS: Mapping[str, str] = MappingProxyType({
    "limit": "largest error that the bound allows: in the unit of the data or, if pointwise, relative to each value",
    "nbytes": "size of the archive in bytes, everything included",
    "chunk_nbytes": "of these, the chunks of the positions, or of the values",
    "documents_nbytes": "of these, what describes the arrays: their layout, bounds and checksums",
    "ratio": "how many times smaller the archive is than the data",
    "bits_per_value": "bits of the archive for each number of the data that is finite and not masked, everything included",
    "bits_per_particle": "bits for the position of each particle, without companion arrays",
    "corrected": "share of the values outside the bound after the codec, which were corrected",
    "chunks": "chunks of the positions, or of the values",
    "chunks_stored_exactly": "of these, stored losslessly because the codec failed or saved nothing",
    "encode_seconds": "time of wb.compress: encoding, decoding again, checking every value",
    "decode_seconds": "time of Archive.decompress, or of decoding into the scratch folder",
    "encode_mb_per_s": "millions of bytes of the data per second of encoding and its check",
    "decode_mb_per_s": "millions of bytes of the data per second, of decoding",
    "threads": "threads available to kernels and codecs during the run",
})

# Figures that depend on the machine and its load.
TIMES = ("encode_seconds", "decode_seconds", "encode_mb_per_s", "decode_mb_per_s", "threads")


LONGEST_OPTION = 100   # characters of an option in the label of a run

Order = Literal["keep", "free"]
Metrics = Literal["quick", "full"]


@dataclass(frozen=True)
class Question:
    """A measurement to make: data, codec and bound."""

    codec: Codec
    bound: Bound
    order: Order = "keep"
    metrics: Metrics = "quick"
    chunk_values: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The question, ready for JSON."""
        asked = {"codec": self.codec.to_dict(), "bound": self.bound.to_dict()}
        return {**asked, "order": self.order, "metrics": self.metrics, "chunk_values": self.chunk_values}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Self:
        """The question from the result of `to_dict`."""
        codec, bound = codecs.from_dict(described["codec"]), bound_from_dict(described["bound"])
        return cls(codec, bound, described["order"], described["metrics"], described["chunk_values"])

    def __str__(self) -> str:
        return f"{label_of(self.codec)}, {self.bound.kind} {self.bound.eb:.6g}"

    def answered(self, figures: Mapping[str, Figure], notes: tuple[str, ...] = ()) -> Run:
        """The run with these measured figures."""
        return Run(self.codec.to_dict(), label_of(self.codec), self.bound, self.order, figures, notes)

    def unanswered(self, error: str) -> Run:
        """The failed run with this error."""
        return Run(self.codec.to_dict(), label_of(self.codec), self.bound, self.order, error=error)


@dataclass(frozen=True)
class Run:
    """One row of a sweep. Figures are accessed by name: `run["psnr"]`.

    A failed run has an `error`, a sentence, instead of figures. `cached` is true if an earlier call measured the run; its
    times are from that call. `codec` is the configuration, from which `wb.codecs.from_dict` makes the codec.

    >>> from workbench.guarantees import Absolute
    >>> run = Run({"id": "pcodec", "level": 8}, "pcodec", Absolute(0.1), figures={"ratio": 3.5})
    >>> print(run, run["ratio"])
    pcodec, absolute 0.1 3.5
    """

    codec: Mapping[str, Any] = field(hash=False)
    label: str
    bound: Bound
    order: str = "keep"
    figures: Mapping[str, Figure] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()
    error: str | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "codec", MappingProxyType(dict(self.codec)))
        object.__setattr__(self, "figures", MappingProxyType(dict(self.figures)))

    def __reduce__(self) -> tuple[Any, ...]:
        # The read-only views do not pickle, but their contents do.
        return type(self).from_dict, (self.to_dict(),)

    def __getitem__(self, name: str) -> Figure:
        if name in self.figures:
            return self.figures[name]
        why = f"this run failed: {self.error}" if self.error else f"this run has: {', '.join(self.figures)}"
        raise WorkbenchError(f"figure must be a measured one; got {name!r}, and {why}")

    def __str__(self) -> str:
        return f"{self.label}, {self.bound.kind} {self.bound.eb:.6g}"

    def row(self) -> dict[str, Any]:
        """All contents in one flat dictionary, as a row of a table."""
        options = {name: value for name, value in self.codec.items() if name != "id"}
        asked = {"label": self.label, "codec": self.codec["id"], "options": options, "bound": self.bound.kind}
        found = {"order": self.order, **self.figures, "cached": self.cached, "error": self.error, "notes": list(self.notes)}
        return {**asked, "eb": self.bound.eb, **found}

    def to_dict(self) -> dict[str, Any]:
        """All contents, as input for `from_dict`; figures that are not finite are kept."""
        held = {name: getattr(self, name) for name in ("label", "order", "error", "cached")}
        return {
            **held, "codec": dict(self.codec), "bound": self.bound.to_dict(), "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Self:
        """The run from the result of `to_dict`."""
        held = {**described, "bound": bound_from_dict(described["bound"]), "notes": tuple(described["notes"])}
        return cls(**held)


def label_of(codec: Codec) -> str:
    """The name of a codec with the options that differ from their defaults; of long ones, such as models, a checksum.

    >>> from workbench.codecs import get
    >>> label_of(get("pcodec")), label_of(get("pcodec", level=4))
    ('pcodec', 'pcodec(level=4)')
    """
    described = codec.to_dict()
    usual = {option.name: option.default for option in dataclasses.fields(codec)}
    changed = [name for name in usual if getattr(codec, name) != usual[name]]
    options = ", ".join(f"{name}={_short(json.dumps(described[name]))}" for name in changed)
    return f"{codec.id}({options})" if options else codec.id


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_OPTION else f"{zlib.crc32(text.encode()):08x}"
