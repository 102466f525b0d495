"""One codec at one bound: the question, and the run that answers it with every figure that was measured."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self

from workbench import codecs
from workbench.codecs import Codec
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound, bound_from_dict
from workbench.metrics.report import Figure

# What a run measures itself; all others are figures of `wb.compare`, explained in `metrics.report.MEANINGS`.
MEANINGS: Mapping[str, str] = MappingProxyType({
    "limit": "largest error that the bound allows: in the unit of the data or, point by point, relative to each value",
    "nbytes": "size of the archive in bytes, everything included",
    "chunk_nbytes": "of these, the chunks of the positions, or of the values",
    "ratio": "how many times smaller the archive is than the data",
    "bits_per_value": "bits of the archive for each number of the data that is finite and not masked, everything included",
    "bits_per_particle": "bits for the position of each particle, without what rides along",
    "corrected": "share of the values that the codec left out of bounds, and that were corrected",
    "chunks": "chunks of the positions, or of the values",
    "chunks_stored_exactly": "of these, stored losslessly because the codec failed or was of no use",
    "encode_seconds": "time of wb.compress: encoding, decoding again, checking every value",
    "decode_seconds": "time of Archive.decompress",
    "encode_mb_per_s": "millions of bytes of the data per second, by encode_seconds",
    "decode_mb_per_s": "millions of bytes of the data per second, by decode_seconds",
    "threads": "threads that kernels and codecs could use meanwhile",
})

# Which figures depend on the machine and on what else it does.
TIMES = ("encode_seconds", "decode_seconds", "encode_mb_per_s", "decode_mb_per_s", "threads")


Order = Literal["keep", "free"]
Metrics = Literal["quick", "full"]


@dataclass(frozen=True)
class Question:
    """What is to be measured."""

    codec: Codec
    bound: Bound
    order: Order = "keep"
    metrics: Metrics = "quick"

    def to_dict(self) -> dict[str, Any]:
        """The question, ready for JSON."""
        asked = {"codec": self.codec.to_dict(), "bound": self.bound.to_dict()}
        return {**asked, "order": self.order, "metrics": self.metrics}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Self:
        """The question that `to_dict` described."""
        codec, bound = codecs.from_dict(described["codec"]), bound_from_dict(described["bound"])
        return cls(codec, bound, described["order"], described["metrics"])

    def answered(self, figures: Mapping[str, Figure], notes: tuple[str, ...] = ()) -> Run:
        """The run that was measured."""
        return Run(self.codec.to_dict(), label_of(self.codec), self.bound, self.order, figures, notes)

    def unanswered(self, error: str) -> Run:
        """The run that failed."""
        return Run(self.codec.to_dict(), label_of(self.codec), self.bound, self.order, error=error)


@dataclass(frozen=True)
class Run:
    """One row of a sweep. Figures are reached by name: `run["psnr"]`.

    A run that failed has no figures but an `error`, a sentence. `cached` says that an earlier call measured it: the times
    are from then. `codec` is the configuration, of which `wb.codecs.from_dict` makes the codec.

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
        # The read-only views do not pickle, what they show does.
        return type(self).from_dict, (self.to_dict(),)

    def __getitem__(self, name: str) -> Figure:
        if name in self.figures:
            return self.figures[name]
        why = f"this run failed: {self.error}" if self.error else f"this run has: {', '.join(self.figures)}"
        raise WorkbenchError(f"figure must be one that was measured; got {name!r}, and {why}")

    def __str__(self) -> str:
        return f"{self.label}, {self.bound.kind} {self.bound.eb:.6g}"

    def row(self) -> dict[str, Any]:
        """Everything, flat: a row of a table."""
        options = {name: value for name, value in self.codec.items() if name != "id"}
        asked = {"label": self.label, "codec": self.codec["id"], "options": options, "bound": self.bound.kind}
        found = {"order": self.order, **self.figures, "cached": self.cached, "error": self.error, "notes": list(self.notes)}
        return {**asked, "eb": self.bound.eb, **found}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `from_dict` takes it; figures that are not finite stay what they are."""
        held = {name: getattr(self, name) for name in ("label", "order", "error", "cached")}
        return {
            **held, "codec": dict(self.codec), "bound": self.bound.to_dict(), "figures": dict(self.figures),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Self:
        """The run that `to_dict` described."""
        held = {**described, "bound": bound_from_dict(described["bound"]), "notes": tuple(described["notes"])}
        return cls(**held)


def label_of(codec: Codec) -> str:
    """A codec by its name and the options that are not the usual ones.

    >>> from workbench.codecs import get
    >>> label_of(get("pcodec")), label_of(get("pcodec", level=4))
    ('pcodec', 'pcodec(level=4)')
    """
    described = codec.to_dict()
    usual = {option.name: option.default for option in dataclasses.fields(codec)}
    changed = [name for name in usual if getattr(codec, name) != usual[name]]
    options = ", ".join(f"{name}={json.dumps(described[name])}" for name in changed)
    return f"{codec.id}({options})" if options else codec.id
