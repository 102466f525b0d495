// Gives the pictures of a panel the height that is left on the screen, and dims content that is being replaced.

const [LEAST, MOST, STEP] = [200, 1200, 8]; // pixels
const JITTER = 40; // pictures shrink when there is less room, but grow only by more than this
const MARGIN = 14;
const SCREENS = ".jp-WindowedPanel-outer, .jp-LinkedOutputView"; // what a notebook, or a view of one output, is seen through

// The height of titles, colour bars and legends around the pictures of a canvas.
function beside(canvas) {
  return canvas.offsetHeight - (canvas.querySelector(".wb-picture")?.offsetHeight ?? 0);
}

class Fitting {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.fit = this.fit.bind(this);
    this.show = this.show.bind(this);
    this.observer = new ResizeObserver(this.fit);
    this.observer.observe(el); // it has a width once it is on the page
    for (const trait of ["stale", "mark"]) model.on(`change:${trait}`, this.show);
    addEventListener("resize", this.fit);
    Promise.all(model.get("pictures").map((name) => model.widget_manager.get_model(name.slice("IPY_MODEL_".length))))
      .then((found) => {
        this.pictures = found;
        this.fit();
      });
  }

  fit() {
    const panel = this.el.closest(".wb-panel");
    const row = panel?.querySelector(".wb-pictures");
    if (!row?.querySelector(".wb-canvas") || !this.pictures || !panel.clientWidth) return;
    const screen = panel.closest(SCREENS);
    if (this.seen !== panel) {
      this.seen = panel;
      for (const part of [".wb-above", ".wb-figures"]) this.observer.observe(panel.querySelector(part));
      if (screen) this.observer.observe(screen);
      this.show();
    }
    const above = row.getBoundingClientRect().top - panel.getBoundingClientRect().top;
    const around = Math.max(...[...row.querySelectorAll(".wb-canvas")].map(beside));
    const available = screen?.clientHeight ?? innerHeight;
    const room = available - above - around - MARGIN;
    const tall = STEP * Math.floor(Math.min(MOST, Math.max(LEAST, room)) / STEP);
    const grows = tall - this.tall;
    if (available === this.available && grows >= 0 && grows < JITTER) return;
    [this.available, this.tall] = [available, tall];
    for (const each of this.pictures) each.set("tall", tall);
  }

  show() {
    const content = this.el.closest(".wb-panel")?.querySelector(".wb-content");
    if (!content) return;
    content.setAttribute("aria-busy", this.model.get("stale"));
    content.dataset.mark = this.model.get("mark");
  }

  close() {
    for (const trait of ["stale", "mark"]) this.model.off(`change:${trait}`, this.show);
    removeEventListener("resize", this.fit);
    this.observer.disconnect();
  }
}

export default {
  render({ model, el }) {
    const fitting = new Fitting(model, el);
    return () => fitting.close();
  },
};
