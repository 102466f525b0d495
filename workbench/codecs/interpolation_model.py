"""A trained model of the built-in codec for fields: small networks that correct what its fitted weights expect.

There is a network for every number of odd axes that a pass can have (`interpolation_grid.py`). It is told how a target's
neighbours differ and deviate, and answers how far the location should move and how much wider or narrower the scale should
be. What differs between passes of one kind (the spacing, which axes are odd) enters as constant terms, which are added up
here in whole numbers, so that every machine gets the same floats.

A model is data: whole numbers behind a checksum. As text it is an option of the codec, so that an archive carries it and
needs nothing else to be read. Nothing in it is executed.
"""

from __future__ import annotations

import base64
import functools
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from workbench import backend
from workbench.codecs.codec import CodecFailed
from workbench.codecs.interpolation_grid import AXES, PAIRS, Axes, Pass
from workbench.errors import WorkbenchError

HIDDEN = backend.constant("network.cuh", "HIDDEN")
SECOND = backend.constant("network.cuh", "SECOND")
INPUTS = backend.constant("network.cuh", "INPUTS")
NETWORK = backend.constant("network.cuh", "NETWORK")
COMMON = backend.constant("interpolation.cu", "COMMON")
FOR_AXIS = backend.constant("interpolation.cu", "FOR_AXIS")
FOR_PAIR = backend.constant("interpolation.cu", "FOR_PAIR")
CONSTANTS = 2 + AXES + PAIRS   # terms of a pass: 1, octaves of its spacing, which axes are odd, which pairs are far apart
UNIT = 2.0**-7                 # of the weights
MOST_TEXT = 2**16              # letters

_MAGIC = b"LBM1"
_HEAD = struct.Struct("<4sBB")   # magic, dimensions, frozen axes (a bit each)


@dataclass(frozen=True, eq=False)
class Network:
    """The weights of a network as whole numbers (int16); the last row of each later layer is constant.

    The rows of the first layer are the constant terms of passes, then the inputs (`look_closer` in the kernel).
    """

    first: np.ndarray     # (CONSTANTS + inputs, HIDDEN)
    second: np.ndarray    # (HIDDEN + 1, SECOND)
    answers: np.ndarray   # (SECOND + 1, 2)

    @classmethod
    def of_numbers(cls, odd: int, numbers: np.ndarray) -> Self:
        """The network for so many odd axes with these numbers, one after the other."""
        parts, at = [], 0
        for rows, columns in shapes(odd):
            parts.append(numbers[at : at + rows * columns].reshape(rows, columns))
            at += rows * columns
        return cls(*parts)

    def numbers(self) -> np.ndarray:
        """All numbers, one after the other."""
        return np.concatenate([part.reshape(-1) for part in (self.first, self.second, self.answers)])

    def for_kernel(self, of: Pass) -> np.ndarray:
        """The network as kernels take it, for a pass."""
        found = np.zeros(NETWORK, np.float32)
        given = self.first[CONSTANTS:][: inputs_of(len(of.odd), len(of.pairs))]
        constant = constants_of(of) @ self.first[:CONSTANTS].astype(np.int64)
        at = 1 + HIDDEN + INPUTS * HIDDEN
        found[0] = 1
        found[1 : 1 + HIDDEN] = constant * UNIT
        found[1 + HIDDEN :][: given.size] = given.reshape(-1) * UNIT
        later = [self.second[-1], self.second[:-1].reshape(-1), self.answers[-1], self.answers[:-1].reshape(-1)]
        found[at:] = np.concatenate(later) * UNIT
        return found


def shapes(odd: int) -> tuple[tuple[int, int], ...]:
    """The shapes of the layers of the network for so many odd axes.

    >>> shapes(1)
    ((40, 16), (17, 8), (9, 2))
    """
    return (CONSTANTS + inputs_of(odd, PAIRS), HIDDEN), (HIDDEN + 1, SECOND), (SECOND + 1, 2)


def inputs_of(odd: int, pairs: int) -> int:
    """The number of inputs for a pass with so many odd axes and pairs.

    >>> inputs_of(4, 3) == INPUTS
    True
    """
    return COMMON + FOR_AXIS * odd + FOR_PAIR * pairs


def constants_of(of: Pass) -> np.ndarray:
    """The constant terms of a pass.

    >>> constants_of(Pass(4, (2,), (0,) * 4, (8,) * 4, (1,) * 4, ((2, 3, 8),))).tolist()
    [1, 2, 0, 0, 1, 0, 1, 0, 0]
    """
    found = np.zeros(CONSTANTS, np.int64)
    found[:2] = 1, of.spacing.bit_length() - 1
    found[2 + np.array(of.odd)] = 1
    for place, pair in enumerate(of.pairs):
        found[2 + AXES + place] = pair[2] > of.spacing
    return found


