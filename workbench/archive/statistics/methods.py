"""The statistics of an archive, as its methods. What they compute is in the other modules of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from workbench.archive.statistics.along_axes import reduced
from workbench.archive.statistics.block_means import BlockMeans, Sides, block_means
from workbench.archive.statistics.centre_of_mass import CentreOfMass, centre_of_mass
from workbench.archive.statistics.chunk_parts import FieldPart
from workbench.archive.statistics.distributions import histogram, median, quantiles
from workbench.archive.statistics.explanations import explained
from workbench.archive.statistics.figure import Explanation, FieldStatistic, Statistic
from workbench.archive.statistics.halo_masses import HaloMasses, halo_masses
from workbench.archive.statistics.mesh import Density, density
from workbench.archive.statistics.operators import operator
from workbench.archive.statistics.particle_counts import ParticleCount, count
from workbench.archive.statistics.power_spectrum import PowerSpectrum, power_spectrum
from workbench.archive.statistics.products import dot, norm
from workbench.archive.statistics.selection import part_of_grid
from workbench.archive.statistics.together import readers, several
from workbench.archive.statistics.value_counts import Count, Histogram, count_between
from workbench.clusters.friends import Unit
from workbench.progress import Progress
from workbench.run.submission import submittable

if TYPE_CHECKING:
    from workbench.archive.archive import Archive

Named = str | int | list[str] | tuple[str, ...]   # dimensions in the place of a region
Along = str | int | Sequence[str | int]
Region = Sequence[tuple[int | None, int | None] | slice | None] | slice | None


class Statistics:
    """Statistics of the original data of an archive, each with a proven bound."""

    @property
    def _itself(self) -> Archive:
        return cast("Archive", self)

    @overload
    def mean(self, region: Named, *, weights: Any = ...) -> FieldStatistic: ...
    @overload
    def mean(self, region: Region = ..., *, axis: None = ..., weights: Any = ...) -> Statistic: ...
    @overload
    def mean(self, region: Region = ..., *, axis: Along, weights: Any = ...) -> FieldStatistic: ...
    def mean(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Statistic | FieldStatistic:
        """The mean of a field, or of a region of it, with a bound that is proven for the original data.

        Masked and non-finite cells do not count. Of the codec `staged`, the metadata of blocks suffice; of others, chunks
        are decoded one by one. `explain` says what is read.

        Given an `axis` or several, by number or name, it is an array of means along these (`FieldStatistic`); names may
        come first, as in `mean("time")`. `weights` are arrays by axis, whose product counts, one of the field's shape, or
        "area": the cosine of the latitude.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(archive.mean(), "from", archive.mean().stage)
        0.50037 ± 0.00101 from metadata of blocks
        >>> archive.mean(axis=0).values.shape, str(archive.mean(weights={0: np.arange(64.0)}))
        ((64,), '0.66962 ± 0.00101')
        """
        return reduced(self._itself, "mean", region, axis, weights)

    @overload
    def sum(self, region: Named, *, weights: Any = ...) -> FieldStatistic: ...
    @overload
    def sum(self, region: Region = ..., *, axis: None = ..., weights: Any = ...) -> Statistic: ...
    @overload
    def sum(self, region: Region = ..., *, axis: Along, weights: Any = ...) -> FieldStatistic: ...
    def sum(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Statistic | FieldStatistic:
        """The sum of the values, each times its weight, as `mean`."""
        return reduced(self._itself, "sum", region, axis, weights)

    @overload
    def std(self, region: Named, *, weights: Any = ...) -> FieldStatistic: ...
    @overload
    def std(self, region: Region = ..., *, axis: None = ..., weights: Any = ...) -> Statistic: ...
    @overload
    def std(self, region: Region = ..., *, axis: Along, weights: Any = ...) -> FieldStatistic: ...
    def std(self, region: Any = None, *, axis: Any = None, weights: Any = None) -> Statistic | FieldStatistic:
        """The standard deviation of the values (of the population), as `mean`."""
        return reduced(self._itself, "std", region, axis, weights)

    @overload
    def min(self, region: Named) -> FieldStatistic: ...
    @overload
    def min(self, region: Region = ..., *, axis: None = ...) -> Statistic: ...
    @overload
    def min(self, region: Region = ..., *, axis: Along) -> FieldStatistic: ...
    def min(self, region: Any = None, *, axis: Any = None) -> Statistic | FieldStatistic:
        """The smallest value, as `mean`; without weights."""
        return reduced(self._itself, "min", region, axis)

    @overload
    def max(self, region: Named) -> FieldStatistic: ...
    @overload
    def max(self, region: Region = ..., *, axis: None = ...) -> Statistic: ...
    @overload
    def max(self, region: Region = ..., *, axis: Along) -> FieldStatistic: ...
    def max(self, region: Any = None, *, axis: Any = None) -> Statistic | FieldStatistic:
        """The largest value, as `mean`; without weights."""
        return reduced(self._itself, "max", region, axis)

    @submittable
    def statistics(
        self,
        names: Sequence[str] = ("mean", "std", "min", "max", "sum"),
        region: Any = None,
        *,
        axis: Any = None,
        quantiles: Any = None,
        bins: Any = None,
        client: Any = None,
        scratch: str | Path | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Several statistics by name, from one pass; the same as one by one.

        Given an `axis` or several, each is along these, as for `mean`. Of all values, `quantiles` adds these shares, as
        "quantile 0.5", and `bins` (a number, or edges) a "histogram".

        Chunks are read in this process or on the workers of a Dask `client` (or the address of a scheduler), which must
        see the archive and the `scratch` folder. `progress` is called with the completed share and the name of the step.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> {name: str(figure) for name, figure in archive.statistics(["mean"], quantiles=[0.5]).items()}
        {'mean': '0.50037 ± 0.00101', 'quantile 0.5': '0.50040 ± 0.00101'}
        """
        with readers([self._itself], client, scratch, progress) as executor:
            return several(self._itself, names, region, axis, quantiles, bins, executor)

    # Operators.

    def derivative(self, axis: int | str = 0, region: Any = None) -> FieldStatistic:
        """The derivative of a field at each point along an axis (a number or a name), with bounds for the original data.

        As `numpy.gradient` has it with the spacing of the field: (x[i + 1] - x[i - 1]) / 2h, and at the ends of an axis the
        difference of two neighbours over h. A region has the derivative of the whole field there. A value whose stencil has
        a masked or non-finite cell is NaN.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(wb.Field(np.arange(400.0).reshape(20, 20), spacing=0.5), wb.Absolute(1e-3), "staged")
        >>> archive.derivative(1, region=[(0, 20), (5, 9)])
        FieldStatistic(derivative of 20 x 4, float64, bound 0.002001, from values, ... bytes read)
        """
        return operator(self._itself, "derivative", axis, region)

    def gradient_magnitude(self, region: Any = None) -> FieldStatistic:
        """The length of the gradient, the root of the sum of the squares of all derivatives; otherwise as `derivative`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.add.outer(3.0 * np.arange(20), 4.0 * np.arange(30)), wb.Absolute(1e-3))
        >>> bool(abs(archive.gradient_magnitude().values - 5).max() < 0.01)
        True
        """
        return operator(self._itself, "gradient_magnitude", None, region)

    def laplacian(self, region: Any = None) -> FieldStatistic:
        """The Laplacian: the sum of the second differences (x[i - 1] - 2 x[i] + x[i + 1]) / h² along all axes.

        At the ends of an axis, it is the second difference of the last three points. Otherwise as `derivative`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.add.outer(np.arange(20.0) ** 2, np.arange(30.0) ** 2), wb.Absolute(1e-3))
        >>> bool(abs(archive.laplacian().values - 4).max() < 0.01)
        True
        """
        return operator(self._itself, "laplacian", None, region)

    def block_means(self, sides: Sides = None) -> BlockMeans:
        """The mean of each block of a field, a coarse view of it, with bounds for the original data.

        `sides` is one number, or one for each axis; without it, blocks are those of the codec `staged`, or have 8 points
        along each axis. Blocks begin anew in each chunk, as `edges` of the result say. With `staged`, the metadata suffice
        where each side is a multiple of the codec's.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 2**14).reshape(128, 128), wb.Absolute(1e-3), "staged")
        >>> blocks = archive.block_means(64)
        >>> blocks.values.round(3).tolist(), blocks.sides, blocks.stage
        ([[0.248, 0.252], [0.748, 0.752]], (64, 64), 'metadata of blocks')
        """
        return block_means(self._itself, sides)

    # Distributions.

    @overload
    def quantile(self, q: float, region: Any = ...) -> Statistic: ...
    @overload
    def quantile(self, q: Sequence[float] | np.ndarray, region: Any = ...) -> list[Statistic]: ...
    def quantile(self, q: Any, region: Any = None) -> Statistic | list[Statistic]:
        """A quantile, or a list of several, by NumPy's definition `linear`: between the values of two ranks in proportion.

        No quantile moves by more than the values do, so the bound is that of the archive. Of the codec `staged`, only
        blocks whose extremes do not exclude them are decoded; at no time are more than 2^24 values held.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(*archive.quantile([0.25, 0.75]), sep=", ")
        0.25030 ± 0.00101, 0.75040 ± 0.00101
        """
        return quantiles(self._itself, q, region)

    def median(self, region: Any = None) -> Statistic:
        """The median, as `quantile(0.5)`."""
        return median(self._itself, region)

    def count(self, above: float | None = None, below: float | None = None, region: Any = None) -> Count:
        """How many values are above one number, below another, or between them: from `low` to `high`.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> print(archive.count(above=0.5))
        2,049 (2,045 to 2,053)
        """
        return count_between(FieldPart(self._itself, part_of_grid(self._itself, region)), above, below)

    def histogram(self, bins: Any = 10, range: tuple[float, float] | None = None, region: Any = None) -> Histogram:
        """How many values each bin has: from `low` to `high`, those that are in it certainly and those that may be.

        `bins` is a number of equal bins in `range` (by default: all that the original values can be), or their edges.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "staged")
        >>> counts = archive.histogram(2, (0, 1))
        >>> bool((counts.low <= 2048).all() and (counts.high >= 2048).all())
        True
        """
        return histogram(self._itself, bins, range, region)

    def norm(self, order: float = 2, region: Any = None) -> Statistic:
        """The norm of a field: the root of the sum of squares (2), the sum (1) or the largest (math.inf) of magnitudes.

        >>> import numpy as np, workbench as wb
        >>> print(wb.compress(np.full((30, 40), 2.0), wb.Absolute(1e-3), "staged").norm())
        69.2820 ± 0.0347
        """
        return norm(self._itself, order, region)

    def dot(self, other: Archive, region: Any = None) -> Statistic:
        """The sum of the products with another field on the same grid, where both are valid.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.full((30, 40), 2.0), wb.Absolute(1e-3), "staged")
        >>> print(archive.dot(archive))
        4800.00 ± 4.81
        """
        return dot(self._itself, other, region)

    def explain(self, name: str, region: Any = None, **options: Any) -> Explanation:
        """How a statistic is answered: what is decoded, how many bytes that takes, and the bound.

        `options` are those of its method: `explain("mean", axis="time")`, `explain("laplacian")`. Others are refused.

        >>> import numpy as np, workbench as wb
        >>> archive = wb.compress(np.linspace(0, 1, 4096).reshape(64, 64), wb.Absolute(1e-3), "prequantised")
        >>> archive.explain("mean").stage, archive.explain("mean").bound
        ('values', 0.001)
        """
        return explained(self._itself, name, region, **options)

    def power_spectrum(self) -> PowerSpectrum:
        """The power spectrum of a field on a periodic grid, with a proven interval in each shell.

        >>> import numpy as np, workbench as wb
        >>> waves = np.cos(2 * np.pi * 3 * np.arange(32) / 32)
        >>> spectrum = wb.compress(waves, wb.Absolute(1e-3), "staged").power_spectrum()
        >>> bool(spectrum.low[2] <= 8 <= spectrum.high[2])
        True
        """
        return power_spectrum(self._itself)

    # Of particles.

    def count_particles(self, region: Any = None, sphere: Any = None) -> ParticleCount:
        """How many particles are in a region, as for `read`, or within a `sphere=(centre, radius)`, between proven ends.

        >>> import workbench as wb
        >>> archive = wb.compress(wb.synthetic.cosmic_web(n=16, seed=1), wb.Absolute(0.01))
        >>> print(archive.count_particles(sphere=((8, 8, 8), 4)))
        452, between 450 and 454
        """
        return count(self._itself, region, sphere)

    def density(self, cells: int | Sequence[int]) -> Density:
        """How many particles are in each cell of a mesh over the box, or over all particles, between proven ends.

        >>> import workbench as wb
        >>> wb.compress(wb.synthetic.cosmic_web(n=16, seed=1), wb.Absolute(0.01)).density(8).low.shape
        (8, 8, 8)
        """
        return density(self._itself, cells)

    def centre_of_mass(self) -> CentreOfMass:
        """The centre of mass of all particles with a proven bound; in a periodic box, the mean direction around it.

        >>> import workbench as wb
        >>> print(wb.compress(wb.Particles([[0.0, 1.0], [2.0, 3.0]]), wb.Absolute(0.25)).centre_of_mass())
        1.000 ± 0.251, 2.000 ± 0.251
        """
        return centre_of_mass(self._itself)

    def halo_masses(
        self, linking_length: float = 0.2, unit: Unit = "spacing", min_members: int = 20
    ) -> HaloMasses:
        """The numbers of members of friends-of-friends halos of the original particles, between proven ends.

        >>> import workbench as wb
        >>> archive = wb.compress(wb.synthetic.cosmic_web(n=16, seed=1), wb.Absolute(1e-4))
        >>> archive.halo_masses().low[:3].tolist()
        [166, 101, 78]
        """
        return halo_masses(self._itself, linking_length, unit, min_members)
