"""The source as a few classes of components of equal variance, for random coding.

Components of variance zero have no error, so their distortion is available to the others. Sources with many different
variances are grouped. Grouping raises the rate, by the difference of arithmetic and geometric means; this increase is
known exactly from the rate-distortion functions and is subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError
from workbench.limits.spectrum import LOG2E, Spectrum, require_distortion

MOST_CLASSES = 64
SAME = 1e-9   # relative difference below which variances count as equal


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of components, the squared distance allowed, and the relation to samples of the field."""

    spectrum: Spectrum     # of the classes, all variances positive
    room: float            # the squared distance allowed
    samples: float         # of the field
    correction: float      # bits per sample to add for the grouping: zero or slightly negative

    @classmethod
    def of(cls, spectrum: Spectrum, distortion: float) -> Classes:
        """The source with this spectrum, where the mean square error may be `distortion`."""
        distortion = require_distortion(distortion)
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
        """The variance of each class, ascending."""
        return self.spectrum.values

    @property
    def counts(self) -> np.ndarray:
        """The number of components of each class."""
        return self.spectrum.counts

    @property
    def size(self) -> float:
        """The number of components that are not constant."""
        return self.spectrum.size

    @property
    def distortion(self) -> float:
        """The mean square error allowed per component that is not constant."""
        return self.room / self.size

    def bits(self, log_codewords: float) -> float:
        """The rate of exp(log_codewords) codewords, in bits per sample of the field."""
        return max(0.0, bits(log_codewords, self.samples) + self.correction)


def bits(log_codewords: float, samples: float) -> float:
    """The rate of exp(log_codewords) codewords, rounded up to a whole number, in bits per sample."""
    whole = np.log(np.ceil(np.exp(log_codewords) * (1 - 1e-9))) if log_codewords < 30 else log_codewords
    return LOG2E * float(whole) / samples


def _joined(spectrum: Spectrum) -> Spectrum:
    """The spectrum with equal variances merged."""
    values, counts = spectrum.values, spectrum.counts
    starts = np.flatnonzero(np.concatenate([[True], values[1:] > values[:-1] * (1 + SAME)]))
    together = np.add.reduceat(counts, starts)
    return Spectrum(np.add.reduceat(values * counts, starts) / together, together)
