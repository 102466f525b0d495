// Gives the pictures of a panel the height that is left on the screen, and dims content that is being replaced or does not
// belong to what the controls show. Without a kernel there is nothing to control.

const [LEAST, MOST, STEP] = [200, 1200, 8]; // pixels
const JITTER = 40; // pictures shrink when there is less room, but grow only by more than this
const MARGIN = 14;
const BUSY = "kernel busy: the change waits";
const LOST = "not connected: run the cell again";
const ASKING = ".wb-above, .wb-saving > :not(:has(.wb-copy))"; // what asks the kernel for something; copying needs none
const SCREENS = ".jp-WindowedPanel-outer, .jp-LinkedOutputView"; // what a notebook, or a view of one output, is seen through

// The height of titles, colour bars and legends around the pictures of a canvas.
function beside(canvas) {
  return canvas.offsetHeight - (canvas.querySelector(".wb-picture")?.offsetHeight ?? 0);
}

// Whether nothing will be answered any more. Some pages do not know their kernel; they know whether a model is connected.
function lost(manager, one) {
  const { kernel } = manager;
  const gone = kernel === null || kernel?.isDisposed || kernel?.status === "dead" || kernel?.connectionStatus === "disconnected";
  return Boolean(gone) || one.comm_live === false;
}

class Fitting {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.fit = this.fit.bind(this);
    this.show = this.show.bind(this);
    this.unanswered = new Set(); // controls whose request has no answer yet
    this.observer = new ResizeObserver(this.fit);
    this.observer.observe(el); // it has a width once it is on the page
    for (const trait of ["stale", "mark"]) model.on(`change:${trait}`, this.show);
    addEventListener("resize", this.fit);
    Promise.all(model.get("pictures").map((name) => model.widget_manager.get_model(name.slice("IPY_MODEL_".length))))
      .then((found) => {
        if (this.closed) return;
        this.pictures = found;
        found[0]?.on("comm_live_update", this.show);
        const { kernel } = model.widget_manager;
        this.signals = [kernel?.statusChanged, kernel?.connectionStatusChanged, kernel?.disposed].filter(Boolean);
        for (const signal of this.signals) signal.connect(this.show);
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
      panel.addEventListener("wb-unanswered", ({ detail: control }) => this.wait(control, true));
      panel.addEventListener("wb-answered", ({ detail: control }) => this.wait(control, false));
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

  wait(control, unanswered) {
    if (unanswered) this.unanswered.add(control);
    else this.unanswered.delete(control);
    this.show();
  }

  show() {
    const panel = this.el.closest(".wb-panel");
    const content = panel?.querySelector(".wb-content");
    if (!content) return;
    const alone = this.pictures?.length > 0 && lost(this.model.widget_manager, this.pictures[0]);
    if (alone && this.unanswered.size) {
      for (const control of [...this.unanswered]) control.giveUp(); // which shows again, without it
      return;
    }
    for (const part of panel.querySelectorAll(ASKING)) part.inert = alone;
    if (alone) for (const entry of panel.querySelectorAll(".wb-control-entry")) entry.value = entry.defaultValue;
    content.classList.toggle("wb-alone", alone);
    content.setAttribute("aria-busy", this.model.get("stale") || this.unanswered.size > 0);
    content.dataset.mark = alone ? LOST : this.unanswered.size ? BUSY : this.model.get("mark");
  }

  close() {
    for (const trait of ["stale", "mark"]) this.model.off(`change:${trait}`, this.show);
    removeEventListener("resize", this.fit);
    this.closed = true;
    this.pictures?.[0]?.off("comm_live_update", this.show);
    for (const signal of this.signals ?? []) signal.disconnect(this.show);
    this.observer.disconnect();
  }
}

export default {
  render({ model, el }) {
    const fitting = new Fitting(model, el);
    return () => fitting.close();
  },
};
