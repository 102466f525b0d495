// The built-in codec for particles in free order (`workbench/codecs/lattice.py`, `curve.py`, `entropy.py`): the lattice of an
// error bound, decoded positions in the order of the original ones, and the size of what would be stored.

import { bitLength, sortByKey } from "./ordering.js";

const [AXIS_BITS, MOST_CELL_BITS] = [21, 52]; // of each axis in a key; of a cell number
const [BLOCK, SAMPLED, CONTEXTS, SYMBOLS, PRECISION, IN_TURNS] = [1024, 8, 64, 256, 12, 3];
const [RARE, FEW, NEAR_INTEGER] = [1 / 1024, 4000, 1e-9];

const sum = (numbers) => numbers.reduce((before, each) => before + each, 0);

// The distance from a number (zero or more) to the next larger one of its type.
export function spacing(type, number) {
  const [Type, Whole, one] = type === "float" ? [Float32Array, Uint32Array, 1] : [Float64Array, BigUint64Array, 1n];
  const held = new Type([number]);
  const before = held[0];
  new Whole(held.buffer)[0] += one;
  return held[0] - before;
}

// The largest number of a type below a length.
function below(type, length) {
  const Type = type === "float" ? Float32Array : Float64Array;
  const held = new Type([length]);
  const whole = type === "float" ? new Uint32Array(held.buffer) : new BigUint64Array(held.buffer);
  if (held[0] >= length) whole[0] -= type === "float" ? 1 : 1n;
  return held[0];
}

// The coarsest lattice on which no coordinate moves by more than the bound; null if the bound is too small for this page.
export function fitted(type, box, lower, upper, bound) {
  const [low, high] = box ? [[0, 0, 0], box.map((length) => below(type, length))] : [lower, upper];
  const reach = Math.max(...low.map(Math.abs), ...high.map(Math.abs)) + bound;
  const rounding = (type === "float" ? spacing("float", reach) / 2 : 0) + 8 * spacing("double", reach);
  const step = 2 * (bound - rounding);
  if (!(step > bound / 2)) return null;
  const last = low.map((from, axis) => Math.floor((high[axis] - from) * (1 / step)));
  if (bitLength(Math.max(...last)) > AXIS_BITS) return null;
  const largest = type === "float" ? 3.4028234663852886e38 : Number.MAX_VALUE;
  return { origin: low, step, last, top: box ? high : [largest, largest, largest] };
}

// The keys of the cells, and the decoded positions, in the order of the positions; both are valid until the scope ends.
export function decoded(machine, positions, lattice) {
  const count = positions.length / 3;
  const [key, values] = [machine.array("u64", count), machine.array("real", positions.length)];
  const [origin, top] = [lattice.origin, lattice.top].map((each) => machine.array("double", each));
  const last = machine.array("i64", lattice.last.map(BigInt));
  machine.launch("cells_to_keys", count, positions, origin, 1 / lattice.step, last, 0, key);
  machine.launch("keys_to_positions", count, key, machine.array("u64", 0), origin, lattice.step, top, 0, values);
  return [key, values];
}

// Bytes of the sorted keys under the codec's coder. Its tables and lists are packed by another library in archives, so they
// are estimated; the rest is counted.
export function sizeOf(machine, key, lattice) {
  return machine.scope(() => {
    const [count, blocks] = [key.length, Math.ceil(key.length / BLOCK)];
    sortByKey(machine, key, 3 * bitLength(Math.max(...lattice.last)));
    const gaps = machine.array("u64", count);
    machine.launch("key_gaps", count, count, BLOCK, key, gaps);
    const model = modelOf(machine, gaps);
    const [code, bits] = classified(machine, gaps, model);
    const often = histogram(machine, code);
    const frequency = frequenciesOf(often);
    const begins = Array.from({ length: blocks + 1 }, (_, block) => BigInt(Math.min(block * BLOCK, count)));
    const begin = machine.array("i64", begins);
    const [room, table] = [Math.floor((Math.min(BLOCK, count) * PRECISION) / 16) + 4, machine.array("u32", frequency)];
    const [words, used] = [machine.array("u16", blocks * room), machine.array("i64", blocks)];
    const slots = machine.array("u32", slotsOf(frequency));
    machine.launch("encode_symbols", Math.ceil(blocks / IN_TURNS), IN_TURNS, blocks, begin, code, blocks, frequency.length, table,
    slots, 0, room, words, used);
    let bytes = 4 * blocks; // checksums
    used.values.forEach((each, block) => (bytes += 2 * Number(each) + 4 * Math.ceil(Number(bits.values[block]) / 32)));
    return bytes + packedSize(frequency, blocks);
  });
}

