"""A codec that runs another codec's decoder in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from workbench.backend import Array
from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance
from workbench.codecs.isolation.decoders import CannotIsolate, TookTooLong, ask
from workbench.codecs.isolation.question import Question

MOST_OVERRUNS = 3   # time-outs; then no more chunks are tried, or a file could take that time for every chunk

__all__ = ["CannotIsolate", "Isolated", "isolated"]


def isolated(codec: Codec, patience: float | None = None) -> Codec:
    """The codec itself if it decodes any bytes without harm, and otherwise one that decodes in another process.

    >>> from workbench.codecs import get
    >>> isolated(get("pcodec"))
    PCodec(level=8)
    """
    return codec if codec.contained else Isolated(codec, patience)


@dataclass(frozen=True)
class Isolated(ParticleCodec):
    """Another codec, decoding in another process with limits. It does not encode, because encoding reads no foreign bytes.

    >>> from workbench.codecs import get
    >>> values, codec = np.linspace(0, 1, 100), get("pcodec")
    >>> data = codec.encode(values, Tolerance(absolute=0.0))
    >>> bool((Isolated(codec).decode(data, values.shape, values.dtype) == values).all())
    True
    """

    id: ClassVar[str] = "isolated"
    title: ClassVar[str] = "Another codec, in another process"

    codec: Codec
    patience: float | None = None
    overruns: list[str] = field(default_factory=list, init=False, compare=False, repr=False)

    # These attributes of the other codec hold here too.
    lossless = property(lambda self: self.codec.lossless)
    relative = property(lambda self: self.codec.relative)
    bare = property(lambda self: self.codec.bare)
    dimensions = property(lambda self: self.codec.dimensions)
    dtypes = property(lambda self: self.codec.dtypes)

    @property
    def reorders(self) -> bool:
        """Whether decoded points are in another order than the encoded ones."""
        return isinstance(self.codec, ParticleCodec) and self.codec.reorders

    def require(self) -> None:
        """Raise an error when the other codec cannot run here."""
        self.codec.require()

    def to_dict(self) -> dict[str, Any]:
        """The configuration of the other codec."""
        return self.codec.to_dict()

    def permutation(self, positions: Array, data: bytes) -> Array | None:
        """The original index of each decoded point; None if the order is kept."""
        given = np.ascontiguousarray(positions)
        request = {"work": "permutation", "shape": given.shape, "dtype": given.dtype.name}
        return self._asked(request, [memoryview(data), given.data], (len(given),), np.dtype(np.int64))

    def _encode(self, values: Array, tolerance: Tolerance) -> NoReturn:
        raise CodecFailed(f"{self.codec.id} only decodes in another process: encode with the codec itself")

    def _decode(self, data: bytes, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return self._asked({"work": "decode", "shape": shape, "dtype": dtype.name}, [memoryview(data)], shape, dtype)

    def _asked(
        self, request: Mapping[str, Any], given: Sequence[memoryview], shape: tuple[int, ...], dtype: np.dtype
    ) -> Array | None:
        """The array that a decoder returns for this input; None if it has none."""
        if len(self.overruns) >= MOST_OVERRUNS:
            raise CodecFailed(f"it was not tried, since the decoder took too long for {MOST_OVERRUNS} chunks before")
        try:
            return ask(Question({"codec": self.codec.to_dict(), **request}, given, shape, dtype, self.patience))
        except TookTooLong as overrun:
            self.overruns.append(str(overrun))
            raise
