// The graph of a pipeline: sites as buttons that share the width, arrows between them, the error of each below it on one
// logarithmic axis, and an error that travels from site to site.

import { ARROWS, drawn, element, keepKeys, panelButton } from "./dom.js";

const HIGH = 44; // of a site, in pixels
const PLOTS = [54, 36, 28]; // of the errors below, by the number of rows and lines
const MARGIN = 42; // for the ends of the axis
const BELOW = 10; // between rows
const [LEAST, TIGHT, ROOM] = [42, 58, 120]; // pixels of width: for a site at all, for its sign, and for words
const [NEAR, FAR] = [8, 30]; // between columns
const ARC = 9; // the height of an arrow over other sites, for each column that it passes
const STEP = 1000; // ms for each site while the error travels
const INSET = 6; // of the axis, within the height of the errors
const MOVES = { ...ARROWS, Home: -Infinity, End: Infinity };

// The first word of most names, such as "layers.", which need not be repeated where there is little room.
function sharedStart(names) {
  const counts = new Map();
  for (const name of names) {
    const [first] = name.match(/^[a-z]+[._/](?=.)/i) ?? [];
    if (first) counts.set(first, (counts.get(first) ?? 0) + 1);
  }
  const [[start, count]] = [...counts, ["", 0]].sort(([, one], [, other]) => other - one);
  return count > names.length / 2 ? start : "";
}

export class Graph {
  constructor(channel, el) {
    this.channel = channel;
    this.buttons = new Map();
    const row = element("div", "wb-graph-head", el);
    const travel = () => (this.timer ? this.stop() : this.start());
    this.play = panelButton("wb-graph-play", row, "▶ play", "see the error travel from site to site", travel);
    this.legend = element("div", "wb-graph-key", row);
    const about = { role: "toolbar", "aria-label": "the stages of the pipeline, with the error at each" };
    this.area = element("div", "wb-graph-area", el, about);
    this.lines = drawn("svg", this.area, { class: "wb-graph-lines", "aria-hidden": "true" });
    this.area.addEventListener("keydown", (event) => this.walk(event));
    keepKeys(this.area);
    this.observer = new ResizeObserver(() => this.area.clientWidth !== this.wide && this.show());
    this.observer.observe(this.area);
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    this.stop();
  }

  // Travelling.

  start() {
    const path = this.channel.content.path;
    if (!path.length) return;
    this.at = 0;
    this.look(path[0]);
    this.timer = setInterval(() => this.step(), STEP);
    this.show();
  }

  step() {
    const path = this.channel.content.path;
    this.at += 1;
    if (this.at < path.length) this.look(path[this.at]);
    else this.stop();
    this.show();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = undefined;
    if (!this.closed) this.show();
  }

  look(site) {
    this.channel.send({ look: site });
  }

  choose(site) {
    this.stop();
    this.at = undefined;
    this.look(site);
  }

  // Arrows go from site to site.
  walk(event) {
    const sites = this.channel.content.nodes.map(({ site }) => site);
    const at = sites.findIndex((site) => this.buttons.get(site) === event.target);
    if (!(event.key in MOVES) || at < 0) return;
    event.preventDefault();
    const next = sites[Math.max(0, Math.min(sites.length - 1, at + MOVES[event.key]))];
    this.buttons.get(next).focus();
    this.choose(next);
  }

  // Drawing.

  show() {
    const { nodes, path, ends, stale } = this.channel.content;
    this.wide = this.area.clientWidth;
    if (!this.wide || !nodes.length) return;
    const travelling = Boolean(this.timer);
    const ahead = new Set(travelling ? path.slice(this.at + 1) : []);
    this.measure(nodes);
    this.area.classList.toggle("wb-stale", stale);
    this.area.classList.toggle("wb-graph-narrow", this.width < ROOM);
    this.tight = this.width < TIGHT;
    this.area.style.height = `${this.high}px`;
    this.lines.replaceChildren();
    this.lines.setAttribute("viewBox", `0 0 ${this.wide} ${this.high}`);
    this.showAxes(nodes, ends);
    this.showArrows(nodes, new Set(path), ahead);
    this.showErrors(nodes, new Set(path), ahead);
    for (const node of nodes) this.showSite(node, ahead.has(node.site));
    this.play.textContent = travelling ? "❚❚ pause" : "▶ play";
    this.play.disabled = !path.length;
    this.showKey();
  }

