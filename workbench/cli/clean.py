"""`workbench clean [FOLDER]`: what runs that were killed have left."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from workbench.arguments import number
from workbench.cli.orphans import Orphan, orphans_in
from workbench.cli.visible import visible
from workbench.errors import WorkbenchError

DAY = 86400.0
MOST_DAYS = 36500.0


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "clean",
        help="remove what killed runs have left",
        description="List scratch folders and unfinished archives of runs that were killed, and remove them with --yes. "
        "Nothing of a run that lives, or may live on another machine, is listed.",
    )
    text = "where scratch folders and archives are (default: the folder for temporary files, and this one)"
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help=text)
    parser.add_argument("--yes", action="store_true", help="remove what is listed")
    text = "list unfinished archives, which the same call would continue, after so many days (default 7)"
    parser.add_argument("--older-than", type=float, default=7.0, metavar="DAYS", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List the orphans, and remove them on request; 1 if some cannot be removed."""
    age = DAY * number("--older-than", options.older_than, 0.0, MOST_DAYS)
    given = [tempfile.gettempdir(), "."] if options.folder is None else [options.folder]
    folders = {Path(folder).resolve() for folder in given}
    if strangers := [folder for folder in folders if not folder.is_dir()]:
        raise WorkbenchError(f"FOLDER must be a folder; got {strangers[0]}")
    entries = [_entry(orphan, options.yes) for folder in sorted(folders) for orphan in orphans_in(folder, age)]
    if options.json:
        print(json.dumps({"orphans": entries}))
    else:
        _show(entries, options.yes)
    return int(options.yes and any(entry["error"] for entry in entries))


def _entry(orphan: Orphan, remove: bool) -> dict[str, Any]:
    """What the result says about an orphan, which is removed on request."""
    entry = {"path": str(orphan.path), "bytes": orphan.nbytes, "why": orphan.why, "removed": False, "error": None}
    if not remove:
        return entry
    try:
        orphan.remove()
    except (OSError, WorkbenchError) as error:
        return {**entry, "error": str(error)}
    return {**entry, "removed": True}


def _show(entries: list[dict[str, Any]], removed: bool) -> None:
    for entry in entries:
        end = "removed" if entry["removed"] else f"cannot be removed ({entry['error']})" if entry["error"] else entry["why"]
        print(visible(f"{entry['path']}  {entry['bytes']:,} bytes  {end}"))
    if not entries:
        print("nothing to remove")
    elif not removed:
        print("nothing was removed: add --yes to remove all of these")
