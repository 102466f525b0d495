"""What keeping clusters is compared with: the methods there were before, implemented from their description.

A comparison is worth something only when the other side is given every chance. So the methods here are those published,
with the same predicate, the same images in periodic boxes and the same entropy coder as ours, and with a step that does not
depend on the unit of length. What makes them what they are is kept: a list of every pair that could change, one correction
for all, quantised at the end, and no check afterwards. They report what came of it instead.
"""

from workbench.clusters.baselines.baseline import Baseline
from workbench.clusters.baselines.methods import published, vulnerable_lossless

__all__ = ["Baseline", "published", "vulnerable_lossless"]
