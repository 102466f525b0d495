"""Data that do not fit into one machine: friends of friends and archives on a Dask cluster.

>>> import workbench as wb
>>> with wb.distributed.friends_of_friends(wb.synthetic.cosmic_web(n=16, seed=1), parts=3) as groups:
...     groups.catalogue(min_members=100).members.max() > 100
np.True_
"""

from workbench.distributed.campaign import campaign
from workbench.distributed.compress import compress
from workbench.distributed.groups import DistributedGroups, friends_of_friends

__all__ = ["DistributedGroups", "campaign", "compress", "friends_of_friends"]
