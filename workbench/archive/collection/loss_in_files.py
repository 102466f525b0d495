"""What files say of the errors in their values, so that whoever opens one knows of them, this package included.

CF 1.12 (section 8.4.2) describes quantisation alone: a variable `quantization_info` names the algorithm, and each variable
says how many significant bits or digits it has. That holds for the codec `bitround` with a pointwise bound. There are no
terms for other codecs; their variables say `lossy_compression` in words, and the kind of the bound and its size as numbers.
Errors that the source stated already are added, where both are of one kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.archive.archive import Archive
from workbench.archive.collection.reports import has_errors
from workbench.archive.earlier_loss import BITS, IN_WORDS, INFO, KIND, MOST, earlier_loss
from workbench.archive.provenance import VERSIONS
from workbench.codecs.bitround import BitRound, bits_within
from workbench.guarantees import Limit

ALGORITHM = "quantization"   # the attribute that names the variable with the algorithm


def state_losses(variables: dict[str, Any], archives: Mapping[str, Archive]) -> None:
    """Let the variables of a file state the errors of their archives; where CF asks for one, a variable is added."""
    for name, archive in archives.items():
        if not has_errors(archive):
            continue
        variable = variables[name]
        if INFO not in variables and _is_quantised(archive) and earlier_loss(variable.attrs) is None:
            variable.attrs = {**variable.attrs, ALGORITHM: INFO, BITS: np.int32(bits_within(_limit(archive).value))}
        else:
            variable.attrs = with_loss_in_words(variable.attrs, archive)
    quantised = [archives[name] for name in archives if variables[name].attrs.get(ALGORITHM) == INFO]
    if quantised and INFO not in variables:
        from xarray import Variable

        about = {"algorithm": "bitround", "implementation": _versions(quantised[0])}
        variables[INFO] = Variable((), np.array(b"", "S1"), about)


def with_loss_in_words(attributes: Mapping[str, Any], archive: Archive) -> dict[str, Any]:
    """The attributes of a variable with those of the errors of its archive, which add to the errors stated before.

    >>> import workbench as wb
    >>> attributes = with_loss_in_words({}, wb.compress(np.linspace(0, 1, 100), wb.Absolute(0.01), "prequantised"))
    >>> attributes["lossy_compression_kind"], attributes["lossy_compression_maximum_error"]
    ('absolute', 0.01)
    """
    promise, earlier = archive.certificate[archive.data.layout.name], earlier_loss(attributes)
    words, limit = f"{promise.bound} ({archive.codec.id}, {_versions(archive)})", promise.limit
    others = {name: value for name, value in attributes.items() if name not in (KIND, MOST)}
    if earlier is not None:
        words = f"{attributes.get(IN_WORDS, earlier[0])}; {words}"
    stated = {**others, IN_WORDS: words}
    if not isinstance(limit, Limit) or (earlier is not None and earlier[1].kind != limit.kind):
        return stated
    return {**stated, KIND: limit.kind, MOST: limit.value + (0.0 if earlier is None else earlier[1].value)}


def _is_quantised(archive: Archive) -> bool:
    """Whether the mantissas of all values have so many bits as their bound needs."""
    limit, codec = _limit(archive), archive.codec
    return isinstance(limit, Limit) and limit.relative and isinstance(codec, BitRound) and codec.keepbits is None


def _limit(archive: Archive) -> Any:
    return archive.certificate[archive.data.layout.name].limit


def _versions(archive: Archive) -> str:
    """The packages that wrote an archive."""
    packages = archive.data.layout.configuration.get(VERSIONS, {})
    return ", ".join(f"{name} {version}" for name, version in packages.items())
