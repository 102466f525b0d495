// Pictures side by side with linked windows. Python sends pixels, a window and marks; everything that must follow the
// pointer without delay (zooming, panning, blinking, naming marks, colours) happens here. Python is notified when it rests.

import { INNER, LEFT } from "./canvas_axes.js";
import { element } from "./dom.js";
import { KEYS, listenToKeys, listenToPointer } from "./canvas_input.js";
import { marksOf, outline, paintMark } from "./canvas_marks.js";
import { Pane } from "./canvas_pane.js";
import { Readings } from "./canvas_reading.js";
import { Legend, Toolbar } from "./canvas_toolbar.js";
import { sameScale } from "./canvas_values.js";

const PANES = 4;
const SETTLED = 80; // ms without movement before a new window is sent to Python
const HINTED = 3000; // ms that a hint is shown
const BLINK = 550;
const [LEAST, MOST, STEP] = [256, 1024, 128]; // pixels of a picture along its longer side
const ALIKE = 1.5; // how differently the axes of a picture may be stretched without being smoothed one by one
const [NARROW, GAP] = [120, 10]; // pixels: the least width of a picture, and between pictures
const TALL = 420; // pixels of height until the panel says how much room there is
const [PLAIN, PER_CELL] = [300, 2]; // pixels of a picture of few cells, and at most for each cell
const NEAR = 4; // how many times smaller than everything a window is that shows marks of a close look
const SLENDER = 8; // the ratio of length to width of a slender picture
const DEFAULTS = { colour_map: "", limits: "", typed: [0, 1], locked: true, hidden: [], opacity: 1, blink: false };

