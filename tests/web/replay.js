// Runs recorded launches in WebAssembly, and compares every array afterwards, byte for byte: tests/test_web_library.py.

import { readFileSync } from "node:fs";
import { Machine } from "./machine.js";

const [modulePath, recordPath, arraysPath] = process.argv.slice(2);
const record = JSON.parse(readFileSync(recordPath, "utf8"));
const bytes = readFileSync(arraysPath);
const machine = await Machine.of(new WebAssembly.Module(readFileSync(modulePath)), record.declared);
const [compared, differences] = [{}, []];

const seen = (row) => new Uint8Array(machine.memory.buffer, row.at, row.values.byteLength);

for (const { kernel, items, given, arrays } of record.launches) {
  machine.scope(() => {
    const rows = arrays.map(({ type, length, before }) => {
      const row = machine.array(type, length);
      seen(row).set(bytes.subarray(before, before + row.values.byteLength));
      return row;
    });
    const argument = (each) => (typeof each === "number" ? each : "row" in each ? rows[each.row] : BigInt(each.whole));
    machine.launch(kernel, items, ...given.map(argument));
    rows.forEach((row, number) => {
      const [here, { after, name }] = [seen(row), arrays[number]];
      let wrong = 0;
      for (let i = 0; i < here.length; i++) wrong += here[i] !== bytes[after + i];
      if (wrong) differences.push(`${kernel}: ${name} differs in ${wrong} of ${here.length} bytes`);
    });
    compared[kernel] = (compared[kernel] ?? 0) + 1;
  });
}
console.log(JSON.stringify({ compared, differences }));
