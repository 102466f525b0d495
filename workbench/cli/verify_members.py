"""`workbench verify` of an archive of many members: each is checked, also after one has failed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from workbench.archive import Archive, Collection, Damaged, Dataset
from workbench.archive.collection.sources import opened_dataset
from workbench.archive.content.registry import content_of
from workbench.archive.opening import opened
from workbench.archive.recognition import is_archive
from workbench.cli.datasets import print_table
from workbench.cli.failure import failed
from workbench.cli.progress import Progress
from workbench.cli.source import flag, given_options, print_result
from workbench.cli.visible import visible
from workbench.data import Particles
from workbench.data.variable import Form, Variable
from workbench.errors import GuaranteeBroken, WorkbenchError

NAMED = 5   # members that the sentence about those that fail names


def verify_members(collection: Collection, options: argparse.Namespace) -> int:
    """Check every member, print what was seen of each; 1 if one fails."""
    with Progress(options.quiet) as progress, ExitStack() as stack:
        original = None if options.file is None else _require_alike(collection, stack, options)
        outcomes = []
        for number, name in enumerate(collection):
            progress(number / len(collection), f"verifying {name}")
            outcomes.append(_outcome(collection, name, None if original is None else original[name]))
    documents = collection.damaged_documents()
    damaged = [*_listed(documents), *(chunk for outcome in outcomes for chunk in outcome["damaged"])]
    described = {
        "file": options.archive, "original": options.file, "ok": True, "error": None, "status": 0, "damaged": damaged,
        "members": outcomes,
    }
    broken = [outcome for outcome in outcomes if not outcome["ok"]]
    if not options.json:
        print_table([_in_words(outcome) for outcome in outcomes])
        for chunk in damaged:
            print(visible(f"damaged  {chunk['chunk']}  {chunk['reason']}"))
    if broken or documents:
        return failed(_error(broken, documents, len(collection)), options, {**described, "ok": False})
    if options.json:
        print_result(described, True)
    else:
        more = " and their original: passed" if original else ": passed; without the original, only checksums were checked"
        print(f"all {len(outcomes)} members{more}")
    return 0


def _require_alike(collection: Collection, stack: ExitStack, options: argparse.Namespace) -> Dataset:
    """The original dataset; one of other names, shapes or types is a failed check, not wrong input."""
    if given := given_options(options):
        raise WorkbenchError(f"{flag(given[0])} is for one array, and {options.archive} holds a dataset: leave it out")
    original = stack.enter_context(opened_dataset(opened(options.file) if is_archive(options.file) else options.file))
    begin = f"{options.file} is not the original"
    if strangers := sorted(set(original) ^ set(collection)):
        only = "it" if strangers[0] in original else "the archive"
        raise GuaranteeBroken(f"{begin}: only {only} has {strangers[0]!r}")
    for name, member in original.items():
        held, given_form = _form_of_archive(collection[name]), _form_of(member)
        if held != given_form:
            raise GuaranteeBroken(f"{begin}: {name!r} was made from {held}; got {given_form}")
    return original


def _form_of(member: Any) -> str:
    """The kind, shape and type of a member of a dataset."""
    words = content_of(member).words
    if isinstance(member, Variable):
        form = Form.of(member.values)
        return _form(words, form.dtype, form.shape)
    array = member.positions if isinstance(member, Particles) else member.values
    return _form(words, array.dtype.newbyteorder("=").name, array.shape)


def _form_of_archive(archive: Archive) -> str:
    """The same of a member of an archive."""
    about, layout = archive.attributes, archive.data.layout
    if archive.kind == "variable":
        return _form(archive.content.words, about["dtype"], about["shape"])
    return _form(archive.content.words, layout.dtype.name, layout.shape)


def _form(words: str, dtype: str, shape: Sequence[int]) -> str:
    return f"{words}, {' x '.join(map(str, shape)) or 'one value'} {dtype}"


def _outcome(collection: Collection, name: str, original: Any) -> dict[str, Any]:
    """What was seen of a member."""
    archive, damaged, error, report = collection[name], [], None, {}   # type: Archive, list[Damaged], str | None, dict[str, Any]
    try:
        report = archive.verify(original).to_dict()
    except GuaranteeBroken as broken:
        error, damaged = str(broken), collection.damage_of(name)
    except WorkbenchError as wrong:
        raise WorkbenchError(f"{name!r}: {wrong}") from wrong
    return {
        "name": name, "ok": error is None, "error": error, "damaged": _listed(damaged),
        "figures": report.get("figures", {}), "checks": report.get("checks", []), "notes": report.get("notes", []),
    }


def _error(broken: list[dict[str, Any]], documents: list[Damaged], count: int) -> GuaranteeBroken:
    if not broken:
        return GuaranteeBroken(f"all {count} members are intact, but documents are damaged: {documents[0]}")
    reasons = "; ".join(f"{outcome['name']!r}: {outcome['error']}" for outcome in broken[:NAMED])
    more = f"; and {len(broken) - NAMED} more" if len(broken) > NAMED else ""
    return GuaranteeBroken(f"{len(broken)} of {count} members fail: {reasons}{more}")


def _in_words(outcome: dict[str, Any]) -> dict[str, str]:
    checks = [f"{check['name'].replace('_', ' ')} {check['value']:.6g} of at most {check['limit']:.6g}"
              for check in outcome["checks"] if isinstance(check.get("limit"), float)]
    chunks = outcome["figures"].get("chunks")
    seen = checks or ([] if chunks is None else [f"chunks intact: {chunks:,}"])
    return {"name": outcome["name"], "outcome": "passed" if outcome["ok"] else "failed", "seen": "; ".join(seen)}


def _listed(damage: list[Damaged]) -> list[dict[str, str]]:
    return [{"chunk": one.where, "reason": one.reason} for one in damage]
