"""Errors of a known size: those that a codec makes within a bound, and random noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from workbench import backend
from workbench.archive.compress import compress
from workbench.arguments import positive
from workbench.backend import Array
from workbench.codecs import Codec
from workbench.data import Field, Particles
from workbench.errors import WorkbenchError
from workbench.guarantees import Bound
from workbench.propagation.error_sizes import root_mean_square
from workbench.propagation.number_format import component, components
from workbench.propagation.perturbation import Changed, Perturbation, require_draws

MOST_AXES = 4
LARGEST = 1e307   # of which the distance to its negative is a number
Distribution = Literal["uniform", "normal"]
Unit = Literal["rms", "range", "value"]


@dataclass(frozen=True, repr=False)
class Compressed(Perturbation):
    """What compressing the array of a site within a bound takes; "auto" is the codec that `wb.compress` would choose."""

    bound: Bound
    codec: str | Codec = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bound, Bound):
            raise WorkbenchError(f"bound must be Absolute, Relative or PointwiseRelative; got {self.bound!r}")
        if self.codec is None:
            object.__setattr__(self, "codec", "auto")

    def check(self, values: Array) -> None:
        """Refuse types that no codec takes."""
        if component(values.dtype).name not in ("float32", "float64") and values.dtype.kind not in "iu":
            raise WorkbenchError(f"a bounded error needs float32, float64 or integers at {self.site!r}; got {values.dtype}")

    def to_dict(self) -> dict[str, Any]:
        """The perturbation, ready for JSON."""
        codec = self.codec.to_dict() if isinstance(self.codec, Codec) else self.codec
        return {**super().to_dict(), "codec": codec}

    def _data(self, values: Array, box: Any) -> Particles | Field:
        """The array as what is compressed: a site with a box holds positions."""
        if box is not None and values.ndim == 2:
            return Particles(values, box=box)
        numbers = backend.namespace(values).ascontiguousarray(values)
        if values.dtype.kind == "c":
            numbers = numbers.view(component(values.dtype))
        return Field(numbers if 1 <= numbers.ndim <= MOST_AXES else numbers.reshape(-1))


@dataclass(frozen=True, repr=False)
class Bounded(Compressed):
    """The array, compressed within a bound by a codec and decompressed again, as `wb.compress` does it.

    The note of the run has the ratio and the largest error. A site that holds positions in a box, according to the
    pipeline, is compressed as particles; `keep` are promises beyond the bound, as in `wb.compress`.

    >>> from workbench.guarantees import Absolute
    >>> wave = np.sin(np.arange(4096.0))
    >>> done = Bounded("x", Absolute(1e-3), codec="prequantised").apply(wave)
    >>> bool(abs(done.values - wave).max() <= 1e-3), done.notes[0]["ratio"] > 3
    (True, True)
    """

    keep: Any = ()

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """What is decompressed from the compressed array."""
        self.check(values)
        data = self._data(values, box)
        archive = compress(data, self.bound, self.codec, self.keep)
        decoded = archive.decompress()
        found = decoded.positions if isinstance(decoded, Particles) else decoded.values
        restored = components(found).view(values.dtype).reshape(values.shape)
        note = {
            "bound": self.bound.to_dict(), "codec": str(self.codec), "nbytes": archive.nbytes,
            "ratio": values.nbytes / archive.nbytes, "largest_error": _largest(restored, values, box),
        }
        return Changed(restored, None, (note,))

    def radius(self, values: Array, changed: Array) -> Any:
        """What the bound allows each value. Numbers that are not finite stay; a complex one may have a finite part."""
        values = backend.to_host(values)
        limit = self.bound.limit(components(np.ascontiguousarray(values)))
        whole = values.dtype.kind != "c"
        most = limit.value * (1.0 if whole else np.sqrt(2.0))
        sizes = abs(values.astype(np.promote_types(values.dtype, np.float64)))
        allowed = most * sizes if limit.relative else np.full(values.shape, most)
        return np.where(np.isfinite(sizes), allowed, 0.0 if whole else np.inf)

    def to_dict(self) -> dict[str, Any]:
        """The perturbation, ready for JSON."""
        described = super().to_dict()
        return {**described, "keep": repr(self.keep)} if self.keep != () else described


@dataclass(frozen=True, repr=False)
class Noise(Perturbation):
    """Independent noise on every value, uniform in [-amplitude, amplitude] or normal with that standard deviation.

    `unit` says what the amplitude is a multiple of: the unit of the values, their root mean square, or their range.

    >>> from workbench.propagation.draws import draws_of
    >>> noisy = Noise("x", 0.1).apply(np.ones(1000), draws_of(0, 0)).values
    >>> bool(0.09 < abs(noisy - 1).max() <= 0.1)
    True
    """

    amplitude: float
    distribution: Distribution = "uniform"
    unit: Unit = "value"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "amplitude", positive("amplitude", self.amplitude))
        for name, known in (("distribution", get_args(Distribution)), ("unit", get_args(Unit))):
            if getattr(self, name) not in known:
                raise WorkbenchError(f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}")

    def check(self, values: Array) -> None:
        """Refuse what is not a floating-point array."""
        if values.dtype.kind not in "fc":
            raise WorkbenchError(f"noise needs floating-point values at {self.site!r}; got {values.dtype}")

    def apply(self, values: Array, draws: np.random.Generator | None = None, box: Any = None) -> Changed:
        """The array with noise added, rounded to its type."""
        self.check(values)
        xp = backend.namespace(values)
        generator, size = require_draws(self, draws), self._size(values)
        if not size < LARGEST:
            raise WorkbenchError(f"noise must be smaller than {LARGEST:g}; got an amplitude of {size:g} at {self.site!r}")
        copy = values.copy()
        numbers = components(copy)
        uniform = self.distribution == "uniform"
        noise = generator.uniform(-size, size, numbers.shape) if uniform else generator.normal(0, size, numbers.shape)
        numbers += xp.asarray(noise).astype(numbers.dtype)
        return Changed(copy, None, ({"amplitude": size},))

    def _size(self, values: Array) -> float:
        """The amplitude in the unit of the values."""
        if self.unit == "value":
            return self.amplitude
        numbers = components(np.ascontiguousarray(backend.to_host(values))).astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            raise WorkbenchError(f"noise in units of the {self.unit} needs finite values at {self.site!r}; got none")
        with np.errstate(over="ignore"):
            return self.amplitude * (root_mean_square(finite) if self.unit == "rms" else float(np.ptp(finite)))


def _largest(restored: Array, values: Array, box: Any) -> float:
    """The largest change of a value; in a box, by the shorter way round."""
    with np.errstate(all="ignore"):   # infinities stay, and their difference is NaN
        change = abs(np.asarray(restored, restored.dtype) - values) if not box else _nearest(restored - values, box)
    finite = change[np.isfinite(change)]
    return float(finite.max()) if finite.size else 0.0


def _nearest(change: Array, box: Any) -> Array:
    lengths = np.broadcast_to(np.asarray(box, np.float64), change.shape[-1:])
    return abs(change - lengths * np.rint(change / lengths))
