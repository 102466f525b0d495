"""Data that do not fit into one machine: friends of friends and archives on a Dask cluster."""
