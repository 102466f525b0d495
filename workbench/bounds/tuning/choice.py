"""The codec of a search, and what is expected of it at each bound: predicted for fields, in closed form for particles."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from workbench import codecs
from workbench.archive.choice import is_free, tuned, usual
from workbench.archive.documents import documents_nbytes
from workbench.bounds.prediction.expert import Expert, shipped
from workbench.bounds.prediction.surveyed import Surveyed, surveyed
from workbench.bounds.run import label_of
from workbench.bounds.sweep import questions_of
from workbench.bounds.tuning.attempt import Original
from workbench.bounds.tuning.guides import Expected, Known, even_noise
from workbench.bounds.tuning.limits import Limits
from workbench.bounds.tuning.several import All
from workbench.bounds.tuning.targets import PSNR
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.data.labelled import width_in_file
from workbench.errors import WorkbenchError
from workbench.guarantees import Absolute, Bound, Limit, PointwiseRelative, encode_guarded

PLACES = 12            # limits at which a codec is predicted; between them, logarithms are interpolated
UNREACHED = -1e4       # the merit of a codec that is not expected to meet the target, less what it lacks
DECADES = 6.0          # below the range of the values
CLOSE = 0.05           # of merits: codecs that differ by less are both tried
LEAST_VALID = 0.25     # of the values in the middle, for a trial there


@dataclass(frozen=True)
class Candidate:
    """A codec, with the ratio and the rms error that are expected for each limit.

    `rivals` are codecs that were hardly worse in a trial, so that only compressions of all data can decide.
    """

    codec: Codec
    ratio: Expected
    noise: Expected
    notes: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()


def chosen_candidate(
    original: Original, given: str | Codec, target: All, limits: Limits, order: str, expert: Expert | None,
    velocities: Bound | None,
) -> Candidate:
    """The requested codec; for "auto" the one that is predicted to make the best of the target, for "fast" the fastest.

    `velocities` is the bound of the velocities of particles.
    """
    data = original.data
    free = is_free(given)
    if isinstance(data, Particles):
        codec = _checked("lattice" if free else given)
        return Candidate(codec, _ratio_of_particles(data, codec, order, velocities), even_noise)
    known = surveyed(data)
    if free and given == "fast" and expert is None:
        given, free = usual(original.outline.dtype, "fast"), False
    if not free:
        return _candidate(original, known, _checked(given), limits, expert)
    if expert is not None:
        return _candidate(original, known, expert.made, limits, expert)
    return _smallest(original, _candidates(original, known, limits), target, limits)


def suited(candidate: Candidate, target: All) -> Candidate:
    """The candidate with the options that lower mean errors, if one of the targets is a PSNR."""
    if not any(isinstance(each, PSNR) for each in target.targets):
        return candidate
    return dataclasses.replace(candidate, codec=candidate.codec.for_mean_errors())


def _smallest(original: Original, candidates: list[Candidate], target: All, limits: Limits) -> Candidate:
    """The candidate with the most merit; a trial on the middle replaces predictions where the target is expected to be met.

    Unless the middle has few valid values, such as land in a sea: what these need says little about the others.
    """
    merits, part = [merit(each, original, target, limits) for each in candidates], original.middle
    enough = np.count_nonzero(part.valid) > LEAST_VALID * part.values.size
    if enough and limits.kind is not PointwiseRelative:
        for place, each in enumerate(candidates):
            if merits[place] > UNREACHED / 2:
                limit = Limit("absolute", _expected_limit(each, original, target, limits))
                merits[place] = _tried(each.codec, part, limit, target.searched_upwards)
    best = merits.index(max(merits))
    close = [each.codec.id for each, own in zip(candidates, merits, strict=True) if own > max(merits) - CLOSE]
    return dataclasses.replace(candidates[best], rivals=tuple(close))


def _tried(codec: Codec, part: Field, limit: Limit, for_ratio: bool) -> float:
    """What a codec makes of some values: the logarithm of the ratio, or for a ratio that of the error that it leaves.

    Sizes that the middle and the whole do not share are converted to errors, which a bit of each value halves.
    """
    values, mask = part.values, part.mask
    try:
        found = encode_guarded(tuned(codec, values, mask, limit), values, limit, mask=mask)
    except WorkbenchError:   # it cannot keep this limit
        return UNREACHED
    if not for_ratio:
        return math.log(values.nbytes / found.nbytes)
    errors = (found.decoded.astype(np.float64) - values)[part.valid]
    noise = max(float(np.sqrt(np.square(errors).mean())), float(np.finfo(np.float64).tiny))
    return -math.log(noise) - math.log(2) * 8 * found.nbytes / values.size


def other_candidates(original: Original, target: All, tried: Collection[Codec], limits: Limits) -> list[Candidate]:
    """The lossy codecs among which "auto" chooses, without those that were tried."""
    if isinstance(original.data, Particles):
        return []
    candidates = [suited(each, target) for each in _candidates(original, surveyed(original.data), limits)]
    return [each for each in candidates if each.codec not in tried and not each.codec.lossless]


def _candidates(original: Original, known: Surveyed, limits: Limits) -> list[Candidate]:
    """The codecs among which "auto" chooses, as far as experts of the package know them, with predictions."""
    experts = shipped()
    names = [name for name in codecs.automatic() if name in experts]
    return [_candidate(original, known, experts[name].made, limits, experts[name]) for name in names]


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


def _expected_limit(candidate: Candidate, original: Original | None, target: All, limits: Limits) -> float:
    """The largest limit with which a codec is expected to meet a quality, or the smallest for a ratio; there is one."""
    places, room = _expected(candidate, original, target, limits)
    return math.exp(float(places[room >= 0][0 if target.searched_upwards else -1]))


def _expected(
    candidate: Candidate, original: Original | None, target: All, limits: Limits
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of limits, and the room that is expected at each."""
    places = np.linspace(math.log(max(limits.low, limits.high * 10**-DECADES)), math.log(limits.high), 512)
    room = target.expected(Known(original, limits.peak, candidate.ratio, candidate.noise))
    return places, room(np.exp(places))


def _candidate(original: Original, known: Surveyed, codec: Codec, limits: Limits, expert: Expert | None) -> Candidate:
    """Predictions by an expert on this codec; without one, by closed forms."""
    if expert is None and (own := shipped().get(codec.id)) is not None and own.made == codec:
        expert = own
    elif expert is not None and expert.made != codec:
        raise WorkbenchError(f"expert must know {label_of(codec)}; got one on {dict(expert.codec)}")
    if expert is None:
        return Candidate(codec, _ratio_of_field(original, codec), even_noise)
    places = np.linspace(math.log(max(limits.low, limits.high * 10**-DECADES)), math.log(limits.high), PLACES)
    rows = known.at([Absolute(float(limit)) for limit in np.exp(places)], expert)
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


def _ratio_of_field(original: Original, codec: Codec) -> Expected:
    """The entropy of differences between neighbours, as if they had a Laplace distribution."""
    outline = original.outline
    with np.errstate(invalid="ignore"):   # between two infinities
        steps = np.abs(np.diff(original.sample.values.reshape(-1)[: 2**20].astype(np.float64)))
    documents, width = documents_nbytes(outline, codec), width_in_file(outline.dtype, outline.metadata)
    scale = float(steps[np.isfinite(steps)].mean()) if np.isfinite(steps).any() else 1.0
    size = math.prod(outline.shape)

    def ratio(limits: np.ndarray) -> np.ndarray:
        bits = np.log2(1 + scale / limits) + 0.05
        return size * width / (documents + size * bits / 8)

    return ratio
