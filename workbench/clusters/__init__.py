"""Clusters of particles: finding them, and what keeps them."""

from workbench.clusters.friends import absolute_linking_length, friends_of_friends
from workbench.clusters.groups import Groups

__all__ = ["Groups", "absolute_linking_length", "friends_of_friends"]
