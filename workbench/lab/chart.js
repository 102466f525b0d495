// A Bokeh plot, drawn by a BokehJS that Python sends along once for each kernel.
//
// jupyter_bokeh looks for `window.Bokeh` at the moment it makes a view, which some output of some cell may or may not have
// loaded by then; that race loses charts. Here the library arrives as a widget of its own and is run when it is first needed.
// It is kept away from `window`, where other plots of the page look for theirs.

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
    this.receiver = new (bokeh.require("protocol/receiver").Receiver)();
    this.draw = this.draw.bind(this);
    this.patch = this.patch.bind(this);
    model.on("change:render_bundle", this.draw);
    model.on("msg:custom", this.patch);
    this.draw();
  }

  draw() {
    const { Document } = this.bokeh.require("document");
    const { add_document_standalone: show } = this.bokeh.require("embed/standalone");
    this.document?.clear();
    const { docs_json: documents, render_items: [item], div } = JSON.parse(this.model.get("render_bundle"));
    this.el.innerHTML = div;
    const place = this.el.firstElementChild;
    this.document = Document.from_json(Object.values(documents)[0]);
    show(this.document, place, Object.fromEntries(Object.keys(item.roots).map((root) => [root, place])));
  }

  // What changed in Python, in the pieces of Bokeh's own protocol.
  patch(message, buffers) {
    if (message.msg !== "patch") return;
    this.receiver.consume(message.payload ?? buffers[0].buffer);
    const whole = this.receiver.message;
    if (whole && Object.keys(whole.content).length) this.document.apply_json_patch(whole.content, whole.buffers);
  }

  close() {
    this.model.off("change:render_bundle", this.draw);
    this.model.off("msg:custom", this.patch);
    this.document?.clear();
  }
}

export default {
  async render({ model, el }) {
    const view = new View(await library(model), model, el);
    return () => view.close();
  },
};
