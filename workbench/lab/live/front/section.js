// A part of the page: a heading, an error bound, what follows from it in words, and pictures of the canvas that panels have.

import { Canvas } from "./canvas.js";
import { element } from "./dom.js";

// What the canvas asks of a panel, answered in the page.
class Channel {
  constructor(common, send) {
    this.content = { ...common, home: [0, 1, 0, 1], window: [], front: null };
    for (let number = 0; number < 4; number++) Object.assign(this.content, { [`pane_${number}`]: {}, [`marks_${number}`]: [] });
    this.settings = {};
    this.send = send;
    this.name = "";
  }

  set(settings) {
    Object.assign(this.settings, settings);
    this.canvas.restyle();
  }
}

export class Section {
  constructor(parent, title, subject, common) {
    this.root = element("section", "wb-live-section", parent, { ariaLabel: title });
    element("h2", "", this.root, title);
    element("p", "wb-note", this.root, subject);
    this.controls = element("div", "wb-live-controls", this.root);
    this.answer = element("p", "wb-live-answer", this.root, { role: "status" });
    this.note = element("p", "wb-note", this.root);
    this.channel = new Channel(common, (message) => this.heard(message));
    this.canvas = this.channel.canvas = new Canvas(this.channel, element("div", "", this.root));
    this.below = element("div", "", this.root);
    this.window = null;
  }

  heard({ does, ...message }) {
    if (does === "zoom") this.zoomed(message.window);
    if (does === "read") this.canvas.hear({ token: message.token, lines: [], ...this.read(message.x, message.y) });
  }

  zoomed() {}

  draw(pictures, marks, home, window = []) {
    const { content } = this.channel;
    Object.assign(content, { home, window });
    for (let number = 0; number < 4; number++) {
      content[`pane_${number}`] = pictures[number] ?? {};
      content[`marks_${number}`] = marks[number] ?? [];
    }
    this.canvas.show(content);
  }

  // What a change of the bound needs is done at most once for each frame of the screen; how long it took is measured.
  soon(work) {
    this.work = work;
    this.wanted ??= requestAnimationFrame(() => {
      this.wanted = null;
      const start = performance.now();
      this.work();
      performance.measure("bound", { start });
    });
  }
}
