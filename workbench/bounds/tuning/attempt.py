"""One full compression during a search, and the original that all attempts are compared with."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from workbench.archive import Archive
from workbench.archive.choice import middle
from workbench.archive.documents import Outline
from workbench.bounds.sources import FieldInParts, Measured
from workbench.clusters import Groups, friends_of_friends
from workbench.clusters.friends import Unit
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.metrics import Report, Spectrum, field_spectrum, particle_spectrum
from workbench.run.chunked_field import parts_at


class Original:
    """The data of a search, with everything about them that is computed once."""

    def __init__(self, data: Measured) -> None:
        self.data = data
        self._groups: dict[tuple[float, Unit], Groups] = {}

    @property
    def outline(self) -> Outline:
        """What an archive says of a field."""
        return Outline.of(self.data.field if isinstance(self.data, FieldInParts) else self.data)

    @functools.cached_property
    def middle(self) -> Field:
        """The middle of a field."""
        place = middle(self.outline.shape)
        if isinstance(self.data, FieldInParts):
            return parts_at(self.data.executor, self.data.field, [place])[0]
        assert isinstance(self.data, Field)
        mask = None if self.data.mask is None else self.data.mask[place]
        return Field(self.data.values[place], mask=mask)

    @property
    def sample(self) -> Field:
        """The field, or the middle of one in parts."""
        return self.data if isinstance(self.data, Field) else self.middle

    @functools.cached_property
    def spectrum(self) -> Spectrum:
        """The power spectrum of data in memory."""
        assert not isinstance(self.data, FieldInParts)
        return self.spectrum_of(self.data)

    def spectrum_of(self, decoded: Particles | Field) -> Spectrum:
        """The power spectrum of decoded data, in the box or on the valid points of the original."""
        if isinstance(self.data, Particles):
            assert isinstance(decoded, Particles)
            return particle_spectrum(decoded, within=self.data)
        assert isinstance(decoded, Field)
        valid = self.sample.valid
        if not valid.any():
            raise WorkbenchError("a power spectrum needs values; all of these are masked or not finite")
        return field_spectrum(decoded if valid.all() else Field(decoded.values, decoded.spacing, decoded.name, ~valid))

    def groups(self, linking_length: float, unit: Unit) -> Groups:
        """The friends-of-friends groups of the data."""
        assert isinstance(self.data, Particles)
        key = linking_length, unit
        if key not in self._groups:
            self._groups[key] = friends_of_friends(self.data, linking_length, unit)
        return self._groups[key]


@dataclass(frozen=True, eq=False)
class Attempt:
    """An archive at one bound, decoded and compared; `decoded[i]` is `original[order[i]]` where there is an order."""

    original: Original
    archive: Archive
    decoded: Any   # of the kind of the original
    order: Any
    report: Report
