// The controls above a cloud and the legend below it. They show and set the state of the view.

import { Help, counted, element, keepKeys, pushButton } from "./dom.js";

const KEYS = [
  ["drag, arrows", "turn"], ["wheel, + and −", "zoom (the wheel after a click)"], ["Shift + drag", "move"],
  ["double click", "set the centre"], ["0", "all again"], ["Space", "rotate, or stop"],
  ["Page Up, Page Down", "name halos by size"], ["click, Enter", "choose the halo that is named"], ["?", "this help"],
];
const COLOURINGS = ["halo", "status", "density"];
const CONTROLS = { // ranges are logarithmic, as sizes and opacities are told apart by their ratio
  colouring: ["colour by", "select", {}],
  coloured: ["coloured halos", "input", { type: "number", min: 0, max: 999, step: 1 }],
  point_size: ["point size", "input", { type: "range", min: -2, max: 2, step: 0.1 }],
  opacity: ["opacity", "input", { type: "range", min: Math.log2(0.05), max: Math.log2(20), step: 0.1 }],
  box: ["box", "input", { type: "checkbox" }],
  depth_cue: ["depth cue", "input", { type: "checkbox" }],
  changes: ["changed members", "input", { type: "checkbox" }],
};
const valueOf = {
  checkbox: (input) => input.checked, range: (input) => 2 ** Number(input.value), "select-one": (input) => input.value,
  number: (input) => (input.value !== "" && Number(input.value) >= 0 ? Math.round(Number(input.value)) : undefined),
};

export class Tools {
  constructor(view) {
    this.view = view;
    this.row = element("div", "wb-toolbar wb-cloud-tools", view.root, { role: "toolbar", "aria-label": "view of the cloud" });
    keepKeys(this.row);
    this.inputs = Object.entries(CONTROLS).map(([name, control]) => this.control(name, ...control));
    for (const name of COLOURINGS) element("option", "", this.input("colouring"), { value: name, textContent: name });
    this.turning = pushButton(this.row, "rotate", "rotate", () => view.turn(!view.state.rotating));
    pushButton(this.row, "reset", "reset", () => view.reset());
    pushButton(this.row, "save PNG", "save PNG", () => view.save());
    pushButton(this.row, "?", "keys of a cloud", () => this.help.toggle());
    this.help = new Help(view.root, "keys of a cloud", KEYS);
    this.legend = element("div", "wb-legend");
  }

  control(name, text, tag, properties) {
    const title = this.view.channel.content.meanings[text] ?? "";
    const label = element("label", "wb-entry", this.row, { title });
    label.dataset.trait = name;
    const input = element(tag, "", null, { ...properties, name });
    label.append(...(input.type === "checkbox" ? [input, text] : [text, input]));
    input.addEventListener(input.type === "range" ? "input" : "change", () => {
      const value = valueOf[input.type](input);
      if (value === undefined) this.show(this.view.state);
      else this.view.choose({ [name]: value });
    });
    return input;
  }

  input(name) {
    return this.inputs.find((input) => input.name === name);
  }

  show(state) {
    for (const input of this.inputs) {
      const value = state[input.name];
      if (input.type === "checkbox") input.checked = value;
      else if (input.type !== "range") input.value = value;
      else if (Math.abs(valueOf.range(input) - value) > 1e-9) input.value = Math.log2(value);
      if (input.type === "range") input.setAttribute("aria-valuetext", `${Number(value.toPrecision(2))} times`);
    }
    this.turning.setAttribute("aria-pressed", state.rotating);
    this.follow(state, this.view.halos);
  }

  // What can be chosen for a scene, and what its colours mean.
  follow({ colouring, coloured, changes }, halos) {
    const compared = Boolean(halos.status);
    this.input("changes").parentElement.hidden = !compared;
    this.input("colouring").options[1].hidden = !compared;
    this.input("coloured").parentElement.hidden = colouring !== "halo";
    this.legend.replaceChildren();
    if (colouring === "density") return this.entry("", "brighter: more particles, logarithmic", "wb-cloud-ramp");
    const { hues, none, status, other } = halos.shading;
    if (colouring === "status" && compared) {
      const counts = halos.words.map((_, which) => halos.status.reduce((sum, each) => sum + (each === which), 0));
      halos.words.forEach((word, which) => this.entry(status[word], `${word}: ${counted(counts[which])} halos`));
    } else {
      const seen = halos.inFrame();
      const shown = seen.slice(0, coloured);
      for (const number of shown.slice(0, hues.length)) {
        this.entry(halos.hue(number, coloured), `halo ${number}: ${counted(halos.members[number - 1])}`);
      }
      const more = shown.length - hues.length;
      if (more > 0) this.entry("", `the next ${counted(more)}, in the same hues`, "wb-cloud-more");
      if (seen.length > shown.length) this.entry(other, `${counted(seen.length - shown.length)} other halos`);
    }
    this.entry(none, "in no halo");
    if (!compared || !changes) return undefined;
    this.entry("", "left its halo", "wb-cloud-left");
    return this.entry("", "joined a halo", "wb-cloud-joined");
  }

  entry(hue, text, kind = "") {
    const entry = element("span", "wb-entry", this.legend);
    const sample = element("i", `wb-cloud-sample ${kind}`, entry);
    if (hue) sample.style.background = `#${hue}`;
    entry.append(text);
  }
}
