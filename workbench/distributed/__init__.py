"""What is about clusters alone; the verbs of `wb` take data of any size, and a `client`.

Particles that do not fit into memory are given as what `wb.open_chunked` takes or returns, or in a Dask array
(`from_dask`); fields as arrays of Dask, Zarr, h5py or xarray, or as a `ChunkedField`, which adds a mask, a spacing and
metadata.

>>> import workbench as wb
>>> print(wb.distributed.plan(10**9, workers=64, memory="8GB").parts)
954
"""

from workbench.run.chunked_field import ChunkedField
from workbench.run.dask_particles import from_dask
from workbench.run.gpu_workers import local_gpus
from workbench.run.submission import Submitted
from workbench.subdomains.comparison import GroupComparison, compare_groups
from workbench.subdomains.groups import DistributedGroups
from workbench.subdomains.plan import Plan, Rates, plan

__all__ = [
    "ChunkedField",
    "DistributedGroups",
    "GroupComparison",
    "Plan",
    "Rates",
    "Submitted",
    "compare_groups",
    "from_dask",
    "local_gpus",
    "plan",
]
