"""Public calls whose results must be the same bits on both machines, on random, clustered and adversarial input.

A case gets its arrays through a function that moves them to the machine that computes, and returns named results. Inputs
are uniform random numbers and sums of them: no function whose last bit depends on the version of NumPy or on the processor.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import workbench as wb
from gpu_check.elsewhere import launched_on
from workbench import backend
from workbench.archive.statistics.stencils import Operation, apply_stencil
from workbench.backend import Array
from workbench.clusters.alike import Doubt, parts_of
from workbench.clusters.discord import discords
from workbench.clusters.keep.edits import apply_edits
from workbench.clusters.sorted_cells import SortedCells
from workbench.codecs import Tolerance
from workbench.codecs.crc import _crc_in_pieces, crc32_of_blocks
from workbench.codecs.earlier import Earlier
from workbench.codecs.entropy import even_blocks, slots_of, words_of
from workbench.codecs.gaps import filled, repeated
from workbench.codecs.interpolation_training import _jobs, _lessons
from workbench.codecs.mask import pack_mask, unpack_mask
from workbench.codecs.motion import Motion
from workbench.codecs.scaled import pack_scaled, unpack_scaled
from workbench.codecs.scales import GAP, Layout
from workbench.codecs.staged_blocks import CodedBlocks, Fact, Grid, Lattice, encode_blocks
from workbench.codecs.staged_statistics import first_wrong
from workbench.codecs.staged_stream import Stream
from workbench.data.extent import inside
from workbench.data.synthetic import adversarial
from workbench.guarantees import Limit, check
from workbench.guarantees.correction import apply_correction
from workbench.guarantees.sections import EDIT, PIN
from workbench.ordering import run_starts, sort_by_key
from workbench.propagation.caches.packed_blocks import PACKED_BLOCK, PackedBlocks
from workbench.propagation.protection import protected_convolve, protected_matmul
from workbench.propagation.protection.matrices import column_sums
from workbench.subdomains.decomposition import Decomposition

Move = Callable[[np.ndarray], Array]
Named = Iterable[tuple[str, Any]]
VARIANTS = tuple(itertools.product((2, 3), (np.float32, np.float64)))
BYTES = "bytes"   # results whose name begins so depend on the versions of other packages, too


@dataclass(frozen=True)
class Case:
    """A name, and a function of the way to the machine and of the number of particles."""

    name: str
    run: Callable[[Move, int], Named]


def all_cases() -> list[Case]:
    """Every case, the quick and basic ones first."""
    return [Case(name, run) for name, run in _cases()]


def _cases() -> Iterator[tuple[str, Callable[[Move, int], Named]]]:
    yield "sorting", _sorting
    yield "sorting by digits", _sorting_by_digits
    for dimensions, dtype in VARIANTS:
        kind = f"{dimensions}-D {np.dtype(dtype).name}"
        for name, make in (("uniform", uniform), ("clustered", clustered), ("on a lattice", on_a_lattice)):
            yield f"groups, {name}, {kind}", _on(_groups, make, dimensions, dtype)
        yield f"groups, adversarial, {kind}", _on(_hard_groups, dimensions, dtype)
        yield f"extent, {kind}", _on(_extent, dimensions, dtype)
        yield f"mesh, {kind}", _on(_mesh, dimensions, dtype)
        yield f"subdomains, {kind}", _on(_divide, dimensions, dtype)
        coders = itertools.product(("free", "keep"), ("packed", "context", "pcodec", "auto"))
        for order, coder in (*coders, ("free", "counts")):
            yield f"lattice codec, {order} {coder}, {kind}", _on(_codec, order, coder, dimensions, dtype)
        yield f"regions of the curve, {kind}", _on(_regions, dimensions, dtype)
        yield f"bounds, {kind}", _on(_bounds, dimensions, dtype)
        for solver in ("auto", "pgd", "refine"):
            yield f"kept clusters, {solver}, {kind}", _on(_kept, solver, dimensions, dtype)
        yield f"label conflicts, {kind}", _on(_conflicts, dimensions, dtype)
        yield f"crowds, {kind}", _on(_crowds, dimensions, dtype)
        yield f"archives, {kind}", _on(_archives, dimensions, dtype)
        yield f"neighbours, {kind}", _on(_neighbours, dimensions, dtype)
        yield f"motion, {kind}", _on(_motion, dimensions, dtype)
    for dtype in (np.float32, np.float64):
        yield f"k-means, {np.dtype(dtype).name}", _on(_kmeans, dtype)
        yield f"checksums, {np.dtype(dtype).name}", _on(_checksums, dtype)
        yield f"molecules, {np.dtype(dtype).name}", _on(_molecules, dtype)
        yield f"fields, {np.dtype(dtype).name}", _on(_fields, dtype)
    yield "symbols", _symbols
    yield "scaled numbers", _scaled
    yield "CRC", _crc
    yield "masks", _masks
    yield "staged blocks", _staged
    yield "sums of staged blocks", _sums_of_blocks
    yield "packed caches", _packed_caches
    yield "stencils", _stencils
    yield "gaps", _gaps
    yield "imitations of codecs", _imitations


def _on(run: Callable[..., Named], *given: Any) -> Callable[[Move, int], Named]:
    return lambda move, count: run(move, count, *given)


# Inputs.

def numbers(seed: int) -> np.random.Generator:
    """Counter-based random numbers: the same on every machine."""
    return np.random.Generator(np.random.Philox(seed))


def uniform(count: int, dimensions: int) -> np.ndarray:
    """Points all over the unit box."""
    return numbers(1).random((count, dimensions))


def clustered(count: int, dimensions: int) -> np.ndarray:
    """Clumps of many sizes, some through the faces of the unit box, in no particular order."""
    random = numbers(2)
    clumps = max(count // 150, 2)
    centres, radii = random.random((clumps, dimensions)), 0.03 * random.random(clumps) ** 3 + 1e-4
    of = random.integers(0, clumps, count)
    offsets = random.random((4, count, dimensions)).sum(axis=0) - 2   # nearly normal
    points = (centres[of] + radii[of, None] * offsets) % 1.0
    return np.where(points < 1, points, 0.0)


def on_a_lattice(count: int, dimensions: int) -> np.ndarray:
    """Points whose distances tie with the linking length: one wrong rounding changes groups."""
    return np.floor(uniform(count, dimensions) * 128) / 128


def typed(points: np.ndarray, dtype: Any) -> np.ndarray:
    """Points of the unit box in this type, still inside."""
    found = points.astype(dtype)
    found[found >= 1] = 0
    return found


# What is computed.

def _sorting(move: Move, count: int) -> Named:
    for bits in (0, 3, 11, 12, 33, 44, 64):
        key = move(numbers(bits).integers(0, 2**bits - 1, size=count, dtype=np.uint64, endpoint=True))
        yield f"order of {bits} bits", sort_by_key(key, bits)
        yield f"keys of {bits} bits", key
        yield f"runs of {bits} bits", run_starts(key, bits // 2)


def _sorting_by_digits(move: Move, count: int) -> Named:
    """The passes of the CPU's sort, which a GPU leaves to CuPy: so that every kernel is compared."""
    digits, chunks = 256, 7
    key, value = move(numbers(5).integers(0, 2**40, count, np.uint64)), move(np.arange(count, dtype=np.int32))
    xp = backend.namespace(key)
    counts = xp.empty(digits * chunks, xp.int64)
    backend.kernel("ordering", "count_digits")(chunks, count, key, 8, digits, counts)
    first, out = xp.cumsum(counts) - counts, (xp.empty_like(key), xp.empty_like(value))
    backend.kernel("ordering", "place_by_digit")(chunks, count, key, value, 8, digits, first, *out)
    yield from zip(("counts", "keys", "values"), (counts, *out), strict=True)
    words, places = xp.empty_like(key), xp.empty_like(value)
    place = backend.kernel("ordering", "place_words")
    place(chunks, count, key, 24, 1, 0, 8 + 24, digits, first, words, places[:0])
    backend.kernel("ordering", "count_digits")(chunks, count, words, 16 + 24, digits, counts)
    place(chunks, count, words, 24, 0, 1, 16 + 24, digits, xp.cumsum(counts) - counts, out[0], places)
    yield from (("words", words), ("keys of words", out[0]), ("places", places))


