// Buttons to go through the broken links one by one, with the keys n and p anywhere in the panel.

const TYPED_INTO = "input, select, textarea, [contenteditable='true']";

function button(label, name, title, action) {
  const made = document.createElement("button");
  made.className = "jupyter-widgets jupyter-button widget-button wb-step";
  made.style.width = "auto";
  made.textContent = label;
  made.setAttribute("aria-label", name);
  made.title = title;
  made.addEventListener("click", action);
  return made;
}

export default {
  render({ model, el }) {
    const step = (by) => model.get("count") && model.send({ step: by });
    const previous = button("◀ previous", "previous broken link", "look at the pair before (key p)", () => step(-1));
    const next = button("next ▶", "next broken link", "look at the next pair that broke (key n)", () => step(1));
    const place = document.createElement("span");
    place.className = "wb-step-place";
    place.setAttribute("role", "status");
    el.classList.add("wb-link-steps");
    el.style.cssText = "display: flex; align-items: center; gap: 6px; color: var(--jp-ui-font-color1, inherit)";
    el.append(previous, place, next);

    const show = () => {
      place.textContent = model.get("place");
      for (const each of [previous, next]) each.disabled = !model.get("count");
    };
    const key = (event) => {
      const by = { n: 1, p: -1 }[event.key];
      if (!by || event.ctrlKey || event.metaKey || event.altKey || event.target.closest(TYPED_INTO)) return;
      if (!el.closest(".wb-panel")?.contains(event.target)) return;
      event.preventDefault();
      step(by);
    };
    show();
    model.on("change:place change:count", show);
    document.addEventListener("keydown", key);
    return () => {
      model.off("change:place change:count", show);
      document.removeEventListener("keydown", key);
    };
  },
};
