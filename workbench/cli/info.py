"""`workbench info FILE`: describe the content of files."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from workbench.archive import Archive, Collection, Series
from workbench.archive.content.registry import content_of
from workbench.cli.archives import describe_archive, print_archive
from workbench.cli.datasets import dataset_instead, describe_dataset, print_dataset
from workbench.cli.failure import failed, status_of
from workbench.cli.members import add_member, chosen_member, describe_collection, print_collection
from workbench.cli.series import describe_series, print_series
from workbench.cli.source import KINDS, SWITCHES, add_file, add_trust, flag, given_options, open_all_frames, print_result
from workbench.cli.suggestion import suggestion, suggestion_for_dataset, with_archive
from workbench.errors import SeveralArrays, WorkbenchError


def add(commands: Any) -> None:
    """Add this command."""
    parser = commands.add_parser("info", help="describe the content of files", description="Describe the content of files.")
    add_file(parser, text=f"{KINDS}; or an archive; several are described one after the other", several=True)
    add_member(parser, "describe only this member of an archive of a dataset")
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


def _described(options: argparse.Namespace) -> tuple[dict[str, Any], Archive | Collection | Series | None]:
    try:
        data = open_all_frames(options)
    except SeveralArrays as error:
        with dataset_instead(options, error) as dataset:
            _require_archive(None, options)
            described = describe_dataset(dataset)
            return {"file": options.file, **described, **suggestion_for_dataset(described["arrays"], options.file)}, None
    _require_archive(data, options)
    if isinstance(data, Series):
        return {"file": options.file, **describe_series(data)}, data
    if isinstance(data, Archive | Collection):
        data = chosen_member(data, options, options.file)
        described = describe_archive(data) if isinstance(data, Archive) else describe_collection(data)
        return {"file": options.file, **described}, data
    content = content_of(data)
    metadata = {f"metadata.{name}": value for name, value in data.metadata.items() if name != "left_out"}
    start = suggestion(data, options.file, _opening(options))
    return {"file": options.file, "kind": content.kind, **content.summary(data), **metadata, **start}, None


def _opening(options: argparse.Namespace) -> str:
    """The options for opening the file, as they were given."""
    shown = ""
    for option in given_options(options):
        value = getattr(options, option)
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        shown += f" {flag(option)}" + ("" if option in SWITCHES else f" {shlex.quote(text)}")
    return shown


def _require_archive(data: Any, options: argparse.Namespace) -> None:
    if options.member is not None and not isinstance(data, Archive | Collection):
        raise WorkbenchError(f"--member is for archives; {options.file} is none: choose one of its arrays by --name")


def _print(
    described: dict[str, Any], archive: Archive | Collection | Series | None, options: argparse.Namespace
) -> None:
    if isinstance(archive, Series):
        print_series(described, archive, options)
        return
    if archive is None:
        (print_dataset if described["kind"] == "dataset" else print_result)(described, options.json)
        return
    if isinstance(archive, Collection):
        print_collection(described, archive, options)
    else:
        print_archive(described, archive, options)
    if not options.json:
        print_result(with_archive(options.file), False)
