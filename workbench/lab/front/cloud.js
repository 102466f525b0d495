// A cloud of particles: one or two sides with one camera. While it turns, as many points are drawn as frames allow; at rest,
// all of them, in slices, so that the page never waits.

import { Camera } from "./cloud_camera.js";
import { Frame } from "./cloud_frame.js";
import { Halos } from "./cloud_halos.js";
import { MOST_CHANGED, Points, ROUND, Unsupported } from "./cloud_points.js";
import { Tools } from "./cloud_tools.js";
import { Asking, PREPARING, counted, element, saveAs } from "./dom.js";

const [SMALLEST_SIGN, LARGEST_SIGN] = [4.5, 11]; // pixels of the sign of a particle that changed
const RESTS = 160; // ms without movement
const FRAME = 34; // ms that a frame may take while the cloud turns
const SLICE = 45; // ms that a slice may take at rest
const [COARSE, FINE] = [12000, 60000]; // so few points in a frame halve the resolution while it turns, so many restore it
const FEWEST = 4096; // points of a moving picture
const TURN = 24000; // ms of a whole turn
const GAP = 4; // pixels between two sides
const [SMALLEST, LARGEST] = [1.25, 4]; // pixels of a point
const AGAIN = 5000; // ms until points are asked for again, and twice as long each time
const MARKS_MOVING = 3000; // of the particles that changed, while the cloud turns
const DRAGGED = 4; // pixels that make a drag of a click

export class Cloud {
  constructor(channel, el) {
    this.channel = channel;
    this.root = element("div", "wb-cloud", el);
    this.asking = new Asking(() => this.scene && !this.complete, () => {
      this.channel.send({ does: this.unsupported ? "still" : "points", scene: this.scene.id, from: this.received });
    }, AGAIN, Infinity);
    this.close();
  }

  // From Python. Without a scene, the memory and the graphics processor are free for others.

  show({ scene }) {
    if (!scene.id) return this.close();
    if (!this.stage) this.open();
    return scene.id === this.scene?.id || this.load(scene);
  }

  hear(message, buffers) {
    if (!this.scene || message.scene !== this.scene.id) return undefined;
    return message.html ? this.showStill(message.html) : this.take(message, buffers);
  }

