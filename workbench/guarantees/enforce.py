"""One chunk, encoded so that the promise about it holds for any codec.

A codec aims at a tolerance; its bytes are decoded here, the values compared, and those out of bounds corrected. So the
promise rests on the comparison (`check.py`) and on the correction (`correction.py`), which are independent of the codec. A
codec that raises, returns an array of another shape, or needs more space than lossless storage is not used: the chunk is
then stored exactly, and the figures say why. Either the promise holds or there is an error.

A chunk is a dict of byte strings by tags of four letters: `sections.py` lists them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import backend
from workbench.backend import Array
from workbench.codecs.codec import Codec, CodecFailed, ParticleCodec, Tolerance
from workbench.codecs.crc import crc32, crc32_of_pieces
from workbench.codecs.gaps import filled
from workbench.codecs.pcodec import PCodec
from workbench.codecs.together import Pieces
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.bounds import Limit
from workbench.guarantees.check import Period, bits_of, check, check_pieces
from workbench.guarantees.correction import apply_correction, encode_correction
from workbench.guarantees.logarithm import Logarithms, from_logs, log_dtype, to_logs
from workbench.guarantees.safeguard import Safeguard, safeguarded, safeguards_hold
from workbench.guarantees.sections import CODE, FIX, LOGS, SAME, STAY

MANY = 0.1   # the share of corrected values from which lossless storage may be smaller

Sections = Mapping[str, bytes]


@dataclass(frozen=True)
class Figures:
    """Figures of one chunk. The largest error is in the unit of the limit, over the values with an error measure."""

    values: int
    invalid: int                 # not finite, or masked: returned bit for bit
    corrected: int               # other values that were changed for the bound or for a safeguard
    largest_error: float
    stored_exactly: str | None   # why the codec was not used
    crc: int                     # of the decoded bytes: readers return no others
    codec_raised: bool = False   # whether the codec was not used because it raised
    remark: str | None = None      # what the codec says of its bytes
    predicted: bool = False        # whether these rest on values at earlier times


@dataclass(frozen=True, eq=False)
class Guarded:
    """One encoded chunk: its sections, and the values that a reader will get from them, bit for bit.

    Where a codec reorders points, `permutation` holds their original indices: decoded[i] is values[permutation[i]].
    """

    sections: dict[str, bytes]
    decoded: Array
    figures: Figures
    permutation: Array | None = None

    @property
    def nbytes(self) -> int:
        """The size of all sections."""
        return sum(map(len, self.sections.values()))


def encode_guarded(
    codec: Codec,
    values: Array,
    limit: Limit,
    *,
    period: Period = None,
    mask: Array | None = None,
    keep: Sequence[Safeguard] = (),
) -> Guarded:
    """Encode one chunk so that the decoded values are within the limit, and every safeguard holds.

    >>> from workbench import codecs
    >>> values = np.linspace(0, 1, 1000)
    >>> guarded = encode_guarded(codecs.get("pcodec"), values, Limit("absolute", 1e-3))
    >>> decoded = decode_guarded(codecs.get("pcodec"), guarded.sections, values.shape, values.dtype)
    >>> guarded.figures.largest_error, bool((decoded == values).all())
    (0.0, True)
    """
    _check_fits(codec, values)
    if keep and (period is not None or isinstance(codec, ParticleCodec)):
        raise WorkbenchError(f"safeguards are for fields; got particles, and {', '.join(map(repr, keep))}")
    chunk = _Chunk(codec, backend.namespace(values).ascontiguousarray(values), limit, period, mask, tuple(keep))
    if codec.bare:
        return chunk.alone()
    if limit.value == 0 and not _can_keep_all(codec, values):
        return chunk.exactly("the bound is zero")
    try:
        guarded = chunk.with_codec()
    except _LeftOut as reason:
        return chunk.exactly(str(reason), _raised(reason.__cause__))
    if _helps(guarded, values):
        return guarded
    exact = chunk.exactly(f"all bits take less room than {codec.id} with {guarded.figures.corrected:,} corrections")
    return exact if exact.nbytes <= guarded.nbytes else guarded


def unchanged(values: Array, before: Array, mask: Array | None = None) -> Guarded | None:
    """A chunk of a step in time that is what it was a step before, bit for bit, and takes no bytes; None if it is not.

    >>> unchanged(np.zeros(3), np.zeros(3)).nbytes, unchanged(np.zeros(3), -np.zeros(3))
    (0, None)
    """
    host = backend.to_host(values)
    if before.shape != host.shape or before.dtype != host.dtype or (bits_of(host) != bits_of(before)).any():
        return None
    chunk = _Chunk(PCodec(), values, Limit("absolute", 0.0), None, mask, ())
    figures = chunk._figures(values, 0, 0.0, None)
    figures = dataclasses.replace(figures, remark="predicted: nothing has changed", predicted=True)
    return Guarded({STAY: b""}, values, figures)


def encode_guarded_pieces(
    codec: Codec, values: Array, rows: int, limit: Limit, period: Period = None
) -> tuple[list[Guarded], Array] | None:
    """What `encode_guarded` returns for each piece of so many rows, and all decoded values; few launches serve all pieces.

    None where the codec or the limit treats each piece by itself, or a piece needs a correction.
    """
    _check_fits(codec, values)
    if limit.relative or limit.value == 0:
        return None
    try:
        data = codec.encode_together(values, rows, Tolerance(absolute=limit.value))
    except WorkbenchError:   # alone, each piece says why
        return None
    if data is None:
        return None
    decoded = codec.decode_together(data, rows, values.shape, values.dtype, backend.namespace(values))
    counts, errors = check_pieces(values, decoded, rows, limit, period)
    if counts.any() or not bool(backend.namespace(values).isfinite(values).all()):
        return None
    found = []
    for number, (piece, crc) in enumerate(zip(Pieces.of(len(values), rows), crc32_of_pieces(decoded, rows), strict=True)):
        own, code = values[piece], data[number]
        figures = Figures(own.size, 0, 0, float(errors[number]), None, int(crc), **_said(codec, code, own.shape, own.dtype))
        guarded = Guarded({CODE: code}, decoded[piece], figures)
        if not _helps(guarded, own):
            guarded = encode_guarded(codec, own, limit, period=period)
            decoded[piece] = guarded.decoded
        found.append(guarded)
    return found, decoded


def _said(codec: Codec, code: bytes, shape: tuple[int, ...], dtype: np.dtype) -> dict[str, Any]:
    """What a codec says of its bytes."""
    return {"remark": codec.remark(code, shape, dtype), "predicted": codec.is_predicted(code, shape, dtype)}


def decode_guarded(codec: Codec, sections: Sections, shape: Sequence[int], dtype: Any, xp: Any = np) -> Array:
    """The values of one chunk, from its sections, as an array of `xp`: numpy or cupy."""
    shape, dtype = tuple(shape), np.dtype(dtype)
    if SAME in sections:
        return PCodec().decode(sections[SAME], shape, dtype, xp)
    return apply_correction(_decode(codec, sections, shape, dtype, xp), sections.get(FIX, b""))


def decoded_permutation(codec: Codec, sections: Sections, values: Array) -> Array | None:
    """The original index of each decoded value, or None where the order is kept."""
    if SAME in sections or not (isinstance(codec, ParticleCodec) and codec.reorders):
        return None
    xp, count = backend.namespace(values), len(values)
    try:
        permutation = codec.permutation(values, sections[CODE])
        if permutation is None:
            return None
        is_permutation = permutation.shape == (count,) and bool((xp.sort(permutation) == xp.arange(count)).all())
    except WorkbenchError:
        raise
    except Exception as error:
        raise CodecFailed(f"{codec.id} could not give the order of the points: {type(error).__name__}: {error}") from error
    if not is_permutation:
        raise CodecFailed(f"{codec.id} must give a permutation of {count:,} points; got something else")
    return permutation


class _LeftOut(Exception):
    """Why a codec is not used for a chunk."""


@dataclass(frozen=True, eq=False)
class _Chunk:
    """The values of a chunk, and all promises about them."""

    codec: Codec
    values: Array
    limit: Limit
    period: Period
    mask: Array | None
    keep: tuple[Safeguard, ...]

    @functools.cached_property
    def valid(self) -> Array:
        """Where values are finite and not masked."""
        finite = backend.namespace(self.values).isfinite(self.values)
        return finite if self.mask is None else finite & ~self.mask

    def with_codec(self) -> Guarded:
        """The chunk as the codec encodes it, corrected; `_LeftOut` where the codec cannot be used."""
        try:
            sections = self._encode()
            decoded = _decode(self.codec, sections, self.values.shape, self.values.dtype, backend.namespace(self.values))
            permutation = decoded_permutation(self.codec, sections, self.values)
            self._require_truth(sections, decoded)
        except WorkbenchError as error:
            raise _LeftOut(str(error)) from error
        return self._guarded(sections, decoded, permutation)

    def alone(self) -> Guarded:
        """The chunk as a codec makes it without any help: what breaks the bound is given to it again, to stay as it is."""
        relative = self.limit.relative
        tolerance = Tolerance(relative=self.limit.value) if relative else Tolerance(absolute=self.limit.value)
        free, corrected = backend.namespace(self.values).ones(self.values.shape, bool), 0
        if self.mask is not None:
            free &= ~self.mask
        for _ in range(2):
            code = self.codec.encode_with_gaps(self.values, free, tolerance)
            decoded = self.codec.decode(code, self.values.shape, self.values.dtype)
            found = check(self.values, decoded, self.limit, self.period, self.mask)
            if found.holds:
                return Guarded({CODE: code}, decoded, self._figures(decoded, corrected, found.largest_error, None))
            free.reshape(-1)[found.broken] = False
            corrected = int(self.valid.reshape(-1)[found.broken].sum())
        raise GuaranteeBroken(f"{self.codec.id} does not keep {corrected:,} values as they are: please report this")

    def _require_truth(self, sections: Sections, decoded: Array) -> None:
        """Refuse bytes that state beside the values what is not so: statistics rest on it."""
        if sections.keys() != {CODE} or type(self.codec).contradiction is Codec.contradiction:
            return
        sound = backend.namespace(decoded).ones(decoded.shape, bool)
        wrong = self.codec.contradiction(bytes(sections[CODE]), decoded, self.valid, sound)
        if wrong is not None:
            raise CodecFailed(f"{self.codec.id} contradicts itself: {wrong}")

    def exactly(self, reason: str, codec_raised: bool = False) -> Guarded:
        """The chunk, stored losslessly."""
        host = np.ascontiguousarray(backend.to_host(self.values))
        code = PCodec().encode(host, Tolerance(absolute=0.0))
        decoded = PCodec().decode(code, host.shape, host.dtype)
        if (bits_of(decoded) != bits_of(host)).any():
            raise GuaranteeBroken("a chunk that was stored losslessly does not decode to the same bits: please report this")
        decoded = backend.namespace(self.values).asarray(decoded)
        figures = dataclasses.replace(self._figures(decoded, 0, 0.0, reason), codec_raised=codec_raised)
        return Guarded({SAME: code}, decoded, figures)

    def _encode(self) -> dict[str, bytes]:
        if _takes_logs(self.codec, self.limit):
            given = filled(self.values, self.valid)
            logs = to_logs(given, self.limit.value, single="float32" in self.codec.dtypes)
            self._require_room(logs.tolerance, logs.values)
            return self._encode_logs(logs)
        tolerance, given = _tolerance(self.codec, self.values, self.limit), backend.read_only(self.values)
        self._require_room(tolerance.value, given)
        taken = self._taken
        if taken is None:
            return {CODE: self.codec.encode(given, tolerance)}
        return {CODE: self.codec.encode_with_gaps(given, taken, tolerance)}

    def _encode_logs(self, logs: Logarithms) -> dict[str, bytes]:
        """Where a codec marks gaps itself, zeros are gaps, as what is corrected anyway."""
        given, tolerance = backend.read_only(logs.values), Tolerance(absolute=logs.tolerance)
        present = logs.present & self.valid
        if self.codec.smooth or bool(present.all()):
            return {CODE: self.codec.encode(given, tolerance), LOGS: logs.extra}
        code = self.codec.encode_with_gaps(given, present, tolerance)
        xp = backend.namespace(given)
        marked = xp.isnan(self.codec.decode(code, given.shape, given.dtype, xp)) == ~present
        return {CODE: code, LOGS: logs.extra_without_zeros if bool(marked.all()) else logs.extra}

    def _require_room(self, tolerance: float, given: Array) -> None:
        if tolerance == 0 and not _can_keep_all(self.codec, given):
            raise _LeftOut("the bound leaves no room for errors")

    @property
    def _taken(self) -> Array | None:
        """Where values must not be replaced, as they do not disturb the codec; None: none must."""
        if self.codec.finite:
            taken = self.valid
        elif self.mask is not None and not self.codec.lossless:
            taken = ~self.mask
        else:
            return None
        return None if taken.all() else taken

    def _guarded(self, sections: dict[str, bytes], decoded: Array, permutation: Array | None) -> Guarded:
        original = self.values if permutation is None else self.values[permutation]
        mask = self.mask if permutation is None or self.mask is None else self.mask[permutation]
        found = check(original, decoded, self.limit, self.period, mask)
        changed, wanted = self._wanted(original, decoded, found.broken)
        fix = encode_correction(changed, wanted, decoded)
        if fix:
            decoded = apply_correction(decoded, fix)
            found = check(original, decoded, self.limit, self.period, mask)
        if not self._safeguards_hold(original, decoded) or (self.keep and not found.holds):
            raise _LeftOut("the bound and the safeguards could not be met together")
        if not found.holds:
            raise GuaranteeBroken(f"{found.broken.size:,} values break the bound even after correction: please report this")
        valid = self.valid if permutation is None else self.valid[permutation]
        corrected = int(valid.reshape(-1)[changed].sum())
        figures = self._figures(decoded, corrected, found.largest_error, None)
        dtype = log_dtype(sections[LOGS]) if LOGS in sections else self.values.dtype
        figures = dataclasses.replace(figures, **_said(self.codec, sections[CODE], self.values.shape, dtype))
        return Guarded({**sections, FIX: fix} if fix else sections, decoded, figures, permutation)

    def _wanted(self, original: Array, decoded: Array, broken: Array) -> tuple[Array, Array]:
        """The final values, and the indices where they differ from those of the codec."""
        if not self.keep:
            return broken, original
        xp = backend.namespace(original)
        wanted = decoded.copy()
        wanted.reshape(-1)[broken] = original.reshape(-1)[broken]
        hosts = backend.to_host(original), backend.to_host(wanted)
        wanted = xp.asarray(safeguarded(self.keep, *hosts, self.limit))
        return xp.flatnonzero(bits_of(wanted) != bits_of(decoded)), wanted

    def _safeguards_hold(self, original: Array, decoded: Array) -> bool:
        return not self.keep or safeguards_hold(self.keep, backend.to_host(original), backend.to_host(decoded))

    def _figures(self, decoded: Array, corrected: int, largest_error: float, stored_exactly: str | None) -> Figures:
        invalid = self.values.size - int(self.valid.sum())
        return Figures(self.values.size, invalid, corrected, largest_error, stored_exactly, crc32(decoded))


def _check_fits(codec: Codec, values: Array) -> None:
    """Refuse values that this codec can never take: the choice of codec is wrong, not a single chunk."""
    codec.require()
    if backend.on_device(values) and not codec.on_device:
        raise WorkbenchError(f"{codec.id} works on NumPy arrays; got a CuPy array: use array.get()")
    if values.dtype.name not in codec.dtypes or values.ndim not in codec.dimensions:
        dimensions = " or ".join(map(str, codec.dimensions))
        raise WorkbenchError(
            f"{codec.id} takes {' or '.join(codec.dtypes)} of {dimensions} dimensions; got {values.dtype} of {values.ndim}"
        )


def _raised(error: BaseException | None) -> bool:
    """Whether a codec raised an exception that it does not foresee: wrong options, unsuitable values, or a bug in it."""
    return isinstance(error, CodecFailed) and not isinstance(error.__cause__, WorkbenchError | None)


def _can_keep_all(codec: Codec, values: Array) -> bool:
    """Whether a codec can encode with a tolerance of zero: for integers, that is a lattice of step one."""
    return codec.lossless or values.dtype.kind in "iu"


def _helps(guarded: Guarded, values: Array) -> bool:
    """Whether a codec saved so much that lossless storage need not be tried."""
    return guarded.figures.corrected <= MANY * values.size and guarded.nbytes < values.nbytes


def _takes_logs(codec: Codec, limit: Limit) -> bool:
    """Whether a codec gets logarithms: it does not support relative errors, and its values are not positions."""
    return limit.relative and limit.value > 0 and not (codec.relative or codec.lossless or isinstance(codec, ParticleCodec))


def _tolerance(codec: Codec, values: Array, limit: Limit) -> Tolerance:
    """The tolerance of a codec that gets the values themselves."""
    if not limit.relative:
        return Tolerance(absolute=limit.value)
    tolerance = Tolerance(relative=limit.value)
    return tolerance if codec.relative or codec.lossless else Tolerance(absolute=tolerance.absolute_for(values))


def _decode(codec: Codec, sections: Sections, shape: tuple[int, ...], dtype: np.dtype, xp: Any) -> Array:
    """The output of the codec for a chunk, before any correction."""
    if CODE not in sections:
        raise WorkbenchError(f"a chunk must have a section {CODE!r} or {SAME!r}; got {sorted(sections)}")
    if LOGS not in sections:
        return codec.decode(sections[CODE], shape, dtype, xp)
    logs = codec.decode(sections[CODE], shape, log_dtype(sections[LOGS]), xp)
    return from_logs(logs, sections[LOGS], dtype)
