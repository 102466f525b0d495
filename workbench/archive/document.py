"""The JSON document of an archive (`zarr.json`) and its copy: small, plain, finite, and with a checksum.

The promises of an archive are in these documents, and one flipped bit can turn a bound of 0.1 into 0.5 in JSON that is
still valid. So the document carries, among its attributes, the CRC-32 of everything else in it. The checksum is of the
content, so that spaces and the order of keys do not matter. Its presence distinguishes an archive of ours from any other
Zarr group.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from workbench.errors import GuaranteeBroken, WorkbenchError

SEAL = "lossbench:crc32"   # the attribute that holds the checksum
MOST_BYTES = 2**24
MOST_DEPTH = 64
MOST_NODES = 2**20   # values in a document; each takes far more memory than the one byte it may have in the file
_TO_SEPARATOR = re.compile(rb'(?:[^",\[{]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+(?:[,\[{]|\Z)', re.DOTALL)   # outside of quotes


def plain(value: Any, what: str) -> Any:
    """The value as JSON returns it: lists for tuples, strings for keys; refused when JSON cannot hold it.

    >>> plain({"box": (1.0, 2.0)}, "attributes")
    {'box': [1.0, 2.0]}
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkbenchError(f"{what} must be plain values that JSON can hold; {error}") from None


def require_storable(value: Any, what: str, share: int = 2) -> None:
    """Refuse a value that is too deep for the attributes of a document, or takes more than its share: a half, a third ...

    >>> require_storable({"text": "x" * 2**24}, "metadata")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: metadata must fit into 8,388,608 bytes as JSON; got 16,777,227
    """
    data = json.dumps(plain(value, what), separators=(",", ":")).encode()
    if len(data) > MOST_BYTES // share:
        raise WorkbenchError(f"{what} must fit into {MOST_BYTES // share:,} bytes as JSON; got {len(data):,}")
    _require_few_nodes(data, what, MOST_NODES // share)
    _require_shallow({"attributes": {"metadata": value}}, what)


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with its checksum among its attributes.

    >>> sealed({"attributes": {"bound": 0.1}})
    {'attributes': {'bound': 0.1, 'lossbench:crc32': 'b23a176d'}}
    """
    attributes = document["attributes"]
    if SEAL in attributes:
        raise WorkbenchError(f"{SEAL} is the archive's own attribute: use another name")
    return {**document, "attributes": {**attributes, SEAL: _checksum(document)}}


def unsealed(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The document without its checksum, which is verified; `where` is its file."""
    if not is_sealed(document):
        raise WorkbenchError(f"{where} was not written by lossbench: it has no {SEAL} among its attributes")
    attributes = {key: value for key, value in document["attributes"].items() if key != SEAL}
    content = {**document, "attributes": attributes}
    if document["attributes"][SEAL] != _checksum(content):
        raise GuaranteeBroken(f"{where} fails its checksum: it was damaged, or changed after the archive was written")
    return content


def is_sealed(document: Any) -> bool:
    """Whether a document carries our checksum; the checksum is not verified here."""
    attributes = document.get("attributes") if isinstance(document, Mapping) else None
    return isinstance(attributes, Mapping) and SEAL in attributes


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes of a document in a file.

    >>> from_bytes(to_bytes({"zarr_format": 3}), "zarr.json")
    {'zarr_format': 3}
    """
    data = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    _require_shallow(document, "the metadata of an archive")
    if len(data) > MOST_BYTES:
        raise WorkbenchError(f"the metadata of an archive must fit into {MOST_BYTES:,} bytes; got {len(data):,}")
    _require_few_nodes(data, "the metadata of an archive")
    return data


def from_bytes(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in the file `where`. Objects that are too large, too deep, not finite or ambiguous are refused."""
    if len(data) > MOST_BYTES:
        raise WorkbenchError(f"{where} must have at most {MOST_BYTES:,} bytes; it has {len(data):,}")
    _require_few_nodes(data, where)
    try:
        document = json.loads(data.decode(), object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse)
    except RecursionError:
        raise WorkbenchError(f"{where} must be nested at most {MOST_DEPTH} deep; it is deeper") from None
    except ValueError as error:
        raise WorkbenchError(f"{where} is not valid JSON ({error}): copy or download it again") from None
    if not isinstance(document, dict):
        raise WorkbenchError(f"{where} must hold a JSON object; it holds a {type(document).__name__}")
    _require_shallow(document, where)
    return document


def _checksum(document: Mapping[str, Any]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"{zlib.crc32(canonical.encode()):08x}"


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} occurs twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is beyond the range of numbers")
    return value


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _require_few_nodes(data: bytes, where: str, most: int = MOST_NODES) -> None:
    """Check the number of values in a JSON text before it is parsed: outside of quotes, each has a separator before it."""
    if sum(map(data.count, (b",", b"[", b"{"))) <= most:   # quotes included: nearly always few enough
        return
    if sum(1 for _ in itertools.islice(_TO_SEPARATOR.finditer(data), most + 2)) > most + 1:
        raise WorkbenchError(f"{where} must hold at most {most:,} values; it holds more")


def _require_shallow(document: Mapping[str, Any], where: str) -> None:
    """Check the depth level by level, without recursion: a deep document must not exhaust the stack."""
    layer: list[Any] = [document]   # what holds something, as all that could go deeper
    for _ in range(MOST_DEPTH - 1):
        layer = [
            child for node in layer for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list)) and child
        ]
        if not layer:
            return
    raise WorkbenchError(f"{where} must be nested at most {MOST_DEPTH} deep; it is deeper")
