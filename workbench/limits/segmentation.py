"""Finding the textures of a field, and where each of them is.

First on blocks of some 64 cells: they are clustered, clusters exchange blocks until each is where it is cheapest, and two
clusters become one when a texture for both costs no more than one each. Then on cells: every cube speaks for its cells, and
cells listen to their neighbours, so that borders are found to about a cell. Blocks across a border seem to have a texture
of their own, which no cell prefers in the end; such textures are dropped, and the others fitted again where they are alone.

Values jump from region to region, so a cube across a border looks rough, whatever it is made of. What a cube may say
against a texture is therefore limited, and what no texture explains counts for none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.limits.texture import REACH, SIDE, Textures, inside, moments, unevenness

SAMPLE = 1000         # blocks that are clustered to begin with
CLUSTERS = 12         # of them
EXCHANGES = 4         # rounds in which clusters exchange blocks
FEWEST_BLOCKS = 0.005   # of all cubes: what a cluster must have
CANDIDATES = 8        # textures that go on to cells
BLOCK_TIE = 3.0       # nats that a block gains by a neighbour of the same texture
BORDER = 0.5          # nats for each face of a block between textures, to have both of them
CELL_TIE = 6.0        # nats that a cell gains when all of its neighbours have the same texture
SAY = 2.0             # the most that one cube may say against a texture, in nats
UNEXPLAINED = 3.0     # nats above the scale of the roughest texture, at which no texture explains a cube
VALUE_SAY = 12.0      # the most that the value at a cell may say
LISTENING = {1: 33, 2: 3, 3: 3, 4: 3}   # the width of the neighbourhood that a cell listens to
ROUNDS = {1: 8, 2: 8, 3: 2, 4: 2}       # of listening: in space it blunts the corners of regions
WORTH = 0.12          # nats that a texture must save for each cell: less has no use, and no field is a model that exactly
JUMP = 2.5            # times the usual difference of neighbours: what tells a step from a slope
THINNEST = 0.01       # of the field: what a texture must have in blocks that are all its own
SMALLEST = 0.01       # of the field: what a texture must have in cells
LARGE = 2**20         # cells: beyond it, blocks are many enough to find the textures, and cells are looked at once
PASSES = 3            # else
SLAB = 2**20          # cells that are looked at together


def find_textures(values: np.ndarray, known: np.ndarray, most: int) -> np.ndarray:
    """The texture of each cell (int32, from 0): cells that are not known have that of their surroundings.

    The values (float32) have about unit variance and zero mean; where they are not known, they are finite all the same.
    """
    sums = moments(values, known)
    survey = Survey(values, known, sums, unevenness(sums), most)
    totals = survey.on_blocks() if np.count_nonzero(survey.full) > 1 else sums[:1]
    return survey.on_cells(totals) if len(totals) > 1 else np.zeros(values.shape, np.int32)


@dataclass(frozen=True, eq=False)
class Survey:
    """A field, the moments of its blocks, and in what unit their differences count."""

    values: np.ndarray
    known: np.ndarray
    sums: np.ndarray
    unevenness: float
    most: int

    @property
    def full(self) -> np.ndarray:
        """Which blocks have nearly all of their cubes."""
        cubes = self.sums[..., 0, 0]
        return np.asarray(cubes >= max(0.75 * cubes.max(), 1))

    @property
    def block_size(self) -> int:
        """Cubes in a whole block."""
        return SIDE[self.values.ndim] ** self.values.ndim

    def total(self, blocks: np.ndarray) -> np.ndarray:
        """The moments of each texture, of the blocks that are labelled with it."""
        return np.stack([self.sums[blocks == name].sum(axis=0) for name in range(int(blocks.max(initial=0)) + 1)])

    def on_blocks(self) -> np.ndarray:
        """The moments of the textures that blocks have."""
        blocks, totals = self._exchanged(self._clusters())
        cubes = self.sums[..., 0, 0]
        meetings = Meetings.of(self.sums[..., 0, 1] / np.maximum(cubes, 1), cubes > 0, blocks, len(totals))
        room = self.most if self.values.size > LARGE else max(self.most, CANDIDATES)
        totals, names = self._merged(totals, meetings, room, of_cells=False)
        return self._thick(names[blocks]) if self.values.size > LARGE else self.total(names[blocks])

    def _thick(self, blocks: np.ndarray) -> np.ndarray:
        """The moments of the textures that fill blocks with all their neighbours, there; of all when none does."""
        from scipy.ndimage import generate_binary_structure, maximum_filter, minimum_filter

        count = int(blocks.max()) + 1
        near = generate_binary_structure(blocks.ndim, 1)
        lowest, highest = (over(blocks, footprint=near, mode="nearest") for over in (minimum_filter, maximum_filter))
        totals = self._padded(self.total(np.where(lowest == highest, blocks, -1)), count)
        large = totals[:, 0, 0] >= THINNEST * self.sums[..., 0, 0].sum()
        return totals[large] if large.any() else self.total(blocks)

    def _clusters(self) -> np.ndarray:
        """The moments of clusters of blocks that are alike in the energies of their differences and in level."""
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
        """The texture of each block, when blocks have gone where they are cheapest, and the moments of each texture."""
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
        """Moments of textures when the cheapest pairs have become one, and the new name of each.

        A texture of its own must save what it costs to state it. Different levels are a reason to have two; once cells are
        known to meet, only where values step from one to the other: a field that rises slowly is one region.
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
        """Nats that two textures of their own save, for each pair; less than `worth` for a cell of the smaller is nothing.

        What their levels save counts when they are apart, once for each block, since neighbours have nearly the same value.
        The totals are a sample of the field, and speak for all of it.
        """
        one, both = self._costs(totals), self._costs(totals[first] + totals[second])
        given, alone = (pair - each[first] - each[second] for pair, each in zip(both, one, strict=True))
        smaller = np.minimum(totals[first, 0, 0], totals[second, 0, 0])
        share = totals[:, 0, 0].sum() / self.sums[..., 0, 0].sum()
        return np.asarray(((given >= worth * smaller) * given / self.unevenness + apart * alone / self.block_size) / share)

    def _costs(self, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nats for all cubes of each texture, given their corners, and for the values by themselves; up to a constant."""
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
        """The texture of each cell, and the moments of each texture where it is alone; thin and small ones are dropped."""
        while True:
            textures = Textures.of(totals)
            labels = np.concatenate([self._labels(textures, rows) for rows in _slabs(self.values.shape)])
            alone, cautious = (self._alone(labels, len(totals), margin) for margin in (0, 1))
            cells = np.bincount(labels[self.known], minlength=len(totals))
            least = max(THINNEST * self.sums[..., 0, 0].sum(), 4 * self.block_size)
            large = (alone[:, 0, 0] >= least) & (cells >= SMALLEST * np.count_nonzero(self.known))
            if large.all() or len(totals) == 1:
                enough = cautious[:, 0, 0] >= np.maximum(0.2 * alone[:, 0, 0], 20 * self.block_size)
                return labels, np.where(enough[:, None, None], cautious, alone)
            totals = totals[large] if large.any() else np.delete(totals, int(np.argmin(cells)), axis=0)

    def _labels(self, textures: Textures, rows: slice) -> np.ndarray:
        """The texture of each cell of some rows of the first axis, with a view of those around them."""
        halo = ROUNDS[self.values.ndim] * (LISTENING[self.values.ndim] // 2) + 4
        start = max(rows.start - halo, 0)
        seen = slice(start, rows.stop + halo)
        labels = _listening(_opinions(textures, self.values[seen], self.known[seen]))
        return labels[rows.start - start : rows.stop - start]

    def _alone(self, labels: np.ndarray, count: int, margin: int) -> np.ndarray:
        """The moments of each texture, of the blocks that have no other in them, nor as near as the margin."""
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
        """As many moments as there are textures: none for the last ones that have no block."""
        return np.concatenate([totals, np.zeros((count - len(totals), *totals.shape[1:]))])


@dataclass(frozen=True, eq=False)
class Meetings:
    """For each two textures, at how many faces their cells meet, and the sum of the squared differences there."""

    numbers: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, known: np.ndarray, labels: np.ndarray, count: int) -> Meetings:
        """Those of known cells."""
        numbers, squares = np.zeros((2, count * count))
        for axis in range(labels.ndim):
            along, value, here = (np.moveaxis(array, axis, 0) for array in (labels, values, known))
            both = here[:-1] & here[1:]
            pair = (along[:-1] * count + along[1:])[both]
            numbers += np.bincount(pair, minlength=count * count)
            squares += np.bincount(pair, np.square((value[1:] - value[:-1])[both]), minlength=count * count)
        return cls(*(table.reshape(count, count) + table.reshape(count, count).T for table in (numbers, squares)))

    def steps(self) -> np.ndarray:
        """Which pairs have larger differences where they meet than within themselves, or never meet."""
        squares, numbers = (np.add.outer(table.diagonal(), table.diagonal()) for table in (self.squares, self.numbers))
        usual = squares / np.maximum(numbers, 1)
        return np.asarray((self.squares > JUMP**2 * usual * self.numbers) | (self.numbers == 0))

    def joined(self, kept: int, gone: int) -> Meetings:
        """When one texture has become a part of another."""
        return Meetings(*(_joined(_joined(table, kept, gone).T, kept, gone).T for table in (self.numbers, self.squares)))


def _opinions(textures: Textures, values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What speaks against each texture at each cell, in nats: the mean of the cubes that the cell is in, and its value."""
    prices = textures.price_cubes(values)
    np.minimum(prices, np.float32(0.5 * np.log(textures.variance.max()) + UNEXPLAINED), out=prices)
    prices -= prices.min(axis=0)
    np.minimum(prices, np.float32(SAY), out=prices)
    prices *= inside(known)
    alone = textures.price_values(values)
    alone -= alone.min(axis=0)
    np.minimum(alone, np.float32(VALUE_SAY), out=alone)
    alone *= known * np.float32(4.0**-values.ndim)   # one value in a neighbourhood that is four cells wide
    reach = REACH[values.ndim]
    for against, price in zip(alone, prices, strict=True):
        against += _mean(np.pad(price, [(reach, 0)] * values.ndim), reach + 1)
    return np.asarray(alone)


def _listening(against: np.ndarray) -> np.ndarray:
    """The texture of each cell, when all have listened to the beliefs of their neighbours for some rounds."""
    width = LISTENING[against.ndim - 1]
    best = np.argmin([_mean(each, width) for each in against], axis=0)
    belief = (np.arange(len(against)).reshape(-1, *[1] * best.ndim) == best).astype(np.float32)
    for _ in range(ROUNDS[best.ndim]):
        others = np.zeros(best.shape, np.float32)
        for each, opposed in zip(belief[:-1], against, strict=False):
            mean = _mean(each, width)
            others += mean
            each[...] = np.float32(CELL_TIE) * mean - opposed
        belief[-1] = np.float32(CELL_TIE) * (1 - others) - against[-1]   # beliefs add up to 1, and so do their means
        belief -= belief.max(axis=0)
        np.exp(belief, out=belief)
        belief /= belief.sum(axis=0)
    return np.argmax(belief, axis=0).astype(np.int32)


def _mean(values: np.ndarray, width: int) -> np.ndarray:
    """The mean over a cube of cells around each; a width that is even reaches further up than down."""
    from scipy.ndimage import uniform_filter

    return np.asarray(uniform_filter(values, width, mode="nearest", origin=-(1 - width % 2)))


def _tied(prices: np.ndarray, tie: float, rounds: int = 3) -> np.ndarray:
    """The texture of each block, by its price and by the textures of its neighbours."""
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
    """A table in which one row has been added to another."""
    table = table.copy()
    table[kept] += table[gone]
    return np.delete(table, gone, axis=0)


def _over(operation: np.ufunc, array: np.ndarray, pairs: np.ndarray, axis: int) -> np.ndarray:
    """Minima or maxima along an axis, between the starts and ends of the pairs."""
    padded = np.concatenate([array, array.take([-1], axis)], axis)   # so that an end may be the end
    return np.asarray(operation.reduceat(padded, pairs.ravel(), axis).take(range(0, 2 * len(pairs), 2), axis))


def _slabs(shape: tuple[int, ...]) -> list[slice]:
    """Rows of the first axis that are looked at together."""
    rows = max(1, SLAB // max(1, int(np.prod(shape[1:]))))
    return [slice(start, min(start + rows, shape[0])) for start in range(0, shape[0], rows)]
