"""What files say of the errors in their values, so that whoever opens one knows of them, this package included.

CF 1.12 (section 8.4.2) describes quantisation alone: a variable `quantization_info` names the algorithm, and each variable
says how many significant bits or digits it has. That holds for the codec `bitround` with a pointwise bound. There are no
terms for other codecs; their variables say `lossy_compression` in words, and the kind of the bound and its size as numbers.
Errors that the source stated already are added, where both are of one kind.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.reports import has_errors
from workbench.archive.earlier_loss import (
    ALGORITHM,
    BITS,
    IN_WORDS,
    INFO,
    KIND,
    MOST,
    OURS,
    QUANTISATION,
    earlier_loss,
)
from workbench.archive.provenance import VERSIONS
from workbench.codecs.bitround import BitRound, bits_within
from workbench.codecs.portable import Portable
from workbench.guarantees import Limit


def state_losses(variables: dict[str, Any], archives: Mapping[str, Archive]) -> None:
    """Let the variables of a file state the errors of their archives; where CF asks for one, a variable is added."""
    quantised: list[Archive] = []
    for name, archive in archives.items():
        if not has_errors(archive):
            continue
        variable = variables[name]
        if INFO not in variables and _is_quantised(archive, variable) and not _states_losses(variable.attrs):
            variable.attrs = {**variable.attrs, ALGORITHM: INFO, BITS: np.int32(bits_within(_limit(archive).value))}
            quantised.append(archive)
        else:
            variable.attrs = with_loss_in_words(variable.attrs, archive)
    if quantised:
        from xarray import Variable

        about = {"algorithm": "bitround", "implementation": _versions(quantised[0])}
        variables[INFO] = Variable((), np.array(b"", "S1"), about)


def with_loss_in_words(attributes: Mapping[str, Any], archive: Archive, array: str | None = None) -> dict[str, Any]:
    """The attributes of a variable with those of the errors of its archive, which add to the errors stated before.

    `array` is one of the arrays of an archive; without it, the main one.

    >>> import workbench as wb
    >>> attributes = with_loss_in_words({}, wb.compress(np.linspace(0, 1, 100), wb.Absolute(0.01), "prequantised"))
    >>> attributes["lossy_compression_kind"], attributes["lossy_compression_maximum_error"]
    ('absolute', 0.01)
    """
    promise = archive.certificate[array or archive.data.layout.name]
    ours = earlier_loss({name: attributes[name] for name in OURS if name in attributes})
    others = earlier_loss({name: entry for name, entry in attributes.items() if name not in OURS})
    words = [*([str(attributes[IN_WORDS])] if IN_WORDS in attributes else [ours[0]] if ours else [])]
    words += [others[0]] if others else []
    words.append(f"{promise.bound} ({archive.codec.id}, {_versions(archive)})")
    gone = {*OURS, *(QUANTISATION if others else ())}
    stated = {**{name: entry for name, entry in attributes.items() if name not in gone}, IN_WORDS: "; ".join(words)}
    if IN_WORDS in attributes and ours is None:
        return stated
    limit = _limit_of_values(archive) if array is None else promise.limit
    total = _total([*(loss[1] for loss in (ours, others) if loss is not None), limit])
    return stated if total is None else {**stated, KIND: total.kind, MOST: total.value}


def _total(limits: Sequence[Any]) -> Limit | None:
    """The limit of several steps together; None if they are of several kinds, or as large as the values.

    >>> _total([Limit("absolute", 0.5), Limit("absolute", 0.25)]), _total([Limit("relative", 0.5), Limit("relative", 0.25)])
    (Limit(kind='absolute', value=0.75), Limit(kind='relative', value=0.875))
    """
    kinds = {limit.kind if isinstance(limit, Limit) else "of slices" for limit in limits}
    if kinds == {"absolute"}:
        return Limit("absolute", sum(limit.value for limit in limits))
    if kinds != {"relative"}:
        return None
    total = functools.reduce(lambda one, two: one + two + one * two, (limit.value for limit in limits))
    return Limit("relative", total) if total < 1 else None


def _states_losses(attributes: Mapping[str, Any]) -> bool:
    return IN_WORDS in attributes or earlier_loss(attributes) is not None


def _is_quantised(archive: Archive, variable: Any) -> bool:
    """Whether the mantissas of all values have so many bits as their bound needs, of those that CF can state.

    Not of an archive that was encoded anew: it keeps the values of another codec, which need not be rounded.
    """
    limit, codec = _limit(archive), archive.codec
    rounds = codec.keepbits is None if isinstance(codec, BitRound) else isinstance(codec, Portable) and codec.scale is None
    rounded = rounds and not archive.certificate.history and variable.dtype.kind == "f"
    return (
        rounded and isinstance(limit, Limit) and limit.relative
        and 1 <= bits_within(limit.value) <= np.finfo(variable.dtype).nmant
    )


def _limit_of_values(archive: Archive) -> Any:
    """The limit of the values that a user sees; that of complex numbers and of those of 16 bits is for what is stored."""
    limit = _limit(archive)
    if archive.kind != "variable" or not isinstance(limit, Limit):
        return limit
    largest = archive.certificate[archive.data.layout.name].figures["largest_error"]
    return Limit(limit.kind, max(limit.value, largest))


def _limit(archive: Archive) -> Any:
    return archive.certificate[archive.data.layout.name].limit


def _versions(archive: Archive) -> str:
    """The packages that wrote an archive."""
    packages = archive.data.layout.configuration.get(VERSIONS, {})
    return ", ".join(f"{name} {version}" for name, version in packages.items())
