"""Clusters of particles: finding them, and keeping them."""

from workbench.clusters.broken import BrokenLinks, broken_links
from workbench.clusters.catalogue import Catalogue, catalogue
from workbench.clusters.catalogue_summary import CatalogueSummary
from workbench.clusters.friends import absolute_linking_length, friends_of_friends
from workbench.clusters.groups import Groups
from workbench.clusters.keep import Correction, KeepClusters, correct
from workbench.clusters.kmeans import Integrity, Kmeans, kmeans
from workbench.clusters.kmeans_faults import ProductFlips, SumFlip

__all__ = [
    "BrokenLinks",
    "Catalogue",
    "CatalogueSummary",
    "Correction",
    "Groups",
    "Integrity",
    "KeepClusters",
    "Kmeans",
    "ProductFlips",
    "SumFlip",
    "absolute_linking_length",
    "broken_links",
    "catalogue",
    "correct",
    "friends_of_friends",
    "kmeans",
]
