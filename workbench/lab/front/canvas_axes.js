// Ticks with numbers along the left and the lower edge, names with units, and a scale bar when zoomed far in: as lines and
// texts that are drawn as SVG on the page and by the same numbers in a saved picture.

import { drawn as svg } from "./dom.js";
import { roundStep, textOf, ticksBetween } from "./ticks.js";

export const LEFT = 48; // pixels of the margins
export const INNER = 6; // at the left of a picture beside another one with the same axis
export const BELOW = 18;
const LETTER = 6; // pixels, about, of a digit
const LINE = 11; // of a row of text
const DEEP = 4; // how many times smaller than everything a window is that gets a scale bar
const FAR = 1e5; // ticks of more digits than this are written as distances from a round number

// Ticks between two ends, and the round number that they are distances from (0 unless they would be too long).
export function ticksOf(low, high, most) {
  const step = roundStep((high - low) / Math.max(1, most));
  const size = Math.max(Math.abs(low), Math.abs(high));
  const from = size / step > FAR ? Math.floor(low / (100 * step)) * 100 * step : 0;
  const distances = ticksBetween(low - from, high - from, false, Math.max(1, most));
  return { from, ticks: distances.map((distance) => ({ place: from + distance, text: textOf(distance, distances) })) };
}

// Those that Python names, for places that are no numbers, or those of the numbers.
const ticksAlong = (given, low, high, most) =>
  given?.length ? { from: 0, ticks: given.filter(([place]) => place > low && place < high).map(([place, text]) => ({ place, text })) } : ticksOf(low, high, most);

function named(name, unit, from) {
  const offset = from ? ` − ${Number(from.toPrecision(12))}` : "";
  return unit ? `${name} [${unit}]${offset}` : `${name}${offset}`;
}

// The name of the vertical axis: above its ticks if it is short, the unit being that of the other axis; else along it.
function upName(axes, from) {
  if (!axes.up) return [];
  if (axes.up.length <= 6 && !from) return [{ x: -7, y: 9, text: axes.up, anchor: "end", strong: true }];
  return [{ x: 11 - LEFT, y: 0, text: named(axes.up, axes.unit, from), anchor: "end", strong: true, turn: -90 }];
}

// What is drawn around a picture of this size, whose upper left corner is the origin.
export function axisShapes(placing, width, height, axes, home) {
  const [left, top] = placing.from(0, 0);
  const [right, bottom] = placing.from(width, height);
  const lines = [];
  const texts = [];
  const across = ticksAlong(axes.ticks[0], left, right, width / 75);
  const name = named(axes.across, axes.unit, across.from);
  const free = width - LETTER * (name.length + 1.5);
  let taken = -Infinity; // up to where there is text
  for (const { place, text } of across.ticks) {
    const x = placing.x(place);
    lines.push([x, height, x, height + 4]);
    const half = (LETTER * text.length) / 2;
    if ((name && x + half > free) || x - half < taken) continue;
    taken = x + half + LETTER / 2;
    texts.push({ x: Math.min(Math.max(x, half - LEFT + 2), width - half), y: height + 14, text, anchor: "middle" });
  }
  if (name) texts.push({ x: width, y: height + 14, text: name, anchor: "end", strong: true });
  const up = ticksAlong(axes.ticks[1], bottom, top, height / 45);
  const title = upName(axes, up.from);
  let last = Infinity;
  for (const { place, text } of up.ticks) {
    const y = placing.y(place);
    lines.push([-4, y, 0, y]);
    if ((title.some(({ turn }) => !turn) && y < 20) || Math.abs(y - last) < LINE) continue;
    last = y;
    texts.push({ x: text.length > 6 ? -5 : -7, y: Math.min(Math.max(y + 4, 8), height), text, anchor: "end" });
  }
  texts.push(...title);
  return { lines, texts, bar: scaleBar(placing, width, height, axes, home) };
}

// The same without the numbers of the vertical axis.
export function withoutLeft({ lines, texts, bar }) {
  return { lines, texts: texts.filter(({ x }) => x >= 0), bar };
}

function scaleBar(placing, width, height, axes, home) {
  const wide = width / placing.scale;
  if (!(home[1] - home[0] > DEEP * wide)) return null;
  const length = roundStep(wide / 8);
  const x = width - 12 - length * placing.scale;
  const text = `${textOf(length, [length])} ${axes.unit}`.trim();
  return { x, y: height - 12, width: length * placing.scale, text };
}

const place = (number) => number.toFixed(1);

export function drawAxes(root, shapes, left = LEFT) {
  root.replaceChildren();
  const moved = svg("g", root, { transform: `translate(${left} 0)` });
  const path = shapes.lines.map(([x, y, u, v]) => `M${place(x)} ${place(y)}L${place(u)} ${place(v)}`).join("");
  svg("path", moved, { d: path, stroke: "currentColor", fill: "none" });
  for (const { x, y, text, anchor, strong, turn } of shapes.texts) {
    const look = { "text-anchor": anchor, fill: "currentColor", ...(strong ? { "font-weight": 600 } : {}) };
    const at = { transform: `translate(${place(x)} ${place(y)})${turn ? ` rotate(${turn})` : ""}` };
    svg("text", moved, { ...at, ...look }, text);
  }
  if (shapes.bar) drawBar(moved, shapes.bar);
  return moved;
}

function drawBar(root, { x, y, width, text }) {
  const path = `M${place(x)} ${y - 4}v8m0 -4h${place(width)}m0 -4v8`;
  svg("path", root, { d: path, fill: "none", stroke: "#000", "stroke-width": 4 });
  svg("path", root, { d: path, fill: "none", stroke: "#fff", "stroke-width": 1.6 });
  const look = { "text-anchor": "middle", fill: "#fff", stroke: "#000", "stroke-width": 3, "paint-order": "stroke" };
  svg("text", root, { x: place(x + width / 2), y: y - 8, ...look }, text);
}

// A small cross where the pointer is in another picture.
export function drawCross(root, x, y) {
  const path = `M${place(x - 7)} ${place(y)}h14M${place(x)} ${place(y - 7)}v14`;
  svg("path", root, { d: path, fill: "none", stroke: "#000", "stroke-width": 3 });
  svg("path", root, { d: path, fill: "none", stroke: "#fff", "stroke-width": 1.2 });
}
