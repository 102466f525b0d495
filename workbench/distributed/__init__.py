"""Data that do not fit into one machine: friends of friends and archives on a Dask cluster.

Particles are given as what `wb.open_chunked` takes or returns, as `wb.Particles`, or in a Dask array (`from_dask`).

>>> import workbench as wb
>>> with wb.distributed.friends_of_friends(wb.synthetic.cosmic_web(n=16, seed=1), parts=3) as groups:
...     groups.catalogue(min_members=100).members.max() > 100
np.True_
"""

from workbench.archive.particles_in_parts import compress
from workbench.archive.verify_in_parts import verify
from workbench.bounds.prediction.in_parts import predict
from workbench.bounds.sweep_in_parts import sweep
from workbench.bounds.tuning.in_parts import FoundInChunks, find_bound
from workbench.metrics.fields_in_parts import compare
from workbench.propagation.campaign_on_workers import campaign
from workbench.run.chunked_field import ChunkedField
from workbench.run.dask_particles import from_dask
from workbench.run.gpu_workers import local_gpus
from workbench.run.submission import Submitted
from workbench.subdomains.comparison import GroupComparison, compare_groups
from workbench.subdomains.groups import DistributedGroups, friends_of_friends
from workbench.subdomains.plan import Plan, Rates, plan

__all__ = [
    "ChunkedField",
    "DistributedGroups",
    "FoundInChunks",
    "GroupComparison",
    "Plan",
    "Rates",
    "Submitted",
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
