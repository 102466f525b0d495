"""Limits: the distance of a codec from the bounds of rate-distortion theory, for finite, heterogeneous, tiled fields.

`rate_distortion` (also `wb.rate_distortion`) takes a field, or one of the exact models here.

>>> from workbench import limits
>>> fair = limits.rate_distortion(limits.gauss_markov(0.5, 1.0, n=400))
>>> round(fair.rate(4 / 9), 6)
0.585481
"""

from workbench.limits.comparison import Comparison
from workbench.limits.correlation import Autoregressive, Correlation, Matern, Sampled
from workbench.limits.operating_point import OperatingPoint
from workbench.limits.result import FieldLimits, RateDistortion, rate_distortion
from workbench.limits.sources import gauss_markov, gaussian, homogeneous, memoryless, piecewise, separable
from workbench.limits.spectrum import Spectrum

__all__ = [
    "Autoregressive",
    "Comparison",
    "Correlation",
    "FieldLimits",
    "Matern",
    "OperatingPoint",
    "RateDistortion",
    "Sampled",
    "Spectrum",
    "gauss_markov",
    "gaussian",
    "homogeneous",
    "memoryless",
    "piecewise",
    "rate_distortion",
    "separable",
]
