// What stands around a plot: its name, its key, and the buttons for zooming and saving. A key in HTML wraps where a chart
// is narrow, is never cut, and has the colours of the page's theme.

import { GLYPH_HEIGHT, GLYPH_WIDTH, save } from "./chart_saving.js";
import { drawn, element, pushButton } from "./dom.js";

const ZOOM_STEP = 1.5; // by one press of a button
const GAP = 2; // pixels between buttons

const BUTTONS = [
  ["+", "zoom in (or drag a box on the chart)", (frame) => frame.zoom(1 / ZOOM_STEP)],
  ["−", "zoom out", (frame) => frame.zoom(ZOOM_STEP)],
  ["reset", "show everything again (or double-click on the chart)", (frame) => frame.reset()],
  ["wheel", "let the wheel of the mouse zoom", (frame, button) => frame.toggleWheel(button)],
  ["PNG", "save as PNG", (frame) => save(frame, "png")],
  ["SVG", "save as SVG", (frame) => save(frame, "svg")],
];

export class Frame {
  constructor(el) {
    this.el = el;
    el.classList.add("wb-chart-frame");
    const head = element("div", "wb-chart-head", el);
    this.name = element("span", "wb-chart-name", head);
    this.state = element("span", "wb-chart-state", head);
    this.tools = element("div", "wb-chart-tools", head, { role: "toolbar" });
    for (const [text, title, act] of BUTTONS) {
      const button = pushButton(this.tools, text, title, () => act(this, button));
      button.className = "wb-chart-button";
    }
    this.key = element("ul", "wb-chart-key", el);
    this.plot = element("div", "wb-chart-plot", el, { role: "img" });
    this.plot.addEventListener("dblclick", () => this.reset());
    for (const event of ["pointerenter", "focusin"]) el.addEventListener(event, () => this.makeRoom());
    this.theme = new MutationObserver(() => this.view?.request_paint?.());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light"] });
  }

  // The height of all but the plot.
  around() {
    return [...this.el.children].reduce((sum, part) => sum + (part === this.plot ? 0 : part.offsetHeight), 0);
  }

  // A new element for Bokeh to draw in.
  place(root) {
    this.describe(root);
    const made = element("div", "", null, { style: "display: contents" });
    this.plot.replaceChildren(made);
    return made;
  }

  // The words that Python has put beside the plot.
  describe(root, view = this.view) {
    [this.root, this.view] = [root, view];
    const words = root.tags[0] ?? {};
    if (words === this.described) return;
    this.described = words;
    const { name = "", key = [], about = "" } = words;
    this.words = { name, key };
    this.name.textContent = this.name.title = name;
    this.plot.setAttribute("aria-label", about || name || "chart");
    this.tools.setAttribute("aria-label", `tools of the chart ${name}`);
    this.key.replaceChildren(...key.map((entry) => this.entry(entry)));
    this.key.hidden = !key.length;
  }

  entry({ name, glyph, meaning }) {
    const row = element("li", "", null, { title: meaning });
    drawn("svg", row, { width: GLYPH_WIDTH, height: GLYPH_HEIGHT, "aria-hidden": "true" }).innerHTML = glyph;
    row.append(name);
    return row;
  }

  // A chart that waits for a newer version looks so.
  stale(is) {
    this.el.classList.toggle("wb-stale", is);
    this.el.setAttribute("aria-busy", String(is));
    this.state.textContent = is ? "updating …" : "";
    this.makeRoom();
  }

  // The tools are beside the name; where that leaves them no room, they are folded, and open below it.
  makeRoom() {
    const taken = (this.state.textContent ? this.state : this.name).getBoundingClientRect().right;
    const room = this.el.getBoundingClientRect().right - taken;
    const wide = [...this.tools.children].reduce((sum, button) => sum + button.offsetWidth + GAP, 0);
    this.tools.classList.toggle("wb-folded", room < wide);
  }

  zoom(factor) {
    for (const [range, scale] of [[this.root.x_range, this.root.x_scale], [this.root.y_range, this.root.y_scale]]) {
      const [there, back] = scale.type === "LogScale" ? [Math.log, Math.exp] : [Number, Number];
      const [low, high] = [there(range.start), there(range.end)];
      const [middle, half] = [(low + high) / 2, (factor * (high - low)) / 2];
      range.setv({ start: back(middle - half), end: back(middle + half) });
    }
  }

  reset() {
    this.root.x_range.reset();
    this.root.y_range.reset();
  }

  toggleWheel(button) {
    const { toolbar } = this.root;
    const wheel = toolbar.tools.find((tool) => tool.type === "WheelZoomTool");
    wheel.active = !wheel.active;
    button.setAttribute("aria-pressed", String(wheel.active));
  }

  close() {
    this.theme.disconnect();
  }
}