function packedSize(frequency, blocks) {
  const entries = frequency.reduce((sum, each) => sum + (each > 0), 0);
  return 285 + 1.3 * entries + 3 * blocks;
}

// The level at which blocks start, and the contexts with tables of their own: from every eighth block.
function modelOf(machine, gaps) {
  return machine.scope(() => {
    const blocks = Math.ceil(gaps.length / BLOCK);
    const taken = Math.ceil(blocks / SAMPLED);
    const lastTaken = (taken - 1) * SAMPLED * BLOCK;
    const size = (taken - 1) * BLOCK + Math.min(BLOCK, gaps.length - lastTaken);
    const sample = machine.array("u64", size);
    machine.launch("take_blocks", taken, gaps.length, gaps.length, BLOCK, SAMPLED, gaps, size, size, sample);
    const stride = Math.max(Math.floor(size / 1024), 1);
    const octave = Math.min(meanOctave(sample.values.filter((_, place) => place % stride === 0)), CONTEXTS - 1);
    const [code] = classified(machine, sample, { octave, lowest: 0, highest: CONTEXTS - 1 });
    const often = histogram(machine, code);
    const counts = Array.from({ length: CONTEXTS }, (_, c) => sum(often.subarray(c * SYMBOLS, (c + 1) * SYMBOLS)));
    const total = sum(counts);
    const least = Math.min(Math.max(RARE * total, (FEW * size) / gaps.length), (total - 1) / 2);
    const until = (list) => {
      let [before, place] = [0, 0];
      while (place < list.length && (before += list[place]) <= least) place += 1;
      return place;
    };
    const [lowest, highest] = [until(counts), CONTEXTS - 1 - until([...counts].reverse())];
    return { octave, lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
  });
}

// The mean of log2(number + 1), rounded down; exact where rounding could decide.
function meanOctave(numbers) {
  const mean = sum(Array.from(numbers, (each) => Math.log2(Number(each) + 1))) / numbers.length;
  if (Math.abs(mean - Math.round(mean)) > NEAR_INTEGER) return Math.floor(mean);
  const product = [...numbers].reduce((all, each) => all * (each + 1n), 1n);
  return Math.floor((product.toString(2).length - 1) / numbers.length);
}

function classified(machine, numbers, { octave, lowest, highest }) {
  const [count, blocks] = [numbers.length, Math.ceil(numbers.length / BLOCK)];
  const [code, bits] = [machine.array("u16", count), machine.array("i64", blocks)];
  const levels = [octave, lowest, highest].map((level) => machine.array("i32", [level]));
  machine.launch("classify", blocks, count, count, BLOCK, 1, 0, numbers, ...levels, code, bits);
  return [code, bits];
}

function histogram(machine, code) {
  const counts = machine.array("u32", CONTEXTS * SYMBOLS);
  machine.launch("count_codes", 1, 1, code.length, code.length, code, counts.length, 1, counts);
  return counts.values;
}

// Frequencies that sum to 2^PRECISION in every used context, at least 1 for symbols that occur.
function frequenciesOf(counts) {
  const frequency = new Uint32Array(counts.length);
  for (let at = 0; at < counts.length; at += SYMBOLS) {
    const [row, seen] = [frequency.subarray(at, at + SYMBOLS), counts.subarray(at, at + SYMBOLS)];
    const total = sum(seen);
    if (!total) continue;
    seen.forEach((each, symbol) => (row[symbol] = Math.max(Math.floor((each * 2 ** PRECISION) / total), each > 0)));
    for (let excess; (excess = sum(row) - 2 ** PRECISION); ) {
      const largest = row.indexOf(Math.max(...row));
      row[largest] -= Math.min(excess, row[largest] - 1);
    }
  }
  return frequency;
}

function slotsOf(frequency) {
  const first = new Uint32Array(frequency.length);
  for (let at = 0; at < first.length; at++) first[at] = at % SYMBOLS ? first[at - 1] + frequency[at - 1] : 0;
  return first;
}
