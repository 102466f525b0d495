"""`wb.compress` for datasets: every member is encoded, checked, and put into one archive."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench import codecs
from workbench.archive.archive import Archive
from workbench.archive.choice import is_free
from workbench.archive.collection.collection import Collection, share_of
from workbench.archive.collection.dataset import Dataset
from workbench.archive.collection.description import CollectionRoot
from workbench.archive.collection.member import MemberCall, MemberPlace
from workbench.archive.collection.names import places_of
from workbench.archive.collection.rules import chunks_for, options_for
from workbench.archive.content.registry import content_of
from workbench.archive.earlier import EarlierSteps
from workbench.archive.encoded import token_of
from workbench.archive.fields import codec_for
from workbench.archive.request import Request, promises, require_storable
from workbench.archive.store import MemoryStore
from workbench.archive.writing import Draft, Place
from workbench.data import Field
from workbench.errors import UnknownName, WorkbenchError
from workbench.progress import Progress
from workbench.run.chunked_field import ChunkedField
from workbench.run.executors import Executor

StepOf = Callable[[str], EarlierSteps]

FLAT = ("field", "variable")   # kinds whose arrays stand beside each other


@dataclass(frozen=True)
class Making:
    """What all members of a collection share."""

    executor: Executor
    parts: int | None
    scratch: str | Path | None
    progress: Progress | None
    steps: StepOf | None = None   # of a series: what each member needs to know of it


def compress_dataset(
    dataset: Dataset, rules: Any, options: Mapping[str, Any], out: str | os.PathLike[str] | None, overwrite: bool,
    making: Making,
) -> Collection:
    """The archive of a dataset; `options` hold for members whose rule does not say otherwise."""
    if isinstance(codec := options.get("codec", "auto"), str) and not is_free(codec):
        codecs.get(codec)   # a name that is none is refused, also where all members are kept exactly
    chunks = chunks_for(dataset, options.get("chunks"))
    requests = {
        name: _request(name, dataset[name], own, {**options, "chunks": chunks[name], "step": _step(making, name)})
        for name, own in options_for(dataset, rules).items()
    }
    for name, member in dataset.items():
        _named(name, content_of(member).require_fit, member, member.metadata, requests[name])
        _named(name, require_storable, member.metadata)
    places = places_of({name: content_of(member).kind in FLAT for name, member in dataset.items()}, dataset.groups)
    place: Place = MemoryStore() if out is None else Draft(out, overwrite, _token(dataset, requests, making))

    def made() -> Collection:
        members = {}
        for number, (name, member) in enumerate(dataset.items()):
            at = MemberPlace(place, name, places[name])
            progress = share_of(making.progress, name, number, len(dataset))
            request, executor = dataclasses.replace(requests[name], progress=progress), making.executor.reporting(progress)
            call = MemberCall(member, member.metadata, request, None, False, executor, making.parts, making.scratch, at)
            members[name] = _named(name, content_of(member).compressed, call)
        root = CollectionRoot.of(members, dataset.groups)
        return Collection(place.finished(root.documents, root.file_keys()))

    if isinstance(place, Draft):
        with place.continued():
            return made()
    return made()


def _step(making: Making, name: str) -> EarlierSteps | None:
    return None if making.steps is None else making.steps(name)


def gathered(
    members: Mapping[str, Archive], groups: Mapping[str, Mapping[str, Any]], notes: bool = True
) -> Collection:
    """A collection in memory of archives that are there already: their bytes are copied, and nothing is encoded again.

    Without `notes`, what was said of unusual bounds is left out.
    """
    place = MemoryStore()
    places = places_of({name: archive.kind in FLAT for name, archive in members.items()}, groups)
    kept = {}
    for name, archive in members.items():
        at = MemberPlace(place, name, places[name])
        keys = [key for stored in archive.arrays.values() for key in stored.layout.file_keys()]
        for key in keys:
            at.put(key, archive.store.read(key))
        kept[name] = Archive(at.finished(archive.documents, keys))
    root = CollectionRoot.of(kept, groups, notes)
    return Collection(place.finished(root.documents, root.file_keys()))


def _request(name: str, member: Any, own: Mapping[str, Any], options: Mapping[str, Any]) -> Request:
    """The request for a member; one that stays exactly as it is needs not the codec of all, if that refuses it."""
    sizes = {"chunks", "chunk_values"}
    kept = {name: option for name, option in options.items() if not (name in sizes and sizes & set(own))}
    given = {**kept, **own}
    given["keep"] = promises(given.get("keep", ()))
    request: Request = _named(name, Request, **given)
    _named(name, content_of(member).require, request)
    if "codec" in own or request.bound.eb > 0 or _is_taken(member, request):
        return request
    return dataclasses.replace(request, codec="auto")


def _is_taken(member: Any, request: Request) -> bool:
    """Whether the codec takes this member; what is no field chooses for itself."""
    if not isinstance(member, Field | ChunkedField):
        return True
    try:
        codec_for(ChunkedField.of(member), request)
    except WorkbenchError:
        return False
    return True


def _named(name: str, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What `work` returns; its error begins with the name of the member."""
    try:
        return work(*given, **options)
    except WorkbenchError as error:
        if type(error) not in (WorkbenchError, UnknownName):
            error.add_note(f"This is about {name!r}.")
            raise
        raise WorkbenchError(f"{name!r}: {error}") from error


def _token(dataset: Dataset, requests: Mapping[str, Request], making: Making) -> str:
    """A name for this call: the same for the same rules and a dataset of the same members."""
    described = {}
    for name, member in dataset.items():
        request = requests[name]
        array = getattr(member, "values", getattr(member, "positions", member))
        described[name] = [
            content_of(member).kind, list(getattr(array, "shape", ())), str(getattr(array, "dtype", "")),
            request.bound.to_dict(), request.order, [kept.to_dict() for kept in request.keep], request.step_token,
        ]
    return token_of({"members": described, "parts": making.parts})


