// Sorting by key and runs of equal keys: the steps of `workbench/ordering.py` between its kernels, with one thread.

const MOST_DIGIT_BITS = 11;

export const bitLength = (number) => (number < 2 ** 32 ? 32 - Math.clz32(number) : Math.floor(Math.log2(number)) + 1);

// Where the numbers of each digit begin: the exclusive running sum of how many there are.
function firstOfDigits(machine, source, shift, digits) {
  const counts = machine.array("i64", digits);
  machine.launch("count_digits", 1, source.length, source, shift, digits, counts);
  return machine.array("i64", starts(counts.toInt32()).subarray(0, digits));
}

// Sorts keys (u64, less than 2^bits) in place; the stable order (i32) that sorts them.
export function sortByKey(machine, key, bits) {
  const count = key.length;
  const order = machine.places(count);
  machine.scope(() => {
    const passes = 2 * Math.ceil(bits / (2 * MOST_DIGIT_BITS));
    const digitBits = Math.ceil(bits / Math.max(passes, 1));
    const placeBits = bitLength(Math.max(count - 1, 1));
    const inWords = bits + placeBits <= 64;
    let [source, target] = [[key, order], [machine.array("u64", count), inWords ? order : machine.array("i32", count)]];
    const none = machine.array("i32", 0);
    for (let pass = 0; pass < passes; pass++) {
      const [joins, splits, digits] = [pass === 0, pass === passes - 1, 2 ** digitBits];
      const shift = pass * digitBits + (inWords ? placeBits : 0);
      const first = firstOfDigits(machine, source[0], inWords && joins ? 0 : shift, digits);
      if (inWords) {
        const to = splits ? order : none;
        machine.launch("place_words", 1, count, source[0], placeBits, joins, splits, shift, digits, first, target[0], to);
      } else {
        machine.launch("place_by_digit", 1, count, ...source, shift, digits, first, ...target);
      }
      [source, target] = [target, source];
    }
  });
  return order;
}

// The starts of the runs of `key >> shift` in sorted keys, of which there are so many, and the number of keys.
export function runStarts(machine, key, shift, runs) {
  const start = machine.array("i32", runs + 1);
  machine.launch("place_runs", 1, key.length, key, shift, machine.array("i64", 1), start);
  start.values[runs] = key.length;
  return start;
}

// How many runs there are of `key >> shift`, and of `key >> coarse`.
export function nestedRuns(machine, key, shift, coarse) {
  const counts = machine.array("i64", 2);
  machine.launch("count_nested_runs", 1, key.length, key, shift, coarse, counts);
  return [counts.number(0), counts.number(1)];
}

// Where each of these begins when they stand one after the other, and the end.
export function starts(sizes) {
  const first = new BigInt64Array(sizes.length + 1);
  sizes.forEach((size, place) => (first[place + 1] = first[place] + BigInt(size)));
  return first;
}
