"""Clusters of particles: finding them, and what keeps them."""

from workbench.clusters.catalogue import Catalogue, catalogue
from workbench.clusters.friends import absolute_linking_length, friends_of_friends
from workbench.clusters.groups import Groups

__all__ = ["Catalogue", "Groups", "absolute_linking_length", "catalogue", "friends_of_friends"]
