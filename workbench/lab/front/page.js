// A panel: its parts, where they are, and what is around them. Parts are drawn by a class for each kind, which has `show`, and
// `hear` for messages that are no content.

import { Button, Copy, Download, Html, Report, Saving, Words } from "./buttons.js";
import { Canvas } from "./canvas.js";
import { ChartView } from "./charts.js";
import { Cloud } from "./cloud.js";
import { Connection } from "./connection.js";
import { Control } from "./controls.js";
import { element, panelButton } from "./dom.js";
import { Drawers } from "./drawers.js";
import { Fitting } from "./fitting.js";
import { Graph } from "./graph.js";
import { storeOf } from "./store.js";

const KINDS = {
  "": Html, button: Button, canvas: Canvas, chart: ChartView, choice: Control, cloud: Cloud, copy: Copy, download: Download,
  drawers: Drawers, graph: Graph, report: Report, saving: Saving, slider: Control, text: Control,
  toggle: Control, words: Words,
};
const STEPS = [
  ["undo", "↶", "undo the last change (Ctrl+Z)", "back"],
  ["redo", "↷", "redo it (Ctrl+Shift+Z)", "forth"],
];

// What a part knows of its page.
class Channel {
  constructor(view, key) {
    [this.view, this.key] = [view, key];
    this.front = view.store.front;
    this.bar = key === "canvas" ? view.bar : undefined; // a place for tools,
    this.legends = view.bar; // and for what marks mean
    this.name = key === "detail" ? "close-up" : "";
  }

  get content() {
    return this.view.store.parts[this.key];
  }

  get settings() {
    return this.view.store.settings(this.key);
  }

  set(settings) {
    this.view.store.set(this.key, settings);
  }

  askAll() {
    this.view.store.askAll();
  }

  send(message) {
    this.view.store.send(this.key, message);
  }

  waits(control, unanswered) {
    this.view.connection?.waits(control, unanswered);
  }

  keys(key, action, except) {
    this.view.keys.push({ key, action, except });
  }
}

// Parts by key, each in an element of its own.
class Parts {
  constructor(store) {
    this.store = store;
    this.parts = new Map();
    this.keys = [];
  }

  place(key) {
    if (!this.parts.has(key)) {
      const place = element("div", "wb-part");
      this.parts.set(key, { place, part: new KINDS[this.store.parts[key].kind](new Channel(this, key), place) });
    }
    return this.parts.get(key).place;
  }

  show(keys) {
    for (const [key, { part, place }] of this.parts) {
      if (this.store.parts[key]) continue;
      part.close?.();
      place.remove();
      this.parts.delete(key);
    }
    for (const key of keys) {
      const there = this.parts.get(key);
      if (!there) continue;
      there.place.hidden = this.store.parts[key].hidden;
      there.part.show(this.store.parts[key]);
    }
  }

  hear(key, message, buffers) {
    this.parts.get(key)?.part.hear?.(message, buffers);
  }

  restyle() {
    for (const { part } of this.parts.values()) part.restyle?.();
  }

  close() {
    this.store.leave(this);
    for (const { part } of this.parts.values()) part.close?.();
  }
}

const recall = (key) => {
  try {
    return localStorage.getItem(key) === "true";
  } catch {
    return false; // storage may be forbidden
  }
};

const remember = (key, value) => {
  try {
    localStorage.setItem(key, value);
  } catch {
    return; // it is remembered as long as the page lives
  }
};

class Panel extends Parts {
  constructor(store, el) {
    super(store);
    this.root = el;
    el.classList.add("wb-panel", store.parts.frame.live);
    this.above = element("div", "wb-above", el);
    this.addTitle();
    this.above.append(this.place("overview"));
    this.unfolded = element("div", "wb-rows wb-unfolded", this.above);
    this.folded = element("div", "wb-rows wb-folded", this.above, { hidden: true });
    this.content = element("div", "wb-content", el);
    this.addContent();
    this.foot = element("div", "wb-saving", el);
    this.footRows = element("div", "wb-rows", this.foot);
    for (const key of ["copy", "report", "download-report"]) this.foot.append(this.place(key));
    this.areas = { above: this.unfolded, folded: this.folded, top: this.top, answer: this.answerRows, over: this.over, pictures: this.instead, detail: this.beneath, side: this.sideRows, strip: this.stripRows, foot: this.footRows };
    this.press = this.press.bind(this);
    document.addEventListener("keydown", this.press, true); // before the notebook, which has these keys too
    store.enter(this);
    this.connection = new Connection(this);
    this.fitting = new Fitting(this);
  }

