"""From what a caller names to a snapshot: the files, their one format, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.data.readers.address import is_address
from workbench.data.readers.format import Format
from workbench.data.readers.leaving import named
from workbench.data.readers.limits import ReadLimits, without_limits
from workbench.data.readers.named_columns import NAMED
from workbench.data.readers.paths import alike, in_folder, is_several, listed, require_distinct, require_no_gap
from workbench.data.readers.registry import check_options, format_of, formats
from workbench.data.readers.snapshots import Snapshot
from workbench.data.readers.source import Source
from workbench.errors import SeveralArrays, WorkbenchError


def is_set(given: Any, wanted: str | None) -> bool:
    """Whether this names the files of a snapshot: a list, a pattern, or a folder that is no store of another format."""
    if is_several(given):
        return True
    source = Source.at(given)
    return source.is_folder and wanted is None and not any(known.recognises(source) for known in formats())


def snapshot_of(given: Any, wanted: str | None, options: Mapping[str, Any]) -> Snapshot:
    """The snapshot in these files; everything that can be known without reading particles is checked."""
    sources, others = _sources(given, wanted, options)
    found = format_of(sources[0], wanted, options)
    if found.snapshot is None:
        advice = ", or name the data set of its positions by positions=..." if NAMED.recognises(sources[0]) else ""
        error = SeveralArrays if len(sources) > 1 else WorkbenchError
        raise error(
            f"{sources[0].name} is read as {found.title}, as a whole and alone: open it by wb.open(...){advice}"
        )
    if not isinstance(given, list | tuple):
        require_no_gap([source.path for source in sources])
    for other in sources[1:]:
        if wanted is None and not found.recognises(other):
            raise WorkbenchError(
                f"the files of a snapshot have one format; {sources[0].name} is {found.title}, and {other.name} is not"
            )
    own = without_limits(options, found.snapshot_options)
    check_options(found, sources[0], own, found.snapshot_options)
    placing = {"box", "wrap"}
    snapshot: Snapshot = found.snapshot(sources, **{key: value for key, value in own.items() if key not in placing})
    return snapshot.within(sources[0].limits).noting(named("file", others))


def _sources(given: Any, wanted: str | None, options: Mapping[str, Any]) -> tuple[list[Source], list[str]]:
    """The files, and the names of those beside them that are no particles."""
    limits = ReadLimits.among(options)
    if is_several(given):
        paths = listed(given)
        require_distinct(paths)
        return [Source.at(path.absolute(), limits) for path in paths], []
    if not is_set(given, wanted):
        return [Source.at(given if is_address(given) else Path(given).expanduser().absolute(), limits)], []
    paths = in_folder(Path(given).expanduser().absolute())
    sources = {path: Source.at(path, limits) for path in paths if path.stat().st_size}
    chosen = [source for source in sources.values() if _holds_particles(source, wanted, options)]
    if not chosen:
        raise WorkbenchError(
            f"the folder {Path(given).name} has no known format, and no file in it is a part of a snapshot: give the "
            "path of one file"
        )
    for path in paths:
        if path not in sources and alike(path, chosen[0].path):
            Source.at(path)   # an error: the file of a set is empty, unlike a marker of zero bytes beside it
    require_distinct(source.path for source in chosen)
    taken = {source.path for source in chosen}
    return chosen, [path.name for path in paths if path not in taken]


def _holds_particles(source: Source, wanted: str | None, options: Mapping[str, Any]) -> bool:
    if options.get("positions") is not None:
        return NAMED.recognises(source)
    found: Format | None = next((known for known in formats() if known.recognises(source)), None)
    return found is not None and found.snapshot is not None and found is not NAMED and wanted in (None, found.key)
