"""The source as a random code meets it: few classes of components of equal variance.

Components of variance zero are always right: they lend their distortion to the others. What has a thousand different
variances is grouped, and the grouping raises the rate, by the difference of arithmetic and geometric means; this much is
known exactly from the rate-distortion functions, and taken off again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion

MOST_CLASSES = 64
SAME = 1e-9   # relative difference of variances that are one


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of components, their squared distance allowed, and how that relates to samples of the field."""

    spectrum: Spectrum     # of the classes, all variances positive
    room: float            # the squared distance allowed
    samples: float         # of the field
    correction: float      # bits per sample to add for the grouping: zero or a little less

    @classmethod
    def of(cls, spectrum: Spectrum, distortion: float) -> Classes:
        """The source with this spectrum, where the mean square error may be `distortion`."""
        require_distortion(distortion)
        if spectrum.variance == 0:
            raise WorkbenchError("variances must not all be zero: a constant field needs no code")
        room = distortion * spectrum.size
        first = int(np.searchsorted(spectrum.values, 0.0, side="right"))
        exact = _joined(Spectrum(spectrum.values[first:], spectrum.counts[first:]))
        classes = exact.grouped(MOST_CLASSES)
        each = room / exact.size
        correction = (exact.rate(each) - classes.rate(each)) * exact.size / spectrum.size
        return cls(classes, room, spectrum.size, correction)

    @property
    def variances(self) -> np.ndarray:
        """Of each class, ascending."""
        return self.spectrum.values

    @property
    def counts(self) -> np.ndarray:
        """How many components each class has."""
        return self.spectrum.counts

    @property
    def size(self) -> float:
        """How many components are not constant."""
        return self.spectrum.size

    @property
    def distortion(self) -> float:
        """The mean square error allowed to those."""
        return self.room / self.size

    def bits(self, log_codewords: float) -> float:
        """The rate of so many codewords, in bits per sample of the field."""
        return max(0.0, bits(log_codewords, self.samples) + self.correction)


def bits(log_codewords: float, samples: float) -> float:
    """The rate of so many codewords, rounded up to a whole number, in bits for each of the samples."""
    whole = np.log(np.ceil(np.exp(log_codewords) * (1 - 1e-9))) if log_codewords < 30 else log_codewords
    return LOG2E * float(whole) / samples


def _joined(spectrum: Spectrum) -> Spectrum:
    """The same, with each variance once."""
    values, counts = spectrum.values, spectrum.counts
    starts = np.flatnonzero(np.concatenate([[True], values[1:] > values[:-1] * (1 + SAME)]))
    together = np.add.reduceat(counts, starts)
    return Spectrum(np.add.reduceat(values * counts, starts) / together, together)
