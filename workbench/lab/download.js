// A button that saves a file: Python makes it when the button is pressed, and sends its bytes.

const WAITING = "preparing …";
let views = 0;

export default {
  render({ model, el }) {
    const own = ++views;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "jupyter-widgets jupyter-button widget-button wb-download";
    const relabel = () => (button.textContent = model.get("label"));
    const hear = ({ view, name }, buffers) => {
      if (view !== own) return;
      button.disabled = false;
      relabel();
      if (name) save(name, buffers[0]);
    };
    const ask = () => {
      button.disabled = true;
      button.textContent = WAITING;
      model.send({ view: own });
    };
    relabel();
    button.addEventListener("click", ask);
    model.on("msg:custom", hear);
    model.on("change:label", relabel);
    el.append(button);
    return () => {
      model.off("msg:custom", hear);
      model.off("change:label", relabel);
    };
  },
};

function save(name, bytes) {
  const address = URL.createObjectURL(new Blob([bytes]));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000); // the browser reads it after the click
}
