// What stands around a plot: its name, its key, and the buttons for zooming and saving. A key in HTML wraps where a chart
// is narrow, is never cut, and has the colours of the page's theme.

import { GLYPH_HEIGHT, GLYPH_WIDTH, save } from "./chart_saving.js";
import { SVG, element } from "./dom.js";

const ZOOM_STEP = 1.5; // by one press of a button

const BUTTONS = {
  "zoom in": ["+", "zoom in (or drag a box on the chart)", (frame) => frame.zoom(1 / ZOOM_STEP)],
  "zoom out": ["−", "zoom out", (frame) => frame.zoom(ZOOM_STEP)],
  reset: ["reset", "show everything again (or double-click on the chart)", (frame) => frame.reset()],
  wheel: ["wheel", "let the wheel of the mouse zoom", (frame, button) => frame.toggleWheel(button)],
  png: ["PNG", "save as PNG", (frame) => save(frame, "png")],
  svg: ["SVG", "save as SVG", (frame) => save(frame, "svg")],
};

export class Frame {
  constructor(el) {
    this.el = el;
    el.classList.add("wb-chart-frame");
    const head = element("div", "wb-chart-head", el);
    this.name = element("span", "wb-chart-name", head);
    this.state = element("span", "wb-chart-state", head);
    this.tools = element("div", "wb-chart-tools", head);
    this.tools.setAttribute("role", "toolbar");
    for (const [name, [text, title, act]] of Object.entries(BUTTONS)) {
      const button = element("button", "wb-chart-button", this.tools, text);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-label", title);
      button.dataset.does = name;
      button.addEventListener("click", () => act(this, button));
    }
    this.key = element("ul", "wb-chart-key", el);
    this.plot = element("div", "wb-chart-plot", el);
    this.plot.setAttribute("role", "img");
    this.plot.addEventListener("dblclick", () => this.reset());
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
    const made = element("div", "", this.plot);
    made.style.display = "contents";
    this.plot.replaceChildren(made);
    return made;
  }

  // The words that Python has put beside the plot.
  describe(root, view = this.view) {
    [this.root, this.view] = [root, view];
    const told = root.tags[0] ?? {};
    if (told === this.told) return;
    this.told = told;
    const { name = "", key = [], about = "" } = told;
    this.words = { name, key };
    this.name.textContent = name;
    this.plot.setAttribute("aria-label", about || name || "chart");
    this.tools.setAttribute("aria-label", `tools of the chart ${name}`);
    this.key.replaceChildren(...key.map((entry) => this.entry(entry)));
    this.key.hidden = !key.length;
  }

  entry({ name, glyph, meaning }) {
    const row = document.createElement("li");
    row.title = meaning;
    const mark = document.createElementNS(SVG, "svg");
    for (const [trait, value] of Object.entries({ width: GLYPH_WIDTH, height: GLYPH_HEIGHT, "aria-hidden": "true" })) {
      mark.setAttribute(trait, value);
    }
    mark.innerHTML = glyph;
    row.append(mark, name);
    return row;
  }

  // A chart that waits for a newer version looks so.
  stale(is) {
    this.el.classList.toggle("wb-stale", is);
    this.el.setAttribute("aria-busy", String(is));
    this.state.textContent = is ? "updating …" : "";
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
