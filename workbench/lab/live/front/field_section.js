// A field: original, decoded and error, the histogram of errors, and the size.

import { counted, drawn, element } from "./dom.js";
import { shown } from "./canvas_values.js";
import { BoundControl } from "./bound_control.js";
import { errorsOf, estimatedSize, rangeOf, rounded, stepFor } from "./field.js";
import { errorPicture, valuePicture } from "./pictures.js";
import { Section } from "./section.js";

const BINS = 64;
const [SMALLEST, LARGEST, FIRST] = [1e-6, 0.2, 1e-2]; // bounds, in the range of the values

export class FieldSection extends Section {
  constructor(parent, title, subject, common, { values, shape, type, unit = "", start }) {
    super(parent, title, subject, common);
    Object.assign(this, { values, shape, type, unit, range: rangeOf(values) });
    this.plane = shape.slice(-2);
    this.slice = shape.length > 2 ? Math.floor(shape[0] / 2) : 0;
    const span = this.range.high - this.range.low || this.range.largest || 1;
    this.original = valuePicture("original", this.cut(values), this.plane, this.range);
    const changed = () => this.soon(() => this.update());
    this.control = new BoundControl(this.controls, "error bound of each value", unit, changed);
    this.histogram = element("figure", "wb-live-histogram", this.below);
    this.control.offer({ least: SMALLEST * span, most: LARGEST * span }, start ?? FIRST * span);
    this.update();
  }

  cut(values) {
    const size = this.plane[0] * this.plane[1];
    return values.subarray(this.slice * size, (this.slice + 1) * size);
  }

  update() {
    const { bound } = this.control;
    const step = stepFor(this.type, this.range.largest, bound);
    if (!step) {
      this.answer.textContent = "This bound is too small for this page, which takes 2³¹ steps from zero. " +
        "The pictures are those of the bound before.";
      return;
    }
    const [numbers, found] = rounded(this.values, step);
    const bytes = estimatedSize(numbers, this.shape);
    const errors = errorsOf(this.values, found, bound, BINS);
    const { count } = this.range;
    const width = 8 * this.values.BYTES_PER_ELEMENT;
    const size = `${((8 * bytes) / count).toFixed(2)} bits a value, ${shown((width * count) / 8 / bytes, 3)} times smaller`;
    const typical = `a typical one (root mean square) ${shown(errors.typical)} ${this.unit}`.trim();
    this.answer.textContent = `${size}. The largest error is ${shown(errors.most)}, ${typical}.`;
    this.note.textContent = [
      this.shape.length > 2 ? `Slice ${this.slice} of ${this.shape[0]} along the first axis is shown; figures are for all.` : "",
      "Values are those of the codec “prequantised”; its size is estimated, within 2% on the fields that it was tested with.",
      count < this.values.length ? `${counted(this.values.length - count)} values are missing; where, is not in the size.` : "",
    ].filter(Boolean).join(" ");
    this.found = this.cut(found);
    const pictures = [
      this.original, valuePicture("decoded", this.found, this.plane, this.range),
      errorPicture(this.cut(this.values), this.found, this.plane, bound),
    ];
    this.draw(pictures, [], [0, this.plane[1], 0, this.plane[0]]);
    this.drawHistogram(errors.often, bound);
  }

  drawHistogram(often, bound) {
    const most = Math.max(1, ...often);
    const label = "how often each error occurs, from minus the bound to the bound";
    const svg = drawn("svg", null, { viewBox: "0 0 640 120", role: "img", "aria-label": label });
    often.forEach((count, bin) => {
      const height = (90 * count) / most;
      drawn("rect", svg, { x: bin * 10 + 0.5, y: 95 - height, width: 9, height });
    });
    [[0, "start", -bound], [320, "middle", 0], [640, "end", bound]].forEach(([x, anchor, value]) =>
      drawn("text", svg, { x, y: 112, "text-anchor": anchor }, shown(value)));
    this.histogram.replaceChildren(element("figcaption", "wb-note", null, "errors, decoded − original, within the bound"), svg);
  }

  read(x, y) {
    const at = Math.floor(y) * this.plane[1] + Math.floor(x);
    const [original, found] = [this.cut(this.values)[at], this.found[at]];
    if (original === undefined) return { values: [], place: "" };
    const values = [original, found, found - original].map((value) => shown(value, 6));
    return { values, place: `value [${Math.floor(y)}, ${Math.floor(x)}]` };
  }
}
