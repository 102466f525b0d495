// A button that copies a text. Pages from another machine may have no clipboard access, so there is a second method.

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (!copied) throw new Error("the browser refused");
}

export default {
  render({ model, el }) {
    const button = document.createElement("button");
    button.className = "jupyter-widgets jupyter-button widget-button wb-copy";
    button.textContent = model.get("label");
    button.addEventListener("click", async () => {
      try {
        await copy(model.get("text"));
        button.textContent = "copied";
        model.set("copied", model.get("copied") + 1);
        model.save_changes();
      } catch {
        button.textContent = "select it below";
      }
      setTimeout(() => (button.textContent = model.get("label")), 1500);
    });
    el.append(button);
  },
};
