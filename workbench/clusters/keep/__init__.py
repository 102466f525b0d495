"""Keeping clusters: decoded particles have the groups of the original ones, exactly."""

from workbench.clusters.keep.correct import correct, keep_clusters
from workbench.clusters.keep.correction import Correction
from workbench.clusters.keep.promise import KeepClusters

__all__ = ["Correction", "KeepClusters", "correct", "keep_clusters"]