export class Canvas {
  constructor(channel, el) {
    this.channel = channel;
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
    this.tall = TALL;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.row);
  }

  close() {
    this.observer.disconnect();
    this.readings.close();
    clearInterval(this.blinker);
    clearTimeout(this.telling);
    clearTimeout(this.hinting);
    cancelAnimationFrame(this.wanted);
  }

  // Content from Python, and settings of the view.

  get settings() {
    const { colour_map: colours, ...others } = { ...DEFAULTS, ...this.channel.settings };
    return { colours, ...others };
  }

  set(settings) {
    this.channel.set(settings);
  }

  hear(message) {
    this.readings.answer(message);
  }

  show(content) {
    this.collect(content);
    const followed = JSON.stringify([content.home, content.window]);
    if (followed === this.followed) return;
    if (content.home.join() !== this.gone) this.goHome();
    [this.followed, this.gone] = [followed, content.home.join()];
    this.follow();
  }

  collect(content) {
    for (let number = 0; number < PANES; number++) {
      const sent = content[`pane_${number}`];
      if (!sent?.pixels) {
        for (const pane of this.panes.splice(number)) pane.box.remove();
        break;
      }
      const pane = (this.panes[number] ??= this.addPane(number));
      if (pane.sent !== sent) pane.receive(sent);
      const marks = content[`marks_${number}`] ?? [];
      if (pane.marked === marks) continue;
      pane.marked = marks;
      pane.marks = marksOf(marks);
      pane.fresh = true;
    }
    const front = content.front ?? (this.lone ? this.turned ?? PANES : null);
    this.front = front === null ? null : Math.min(front, this.panes.length - 1);
    this.restyle();
  }

  restyle() {
    const { settings } = this;
    for (const pane of this.panes) pane.colour(this.panes[0], this.channel.content.tables, settings);
    for (const pane of this.panes) pane.box.hidden = this.front !== null && pane.number !== this.front;
    this.toolbar.show(settings, this.panes[0]?.limits);
    this.legend.show(settings);
    this.blink(settings.blink);
    this.moved = true;
    this.resize();
  }

  // The panes that the reader sees: all, or the one in front.
  get seen() {
    return this.front === null ? this.panes : this.panes.slice(this.front, this.front + 1);
  }

  // Where there is no room for several pictures side by side, one is in front: at first the last.
  single(alone) {
    if (alone === Boolean(this.alone)) return;
    this.alone = alone;
    this.collect(this.channel.content);
  }

  get lone() {
    return this.alone && this.channel.content.front === null && this.panes.length > 1;
  }

  turnTo(number) {
    this.front = this.turned = number;
    this.channel.send({ does: "turn", picture: number });
    this.restyle();
  }

  addPane(number) {
    const pane = new Pane(number, this.row, this.keys.id);
    listenToPointer(this, pane);
    listenToKeys(this, pane);
    return pane;
  }

  // The marks of a pane that are drawn: without hidden layers, and without those that are only for a close look.
  visible(pane) {
    const { hidden } = this.settings;
    const home = this.home();
    const far = !this.view || this.view[1] - this.view[0] > (home[1] - home[0]) / NEAR;
    return pane.marks.filter((mark) => !hidden.includes(mark.label) && !(mark.near && far));
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

  tellPicked(mark) {
    if (mark) this.channel.send({ does: "pick", label: mark.label, id: mark.id });
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
    return this.channel.content.home;
  }

  // Another home means other data: what was about to be sent belongs to the data before.
  goHome() {
    clearTimeout(this.telling);
    for (const pane of this.panes) pane.framed = "";
  }

  follow() {
    const { window } = this.channel.content;
    this.view = window.length ? [...window] : [...this.home()];
    this.moved = true;
    this.resize();
  }

  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const home = this.home();
      const whole = this.view.every((edge, i) => Math.abs(edge - home[i]) < 1e-9 * Math.abs(home[1] - home[0]));
      this.channel.send({ does: "zoom", window: whole ? [] : [...this.view] });
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
    return this.showWindow([nearer(left, x), nearer(right, x), nearer(bottom, y), nearer(top, y)]);
  }

  move(dx, dy) {
    const [left, right, bottom, top] = this.view;
    this.showWindow([left + dx, right + dx, bottom + dy, top + dy]);
  }

  reset() {
    this.showWindow([...this.home()]);
  }

  showWindow(view) {
    this.view = view;
    this.moved = true;
    this.tell();
    this.draw();
  }

  blink(on) {
    if (on === Boolean(this.blinker)) return;
    clearInterval(this.blinker);
    this.blinker = undefined;
    this.blinking = false;
    if (on) {
      this.blinker = setInterval(() => {
        this.blinking = !this.blinking;
        this.draw();
      }, BLINK);
    }
    this.draw();
  }

  // Pictures of at most this height in pixels, which the panel has room for.
  fit(tall) {
    if (tall === this.tall) return;
    this.tall = tall;
    this.resize();
  }

  // Whether there is nothing but marks.
  get bare() {
    return this.panes.length > 0 && this.panes.every(({ sent, marks }) => sent.low === sent.high && marks.length > 0);
  }

  // Pictures with few cells need not be large, but marks alone have none. Zooming does not change the size.
  get most() {
    const [first] = this.seen;
    const far = first && first.sent.window.join() === this.home().join();
    if (far || !this.longest) {
      const cells = Math.max(0, ...this.seen.map(({ sent }) => Math.max(sent.width, sent.height)));
      this.longest = this.bare ? Infinity : first?.image ? Math.max(PLAIN, PER_CELL * cells) : 0;
    }
    return this.longest * Math.min(1, this.shape());
  }

  get highest() {
    return Math.round(Math.min(this.tall, this.most));
  }

  // How wide all pictures of this height are, with their axes.
  widthOf(tall) {
    const count = this.seen.length;
    return count ? LEFT + count * Math.ceil(tall / this.shape()) + (count - 1) * (GAP + INNER) : 0;
  }

  // What stands around the pictures: the height of titles, axes, colour bars, legend and tools.
  around() {
    return this.root.parentElement.offsetHeight - (this.seen[0]?.canvas.offsetHeight ?? 0);
  }

  shape() {
    return this.slender() ? 0.4 : this.proportion();
  }

  // Drawing, at most once for each frame of the screen.

  resize() {
    if (!this.view) return;
    const proportion = this.shape();
    const { highest } = this;
    const ratio = window.devicePixelRatio || 1;
    const columns = this.arrange(this.slender() ? Infinity : Math.ceil(highest / proportion)); // not wider than their height allows
    this.seen.forEach((pane, place) => {
      pane.edge(place % columns === 0 ? LEFT : INNER);
      const width = pane.box.clientWidth - pane.left;
      if (width <= 0) return; // not on the page now
      const height = Math.min(Math.round(width * proportion), highest);
      pane.canvas.style.height = `${height}px`;
      const across = Math.round(pane.canvas.clientWidth * ratio);
      const down = Math.round(height * ratio);
      if (pane.canvas.width === across && pane.canvas.height === down) return;
      pane.canvas.width = across; // this clears the canvas, so it is painted in the same frame
      pane.canvas.height = down;
      this.paint(pane);
    });
    this.want();
    this.draw();
  }

  // As many columns of equal pictures as there is room for; only the first has the numbers of the vertical axis.
  arrange(most) {
    const count = this.seen.length;
    const room = Math.floor((this.row.clientWidth - LEFT + INNER + GAP) / (Math.min(NARROW, most) + INNER + GAP));
    const columns = Math.max(1, Math.min(count, room));
    const shares = (this.row.clientWidth - LEFT - (columns - 1) * (INNER + GAP)) / columns;
    const wide = Math.max(1, Math.floor(Math.min(most, shares)));
    const inner = columns > 1 ? ` repeat(${columns - 1}, ${INNER + wide}px)` : "";
    this.row.style.gridTemplateColumns = `${LEFT + wide}px${inner}`;
    return columns;
  }

  // Python need not send more pixels than the screen has.
  want() {
    const first = this.seen[0]?.canvas;
    if (!first?.clientWidth) return;
    const longest = Math.max(first.width, first.height);
    const pixels = Math.min(MOST, Math.max(LEAST, STEP * Math.ceil(longest / STEP)));
    if (pixels !== this.pixels) this.channel.send({ does: "fit", pixels });
    this.pixels = pixels;
  }

  draw() {
    if (this.wanted || !this.view) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      for (const pane of this.seen) this.paint(pane);
      if (this.moved) this.readings.refresh();
      this.moved = false;
    });
  }

  paint(pane) {
    if (!this.view || !pane.image || !pane.canvas.clientWidth || !pane.canvas.clientHeight) return;
    const source = (this.blinking && this.partner(pane)) || pane;
    pane.name.textContent = source.sent.title;
    this.paintPicture(pane.canvas.getContext("2d"), pane, source, pane.canvas.width / pane.canvas.clientWidth);
    pane.frameFor(this.placing(pane), this.home());
    if (pane.fresh) {
      pane.fresh = false;
      pane.canvas.dataset.drawn = Number(pane.canvas.dataset.drawn) + 1;
    }
  }

  // The picture that a pane shows alternately: the second one the first, and one in front the first, or the second. Colours
  // of different scales cannot be compared.
  partner(pane) {
    if (this.front === null && pane.number !== 1) return undefined;
    const other = this.panes[pane.number === 0 ? 1 : 0];
    return other && sameScale(pane.sent, other.sent) ? other : undefined;
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
export function paintImage(context, image, x, y, width, height, ratio) {
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
