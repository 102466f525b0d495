// Whether anybody answers: a request without an answer dims the figures, and without its kernel a panel has nothing to ask.

const BUSY = "kernel busy: the change waits";
const LOST = `not connected: ${document.body.dataset.voila ? "reload this page" : "run the cell again"}`;
const ASKING = ".wb-above, .wb-row, .wb-saving > :not(:has(.wb-copy))"; // what asks the kernel for something; copying needs none

// Some pages do not know their kernel; they know whether a model is connected.
function lost(manager, model) {
  const { kernel } = manager;
  const gone = kernel === null || kernel?.isDisposed || kernel?.status === "dead" || kernel?.connectionStatus === "disconnected";
  return Boolean(gone) || model.comm_live === false;
}

export class Connection {
  constructor(view) {
    this.view = view;
    this.unanswered = new Set(); // controls whose request has no answer yet
    this.alone = false;
    this.show = this.show.bind(this);
    this.begin();
  }

  async begin() {
    const { model } = this.view.store;
    this.model = await model.widget_manager.get_model(model.get("own_id"));
    if (this.closed) return;
    this.model.on("comm_live_update", this.show);
    const { kernel } = model.widget_manager;
    this.signals = [kernel?.statusChanged, kernel?.connectionStatusChanged, kernel?.disposed].filter(Boolean);
    for (const signal of this.signals) signal.connect(this.show);
    this.show();
  }

  waits(control, unanswered) {
    if (unanswered) this.unanswered.add(control);
    else this.unanswered.delete(control);
    this.show();
  }

  show() {
    const { root, content, store } = this.view;
    const { stale, mark } = store.parts.frame;
    const alone = Boolean(this.model) && lost(store.model.widget_manager, this.model);
    if (!stale && !alone) for (const control of this.view.controls()) control.settle();
    if (alone !== this.alone) this.change(alone);
    for (const part of root.querySelectorAll(ASKING)) part.inert = alone;
    content.classList.toggle("wb-alone", alone);
    content.setAttribute("aria-busy", !alone && (stale || this.unanswered.size > 0));
    content.dataset.mark = alone ? LOST : this.unanswered.size ? BUSY : mark;
  }

  // Nobody answers any more: the controls show what the figures are of. Somebody answers again: what was missed is asked for.
  change(alone) {
    this.alone = alone;
    if (!alone) return this.view.store.askAll();
    this.unanswered.clear();
    for (const control of this.view.controls()) control.giveUp();
    for (const entry of this.view.root.querySelectorAll(".wb-control-entry")) entry.value = entry.defaultValue;
  }

  close() {
    this.closed = true;
    this.model?.off("comm_live_update", this.show);
    for (const signal of this.signals ?? []) signal.disconnect(this.show);
  }
}