  // Sites share the width; columns that have no room go on in another line.
  measure(nodes) {
    const columns = 1 + Math.max(...nodes.map((node) => node.column));
    const rows = 1 + Math.max(...nodes.map((node) => node.row));
    const lines = Math.ceil(columns / Math.max(1, Math.floor((this.wide - MARGIN) / LEAST)));
    this.across = Math.ceil(columns / lines);
    const room = this.wide - MARGIN;
    const gap = Math.max(NEAR, Math.min(FAR, room / this.across / 6));
    this.width = (room - gap * (this.across - 1)) / this.across;
    const step = this.width + gap;
    this.plot = PLOTS[Math.min(rows * lines, PLOTS.length) - 1];
    this.above = this.room(nodes);
    const line = this.above + rows * (HIGH + this.plot + BELOW);
    this.high = lines * line - BELOW;
    this.place = ({ column, row }) => [
      MARGIN + (column % this.across) * step,
      Math.floor(column / this.across) * line + this.above + row * (HIGH + this.plot + BELOW),
    ];
    this.line = ({ column }) => Math.floor(column / this.across);
    this.shared = this.width < ROOM ? sharedStart(nodes.map(({ site }) => site)) : "";
  }

  room(nodes) {
    const columns = new Map(nodes.map((node) => [node.site, node.column]));
    const far = this.channel.content.arrows.map(([from, to]) => columns.get(to) - columns.get(from));
    const most = Math.max(1, ...far.filter(Number.isFinite));
    return most > 1 ? Math.min(ARC * most, 26) + 4 : 3;
  }

  // The height of a share of the axis below a site.
  level(node, share) {
    return this.place(node)[1] + HIGH + INSET + (1 - share) * (this.plot - 2 * INSET);
  }

  showAxes(nodes, ends) {
    const tops = new Map(nodes.map((node) => [this.place(node)[1], node]));
    for (const node of tops.values()) {
      for (const share of [0, 1]) {
        const y = this.level(node, share);
        drawn("path", this.lines, { class: "wb-graph-grid", d: `M${MARGIN - 4} ${y}H${this.wide}` });
        drawn("text", this.lines, { x: MARGIN - 7, y: y + 3.5, "text-anchor": "end" }, ends[share]);
      }
    }
  }

  showArrows(nodes, reached, ahead) {
    const named = new Map(nodes.map((node) => [node.site, node]));
    for (const [from, to] of this.channel.content.arrows) {
      const [one, other] = [named.get(from), named.get(to)];
      if (!one || !other) continue;
      const carries = reached.has(from) && reached.has(to) && !ahead.has(to);
      const look = carries ? "wb-arrow wb-arrow-carries" : "wb-arrow";
      const [x0, y0, x1, y1, path] = this.route(one, other);
      drawn("path", this.lines, { class: look, d: path });
      const [dx, dy] = [x1 - x0, y1 - y0];
      const far = Math.hypot(dx, dy) || 1;
      const [ux, uy] = [dx / far, dy / far];
      const head = [[x1, y1], [x1 - 6 * ux - 4 * uy, y1 - 6 * uy + 4 * ux], [x1 - 6 * ux + 4 * uy, y1 - 6 * uy - 4 * ux]];
      drawn("polygon", this.lines, { class: `${look} wb-arrow-head`, points: head.map((p) => p.join(",")).join(" ") });
    }
  }

  // The ends of the last piece of an arrow, for its head, and its path: straight to the next column, else over the sites.
  route(one, other) {
    const [[x0, y0], [x1, y1]] = [this.place(one), this.place(other)];
    const middle = HIGH / 2;
    if (this.line(one) !== this.line(other)) {
      const path = `M${x0 + this.width} ${y0 + middle}h6M${x1 - NEAR} ${y1 + middle}h${NEAR - 1}`;
      return [x1 - NEAR, y1 + middle, x1 - 1, y1 + middle, path];
    }
    if (other.column - one.column === 1) {
      const [from, to] = [[x0 + this.width, y0 + middle], [x1 - 1, y1 + middle]];
      return [...from, ...to, `M${from.join(" ")}L${to.join(" ")}`];
    }
    const rise = Math.min(y0, y1) - Math.min(ARC * (other.column - one.column), 26);
    const [from, to] = [[x0 + this.width * 0.75, y0], [x1 + this.width * 0.25, y1 - 1]];
    return [to[0] - 10, rise, ...to, `M${from.join(" ")}C${from[0] + 14} ${rise},${to[0] - 14} ${rise},${to.join(" ")}`];
  }