  open() {
    this.root.replaceChildren();
    this.frame = { wanted: 0, last: 0, movedAt: -Infinity, moving: false };
    this.budget = { points: 60000, slice: 60000 };
    this.visible = true;
    this.tools = new Tools(this);
    this.build();
    if (this.channel.content.height) this.fit(this.channel.content.height);
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.stage);
    this.watched = new IntersectionObserver((entries) => {
      this.visible = entries.at(-1).isIntersecting;
      this.wake();
    });
    this.watched.observe(this.stage);
    this.start();
  }

  build() {
    this.stage = element("div", "wb-cloud-stage wb-tall", this.root);
    this.canvas = element("canvas", "wb-cloud-points", this.stage, {
      tabIndex: 0, role: "application", "aria-roledescription": "cloud of particles",
    });
    this.over = element("canvas", "wb-cloud-over", this.stage, { "aria-hidden": "true" });
    this.foot = element("div", "wb-cloud-foot", this.root);
    this.reading = element("span", "wb-cloud-reading", this.foot, { "aria-live": "polite" });
    this.progress = element("span", "wb-cloud-progress", this.foot);
    this.root.append(this.tools.legend);
    const touched = this.pointer();
    for (const [name, action] of Object.entries({
      pointerdown: touched.down, pointermove: touched.moved, pointerup: touched.up, pointercancel: touched.up,
      pointerleave: () => this.name(0), dblclick: (event) => this.centre(event), wheel: (event) => this.wheel(event),
      keydown: (event) => this.key(event), contextmenu: (event) => event.preventDefault(),
      webglcontextlost: (event) => this.lose(event), webglcontextrestored: (event) => event.target === this.canvas && this.start(),
    })) this.canvas.addEventListener(name, action, { passive: false });
  }

  close() {
    this.sized?.disconnect();
    this.watched?.disconnect();
    cancelAnimationFrame(this.frame?.wanted);
    this.asking.stop();
    clearTimeout(this.telling);
    this.points?.free();
    Object.assign(this, { points: null, stage: null, canvas: null, scene: null, halos: null, arrays: [], styled: "", followed: "" });
    this.root.replaceChildren(element("div", "wb-tall wb-note", null, PREPARING));
  }

  // The height in pixels, and what stands around it: for a panel, where the pictures would be.

  fit(tall) {
    this.root.style.setProperty("--wb-tall", `${tall}px`);
  }

  get most() {
    return Infinity;
  }

  around() {
    return this.root.offsetHeight - this.root.querySelector(".wb-tall").offsetHeight;
  }

  widthOf() {
    return screen.width; // all that there is
  }

  // The graphics processor: at the beginning, and again after it was taken away.

  start() {
    try {
      const { shading, densities } = this.channel.content;
      this.points = new Points(this.canvas, shading, new Uint8Array(densities.buffer, densities.byteOffset, 768));
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      this.unsupported = error.message;
      return;
    }
    this.unsupported = this.size = "";
    if (!this.scene) return;
    this.points.allocate(this.arrays.length, this.scene.count);
    this.arrays.forEach((points, side) => this.points.add(side, 0, points.subarray(0, 4 * this.received)));
    this.recolour();
    this.resize();
  }

  lose(event) {
    event.preventDefault(); // so that it can be given back
    if (event.target === this.canvas) this.points = null; // else that of a scene which is gone
  }

  // The scene and its points.

  load(scene) {
    const frame = [...scene.lower, ...scene.lengths].join();
    if (frame !== this.framed || !this.camera) this.camera = new Camera(this.channel.content.shading, scene.lengths);
    this.framed = frame;
    this.scene = scene;
    this.halos = new Halos(scene, this.channel.content.shading);
    this.box = new Frame(scene);
    this.received = this.named = 0;
    this.arrays = scene.titles.map(() => new Uint16Array(4 * scene.count));
    this.describe();
    this.complete = false;
    if (this.unsupported) return this.asking.now();
    this.points?.allocate(this.arrays.length, scene.count);
    this.styled = this.followed = "";
    this.restyle();
    if (this.state.rotating && matchMedia("(prefers-reduced-motion: reduce)").matches) this.turn(false);
    this.resize();
    return this.asking.now();
  }

  take(message, buffers) {
    if (message.from !== this.received) return; // asked for twice
    buffers.forEach((data, side) => {
      const points = new Uint16Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength));
      this.arrays[side].set(points, 4 * message.from);
      this.points?.add(side, message.from, points);
    });
    this.received += message.count;
    this.complete = this.received >= this.scene.count;
    this.asking.now();
    this.tell();
    this.wake();
  }

  showStill(html) {
    if (!this.unsupported) return;
    this.complete = true;
    this.asking.check();
    this.stage.className = "wb-cloud-still wb-tall";
    const text = `A still picture, because ${this.unsupported}: the cloud cannot be turned here.`;
    this.stage.replaceChildren(element("p", "", null, { textContent: text, role: "status" }));
    element("div", "", this.stage).innerHTML = html;
    this.tools.row.hidden = true;
  }

  describe() {
    const { total, titles, halo } = this.scene;
    const what = halo ? `halo ${halo} and its surroundings` : "all particles";
    this.canvas.setAttribute(
      "aria-label",
      `${titles.join(" and ")}: ${what}, ${counted(total)} particles, ${counted(this.halos.count)} halos. ` +
        "Arrows turn, + and - zoom, 0 shows all, Space rotates, Page Down names the next halo, Enter chooses it.",
    );
  }

  tell() {
    const { count, total, exact, unit } = this.scene;
    const { moving } = this.frame;
    const drawn = moving ? Number(this.drawn.toPrecision(1)) : Math.min(this.drawn ?? 0, this.received);
    const share = drawn < total ? `${moving ? "while it turns, " : ""}${counted(drawn)} of ` : "";
    const sample = total > count && !moving ? `, of which ${counted(count)} can be drawn` : "";
    const text = `${share}${counted(total)} particles${sample}; places to ±${exact.toPrecision(1)} ${unit}`.trim();
    if (this.progress.textContent !== text) this.progress.textContent = text;
    const { dataset } = this.canvas;
    Object.assign(dataset, { points: this.drawn ?? 0, received: this.received, moving });
    if (this.pictures) dataset.drawn = this.pictures;
  }

  // What is chosen: as Python began, and as the reader has changed it since.

  choose(choices) {
    this.channel.set(choices);
  }

  restyle() {
    if (!this.scene || this.unsupported) return;
    const { camera, ...state } = { ...this.channel.content.state, ...this.channel.settings };
    this.state = state;
    if (camera.join() !== this.followed) {
      this.followed = camera.join();
      this.camera.state = camera;
      this.touch();
    }
    const styled = JSON.stringify(state);
    if (styled === this.styled) return;
    this.styled = styled;
    this.tools.show(state);
    this.recolour();
  }

  recolour() {
    this.points?.colour(this.halos.palette(this.state.colouring, this.state.coloured));
    this.touch();
  }

  // The camera.

  moved() {
    this.frame.movedAt = performance.now();
    this.canvas.dataset.moving = true;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      this.followed = this.camera.state.join();
      this.choose({ camera: this.camera.state });
    }, 2 * RESTS);
    this.wake();
  }

  reset() {
    this.turn(false);
    this.camera.reset();
    this.moved();
  }

  turn(on) {
    this.turned = 0;
    if (this.state.rotating === on) return;
    this.byHand = on;
    this.choose({ rotating: on });
  }

  // Time.

  touch() {
    this.stale = true;
    this.canvas.dataset.points = 0; // of the picture that is wanted
    this.wake();
  }

  wake() {
    if (!this.frame.wanted && this.visible) this.frame.wanted = requestAnimationFrame((now) => this.tick(now));
  }

  tick(now) {
    const { frame } = this;
    frame.wanted = 0;
    if (!this.points || !this.received || !this.pane || this.points.gl.isContextLost()) return;
    const took = now - frame.last;
    frame.last = now;
    if (this.state.rotating) this.rotate(took);
    const moving = performance.now() - frame.movedAt < RESTS;
    if (moving) this.paintMoving(took);
    else this.paintResting(took);
    frame.moving = moving;
    this.tell();
    if (moving || this.drawn < this.received) this.wake();
  }

  rotate(took) {
    const angle = (2 * Math.PI * Math.min(took, 100)) / TURN;
    this.turned = (this.turned ?? 0) + angle;
    if (this.turned > 2 * Math.PI && !this.byHand) return this.turn(false); // what began by itself ends by itself
    this.camera.rotate(-angle, 0);
    this.frame.movedAt = performance.now();
  }

  paintMoving(took) {
    if (this.frame.moving && took < 500) {
      const grown = this.budget.points * Math.min(1.08, Math.max(0.75, FRAME / took));
      this.budget.points = Math.min(Math.max(grown, FEWEST), 2 * this.scene.count);
      this.coarse = this.budget.points < (this.coarse ? FINE : COARSE);
    }
    this.stale = true;
    this.points.clear();
    this.drawn = 0;
    this.add(Math.min(this.received, Math.round(this.budget.points / this.arrays.length)), true);
  }

  paintResting(took) {
    if (this.stale) {
      this.stale = false;
      this.points.clear();
      this.drawn = 0;
      this.budget.slice = Math.max(this.budget.slice, this.budget.points);
    } else if (took < 500) {
      this.budget.slice = Math.max(this.budget.slice * Math.min(1.3, Math.max(0.6, SLICE / took)), 4 * FEWEST);
    }
    this.add(Math.min(this.received, this.drawn + Math.round(this.budget.slice / this.arrays.length)), false);
  }

  // Add points up to this one, and show the sum.
  add(to, moving) {
    const { pane, camera, points, state } = this;
    const { light, haze, contrast, span, distance, lens } = this.channel.content.shading;
    const area = 1.5 * ((lens * Math.min(pane.width, pane.height)) / 2 / Math.max(camera.distance, 0.02 * distance)) ** 2;
    const shown = moving ? to : this.scene.count;
    const coarse = moving && this.coarse;
    const ratio = coarse ? this.ratio / 2 : this.ratio;
    const wide = Math.min(Math.max(0.8 * Math.sqrt(area / shown), SMALLEST), LARGEST);
    const size = Math.min(Math.max(wide * state.point_size * ratio, 1), 40);
    const matrix = camera.matrix(pane);
    const changes = this.marksChanges();
    const seen = { size, haze: [state.depth_cue ? haze : 0, camera.distance] };
    this.arrays.forEach((_, side) => {
      points.draw(side, this.view(side, ratio), matrix, this.drawn, to, { ...seen, changes: changes && side });
    });
    this.drawn = to;
    const covered = size * size * (size < ROUND ? 1 : Math.PI / 8);
    const mean = light.none * Math.max((to * covered) / (area * ratio ** 2), 0.15);
    points.show((contrast * state.opacity) / mean, contrast * span, state.colouring === "density", coarse);
    if (changes) this.paintMarks(matrix, moving, area);
    this.pictures = (this.pictures ?? 0) + 1;
    this.paintOver();
  }

  // The part of the canvas that a side has.
  view(side, ratio) {
    const { pane } = this;
    const left = Math.round(side * (pane.width + GAP) * ratio);
    return { left, bottom: 0, width: Math.round(pane.width * ratio), height: Math.round(pane.height * ratio) };
  }

  marksChanges() {
    return this.state.changes && this.state.colouring !== "density" && this.arrays.length > 1;
  }

  // Particles that changed are marked by their colour and, where there is room between them, by a sign; on the second side.
  paintMarks(matrix, moving, area) {
    const size = Math.min(0.25 * Math.sqrt(area / Math.max(this.points.sides[1].marks, 1)), LARGEST_SIGN);
    if (size < SMALLEST_SIGN) return;
    this.points.mark(1, this.view(1, this.ratio), matrix, moving ? MARKS_MOVING : MOST_CHANGED, size * this.ratio);
  }

  paintOver() {
    const { ratio, pane, camera } = this;
    const context = this.over.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.over.width, this.over.height);
    this.scene.titles.forEach((title, side) => {
      context.save();
      context.translate(side * (pane.width + GAP), 0);
      context.beginPath();
      context.rect(0, 0, pane.width, pane.height);
      context.clip();
      if (this.state.box) this.box.paint(context, camera, pane);
      this.box.paintBar(context, camera, pane);
      this.box.paintTitle(context, title);
      if (this.named) this.box.paintRing(context, camera, pane, this.halos.place(this.named), this.halos.radius(this.named));
      context.restore();
      if (side) context.clearRect(side * (pane.width + GAP) - GAP, 0, GAP, pane.height);
    });
  }

  resize() {
    if (!this.stage?.clientWidth || !this.scene || this.unsupported) return;
    const { clientWidth: width, clientHeight: height } = this.stage;
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    const sides = this.arrays.length;
    this.pane = { width: (width - GAP * (sides - 1)) / sides, height };
    const [across, down] = [Math.round(width * this.ratio), Math.round(height * this.ratio)];
    if (this.points && this.size !== `${across} ${down}`) {
      this.size = `${across} ${down}`;
      for (const canvas of [this.canvas, this.over]) Object.assign(canvas, { width: across, height: down });
      this.points.resize(across, down);
    }
    this.touch();
  }

  // The reader.

  // Where the pointer is: the side, and pixels from the corner of its pane.
  where(event) {
    const side = Math.min(Math.floor(event.offsetX / (this.pane.width + GAP)), this.arrays.length - 1);
    return { side, x: event.offsetX - side * (this.pane.width + GAP), y: event.offsetY };
  }

  pointer() {
    let from = null;
    let dragged = false;
    return {
      down: (event) => {
        if (!this.pane) return;
        this.turn(false);
        this.canvas.focus({ preventScroll: true });
        this.canvas.setPointerCapture(event.pointerId);
        from = [event.offsetX, event.offsetY];
        dragged = false;
      },
      moved: (event) => {
        if (!this.pane) return;
        if (!from) return this.hover(event);
        const [dx, dy] = [event.offsetX - from[0], event.offsetY - from[1]];
        if (!dragged && Math.hypot(dx, dy) < DRAGGED) return;
        dragged = true;
        from = [event.offsetX, event.offsetY];
        if (event.shiftKey || event.buttons > 1) this.camera.move(dx, dy, this.pane);
        else this.camera.rotate((3 * dx) / this.pane.height, (3 * dy) / this.pane.height);
        this.moved();
      },
      up: (event) => {
        if (from && !dragged && event.type === "pointerup" && event.button === 0) {
          this.name(this.under(event));
          this.pick(this.where(event).side);
        }
        from = null;
      },
    };
  }

  hover(event) {
    this.pointed = event;
    if (this.hovering || this.frame.moving) return;
    this.hovering = requestAnimationFrame(() => {
      this.hovering = 0;
      if (this.points && this.received) this.name(this.under(this.pointed));
    });
  }

  under(event) {
    const { side, x, y } = this.where(event);
    return this.halos.at(x, y, this.camera, this.pane, this.arrays[side], this.drawn ?? 0);
  }

  name(number) {
    if (number === this.named || !this.halos) return;
    this.named = number;
    this.reading.textContent = number ? this.halos.name(number) : "";
    if (this.pane && this.received) this.paintOver();
  }

  pick(side) {
    if (this.named) this.channel.send({ does: "pick", scene: this.scene.id, number: this.named, side });
  }

  centre(event) {
    const number = this.under(event);
    if (!number) return;
    this.camera.target = this.halos.place(number);
    this.camera.zoom(0.6);
    this.moved();
  }

  wheel(event) {
    if (document.activeElement !== this.canvas && this.canvas.getRootNode().activeElement !== this.canvas) return; // the page scrolls
    event.preventDefault();
    this.turn(false);
    this.camera.zoom(Math.pow(1.0015, event.deltaY));
    this.moved();
  }

  key(event) {
    const by = (across, up) => () => this.camera.rotate(across, up);
    const step = Math.PI / 24;
    const named = (change) => () => this.name(this.halos.next(this.named, change));
    const moves = {
      ArrowLeft: by(-step, 0), ArrowRight: by(step, 0), ArrowUp: by(0, step), ArrowDown: by(0, -step),
      "+": () => this.camera.zoom(0.8), "=": () => this.camera.zoom(0.8), "-": () => this.camera.zoom(1.25), 0: () => this.camera.reset(),
    };
    const acts = {
      " ": () => this.turn(!this.state.rotating), PageDown: named(1), PageUp: named(-1), Enter: () => this.pick(0),
      "?": () => this.tools.help.toggle(),
    };
    const act = moves[event.key] ?? acts[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !act || !this.camera) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key !== " ") this.turn(false);
    act();
    if (moves[event.key]) this.moved();
  }

  save() {
    const whole = element("canvas", "", null, { width: this.canvas.width, height: this.canvas.height });
    for (const layer of [this.canvas, this.over]) whole.getContext("2d").drawImage(layer, 0, 0);
    whole.toBlob((data) => saveAs("cloud.png", data));
  }
}
