"""Lossbench: shrink particle and field data without losing the science.

>>> import workbench as wb
>>> snapshot = wb.synthetic.cosmic_web(n=16, seed=1)
>>> groups = wb.friends_of_friends(snapshot, linking_length=0.2)
>>> groups.labels.shape
(4096,)
"""

from workbench.clusters import Groups, friends_of_friends
from workbench.data import Field, Particles, Partition, synthetic
from workbench.data.readers import open_file as open
from workbench.errors import GuaranteeBroken, WorkbenchError

__version__ = "0.1.0"
__all__ = [
    "Field",
    "Groups",
    "GuaranteeBroken",
    "Particles",
    "Partition",
    "WorkbenchError",
    "friends_of_friends",
    "open",
    "synthetic",
]
