// A slider for an error bound, in equal steps of its logarithm, with a field for any number. Where only some bounds are
// known, the slider goes from one to the next.

import { element } from "./dom.js";
import { shown } from "./canvas_values.js";

const STEPS = 200;

export class BoundControl {
  constructor(parent, label, unit, changed) {
    this.changed = changed;
    const row = element("div", "wb-control-row", parent);
    const id = `bound-${Math.random().toString(36).slice(2)}`;
    element("label", "wb-control-name", row, { htmlFor: id, textContent: label });
    this.slider = element("input", "", row, { id, type: "range", min: 0, max: STEPS, step: 1 });
    this.entry = element("input", "", row, { type: "text", inputMode: "decimal", ariaLabel: `${label}, typed` });
    element("span", "wb-control-unit", row, unit);
    this.slider.addEventListener("input", () => this.take(this.boundAt(Number(this.slider.value))));
    this.entry.addEventListener("change", () => this.type());
  }

  // The range of bounds, or the only ones; and the one to begin with.
  offer({ least, most, only = null }, bound) {
    Object.assign(this, { least, most, only });
    this.slider.max = only ? only.length - 1 : STEPS;
    this.entry.disabled = Boolean(only);
    this.show(only ? this.boundAt(this.nearest(bound)) : bound);
  }

  boundAt(step) {
    return this.only ? this.only[step] : this.least * (this.most / this.least) ** (step / STEPS);
  }

  nearest(bound) {
    const away = (step) => Math.abs(Math.log(this.boundAt(step) / bound));
    return this.only.reduce((best, _, step) => (away(step) < away(best) ? step : best), 0);
  }

  show(bound) {
    this.bound = bound;
    const step = this.only ? this.nearest(bound) : (STEPS * Math.log(bound / this.least)) / Math.log(this.most / this.least);
    this.slider.value = step;
    this.entry.value = String(Number(bound.toPrecision(4)));
    this.slider.setAttribute("aria-valuetext", shown(bound));
    this.entry.removeAttribute("aria-invalid");
    this.entry.setCustomValidity("");
  }

  take(bound) {
    this.show(bound);
    this.changed(bound);
  }

  type() {
    const bound = Number(this.entry.value);
    if (Number.isFinite(bound) && bound > 0) {
      this.take(bound);
      return;
    }
    this.entry.setAttribute("aria-invalid", "true");
    this.entry.setCustomValidity(`An error bound is a number above 0, such as 0.02. The page shows ${shown(this.bound)}.`);
    this.entry.reportValidity();
  }
}