@dataclass(frozen=True, eq=False)
class Model:
    """A trained model, as `wb.codecs.train` returns it: `wb.codecs.get("interpolation", model=model)`.

    Models with the same weights are equal.

    >>> model = Model(1, (), {1: Network(*(np.zeros(shape, np.int16) for shape in shapes(1)))})
    >>> Model.from_text(model.text).text == model.text, model.weights
    (True, 794)
    """

    dimensions: int               # of the fields
    frozen: Axes                  # the axes along which nothing is interpolated
    networks: dict[int, Network]  # for each number of odd axes

    @functools.cached_property
    def text(self) -> str:
        """The model as text: the option of the codec, and the content of a file."""
        head = _HEAD.pack(_MAGIC, self.dimensions, sum(1 << axis for axis in self.frozen))
        numbers = np.concatenate([self.networks[odd].numbers() for odd in sorted(self.networks)])
        planes = numbers.astype("<i2").view(np.uint8).reshape(-1, 2).T   # the high bytes are nearly all the same
        body = head + zlib.compress(np.ascontiguousarray(planes).tobytes(), 9)
        return base64.b85encode(body + struct.pack("<I", zlib.crc32(body))).decode()

    @property
    def weights(self) -> int:
        """How many there are."""
        return sum(len(network.numbers()) for network in self.networks.values())

    @property
    def learned(self) -> bool:
        """Whether any network answers anything; else the model changes nothing."""
        return any(network.numbers().any() for network in self.networks.values())

    @property
    def nbytes(self) -> int:
        """The bytes of its text, before they are written as letters."""
        return len(self.text) * 4 // 5

    @property
    def checksum(self) -> int:
        """What a code states of its model."""
        return checksum_of(self.text)

    @classmethod
    def from_text(cls, text: str) -> Model:
        """The model of this text; an error if it is damaged, or no model."""
        return _model_of(text)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to a file."""
        Path(path).write_text(self.text + "\n")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """The model in a file that `save` wrote."""
        try:
            text = Path(path).read_bytes()[: MOST_TEXT + 1].decode("ascii", "replace")
        except OSError as error:
            raise WorkbenchError(f"the model {path} cannot be read: {error.strerror or error}") from error
        return cls.from_text(text.strip())

    def for_kernel(self, passes: Sequence[Pass]) -> np.ndarray:
        """A row for each pass: its network as kernels take it."""
        rows = [self.networks[len(each.odd)].for_kernel(each) for each in passes]
        return np.array(rows, np.float32).reshape(len(rows), NETWORK)

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Model) else NotImplemented

    def __hash__(self) -> int:
        return self.checksum

    def __repr__(self) -> str:
        frozen = f", frozen axes {', '.join(map(str, self.frozen))}" if self.frozen else ""
        nothing = "" if self.learned else ", nothing learned"
        return f"Model({self.dimensions}-D fields{frozen}, {self.weights:,} weights{nothing}, {len(self.text):,} letters)"


def checksum_of(text: str) -> int:
    """The checksum by which a code names the text of its model."""
    return zlib.crc32(text.encode())


@functools.lru_cache(maxsize=16)
def _model_of(text: str) -> Model:
    body = _checked(text)
    _, dimensions, mask = _HEAD.unpack_from(body)
    if not (1 <= dimensions <= AXES and mask < (1 << dimensions) - 1):
        raise WorkbenchError(f"a model must be for 1 to {AXES} axes, not all frozen; got {dimensions} and {mask:#b}")
    frozen = tuple(axis for axis in range(dimensions) if mask >> axis & 1)
    kinds = range(1, dimensions - len(frozen) + 1)
    sizes = [sum(rows * columns for rows, columns in shapes(odd)) for odd in kinds]
    parts = np.split(_numbers(body[_HEAD.size :], sum(sizes)), np.cumsum(sizes)[:-1])
    return Model(dimensions, frozen, {odd: Network.of_numbers(odd, part) for odd, part in zip(kinds, parts, strict=True)})


def _checked(text: str) -> bytes:
    """What a text holds, without its checksum."""
    refused = "a model must be the text that wb.codecs.train made; got"
    if not isinstance(text, str) or not 0 < len(text) <= MOST_TEXT:
        raise WorkbenchError(f"{refused} {text!r:.40}")
    try:
        data = base64.b85decode(text)
    except ValueError as error:
        raise WorkbenchError(f"{refused} {text!r:.40}: {error}") from None
    if not data.startswith(_MAGIC) or len(data) < _HEAD.size + 4:
        raise WorkbenchError(f"{refused} {text!r:.40}: another kind of file")
    if struct.unpack("<I", data[-4:])[0] != zlib.crc32(data[:-4]) or base64.b85encode(data).decode() != text:
        raise WorkbenchError("the model is damaged: its checksum differs; train it again, or take another copy")
    return data[:-4]


def _numbers(data: bytes, count: int) -> np.ndarray:
    """So many weights; no more of them are inflated."""
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(data, 2 * count + 1)
    except zlib.error as error:
        raise WorkbenchError(f"the weights of the model cannot be inflated: {error}") from None
    if len(found) != 2 * count or not inflater.eof:
        raise WorkbenchError(f"a model of these fields must have {count:,} weights; got others")
    return np.ascontiguousarray(np.frombuffer(found, np.uint8).reshape(2, count).T).view("<i2").reshape(-1).astype(np.int16)


def require_model(model: Model | None, checksum: int) -> Model:
    """The model of a code; refused if it was encoded with another."""
    if model is None:
        raise CodecFailed(f"the field was encoded with the model {checksum:08x}, which the codec does not have: damaged")
    if model.checksum != checksum:
        raise CodecFailed(
            f"the field was encoded with the model {checksum:08x}; got {model.checksum:08x}: it is damaged, or foreign"
        )
    return model


def require_dimensions(model: Model, dimensions: int) -> None:
    """Refuse a model for fields with another number of axes."""
    if model.dimensions != dimensions:
        raise WorkbenchError(
            f"the model was trained on fields with {model.dimensions} axes; got a field with {dimensions}: "
            "train one on such fields, or leave the model out"
        )


def networks_of(model: Model | None, order: Sequence[Pass]) -> np.ndarray:
    """A row for each pass: its network, or none."""
    return np.zeros((len(order), NETWORK), np.float32) if model is None else model.for_kernel(order)
