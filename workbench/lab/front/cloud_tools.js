// The controls above a cloud and the legend below it. They show and set the traits of the widget; the view follows those.

import { element } from "./dom.js";

const KEYS = [
  ["drag, arrows", "turn"], ["wheel, + and −", "zoom (the wheel after a click)"], ["Shift + drag", "move"],
  ["double click", "set the centre"], ["0", "all again"], ["Space", "rotate, or stop"],
  ["Page Up, Page Down", "name halos by size"], ["click, Enter", "choose the halo that is named"],
];

export class Tools {
  constructor(model, parent, actions) {
    this.model = model;
    this.listeners = [];
    this.row = element("div", "wb-cloud-tools", parent);
    this.row.setAttribute("role", "toolbar");
    this.row.setAttribute("aria-label", "view of the cloud");
    this.choice("colouring", "colour by", { halo: "halo", status: "status", density: "density" });
    this.number("coloured", "coloured halos");
    this.range("point_size", "point size", 0.25, 4);
    this.range("opacity", "opacity", 0.05, 20);
    for (const [trait, name] of [["box", "box"], ["depth_cue", "depth cue"], ["changes", "changed members"]]) this.check(trait, name);
    this.turning = this.button("rotate", actions.rotate);
    this.button("reset", actions.reset);
    this.button("save PNG", actions.save);
    this.help = this.button("keys", () => this.showKeys(this.keys.hidden));
    this.keys = element("dl", "wb-cloud-keys", parent);
    for (const [key, meaning] of KEYS) {
      const entry = element("div", "", this.keys);
      element("dt", "", entry, key);
      element("dd", "", entry, meaning);
    }
    this.legend = element("div", "wb-cloud-legend");
    this.showKeys(false);
    this.listen("rotating", () => this.turning.setAttribute("aria-pressed", model.get("rotating")));
  }

  listen(trait, action) {
    this.model.on(`change:${trait}`, action);
    this.listeners.push([trait, action]);
    action();
  }

  close() {
    for (const [trait, action] of this.listeners) this.model.off(`change:${trait}`, action);
  }

  set(trait, value) {
    this.model.set(trait, value);
    this.model.save_changes();
  }

  labelled(trait, text) {
    const label = element("label", "", this.row, text);
    label.dataset.trait = trait;
    label.title = this.model.get("meanings")[text] ?? "";
    return label;
  }

  choice(trait, text, options) {
    const label = this.labelled(trait, text);
    const select = element("select", "", label);
    for (const [value, name] of Object.entries(options)) element("option", "", select, name).value = value;
    select.addEventListener("change", () => this.set(trait, select.value));
    this.listen(trait, () => (select.value = this.model.get(trait)));
  }

  number(trait, text) {
    const input = element("input", "", this.labelled(trait, text));
    Object.assign(input, { type: "number", min: 0, max: 999, step: 1 });
    input.addEventListener("change", () => {
      const value = Math.round(Number(input.value));
      if (input.value !== "" && value >= 0) this.set(trait, value);
      else input.value = this.model.get(trait);
    });
    this.listen(trait, () => (input.value = this.model.get(trait)));
  }

  // Logarithmic, as sizes and opacities are told apart by their ratio.
  range(trait, text, low, high) {
    const input = element("input", "", this.labelled(trait, text));
    Object.assign(input, { type: "range", min: Math.log2(low), max: Math.log2(high), step: 0.1 });
    input.addEventListener("input", () => this.set(trait, 2 ** Number(input.value)));
    this.listen(trait, () => {
      const value = this.model.get(trait);
      if (Math.abs(2 ** Number(input.value) - value) > 1e-9) input.value = Math.log2(value);
      input.setAttribute("aria-valuetext", `${Number(value.toPrecision(2))} times`);
    });
  }

  check(trait, text) {
    const label = this.labelled(trait, "");
    const input = element("input", "", label);
    input.type = "checkbox";
    label.append(text);
    label.title = this.model.get("meanings")[text] ?? "";
    input.addEventListener("change", () => this.set(trait, input.checked));
    this.listen(trait, () => (input.checked = this.model.get(trait)));
  }

  button(text, action) {
    const made = element("button", "", this.row, text);
    made.type = "button";
    made.title = this.model.get("meanings")[text] ?? "";
    made.addEventListener("click", action);
    return made;
  }

  showKeys(shown) {
    this.keys.hidden = !shown;
    this.help.setAttribute("aria-expanded", shown);
  }

  // What can be chosen for a scene, and what its colours mean.
  follow(scene, halos) {
    const compared = Boolean(halos.status);
    const changed = this.row.querySelector("[data-trait=changes]");
    changed.hidden = !compared;
    this.row.querySelector("option[value=status]").hidden = !compared;
    const [colouring, coloured] = [this.model.get("colouring"), this.model.get("coloured")];
    this.row.querySelector("[data-trait=coloured]").hidden = colouring !== "halo";
    this.legend.replaceChildren();
    if (colouring === "density") return this.entry("", "brighter: more particles, logarithmic", "wb-cloud-ramp");
    const { hues, none, status, other } = this.model.get("look");
    if (colouring === "status" && compared) {
      const counts = halos.words.map((_, which) => halos.status.reduce((sum, each) => sum + (each === which), 0));
      halos.words.forEach((word, which) => this.entry(status[word], `${word}: ${counts[which].toLocaleString("en")} halos`));
    } else {
      const seen = halos.inFrame();
      const shown = seen.slice(0, coloured);
      for (const number of shown.slice(0, hues.length)) {
        this.entry(halos.hue(number, coloured), `halo ${number}: ${halos.members[number - 1].toLocaleString("en")}`);
      }
      const more = shown.length - hues.length;
      if (more > 0) this.entry("", `the next ${more.toLocaleString("en")}, in the same hues`, "wb-cloud-more");
      if (seen.length > shown.length) this.entry(other, `${(seen.length - shown.length).toLocaleString("en")} other halos`);
    }
    this.entry(none, "in no halo");
    if (compared && this.model.get("changes")) {
      this.entry("", "left its halo", "wb-cloud-left");
      this.entry("", "joined a halo", "wb-cloud-joined");
    }
  }

  entry(hue, text, kind = "") {
    const entry = element("span", "wb-cloud-entry", this.legend);
    const sample = element("i", kind, entry);
    if (hue) sample.style.background = `#${hue}`;
    entry.append(text);
  }
}
