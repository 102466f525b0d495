// What lies under the pointer. Coordinates and names of marks are known here; values are asked from Python when the
// pointer rests, since pixels have too few levels to tell an error from rounding. Until then they are marked with "≈".

import { shown, valueAt } from "./canvas_values.js";
import { hit } from "./canvas_marks.js";

const REST = 60; // ms without movement before Python is asked
const AWAY = 14; // pixels from the pointer

export function coordinates(pane, placing, x, y) {
  const { across, up, unit, ticks } = pane.sent.axes;
  const digits = (scale) => Math.min(12, Math.max(0, Math.ceil(Math.log10(scale))));
  const one = (name, value, scale) => `${name} ${value.toFixed(digits(scale)).replace("-", "−")} ${unit}`.trim();
  const words = [ticks[0].length ? "" : one(across || "x", x, placing.scale), ticks[1].length ? "" : one(up || "y", y, placing.rise)];
  return words.filter(Boolean).join("   "); // Python names places that are no numbers
}

function approximate({ sent, levels }, x, y) {
  const [left, right, bottom, top] = sent.window;
  const column = Math.floor(((x - left) / (right - left)) * sent.width);
  const line = Math.floor(((top - y) / (top - bottom)) * sent.height);
  if (column < 0 || line < 0 || column >= sent.width || line >= sent.height) return "";
  const level = levels[line * sent.width + column];
  if (!level) return ""; // no value, or no particle
  if (sent.palette.length) return shown(Math.round(valueAt(sent, level)));
  return `≈ ${shown(valueAt(sent, level), 3)}`;
}

export class Readings {
  constructor(view) {
    this.view = view;
    this.point = null;
    this.token = "";
    this.asked = 0;
  }

  at(pane, px, py) {
    this.point = { pane, px, py };
    this.refresh();
  }

  leave() {
    this.point = null;
    this.token = "";
    clearTimeout(this.resting);
    this.view.place.textContent = "";
    for (const pane of this.view.panes) pane.reading.textContent = "";
    this.tellBeside([]);
    this.view.cross(null);
  }

  // Called when the pointer, the window or the data have changed.
  refresh() {
    const { view, point } = this;
    if (!point) return;
    if (!view.panes.includes(point.pane)) return this.leave();
    const placing = view.placing(point.pane);
    const [x, y] = placing.from(point.px, point.py);
    const mark = hit(view.visible(point.pane), placing, point.px, point.py);
    this.words = [coordinates(point.pane, placing, x, y), mark?.title].filter(Boolean);
    view.place.textContent = this.words.join("  ·  ");
    point.pane.canvas.style.cursor = mark ? "pointer" : "";
    for (const pane of view.panes) pane.reading.textContent = approximate(pane, x, y);
    view.cross(point);
    this.token = "";
    this.tellBeside([]);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.ask(x, y), REST);
  }

  ask(x, y) {
    this.asked += 1;
    this.token = `${this.view.id}:${this.asked}`;
    this.view.channel.send({ does: "read", token: this.token, picture: this.point.pane.number, x, y });
  }

  answer({ token, values, place, lines }) {
    if (!this.point || token !== this.token) return; // a later question is on its way
    this.view.panes.forEach((pane, number) => {
      if (values[number] !== undefined) pane.reading.textContent = values[number];
    });
    this.view.place.textContent = [this.words[0], place, ...this.words.slice(1)].filter(Boolean).join("  ·  ");
    this.tellBeside(lines);
  }

  // Lines below the pointer or, in the lower half, above it; they end where the picture ends.
  tellBeside(lines) {
    for (const { beside } of this.view.panes) beside.hidden = true;
    if (!this.point || !lines.length) return;
    const { pane: { beside, canvas, frame }, px, py } = this.point;
    const [x, y] = [canvas.offsetLeft + px, canvas.offsetTop + py];
    beside.textContent = lines.join("\n");
    beside.hidden = false;
    const room = frame.clientWidth - beside.offsetWidth;
    beside.style.left = `${Math.max(Math.min(x + AWAY, room), Math.min(0, room))}px`;
    beside.style.top = `${py < canvas.clientHeight / 2 ? y + AWAY : y - AWAY - beside.offsetHeight}px`;
  }

  close() {
    clearTimeout(this.resting);
  }
}
