"""`import workbench.xarray`: the accessor `.wb` of xarray's datasets and arrays.

The engine, by which `xarray.open_dataset("x.zip")` reads archives, needs no import: xarray finds it by its entry point.
Both are apart from `import workbench`, which does not import xarray.
"""

from workbench.xarray.accessor import OfDataArray, OfDataset

__all__ = ["OfDataArray", "OfDataset"]
