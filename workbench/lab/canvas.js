// Pictures side by side with linked windows. Python sends bytes, a window and marks; everything that must follow the
// pointer without delay (zooming, panning, blinking, reading values) happens here. Python is notified when it rests.

const PANES = 4;
const SETTLED = 80; // ms without movement before a new window is sent to Python
const BLINK = 550;
const [LEAST, MOST, STEP] = [256, 1024, 128]; // pixels of a picture along its longer side
const SLENDER = 8; // the ratio of length to width of a slender picture
const REACH = 9; // pixels within which a click hits a mark
const NOTHING = [118, 118, 118];

function colourTable(bytes, empty) {
  const source = new Uint8Array(bytes.buffer, bytes.byteOffset, 768);
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const [r, g, b] = empty && i === 0 ? NOTHING : source.subarray(3 * i, 3 * i + 3);
    table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
}

function imageOf(pane, tables) {
  const table = colourTable(tables[pane.colours], pane.empty);
  const { width, height } = pane;
  const bytes = new Uint8Array(pane.pixels.buffer, pane.pixels.byteOffset, width * height);
  const colours = new Uint32Array(width * height);
  for (let i = 0; i < colours.length; i++) colours[i] = table[bytes[i]];
  const image = document.createElement("canvas");
  image.width = width;
  image.height = height;
  const data = new ImageData(new Uint8ClampedArray(colours.buffer), width, height);
  image.getContext("2d").putImageData(data, 0, 0);
  return image;
}

function shown(value) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

function valueAt(pane, byte) {
  if (pane.empty && byte === 0) return NaN;
  const least = pane.empty ? 1 : 0;
  const share = (byte - least) / (255 - least);
  if (!pane.logarithmic) return pane.low + share * (pane.high - pane.low);
  return pane.low * Math.pow(pane.high / pane.low, share);
}

function element(tag, className, parent) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