def _groups(move: Move, count: int, make: Callable[[int, int], np.ndarray], dimensions: int, dtype: Any) -> Named:
    positions = typed(make(count, dimensions), dtype)
    spacing = count ** (-1 / dimensions)
    for box, length in itertools.product((None, 1.0), (1 / 128, 0.2 * spacing, 0.7 * spacing)):
        groups = wb.friends_of_friends(wb.Particles(move(positions), box), length, unit="length")
        yield f"labels, box {box}, {length:.4g}", groups.labels
        yield f"sizes, box {box}, {length:.4g}", groups.sizes


def _hard_groups(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    for name, (particles, length) in adversarial.cases(dimensions, dtype, crowd=count).items():
        moved = wb.Particles(move(particles.positions), particles.box)
        yield name, wb.friends_of_friends(moved, length, unit="length").labels


def _extent(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    particles = wb.Particles(move(typed(uniform(count, dimensions), dtype) - dtype(0.5)))
    yield "ends", np.array([particles.lower, particles.upper])
    cuboids = [([-0.3] * dimensions, [0.2] * dimensions), ([0.4] * dimensions, [9.0] * dimensions)]
    yield "inside", inside(particles.positions, cuboids)


def _mesh(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    cells, shape = 16, (16,) * dimensions
    positions = move(np.minimum(uniform(count, dimensions) * cells, cells - 0.01).astype(dtype))
    mass = move(np.zeros(shape, np.int64))
    backend.kernel("mesh", "deposit", dtype, dimensions)(count, cells, positions, mass)
    yield "mass", mass
    potential, momenta = (move(numbers(3).random(of).astype(dtype)) for of in (shape, (count, dimensions)))
    backend.kernel("mesh", "kick_and_drift", dtype, dimensions)(count, cells, potential, 0.3, 1.7, positions, momenta)
    yield from (("positions", positions), ("momenta", momenta))


def _divide(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    positions = typed(clustered(count, dimensions), dtype)
    cut = Decomposition.of(positions, 7, (1.0,) * dimensions)
    lower, upper = cut.faces
    tree = {name: move(array) for name, array in cut._tree.items()}
    given = {"low": move(lower + 0.02), "high": move(upper - 0.02), "position": move(positions)}
    owner, near = move(np.zeros(count, np.int32)), move(np.zeros(count, np.uint8))
    backend.kernel("division", "divide", dtype, dimensions)(count, tree, given, cuts=len(cut.cuts), owner=owner, near=near)
    yield from (("owners", owner), ("near faces", near))
    copied, to = cut.ghosts(positions, 0.02)
    sent = {"owner": owner, "copied": move(copied.astype(np.int32)), "to": move(to)}
    walks, parts = 5, cut.parts
    given = {"n": count, "parts": parts, "copies": len(to), **sent}
    owned, counts = move(np.zeros((walks, parts), np.int64)), move(np.zeros((walks, parts), np.int64))
    backend.kernel("division", "count_sent", dtype, dimensions)(walks, given, owned=owned, sent=counts)
    ends = np.cumsum(backend.to_host(counts).T).reshape(parts, walks).T
    free = move(np.ascontiguousarray(ends - backend.to_host(counts)))
    row, packed = move(np.zeros(count + len(to), np.int32)), move(np.zeros((count + len(to), dimensions), dtype))
    pack = backend.kernel("division", "pack", dtype, dimensions)
    pack(walks, given, position=move(positions), next=free, row=row, packed=packed)
    yield from (("owned", owned), ("sent", counts), ("rows by subdomain", row), ("positions by subdomain", packed))


def _codec(move: Move, count: int, order: str, coder: str, dimensions: int, dtype: Any) -> Named:
    positions = move(typed(clustered(count, dimensions), dtype))
    xp = backend.namespace(positions)
    for tolerance in (1e-3, 1e-6 if dtype == np.float32 else 1e-11):
        codec = wb.codecs.get("lattice", order=order, coder=coder, block=256)
        data = codec.encode(positions, Tolerance(absolute=tolerance))
        yield f"{BYTES} at {tolerance:g}", data
        yield f"decoded at {tolerance:g}", codec.decode(data, positions.shape, positions.dtype, xp)


def _molecules(move: Move, count: int, dtype: Any) -> Named:
    steps = numbers(31).random((count, 3)) - 0.5
    steps /= 10 * np.sqrt((steps**2).sum(axis=1, keepdims=True))
    steps[::24] *= 20
    positions = move(typed(np.mod(np.cumsum(steps, axis=0), 5.0), dtype))
    for box in (None, (5.0,) * 3):
        codec = wb.codecs.get("lattice", order="keep", coder="molecules", box=box)
        data = codec.encode(positions, Tolerance(absolute=5e-4))
        yield f"{BYTES}, {box}", data
        yield f"decoded, {box}", codec.decode(data, positions.shape, positions.dtype, backend.namespace(positions))


def _regions(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    bits = 8 * dimensions
    first = np.sort(numbers(6).integers(0, 2**bits, min(count, 2000), np.uint64))
    final = np.append(first[1:], np.uint64(2**bits - 1))
    corners = np.array([2**bits // 5, 2**bits // 2], np.uint64)
    reaches = move(np.zeros(len(first), np.uint8))
    kernel = backend.kernel("lattice", "reaches_box", dtype, dimensions)
    kernel(len(first), move(first), move(final), move(corners), bits, reaches)
    yield "reached", reaches


def _bounds(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    original = uniform(count, dimensions)
    decoded = typed((original + 4e-4 * (numbers(7).random(original.shape) - 0.5)) % 1.0, dtype)
    there = move(typed(original, dtype)), move(decoded)
    limits = Limit("absolute", 1e-4), Limit("relative", 1e-3), Limit("absolute", 0.0)
    for limit, period in itertools.product(limits, (None, (1.0,) * dimensions)):
        found = check(*there, limit, period)
        yield f"broken, {limit.kind} {limit.value:g}, {period}", found.broken
        yield f"largest error, {limit.kind} {limit.value:g}, {period}", np.float64(found.largest_error)


def _torn(count: int, dimensions: int, dtype: Any) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Clumps, what a codec made of them, its bound, and a linking length at which that tears and joins many."""
    random, length = numbers(dimensions), 0.25 * count ** (-1 / dimensions)
    centres = random.random((max(count // 12, 2), dimensions))
    offsets = 0.02 * (random.random((4, count, dimensions)).sum(axis=0) - 2)
    points = (centres[random.integers(0, len(centres), count)] + offsets) % 1.0
    original = typed(points[np.lexsort(np.floor(points * 20).T)], dtype)   # beside each other in the file, as on a curve
    noise = 0.9 * 0.2 * length * (2 * random.random(original.shape) - 1)
    return original, typed((original.astype(np.float64) + noise) % 1.0, dtype), 0.2 * length, length


def _kept(move: Move, count: int, solver: Any, dimensions: int, dtype: Any) -> Named:
    original, decoded, bound, length = _torn(min(count, 4000), dimensions, dtype)
    before, after = (wb.Particles(move(points), 1.0) for points in (original, decoded))
    kept = wb.clusters.correct(before, after, bound, (0.7 * length, length), "length", 1, solver)
    for name, array in (("positions", kept.positions), ("index", kept.index), ("rank", kept.rank)):
        yield name, array
    for name, section in sorted(kept.sections().items()):
        yield f"{BYTES} of {name}", section
    moved = apply_edits(after.positions, kept.sections().get(EDIT, b""))
    yield f"{BYTES} applied", apply_correction(moved, kept.sections().get(PIN, b""))
    if solver == "auto":
        links = wb.clusters.broken_links(before, after, kept.groups[-1])
        yield from (("missing links", links.missing), ("false links", links.false))


def _conflicts(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    """Labels that alternate in one clump: more pairs than there is room for at first."""
    points = 0.5 + 0.02 * (uniform(count, dimensions) - 0.5)
    cells = SortedCells.of(wb.Particles(move(typed(points, dtype)), 1.0), 0.02)
    labels = move((np.arange(count) % 2).astype(np.int32))
    yield "between two labels", discords(cells, labels, 0.02)
    found = parts_of(cells, labels, 0.02, 0.02)
    yield from (("parts", found.part), ("between parts", found.unlike))
    moved, settled = np.arange(count) % 7 == 0, np.ones(count, np.uint8)
    settled[:2] = 0
    again = parts_of(cells, labels, 0.02, 0.02, doubt=Doubt(move(moved.astype(np.uint8)), move(settled)))
    yield from (("parts again", again.part), ("between parts again", again.unlike))


def _crowds(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    """Two labels, each on its side of a clump within one cell: too many pairs to compare one by one."""
    points = typed(0.5 + 0.001 * (uniform(max(count, 1000), dimensions) - 0.5), dtype)
    cells = SortedCells.of(wb.Particles(move(points), 1.0), 0.02)
    labels = move((points[:, 0] > 0.5).astype(np.int32))
    found = discords(cells, labels, 0.02), parts_of(cells, labels, 0.02, 0.02)
    yield from (("of another label", found[0]), ("between parts", found[1].unlike))


def _archives(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    positions = typed(clustered(count, dimensions), dtype)
    velocities = move((uniform(count, dimensions) - 0.5).astype(dtype))
    given = wb.Particles(move(positions), 1.0, velocities, move(np.arange(count)))
    for order in ("keep", "free"):
        store = wb.compress(given, wb.Absolute(1e-4), order=order, chunk_values=max(count, 8)).store
        yield f"{BYTES}, order {order}", b"".join(store.read(key) for key in sorted(store.keys()))


def _kmeans(move: Move, count: int, dtype: Any) -> Named:
    points = move((uniform(count, 5) + np.floor(4 * uniform(count, 1))).astype(dtype))
    for protect in (False, True):
        found = wb.clusters.kmeans(points, 12, seed=3, max_iterations=6, protect=protect)
        yield from ((f"labels, protected: {protect}", found.labels), (f"centres, protected: {protect}", found.centres))
    flips = wb.clusters.ProductFlips([1, count // 2], [0, 3], [20, 21])
    struck = wb.clusters.kmeans(points, 12, seed=3, max_iterations=3, protect=True, faults=lambda i: [flips] * (i == 1))
    yield "labels after faults", struck.labels


def _crc(move: Move, count: int) -> Named:
    """Checksums of a whole array and of blocks; through the kernel on a CPU, too."""
    data = move(numbers(12).integers(0, 256, 37 * count + 5, np.uint8))
    yield "of all", np.uint32(_crc_in_pieces(data))
    first = move(np.arange(0, len(data), 29))
    yield "of blocks", crc32_of_blocks([(data[: int(first[-1])], first)], move(np.arange(len(first) - 1)[::-1].copy()))


def _checksums(move: Move, count: int, dtype: Any) -> Named:
    rows = max(min(count // 20, 400), 8)
    field, stencil = numbers(8).random((rows, 50)).astype(dtype), numbers(9).random((3, 5)).astype(dtype)
    for edges in ("valid", "zero", "periodic"):
        yield f"convolution, {edges}", protected_convolve(move(field), move(stencil), edges)[0]
    there, weights = move(field), move(stencil)
    clean = protected_convolve(there, weights, "valid")[0]
    yield "corrected convolution", protected_convolve(there, weights, "valid", correlate=lambda *_: _struck(clean[None]))[0]
    for number, sums in enumerate(column_sums(there)):
        yield f"column sums {number}", sums
    whole = np.floor(16 * field)   # products and sums of small whole numbers are exact in any order
    product, findings = protected_matmul(move(whole.T.copy()), move(whole), product=_faulty)
    yield from (("corrected product", product), ("corrected values", np.int64(findings.corrected)))


def _fields(move: Move, count: int, dtype: Any) -> Named:
    """The codec for fields, whose arrays are on the host; its fits depend on the version of NumPy, as bytes do."""
    side = min(max(round(count ** (1 / 3)), 24), 40)   # enough that weights are fitted
    steps = numbers(13).random((side, side + 1, side - 3)) - 0.5
    field = move(steps.cumsum(axis=0).cumsum(axis=1).cumsum(axis=2).astype(dtype))
    values, codec, bound = backend.to_host(field), wb.codecs.get("interpolation"), 1.0   # no lattice is smaller
    with launched_on(backend.namespace(field)):
        data = codec.encode(values, Tolerance(absolute=bound))
        yield f"{BYTES} of fields", data
        yield f"{BYTES} decoded", codec.decode(data, values.shape, values.dtype)
        job = _jobs([values], [bound], relative=False)[0]
        lessons = _lessons(job, job.encoded(None), 1, np.random.default_rng(14))
    yield from ((f"{BYTES} of lessons", lessons.seen), (f"{BYTES} of offsets", lessons.offset))


def _staged(move: Move, count: int) -> Named:
    """Blocks of lattice numbers of 32 and of 64 bits, of which some cells do not count, in all stages of decoding."""
    side = min(max(round(count ** (1 / 3)), 10), 70)
    steps = (numbers(15).random((side, side + 1, side - 3)) - 0.5).cumsum(axis=0).cumsum(axis=1)
    valid = move(numbers(16).random(steps.shape) < 0.9)
    for (dtype, step), logs in itertools.product(((np.float32, 1e-2), (np.float64, 1e-9)), ((3, 3, 3), (4, 4, 4))):
        field, kind = move(steps.astype(dtype)), f"staged {np.dtype(dtype).name}"
        grid = Grid.of(field.shape, logs)
        kind += ", large" if grid.large else ""
        lattice = Lattice.between(step, float(steps.min()), float(steps.max()), exact=not grid.large)
        facts, first, coded = encode_blocks(field, valid, grid, lattice)
        blocks = CodedBlocks(grid, lattice, facts[0].copy(), first, coded)
        yield from ((f"{kind}, facts", facts), (f"{kind}, bytes", coded), (f"{kind}, starts", first))
        yield f"{kind}, values", blocks.values(grid.whole, np.dtype(dtype))
        numbers_of_all = blocks.numbers(grid.whole)
        yield f"{kind}, numbers", numbers_of_all
        if not lattice.wide:
            lowest = int(numbers_of_all.min()) - lattice.offset
            span = int(numbers_of_all.max()) - lattice.offset - lowest + 1
            yield f"{kind}, counts", blocks.counted(np.arange(grid.blocks), valid, lowest, span)
        if not grid.large:
            names = (f"{kind}, differences", f"{kind}, axes")
            yield from zip(names, blocks.differences(np.arange(grid.blocks)), strict=True)


def _sums_of_blocks(move: Move, count: int) -> Named:
    """The check of the sums beside blocks, of which one is wrong, with numbers that values tell and with given ones."""
    side = min(max(round(count ** (1 / 3)), 10), 70)
    field = (numbers(15).random((side, side + 1, side - 3)) - 0.5).cumsum(axis=0).cumsum(axis=1)
    for dtype, tolerance in ((np.float32, 1e-2), (np.float64, 1e-9)):
        codec, values = wb.codecs.get("staged"), move(field.astype(dtype))
        stream = Stream.from_bytes(codec.encode(values, Tolerance(absolute=tolerance)), values.shape, values.dtype)
        decoded = stream.values(stream.grid.whole, values.dtype, backend.namespace(values)).reshape(values.shape)
        valid = move(np.ones(values.shape, bool))
        for sound in (valid, move(np.arange(values.size).reshape(values.shape) != 7)):
            whole = first_wrong(stream, decoded, valid, sound)
            facts = stream.facts.copy()
            facts[Fact.SUM, -1] += 1
            spoiled = first_wrong(replace(stream, facts=facts), decoded, valid, sound)
            found = [-1 if block is None else block for block in (whole, spoiled)]
            yield f"wrong blocks, {np.dtype(dtype).name}, {'all' if sound is valid else 'some'} sound", np.array(found)


def _neighbours(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    """Velocities beside positions, whose arrays are on the host; their bytes depend on the version of zlib."""
    positions = typed(clustered(count, dimensions), dtype)
    velocities = np.column_stack([positions**2 + 0.01 * numbers(23).random(count)[:, None], positions[:, :1]])
    codec = wb.codecs.get("neighbours").beside(positions)
    with launched_on(backend.namespace(move(positions))):
        data = codec.encode(velocities, Tolerance(absolute=1e-4))
        yield f"{BYTES} of velocities", data
        yield "decoded velocities", codec.decode(data, velocities.shape, velocities.dtype)


def _motion(move: Move, count: int, dimensions: int, dtype: Any) -> Named:
    """Particles that move through a box, one step after two others and a few steps together; all arrays are on the host."""
    start, speed = clustered(count, dimensions), 0.01 * numbers(27).normal(size=(count, dimensions))
    frames = np.array([typed((start + step * speed + 1e-4 * step**2) % 1, dtype) for step in range(4)])
    frames[frames >= 1] = 0
    after = Earlier((frames[2], frames[1]), (2.0, 1.0, 0.0), typed(speed, dtype))
    with launched_on(backend.namespace(move(frames))):
        for name, codec, values in (
            ("a step", Motion((1.0,) * dimensions).following(after), frames[3]), ("frames", Motion(), frames)
        ):
            data = codec.encode(np.ascontiguousarray(values), Tolerance(absolute=1e-3))
            yield f"{BYTES} of {name}", data
            yield f"decoded {name}", codec.decode(data, values.shape, values.dtype)


def _scaled(move: Move, count: int) -> Named:
    """Numbers of rows and columns of many scales, some missing, whose arrays are on the host."""
    given = numbers(24).integers(-(2**40), 2**40, (max(count // 64, 4), 64)) >> numbers(25).integers(0, 41, (1, 64))
    given[numbers(26).random(given.shape) < 0.1] = GAP
    with launched_on(backend.namespace(move(given))):
        for layout in (Layout(given.size, 1), Layout(16, 1), Layout(64, 64)):
            data = pack_scaled(given, layout)
            yield f"{BYTES} in segments of {layout.segment}", data
            yield f"numbers in segments of {layout.segment}", unpack_scaled(data, given.size)


def _packed_caches(move: Move, count: int) -> Named:
    """Products with packed keys and values, in channels of all widths, more of them than a tile has."""
    heads, tokens, spread = 2, PACKED_BLOCK * max(count // 5000, 2), 2.0 ** np.arange(-3, 13)
    given = np.rint(6 * (numbers(20).random((heads, tokens, spread.size)) - 0.5) * spread)
    queries, shares = numbers(21).random((heads, 3, spread.size)), numbers(22).random((heads, 3, tokens))
    packed = PackedBlocks.of(move(given.astype(np.int32)))
    yield from ((f"packed, {name}", getattr(packed, name)) for name in ("width", "least", "words"))
    yield "packed, numbers", packed.by_channel()
    yield "packed, scores", packed.scores(move(queries.astype(np.float32)))
    yield "packed, sums", packed.sums(move(shares.astype(np.float32)))


def _stencils(move: Move, count: int) -> Named:
    """Differences of neighbours in fields of one to four axes, with gaps and huge numbers, and bounds of their errors."""
    side = min(max(round(count ** (1 / 4)), 4), 60)
    for dtype, axes in itertools.product((np.float32, np.float64), range(1, 5)):
        shape = (side, side + 1, side + 3, side + 2)[:axes]
        values = numbers(17).normal(size=shape) * 10.0 ** numbers(18).integers(-30, 39, shape)
        values[numbers(19).random(shape) < 0.02] = np.nan
        field, inside = move(values.astype(dtype)), (slice(1, side - 1), *(slice(0, n) for n in shape[1:]))
        for operation, sizes in itertools.product(Operation, (False, True)):
            spacing = [0.3 if axis == 0 or operation is not Operation.DERIVATIVE else None for axis in range(axes)]
            given = abs(field) if sizes else field
            kind = f"{operation.name.lower()}, {axes}-D {np.dtype(dtype).name}{', sizes' if sizes else ''}"
            yield kind, apply_stencil(operation, given, inside, spacing, sizes)


def _faulty(a: Array, b: Array) -> Array:
    return _struck(a @ b)


def _struck(result: Array) -> Array:
    """A copy with two wrong values in one line."""
    wrong = result.copy()
    wrong[..., 3, 5], wrong[..., 4, 5] = float("nan"), 1e20
    return wrong


def _masks(move: Move, count: int) -> Named:
    """Round islands that move a little at each of several times."""
    side = max(math.isqrt(count) // 2, 3)
    place = np.add.outer(np.arange(side) ** 2, np.arange(side) ** 2)
    mask = np.stack([place < (side // 2 + time // 3) ** 2 for time in range(8)])
    data = pack_mask(move(mask))
    yield from (("coded mask", data), ("mask", unpack_mask(data, mask.shape, backend.namespace(move(mask)))))


def _gaps(move: Move, count: int) -> Named:
    """Planes with holes of many sizes, the last without any value."""
    side = max(math.isqrt(count), 2)
    place = np.add.outer(np.arange(side), np.arange(side)).astype(float)
    planes = np.stack([place, place**2, place])
    valid = (numbers(2).random(planes.shape) < 0.3) & (np.add.outer([0, 0, 10 * side], place) < 1.4 * side)
    for dtype in ("float32", "float64"):
        yield f"filled, {dtype}", filled(move(planes.astype(dtype)), move(valid))
    yield "repeated", repeated(move(planes), move(valid))


def _imitations(move: Move, count: int) -> Named:
    """What predictions count of samples: their kernels get arrays of either machine, though predictions have NumPy's."""
    places, random = max(count // 8, 8), numbers(20)
    error, corner = random.random((2, places)) - 0.5, 5 * random.random((8, places))
    weight, bounds, signs = np.full(places, 1 / places), np.array([0.001, 0.03, 0.5]), np.array([[1, -1] * 4, [1, 0] * 4])
    whole, narrow = random.integers(-9, 9, (4, places)).astype(np.int32), error.astype(np.float32)
    table = np.zeros((3, places), np.uint16), np.zeros((3, 2048))
    launched = _launched(move, "imitation")
    yield "rows", launched("count_rows", 3, 4, places, whole, weight, *table, np.zeros(4))
    pairs, halves = np.stack([error, error[::-1]]), np.full((2, 3), 0.5)
    yield "errors", launched("count_errors", 3, 2, 3, places, places, error, narrow, weight, weight, pairs, weight, bounds,
                             halves, *table, np.zeros(36))
    yield "differences", launched("count_differences", 3, 2, 3, 8, places, corner, signs.astype(np.int32), bounds, weight,
                                  *table, np.zeros(6))
    column, first, split = random.integers(0, 2, 35), np.array([0, 2, 5]), random.random(35).astype(np.float32)
    yield "trees", launched("sum_trees", 2 * places, places, 2, 5, 2, 3, narrow.T.copy(), column, split, random.random(40),
                            first, np.ones(2), np.zeros(2 * places))
    for dtype in (np.float32, np.float64):
        values = (10 * random.random(64 * places) - 5).astype(dtype)
        for name, found in _of_values(move, values, places, random):
            yield f"{name}, {np.dtype(dtype).name}", found


def _of_values(move: Move, values: np.ndarray, places: int, random: np.random.Generator) -> Named:
    """Samples, windows, blocks and patches of these values."""
    wide, there = random.integers(0, 2, places).astype(np.uint8), random.integers(0, values.size, 5 * places)
    launched = _launched(move, "samples", values.dtype)
    yield "samples", launched("interpolate_samples", places, values.size, values, there, wide, np.zeros(2 * places))
    yield "windows", launched("window_variances", places, 5, values.size, values, there, np.zeros(places))
    lowest, order = np.array([-20, -3, 1], np.int32), np.arange(64, dtype=np.int32)
    bits = np.zeros((3, places), np.int32)
    known, squares = np.ones(values.size, np.uint8), np.zeros((3, places))
    launched = _launched(move, "blocks", values.dtype)
    yield "blocks", launched("cut_blocks", places, 3, 3, values, known, lowest, order, bits, squares)
    many, squares = random.integers(0, 999, (3, places)).astype(np.int32), random.random((3, places))
    yield "blocks described", launched("describe_blocks", 3, places, many, squares, np.arange(places), np.zeros(12))
    extent, margin, times = np.array([[1, 20, 8], [0, 4, 0], [0, 2, 1]], np.int32)
    steps, room = np.concatenate([[0], 8 * np.arange(12), np.arange(8)]), np.zeros((places, 20, 16), values.dtype)
    patches, found = np.tile(values, 3)[: 160 * places].copy(), np.zeros(96 * places, values.dtype)
    yield "patches", _launched(move, "patches", values.dtype)(
        "divide_patches", places, 160, 20, 96, 96, patches, extent, margin, times, steps, room, found
    )


def _launched(move: Move, source: str, dtype: Any = np.float32) -> Callable[..., Array]:
    """A function of a kernel's name and arguments, which returns what the kernel leaves in the last of these."""
    def result(name: str, *given: Any) -> Array:
        arguments = [move(each) if isinstance(each, np.ndarray) else each for each in given]
        backend.kernel(source, name, dtype)(*arguments)
        return arguments[-1]
    return result


def _symbols(move: Move, count: int) -> Named:
    """The coder of moves, whose symbols are decoded where positions are; its tables are small."""
    symbols, contexts, block = 8, 5, 512
    context = numbers(10).integers(0, contexts, count).astype(np.uint8)
    symbol = (numbers(11).random(count) ** 3 * symbols).astype(np.uint8)
    frequency = np.full((contexts, symbols), 4096 // symbols, np.uint32)
    code = move(context.astype(np.uint16) * np.uint16(symbols) + symbol)
    words, first = words_of(code, even_blocks(count, block), frequency)
    decoded = move(np.zeros(count, np.uint8))
    tables = move(frequency.reshape(-1)), move(slots_of(frequency).reshape(-1))
    kernel = backend.kernel("entropy", "decode_known")
    kernel(-(-count // block), count, block, move(context), symbols, move(first), words, *tables, decoded)
    yield from (("words", words), ("symbols", decoded))
