// Pictures side by side with linked windows. Python sends pixels, a window and marks; everything that must follow the
// pointer without delay (zooming, panning, blinking, naming marks, colours) happens here. Python is notified when it rests.

import { LEFT } from "./canvas_axes.js";
import { element } from "./canvas_elements.js";
import { KEYS, listenToKeys, listenToPointer } from "./canvas_input.js";
import { marksOf, outline, paintMark } from "./canvas_marks.js";
import { Pane } from "./canvas_pane.js";
import { Readings } from "./canvas_reading.js";
import { Legend, Toolbar } from "./canvas_toolbar.js";

const PANES = 4;
const SETTLED = 80; // ms without movement before a new window is sent to Python
const HINTED = 3000; // ms that a hint is shown
const BLINK = 550;
const [LEAST, MOST, STEP] = [256, 1024, 128]; // pixels of a picture along its longer side
const ALIKE = 1.5; // how differently the axes of a picture may be stretched without being smoothed one by one
const [NARROW, GAP] = [190, 10]; // pixels: the least width of a pane, and between panes
const SLENDER = 8; // the ratio of length to width of a slender picture
const SETTINGS = ["colour_map", "limits", "typed", "locked", "hidden", "opacity"];

class View {
  constructor(model, el) {
    this.model = model;
    this.id = Math.random().toString(36).slice(2);
    this.root = element("div", "wb-canvas", el);
    this.readings = new Readings(this);
    this.toolbar = new Toolbar(this);
    this.row = element("div", "wb-panes", this.root);
    this.legend = new Legend(this);
    const keys = KEYS.map(([key, meaning]) => `${key}: ${meaning}`).join("; ");
    this.keys = element("div", "wb-unseen", this.root, { id: `wb-keys-${this.id}`, textContent: keys });
    this.live = element("div", "wb-unseen", this.root, { "aria-live": "polite" });
    this.panes = [];
    this.chosen = null;
    this.blinking = false;
    this.wanted = 0;
    this.listeners = [];
    for (let number = 0; number < PANES; number++) {
      this.listen(`change:pane_${number}`, () => this.arrive());
      this.listen(`change:marks_${number}`, () => this.arrive());
    }
    this.listen("change:window", () => this.follow());
    this.listen("change:home", () => this.goHome());
    this.listen("change:tall", () => this.resize());
    this.listen("change:blink", () => this.blink());
    for (const name of SETTINGS) this.listen(`change:${name}`, () => this.arrive());
    this.listen("msg:custom", (content) => this.readings.answer(content));
    this.collect();
    this.follow();
    this.blink();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.row);
  }

  listen(name, action) {
    this.model.on(name, action);
    this.listeners.push([name, action]);
  }

  close() {
    for (const [name, action] of this.listeners) this.model.off(name, action);
    this.observer.disconnect();
    this.readings.close();
    clearInterval(this.blinker);
    clearTimeout(this.telling);
    clearTimeout(this.hinting);
    cancelAnimationFrame(this.wanted);
  }

  // Messages from Python, and settings.

  get settings() {
    const [colours, limits, typed, locked, hidden, opacity] = SETTINGS.map((name) => this.model.get(name));
    return { colours, limits, typed, locked, hidden, opacity };
  }

  set(traits) {
    for (const [name, value] of Object.entries(traits)) this.model.set(name, value);
    this.model.save_changes();
  }

  // Traits that change together are reported one by one and in any order, so they are read when all have arrived.
  arrive() {
    if (this.arriving) return;
    this.arriving = true;
    queueMicrotask(() => {
      this.arriving = false;
      this.collect();
    });
  }

  collect() {
    for (let number = 0; number < PANES; number++) {
      const sent = this.model.get(`pane_${number}`);
      if (!sent?.pixels) {
        for (const pane of this.panes.splice(number)) pane.box.remove();
        break;
      }
      const pane = (this.panes[number] ??= this.addPane(number));
      if (pane.sent !== sent) pane.receive(sent);
      const marks = this.model.get(`marks_${number}`) ?? [];
      if (pane.marked === marks) continue;
      pane.marked = marks;
      pane.marks = marksOf(marks);
      pane.fresh = true;
    }
    const { settings } = this;
    for (const pane of this.panes) pane.colour(this.panes[0], this.model.get("tables"), settings);
    this.toolbar.show(settings, this.panes[0]?.limits);
    this.legend.show(settings);
    this.moved = true;
    this.resize();
  }

  addPane(number) {
    const pane = new Pane(number, this.row, this.keys.id);
    listenToPointer(this, pane);
    listenToKeys(this, pane);
    return pane;
  }

  visible(pane) {
    const { hidden } = this.settings;
    return hidden.length ? pane.marks.filter((mark) => !hidden.includes(mark.label)) : pane.marks;
  }

  // What is said in words.

  say(text) {
    this.place.textContent = text;
    this.live.textContent = text;
  }

  hint(text) {
    if (this.hinting) return;
    const before = this.place.textContent;
    this.place.textContent = text;
    this.hinting = setTimeout(() => {
      this.hinting = 0;
      if (this.place.textContent === text) this.place.textContent = before;
    }, HINTED);
  }

  choose(mark) {
    if (!mark && !this.chosen) return;
    this.chosen = mark;
    this.draw();
  }

  tellPicked(pane, x, y, mark) {
    const times = (this.model.get("picked").times ?? 0) + 1;
    this.set({ picked: { pane: pane.number, x, y, times, ...(mark ? { label: mark.label, id: mark.id } : {}) } });
  }

  cross(point) {
    const at = point && this.placing(point.pane).from(point.px, point.py);
    for (const pane of this.panes) {
      if (at && pane !== point.pane) pane.cross(this.placing(pane), ...at);
      else pane.cross(null);
    }
  }

  inkAndPaper() {
    const style = getComputedStyle(this.root);
    return [style.color, style.getPropertyValue("--jp-layout-color0").trim() || "#ffffff"];
  }

  // The view. `view` is the requested window; each pane shows all of it, in its own proportions.

  home() {
    const home = this.model.get("home");
    return home && home.length === 4 ? home : [0, 1, 0, 1];
  }

  // Another home means other data: what was about to be told belongs to the data before.
  goHome() {
    clearTimeout(this.telling);
    for (const pane of this.panes) pane.framed = "";
    this.follow();
  }

  follow() {
    const window = this.model.get("window");
    this.view = window && window.length === 4 ? [...window] : [...this.home()];
    this.moved = true;
    this.resize();
  }

  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const home = this.home();
      const whole = this.view.every((edge, i) => Math.abs(edge - home[i]) < 1e-9 * Math.abs(home[1] - home[0]));
      this.set({ window: whole ? [] : [...this.view] });
    }, SETTLED);
  }

  placing(pane) {
    const { clientWidth: width, clientHeight: height } = pane.canvas;
    const [left, right, bottom, top] = this.view;
    let [scale, rise] = [width / (right - left), height / (top - bottom)];
    if (!this.slender()) scale = rise = Math.min(scale, rise);
    const x0 = width / 2 - (scale * (left + right)) / 2;
    const y0 = height / 2 + (rise * (bottom + top)) / 2;
    return {
      scale,
      rise,
      x: (x) => x0 + scale * x,
      y: (y) => y0 - rise * y,
      from: (px, py) => [(px - x0) / scale, (y0 - py) / rise],
    };
  }

  proportion() {
    const home = this.home();
    return (home[3] - home[2]) / (home[1] - home[0]);
  }

  // A picture that would be only a line in its own proportions fills its pane instead.
  slender() {
    const proportion = this.proportion();
    return proportion < 1 / SLENDER || proportion > SLENDER;
  }

  zoom(factor, x, y) {
    const [left, right, bottom, top] = this.view;
    const home = this.home();
    const wide = (right - left) * factor;
    if (wide > 1.0001 * (home[1] - home[0])) return this.reset();
    if (wide < 1e-7 * (home[1] - home[0])) return undefined;
    const nearer = (edge, middle) => middle + (edge - middle) * factor;
    return this.look([nearer(left, x), nearer(right, x), nearer(bottom, y), nearer(top, y)]);
  }

  move(dx, dy) {
    const [left, right, bottom, top] = this.view;
    this.look([left + dx, right + dx, bottom + dy, top + dy]);
  }

  reset() {
    this.look([...this.home()]);
  }

  look(view) {
    this.view = view;
    this.moved = true;
    this.tell();
    this.draw();
  }

  blink() {
    clearInterval(this.blinker);
    this.blinking = false;
    if (this.model.get("blink")) {
      this.blinker = setInterval(() => {
        this.blinking = !this.blinking;
        this.draw();
      }, BLINK);
    }
    this.draw();
  }

  // Drawing, at most once for each frame of the screen.

  resize() {
    const proportion = this.slender() ? 0.4 : this.proportion();
    const tall = this.model.get("tall");
    const ratio = window.devicePixelRatio || 1;
    this.arrange(this.slender() ? "1fr" : `${LEFT + Math.ceil(tall / proportion)}px`); // not wider than their height allows
    for (const pane of this.panes) {
      const width = pane.box.clientWidth - LEFT;
      if (width <= 0) continue; // not on the page now
      const height = Math.min(Math.round(width * proportion), tall);
      pane.canvas.style.height = `${height}px`;
      const across = Math.round(pane.canvas.clientWidth * ratio);
      const down = Math.round(height * ratio);
      if (pane.canvas.width === across && pane.canvas.height === down) continue;
      pane.canvas.width = across; // this clears the canvas, so it is painted in the same frame
      pane.canvas.height = down;
      this.paint(pane);
    }
    this.want();
    this.draw();
  }

  // As many columns of equal width as there is room for.
  arrange(most) {
    const room = Math.floor((this.row.clientWidth + GAP) / (NARROW + GAP));
    const columns = Math.max(1, Math.min(this.panes.length, room));
    this.row.style.gridTemplateColumns = `repeat(${columns}, minmax(0, ${most}))`;
  }

  // Python need not send more pixels than the screen has.
  want() {
    const first = this.panes[0]?.canvas;
    if (!first?.clientWidth) return;
    const longest = Math.max(first.width, first.height);
    const pixels = Math.min(MOST, Math.max(LEAST, STEP * Math.ceil(longest / STEP)));
    if (pixels !== this.model.get("pixels")) this.set({ pixels });
  }

  draw() {
    if (this.wanted || !this.view) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      for (const pane of this.panes) this.paint(pane);
      if (this.moved) this.readings.refresh();
      this.moved = false;
    });
  }

  paint(pane) {
    if (!this.view || !pane.image || !pane.canvas.clientWidth || !pane.canvas.clientHeight) return;
    const swapped = this.blinking && pane.number === 1;
    const source = swapped ? this.panes[0] : pane;
    pane.name.textContent = source.sent.title;
    this.paintPicture(pane.canvas.getContext("2d"), pane, source, pane.canvas.width / pane.canvas.clientWidth);
    pane.frameFor(this.placing(pane), this.home());
    if (pane.fresh) {
      pane.fresh = false;
      pane.canvas.dataset.drawn = Number(pane.canvas.dataset.drawn) + 1;
    }
  }

  // The pixels of `source` with the marks of `pane`; also for a saved picture, in another resolution.
  paintPicture(context, pane, source, ratio) {
    const placing = this.placing(pane);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, pane.canvas.clientWidth, pane.canvas.clientHeight);
    const [left, right, bottom, top] = source.sent.window;
    const size = [placing.scale * (right - left), placing.rise * (top - bottom)];
    paintImage(context, source.image, placing.x(left), placing.y(top), ...size, ratio);
    context.globalAlpha = this.settings.opacity;
    for (const mark of this.visible(pane)) paintMark(context, mark, placing);
    context.globalAlpha = 1;
    if (this.chosen?.pane === pane) outline(context, this.chosen, placing);
  }
}

// Each axis by itself is averaged when it shrinks and repeats pixels when it grows: smoothing few rows would invent values.
function paintImage(context, image, x, y, width, height, ratio) {
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  const [narrower, lower] = [across < image.width, down < image.height];
  const stretched = (across * image.height) / (down * image.width);
  const apart = narrower !== lower && Math.max(stretched, 1 / stretched) > ALIKE;
  const least = (wanted, given) => Math.max(1, Math.min(wanted, given));
  const source = apart ? shrunk(image, least(across, image.width), least(down, image.height)) : image;
  context.imageSmoothingQuality = "high";
  context.imageSmoothingEnabled = !apart && narrower;
  context.drawImage(source, x, y, width, height);
}

// Halved until it is small enough. A better quality of smoothing would smooth along both axes.
function shrunk(image, width, height) {
  let source = image;
  while (source.width > width || source.height > height) {
    const next = document.createElement("canvas");
    next.width = Math.max(width, Math.ceil(source.width / 2));
    next.height = Math.max(height, Math.ceil(source.height / 2));
    const context = next.getContext("2d");
    context.imageSmoothingQuality = "low";
    context.drawImage(source, 0, 0, next.width, next.height);
    source = next;
  }
  return source;
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.close();
  },
};
