// Buttons to undo and redo. Ctrl+Z and Ctrl+Shift+Z do the same anywhere in the panel, except in an entry that is being edited.

const STEPS = [
  ["undo", "↶", "undo the last change (Ctrl+Z)"],
  ["redo", "↷", "redo it (Ctrl+Shift+Z)"],
];

class View {
  constructor(model, el) {
    this.model = model;
    this.el = el;
    this.buttons = STEPS.map(([step, sign, title]) => {
      const button = document.createElement("button");
      button.className = `jupyter-widgets jupyter-button widget-button wb-${step}`;
      Object.assign(button, { textContent: sign, title });
      Object.assign(button.style, { width: "34px", padding: "0" });
      button.setAttribute("aria-label", step);
      button.addEventListener("click", () => model.send({ step }));
      el.append(button);
      return button;
    });
    this.press = this.press.bind(this);
    this.follow = this.follow.bind(this);
    document.addEventListener("keydown", this.press, true); // before the notebook, which has these keys too
    model.on("change:ends", this.follow);
    this.follow();
  }

  follow() {
    this.model.get("ends").forEach((there, number) => (this.buttons[number].disabled = !there));
  }

  press(event) {
    const panel = this.el.closest(".wb-panel");
    if (!panel?.contains(event.target) || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    const { value, defaultValue } = event.target;
    if (event.target.matches("input[type=text], textarea") && value !== defaultValue) return;
    const step = { z: event.shiftKey ? 1 : 0, y: 1 }[event.key.toLowerCase()];
    if (step === undefined) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!this.buttons[step].disabled) this.model.send({ step: STEPS[step][0] });
  }

  close() {
    document.removeEventListener("keydown", this.press, true);
    this.model.off("change:ends", this.follow);
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.close();
  },
};
