// A Bokeh plot, drawn by a BokehJS that Python sends once for each kernel.
//
// The library arrives as a separate widget and runs when it is first needed. It is not stored in `window`, where other
// plots of the page look for theirs.
//
// The plot may change while the library is loading. So drawings and changes are numbered: a view draws its version at
// once, asks Python whether it is the newest, and applies only the change that directly follows it.

async function library(model) {
  const home = Symbol.for(`lossbench.bokeh.${model.get("version")}`); // one for all charts of a page
  if (!globalThis[home]) {
    const sent = await model.widget_manager.get_model(model.get("library").slice("IPY_MODEL_".length));
    const own = {};
    new Function(sent.get("source")).call(own);
    globalThis[home] ??= own.Bokeh;
  }
  return globalThis[home];
}

class View {
  constructor(bokeh, model, el) {
    this.model = model;
    this.el = el;
    this.bokeh = bokeh;
    this.turn = Promise.resolve();
    this.hear = this.hear.bind(this);
    model.on("msg:custom", this.hear);
    this.draw(model.get("drawing"));
    model.send({ shown: this.number });
  }

  // A message from Python: the whole plot, or the next change.
  hear({ drawing, change, number }, buffers) {
    if (drawing && drawing.number !== this.number) this.draw(drawing);
    if (change && number === this.number + 1) this.make(JSON.parse(change), number, buffers);
  }

  // Bokeh draws asynchronously, so a newer drawing may arrive before the last one is done. It waits in a queue.
  draw({ document, number }) {
    const { Document } = this.bokeh.require("document");
    const newest = Document.from_json(JSON.parse(document));
    this.document = newest;
    this.number = number;
    const turn = this.turn.then(() => this.document === newest && this.show(newest));
    this.turn = turn.catch((error) => setTimeout(() => { throw error; })); // reported, and the queue continues
  }

  async show(document) {
    const { add_document_standalone: show } = this.bokeh.require("embed/standalone");
    this.shown?.clear();
    this.shown = document;
    const place = window.document.createElement("div");
    place.style.display = "contents";
    this.el.replaceChildren(place);
    await show(document, place, Object.fromEntries(document.roots().map((root) => [root.id, place])));
  }

  make({ content, ids }, number, buffers) {
    const bytes = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);
    this.document.apply_json_patch(content, new Map(ids.map((id, each) => [id, bytes(buffers[each])])));
    this.number = number;
  }

  close() {
    this.model.off("msg:custom", this.hear);
    this.document = undefined;
    this.turn.then(() => this.shown?.clear());
  }
}

export default {
  async render({ model, el }) {
    const view = new View(await library(model), model, el);
    return () => view.close();
  },
};
