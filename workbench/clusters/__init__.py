"""Clusters of particles: finding them, and keeping them."""

from workbench.clusters.broken import BrokenLinks, broken_links
from workbench.clusters.catalogue import Catalogue, catalogue
from workbench.clusters.friends import absolute_linking_length, friends_of_friends
from workbench.clusters.groups import Groups
from workbench.clusters.keep import Correction, KeepClusters, correct

__all__ = [
    "BrokenLinks",
    "Catalogue",
    "Correction",
    "Groups",
    "KeepClusters",
    "absolute_linking_length",
    "broken_links",
    "catalogue",
    "correct",
    "friends_of_friends",
]
