"""Lossbench: shrink particle and field data without losing the science.

>>> import workbench as wb
>>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
>>> groups = wb.friends_of_friends(snapshot, linking_length=0.2)
>>> groups.labels.shape
(4096,)
>>> archive = wb.compress(snapshot, wb.Absolute(0.01))
>>> archive.decompress()
Particles(4,096 in 3-D, float32, box 16 x 16 x 16, velocities, ids)
"""

import importlib
import typing

from workbench import bounds, clusters, codecs, distributed, limits, metrics, propagation
from workbench.archive import Archive, Collection, Dataset, compress, curl, divergence, linear_combination
from workbench.bounds import (
    PSNR,
    SSIM,
    All,
    Found,
    KeepMassFunction,
    KeepSpectrum,
    Prediction,
    Quality,
    Ratio,
    Sweep,
    find_bound,
    find_bounds,
    iter_sweep,
    predict,
    sweep,
)
from workbench.clusters import Groups, KeepClusters
from workbench.data import Field, Particles, Variable, synthetic
from workbench.data.readers import open_chunked, open_series
from workbench.data.readers import open_file as open
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees import Absolute, Exact, PerSlice, PointwiseRelative, Relative, Safeguard
from workbench.limits import rate_distortion
from workbench.metrics import compare
from workbench.progress import ProgressBar
from workbench.subdomains.comparison import compare_groups
from workbench.subdomains.groups import friends_of_friends

if typing.TYPE_CHECKING:
    from workbench import lab as lab

__version__ = "0.1.0"
__all__ = [
    "PSNR",
    "SSIM",
    "Absolute",
    "All",
    "Archive",
    "Collection",
    "Dataset",
    "Exact",
    "Field",
    "Found",
    "Groups",
    "GuaranteeBroken",
    "KeepClusters",
    "KeepMassFunction",
    "KeepSpectrum",
    "Particles",
    "PerSlice",
    "PointwiseRelative",
    "Prediction",
    "ProgressBar",
    "Quality",
    "Ratio",
    "Relative",
    "Safeguard",
    "Sweep",
    "Variable",
    "WorkbenchError",
    "bounds",
    "clusters",
    "codecs",
    "compare",
    "compare_groups",
    "compress",
    "curl",
    "distributed",
    "divergence",
    "find_bound",
    "find_bounds",
    "friends_of_friends",
    "iter_sweep",
    "limits",
    "linear_combination",
    "metrics",
    "open",
    "open_chunked",
    "open_series",
    "predict",
    "propagation",
    "rate_distortion",
    "sweep",
    "synthetic",
]


def __getattr__(name: str) -> typing.Any:
    """`wb.lab`, imported when it is asked for: the core starts without any widget."""
    if name != "lab":
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    try:
        return importlib.import_module("workbench.lab")
    except ModuleNotFoundError as error:
        raise WorkbenchError(f"panels need {error.name}: pip install 'lossbench[lab]'") from error
