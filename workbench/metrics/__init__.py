"""Metrics of the difference between two data sets: errors, similarity, spectra and halos, and a report of all.

The original comes first, the decoded second, everywhere.
"""

from workbench.metrics.compare import compare
from workbench.metrics.displacements import Displacements, displacements
from workbench.metrics.errors import Errors, pointwise
from workbench.metrics.halos import HaloMatch, MassFunction, mass_function, match_halos
from workbench.metrics.particle_spectrum import particle_spectrum
from workbench.metrics.report import Check, Report
from workbench.metrics.similarity import ssim
from workbench.metrics.spectrum import Spectrum, field_spectrum, spectrum_ratio, worst_deviation
from workbench.metrics.structure import ErrorHistogram, error_autocorrelation, error_histogram

__all__ = [
    "Check",
    "Displacements",
    "ErrorHistogram",
    "Errors",
    "HaloMatch",
    "MassFunction",
    "Report",
    "Spectrum",
    "compare",
    "displacements",
    "error_autocorrelation",
    "error_histogram",
    "field_spectrum",
    "mass_function",
    "match_halos",
    "particle_spectrum",
    "pointwise",
    "spectrum_ratio",
    "ssim",
    "worst_deviation",
]
