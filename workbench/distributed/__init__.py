"""Data that do not fit into one machine: friends of friends and archives on a Dask cluster.

Particles are given as what `wb.open_chunked` takes or returns, as `wb.Particles`, or in a Dask array (`from_dask`).

>>> import workbench as wb
>>> with wb.distributed.friends_of_friends(wb.synthetic.cosmic_web(n=16, seed=1), parts=3) as groups:
...     groups.catalogue(min_members=100).members.max() > 100
np.True_
"""

from workbench.distributed.campaign import campaign
from workbench.distributed.comparison import GroupComparison, compare_groups
from workbench.distributed.compress import compress
from workbench.distributed.dask_arrays import from_dask
from workbench.distributed.fields import ChunkedField
from workbench.distributed.fields_compare import compare
from workbench.distributed.fields_predict import predict
from workbench.distributed.fields_sweep import sweep
from workbench.distributed.fields_tuning import FoundInChunks, find_bound
from workbench.distributed.gpu_workers import local_gpus
from workbench.distributed.groups import DistributedGroups, friends_of_friends
from workbench.distributed.plan import Plan, Rates, plan
from workbench.distributed.verify import verify

__all__ = [
    "ChunkedField",
    "DistributedGroups",
    "FoundInChunks",
    "GroupComparison",
    "Plan",
    "Rates",
    "campaign",
    "compare",
    "compare_groups",
    "compress",
    "find_bound",
    "friends_of_friends",
    "from_dask",
    "local_gpus",
    "plan",
    "predict",
    "sweep",
    "verify",
]
