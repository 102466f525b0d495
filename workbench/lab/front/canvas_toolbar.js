// The tools of pictures: which of them is in front, zoom, colours, saving, help, and what is under the pointer; and the legend,
// whose entries switch layers on and off. All settings are looks of the page, so that every view and a reloaded page agree.

import { Help, Tabs, choice, element, keepKeys, labelled, pushButton, sheet } from "./dom.js";
import { KEYS, zoomByStep } from "./canvas_input.js";
import { paintSample } from "./canvas_marks.js";
import { savedAs } from "./canvas_saving.js";
import { NO_VALUE, shown } from "./canvas_values.js";

const MAPS = [
  ["", "as suggested"],
  ["density", "dark to bright"],
  ["values", "blue to yellow"],
  ["viridis", "viridis"],
  ["grey", "grey"],
];
const LIMITS = [
  ["", "as suggested"],
  ["full", "the whole range"],
  ["1-99", "1 to 99 percent"],
  ["0.1-99.9", "0.1 to 99.9 percent"],
  ["typed", "typed"],
];
const ABOUT = "Drag to move, double click to show everything. A click chooses the mark that is named above the picture.";

export class Toolbar {
  constructor(view) {
    this.view = view;
    this.row = element("div", "wb-toolbar", view.channel.bar ?? view.root, { role: "toolbar", "aria-label": "pictures" });
    this.tabs = new Tabs(this.row, "picture", (number) => view.turnTo(number));
    pushButton(this.row, "−", "zoom out", () => zoomByStep(view, false));
    pushButton(this.row, "+", "zoom in", () => zoomByStep(view, true));
    pushButton(this.row, "reset", "show everything", () => view.reset());
    keepKeys(this.row);
    this.blink = pushButton(this.row, "blink", view.channel.content.words.blink, () => view.set({ blink: !view.settings.blink }));
    this.blink.setAttribute("aria-label", "blink");
    this.addColours();
    this.saving = sheet(this.row, "save picture", "save a picture as PNG or SVG");
    this.saving.root.addEventListener("toggle", () => this.listPictures());
    const asked = pushButton(this.row, "?", "keys of a picture", () => this.help.toggle());
    asked.title = KEYS.map(([key, meaning]) => `${key}: ${meaning}`).join("\n");
    this.help = new Help(view.root, "keys of a picture", KEYS, ABOUT);
    view.place = element("output", "wb-place", this.row, { "aria-live": "off" });
  }

  addColours() {
    const { view } = this;
    this.colours = sheet(this.row, "colours", "colour map, and the values at its ends");
    const { content } = this.colours;
    this.map = choice(content, "colour map", MAPS);
    this.map.addEventListener("change", () => view.set({ colour_map: this.map.value }));
    this.limits = choice(content, "limits", LIMITS);
    this.limits.addEventListener("change", () => this.type(this.limits.value));
    this.ends = ["from", "to"].map((text) => labelled(content, text, element("input", "wb-end", null, { type: "text" })));
    for (const end of this.ends) end.addEventListener("change", () => this.type("typed"));
    const box = element("input", "", null, { type: "checkbox" });
    this.locked = labelled(content, "same limits for original and decoded", box);
    this.locked.addEventListener("change", () => view.set({ locked: this.locked.checked }));
    const words = view.channel.content.words;
    this.map.title = words["colour map"];
    this.locked.title = words["locked limits"];
    for (const control of [this.limits, ...this.ends]) control.title = words["colour limits"];
  }

  type(limits) {
    if (limits !== "typed") return this.view.set({ limits });
    const typed = this.ends.map((end) => Number(end.value.trim().replaceAll("−", "-") || NaN));
    const { logarithmic } = this.view.panes[0].sent;
    const usable = typed.every(Number.isFinite) && typed[0] < typed[1] && !(logarithmic && typed[0] <= 0);
    for (const end of this.ends) end.setAttribute("aria-invalid", String(!usable));
    if (usable) return this.view.set({ limits, typed });
    return this.view.say(`limits must be two numbers, the lower one first${logarithmic ? ", above zero" : ""}`);
  }

