"""Reads archives as somebody does who has zarr-python and xarray alone; run as a program, not imported.

`python plain_reader.py FOLDER` opens each archive FOLDER/NAME.zarr and FOLDER/NAME.zip, and writes what it finds to
FOLDER/NAME.npz: with `-I` and without our entry points, so nothing of the package can be loaded by accident.
"""

import importlib.metadata
import sys
import warnings
from pathlib import Path


def hide_ours() -> None:
    """Make the package, and what others may have beside it, impossible to import; leave out our entry points."""
    for absent in ("workbench", "dask", "pint", "sparse", "cupy"):   # whoever imports one gets an ImportError
        sys.modules[absent] = None   # type: ignore[assignment]
    entry_points = importlib.metadata.entry_points

    def others(**given):
        found = entry_points(**given)
        kept = [one for one in found if not one.value.startswith("workbench")] if given else []
        return importlib.metadata.EntryPoints(kept) if given else found

    importlib.metadata.entry_points = others


if __name__ == "__main__":   # pytest imports this file to look for doctests
    hide_ours()

import numpy as np  # noqa: E402
import xarray  # noqa: E402
import zarr  # noqa: E402


def read(path):
    """The arrays of a group by zarr-python, as xarray opens them, and what else xarray says."""
    store = zarr.storage.ZipStore(path, mode="r") if path.suffix == ".zip" else str(path)
    group = zarr.open_group(store, mode="r")
    found = {f"zarr {name}": array[...] for name, array in group.arrays()}
    if path.suffix == ".zarr":   # one array alone, without the document of the group
        name = next(group.array_keys())
        assert (zarr.open_array(f"{path}/{name}", mode="r")[...].tobytes() == found[f"zarr {name}"].tobytes())
    dataset = xarray.open_zarr(store, chunks=None)
    found |= {f"xarray {name}": variable.values for name, variable in dataset.variables.items()}
    found |= {f"units {name}": one.attrs["units"] for name, one in dataset.variables.items() if "units" in one.attrs}
    found["coordinates"] = sorted(map(str, dataset.coords))
    return found


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3 specification")
    for place in sorted(Path(sys.argv[1]).iterdir()):
        if place.suffix in (".zip", ".zarr"):
            np.savez(place.with_suffix(f"{place.suffix}.npz"), **read(place))
    assert not [name for name in sys.modules if name.startswith("workbench.")]
