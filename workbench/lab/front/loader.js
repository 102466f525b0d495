// The script of each widget. The modules themselves are sent once for all widgets of a kernel, and linked here as plain ES
// modules: each import becomes the address of another module.

const IMPORT = /\bfrom "\.\/([\w.]+)"/g;
const [SOON, LATEST, WITHIN] = [100, 5_000, 300_000]; // ms: between two attempts to find the modules, and altogether
const loaded = (globalThis[Symbol.for("lossbench.front")] ??= new Map()); // by version, for all widgets of the page
const ignore = () => {};
const early = new Map(); // messages that came before the modules, by the name of the widget

function link(sources) {
  const addresses = {};
  const address = (name) => (addresses[name] ??= URL.createObjectURL(new Blob([
    sources[name].replace(IMPORT, (_, other) => `from "${address(other)}"`), `\n//# sourceURL=lossbench/${name}`,
  ], { type: "text/javascript" })));
  return import(address("page.js"));
}

function addStyle(text) {
  const style = document.createElement("style");
  style.textContent = text;
  document.head.append(style);
}

async function modulesOf(model, closed) {
  const started = performance.now();
  for (let wait = SOON; !closed.aborted; wait = Math.min(2 * wait, LATEST)) {
    try {
      const front = await model.widget_manager.get_model(model.get("front").slice("IPY_MODEL_".length));
      const version = front.get("version");
      if (!loaded.has(version)) {
        addStyle(front.get("style"));
        loaded.set(version, link(front.get("modules")));
      }
      return { ...(await loaded.get(version)), front };
    } catch (error) { // the model may come later than this one
      if (performance.now() - started > WITHIN) throw error;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

// JupyterLab keeps every comm as long as the kernel. A closed model is taken off its comm, which would keep it and its views.
function leaveComm(model) {
  model.once("destroy", () => {
    model.comm?.on_msg(ignore);
    model.comm?.on_close(ignore);
  });
}

// anywidget gives every model 2 seconds to load. A model that takes longer, on a busy machine, is drawn but never hears
// Python again, because its messages wait for a promise that was rejected. Such a model is connected again, and asks for its
// state, since messages were lost meanwhile.
async function listenAgain({ model, signal: closed }) {
  const real = await model.widget_manager.get_model(model.get("own_id"));
  for (const each of [real, real.get("layout")]) leaveComm(each);
  try {
    await real._handle_comm_msg({ content: { data: { method: "nothing" } } }); // waits until the model is loaded
  } catch {
    const name = model.get("_anywidget_id");
    if (closed.aborted || !real.comm_live) {
      console.info(`lossbench: ${name} was late, and is closed meanwhile`);
      return;
    }
    const { _handle_comm_msg: hear } = Object.getPrototypeOf(real.constructor.prototype);
    real.comm.on_msg((message) => hear.call(real, message));
    real.comm.send({ method: "request_state" });
    console.info(`lossbench: ${name} was late, and listens again`);
  }
}

export default {
  initialize(given) {
    listenAgain(given);
    const { model } = given;
    const messages = [];
    const hear = (...message) => messages.push(message);
    model.on("msg:custom", hear);
    early.set(model.get("own_id"), () => {
      model.off("msg:custom", hear);
      return messages.splice(0);
    });
    return () => early.delete(model.get("own_id"));
  },
  async render(given) {
    const { model, signal } = given;
    const modules = await modulesOf(model, signal);
    if (signal.aborted) return;
    const close = modules[model.get("draws")]({ ...given, front: modules.front, missed: early.get(model.get("own_id")) ?? (() => []) });
    signal.addEventListener("abort", close);
  },
};
