// Friends of friends: the steps between the kernels, as in `workbench/clusters` (friends.py, cells.py, sorted_cells.py and
// dense_cells.py say why). Labels are those of the library, particle for particle: the smallest index in each group.

import { bitLength, nestedRuns, runStarts, sortByKey, starts } from "./ordering.js";
import { Refused } from "./refusal.js";

const EDGE = 4; // cells along a block of 64
const MARGIN = 2 ** -20;
const [MOST_CELLS, KEY_BITS, CELL_BITS] = [2 ** 29, 64, 6];
const [DENSE, TREE, PIECE, BRANCH] = [64, 2, 1024, 64]; // as in kernels/linking.cuh and fof.cu

// The smallest and the largest coordinate along each axis.
export function extent(machine, positions) {
  return machine.scope(() => {
    const [lower, upper] = [machine.array("double", 3), machine.array("double", 3)];
    const count = positions.length / 3;
    machine.launch("extent", 1, 1, count, count, positions, lower, upper);
    return [[...lower.values], [...upper.values]];
  });
}

function gridOf(length, box, lower, upper) {
  const largest = (length / Math.sqrt(3)) * (1 - MARGIN);
  const along = [0, 1, 2].map((axis) => {
    if (box) return Math.ceil(box[axis] / (largest * EDGE));
    return Math.ceil((Math.floor((upper[axis] - lower[axis]) / largest) + 1) / EDGE);
  });
  const sides = along.map((blocks, axis) => (box ? box[axis] / (blocks * EDGE) : largest));
  const bits = along.map((blocks) => bitLength(blocks - 1));
  const keyBits = bits.reduce((sum, each) => sum + each, CELL_BITS);
  if (keyBits > KEY_BITS || Math.max(...along) * EDGE > MOST_CELLS)
    throw new Refused("the linking length is too short for this page, which numbers at most 2²⁹ cells along an axis");
  return { origin: box ? [0, 0, 0] : lower, sides, along, bits, keyBits, periods: box ?? [0, 0, 0] };
}

// For each neighbouring block ahead and each cell of a block, the cells of the neighbour within reach; then the cells that
// reach any, and the cells that are reached.
function reachOf(sides, length) {
  const scaled = sides.map((side) => (side / length) ** 2);
  const cells = Array.from({ length: 64 }, (_, cell) => [cell >> 4, (cell >> 2) & 3, cell & 3]);
  const offsetOf = (n) => [Math.floor(n / 9) - 1, (Math.floor(n / 3) % 3) - 1, (n % 3) - 1];
  const ahead = Array.from({ length: 14 }, (_, place) => offsetOf(13 + place)); // of 27, in order, from the block itself on
  const words = [];
  for (const [number, offset] of ahead.entries()) {
    let [reaching, reached] = [0n, 0n];
    for (let one = 0; one < 64; one++) {
      let word = 0n;
      for (let other = number ? 0 : one + 1; other < 64; other++) {
        const square = scaled.reduce((sum, scale, axis) => {
          const apart = Math.abs(cells[other][axis] + EDGE * offset[axis] - cells[one][axis]);
          return sum + Math.max(apart - 1, 0) ** 2 * scale;
        }, 0);
        if (square <= 1 + 1e-3) word |= 1n << BigInt(other);
      }
      if (word) reaching |= 1n << BigInt(one);
      reached |= word;
      words.push(word);
    }
    words.push(reaching, reached);
  }
  return words;
}

const reaches = new Map(); // a page links at one length again and again

function cachedReach(sides, length) {
  const name = [...sides, length].join();
  if (!reaches.has(name)) reaches.set(name, reachOf(sides, length));
  return reaches.get(name);
}

// Particles in the order of their cells, and cells in blocks.
function sortedCells(machine, positions, grid) {
  const count = positions.length / 3;
  const key = machine.array("u64", count);
  const doubles = (values) => machine.array("double", values);
  const integers = (values) => machine.array("i64", values.map(BigInt));
  const last = grid.along.map((blocks) => blocks * EDGE - 1);
  machine.launch(
    "cell_keys", count, positions, doubles(grid.origin), doubles(grid.sides.map((side) => 1 / side)), integers(last),
    integers(grid.bits), key,
  );
  const order = sortByKey(machine, key, grid.keyBits);
  const [cells, blocks] = nestedRuns(machine, key, 0, CELL_BITS);
  const first = runStarts(machine, key, 0, cells);
  const [cellKey, rank] = [machine.array("u64", cells), machine.array("i32", cells)];
  machine.launch("start_cells", cells, key, first, order, cellKey, rank);
  const firstCell = runStarts(machine, cellKey, CELL_BITS, blocks);
  const [blockKey, occupied] = [machine.array("u64", blocks), machine.array("u64", blocks)];
  machine.launch("start_blocks", blocks, cellKey, firstCell, blockKey, occupied);
  const sorted = machine.array("real", positions.length);
  machine.launch("gather_rows", count, positions, order, sorted);
  return { sorted, order, first, rank, firstCell, blockKey, occupied, cells, blocks };
}