class View {
  constructor(model, el) {
    this.model = model;
    this.root = element("div", "wb-canvas", el);
    this.row = element("div", "wb-panes", this.root);
    this.legend = element("div", "wb-legend", this.root);
    this.panes = [];
    this.blinking = false;
    this.wanted = 0;
    this.listeners = [];
    for (let number = 0; number < PANES; number++) {
      this.listen(`pane_${number}`, () => this.arrive());
      this.listen(`marks_${number}`, () => this.arrive());
    }
    this.listen("window", () => this.follow());
    this.listen("home", () => this.follow());
    this.listen("tall", () => this.resize());
    this.listen("blink", () => this.blink());
    this.collect();
    this.follow();
    this.blink();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.row);
  }

  listen(name, action) {
    this.model.on(`change:${name}`, action);
    this.listeners.push([name, action]);
  }

  close() {
    for (const [name, action] of this.listeners) this.model.off(`change:${name}`, action);
    this.observer.disconnect();
    clearInterval(this.blinker);
    clearTimeout(this.telling);
    cancelAnimationFrame(this.wanted);
  }

  // Messages from Python.

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
      if (pane.sent !== sent) this.receive(pane, sent);
      const marks = this.model.get(`marks_${number}`) ?? [];
      if (pane.marked !== marks) this.receiveMarks(pane, marks);
    }
    this.resize();
  }

  receive(pane, sent) {
    pane.sent = sent;
    pane.image = imageOf(sent, this.model.get("tables"));
    pane.name.textContent = sent.title;
    pane.canvas.setAttribute("aria-label", `${sent.title}: arrows move, + and - zoom, 0 shows all, b blinks`);
    pane.fresh = true;
    this.paintBar(pane);
  }

  receiveMarks(pane, marks) {
    const floats = (data) => new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    const whole = (data) => data && new Int32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
    pane.marked = marks;
    pane.marks = marks.map((mark) => ({ ...mark, places: floats(mark.places), ids: whole(mark.ids) }));
    pane.fresh = true;
    this.paintLegend();
  }

  addPane(number) {
    const box = element("div", "wb-pane", this.row);
    const head = element("div", "wb-head", box);
    const name = element("span", "wb-name", head);
    const reading = element("span", "wb-reading", head);
    const canvas = element("canvas", "wb-picture", box);
    canvas.tabIndex = 0;
    canvas.dataset.pane = number;
    canvas.dataset.drawn = 0;
    const foot = element("div", "wb-foot", box);
    const low = element("span", "", foot);
    const bar = element("canvas", "wb-bar", foot);
    const high = element("span", "", foot);
    const pane = { number, box, name, reading, canvas, low, bar, high, foot, marks: [] };
    this.listenToPointer(pane);
    canvas.addEventListener("keydown", (event) => this.key(event));
    return pane;
  }

  paintBar(pane) {
    const { sent, bar } = pane;
    pane.foot.style.display = sent.low === sent.high ? "none" : "";
    bar.width = 256;
    bar.height = 1;
    const table = colourTable(this.model.get("tables")[sent.colours], false);
    const data = new ImageData(new Uint8ClampedArray(table.buffer), 256, 1);
    bar.getContext("2d").putImageData(data, 0, 0);
    pane.low.textContent = shown(sent.low);
    pane.high.textContent = `${shown(sent.high)} ${sent.unit}`;
  }

  paintLegend() {
    const seen = new Map();
    for (const pane of this.panes) for (const mark of pane.marks) if (mark.label) seen.set(mark.label, mark);
    this.legend.replaceChildren();
    for (const [label, mark] of seen) {
      const entry = element("span", "wb-entry", this.legend);
      const line = element("i", "", element("span", "wb-sample", entry));
      line.style.borderTop = `3px ${mark.dashed ? "dashed" : mark.shape === "points" ? "dotted" : "solid"} ${mark.colour}`;
      entry.append(label);
    }
  }

  // The view. `view` is the requested window; each pane shows all of it, in its own proportions.

  home() {
    const home = this.model.get("home");
    return home && home.length === 4 ? home : [0, 1, 0, 1];
  }

  follow() {
    const window = this.model.get("window");
    this.view = window && window.length === 4 ? [...window] : [...this.home()];
    this.resize();
  }

  tell() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const home = this.home();
      const whole = this.view.every((edge, i) => Math.abs(edge - home[i]) < 1e-9 * Math.abs(home[1] - home[0]));
      this.model.set("window", whole ? [] : [...this.view]);
      this.model.save_changes();
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
    if (wide < 1e-7 * (home[1] - home[0])) return;
    this.view = [x + (left - x) * factor, x + (right - x) * factor, y + (bottom - y) * factor, y + (top - y) * factor];
    this.tell();
    this.draw();
  }

  move(dx, dy) {
    this.view = [this.view[0] + dx, this.view[1] + dx, this.view[2] + dy, this.view[3] + dy];
    this.tell();
    this.draw();
  }

  reset() {
    this.view = [...this.home()];
    this.tell();
    this.draw();
  }

  key(event) {
    const [left, right, bottom, top] = this.view;
    const step = (right - left) / 8;
    const x = (left + right) / 2;
    const y = (bottom + top) / 2;
    const actions = {
      ArrowLeft: () => this.move(-step, 0),
      ArrowRight: () => this.move(step, 0),
      ArrowUp: () => this.move(0, step),
      ArrowDown: () => this.move(0, -step),
      "+": () => this.zoom(0.7, x, y),
      "=": () => this.zoom(0.7, x, y),
      "-": () => this.zoom(1 / 0.7, x, y),
      0: () => this.reset(),
      b: () => {
        this.model.set("blink", !this.model.get("blink"));
        this.model.save_changes();
      },
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[event.key]();
  }

  listenToPointer(pane) {
    const { canvas } = pane;
    let from = null;
    let moved = false;
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls unless a picture has the focus
      event.preventDefault();
      const [x, y] = this.placing(pane).from(event.offsetX, event.offsetY);
      this.zoom(Math.pow(1.0015, event.deltaY), x, y);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      from = [event.offsetX, event.offsetY];
      moved = false;
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      this.read(event.offsetX, event.offsetY, pane);
      if (!from) return;
      const dx = event.offsetX - from[0];
      const dy = event.offsetY - from[1];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      const { scale, rise } = this.placing(pane);
      this.move(-dx / scale, dy / rise);
      from = [event.offsetX, event.offsetY];
    });
    canvas.addEventListener("pointerup", (event) => {
      if (from && !moved) this.pick(pane, event.offsetX, event.offsetY);
      from = null;
    });
    canvas.addEventListener("pointerleave", () => {
      for (const other of this.panes) other.reading.textContent = "";
    });
    canvas.addEventListener("dblclick", () => this.reset());
  }

  // The value under the pointer, in every pane.

  read(px, py, at) {
    const [x, y] = this.placing(at).from(px, py);
    for (const pane of this.panes) {
      const { sent } = pane;
      const [left, right, bottom, top] = sent.window;
      const column = Math.floor(((x - left) / (right - left)) * sent.width);
      const line = Math.floor(((top - y) / (top - bottom)) * sent.height);
      const inside = column >= 0 && line >= 0 && column < sent.width && line < sent.height;
      const where = pane === at ? `(${shown(x)}, ${shown(y)}) ` : "";
      if (!inside) {
        pane.reading.textContent = where;
        continue;
      }
      const byte = new Uint8Array(sent.pixels.buffer, sent.pixels.byteOffset)[line * sent.width + column];
      pane.reading.textContent = `${where}≈ ${shown(valueAt(sent, byte))}`;
    }
  }

  pick(pane, px, py) {
    const placing = this.placing(pane);
    let best = null;
    let nearest = REACH;
    for (const mark of pane.marks) {
      if (!mark.ids) continue;
      const step = mark.places.length / mark.ids.length;
      for (let i = 0; i < mark.ids.length; i++) {
        const distance = this.distance(mark, mark.places.subarray(i * step, (i + 1) * step), placing, px, py);
        if (distance < nearest) {
          nearest = distance;
          best = { label: mark.label, id: mark.ids[i] };
        }
      }
    }
    const [x, y] = placing.from(px, py);
    const times = (this.model.get("picked").times ?? 0) + 1;
    this.model.set("picked", { pane: pane.number, x, y, times, ...(best ?? {}) });
    this.model.save_changes();
  }

  distance(mark, place, placing, px, py) {
    if (mark.shape === "circles") {
      const centre = Math.hypot(placing.x(place[0]) - px, placing.y(place[1]) - py);
      const radius = Math.max(3, place[2] * placing.scale);
      return centre < radius ? REACH - 1 - 1 / (1 + radius) + centre / radius / 100 : centre - radius;
    }
    if (mark.shape === "boxes") {
      return Math.hypot(placing.x((place[0] + place[1]) / 2) - px, placing.y((place[2] + place[3]) / 2) - py);
    }
    const [x, y] = mark.shape === "lines" ? [(place[0] + place[2]) / 2, (place[1] + place[3]) / 2] : place;
    return Math.max(0, Math.hypot(placing.x(x) - px, placing.y(y) - py) - 2);
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
    for (const pane of this.panes) {
      const width = pane.box.clientWidth;
      if (!width) continue;
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

  // Python need not send more pixels than the screen has.
  want() {
    const first = this.panes[0]?.canvas;
    if (!first?.width) return;
    const longest = Math.max(first.width, first.height);
    const pixels = Math.min(MOST, Math.max(LEAST, STEP * Math.ceil(longest / STEP)));
    if (pixels === this.model.get("pixels")) return;
    this.model.set("pixels", pixels);
    this.model.save_changes();
  }

  draw() {
    if (this.wanted || !this.view) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      for (const pane of this.panes) this.paint(pane);
    });
  }

  paint(pane) {
    if (!this.view || !pane.sent || !pane.canvas.width) return;
    const swapped = this.blinking && pane.number === 1 && this.panes[0].image;
    const source = swapped ? this.panes[0] : pane;
    pane.name.textContent = source.sent.title;
    const context = pane.canvas.getContext("2d");
    const ratio = pane.canvas.width / pane.canvas.clientWidth;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, pane.canvas.clientWidth, pane.canvas.clientHeight);
    const placing = this.placing(pane);
    const [left, right, bottom, top] = source.sent.window;
    const width = placing.scale * (right - left);
    context.imageSmoothingEnabled = width * ratio < source.sent.width;
    context.imageSmoothingQuality = "high";
    context.drawImage(source.image, placing.x(left), placing.y(top), width, placing.rise * (top - bottom));
    for (const mark of pane.marks) this.paintMark(context, mark, placing);
    if (pane.fresh) {
      pane.fresh = false;
      pane.canvas.dataset.drawn = Number(pane.canvas.dataset.drawn) + 1;
    }
  }

  paintMark(context, mark, placing) {
    const path = new Path2D();
    const { places } = mark;
    for (let i = 0; i < places.length; ) {
      if (mark.shape === "circles") {
        const x = placing.x(places[i]);
        const y = placing.y(places[i + 1]);
        const radius = Math.max(3, places[i + 2] * placing.scale);
        path.moveTo(x + radius, y);
        path.arc(x, y, radius, 0, 2 * Math.PI);
        i += 3;
      } else if (mark.shape === "points") {
        const x = placing.x(places[i]);
        const y = placing.y(places[i + 1]);
        path.moveTo(x + mark.width, y);
        path.arc(x, y, mark.width, 0, 2 * Math.PI);
        i += 2;
      } else if (mark.shape === "lines") {
        path.moveTo(placing.x(places[i]), placing.y(places[i + 1]));
        path.lineTo(placing.x(places[i + 2]), placing.y(places[i + 3]));
        i += 4;
      } else {
        const x = placing.x(places[i]);
        const y = placing.y(places[i + 3]);
        path.rect(x, y, placing.scale * (places[i + 1] - places[i]), placing.rise * (places[i + 3] - places[i + 2]));
        i += 4;
      }
    }
    if (mark.shape === "points") {
      context.fillStyle = mark.colour;
      context.fill(path);
      return;
    }
    context.setLineDash(mark.dashed ? [5, 4] : []);
    context.strokeStyle = "rgba(0, 0, 0, 0.55)"; // an outline, so that every colour is visible on every background
    context.lineWidth = mark.width + 2;
    context.stroke(path);
    context.strokeStyle = mark.colour;
    context.lineWidth = mark.width;
    context.stroke(path);
    context.setLineDash([]);
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.close();
  },
};
