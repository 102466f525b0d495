"""Keeping clusters of particles that are spread over many processes."""