// The label of each particle (Int32Array). `box` has the lengths of the periodic box, or is null.
export function friendsOfFriends(machine, positions, box, length) {
  return machine.scope(() => {
    const grid = gridOf(length, box, ...(box ? [] : extent(machine, positions)));
    const parts = sortedCells(machine, positions, grid);
    const { sorted, order, first, rank, firstCell, blockKey, occupied, cells, blocks } = parts;
    const [parent, open] = [machine.places(cells), machine.array("i32", cells)];
    const integers = (values) => machine.array("i64", values.map(BigInt));
    const walls = [machine.array("double", grid.periods), integers(grid.along), integers(grid.bits)];
    const reach = machine.array("u64", cachedReach(grid.sides, length));
    const unite = (boxes) => machine.launch(
      "link", 1, blocks, blockKey, occupied, firstCell, first, sorted, ...walls, reach, box ? 1 : 0, length * length,
      boxes.length > 0, boxes, open, rank, parent,
    );
    unite(machine.array("real", 0));
    if (open.values.some(Boolean)) unite(buildTrees(machine, parts, open));
    const labels = machine.array("i64", order.length);
    machine.launch("label_particles", 1, order.length, cells, first, order, rank, parent, labels);
    return labels.toInt32();
  });
}

// The boxes of trees of the open cells that are dense, whose particles are put in the order of a curve.
function buildTrees(machine, { sorted, order, first }, open) {
  const at = first.values;
  const dense = [...open.values.keys()].filter((cell) => open.values[cell] && at[cell + 1] - at[cell] > DENSE);
  const sizes = dense.map((cell) => at[cell + 1] - at[cell]);
  const [cells, count] = [machine.array("i32", dense), dense.length];
  const [place, along] = alongCurve(machine, cells, sizes, first, sorted);
  const moved = machine.array("real", 3 * place.length);
  machine.launch("gather_rows", place.length, sorted, along, moved);
  machine.launch("reorder_dense", place.length, place, moved, sorted);
  const [particles, to] = [order.values, place.values];
  along.values.map((from) => particles[from]).forEach((particle, number) => (particles[to[number]] = particle));

  const leaves = machine.array("i64", count);
  machine.launch("tree_leaves", count, machine.array("i64", sizes.map(BigInt)), leaves);
  const nodes = starts([...leaves.values].map((each) => 2n * each));
  dense.forEach((cell, number) => (open.values[cell] = TREE + Number(nodes[number])));
  const boxes = machine.array("real", 6 * Number(nodes[count]));
  const branches = starts([...leaves.values].map((each) => Math.ceil(Number(each) / BRANCH)));
  const [number, begin] = [Number(branches[count]), machine.array("i64", branches)];
  machine.launch("bound_branches", number, count, begin, leaves, cells, first, sorted, open, boxes);
  machine.launch("bound_trunks", count, leaves, cells, open, boxes);
  return boxes;
}

// The places of the particles in dense cells, cell by cell, and the same in the order of a space-filling curve.
function alongCurve(machine, cells, sizes, first, sorted) {
  const count = sizes.length;
  const pieces = starts(sizes.map((size) => Math.ceil(size / PIECE)));
  const [number, begin] = [Number(pieces[count]), machine.array("i64", pieces)];
  const [piece, box] = [machine.array("real", 6 * number), machine.array("real", 6 * count)];
  machine.launch("bound_pieces", number, count, begin, cells, first, sorted, piece);
  machine.launch("join_pieces", count, begin, piece, box);
  const [cellBits, start] = [bitLength(count - 1), starts(sizes)];
  const curveBits = Math.min(16, Math.floor((64 - cellBits) / 3));
  const total = Number(start[count]);
  const [key, place] = [machine.array("u64", total), machine.array("i32", total)];
  const at = machine.array("i64", start);
  machine.launch("dense_keys", 1, total, count, at, cells, first, sorted, box, curveBits, key, place);
  const order = sortByKey(machine, key, cellBits + 3 * curveBits).values;
  const places = place.values;
  return [place, machine.array("i32", order.map((each) => places[each]))];
}
