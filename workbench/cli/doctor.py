"""`workbench doctor`: the available and the missing parts of this installation, and whether codecs decode as before."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable
from typing import Any

from workbench import __version__, backend, codecs
from workbench.archive import golden
from workbench.archive.layout import CODEC
from workbench.cli.source import print_result
from workbench.codecs.registry import codec_class
from workbench.errors import WorkbenchError

# The packages of each extra, by their pip names.
EXTRAS = {
    "lab": ("jupyterlab", "ipywidgets", "holoviews", "bokeh", "anywidget"),
    "io": ("h5py", "asdf", "netCDF4", "zarr", "MDAnalysis", "gsd", "blosc"),
    "codecs": ("pysz", "zfpy", "DracoPy", "fpzip", "hdf5plugin", "h5py", "numcodecs"),
    "grib": ("cfgrib", "eccodes"),
    "geotiff": ("rasterio", "rioxarray"),
    "limits": ("scipy",),
    "safeguards": ("compression-safeguards",),
    "dask": ("dask", "distributed"),
}


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "doctor", help="check the installation",
        description="List the available and missing parts of this installation, and decode small archives of the package, "
        "one of each codec. Exit status 1: the kernels do not work, or an archive does not decode as when it was written.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the state of the kernels, the GPU, the codecs and the extras; 1 when kernels or archives fail."""
    kernels, working = _outcome(_kernels)
    archives = list(golden.outcomes()) if working else []
    found = {
        "lossbench": __version__,
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "pcodec": importlib.metadata.version("pcodec"),
        "machine": f"{platform.system()} {platform.machine()}",
        "kernels": kernels,
        "gpu": _outcome(_gpu_name)[0],
        **{f"codec_{name}": reason or _import_of(name) for name, reason in codecs.status().items()},
        **{f"archive_{one.name}": str(one) for one in archives},
        "zarr_codec": _zarr_codec(),
        **{f"extra_{extra}": _extra(extra, packages) for extra, packages in EXTRAS.items()},
    }
    print_result(found, options.json)
    return 0 if working and not any(one.fault for one in archives) else 1


def _outcome(probe: Callable[[], str]) -> tuple[str, bool]:
    """What a part says of itself, and whether it works."""
    try:
        return probe(), True
    except WorkbenchError as error:
        return str(error), False


def _kernels() -> str:
    count = backend.threads()
    if backend.has_openmp():
        return f"compiled, {count} thread{'' if count == 1 else 's'}"
    return (
        "compiled without OpenMP, so each runs on one thread: install a compiler that has it (macOS: brew install libomp; "
        "Debian and Ubuntu: apt install g++) and lossbench again, from its sources (pip install --force-reinstall "
        "--no-binary lossbench lossbench; in a checkout, `make build`)"
    )


def _gpu_name() -> str:
    cupy = backend.gpu()
    return cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()


def _import_of(codec: str) -> str:
    """Whether the library of an installed codec can be imported: one built for another machine cannot."""
    module = codec_class(codec).module
    try:
        if module is not None:
            importlib.import_module(module)
    except Exception as error:   # libraries may raise anything while they are imported
        return f"installed, but it cannot be imported: {type(error).__name__}: {error}: install {module} again"
    return "available"


def _zarr_codec() -> str:
    """Whether plain Zarr can open archives, checked through entry points as Zarr does."""
    if importlib.util.find_spec("zarr") is None:
        return "zarr is not installed (pip install 'lossbench[io]')"
    found = [point for point in importlib.metadata.entry_points(group="zarr.codecs") if point.name == CODEC]
    if not found:
        return "not registered: install lossbench again, so that Zarr can open archives"
    try:
        found[0].load()
    except Exception as error:   # other versions of Zarr may raise anything
        return f"registered, but it cannot be loaded: {type(error).__name__}: {error}"
    return "registered: Zarr can open archives"


def _extra(extra: str, packages: tuple[str, ...]) -> str:
    versions, missing = [], []
    for package in packages:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        versions.append(f"missing: {', '.join(missing)} (pip install 'lossbench[{extra}]')")
    return ", ".join(versions)
