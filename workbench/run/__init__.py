"""Who runs the steps of a computation: this process, or the workers of a Dask cluster; and what they need for it."""