  addTitle() {
    const { title } = this.store.parts.frame;
    const row = element("div", "wb-title-row", this.above);
    element("b", "wb-title", row, title);
    this.status = element("span", "wb-status", row);
    this.progress = element("progress", "wb-progress", row, { max: 1, "aria-label": "progress" });
    this.cancel = panelButton("wb-cancel", row, "cancel", "stop the running work", () => this.does("cancel"));
    const key = `lossbench.unfolded.${title}`;
    this.more = panelButton("wb-more", row, "", "", () => this.unfold(this.folded.hidden, key));
    this.unfold(recall(key));
    this.steps = STEPS.map(([step, sign, explained]) => {
      const button = panelButton(`wb-${step}`, row, sign, explained, () => this.does(step));
      button.setAttribute("aria-label", step);
      return button;
    });
  }

  unfold(unfolded, key = "") {
    this.wanted = unfolded;
    if (this.folded) this.folded.hidden = !unfolded;
    this.more.setAttribute("aria-expanded", unfolded);
    this.more.textContent = `${unfolded ? "▾" : "▸"} more controls`;
    if (key) remember(key, unfolded);
  }

  addContent() {
    const { content } = this;
    this.top = element("div", "wb-rows wb-top", content);
    this.answer = element("div", "wb-figures", content);
    this.answer.append(this.place("answer"));
    this.answerRows = element("div", "wb-rows", this.answer);
    this.all = element("details", "wb-all", this.answer);
    element("summary", "", this.all, "all figures");
    this.plain = element("div", "", this.answer);
    this.over = element("div", "wb-rows wb-over", content);
    this.middle = element("div", "wb-middle", content);
    this.pictures = element("div", "wb-pictures", this.middle);
    this.side = element("div", "wb-side", this.middle);
    this.sideRows = element("div", "wb-rows", this.side);
    this.side.append(this.place("remark"));
    this.strip = element("div", "wb-strip", content);
    this.bar = element("div", "wb-bar-place", this.strip);
    this.stripRows = element("div", "wb-rows", this.strip);
    this.strip.append(this.place("note"));
    this.pictures.append(this.place("canvas"), this.place("detail"));
    this.place("detail").classList.add("wb-detail");
    this.beneath = element("div", "wb-rows wb-beneath", this.place("detail"));
    this.instead = element("div", "wb-rows wb-instead", this.pictures);
    this.below = element("div", "wb-charts", content);
    content.append(this.place("drawers"));
  }

  // From the store.

  show(keys) {
    super.show(keys);
    if (keys.includes("frame")) this.showFrame(this.store.parts.frame);
    if (keys.includes("figures")) this.showFigures(this.store.parts.figures);
    if (keys.includes("canvas") || keys.includes("detail")) this.showPictures(this.store.parts);
    this.fitting?.later();
  }

  showFrame(frame) {
    this.status.textContent = frame.text;
    this.status.classList.toggle("wb-error", frame.failed);
    this.status.setAttribute("role", frame.failed ? "alert" : "status");
    this.progress.value = frame.share;
    this.progress.style.visibility = this.cancel.style.visibility = frame.busy ? "visible" : "hidden";
    STEPS.forEach(([, , , there], number) => (this.steps[number].disabled = !frame[there]));
    for (const place of [this.below, this.side]) place.classList.toggle("wb-awaited", frame.awaited);
    const areas = JSON.stringify(frame.areas);
    if (areas !== this.arranged) this.arrange(frame.areas);
    this.arranged = areas;
    this.connection?.show();
  }

  showFigures({ folded }) {
    const place = folded ? this.all : this.plain;
    if (this.place("figures").parentElement !== place) {
      place.append(this.place("figures"));
      super.show(["figures"]);
    }
    this.all.hidden = !folded;
  }

