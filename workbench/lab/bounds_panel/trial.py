"""The background work of the bounds panel: one codec at one bound, first the errors, then the spectra."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.archive import Archive
from workbench.backend import Array
from workbench.bounds.measure import Outcome, observe
from workbench.bounds.parts import arrays_of
from workbench.bounds.run import Question, Run
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Limit
from workbench.lab.bounds_panel.state import BoundsState
from workbench.lab.remembered import remembered
from workbench.metrics import ErrorHistogram, Spectrum, error_histogram, field_spectrum, particle_spectrum, spectrum_ratio
from workbench.metrics.displacements import moves
from workbench.progress import Progress

MOST_SHELLS = 256   # of a spectrum on a chart


@dataclass(frozen=True, eq=False)
class Trial:
    """A run with the data that it was measured on. A failed run has only the reason, in `run.error`.

    `histogram` is in units of the limit; None if the limit is zero.
    """

    question: Question
    run: Run
    outcome: Outcome | None = None
    histogram: ErrorHistogram | None = None

    @property
    def archive(self) -> Archive:
        """The archive, as `wb.compress` returned it."""
        return self._came_out().archive

    @property
    def decoded(self) -> Particles | Field:
        """The decoded data. In free order, `decoded[i]` corresponds to `original[order[i]]`."""
        return self._came_out().decoded

    @property
    def order(self) -> Array | None:
        """The original index of each decoded particle; None if the order was kept."""
        return self._came_out().order

    @property
    def limit(self) -> Limit:
        """The bound as a number for these data, as promised by the archive."""
        archive = self.archive
        limit = archive.certificate[archive.data.layout.name].limit
        assert isinstance(limit, Limit)   # panels ask for no bounds of slices
        return limit

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        if self.outcome is None:
            return 1024
        arrays = list(arrays_of(self.decoded).values()) + ([] if self.order is None else [self.order])
        seen = self.decoded.positions.nbytes if isinstance(self.decoded, Particles) else 0   # columns copied for drawing
        return self.archive.nbytes + seen + sum(int(array.nbytes) for array in arrays)

    def _came_out(self) -> Outcome:
        if self.outcome is None:
            raise WorkbenchError(f"{self.run} failed: {self.run.error}")
        return self.outcome


@dataclass(frozen=True, eq=False)
class Spectra:
    """The ratio of decoded to original power by wave number; or the reason why there is none."""

    k: np.ndarray
    ratio: np.ndarray
    nyquist: float = 0.0
    why_not: str = ""

    @property
    def nbytes(self) -> int:
        """Its approximate memory."""
        return int(self.k.nbytes + self.ratio.nbytes) + 256


def try_bound(data: Particles | Field, state: BoundsState, progress: Progress) -> Trial:
    """Compress, decompress and compare. Errors become the run's `error`; exceptions from `progress` are passed on.

    >>> from workbench.data.synthetic import gaussian_field
    >>> waves = gaussian_field((32, 32), seed=1)
    >>> trial = try_bound(waves, BoundsState("prequantised", eb=0.01), lambda share, text: None)
    >>> trial.run["max_error"] <= 0.01, trial.decoded
    (True, Field('gaussian', 32 x 32, float32))
    """
    run, outcome = observe(data, state.question, lambda share, what: progress(0.7 * share, f"compressing: {what}"))
    trial = Trial(state.question, run, outcome)
    if outcome is None:
        return trial
    progress(0.9, "sorting errors by size")
    return Trial(state.question, run, outcome, _histogram(data, trial))


def spectra_of(data: Particles | Field, trial: Trial, progress: Progress) -> Spectra:
    """The power that the decoded data retain. The spectrum of the original is computed once for all trials."""
    if trial.outcome is None:
        return _no_spectra(f"the codec failed: {trial.run.error}")
    try:
        progress(0.0, "spectrum of the original")
        original = remembered(data, "spectrum", "", lambda: _spectrum(data, data))
        progress(0.5, "spectrum of the decoded data")
        decoded = _spectrum(trial.decoded, data)
    except WorkbenchError as error:   # of particles in a plane, of a single value
        return _no_spectra(str(error))
    return _compared(original, decoded)


def _compared(original: Spectrum, decoded: Spectrum) -> Spectra:
    """The ratio for each shell; a long line has thousands of shells, which are binned for the chart."""
    if len(original.k) <= MOST_SHELLS:
        return Spectra(original.k, spectrum_ratio(original, decoded), original.nyquist)
    edges = np.geomspace(original.k[0], original.k[-1], MOST_SHELLS + 1)[:-1]
    first = np.unique(np.searchsorted(original.k, edges * (1 - 1e-9)))
    modes = np.add.reduceat(original.modes, first)
    binned = [
        replace(one, k=np.add.reduceat(one.k * one.modes, first) / modes,
                power=np.add.reduceat(one.power * one.modes, first) / modes, modes=modes, shot_noise=None)
        for one in (original, decoded)
    ]
    return Spectra(binned[0].k, spectrum_ratio(binned[0], binned[1]), original.nyquist)


def _spectrum(data: Particles | Field, original: Particles | Field) -> Spectrum:
    """The spectrum, in the box and on the valid points of the original."""
    if isinstance(data, Particles):
        return particle_spectrum(data, within=original if isinstance(original, Particles) else None)
    assert isinstance(original, Field)
    if not original.valid.any():
        raise WorkbenchError("a power spectrum needs values; all of these are masked or not finite")
    return field_spectrum(Field(data.values, data.spacing, data.name, ~original.valid))


def _no_spectra(why_not: str) -> Spectra:
    return Spectra(np.empty(0), np.empty(0), why_not=why_not)


def _histogram(data: Particles | Field, trial: Trial) -> ErrorHistogram | None:
    limit = trial.limit
    if not limit.value > 0:
        return None
    if not limit.relative:
        return error_histogram(data, trial.decoded, limit.value, order=trial.order)
    shares = _relative_errors(data, trial)
    return error_histogram(np.zeros_like(shares), shares, limit.value)


def _relative_errors(data: Particles | Field, trial: Trial) -> np.ndarray:
    """Each error as a share of the value; zeros are left out, since they are decoded as zeros."""
    if isinstance(data, Particles):
        assert isinstance(trial.decoded, Particles)
        pairs = list(moves(data, trial.decoded, trial.order))
        reference, error = (np.concatenate([pair[part].ravel() for pair in pairs]) for part in (0, 1))
    else:
        assert isinstance(trial.decoded, Field)
        reference = data.values[data.valid].astype(np.float64)
        error = trial.decoded.values[data.valid] - reference
    nonzero = reference != 0
    shares: np.ndarray = error[nonzero] / np.abs(reference[nonzero])
    return shares if shares.size else np.zeros(1)
