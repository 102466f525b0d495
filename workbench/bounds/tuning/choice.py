"""The codec of a search, and what is expected of it at each bound: predicted for fields, in closed form for particles."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from workbench import codecs
from workbench.archive.choice import middle, tuned
from workbench.archive.documents import Outline, documents_nbytes
from workbench.bounds.prediction.expert import Expert, shipped
from workbench.bounds.prediction.prediction import Prediction
from workbench.bounds.prediction.surveyed import Surveyed, surveyed
from workbench.bounds.run import label_of
from workbench.bounds.sweep import questions_of
from workbench.bounds.tuning.attempt import Original
from workbench.bounds.tuning.guides import Expected, even_noise, expected_room
from workbench.bounds.tuning.targets import All
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.data.labelled import width_in_file
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, PointwiseRelative, encode_guarded

if TYPE_CHECKING:
    from workbench.bounds.tuning.find import Limits

PLACES = 12            # limits at which a codec is predicted; between them, logarithms are interpolated
UNREACHED = -1e4       # the merit of a codec that is not expected to meet the target, less what it lacks
DECADES = 6.0          # below the range of the values
LEAST_VALID = 0.25     # of the values in the middle, for a trial there


class Predictable(Protocol):
    """A field of which samples are known."""

    def at(self, bounds: Iterable[Bound], expert: Expert) -> Prediction:
        """The prediction at these bounds, by an expert on a codec."""


@dataclass(frozen=True)
class Candidate:
    """A codec, with the ratio and the rms error that are expected for each limit."""

    codec: Codec
    ratio: Expected
    noise: Expected
    notes: tuple[str, ...] = ()


def chosen_candidate(
    original: Original, given: str | Codec, target: All, limits: Limits, order: str, expert: Expert | None,
    velocities: Bound | None,
) -> Candidate:
    """The requested codec; for "auto" the one that is predicted to make the best of the target.

    `velocities` is the bound of the velocities of particles.
    """
    data = original.data
    free = isinstance(given, str) and given == "auto"
    if isinstance(data, Particles):
        codec = _checked("lattice" if free else given)
        return Candidate(codec, _ratio_of_particles(data, codec, order, velocities), even_noise)
    known = surveyed(data)
    if not free:
        return _candidate(data, known, _checked(given), limits, expert)
    if expert is not None:
        return _candidate(data, known, expert.made, limits, expert)
    return _smallest(data, _candidates(data, limits), original, target, limits)


def _smallest(data: Field, candidates: list[Candidate], original: Original, target: All, limits: Limits) -> Candidate:
    """The candidate with the most merit; where a quality decides, a trial on the middle takes the place of predicted sizes.

    Unless the middle has few valid values, such as land in a sea: what these need says little about the others.
    """
    merits = [merit(each, original, target, limits) for each in candidates]
    part = middle(data.shape)
    values, mask = data.values[part], None if data.mask is None else np.ascontiguousarray(data.mask[part])
    valid = np.isfinite(values) if mask is None else np.isfinite(values) & ~mask
    enough = np.count_nonzero(valid) > LEAST_VALID * values.size
    if enough and values.dtype.kind == "f" and not target.searched_upwards and limits.kind is not PointwiseRelative:
        values = np.ascontiguousarray(values)
        for place, each in enumerate(candidates):
            if merits[place] > UNREACHED / 2:
                limit = Limit("absolute", _largest_limit(each, original, target, limits))
                merits[place] = _tried(each.codec, values, mask, limit)
    return candidates[merits.index(max(merits))]


def _tried(codec: Codec, values: np.ndarray, mask: np.ndarray | None, limit: Limit) -> float:
    """The logarithm of the ratio that a codec reaches on some values."""
    try:
        found = encode_guarded(tuned(codec, values, mask, limit), values, limit, mask=mask)
    except WorkbenchError:   # it cannot keep this limit
        return UNREACHED
    return math.log(values.nbytes / found.nbytes)


def other_candidates(data: Field, tried: Collection[Codec], limits: Limits) -> list[Candidate]:
    """The lossy codecs among which "auto" chooses, without those that were tried.

    Nothing is known beforehand of what codecs make of a figure of one's own.
    """
    return [each for each in _candidates(data, limits) if each.codec not in tried and not each.codec.lossless]


def _candidates(data: Field, limits: Limits) -> list[Candidate]:
    """The codecs among which "auto" chooses, as far as experts of the package know them, with predictions."""
    known, experts = surveyed(data), shipped()
    names = [name for name in codecs.automatic() if name in experts]
    return [_candidate(data, known, experts[name].made, limits, experts[name]) for name in names]


def _checked(given: str | Codec) -> Codec:
    """The codec, which its description must reproduce."""
    codec = questions_of([given], Absolute(1.0))[0].codec
    codec.require()
    return codec


def merit(candidate: Candidate, original: Original | None, target: All, limits: Limits) -> float:
    """The logarithm of the ratio with which a quality is expected; for a ratio, less noise is better.

    A codec that is not expected to meet the target comes after all that are: the better, the nearer it comes.
    """
    places, room = _expected(candidate, original, target, limits)
    enough = np.flatnonzero(room >= 0)
    if not enough.size:
        return UNREACHED + float(room.max())
    if target.searched_upwards:
        return -math.log(float(candidate.noise(np.exp(places[enough[:1]]))[0]))
    return math.log(float(candidate.ratio(np.exp(places[enough[-1:]]))[0]))


def _largest_limit(candidate: Candidate, original: Original | None, target: All, limits: Limits) -> float:
    """The largest limit with which a codec is expected to meet a quality, which it is."""
    places, room = _expected(candidate, original, target, limits)
    return math.exp(float(places[room >= 0][-1]))


def _expected(
    candidate: Candidate, original: Original | None, target: All, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of limits, and the room that is expected at each."""
    places = np.linspace(math.log(max(limits.low, limits.high * 10**-DECADES)), math.log(limits.high), 512)
    return places, expected_room(target, original, limits.peak, candidate.ratio, candidate.noise)(np.exp(places))


