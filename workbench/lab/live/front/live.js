// The page: its data and the kernels are in it, and nothing leaves it.

import { counted, element } from "./dom.js";
import { FieldSection } from "./field_section.js";
import { Machine } from "./machine.js";
import { read } from "./npy.js";
import { checkedBox, ParticlesSection } from "./particles_section.js";
import { Refused } from "./refusal.js";

const TYPES = { float: Float32Array, double: Float64Array, i32: Int32Array };
const LINKED = 0.2; // mean spacings
const LEAST = 20; // members of a halo
const MOST_PARTICLES = 2_000_000;
const OWN = "An .npy file of NumPy, float32 or float64: a field of two or three axes, or positions of shape (N, 3). " +
  "It is read in this page, and nothing leaves it. Choose a file, or drop one here.";

function bytesOf(text) {
  const decoded = atob(text);
  const bytes = new Uint8Array(decoded.length);
  for (let i = 0; i < decoded.length; i++) bytes[i] = decoded.charCodeAt(i);
  return bytes;
}

const arrayOf = ({ type, data }) => new TYPES[type](bytesOf(data).buffer);

class Live {
  constructor(root, given) {
    [this.root, this.given] = [root, given];
    const { tables } = given.common;
    for (const name of Object.keys(tables)) tables[name] = Uint8Array.from(tables[name]);
    this.main = element("div", "", root);
    this.own = element("section", "wb-live-section", root, { ariaLabel: "your own file" });
    this.ownPlace = element("div", "", root);
  }

  async start() {
    this.module = await WebAssembly.compile(bytesOf(this.given.kernels));
    for (const example of this.given.examples) await this.show(example, this.main);
    this.addOwn();
    performance.measure("first picture", { start: 0 });
    this.root.dataset.ready = "true";
  }

  async show({ kind, title, subject, ...example }, parent) {
    const { common } = this.given;
    const data = example[kind === "field" ? "values" : "positions"];
    const [values, type] = ArrayBuffer.isView(data) ? [data, example.type] : [arrayOf(data), data.type];
    if (kind === "field") return new FieldSection(parent, title, subject, common, { ...example, values, type });
    const machine = await Machine.of(this.module, this.given.declared, type);
    const unpacked = (one) => ({ ...one, index: arrayOf(one.index), positions: arrayOf(one.positions) });
    const archives = example.archives?.map(unpacked);
    return new ParticlesSection(parent, title, subject, common, machine, { ...example, positions: values, archives });
  }

  // A file of the reader's own.

  addOwn() {
    element("h2", "", this.own, "Your own file");
    element("p", "wb-note", this.own, OWN);
    const row = element("div", "wb-control-row", this.own);
    const input = element("input", "", row, { type: "file", accept: ".npy", ariaLabel: "an .npy file" });
    const label = element("label", "wb-control-name", row, "length of the periodic box, of positions (empty: open) ");
    this.box = element("input", "", label, { type: "text", inputMode: "decimal" });
    const kind = element("label", "wb-control-name", row, "shape (N, 3) is ");
    this.kind = element("select", "", kind);
    for (const [value, textContent] of [["particles", "positions"], ["field", "a field"]])
      element("option", "", this.kind, { value, textContent });
    this.said = element("p", "wb-error", this.own, { role: "alert" });
    const again = () => input.files[0] && this.take(input.files[0]);
    for (const control of [input, this.box, this.kind]) control.addEventListener("change", again);
    document.addEventListener("dragover", (event) => event.preventDefault());
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      if (!event.dataTransfer.files.length) return;
      input.files = event.dataTransfer.files;
      again();
    });
  }

  async take(file) {
    this.said.textContent = "";
    this.clear();
    try {
      const { values, shape, type } = read(await file.arrayBuffer());
      const particles = shape.length === 2 && shape[1] === 3 && this.kind.value === "particles";
      const what = particles ? "positions" : "a field";
      const subject = `${what} of shape (${shape.join(", ")}), ${8 * values.BYTES_PER_ELEMENT} bits a number`;
      const more = particles ? positionsOf(values, this.box.value) : { values: fieldOf(values), shape };
      const example = { kind: particles ? "particles" : "field", title: file.name, subject, type, unit: "", ...more };
      this.shown = await this.show(example, this.ownPlace);
    } catch (error) {
      this.clear();
      this.said.textContent = `${file.name}: ${error.message}.`;
      if (!(error instanceof Refused)) throw error;
    }
  }

  clear() {
    this.shown?.canvas.close();
    this.shown = null;
    this.ownPlace.replaceChildren();
  }
}

function fieldOf(values) {
  if (values.every(Number.isNaN)) throw new Refused("all values of this field are missing (NaN)");
  return values;
}

function positionsOf(positions, text) {
  const count = positions.length / 3;
  if (count > MOST_PARTICLES)
    throw new Refused(`this page takes up to ${counted(MOST_PARTICLES)} particles; this file has ${counted(count)}`);
  if (positions.some(Number.isNaN)) throw new Refused("positions must be finite; some are NaN");
  const box = checkedBox(positions, text);
  const lengths = box ?? [0, 1, 2].map((axis) => {
    let [low, high] = [Infinity, -Infinity];
    for (let i = axis; i < positions.length; i += 3) {
      low = Math.min(low, positions[i]);
      high = Math.max(high, positions[i]);
    }
    return high - low;
  });
  if (Math.min(...lengths) === 0)
    throw new Refused("these particles lie in a plane, on a line or in one point: give the length of a box");
  const length = (LINKED * lengths.reduce((product, each) => product * Math.cbrt(each), 1)) / Math.cbrt(count);
  if (!(length > 1e-100 && length < 1e100))
    throw new Refused("this page takes linking lengths from 1e-100 to 1e100, in the unit of the positions");
  return { positions, box, length, least: LEAST };
}

// Panels follow the theme of JupyterLab; this page, that of the system, and its own button.
function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const set = (isDark) => (document.body.dataset.jpThemeLight = String(!isDark));
  set(dark.matches);
  dark.addEventListener("change", () => set(dark.matches));
  document.getElementById("theme").addEventListener("click", () => set(document.body.dataset.jpThemeLight === "true"));
}

followTheme();
const given = JSON.parse(document.getElementById("given").textContent);
new Live(document.getElementById("live"), given).start().catch((error) => {
  const textContent = `This page could not start: ${error.message ?? error}`;
  element("p", "wb-error", document.getElementById("live"), { role: "alert", textContent });
  throw error;
});
