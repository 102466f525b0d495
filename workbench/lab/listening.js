
// anywidget gives every model 2 seconds to load. A model that takes longer, on a busy machine, is drawn but never hears
// Python again, because its messages wait for a promise that was rejected. Such a model is connected again here, and asks
// for its state, since messages were lost meanwhile.

const WAIT_FOR_MODELS = 100; // ms between two attempts to find a model that is still being made

// The model itself: anywidget passes only some of its methods. Each model has a layout of its own. Nothing, if it is closed
// while it is looked for.
async function itself(model, closed) {
  const { _models: all } = model.widget_manager;
  const layout = model.get("layout");
  while (!closed.aborted) {
    const found = await new Promise((resolve) => {
      for (const made of Object.values(all)) made.then((one) => one.get?.("layout") === layout && resolve(one), () => {});
      setTimeout(resolve, WAIT_FOR_MODELS);
    });
    if (found) return found;
  }
}

async function listenAgain({ model, signal: closed }) {
  const real = await itself(model, closed);
  if (!real) return;
  try {
    await real._handle_comm_msg({ content: { data: { method: "nothing" } } }); // waits until the model is loaded
  } catch {
    const name = model.get("_anywidget_id");
    if (!real.comm_live) {
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
  ...widget,
  initialize(given) {
    listenAgain(given);
    return widget.initialize?.(given);
  },
};
