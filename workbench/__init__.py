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
from typing import TYPE_CHECKING, Any

from workbench.errors import GuaranteeBroken, WorkbenchError

if TYPE_CHECKING:
    from workbench import bounds, clusters, codecs, distributed, limits, metrics, propagation
    from workbench import lab as lab
    from workbench.archive import Archive, Collection, Dataset, Series, curl, divergence
    from workbench.archive.compress import compress
    from workbench.archive.converting import convert
    from workbench.archive.linear_combination import linear_combination
    from workbench.auditing.audit import audit
    from workbench.auditing.result import Audit
    from workbench.bounds import PSNR, SSIM, All, Found, KeepMassFunction, KeepSpectrum, Prediction, Quality, Ratio, Sweep
    from workbench.bounds.prediction.predict import predict
    from workbench.bounds.sweep import iter_sweep, sweep
    from workbench.bounds.tuning.allocation import find_bounds
    from workbench.bounds.tuning.find import find_bound
    from workbench.clusters import Groups, KeepClusters
    from workbench.clusters.descent import Descent, descent
    from workbench.data import Field, Particles, Trajectory, Variable, synthetic
    from workbench.data.readers import open_chunked, open_series, open_trajectory
    from workbench.data.readers import open_file as open
    from workbench.guarantees import Absolute, Exact, PerSlice, PointwiseRelative, Relative, Safeguard
    from workbench.limits import rate_distortion
    from workbench.metrics.compare import compare
    from workbench.progress import ProgressBar
    from workbench.propagation.weights import KL, compress_model
    from workbench.subdomains.comparison import compare_groups
    from workbench.subdomains.groups import friends_of_friends

__version__ = "0.1.0"
__all__ = [
    "KL",
    "PSNR",
    "SSIM",
    "Absolute",
    "All",
    "Archive",
    "Audit",
    "Collection",
    "Dataset",
    "Descent",
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
    "Series",
    "Sweep",
    "Trajectory",
    "Variable",
    "WorkbenchError",
    "audit",
    "bounds",
    "clusters",
    "codecs",
    "compare",
    "compare_groups",
    "compress",
    "compress_model",
    "convert",
    "curl",
    "descent",
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
    "open_trajectory",
    "predict",
    "propagation",
    "rate_distortion",
    "sweep",
    "synthetic",
]

# A name is imported when it is used first (PEP 562): a process that decodes or reads a file loads a fraction of the
# package, and starts within a fraction of the time.
_MODULES = {
    **{name: name for name in ("archive", "bounds", "clusters", "codecs", "data", "distributed", "guarantees")},
    **{name: name for name in ("lab", "limits", "metrics", "propagation")},
    "synthetic": "data.synthetic",
}
_NAMES = {
    "archive": "Archive Collection Dataset Series compress convert curl divergence linear_combination",
    "auditing": "Audit audit",
    "bounds": "PSNR SSIM All Found KeepMassFunction KeepSpectrum Prediction Quality Ratio Sweep find_bound find_bounds"
    " iter_sweep predict sweep",
    "clusters": "Groups KeepClusters",
    "clusters.descent": "Descent descent",
    "data": "Field Particles Trajectory Variable",
    "data.readers": "open open_chunked open_series open_trajectory",
    "guarantees": "Absolute Exact PerSlice PointwiseRelative Relative Safeguard",
    "limits": "rate_distortion",
    "metrics": "compare",
    "progress": "ProgressBar",
    "propagation.weights": "KL compress_model",
    "subdomains.comparison": "compare_groups",
    "subdomains.groups": "friends_of_friends",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _module(_MODULES[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    value = globals()[name] = getattr(_module(_HOMES[name]), "open_file" if name == "open" else name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_HOMES})


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"workbench.{name}")
    except ModuleNotFoundError as error:
        if name != "lab":
            raise
        raise WorkbenchError(f"panels need {error.name}: pip install 'lossbench[lab]'") from error