  // Measured errors, joined along the arrows of a row; the round-off floor and the predicted error of each site.
  showErrors(nodes, reached, ahead) {
    const seen = (node) => node && Number.isFinite(node.bar) && !ahead.has(node.site);
    const middle = (node) => this.place(node)[0] + this.width / 2;
    const named = new Map(nodes.map((node) => [node.site, node]));
    for (const node of nodes) {
      const [left] = this.place(node);
      if (node.hit && this.tight) drawn("text", this.lines, { x: left, y: this.level(node, 0.35) }, "⚡");
      if (node.floor !== null) {
        drawn("path", this.lines, { class: "wb-graph-floor", d: `M${left} ${this.level(node, node.floor)}h${this.width}` });
      }
    }
    for (const [from, to] of this.channel.content.arrows) {
      const [one, other] = [named.get(from), named.get(to)];
      if (!seen(one) || !seen(other) || one.row !== other.row || this.line(one) !== this.line(other)) continue;
      const ends = [one, other].map((node) => `${middle(node)} ${this.level(node, node.bar)}`);
      drawn("path", this.lines, { class: "wb-graph-measured", d: `M${ends.join("L")}` });
    }
    for (const node of nodes.filter(seen)) {
      drawn("circle", this.lines, { class: "wb-graph-dot", cx: middle(node), cy: this.level(node, node.bar), r: 4 });
      if (node.predicted === null) continue;
      const [x, y] = [middle(node), this.level(node, node.predicted)];
      drawn("path", this.lines, { class: "wb-graph-predicted", d: `M${x - 6.5} ${y}l6.5 -6.5l6.5 6.5l-6.5 6.5z` });
    }
  }

  showSite(node, ahead) {
    let button = this.buttons.get(node.site);
    if (!button) {
      button = element("button", "", this.area, { type: "button" });
      button.addEventListener("click", () => this.choose(node.site));
      this.buttons.set(node.site, button);
      element("span", "wb-site-name", button);
      element("span", "wb-site-error", button);
    }
    const [left, top] = this.place(node);
    button.style.cssText = `left: ${left}px; top: ${top}px; width: ${this.width}px; height: ${HIGH}px`;
    button.className = `wb-site wb-site-${node.kind.replace(/\W/g, "-")}`;
    button.classList.toggle("wb-site-chosen", node.chosen);
    button.classList.toggle("wb-site-ahead", ahead);
    button.setAttribute("aria-pressed", String(node.chosen));
    button.tabIndex = node.chosen ? 0 : -1;
    const kind = ["reached", "waiting"].includes(node.kind) ? "" : node.kind;
    const short = node.kind === "round-off-limited" ? "round-off" : kind;
    button.title = `${node.site}: ${node.about}${node.error ? `; relative error ${node.error}` : ""}${kind ? `, ${kind}` : ""}`;
    const [name, error] = button.children;
    const own = node.site.startsWith(this.shared) ? node.site.slice(this.shared.length) : node.site;
    name.textContent = `${node.hit && !this.tight ? "⚡ " : ""}${own.replace(/[_/=]|\.(?!\d)/g, "$&\u200b")}`; // may break there
    const sign = [node.sign, this.width < ROOM ? "" : short].filter(Boolean).join(" ");
    const words = this.tight ? [node.brief] : [node.error, sign].filter(Boolean);
    error.textContent = ahead ? "" : words.join(this.width < ROOM ? " " : " · ");
    button.setAttribute("aria-label", button.title + (node.hit ? "; the error is put in here" : ""));
  }

  showKey() {
    const texts = ["relative error", "predicted", "round-off floor", "⚡ put in here", this.channel.content.key];
    const kinds = ["measured", "predicted", "floor", "", ""];
    this.legend.replaceChildren();
    texts.forEach((text, place) => {
      if (!text) return;
      const entry = element("span", "wb-graph-entry", this.legend);
      if (kinds[place]) element("i", `wb-key-${kinds[place]}`, entry);
      entry.append(text);
    });
  }
}
