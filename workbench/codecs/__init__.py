"""Codecs turn arrays into bytes and back, without guarantees: `workbench.guarantees` checks the promises."""

from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.columns import Columns
from workbench.codecs.interpolation_model import Model
from workbench.codecs.interpolation_training import train
from workbench.codecs.registry import available, from_dict, get, status

__all__ = [
    "Codec",
    "CodecFailed",
    "Columns",
    "Model",
    "ParticleCodec",
    "Tolerance",
    "available",
    "from_dict",
    "get",
    "option",
    "status",
    "train",
]
