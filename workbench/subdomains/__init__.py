"""Particles that do not fit into memory, divided in space: exchange, friends of friends, and the order along a curve."""
