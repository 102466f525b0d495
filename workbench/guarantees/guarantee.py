"""Promises beyond an error bound, for `keep=`: each kind is one class, in one file.

A guarantee says how it is made true of decoded values (`attach`), what an archive states about it (`stated`), how anybody
can check that later (`check`), and what it is in words (`describe`, `rows`). Archives know no more than that: what
`attach` changes is stored in sections of each chunk that every reader applies, whatever the guarantee is, so that reading
needs no class; verification finds it by its name. `KeepClusters` is one. A `Safeguard` is stated, and said in words, in the
same way; it concerns each chunk by itself, so `enforce.py` makes it true while the chunk is encoded.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from workbench import backend
from workbench.backend import Array
from workbench.data import Particles
from workbench.data.outline import Outlined
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.bounds import Limit
from workbench.guarantees.check import bits_of, check
from workbench.guarantees.correction import encode_correction
from workbench.guarantees.sections import PIN
from workbench.progress import Progress


@dataclass(frozen=True)
class Allowance:
    """What making a guarantee true may spend before it raises TooExpensive.

    That is original coordinates (of so many particles), and evaluated distances.
    """

    exact: float = math.inf
    evaluated: float = math.inf


UNLIMITED = Allowance()


class TooExpensive(Exception):
    """Making a guarantee true would spend more than its allowance: a finer bound may take fewer bytes."""


class Promised(ABC):
    """A promise beyond the bound, as archives state it: a mapping with its `kind`."""

    content: ClassVar[str]   # what it is about: a kind of content of archives, "particles" or "field"

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The promise, ready for JSON."""

    @classmethod
    def describe(cls, stated: Mapping[str, Any]) -> str:
        """What an archive states, as one phrase; it is read from a file, so nothing needs to be there."""
        return str(stated.get("kind", "?"))

    @classmethod
    def rows(cls, stated: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Details of what an archive states: short names, and what they are."""
        return []


class Correction(Protocol):
    """What makes a guarantee true: positions within the limit, and how each chunk stores them."""

    @property
    def positions(self) -> Array:
        """The corrected positions."""

    @property
    def largest_error(self) -> float:
        """Their largest error, of any coordinate."""

    def sections(self, rows: slice) -> dict[str, bytes]:
        """The correction of a run of particles as sections of their chunk; empty if nothing is corrected."""

    def side_information(self, rows: slice) -> Any:
        """What a reader computes to apply these sections, and the writer knows; None if nothing."""


class Guarantee(Promised):
    """A guarantee about all particles together; a subclass with a `kind` is known to archives once it is imported."""

    content = "particles"
    kind: ClassVar[str]
    certified: ClassVar[str] = ""     # what `check` can check without the original, for reports
    violations: ClassVar[str] = ""    # the name of the check in reports
    _known: ClassVar[dict[str, type[Guarantee]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        kind = getattr(cls, "kind", None)
        if not isinstance(kind, str) or not kind:
            raise WorkbenchError(f"{cls.__name__}.kind must be the name of the guarantee in archives; got {kind!r}")
        if "kind" not in vars(cls):   # it states, and is checked as, what it is derived from
            return
        other = Guarantee._known.get(kind, cls)
        if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):   # a notebook may define one again
            got = f"{kind!r}, which {other.__name__} has"
            raise WorkbenchError(f"{cls.__name__}.kind must be a new name; got {got}: choose another")
        Guarantee._known[kind] = cls

    @abstractmethod
    def attach(
        self, original: Particles, decoded: Array, limit: Limit, chunk: int, progress: Progress | None,
        allowance: Allowance,
    ) -> Correction:
        """The correction of decoded positions, which are within the limit, that makes the guarantee true, and is checked.

        Chunks hold `chunk` particles. It raises TooExpensive where this takes more than the allowance. If
        `progress` has a method `watch`, it is called with every step of a repair.
        """

    @abstractmethod
    def stated(self, correction: Any, added: int) -> dict[str, Any]:
        """What an archive states: `to_dict`, figures, and the bytes that were `added` to its chunks as "bytes"."""

    @classmethod
    @abstractmethod
    def check(cls, stated: Mapping[str, Any], decoded: Particles, original: Particles | None) -> dict[str, Any]:
        """Figures of decoded particles that keep the guarantee; else GuaranteeBroken. The original is in the same order."""

    def scale(self, particles: Outlined) -> float:
        """The length that a bound must be small against to be kept cheaply: larger ones are tried finer at once."""
        return math.inf


def known(kind: Any) -> type[Guarantee] | None:
    """The class of guarantees of this kind, if it is imported."""
    return Guarantee._known.get(kind) if isinstance(kind, str) else None


def required(kind: Any) -> type[Guarantee]:
    """The class of guarantees of this kind; an error if it is not imported."""
    found = known(kind)
    if found is None:
        raise WorkbenchError(f"the archive promises {kind!r}, which is not known here: import the module that defines it")
    return found


@dataclass(frozen=True, eq=False)
class Replaced:
    """A correction that stores some positions as they are to be, whatever they are: what most guarantees need.

    >>> import numpy as np
    >>> original, decoded = Particles([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.0, 0.1], [1.0, 1.9]])
    >>> correction = Replaced.of(original, decoded, original.positions, Limit("absolute", 0.2))
    >>> correction.largest_error, list(correction.sections(slice(0, 1)))
    (0.0, ['pin_'])
    """

    decoded: Array
    positions: Array
    largest_error: float

    @classmethod
    def of(cls, original: Particles, decoded: Array, wanted: Array, limit: Limit) -> Self:
        """The correction that makes the wanted positions of decoded ones; refused where these are not within the limit."""
        seen = check(original.positions, wanted, limit, original.box)
        if not seen.holds:
            raise GuaranteeBroken(f"{len(seen.broken):,} corrected coordinates break the bound")
        return cls(decoded, wanted, seen.largest_error)

    def sections(self, rows: slice) -> dict[str, bytes]:
        """The changed coordinates among these particles, as a section of their chunk."""
        decoded, wanted = self.decoded[rows], self.positions[rows]
        changed = backend.namespace(decoded).flatnonzero(bits_of(wanted) != bits_of(decoded))
        data = encode_correction(changed, wanted, decoded)
        return {PIN: data} if data else {}

    def side_information(self, rows: slice) -> None:
        """Nothing: a reader needs no more than the sections."""
        return
