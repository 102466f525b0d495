"""`workbench info FILE`: describe the content of files."""

from __future__ import annotations

import argparse
from typing import Any

from workbench.archive import Archive
from workbench.archive.content.registry import content_of
from workbench.cli.archives import describe_archive, print_archive
from workbench.cli.failure import failed, status_of
from workbench.cli.source import KINDS, add_file, add_trust, open_source, print_result
from workbench.errors import WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser("info", help="describe the content of files", description="Describe the content of files.")
    add_file(parser, text=f"{KINDS}; or an archive; several are described one after the other", several=True)
    add_trust(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Open each file and describe it; archives are not decoded."""
    if len(options.files) == 1:
        options.file = options.files[0]
        described, archive = _described(options)
        _print(described, archive, options)
        return 0
    return _several(options)


def _several(options: argparse.Namespace) -> int:
    """Describe several files; an error in one does not stop the others."""
    found: list[dict[str, Any]] = []
    status = 0
    for file in options.files:
        options.file = file
        try:
            described, archive = _described(options)
        except WorkbenchError as error:
            quiet = argparse.Namespace(**{**vars(options), "json": False})
            status = status or failed(error, quiet)
            found.append({"file": file, "error": str(error), "status": status_of(error)})
            continue
        found.append(described)
        if not options.json:
            _print(described, archive, options)
            print()
    if options.json:
        print_result({"files": found, "status": status}, True)
    return status


def _described(options: argparse.Namespace) -> tuple[dict[str, Any], Archive | None]:
    data = open_source(options)
    if isinstance(data, Archive):
        return {"file": options.file, **describe_archive(data)}, data
    content = content_of(data)
    metadata = {f"metadata.{name}": value for name, value in data.metadata.items() if name != "left_out"}
    return {"file": options.file, "kind": content.kind, **content.summary(data), **metadata}, None


def _print(described: dict[str, Any], archive: Archive | None, options: argparse.Namespace) -> None:
    if archive is not None:
        print_archive(described, archive, options)
    else:
        print_result(described, options.json)
