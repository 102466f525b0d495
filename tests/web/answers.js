// What the modules of the page compute for the cases of tests/lab/live/test_numerics.py.

import { readFileSync, writeFileSync } from "node:fs";
import { Machine } from "./machine.js";
import { friendsOfFriends } from "./friends.js";
import { decoded, fitted, sizeOf } from "./lattice.js";
import { estimatedSize, rangeOf, rounded, stepFor } from "./field.js";
import { halosOf, matched } from "./matching.js";
import { read } from "./npy.js";
import { Refused } from "./refusal.js";

const [modulePath, casesPath, arraysPath, outPath] = process.argv.slice(2);
const { declared, cases } = JSON.parse(readFileSync(casesPath, "utf8"));
const bytes = readFileSync(arraysPath);
const module = new WebAssembly.Module(readFileSync(modulePath));
const machines = { float: await Machine.of(module, declared), double: await Machine.of(module, declared, "double") };
const out = [];
const keep = (array) => out.push(Buffer.from(array.buffer.slice(array.byteOffset, array.byteOffset + array.byteLength)));
const arrayOf = ({ at, size, type }) => {
  const Type = { float: Float32Array, double: Float64Array, i32: Int32Array, bytes: Uint8Array }[type];
  return new Type(bytes.buffer.slice(bytes.byteOffset + at, bytes.byteOffset + at + size));
};

const does = {
  friends({ positions, box, length }) {
    const machine = machines[positions.type];
    machine.scope(() => keep(friendsOfFriends(machine, machine.array("real", arrayOf(positions)), box, length)));
  },
  particles({ positions, box, lower, upper, bound }) {
    const machine = machines[positions.type];
    return machine.scope(() => {
      const lattice = fitted(positions.type, box, lower, upper, bound);
      if (!lattice) return null;
      const [key, values] = decoded(machine, machine.array("real", arrayOf(positions)), lattice);
      keep(values.values);
      return sizeOf(machine, key, lattice);
    });
  },
  field({ values, shape, bound }) {
    const given = arrayOf(values);
    const step = stepFor(values.type, rangeOf(given).largest, bound);
    if (!step) return null;
    const [numbers, found] = rounded(given, step);
    keep(found);
    return estimatedSize(numbers, shape);
  },
  matching({ before, after, least }) {
    const { status, lost } = matched(halosOf(arrayOf(before), least), arrayOf(after), least);
    keep(status);
    keep(Uint8Array.from(lost));
  },
  npy({ file }) {
    const { values, shape, type } = read(arrayOf(file).buffer);
    keep(values);
    return { shape, type };
  },
};

const answers = cases.map(({ what, ...given }) => {
  try {
    return does[what](given) ?? null;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
});
writeFileSync(outPath, Buffer.concat(out));
console.log(JSON.stringify(answers));
