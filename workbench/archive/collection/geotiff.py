"""TIFF and GeoTIFF files, by rioxarray: each band is a variable, with its place on Earth beside it.

Values without data become NaN, and packed numbers are unpacked, as xarray does for NetCDF; integers of which all count
stay integers. The pages of a file are groups. Bytes are always read as TIFF, so a file cannot name others.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError

MAGICS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")   # of either byte order, the last two for files beyond 4 GB
DRIVER = "GTiff"


@contextmanager
def opened_geotiff(path: Path) -> Iterator[dict[str, Any]]:
    """The datasets of xarray in a file, by the names of their groups; a single page has none. Values are read later."""
    import rasterio
    import rioxarray  # noqa: F401 - before a page is opened, so that the library that is missing is named

    own = str(path.absolute())
    with ExitStack() as stack:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")   # of images that are of no place on Earth
                with rasterio.open(own, driver=DRIVER) as file:
                    pages = file.subdatasets
                names = {f"page_{number}": page for number, page in enumerate(pages, 1)} or {"": own}
                found = {group: stack.enter_context(_page(name)) for group, name in names.items()}
        except Exception as error:   # of GDAL, rasterio and rioxarray, of many kinds
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise WorkbenchError(f"{path.name} must be a TIFF file; it cannot be read: {reason}") from None
        yield found


@contextmanager
def _page(name: str) -> Iterator[Any]:
    """The bands of an image as variables."""
    import rasterio
    import rioxarray

    with rasterio.open(name, driver=DRIVER) as file:
        flags, changed = rasterio.enums.MaskFlags, []
        for nodata, mask, *packing in zip(file.nodatavals, file.mask_flag_enums, file.scales, file.offsets, strict=True):
            masked = nodata is not None or (flags.per_dataset in mask and flags.alpha not in mask)
            changed.append(masked or packing != [1, 0])
    read: Any = functools.partial(rioxarray.open_rasterio, name, band_as_variable=True, driver=DRIVER)
    with read() as plain, read(mask_and_scale=True) as decoded:
        bands = {band: (decoded if own else plain)[band] for own, band in zip(changed, plain.data_vars, strict=True)}
        for own, band in zip(changed, bands.values(), strict=True):
            band.encoding.pop("rasterio_dtype", None)
            for key, nothing in (("scale_factor", 1), ("add_offset", 0)):
                stated = band.encoding if own else band.attrs
                if stated.get(key) == nothing:
                    del stated[key]
        yield plain.assign(bands)
