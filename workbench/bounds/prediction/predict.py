"""`wb.predict`: ratio, PSNR and SSIM at many bounds, each with an interval, without compressing the whole."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench import codecs
from workbench.bounds.prediction.expert import Expert, shipped
from workbench.bounds.prediction.prediction import Prediction
from workbench.bounds.prediction.surveyed import surveyed
from workbench.bounds.run import Run, label_of
from workbench.bounds.sources import FieldInParts, source_of
from workbench.bounds.sweep import bounds_of
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.progress import Progress


def predict(
    data: Any, codec: str | Codec, bounds: Bound | Iterable[Bound], *, expert: Expert | None = None, client: Any = None,
    scratch: str | Path | None = None, progress: Progress | None = None,
) -> Prediction:
    """The ratio, PSNR and SSIM of a field at each bound, from samples; nothing is compressed as a whole.

    A field is surveyed once, however many bounds and codecs it is predicted for. `expert` is one from `wb.bounds.train`, or
    one that knows an earlier time step (`wb.bounds.calibrated`); by default the one that comes with the package, for sz3,
    zfp, sperr, prequantised, staged and interpolation with their usual options.

    Fields may be larger than memory, as for `wb.compare`. Such a field is read once for its range, on the workers of a Dask
    `client`, and sampled in parts; SSIM is not predicted then. Arrays in memory are written to the `scratch` folder for a
    client. `progress` is called with the completed share of the reading.

    >>> import workbench as wb
    >>> waves = wb.synthetic.gaussian_field((128, 128), 3, seed=1)
    >>> row = predict(waves, "prequantised", wb.Absolute(0.01)).rows[0]
    >>> true = wb.compress(waves, wb.Absolute(0.01), "prequantised").ratio
    >>> row.ratio_low < true < row.ratio_high
    True
    """
    field = source_of(data, client)
    if isinstance(field, Particles):
        columns = ", and wb.predict(particles.velocities, ...) for velocities" if field.velocities is not None else ""
        raise WorkbenchError(f"wb.predict is for fields; got {field!r}: use wb.sweep or wb.find_bound{columns}")
    field.require_floats("wb.predict")
    asked = bounds_of(bounds)
    if expert is None and isinstance(codec, str):
        expert = shipped().get(codec)
    known = expert_for(codec if isinstance(codec, Codec) else codecs.get(codec), expert)
    known.made.require()
    if isinstance(field, Field):
        return surveyed(field).at(asked, known)
    with FieldInParts.opened(field, client, scratch, progress, read_often=False) as parts:
        return surveyed(parts).at(asked, known)


def expert_for(codec: Codec, given: Expert | None = None) -> Expert:
    """The expert given, or the one that comes with the package; refused if it knows another codec."""
    if given is not None and not isinstance(given, Expert):
        raise WorkbenchError(f"expert must be one of wb.bounds.train, or wb.bounds.Expert.load(path); got {given!r:.60}")
    if given is None:
        given = shipped().get(codec.id)
    if given is None or given.made != codec:
        known = ", ".join(shipped())
        raise WorkbenchError(
            f"a prediction for {label_of(codec)} needs an expert on it; {known} with their usual options come with the "
            f"package: train one with wb.bounds.train(fields, codec, bounds)"
        )
    return given


def calibrated(expert: Expert, field: Field, runs: Iterable[Run]) -> Expert:
    """The expert corrected by runs of an earlier time step, for predictions of later ones.

    `runs` are those of a sweep of the earlier field with the same codec: by how much the expert is off there is how much it
    is off a step later, to first order. Between the limits of these runs, the bits of the earlier step are an expert of
    their own (persistence), which counts as much, and intervals of ratios are half as wide.
    """
    codec = codecs.from_dict(expert.codec)
    used = [run for run in runs if run.error is None and codecs.from_dict(run.codec) == codec and run["limit"] > 0]
    if not used:
        raise WorkbenchError(f"runs must hold at least one of {label_of(codec)} that succeeded; got none")
    used.sort(key=lambda run: float(run["limit"]))
    known = surveyed(Field.of(field))
    limits, size = np.array([float(run["limit"]) for run in used]), known.whole.size
    seen, _ = known.figures(known.whole.within_reason(limits), expert.shifted(MappingProxyType({})))
    where = np.log(limits)
    nbytes = np.array([float(run["nbytes"]) - known.whole.beside(run.bound, codec) for run in used])
    bits = np.log(np.maximum(nbytes, 1) * 8 / size)
    decibels = np.array([float(run["psnr"]) for run in used])
    noise = np.log(3 * (known.whole.peak / limits) ** 2) - decibels * math.log(10) / 10 - np.log(seen["noise"][0])
    off = {"bits": bits - np.log(seen["bits"][0]), "noise": np.where(np.isfinite(noise), noise, 0)}
    starts = known.parts[0].survey.wavelets.starts if codec.imitation == "wavelets" else None
    return expert.shifted({name: (where, each) for name, each in off.items()}, (where, bits), starts, field.shape)
