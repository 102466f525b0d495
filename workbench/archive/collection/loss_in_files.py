"""What files say of the errors in their values, so that whoever opens one knows of them, this package included.

CF 1.12 (section 8.4.2) describes quantisation alone: a variable `quantization_info` names the algorithm, and each variable
says how many significant bits or digits it has. That holds for the codec `bitround` with a pointwise bound. There are no
terms for other codecs; their variables say `lossy_compression` in words, and the kind of the bound and its size as numbers.
Errors that the source stated already are added, where both are of one kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.archive.archive import Archive
from workbench.archive.collection.reports import has_errors
from workbench.archive.earlier_loss import BITS, IN_WORDS, INFO, KIND, MOST, earlier_loss
from workbench.archive.provenance import VERSIONS
from workbench.codecs.bitround import BitRound, bits_within
from workbench.guarantees import Limit

ALGORITHM = "quantization"   # the attribute that names the variable with the algorithm


def stated_loss(archive: Archive) -> dict[str, Any]:
    """The attributes that state the errors of an archive; none where values are as they were.

    >>> import numpy as np, workbench as wb
    >>> list(stated_loss(wb.compress(np.linspace(0, 1, 100), wb.Absolute(0.01), "prequantised")))
    ['lossy_compression', 'lossy_compression_kind', 'lossy_compression_maximum_error']
    >>> stated_loss(wb.compress(np.linspace(0, 1, 100), wb.Absolute(0)))
    {}
    """
    if not has_errors(archive):
        return {}
    promise, codec = archive.certificate[archive.data.layout.name], archive.codec
    limit = promise.limit
    if isinstance(limit, Limit) and limit.relative and isinstance(codec, BitRound) and codec.keepbits is None:
        return {ALGORITHM: INFO, BITS: bits_within(limit.value)}
    words = {IN_WORDS: f"{promise.bound} ({codec.id}, {_versions(archive)})"}
    return {**words, KIND: limit.kind, MOST: limit.value} if isinstance(limit, Limit) else words


def with_stated_loss(attributes: Mapping[str, Any], loss: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a variable with those of its errors, which add to the errors that it had before.

    >>> before = {"lossy_compression": "A", "lossy_compression_kind": "absolute", "lossy_compression_maximum_error": 0.5}
    >>> after = with_stated_loss(before, {**before, "lossy_compression": "B"})
    >>> after["lossy_compression"], after["lossy_compression_maximum_error"]
    ('A; B', 1.0)
    """
    earlier = earlier_loss(attributes) if loss else None
    if earlier is None or IN_WORDS not in loss:
        return {**attributes, **loss}
    words, lost = earlier
    together = {**attributes, **loss, IN_WORDS: f"{attributes.get(IN_WORDS, words)}; {loss[IN_WORDS]}"}
    if lost.kind == loss.get(KIND):
        return {**together, MOST: lost.value + loss[MOST]}
    return {name: value for name, value in together.items() if name not in (KIND, MOST)}


def quantization_info(archive: Archive) -> dict[str, Any]:
    """The attributes of the variable `quantization_info` for an archive whose loss refers to it."""
    return {"algorithm": "bitround", "implementation": _versions(archive)}


def _versions(archive: Archive) -> str:
    """The packages that wrote an archive."""
    packages = archive.data.layout.configuration.get(VERSIONS, {})
    return ", ".join(f"{name} {version}" for name, version in packages.items())
