"""Codecs turn arrays into bytes and back, without guarantees: `workbench.guarantees` checks the promises."""

from typing import TYPE_CHECKING, Any

from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance, option
from workbench.codecs.columns import Columns
from workbench.codecs.registry import automatic, available, from_dict, get, status

if TYPE_CHECKING:
    from workbench.codecs.interpolation_model import Model
    from workbench.codecs.interpolation_training import train

__all__ = [
    "Codec",
    "CodecFailed",
    "Columns",
    "Model",
    "ParticleCodec",
    "Tolerance",
    "automatic",
    "available",
    "from_dict",
    "get",
    "option",
    "status",
    "train",
]


def __getattr__(name: str) -> Any:   # codecs are imported where they are used, and these with them
    if name == "Model":
        from workbench.codecs.interpolation_model import Model

        return Model
    if name == "train":
        from workbench.codecs.interpolation_training import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
