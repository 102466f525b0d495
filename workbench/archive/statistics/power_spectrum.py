"""The power spectrum of an archived field, with a proven interval for that of the original in each shell.

The transform keeps norms (Parseval): the errors e of N values add, in all waves together, at most sqrt(N) |e| to the
amplitude of a shell, the root of the sum of its squares. So the amplitude of the original is within this of the decoded
one, whatever the errors are like. That is far more than what unrelated errors add: weak shells have intervals that begin
at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.archive.statistics.answer import Answer
from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.figure import VALUES
from workbench.archive.statistics.reductions import error_norm
from workbench.archive.statistics.selection import part_of_grid
from workbench.data import Field
from workbench.errors import WorkbenchError
from workbench.metrics.spectrum import field_spectrum
from workbench.rounding import rounded_outwards

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

ROUNDED = 2.0**-46   # of the amplitude of all waves, for each doubling of the number of values: of the transform in float64


@dataclass(frozen=True, eq=False, repr=False)
class PowerSpectrum(Answer):
    """The power of each shell of the original field: at least `low` and at most `high`; `power` is the decoded one.

    `k` is the mean wave number of a shell, `modes` the number of its waves; the convention is that of
    `wb.metrics.field_spectrum`. Powers are in the unit of the squared field times volume.
    """

    k: np.ndarray
    power: np.ndarray
    low: np.ndarray
    high: np.ndarray
    modes: np.ndarray
    nyquist: float
    stage: str
    bytes_read: int
    bytes_stored: int

    def known_up_to(self, share: float = 0.1) -> float:
        """The wave number up to which all powers are known within this share of themselves; 0 if none is."""
        wide = np.maximum(self.high - self.power, self.power - self.low) > share * self.power
        return float(self.k[-1] if not wide.any() else self.k[np.argmax(wide) - 1] if not wide[0] else 0.0)

    def __repr__(self) -> str:
        return f"PowerSpectrum({len(self.k)} shells, within 10 % up to k = {self.known_up_to():.4g} of {self.nyquist:.4g})"


def power_spectrum(archive: Archive) -> PowerSpectrum:
    """The power spectrum of the field of an archive on a periodic grid; of four axes, the mean over the first.

    >>> import workbench as wb
    >>> field = wb.synthetic.gaussian_field((64, 64), lambda k: np.where(k > 0, np.maximum(k, 1e-9) ** -4.0, 0), seed=1)
    >>> spectrum = power_spectrum(wb.compress(field, wb.Relative(1e-4)))
    >>> bool((spectrum.low <= spectrum.power).all() and (spectrum.power <= spectrum.high).all())
    True
    """
    norm = error_norm(archive)   # refuses what is no field
    if archive.data.layout.dtype.kind != "f":
        raise WorkbenchError("a power spectrum is of floating-point values; convert with field.values.astype('float64')")
    field = archive.decompress()
    spectrum = field_spectrum(field)
    shape = field.shape[-3:]
    leads, points = math.prod(field.shape) // math.prod(shape), math.prod(shape)
    volume = math.prod(size * step for size, step in zip(shape, field.spacing[-3:], strict=True))
    scale = volume / points**2 / (spectrum.modes * leads)   # of the squares of a shell, to its power
    error = rounded_outwards(norm / Fraction(2) ** (spectrum.exponent // 2)) * math.sqrt(points)
    amplitude = np.sqrt(spectrum.power / scale)
    error += ROUNDED * math.log2(2 * points) * _amplitude_of_all(field, spectrum.exponent // 2)
    with np.errstate(over="ignore"):
        low, high = (
            np.ldexp(np.maximum(amplitude + sign * error, 0) ** 2 * scale * (1 + sign * ROUNDED), spectrum.exponent)
            for sign in (-1, 1)
        )
    low = np.minimum(low, np.finfo(np.float64).max)   # what is beyond all numbers is not infinite
    nbytes = FieldPart(archive, part_of_grid(archive, None)).nbytes_stored
    return PowerSpectrum(
        spectrum.k, spectrum.whole_power, low, high, spectrum.modes, spectrum.nyquist, VALUES, nbytes, nbytes
    )


def _amplitude_of_all(field: Field, exponent: int) -> float:
    """At least the root of the sum of the squares of all waves, in units of 2^exponent."""
    values = np.ldexp(np.where(field.valid, field.values, 0).astype(np.float64), -exponent)
    return float(np.linalg.norm(values)) * math.sqrt(values.size) * (1 + ROUNDED)
