// A field on the lattice of an error bound, as the codec `prequantised` decodes it (`workbench/codecs/prequantised.py`): values
// are rounded to multiples of about twice the bound.

import { spacing } from "./lattice.js";

const NEAREST = 1.5 * 2 ** 52; // a sum with this is rounded to a whole number, to even where two are as near
const MOST = 2 ** 31; // lattice numbers

// The largest magnitude, the extremes, and how many values there are; NaN is none.
export function rangeOf(values) {
  let [low, high, count] = [Infinity, -Infinity, 0];
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (Number.isNaN(value)) continue;
    count += 1;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return { low, high, count, largest: Math.max(Math.abs(low), Math.abs(high)) };
}

// The step of the lattice on which no value moves by more than the bound, rounding included; null if the bound is too small.
export function stepFor(type, largest, bound) {
  const before = Math.max(bound / 2, bound - spacing(type, largest) / 2 - 4 * 2 ** -52 * largest);
  return largest / (2 * before) < MOST - 1 ? 2 * before : null;
}

// The lattice number of each value, 0 for NaN; and the decoded values, of the same type.
export function rounded(values, step) {
  const [numbers, decoded] = [new Int32Array(values.length), new values.constructor(values.length)];
  for (let i = 0; i < values.length; i++) {
    const number = values[i] / step + NEAREST - NEAREST;
    numbers[i] = number;
    decoded[i] = number * step;
  }
  return [numbers, decoded];
}

// An estimate of the bytes of the numbers: the entropy of the sizes of their differences along the axes where these are
// smaller, and the bits below.
export function estimatedSize(numbers, shape) {
  let [changed, bits] = [numbers, bitsOf(numbers)];
  shape.forEach((_, axis) => {
    const stride = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
    const tried = differences(changed, shape[axis], stride);
    const then = bitsOf(tried);
    if (then < bits) [changed, bits] = [tried, then];
  });
  return Math.ceil(bits / 8) + HEADER;
}

const HEADER = 60; // bytes

function differences(numbers, length, stride) {
  const found = numbers.slice();
  for (let start = 0; start < numbers.length; start += length * stride)
    for (let i = start + stride; i < start + length * stride; i++) found[i] = numbers[i] - numbers[i - stride];
  return found;
}

function bitsOf(numbers) {
  const often = new Uint32Array(512);
  let below = 0;
  for (let i = 0; i < numbers.length; i++) {
    const size = Math.abs(numbers[i]);
    const length = 32 - Math.clz32(size);
    const symbol = size < 16 ? size : 8 * (length - 3) + ((size >>> (length - 4)) & 7);
    if (size >= 16) below += length - 4;
    often[2 * symbol + (numbers[i] < 0 ? 1 : 0)] += 1;
  }
  return often.reduce((bits, each) => (each ? bits + each * Math.log2(numbers.length / each) : bits), below);
}

// Errors in equal bins from minus the bound to the bound, the largest error and the root of the mean square.
export function errorsOf(values, decoded, bound, bins) {
  const often = new Uint32Array(bins);
  let [most, squares, count] = [0, 0, 0];
  for (let i = 0; i < values.length; i++) {
    const error = decoded[i] - values[i];
    if (Number.isNaN(error)) continue;
    often[Math.min(bins - 1, Math.max(0, Math.floor(((error / bound + 1) / 2) * bins)))] += 1;
    most = Math.max(most, Math.abs(error));
    squares += error * error;
    count += 1;
  }
  return { often, most, typical: Math.sqrt(squares / Math.max(count, 1)) };
}
