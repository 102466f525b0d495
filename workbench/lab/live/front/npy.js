// Files of NumPy (.npy): fields of two or three axes, or positions of shape (N, 3), in float32 or float64.

import { Refused } from "./refusal.js";

const TYPES = { f4: Float32Array, f8: Float64Array };
const MOST = 2 ** 24; // values
const listed = (number) => number.toLocaleString("en");

// The values, the shape, and the type as kernels call it.
export function read(buffer) {
  const bytes = new Uint8Array(buffer);
  const text = (from, to) => String.fromCharCode(...bytes.subarray(from, to));
  if (bytes.length < 10 || text(0, 6) !== "\x93NUMPY") throw new Refused(`this is not an .npy file: save it with numpy.save`);
  const [long, view] = [bytes[6] > 1, new DataView(buffer)];
  const start = long ? 12 : 10;
  const length = bytes.length < start ? 0 : long ? view.getUint32(8, true) : view.getUint16(8, true);
  if (!length || length > 65536 || start + length > bytes.length)
    throw new Refused("the header of this file is cut short or damaged");
  const header = text(start, start + length);
  const [, order, kind] = header.match(/'descr':\s*'([<>|=])(\w+)'/) ?? [];
  const tuple = header.match(/'shape':\s*\(([\d,\s]*)\)/)?.[1];
  if (tuple === undefined) throw new Refused("the header of this file does not describe one array of numbers");
  if (!(kind in TYPES))
    throw new Refused(`this page takes float32 and float64; the array is ${kind ?? "of another type"}: use .astype("float32")`);
  const shape = tuple.split(",").map((each) => each.trim()).filter(Boolean).map(Number);
  const [count, extents] = [shape.reduce((a, b) => a * b, 1), `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`];
  if (shape.length < 2 || shape.length > 3 || !count)
    throw new Refused(`this page takes fields of two or three axes, and positions of shape (N, 3); this array has shape ${extents}`);
  if (count > MOST)
    throw new Refused(`this page takes up to ${listed(MOST)} values; this array has ${listed(count)}: save a part of it`);
  if (/'fortran_order':\s*True/.test(header))
    throw new Refused("the array is in Fortran order: save numpy.ascontiguousarray(array)");
  const size = TYPES[kind].BYTES_PER_ELEMENT;
  if (start + length + count * size !== bytes.length)
    throw new Refused(
      `an array of shape ${extents} has ${count * size} bytes; this file has ${bytes.length - start - length}: ` +
      "it is cut short or damaged");
  const data = buffer.slice(start + length);
  if (order === ">") new Uint8Array(data).forEach((_, at, all) => at % size === 0 && all.subarray(at, at + size).reverse());
  const values = new TYPES[kind](data);
  if (values.some((value) => value === Infinity || value === -Infinity))
    throw new Refused("the array has infinite values, which no error bound allows");
  return { values, shape, type: kind === "f4" ? "float" : "double" };
}