def _candidate(data: Field, known: Surveyed, codec: Codec, limits: Limits, expert: Expert | None) -> Candidate:
    """Predictions by an expert on this codec; without one, by closed forms."""
    if expert is None and (own := shipped().get(codec.id)) is not None and own.made == codec:
        expert = own
    elif expert is not None and expert.made != codec:
        raise WorkbenchError(f"expert must know {label_of(codec)}; got one on {dict(expert.codec)}")
    if expert is None:
        return Candidate(codec, _ratio_of_field(data, codec), even_noise)
    return predicted(known, expert, limits)


def predicted(field: Predictable, expert: Expert, limits: Limits) -> Candidate:
    """The codec of an expert, with what it predicts of a field."""
    places = np.linspace(math.log(max(limits.low, limits.high * 10**-DECADES)), math.log(limits.high), PLACES)
    rows, codec = field.at([Absolute(float(limit)) for limit in np.exp(places)], expert), expert.made
    ratios = np.log([row.ratio for row in rows])
    noises = np.log(limits.peak) - np.array([row.psnr for row in rows]) * math.log(10) / 20
    notes = ("predictions were uncertain: the data are unlike those that the expert was trained on",) if rows.unlike else ()
    return Candidate(codec, _interpolated(places, ratios), _interpolated(places, noises), notes)


def _interpolated(places: np.ndarray, logarithms: np.ndarray) -> Expected:
    """A curve through these points, and straight on beyond them, both axes logarithmic."""
    first = (logarithms[1] - logarithms[0]) / (places[1] - places[0])
    last = (logarithms[-1] - logarithms[-2]) / (places[-1] - places[-2])

    def curve(limits: np.ndarray) -> np.ndarray:
        where = np.log(limits)
        beyond = first * np.minimum(where - places[0], 0) + last * np.maximum(where - places[-1], 0)
        return np.exp(np.interp(where, places, logarithms) + beyond)

    return curve


def _ratio_of_particles(data: Particles, codec: Codec, order: str, velocities: Bound | None) -> Expected:
    """Bits of each coordinate on a lattice, those of velocities as if Gaussian, and other companion arrays as they are."""
    count, axes = len(data), data.dimensions
    whole = sum(values.nbytes for values in data.companions.values())
    riders = float(whole)
    if velocities is not None and data.velocities is not None and velocities.eb > 0 and velocities.unit is None:
        values = np.asarray(data.velocities)
        limit = velocities.limit(values)
        if not limit.relative:
            bits = math.log2(1 + float(values.std()) * math.sqrt(2 * math.pi * math.e) / (2 * limit.value))
            riders += values.size * bits / 8 - values.nbytes
    documents = documents_nbytes(data, codec, order)
    unordered = max(math.log2(count) - 1.44, 0.0) if order == "free" else 0.0

    def ratio(limits: np.ndarray) -> np.ndarray:
        bits = sum(np.log2(1 + length / (2 * limits)) for length in data.lengths) - unordered - axes
        nbytes = documents + count * np.maximum(bits, 1.0) / 8 + riders
        return (data.positions.nbytes + whole) / nbytes

    return ratio


def _ratio_of_field(field: Field, codec: Codec) -> Expected:
    """The entropy of differences between neighbours, as if they had a Laplace distribution."""
    with np.errstate(invalid="ignore"):   # between two infinities
        steps = np.abs(np.diff(field.values.reshape(-1)[: 2**20].astype(np.float64)))
    documents, width = documents_nbytes(Outline.of(field), codec), width_in_file(field.values.dtype, field.metadata)
    scale = float(steps[np.isfinite(steps)].mean()) if np.isfinite(steps).any() else 1.0

    def ratio(limits: np.ndarray) -> np.ndarray:
        bits = np.log2(1 + scale / limits) + 0.05
        return field.values.size * width / (documents + field.values.size * bits / 8)

    return ratio
