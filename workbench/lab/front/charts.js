// A Bokeh plot, drawn by a BokehJS that Python sends once for each kernel.
//
// The library is a trait of the widget with the modules, and runs when it is first needed. It is not stored in `window`, where
// other plots of the page look for theirs.
//
// Drawings and changes are numbered. A view applies only the change that directly follows its version. If it has missed one, as
// while the library was loading, it is marked as stale and asks for the whole content of the page, which has the newest drawing.

import { Frame } from "./chart_frame.js";
import { Asking } from "./dom.js";

const LEAST = 100; // pixels of a plot with its axes

async function library(front) {
  while (!front.get("bokeh")) await new Promise((resolve) => front.once("change:bokeh", resolve));
  const home = Symbol.for(`lossbench.bokeh.${front.get("bokeh_version")}`); // one for all charts of a page
  if (!globalThis[home]) {
    const own = {};
    new Function("visualViewport", front.get("bokeh")).call(own, null); // Bokeh listens to it, and never stops
    globalThis[home] = own.Bokeh;
  }
  return globalThis[home];
}

export class ChartView {
  constructor(channel, el) {
    this.channel = channel;
    this.frame = new Frame(el);
    this.number = -1; // of the version that is shown
    this.newest = 0;
    this.turn = Promise.resolve();
    this.asking = new Asking(() => this.number < this.newest, () => channel.askAll());
    this.start();
  }

  async start() {
    this.bokeh = await library(this.channel.front);
    this.show(this.channel.content);
  }

  // The drawing may be as old as the page, and the change is the latest one.
  show({ drawing, change, coming }) {
    this.frame.el.classList.toggle("wb-coming", coming);
    if (!this.bokeh || this.closed) return;
    if (drawing.number > this.number) this.draw(drawing);
    if (change.number === this.number + 1) this.make(change);
    this.newest = Math.max(this.newest, change.number);
    const stale = this.number < this.newest;
    this.frame.stale(stale);
    if (stale && !this.asking.timer) this.asking.now();
    else this.asking.check();
  }

  // Bokeh draws asynchronously, so a newer drawing may arrive before the last one is done. It waits in a queue.
  draw({ document, number }) {
    const { Document } = this.bokeh.require("document");
    const newest = Document.from_json(JSON.parse(document));
    this.document = newest;
    this.number = number;
    const turn = this.turn.then(() => this.document === newest && this.display(newest));
    this.turn = turn.catch((error) => setTimeout(() => { throw error; })); // reported, and the queue continues
  }

  async display(document) {
    const { add_document_standalone: show } = this.bokeh.require("embed/standalone");
    this.forget();
    this.shown = document;
    const [root] = document.roots();
    const place = this.frame.place(root);
    const views = await show(document, place, { [root.id]: place });
    this.frame.describe(root, views.get(root));
    this.resize();
  }

  // The height of the whole chart in pixels, with its name and its key.
  fit(height) {
    this.tall = height;
    this.resize();
  }

  resize() {
    const [root] = this.shown?.roots() ?? [];
    if (!root || !this.tall) return;
    const plot = Math.max(LEAST, this.tall - this.frame.around());
    if (Math.abs(root.height - plot) > 1) root.height = plot;
  }

  make({ patch, number, buffers }) {
    const { content, ids } = JSON.parse(patch);
    const bytes = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);
    try {
      this.document.apply_json_patch(content, new Map(ids.map((id, each) => [id, bytes(buffers[each])])));
      this.number = number;
      if (this.shown === this.document) this.frame.describe(this.document.roots()[0]);
    } catch (error) { // a change that does not fit: only a new drawing helps
      console.warn("lossbench: a change of a chart did not fit, so the chart is drawn again", error);
    }
  }

  close() {
    this.closed = true;
    this.asking.stop();
    this.frame.close();
    this.document = undefined;
    this.turn.then(() => this.forget());
  }

  // Bokeh lists all documents, and all views of one: what is not taken off keeps the elements of its panel in memory.
  forget() {
    if (!this.shown) return;
    this.shown.views_manager.clear(); // the plot, and the notifications of the document
    const { documents } = this.bokeh.require("document");
    documents.splice(documents.indexOf(this.shown), 1);
    this.shown = undefined;
  }
}
