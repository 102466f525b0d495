"""Texture segmentation of a field by minimum description length.

First stage, on blocks of about 64 cells: blocks are clustered hierarchically, reassigned to the cheapest cluster as in
k-means, and two clusters are merged if one texture for both costs no more than two. Second stage, on cells: each cube votes
for its cells, and mean-field iterations of a Potts model smooth the labels, which finds borders to about one cell. Blocks
across a border seem to have a texture of their own, but few cells choose it. Such textures are dropped, and the others are
fitted again on blocks with a single label.

Values jump between regions, so any cube across a border looks rough. The cost that one cube can add against a texture is
therefore limited, and a cube that no texture explains does not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.limits.texture import REACH, SIDE, Textures, inside, moments, unevenness
from workbench.slabs import rows_of

SAMPLE = 1000         # blocks in the initial clustering
CLUSTERS = 12         # initial clusters
EXCHANGES = 4         # rounds of reassignment of blocks
FEWEST_BLOCKS = 0.005   # least share of all cubes in a cluster
CANDIDATES = 8        # textures passed on to the second stage
BLOCK_TIE = 3.0       # nats that a block gains for each neighbour with the same texture
BORDER = 0.5          # cost in nats of each face of a block between two textures
CELL_TIE = 6.0        # nats that a cell gains if all of its neighbours have the same texture
SAY = 2.0             # largest cost in nats of one cube against a texture
UNEXPLAINED = 3.0     # nats above the cost scale of the roughest texture, beyond which no texture explains a cube
VALUE_SAY = 12.0      # largest cost in nats of the value at a cell
LISTENING = {1: 33, 2: 3, 3: 3, 4: 3}   # width of the neighbourhood of a cell
ROUNDS = {1: 8, 2: 8, 3: 2, 4: 2}       # of mean-field iterations: in 3-D, more would round the corners of regions
WORTH = 0.12          # nats per cell that a texture must save: less is useless, as no field follows a model that exactly
JUMP = 2.5            # times the usual difference of neighbours: distinguishes a step from a slope
THINNEST = 0.01       # of the field: least share of a texture in blocks with a single label
SMALLEST = 0.01       # of the field: least share of a texture in cells
LARGE = 2**20         # cells: above it, blocks suffice to find the textures, and cells are labelled once
PASSES = 3            # over the cells of smaller fields
SLAB = 2**20          # cells processed together


def find_textures(values: np.ndarray, known: np.ndarray, most: int) -> np.ndarray:
    """The texture of each cell (int32, from 0); unknown cells get the texture of their surroundings.

    The values (float32) have about unit variance and zero mean, and must be finite at unknown cells, too.
    """
    sums = moments(values, known)
    survey = Survey(values, known, sums, unevenness(sums), most)
    totals = survey.on_blocks() if np.count_nonzero(survey.full) > 1 else sums[:1]
    return survey.on_cells(totals) if len(totals) > 1 else np.zeros(values.shape, np.int32)


@dataclass(frozen=True, eq=False)
class Survey:
    """A field, the moments of its blocks, and the unit of their differences."""

    values: np.ndarray
    known: np.ndarray
    sums: np.ndarray
    unevenness: float
    most: int

    @property
    def full(self) -> np.ndarray:
        """A mask of the blocks with nearly all of their cubes."""
        cubes = self.sums[..., 0, 0]
        return np.asarray(cubes >= max(0.75 * cubes.max(), 1))

    @property
    def block_size(self) -> int:
        """Cubes in a whole block."""
        return SIDE[self.values.ndim] ** self.values.ndim

    def total(self, blocks: np.ndarray) -> np.ndarray:
        """The moments of each texture, summed over the blocks with its label."""
        return np.stack([self.sums[blocks == name].sum(axis=0) for name in range(int(blocks.max(initial=0)) + 1)])

    def on_blocks(self) -> np.ndarray:
        """The moments of the textures found on blocks."""
        blocks, totals = self._exchanged(self._clusters())
        cubes = self.sums[..., 0, 0]
        meetings = Meetings.of(self.sums[..., 0, 1] / np.maximum(cubes, 1), cubes > 0, blocks, len(totals))
        room = self.most if self.values.size > LARGE else max(self.most, CANDIDATES)
        totals, names = self._merged(totals, meetings, room, of_cells=False)
        return self._thick(names[blocks]) if self.values.size > LARGE else self.total(names[blocks])

    def _thick(self, blocks: np.ndarray) -> np.ndarray:
        """The moments of textures over the interior blocks of each label; of all textures if none has enough of them."""
        from scipy.ndimage import generate_binary_structure, maximum_filter, minimum_filter

        count = int(blocks.max()) + 1
        near = generate_binary_structure(blocks.ndim, 1)
        lowest, highest = (over(blocks, footprint=near, mode="nearest") for over in (minimum_filter, maximum_filter))
        totals = self._padded(self.total(np.where(lowest == highest, blocks, -1)), count)
        large = totals[:, 0, 0] >= THINNEST * self.sums[..., 0, 0].sum()
        return totals[large] if large.any() else self.total(blocks)

    def _clusters(self) -> np.ndarray:
        """The moments of clusters of blocks with similar difference energies and similar level (Ward's method)."""
        from scipy.cluster.hierarchy import fcluster, linkage

        size = self.sums.shape[-1]
        full = self.sums[self.full]
        chosen = full[np.linspace(0, len(full) - 1, min(len(full), SAMPLE)).astype(int)]
        cubes = chosen[:, 0, 0]
        differences = sorted({1 + 2**axis for axis in range(self.values.ndim)} | {size - 1})   # along an axis, and of all
        features = [np.log(chosen[:, row, row] / cubes + 1e-12) for row in differences]
        level = chosen[:, 0, 1] / cubes
        features.append(level / max(float(level.std()), 1e-12))
        names = fcluster(linkage(np.stack(features, axis=1), "ward"), CLUSTERS, "maxclust") - 1
        return np.stack([chosen[names == name].sum(axis=0) for name in range(names.max() + 1)])

    def _exchanged(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The texture of each block after reassignment to the cheapest texture, and the moments of each texture."""
        shape = self.sums.shape[:-2]
        least = max(FEWEST_BLOCKS * self.sums[..., 0, 0].sum(), 4 * self.block_size)
        blocks = np.zeros(shape, np.int32)
        for _ in range(EXCHANGES):
            given, alone = Textures.of(totals).price_blocks(self.sums.reshape(-1, *self.sums.shape[-2:]))
            prices = (given / self.unevenness + alone).T.reshape(-1, *shape)
            blocks = _tied(prices, BLOCK_TIE)
            totals = self.total(blocks)
            large = totals[:, 0, 0] >= least
            if not large.all() and large.any():
                blocks = np.argmin(prices[np.flatnonzero(large)], axis=0).astype(np.int32)
                totals = self.total(blocks)
        return blocks, totals

    def _merged(self, totals: np.ndarray, meetings: Meetings, most: int, of_cells: bool) -> tuple[np.ndarray, np.ndarray]:
        """The moments of textures after merging the cheapest pairs, and the new label of each old texture.

        A texture must save its own description length. On blocks, different levels justify two textures. On cells, they do
        so only if values jump at the border, so a field with a slow gradient is one region.
        """
        names = np.arange(len(totals), dtype=np.int32)
        price = 0.5 * (self.sums.shape[-1] + 2) * np.log(max(self.sums[..., 0, 0].sum() / self.block_size, 2))
        face = BORDER / SIDE[self.values.ndim] ** (self.values.ndim - 1) if of_cells else BORDER
        while len(totals) > 1:
            first, second = np.triu_indices(len(totals), 1)
            apart = meetings.steps()[first, second] if of_cells else np.ones(len(first))
            gain = self._gain(totals, first, second, apart, WORTH if of_cells else 0.5 * WORTH)
            gain -= price + face * meetings.numbers[first, second]
            best = int(np.argmin(gain))
            if gain[best] > 0 and len(totals) <= most:
                break
            kept, gone = int(first[best]), int(second[best])
            names[names == gone] = kept
            names[names > gone] -= 1
            totals, meetings = _joined(totals, kept, gone), meetings.joined(kept, gone)
        return totals, names

    def _gain(
        self, totals: np.ndarray, first: np.ndarray, second: np.ndarray, apart: np.ndarray, worth: float
    ) -> np.ndarray:
        """Nats saved by two textures over one, for each pair; savings below `worth` per cell of the smaller count as 0.

        Savings by different levels count only for pairs that are `apart`, and once per block, because neighbours have
        nearly the same value. The totals are a sample and are scaled to the whole field.
        """
        one, both = self._costs(totals), self._costs(totals[first] + totals[second])
        given, alone = (pair - each[first] - each[second] for pair, each in zip(both, one, strict=True))
        smaller = np.minimum(totals[first, 0, 0], totals[second, 0, 0])
        share = totals[:, 0, 0].sum() / self.sums[..., 0, 0].sum()
        return np.asarray(((given >= worth * smaller) * given / self.unevenness + apart * alone / self.block_size) / share)

    def _costs(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cost in nats of all cubes of each texture given their corners, and of single values, up to a constant."""
        textures, cubes = Textures.of(totals), totals[:, 0, 0]
        return 0.5 * cubes * np.log(textures.variance), 0.5 * cubes * np.log(textures.spread)

    def on_cells(self, totals: np.ndarray) -> np.ndarray:
        """The texture of each cell."""
        labels = np.zeros(self.values.shape, np.int32)
        for _ in range(PASSES if self.values.size <= LARGE else 1):
            labels, totals = self._settled(totals)
            meetings = Meetings.of(self.values, self.known, labels, len(totals))
            totals, names = self._merged(totals, meetings, self.most, of_cells=True)
            labels = names[labels]
            if len(totals) == 1:
                break
        return labels

    def _settled(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The texture of each cell, and the moments of each texture on unmixed blocks, without thin and small textures."""
        while True:
            textures = Textures.of(totals)
            labels = np.concatenate([self._labels(textures, rows) for rows in rows_of(self.values.shape, SLAB)])
            alone, cautious = (self._alone(labels, len(totals), margin) for margin in (0, 1))
            cells = np.bincount(labels[self.known], minlength=len(totals))
            least = max(THINNEST * self.sums[..., 0, 0].sum(), 4 * self.block_size)
            large = (alone[:, 0, 0] >= least) & (cells >= SMALLEST * np.count_nonzero(self.known))
            if large.all() or len(totals) == 1:
                enough = cautious[:, 0, 0] >= np.maximum(0.2 * alone[:, 0, 0], 20 * self.block_size)
                return labels, np.where(enough[:, None, None], cautious, alone)
            totals = totals[large] if large.any() else np.delete(totals, int(np.argmin(cells)), axis=0)

    def _labels(self, textures: Textures, rows: slice) -> np.ndarray:
        """The texture of each cell in some rows of the first axis, computed with a halo of rows around them."""
        halo = ROUNDS[self.values.ndim] * (LISTENING[self.values.ndim] // 2) + 4
        start = max(rows.start - halo, 0)
        seen = slice(start, rows.stop + halo)
        labels = _listening(_opinions(textures, self.values[seen], self.known[seen]))
        return labels[rows.start - start : rows.stop - start]

    def _alone(self, labels: np.ndarray, count: int, margin: int) -> np.ndarray:
        """The moments of each texture on blocks without another texture inside or within the margin."""
        lowest = highest = labels
        side = SIDE[labels.ndim]
        for axis, length in enumerate(labels.shape):
            starts = np.arange(0, max(length - REACH[labels.ndim], 1), side)
            ends = np.minimum(starts + side + REACH[labels.ndim] + margin, length)
            pairs = np.stack([np.maximum(starts - margin, 0), ends], axis=1)
            lowest = _over(np.minimum, lowest, pairs, axis)
            highest = _over(np.maximum, highest, pairs, axis)
        return self._padded(self.total(np.where(lowest == highest, lowest, -1)), count)

    def _padded(self, totals: np.ndarray, count: int) -> np.ndarray:
        """The moments, padded with zeros for the last textures without blocks."""
        return np.concatenate([totals, np.zeros((count - len(totals), *totals.shape[1:]))])


@dataclass(frozen=True, eq=False)
class Meetings:
    """For each pair of textures, the number of cell faces between them and the sum of squared differences across these."""

    numbers: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, known: np.ndarray, labels: np.ndarray, count: int) -> Meetings:
        """The counts and sums over known cells."""
        numbers, squares = np.zeros((2, count * count))
        for axis in range(labels.ndim):
            along, value, here = (np.moveaxis(array, axis, 0) for array in (labels, values, known))
            both = here[:-1] & here[1:]
            pair = (along[:-1] * count + along[1:])[both]
            numbers += np.bincount(pair, minlength=count * count)
            squares += np.bincount(pair, np.square((value[1:] - value[:-1])[both]), minlength=count * count)
        return cls(*(table.reshape(count, count) + table.reshape(count, count).T for table in (numbers, squares)))

    def steps(self) -> np.ndarray:
        """The pairs whose differences are larger at their border than inside them, and the pairs that never meet."""
        squares, numbers = (np.add.outer(table.diagonal(), table.diagonal()) for table in (self.squares, self.numbers))
        usual = squares / np.maximum(numbers, 1)
        return np.asarray((self.squares > JUMP**2 * usual * self.numbers) | (self.numbers == 0))

    def joined(self, kept: int, gone: int) -> Meetings:
        """The table after texture `gone` was merged into `kept`."""
        return Meetings(*(_joined(_joined(table, kept, gone).T, kept, gone).T for table in (self.numbers, self.squares)))


def _opinions(textures: Textures, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The cost of each texture at each cell, in nats: the mean over the cubes that contain the cell, and its value."""
    prices = textures.price_cubes(values)
    np.minimum(prices, np.float32(0.5 * np.log(textures.variance.max()) + UNEXPLAINED), out=prices)
    prices -= prices.min(axis=0)
    np.minimum(prices, np.float32(SAY), out=prices)
    prices *= inside(known)
    alone = textures.price_values(values)
    alone -= alone.min(axis=0)
    np.minimum(alone, np.float32(VALUE_SAY), out=alone)
    alone *= known * np.float32(4.0**-values.ndim)   # one value per neighbourhood four cells wide
    reach = REACH[values.ndim]
    for against, price in zip(alone, prices, strict=True):
        against += _mean(np.pad(price, [(reach, 0)] * values.ndim), reach + 1)
    return np.asarray(alone)


def _listening(against: np.ndarray) -> np.ndarray:
    """The texture of each cell after mean-field iterations of a Potts model."""
    width = LISTENING[against.ndim - 1]
    best = np.argmin([_mean(each, width) for each in against], axis=0)
    belief = (np.arange(len(against)).reshape(-1, *[1] * best.ndim) == best).astype(np.float32)
    for _ in range(ROUNDS[best.ndim]):
        others = np.zeros(best.shape, np.float32)
        for each, opposed in zip(belief[:-1], against, strict=False):
            mean = _mean(each, width)
            others += mean
            each[...] = np.float32(CELL_TIE) * mean - opposed
        belief[-1] = np.float32(CELL_TIE) * (1 - others) - against[-1]   # beliefs sum to 1, and so do their means
        belief -= belief.max(axis=0)
        np.exp(belief, out=belief)
        belief /= belief.sum(axis=0)
    return np.argmax(belief, axis=0).astype(np.int32)


def _mean(values: np.ndarray, width: int) -> np.ndarray:
    """The mean over a cube of cells around each cell; an even width extends further up than down."""
    from scipy.ndimage import uniform_filter

    return np.asarray(uniform_filter(values, width, mode="nearest", origin=-(1 - width % 2)))


def _tied(prices: np.ndarray, tie: float, rounds: int = 3) -> np.ndarray:
    """The texture of each block by its cost and the textures of its neighbours (iterated conditional modes)."""
    names = np.arange(len(prices)).reshape(-1, *[1] * (prices.ndim - 1))
    labels = np.argmin(prices, axis=0)
    for _ in range(rounds):
        like = np.zeros(prices.shape)
        for axis in range(1, prices.ndim):
            near, here = np.moveaxis(labels == names, axis, 0), np.moveaxis(like, axis, 0)
            here[1:] += near[:-1]
            here[:-1] += near[1:]
        labels = np.argmin(prices - tie * like, axis=0)
    return labels.astype(np.int32)


def _joined(table: np.ndarray, kept: int, gone: int) -> np.ndarray:
    """The table after row `gone` was added to row `kept` and removed."""
    table = table.copy()
    table[kept] += table[gone]
    return np.delete(table, gone, axis=0)


def _over(operation: np.ufunc, array: np.ndarray, pairs: np.ndarray, axis: int) -> np.ndarray:
    """Minima or maxima along an axis, over each range from start to end."""
    padded = np.concatenate([array, array.take([-1], axis)], axis)   # reduceat needs indices below the length
    return np.asarray(operation.reduceat(padded, pairs.ravel(), axis).take(range(0, 2 * len(pairs), 2), axis))
