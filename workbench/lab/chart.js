// A Bokeh plot, drawn by a BokehJS that Python sends once for each kernel.
//
// The library arrives as a separate widget and runs when it is first needed. It is not stored in `window`, where other
// plots of the page look for theirs.
//
// Drawings and changes are numbered. A view applies only the change that directly follows its version. If it learns of a
// later one, from a change or from the trait `revision`, it is marked as stale and asks Python for the whole plot until it
// has the newest version: messages can be lost, and the plot may change while the library is loading.

import { Frame } from "./chart_frame.js";

const [SOON, LATEST] = [400, 30_000]; // ms between two questions to Python: the first interval and the longest one
const LIBRARY_WITHIN = 300_000; // ms

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));

async function library(model, gone) {
  const home = Symbol.for(`lossbench.bokeh.${model.get("version")}`); // one for all charts of a page
  const started = performance.now();
  for (let wait = SOON; !globalThis[home] && !gone(); wait = Math.min(2 * wait, LATEST)) {
    try {
      const sent = await model.widget_manager.get_model(model.get("library").slice("IPY_MODEL_".length));
      const own = {};
      new Function(sent.get("source")).call(own);
      globalThis[home] ??= own.Bokeh;
    } catch (error) {
      if (performance.now() - started > LIBRARY_WITHIN) throw error;
      await sleep(wait);
    }
  }
  return globalThis[home];
}

class View {
  constructor(model, el) {
    this.model = model;
    this.frame = new Frame(el);
    this.number = -1; // of the version that is shown
    this.newest = 0;
    this.turn = Promise.resolve();
    this.hear = this.hear.bind(this);
    this.learn = this.learn.bind(this);
    this.look = this.look.bind(this);
    model.on("msg:custom", this.hear);
    model.on("change:revision", this.learn);
    document.addEventListener("visibilitychange", this.look);
  }

  async start() {
    this.bokeh = await library(this.model, () => this.closed);
    if (this.closed) return;
    this.draw(this.model.get("drawing"));
    this.newest = this.model.get("revision");
    this.look(); // the drawing may be as old as the widget
  }

  // A message from Python: the whole plot, the next change, or only the number of the newest.
  hear({ drawing, change, number }, buffers) {
    if (!this.bokeh || this.closed) return;
    if (drawing && (drawing.number > this.number || this.wrong)) this.draw(drawing);
    if (change && number === this.number + 1) this.make(JSON.parse(change), number, buffers);
    if (!change) this.unsure = false;
    this.newest = Math.max(this.newest, drawing?.number ?? number);
    this.compare();
  }

  learn() {
    this.newest = Math.max(this.newest, this.model.get("revision"));
    this.compare();
  }

  // A page that was out of sight, on a machine that slept, may have missed anything.
  look() {
    this.unsure ||= !document.hidden;
    this.compare();
  }

  // Ask Python for the newest version until it is shown.
  compare() {
    if (!this.bokeh || this.closed) return;
    const stale = this.wrong || this.number < this.newest;
    this.frame.stale(stale);
    if (!stale && !this.unsure) {
      clearTimeout(this.asking);
      this.asking = this.wait = undefined;
    } else if (!this.asking) {
      this.model.send({ shown: this.wrong ? -1 : this.number });
      this.wait = Math.min(2 * (this.wait ?? SOON / 2), LATEST);
      this.asking = setTimeout(() => {
        this.asking = undefined;
        this.compare();
      }, this.wait);
    }
  }

  // Bokeh draws asynchronously, so a newer drawing may arrive before the last one is done. It waits in a queue.
  draw({ document, number }) {
    const { Document } = this.bokeh.require("document");
    const newest = Document.from_json(JSON.parse(document));
    this.document = newest;
    this.number = number;
    this.wrong = false;
    const turn = this.turn.then(() => this.document === newest && this.show(newest));
    this.turn = turn.catch((error) => setTimeout(() => { throw error; })); // reported, and the queue continues
  }

  async show(document) {
    const { add_document_standalone: show } = this.bokeh.require("embed/standalone");
    this.shown?.clear();
    this.shown = document;
    const [root] = document.roots();
    const place = this.frame.place(root);
    const views = await show(document, place, { [root.id]: place });
    this.frame.describe(root, views.get(root));
  }

  make({ content, ids }, number, buffers) {
    const bytes = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);
    try {
      this.document.apply_json_patch(content, new Map(ids.map((id, each) => [id, bytes(buffers[each])])));
      this.number = number;
      if (this.shown === this.document) this.frame.describe(this.document.roots()[0]);
    } catch (error) {
      this.wrong = true; // a change that does not fit: only a new drawing helps
      console.warn("lossbench: a change of a chart did not fit, so the chart is drawn again", error);
    }
  }

  close() {
    this.closed = true;
    this.model.off("msg:custom", this.hear);
    this.model.off("change:revision", this.learn);
    document.removeEventListener("visibilitychange", this.look);
    clearTimeout(this.asking);
    this.frame.close();
    this.document = undefined;
    this.turn.then(() => this.shown?.clear());
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    view.start();
    return () => view.close();
  },
};