  // The settings as they are now, in the controls.
  show(settings, limits) {
    this.showTabs();
    this.blink.hidden = !this.view.seen.some((pane) => this.view.partner(pane));
    this.colours.root.hidden = this.view.bare;
    this.blink.setAttribute("aria-pressed", String(settings.blink));
    this.map.value = settings.colours;
    this.limits.value = settings.limits;
    this.locked.checked = settings.locked;
    this.ends.forEach((end, number) => {
      if (end.getAttribute("aria-invalid") === "true" && settings.limits !== "typed") return;
      end.setAttribute("aria-invalid", "false");
      if (limits && document.activeElement !== end) end.value = shown(limits[number], 6);
    });
  }

  // The titles of pictures in one place, of which one is in front.
  showTabs() {
    const { front, panes } = this.view;
    const titles = front === null ? [] : panes.map(({ sent }) => sent.title);
    this.tabs.root.hidden = !titles.length;
    this.tabs.show(titles, front);
  }

  listPictures() {
    const { content, root } = this.saving;
    content.replaceChildren();
    if (!root.open) return;
    for (const pane of this.view.panes) {
      const row = element("div", "wb-saved", content, { textContent: pane.sent.title });
      const ways = [["PNG", "png", 1], ["PNG, 2x", "png", 2], ["SVG", "svg", 2]];
      for (const [label, format, scale] of ways) {
        const title = `save ${pane.sent.title} as ${label}`;
        pushButton(row, label, title, () => savedAs(this.view, pane, format, scale));
      }
    }
  }
}

export class Legend {
  constructor(view) {
    this.view = view;
    this.root = element("div", "wb-legend", view.channel.legends ?? view.root, { role: "group", "aria-label": `layers ${view.channel.name}` });
    keepKeys(this.root);
    this.listed = "";
  }

  // Entries are made anew only when they differ, so that one that has the focus keeps it while a slider moves.
  show(settings) {
    const marks = new Map();
    for (const pane of this.view.panes)
      for (const mark of pane.marks) if (mark.label && !marks.has(mark.label)) marks.set(mark.label, mark);
    const gaps = this.view.panes.some((pane) => pane.hasGaps());
    const looks = [...marks.values()].map(({ label, colour, dash, shape }) => [label, colour, dash, shape]);
    const listed = JSON.stringify([looks, gaps]);
    if (this.listed !== listed) this.list([...marks.values()], gaps);
    this.listed = listed;
    for (const box of this.root.querySelectorAll("input[type=checkbox]"))
      box.checked = !settings.hidden.includes(box.value);
    if (this.opacity) this.opacity.value = settings.opacity;
  }

  list(marks, gaps) {
    const { name } = this.view.channel;
    this.root.replaceChildren();
    if (name && marks.length) element("span", "wb-legend-name", this.root, name);
    for (const mark of marks) {
      const entry = element("label", "wb-entry", this.root, { title: this.view.channel.content.words.layer });
      const box = element("input", "", entry, { type: "checkbox", value: mark.label });
      box.addEventListener("change", () => this.toggle(mark.label, box.checked));
      const sample = element("canvas", "wb-sample", entry, { width: 60, height: 24 });
      const context = sample.getContext("2d");
      context.scale(2, 2);
      paintSample(context, mark, 30, 12);
      entry.append(mark.label);
    }
    if (gaps) {
      const entry = element("span", "wb-entry", this.root);
      element("span", "wb-swatch", entry).style.background = NO_VALUE;
      entry.append("no value");
    }
    this.opacity = null;
    if (!marks.length || name) return; // a close-up has nothing beneath its marks
    const title = this.view.channel.content.words.opacity;
    const slider = element("input", "wb-opacity", null, { type: "range", min: 0.1, max: 1, step: 0.1, title });
    this.opacity = labelled(this.root, "opacity", slider);
    slider.addEventListener("input", () => this.view.set({ opacity: Number(slider.value) }));
  }

  toggle(label, wanted) {
    const others = this.view.settings.hidden.filter((hidden) => hidden !== label);
    this.view.set({ hidden: wanted ? others : [...others, label] });
  }
}
