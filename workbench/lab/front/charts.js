// A Bokeh plot, drawn by a BokehJS that Python sends once for each kernel.
//
// The library is a trait of the widget with the modules, and runs when it is first needed. It is not stored in `window`, where
// other plots of the page look for theirs.
//
// Drawings and changes are numbered. A view applies only the change that directly follows its version. If it learns of a
// later one, from a change or from the content of the page, it is marked as stale and asks Python for the whole plot until
// it has the newest version: messages can be lost, and the plot may change while the library is loading.

import { Frame } from "./chart_frame.js";

const [SOON, LATEST] = [400, 30_000]; // ms between two questions to Python: the first interval and the longest one
const LEAST = 100; // pixels of a plot with its axes

async function library(front) {
  while (!front.get("bokeh")) await new Promise((resolve) => front.once("change:bokeh", resolve));
  const home = Symbol.for(`lossbench.bokeh.${front.get("bokeh_version")}`); // one for all charts of a page
  if (!globalThis[home]) {
    const own = {};
    new Function(front.get("bokeh")).call(own);
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
    this.look = this.look.bind(this);
    document.addEventListener("visibilitychange", this.look);
    this.start();
  }

  async start() {
    this.bokeh = await library(this.channel.front);
    if (this.closed) return;
    this.show(this.channel.content);
    this.look(); // the drawing may be as old as the page
  }

  // What the page knows of the chart: a drawing as old as it may be, and the number of the newest.
  show({ drawing, newest, coming }) {
    this.frame.el.classList.toggle("wb-coming", coming);
    if (!this.bokeh || this.closed) return;
    if (drawing.number > this.number) this.draw(drawing);
    this.newest = Math.max(this.newest, newest);
    this.compare();
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
      this.channel.send({ shown: this.wrong ? -1 : this.number });
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
    const turn = this.turn.then(() => this.document === newest && this.display(newest));
    this.turn = turn.catch((error) => setTimeout(() => { throw error; })); // reported, and the queue continues
  }

  async display(document) {
    const { add_document_standalone: show } = this.bokeh.require("embed/standalone");
    this.shown?.clear();
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
    document.removeEventListener("visibilitychange", this.look);
    clearTimeout(this.asking);
    this.frame.close();
    this.document = undefined;
    this.turn.then(() => this.shown?.clear());
  }
}
