// The graph of a pipeline: sites as buttons, arrows between them, and an error that travels from site to site.

import { drawn, element, panelButton } from "./dom.js";

const WIDE = 158, HIGH = 66; // of a site, in pixels
const BESIDE = 30, BELOW = 14; // between columns and rows
const ARC = 9; // the height of an arrow over other sites, for each column that it passes
const STEP = 1000; // ms for each site while the error travels
export class Graph {
  constructor(channel, el) {
    this.channel = channel;
    this.buttons = new Map();
    const row = element("div", "wb-graph-head", el);
    const travel = () => (this.timer ? this.stop() : this.start());
    this.play = panelButton("wb-graph-play", row, "▶ play", "see the error travel from site to site", travel);
    this.legend = element("div", "wb-graph-key", row);
    const about = { role: "group", "aria-label": "the stages of the pipeline, with the error at each" };
    this.area = element("div", "wb-graph-area", el, about);
    this.sheet = element("div", "wb-graph-sheet", this.area);
    this.lines = drawn("svg", this.sheet, { class: "wb-graph-arrows", "aria-hidden": "true" });
  }

  close() {
    this.closed = true;
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
    this.channel.send({ look: site, playing: Boolean(this.timer) || this.at === 0 });
  }

  // Drawing.

  show() {
    const nodes = this.channel.content.nodes;
    const path = this.channel.content.path;
    const travelling = Boolean(this.timer);
    const ahead = new Set(travelling ? path.slice(this.at + 1) : []);
    const highest = this.room(nodes);
    this.place = (node) => [node.column * (WIDE + BESIDE), highest + node.row * (HIGH + BELOW)];
    const wide = Math.max(...nodes.map((node) => node.column), 0) * (WIDE + BESIDE) + WIDE;
    const high = highest + Math.max(...nodes.map((node) => node.row), 0) * (HIGH + BELOW) + HIGH;
    this.sheet.style.cssText = `width: ${wide}px; height: ${high}px`;
    this.sheet.classList.toggle("wb-stale", this.channel.content.stale);
    this.showArrows(nodes, new Set(path), ahead, wide, high);
    for (const node of nodes) this.showSite(node, ahead.has(node.site));
    this.play.textContent = travelling ? "❚❚ pause" : "▶ play";
    this.play.disabled = !path.length;
    this.showKey();
  }

  room(nodes) {
    const columns = new Map(nodes.map((node) => [node.site, node.column]));
    const far = this.channel.content.arrows.map(([from, to]) => columns.get(to) - columns.get(from));
    const most = Math.max(1, ...far.filter(Number.isFinite));
    return most > 1 ? Math.min(ARC * most, 44) + 6 : 4;
  }

  showArrows(nodes, reached, ahead, wide, high) {
    this.lines.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    this.lines.style.cssText = `width: ${wide}px; height: ${high}px`;
    this.lines.replaceChildren();
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
      const head = [[x1, y1], [x1 - 7 * ux - 4 * uy, y1 - 7 * uy + 4 * ux], [x1 - 7 * ux + 4 * uy, y1 - 7 * uy - 4 * ux]];
      drawn("polygon", this.lines, { class: `${look} wb-arrow-head`, points: head.map((p) => p.join(",")).join(" ") });
    }
  }

  // The ends of the last piece of an arrow, for its head, and its path: straight to the next column, else over the sites.
  route(one, other) {
    const [[x0, y0], [x1, y1]] = [this.place(one), this.place(other)];
    if (other.column - one.column === 1) {
      const [from, to] = [[x0 + WIDE, y0 + HIGH / 2], [x1 - 1, y1 + HIGH / 2]];
      return [...from, ...to, `M${from.join(" ")}L${to.join(" ")}`];
    }
    const rise = Math.min(y0, y1) - Math.min(ARC * (other.column - one.column), 44);
    const [from, to] = [[x0 + WIDE * 0.75, y0], [x1 + WIDE * 0.25, y1 - 1]];
    return [to[0] - 10, rise, ...to, `M${from.join(" ")}C${from[0] + 14} ${rise},${to[0] - 14} ${rise},${to.join(" ")}`];
  }

  showSite(node, ahead) {
    let button = this.buttons.get(node.site);
    if (!button) {
      button = element("button", "", this.sheet, { type: "button" });
      button.addEventListener("click", () => {
        this.stop();
        this.at = undefined;
        this.look(node.site);
      });
      this.buttons.set(node.site, button);
      element("span", "wb-site-name", button);
      element("span", "wb-site-error", button);
      const bar = element("span", "wb-site-bar", button);
      for (const part of ["fill", "floor", "predicted"]) element("i", `wb-site-${part}`, bar);
    }
    const [left, top] = this.place(node);
    button.style.cssText = `left: ${left}px; top: ${top}px; width: ${WIDE}px; height: ${HIGH}px`;
    button.className = `wb-site wb-site-${node.kind.replace(/\W/g, "-")}`;
    button.classList.toggle("wb-site-chosen", node.chosen);
    button.classList.toggle("wb-site-ahead", ahead);
    button.setAttribute("aria-pressed", String(node.chosen));
    const told = ["reached", "waiting"].includes(node.kind) ? "" : node.kind;
    const short = node.kind === "round-off-limited" ? "round-off" : told;
    button.title = `${node.site}: ${node.about}${node.error ? `; relative error ${node.error}` : ""}${told ? `, ${told}` : ""}`;
    const [name, error, bar] = button.children;
    name.textContent = `${node.hit ? "⚡ " : ""}${node.site}`;
    error.textContent = ahead ? "" : [node.error, [node.sign, short].filter(Boolean).join(" ")].filter(Boolean).join(" · ");
    button.setAttribute("aria-label", button.title + (node.hit ? "; the error is put in here" : ""));
    const [fill, floor, predicted] = bar.children;
    fill.style.width = `${100 * (ahead ? 0 : node.bar ?? 0)}%`;
    this.mark(floor, node.floor);
    this.mark(predicted, ahead ? null : node.predicted);
    if (node.chosen && this.seen !== node.site) this.reveal(left);
    if (node.chosen) this.seen = node.site;
  }

  mark(element, share) {
    element.style.display = share === null || share === undefined ? "none" : "";
    element.style.left = `${100 * (share ?? 0)}%`;
  }

  reveal(left) {
    const { scrollLeft, clientWidth } = this.area;
    if (left < scrollLeft || left + WIDE > scrollLeft + clientWidth) this.area.scrollLeft = left - BESIDE;
  }

  showKey() {
    const [low, high] = this.channel.content.ends;
    if (!low) return;
    const signs = this.channel.content.key;
    const texts = [`relative error, bars from ${low} to ${high} (log scale)`, "round-off floor", "predicted", "⚡ put in here", signs];
    const kinds = ["fill", "floor", "predicted", "", ""];
    this.legend.replaceChildren();
    texts.forEach((text, place) => {
      if (!text) return;
      const entry = element("span", "wb-graph-entry", this.legend);
      if (kinds[place]) element("i", `wb-key-${kinds[place]}`, entry);
      entry.append(text);
    });
  }
}
