"""Clusters of particles: finding them, and keeping them."""

from workbench.clusters.catalogue import Catalogue, catalogue
from workbench.clusters.friends import absolute_linking_length, friends_of_friends
from workbench.clusters.groups import Groups
from workbench.clusters.keep import Correction, KeepClusters, correct

__all__ = [
    "Catalogue",
    "Correction",
    "Groups",
    "KeepClusters",
    "absolute_linking_length",
    "catalogue",
    "correct",
    "friends_of_friends",
]
