"""The description of an archive of many members, as text or as JSON. Nothing is decoded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from workbench.archive import Archive, Collection
from workbench.archive.collection.names import require_known
from workbench.archive.collection.reports import Row, table
from workbench.cli.notes import show_notes
from workbench.cli.source import print_result
from workbench.cli.visible import visible_lines
from workbench.errors import WorkbenchError


def add_member(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the choice of a member."""
    parser.add_argument("--member", metavar="NAME", help=text)


def chosen_member(archive: Archive | Collection, options: argparse.Namespace, file: str) -> Any:
    """The member that was asked for; without one, the archive itself."""
    if options.member is None:
        return archive
    if isinstance(archive, Archive):
        raise WorkbenchError(f"--member is for archives of many members; {file} holds one array: leave it out")
    require_known(options.member, archive, "a member")
    return archive[options.member]


def describe_collection(collection: Collection) -> dict[str, Any]:
    """What each member costs, and all of them together."""
    groups = {name: group.get("attributes", {}) for name, group in collection.groups.items() if name}
    return {
        "kind": "archive",
        "holds": collection.kind,
        **totals(collection),
        "members": [_described(name, collection[name]) for name in collection],
        "groups": groups,
        "attributes": collection.attributes,
    }


def totals(collection: Collection) -> dict[str, Any]:
    """Its size before and after compression."""
    return {
        "original_bytes": collection.original_nbytes, "archive_bytes": collection.nbytes, "ratio": collection.ratio,
    }


def print_collection(described: Mapping[str, Any], collection: Collection, options: argparse.Namespace) -> None:
    """Print a description; as text, with one line for each member. Notes about bounds go to standard error."""
    show_notes(collection.notes, options.parser)
    if options.json:
        print_result(described, True)
        return
    apart = ("members", "groups", "attributes")
    lines = {key: value for key, value in described.items() if key not in apart}
    lines |= {f"group {name}": about for name, about in described.get("groups", {}).items()}
    lines |= {f"attribute {name}": value for name, value in described.get("attributes", {}).items()}
    print_result(lines, False)
    print(visible_lines(table(collection.rows())))


def _described(name: str, archive: Archive) -> dict[str, Any]:
    row = Row.of(name, archive)
    bound = archive.certificate[archive.data.layout.name].bound
    return {
        "name": name,
        "kind": row.kind,
        "size": row.size,
        "codec": row.codec,
        "bound": bound and bound.to_dict(),
        "bytes": row.nbytes,
        "original_bytes": row.original_nbytes,
        "ratio": row.ratio,
        "largest_error": row.largest_error,
        "certificate": archive.certificate.to_dict(),
    }
