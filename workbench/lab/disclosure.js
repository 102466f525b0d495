// A button that unfolds controls. Python shows and hides them; the browser remembers the choice for later panels.

const stored = (key) => `lossbench.unfolded.${key}`;

function recall(key) {
  try {
    return localStorage.getItem(stored(key));
  } catch {
    return null; // storage may be forbidden
  }
}

function remember(key, unfolded) {
  try {
    localStorage.setItem(stored(key), unfolded);
  } catch {
    return; // it is remembered by Python as long as the panel lives
  }
}

export default {
  render({ model, el }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "jupyter-widgets jupyter-button widget-button wb-more";
    const show = () => {
      const unfolded = model.get("unfolded");
      button.setAttribute("aria-expanded", unfolded);
      button.textContent = `${unfolded ? "▾" : "▸"} ${model.get("label")}`;
    };
    const set = (unfolded) => {
      model.set("unfolded", unfolded);
      model.save_changes();
      remember(model.get("key"), unfolded);
    };
    button.addEventListener("click", () => set(!model.get("unfolded")));
    model.on("change:unfolded", show);
    const before = recall(model.get("key"));
    if (before !== null && (before === "true") !== model.get("unfolded")) set(before === "true");
    show();
    el.append(button);
    return () => model.off("change:unfolded", show);
  },
};
