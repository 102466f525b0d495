// Pictures and marks as `canvas.js` takes them from panels (`workbench/lab/canvas.py`), made of values in the page. Levels are
// those of `workbench/lab/levels.py`.

import { MERGED, INTACT, SPLIT } from "./matching.js";

const [MIDDLE, STEPS] = [128, 127];
const PIXELS = 320; // of a map along its longer side
const MOST_CIRCLES = 400;
const OUTLINE = 2; // the radius of a circle, in root mean square radii of its halo
// As in `workbench/lab/clusters_panel/panes.py`; the last are on top.
const LOOKS = [
  [INTACT, "intact", "#69c3ff", "", 0.25], [MERGED, "merged", "#ffc86b", "2 3", 1], [SPLIT, "split", "#ff8a3d", "", 1],
];
const PLAIN = { deep: false, logarithmic: false, limits: "full", quantity: "", unit: "", empty: false, palette: [] };
const axesOf = (unit = "", depth = "") => ({ across: "x", up: "y", unit, depth, ticks: [[], []] });

// A slice of a field on a linear scale; rows upwards, so that the first is at the bottom.
export function valuePicture(title, plane, [height, width], { low, high }) {
  const levels = new Uint16Array(plane.length);
  const scale = high > low ? 65534 / (high - low) : 0;
  upwards(height, width, (from, to) => {
    const value = plane[from];
    levels[to] = Number.isNaN(value) ? 0 : Math.min(65535, Math.max(1, (value - low) * scale + 1.5));
  });
  const empty = levels.includes(0);
  return pane(title, levels, width, height, [0, width, 0, height], { deep: true, colours: "values", low, high, empty });
}

export function errorPicture(original, found, [height, width], bound) {
  const levels = new Uint8Array(original.length);
  upwards(height, width, (from, to) => {
    const steps = Math.round(((found[from] - original[from]) * STEPS) / bound);
    levels[to] = Number.isNaN(steps) ? 0 : Math.min(STEPS, Math.max(-STEPS, steps)) + MIDDLE;
  });
  const ends = { colours: "difference", low: -bound, high: bound, quantity: "decoded − original", empty: levels.includes(0) };
  return pane("error", levels, width, height, [0, width, 0, height], ends);
}

function upwards(height, width, each) {
  for (let row = 0; row < height; row++)
    for (let column = 0; column < width; column++) each(row * width + column, (height - 1 - row) * width + column);
}

function pane(title, levels, width, height, window, more) {
  return { ...PLAIN, title, pixels: levels, width, height, window, axes: axesOf(), ...more };
}

// How many particles are in each pixel of a window (left, right, bottom, top), seen along the last axis.
function countsOf(positions, [left, right, bottom, top], width, height) {
  const counts = new Uint32Array(width * height);
  const [across, up] = [width / (right - left), height / (top - bottom)];
  for (let i = 0; i < positions.length; i += 3) {
    const column = Math.min(width - 1, Math.floor((positions[i] - left) * across));
    const row = Math.min(height - 1, Math.floor((positions[i + 1] - bottom) * up));
    const inside = column >= 0 && row >= 0 && positions[i] <= right && positions[i + 1] <= top;
    if (inside) counts[(height - 1 - row) * width + column] += 1;
  }
  return counts;
}

// Maps of particles in the same window, on the scale of the original in the whole frame.
export class Maps {
  constructor(positions, frame, unit) {
    Object.assign(this, { positions, frame, unit });
    const counts = countsOf(positions, frame, ...this.grid(frame));
    const area = this.area(frame);
    [this.low, this.high] = [0.5 / area, Math.max(1, counts.reduce((a, b) => Math.max(a, b), 0)) / area];
  }

  grid([left, right, bottom, top]) {
    const longer = Math.max(right - left, top - bottom);
    return [right - left, top - bottom].map((length) => Math.max(1, Math.round((PIXELS * length) / longer)));
  }

  area(window) {
    const [width, height] = this.grid(window);
    return ((window[1] - window[0]) * (window[3] - window[2])) / (width * height);
  }

  picture(title, positions, window) {
    const [width, height] = this.grid(window);
    const counts = countsOf(positions, window, width, height);
    const [low, high] = [this.low, this.high].map((end) => Math.log(end * this.area(window)));
    const scale = 255 / (high - low);
    const levelOf = (count) => count && Math.min(255, Math.max(1, Math.round((Math.log(count) - low) * scale)));
    const few = Array.from({ length: 256 }, (_, count) => levelOf(count));
    const levels = new Uint8Array(counts.length);
    for (let i = 0; i < levels.length; i++) levels[i] = few[counts[i]] ?? levelOf(counts[i]);
    const unit = this.unit ? `particles per (${this.unit})²` : "particles per area";
    const ends = { colours: "density", low: this.low, high: this.high, logarithmic: true, unit };
    return pane(title, levels, width, height, window, { ...ends, counts, axes: axesOf(this.unit, "all along z") });
  }
}

// Where each halo is in the maps, and how large its circle is; members through the face of a periodic box count as near.
export function circlesOf(halos, positions, box) {
  const { first, members, labels } = halos;
  const places = new Float32Array(3 * labels.length);
  const wrapped = (distance, axis) => (box ? distance - box[axis] * Math.round(distance / box[axis]) : distance);
  labels.forEach((label, place) => {
    const own = members.subarray(first[place], first[place + 1]);
    const sums = [0, 0, 0];
    const squares = [0, 0, 0];
    for (const particle of own)
      for (let axis = 0; axis < 3; axis++) {
        const away = wrapped(positions[3 * particle + axis] - positions[3 * label + axis], axis);
        sums[axis] += away;
        squares[axis] += away * away;
      }
    const spread = squares.reduce((all, square, axis) => all + square / own.length - (sums[axis] / own.length) ** 2, 0);
    for (let axis = 0; axis < 2; axis++) {
      const centre = positions[3 * label + axis] + sums[axis] / own.length;
      places[3 * place + axis] = box ? centre - box[axis] * Math.floor(centre / box[axis]) : centre;
    }
    places[3 * place + 2] = OUTLINE * Math.sqrt(Math.max(spread, 0));
  });
  return places;
}

// Circles around the largest halos, in the look of their status.
export function haloMarks(halos, circles, status) {
  const drawn = Math.min(halos.labels.length, MOST_CIRCLES);
  return LOOKS.map(([kind, label, colour, dash, opacity]) => {
    const own = Array.from({ length: drawn }, (_, place) => place).filter((place) => status[place] === kind);
    const titles = own.map((place) => `halo ${place + 1}: ${halos.first[place + 1] - halos.first[place]} members, ${label}`);
    const places = Float32Array.from(own.flatMap((place) => [...circles.subarray(3 * place, 3 * place + 3)]));
    const look = { shape: "circles", colour, label, width: 1.4, dash, opacity, near: false };
    return { ...look, places, ids: Int32Array.from(own), titles };
  });
}
