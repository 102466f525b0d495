"""Keeping clusters: decoded particles have exactly the groups of the original particles."""

from workbench.clusters.keep.correct import correct, keep_clusters
from workbench.clusters.keep.correction import Correction
from workbench.clusters.keep.promise import KeepClusters

__all__ = ["Correction", "KeepClusters", "correct", "keep_clusters"]
