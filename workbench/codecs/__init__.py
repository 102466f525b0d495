"""Codecs: arrays to bytes and back, promising nothing. What is promised is checked by `workbench.guarantees`."""

from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.columns import Columns
from workbench.codecs.registry import available, from_dict, get, status

__all__ = [
    "Codec",
    "CodecFailed",
    "Columns",
    "ParticleCodec",
    "Tolerance",
    "available",
    "from_dict",
    "get",
    "option",
    "status",
]
