"""Archives as datasets of xarray: `xarray.open_dataset("x.zip")`, with values that are decoded where they are used.

A variable is read by region, so only the chunks that are needed are decoded; with `chunks={}` it is an array of Dask whose
blocks are those chunks. Names, dimensions, attributes, encodings and coordinates are those that the archive was made from.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendEntrypoint

from workbench.archive.archive import Archive
from workbench.archive.collection.collection import Collection
from workbench.archive.collection.dataset import dataset_of, in_group
from workbench.archive.opening import opened
from workbench.archive.recognition import is_archive
from workbench.data import Field
from workbench.errors import WorkbenchError, briefly
from workbench.xarray.decoding import lazy_variable

OPTIONS = ("drop_variables", "group", "codecs", "most_bytes", "isolate", "storage_options")
DECODING = (
    "mask_and_scale", "decode_times", "concat_characters", "decode_coords", "use_cftime", "decode_timedelta",
)   # options of xarray for files
WHOLE = "values"   # the name of the variable of an archive of one array without a name


class LossbenchEngine(BackendEntrypoint):
    """The engine `lossbench`."""

    description = "Lossbench archives: error-bounded, checked when they are decoded"
    open_dataset_parameters = ("filename_or_obj", *OPTIONS, *DECODING)
    supports_groups = True

    def open_dataset(   # type: ignore[override]
        self, filename_or_obj: str | os.PathLike[str], *, drop_variables: str | Iterable[str] | None = None,
        group: str | None = None, **options: Any,
    ) -> xarray.Dataset:
        """The archive as a dataset; nothing is decoded yet. `group` is one of a collection with groups."""
        return _dataset(_opened(filename_or_obj, **options), _path_of(group), _dropped(drop_variables))

    def open_groups_as_dict(   # type: ignore[override]
        self, filename_or_obj: str | os.PathLike[str], *, drop_variables: str | Iterable[str] | None = None,
        group: str | None = None, **options: Any,
    ) -> dict[str, xarray.Dataset]:
        """A dataset for each group, by its path; of those in `group`, by their paths there."""
        archive, dropped, top = _opened(filename_or_obj, **options), _dropped(drop_variables), _path_of(group)
        groups = list(archive.groups) if isinstance(archive, Collection) else []
        inside = [name for name in groups if name.startswith(f"{top}/")] if top else [name for name in groups if name]
        return {f"/{name[len(top):].strip('/')}": _dataset(archive, name, dropped) for name in (top, *inside)}

    def open_datatree(self, filename_or_obj: str | os.PathLike[str], **options: Any) -> xarray.DataTree:   # type: ignore[override]
        """All groups as a tree, or those in `group`."""
        return xarray.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this is the path of an archive. What is at an address is not asked: give engine="lossbench"."""
        return isinstance(filename_or_obj, str | os.PathLike) and is_archive(filename_or_obj)


def _opened(
    path: str | os.PathLike[str], *, codecs: Iterable[str] | None = None, most_bytes: int | None = None,
    isolate: bool = True, storage_options: Mapping[str, Any] | None = None, **decoding: Any,
) -> Archive | Collection:
    """The archive, with the options of `wb.open`; `decoding` are those that xarray has for files."""
    _require_decoded(decoding)
    return opened(path, False, storage_options, codecs=_allowed(codecs), most_bytes=most_bytes, isolate=isolate)


def _require_decoded(options: Mapping[str, Any]) -> None:
    """Refuse to undo what the source was opened with: an archive holds dates and unpacked values."""
    for name, value in options.items():
        if name not in DECODING:
            raise WorkbenchError(f"{name!r} is no option for archives: they take {', '.join(OPTIONS)}")
        if value not in (None, True):
            raise WorkbenchError(
                f"{name}={value!r} is for files that hold packed values and coded dates; an archive holds what the source "
                "was opened as: leave it out"
            )


def _allowed(codecs: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if codecs is None else tuple(codecs)


def _path_of(group: Any) -> str:
    """The name of a group in an archive; "" is the whole.

    >>> _path_of("/ocean/deep"), _path_of(None)
    ('ocean/deep', '')
    """
    if not isinstance(group, str | None):
        raise WorkbenchError(f"group must be text, such as 'ocean'; got {briefly(group)}")
    return (group or "").strip("/")


def _dropped(names: Any) -> set[str]:
    """The variables that are left out: one name, or several.

    >>> _dropped("T"), sorted(_dropped(["T", "S"]))
    ({'T'}, ['S', 'T'])
    """
    if isinstance(names, str):
        return {names}
    try:
        return set(names or ())
    except TypeError:
        raise WorkbenchError(f"drop_variables must be a name or a list of names; got {briefly(names)}") from None


def _dataset(archive: Archive | Collection, group: str, dropped: set[str]) -> xarray.Dataset:
    if isinstance(archive, Archive):
        if group:
            raise WorkbenchError(f"{archive.store.name} holds one array and no groups; got group={group!r}")
        return _of_one(archive)
    names, about = in_group(archive, archive.groups, group), archive.groups[group]
    variables = {own: lazy_variable(own, archive[name]) for own, name in names.items() if own not in dropped}
    return dataset_of(xarray, variables, about)


def _of_one(archive: Archive) -> xarray.Dataset:
    """An archive of one field, with the coordinates that it carries."""
    if archive.kind == "particles":
        raise WorkbenchError(f"{archive.store.name} holds particles: open it by wb.open(...)")
    name = archive.attributes.get("name") or WHOLE
    metadata = archive.attributes.get("metadata", {})
    shape = archive.data.layout.shape
    shown = Field(np.broadcast_to(np.zeros((), archive.data.layout.dtype), shape), name=name, metadata=metadata).to_xarray()
    return xarray.Dataset({name: lazy_variable(name, archive)}, shown.coords)