  showPictures({ canvas, detail }) {
    const [pictures, close] = [canvas, detail].map((part) => Boolean(part.pane_0.pixels) && !part.hidden);
    this.place("canvas").hidden = !pictures;
    this.place("detail").hidden = !close;
    this.pictured = pictures || close;
    this.hidePictures();
    this.bar.hidden = !pictures;
  }

  hidePictures() {
    const charts = this.store.parts.frame.areas.among?.length;
    this.pictures.hidden = !this.pictured && !charts && !this.others().length;
  }

  // Rows of parts, and charts; parts that stay in their row keep the focus.
  arrange(areas) {
    for (const [name, place] of Object.entries(this.areas)) {
      const rows = (areas[name] ?? []).map((keys) => this.row(place, keys));
      if (rows.length !== place.children.length || rows.some((row, i) => row !== place.children[i])) place.replaceChildren(...rows);
    }
    for (const [name, place] of [["among", this.pictures], ["beside", this.side], ["below", this.below]]) {
      for (const key of areas[name] ?? []) {
        const chart = this.fresh(key);
        if (chart.parentElement !== place) place.append(chart);
        chart.classList.add("wb-chart");
      }
    }
    this.more.hidden = !this.folded.children.length;
    this.hidePictures();
    this.reserved = areas.reserved ?? []; // places of charts that are still to come
    for (const [name, place] of [["beside", this.side], ["below", this.below]])
      place.classList.toggle("wb-loading", this.reserved.includes(name) && !areas[name]?.length);
    this.side.hidden = !areas.beside?.length && !areas.side?.length && !this.reserved.includes("beside");
  }

  row(place, keys) {
    const name = keys.join(" ");
    const there = [...place.children].find((row) => row.dataset.keys === name);
    if (there) return there;
    const row = element("div", "wb-row");
    row.dataset.keys = name;
    row.append(...keys.map((key) => this.fresh(key)));
    return row;
  }

  // The element of a part, which is shown at once if it is new.
  fresh(key) {
    const known = this.parts.has(key);
    const place = this.place(key);
    if (!known) super.show([key]);
    return place;
  }

  controls() {
    return [...this.parts.values()].map(({ part }) => part).filter((part) => part instanceof Control);
  }

  // Visible parts in the place of the pictures.
  others() {
    return [...this.parts.values()].filter(({ place }) => this.instead.contains(place) && !place.hidden).map(({ part }) => part);
  }

  canvases() {
    const shown = ["canvas", "detail"].filter((key) => !this.place(key).hidden).map((key) => this.parts.get(key).part);
    return [...shown, ...this.others()];
  }

  chartsIn(place) {
    return [...this.parts.values()].filter(({ part, place: own }) => part instanceof ChartView && own.parentElement === place)
      .map(({ part }) => part);
  }

  // From the user.

  does(what) {
    this.store.send("frame", { does: what });
  }

  press(event) {
    if (!this.root.contains(event.target) || event.altKey) return;
    if (event.ctrlKey || event.metaKey) return this.travel(event);
    const pressed = this.keys.find(({ key, except }) => key === event.key && !event.target.closest(except));
    if (!pressed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    pressed.action();
  }

  // Steps back and forth, except in an entry that is being edited.
  travel(event) {
    const { value, defaultValue } = event.target;
    if (event.target.matches("input[type=text], textarea") && value !== defaultValue) return;
    const step = { z: event.shiftKey ? 1 : 0, y: 1 }[event.key.toLowerCase()];
    if (step === undefined) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!this.steps[step].disabled) this.does(STEPS[step][0]);
  }

  close() {
    document.removeEventListener("keydown", this.press, true);
    this.fitting.close();
    this.connection.close();
    super.close();
  }
}

export function panel(given) {
  const view = new Panel(storeOf(given), given.el);
  return () => view.close();
}

// A part alone, such as a chart.
export function part(given) {
  const store = storeOf(given);
  const view = new Parts(store);
  for (const { live } of Object.values(store.parts)) if (live) given.el.classList.add("wb-panel", live);
  for (const key of Object.keys(store.parts)) given.el.append(view.place(key));
  store.enter(view);
  return () => view.close();
}
