// One picture: its elements on the page, what was sent for it, and its description in words.

import { BELOW, LEFT, axisShapes, drawAxes, drawCross, withoutLeft } from "./canvas_axes.js";
import { drawn, element } from "./dom.js";
import { imageOf, levelsOf, limitsOf, mapOf, scaleColours, shown } from "./canvas_values.js";

let count = 0;

export class Pane {
  constructor(number, parent, helpId) {
    this.number = number;
    this.marks = [];
    this.box = element("div", "wb-pane", parent, { role: "group" });
    const head = (this.head = element("div", "wb-head", this.box));
    this.name = element("span", "wb-name", head);
    this.depth = element("span", "wb-depth", head);
    this.reading = element("span", "wb-reading", head);
    this.frame = element("div", "wb-frame", this.box);
    this.canvas = element("canvas", "wb-picture", this.frame, {
      role: "application", tabIndex: 0, "aria-roledescription": "picture", "aria-describedby": helpId, "data-pane": number,
      "data-drawn": 0,
    });
    const layer = drawn("svg", this.frame, { class: "wb-axes", "aria-hidden": "true" });
    [this.axes, this.crossed] = [drawn("g", layer, {}), drawn("g", layer, {})];
    this.beside = element("div", "wb-beside", this.frame, { hidden: true });
    const foot = (this.foot = element("div", "wb-foot", this.box));
    this.low = element("span", "", foot);
    this.bar = element("canvas", "wb-bar", foot, { width: 256, height: 1, "aria-hidden": "true" });
    this.high = element("span", "", foot);
    this.unit = element("span", "wb-unit", foot);
    this.unit.id = `wb-unit-${(count += 1)}`;
    this.edge(LEFT);
  }

  // The width of the margin at the left, which is narrow where the picture before has the same axis.
  edge(left) {
    if (left === this.left) return;
    this.left = left;
    this.frame.style.padding = `0 0 ${BELOW}px ${left}px`;
    this.head.style.marginLeft = this.foot.style.marginLeft = `${left}px`;
    this.framed = "";
  }

  receive(sent) {
    this.sent = sent;
    this.levels = levelsOf(sent);
    this.gaps = undefined;
    this.coloured = "";
    this.framed = "";
    this.name.textContent = this.name.title = sent.title;
    this.depth.textContent = this.depth.title = sent.axes.depth;
    this.box.setAttribute("aria-label", sent.title);
    this.fresh = true;
  }

  // Colours and colour bar; made again only when they differ.
  colour(first, tables, settings) {
    const limits = limitsOf(this, first, settings);
    const coloured = `${limits} ${mapOf(this.sent, settings)}`;
    if (coloured === this.coloured) return;
    this.coloured = coloured;
    this.limits = limits;
    this.image = imageOf(this, tables, settings);
    const bar = new Uint8ClampedArray(scaleColours(this.sent, tables, settings).buffer);
    this.bar.getContext("2d").putImageData(new ImageData(bar, 256, 1), 0, 0);
    [this.low.textContent, this.high.textContent] = this.ends();
    this.unit.textContent = this.caption();
    this.foot.style.display = this.sent.low === this.sent.high ? "none" : "";   // a picture of points alone
    this.framed = "";
  }

  // The ends of the colour bar; values beyond them have the last colour.
  ends() {
    const [low, high] = this.limits;
    const { sent } = this;
    return [`${low > sent.low ? "≤ " : ""}${shown(low)}`, `${high < sent.high ? "≥ " : ""}${shown(high)}`];
  }

  hasGaps() {
    this.gaps ??= this.sent.empty && this.levels.includes(0);
    return this.gaps;
  }

  caption() {
    const { quantity, unit, logarithmic } = this.sent;
    const named = quantity && unit ? `${quantity} [${unit}]` : quantity || unit;
    return [named, logarithmic ? "log scale" : ""].filter(Boolean).join(", ");
  }

  description() {
    const { sent } = this;
    const range = `${this.caption() || "values"} from ${this.ends().join(" to ")}`;
    return [`${sent.title}: ${range}`, sent.axes.depth, this.window].filter(Boolean).join("; ");
  }

  // Ticks, and the description that has the window; made again only when they differ.
  frameFor(placing, home) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [left, top] = placing.from(0, 0);
    const [right, bottom] = placing.from(width, height);
    const framed = [left, right, bottom, top, width, height].join();
    if (framed === this.framed) return;
    this.framed = framed;
    const { axes } = this.sent;
    const shapes = axisShapes(placing, width, height, axes, home);
    drawAxes(this.axes, this.left === LEFT ? shapes : withoutLeft(shapes), this.left);
    const along = (name, from, to) => `${name} ${shown(from)} to ${shown(to)} ${axes.unit}`.trim();
    this.window = `${along(axes.across || "x", left, right)}, ${along(axes.up || "y", bottom, top)}`;
    this.canvas.setAttribute("aria-label", this.description());
  }

  cross(placing, x, y) {
    this.crossed.replaceChildren();
    if (placing) drawCross(this.crossed, placing.x(x) + this.left, placing.y(y));
  }
}
