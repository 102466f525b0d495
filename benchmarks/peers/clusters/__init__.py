"""Baselines for keeping clusters: earlier methods, implemented from their published description.

The comparison is fair: the baselines use the same predicate, the same images in periodic boxes and the same entropy coder
as our method, and a step that does not depend on the unit of length. Their defining properties are kept: a list of every
pair that could change, one joint correction, quantised at the end, and no final check. They report the outcome instead.
"""

from peers.clusters.baseline import Baseline
from peers.clusters.methods import published, vulnerable_lossless

__all__ = ["Baseline", "published", "vulnerable_lossless"]
