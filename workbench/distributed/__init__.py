"""Data that do not fit into one machine: friends of friends and archives on a Dask cluster.

Particles are given as what `wb.open_chunked` takes or returns, as `wb.Particles`, or in a Dask array (`from_dask`).

>>> import workbench as wb
>>> with wb.distributed.friends_of_friends(wb.synthetic.cosmic_web(n=16, seed=1), parts=3) as groups:
...     groups.catalogue(min_members=100).members.max() > 100
np.True_
"""

from workbench.run.chunked_field import ChunkedField
from workbench.run.dask_particles import from_dask
from workbench.run.gpu_workers import local_gpus
from workbench.subdomains.comparison import GroupComparison, compare_groups
from workbench.subdomains.groups import DistributedGroups, friends_of_friends
from workbench.subdomains.plan import Plan, Rates, plan

__all__ = [
    "ChunkedField",
    "DistributedGroups",
    "GroupComparison",
    "Plan",
    "Rates",
    "compare_groups",
    "friends_of_friends",
    "from_dask",
    "local_gpus",
    "plan",
]
