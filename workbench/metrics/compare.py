"""`compare`: all metrics of the difference between two fields, or two sets of particles, in one report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workbench import backend
from workbench.arguments import whole_number
from workbench.backend import Array
from workbench.data import Particles
from workbench.data.chunked import ChunkedParticles
from workbench.data.triclinic import in_triclinic_cell
from workbench.errors import WorkbenchError
from workbench.metrics.displacements import displacements
from workbench.metrics.errors import Errors, pointwise, require_bound
from workbench.metrics.field_sums import FieldPair
from workbench.metrics.halos import match_halos
from workbench.metrics.particle_spectrum import particle_spectrum
from workbench.metrics.report import Check, Figure, Report
from workbench.metrics.similarity import WINDOW
from workbench.metrics.spectrum import Spectrum, spectrum_ratio, worst_deviation
from workbench.metrics.structure import ErrorHistogram
from workbench.progress import Progress
from workbench.run.submission import submittable


@dataclass
class _Draft:
    """A report that is being written."""

    figures: dict[str, Figure] = field(default_factory=dict)
    curves: dict[str, np.ndarray] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self, subject: str) -> Report:
        return Report(subject, self.figures, self.curves, tuple(self.checks), tuple(self.notes))


def _require_single(*both: Any) -> None:
    """Refuse datasets, which have a call of their own."""
    for given in both:
        kind = type(given)
        of_xarray = kind.__module__.partition(".")[0] == "xarray" and kind.__name__ in ("Dataset", "DataTree")
        if of_xarray or isinstance(given, Mapping):
            raise WorkbenchError(
                f"a {kind.__name__} holds several arrays: compare datasets of xarray by ds.wb.compare(decoded), after "
                "import workbench.xarray, or choose an array of each, as in ds['temperature']"
            )


@submittable
def compare(
    original: Any,
    decoded: Any,
    *,
    bound: float | None = None,
    order: Any = None,
    linking_length: float = 0.2,
    min_members: int = 20,
    quick: bool = False,
    client: Any = None,
    scratch: str | Path | None = None,
    progress: Progress | None = None,
) -> Report:
    """How different decoded data are from the original: two fields, two sets of particles, or two arrays of values.

    With a `bound`, the report says whether any absolute error exceeds it: of values, or of coordinates. Particles decoded
    in another order need `order`: `decoded[i]` is `original[order[i]]`. Halos are friends-of-friends groups of at least
    `min_members`, at a linking length in mean spacings. `quick` computes only errors, PSNR and SSIM.

    Fields may be larger than memory: arrays of Dask, Zarr and h5py, paths of .npy files and Zarr arrays, archives, and
    `wb.distributed.ChunkedField`. They are read part by part, on the workers of a Dask `client` (the active one, for Dask
    and Zarr, if none is given), up to three times. Power spectra then need 32 bytes for each value in the `scratch` folder,
    and a plane of the field in memory; decoded parts of archives are kept there, too, so that each is decoded once.
    `progress` is called with the completed share of each step and its name.

    >>> from workbench.data.synthetic import gaussian_field
    >>> wave = gaussian_field((32, 32), seed=1)
    >>> report = compare(wave, np.round(wave.values, 2), bound=0.005001)
    >>> report.passed, report.max_error < 0.00501, round(report.ssim, 3)
    (True, True, 1.0)
    """
    require_bound(bound)
    whole_number("min_members", min_members, least=1)
    draft = _Draft()
    if isinstance(original, Particles) and isinstance(decoded, Particles):
        if client is not None:
            raise WorkbenchError("client must be None for particles, which are compared here: try wb.compare_groups")
        if not quick:
            _require_host(original.positions)
        _compare_particles(draft, original, decoded, bound, order)
        if not quick:
            _compare_clustering(draft, original, decoded, order, linking_length, min_members)
        return draft.report(f"{original!r}, original and decoded")
    if any(isinstance(given, Particles | ChunkedParticles) for given in (original, decoded)):
        names = type(original).__name__, type(decoded).__name__
        raise WorkbenchError(f"both must be fields, or both particles; got {names[0]} and {names[1]}")
    if order is not None:
        raise WorkbenchError("order must be None for fields, whose values are never reordered; got an order")
    _require_single(original, decoded)
    with FieldPair.opened((original, decoded), client, scratch, progress) as pair:
        if not quick:
            _require_host(pair.original.values)
        _compare_fields(draft, pair, bound, quick)
        return draft.report(f"{pair.original.in_memory or pair.original!r}, original and decoded")


def _require_host(array: Array) -> None:
    if backend.on_device(array):
        raise WorkbenchError("a full comparison needs NumPy arrays; got CuPy: copy them with .get(), or use quick=True")


def _add_figures(draft: _Draft, errors: Errors, bound: float | None) -> None:
    """The figures that follow from the errors of a field alone."""
    draft.figures |= {"values": errors.count, "differing": errors.differing}
    if errors.lost:
        draft.figures["lost"] = errors.lost
    if errors.invalid:
        draft.figures |= {"invalid": errors.invalid, "invalid_kept": errors.invalid_kept}
    _add_errors(draft, errors, bound)
    draft.figures |= {
        "max_relative_error": errors.max_relative_error, "value_range": errors.value_range, "psnr": errors.psnr,
        "nrmse": errors.nrmse,
    }
    if bound is not None and errors.invalid > 0:
        draft.checks.append(Check("changed NaN and infinities", 0, errors.nonfinite_changed))


def _add_errors(draft: _Draft, errors: Errors, bound: float | None) -> None:
    draft.figures |= {"max_error": errors.max_error, "rms_error": errors.rms_error, "mean_error": errors.mean_error}
    if bound is not None:
        draft.figures["exceeding"] = errors.exceeding
        draft.checks.append(Check("max_error", float(bound), errors.max_error))


def _compare_fields(draft: _Draft, pair: FieldPair, bound: float | None, quick: bool) -> None:
    no_ssim = _why_no_ssim(pair.original.shape)
    if not (quick and no_ssim):
        pair = pair.decoded_once()
    totals = pair.totals(bound, quick)
    errors = totals.errors
    _add_figures(draft, errors, bound)
    if not errors.count:
        draft.notes.append("no structural figures: the original has no valid value")
    elif not math.isfinite(errors.max_error):
        draft.notes.append("no structural figures: some errors are infinite")
    else:
        no_ssim = no_ssim or ("the original is constant" if errors.value_range == 0 else "")
        sums = None if quick and no_ssim else pair.window_sums(errors, bound or errors.max_error, quick)
        if sums is not None and math.isfinite(sums.ssim):
            draft.figures["ssim"] = sums.ssim
        else:
            draft.notes.append(f"no ssim: {no_ssim or 'no window is free of invalid values'}")
        if sums is not None and sums.pairs is not None:
            _add_structure(draft, sums.pairs.means(errors), sums.histogram)
            if max(pair.original.shape[-3:]) > 1:
                _add_spectra(draft, *pair.spectra(totals))
            else:
                draft.notes.append("no power spectrum: it needs at least 2 points along an axis")


def _why_no_ssim(shape: Sequence[int]) -> str:
    axes = [points for points in shape if points > 1]
    if len(axes) < 2:
        return "it is defined for two and three dimensions"
    return f"it needs {WINDOW} points along each axis" if min(axes[-3:]) < WINDOW else ""


def _add_structure(draft: _Draft, correlation: np.ndarray, histogram: ErrorHistogram | None) -> None:
    if np.isfinite(correlation).any():
        draft.figures["error_autocorrelation"] = float(np.nanmax(np.abs(correlation)))
    draft.curves["error_autocorrelation"] = correlation
    if histogram is not None:
        draft.curves |= {"error_histogram_edges": histogram.width * histogram.edges, "error_histogram": histogram.counts}


def _add_spectra(draft: _Draft, original: Spectrum, decoded: Spectrum) -> None:
    draft.figures["spectrum_worst"] = worst_deviation(original, decoded)
    if original.k[0] <= original.nyquist / 2:
        draft.figures["spectrum_worst_half"] = worst_deviation(original, decoded, original.nyquist / 2)
    draft.curves |= {
        "spectrum_k": original.k, "spectrum_modes": original.modes, "spectrum_original": original.whole_power,
        "spectrum_decoded": decoded.whole_power, "spectrum_ratio": spectrum_ratio(original, decoded),
    }
    if original.beyond_numbers or decoded.beyond_numbers:
        draft.notes.append("some powers are beyond the range of float64 and given as inf or 0; ratios are not affected")
    if original.shot_noise is not None:
        draft.curves["spectrum_shot_noise"] = original.shot_noise


def _compare_particles(draft: _Draft, original: Particles, decoded: Particles, bound: float | None, order: Any) -> None:
    moved = displacements(original, decoded, order, bound)
    draft.figures |= {"particles": len(original), "differing": moved.coordinates.differing}
    _add_errors(draft, moved.coordinates, bound)
    draft.figures |= {
        "max_distance": moved.max_distance, "rms_distance": moved.rms_distance, "psnr": moved.psnr, "nrmse": moved.nrmse
    }
    if original.velocities is not None and decoded.velocities is not None:
        came_from = original.velocities if order is None else original.velocities[order]
        velocities = pointwise(came_from, decoded.velocities)
        draft.figures |= {"velocity_max_error": velocities.max_error, "velocity_rms_error": velocities.rms_error}
    for name, values in original.columns.items():
        if name in decoded.columns:
            draft.figures |= _figures_of_column(name, values if order is None else values[order], decoded.columns[name])


def _figures_of_column(name: str, original: Array, decoded: Array) -> dict[str, float]:
    """The errors of a column of floats; of others, how many numbers differ."""
    if original.shape != decoded.shape or original.dtype != decoded.dtype:
        got, wanted = f"{decoded.dtype} {decoded.shape}", f"{original.dtype} {original.shape}"
        raise WorkbenchError(f"the column {name} must be {wanted}, as in the original; got {got}")
    if original.dtype.kind != "f":
        return {f"{name}_differing": int((original != decoded).sum())}
    errors = pointwise(original, decoded)
    return {f"{name}_max_error": errors.max_error, f"{name}_rms_error": errors.rms_error}


def _compare_clustering(
    draft: _Draft, original: Particles, decoded: Particles, order: Any, linking_length: float, min_members: int
) -> None:
    if in_triclinic_cell(original.metadata):
        draft.notes.append("no power spectrum, no halos: the periods of a triclinic cell are not supported")
    elif min(original.lengths) > 0:
        _add_spectra(draft, particle_spectrum(original), particle_spectrum(decoded, within=original))
        _add_halos(draft, original, decoded, order, linking_length, min_members)
    else:
        draft.notes.append("no power spectrum, no halos: the particles do not fill a volume; give them a box")


def _add_halos(
    draft: _Draft, original: Particles, decoded: Particles, order: Any, linking_length: float, min_members: int
) -> None:
    match = match_halos(original, decoded, linking_length, "spacing", min_members, order)
    draft.figures |= {
        "clusters_kept": match.kept, "halos_original": len(match), "halos_decoded": match.decoded_halos,
        "halos_matched": int(match.matched.sum()), "halos_identical": int(match.identical.sum()),
        "halos_broken": int(match.broken.sum()), "halos_split": int(match.split.sum()),
        "halos_merged": int(match.merged.sum()), "halos_new": match.new,
    }
    if len(match):
        draft.figures |= {"halo_recall": float(match.recall.mean()), "mass_function_worst": match.mass_function.worst()}
    if match.matched.any():
        shifts = match.shifts[match.matched]
        draft.figures |= {
            "halo_shift_max": float(shifts.max()), "halo_shift_rms": float(np.sqrt((shifts**2).mean()))
        }
    counted = match.mass_function
    draft.curves |= {
        "mass_function_edges": counted.edges, "mass_function_original": counted.original,
        "mass_function_decoded": counted.decoded, "mass_function_ratio": counted.ratio,
    }
