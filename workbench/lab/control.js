// A control of native elements. Python owns the value: the browser sends only requests of the user, each with a running
// number, and shows what Python answers. Answers to earlier requests change nothing. One request is under way at a time;
// of those made meanwhile, the newest is sent next.

const PATIENCE = 5000; // ms after which a request without an answer no longer holds back the next one
const SLOW = 500; // ms after which the panel says that a request has no answer yet
const ONE_GESTURE = 1000; // ms between keys that count as one gesture, which is undone as a whole

function element(tag, className, parent, properties = {}) {
  const made = Object.assign(document.createElement(tag), properties);
  if (className) made.className = className;
  parent.append(made);
  return made;
}

class View {
  constructor(model, el) {
    this.model = model;
    this.root = element("div", "wb-control-row", el);
    this.number = model.get("shown").answered ?? 0;
    this.edited = false;
    this.keyed = 0;
    this.build(model.get("kind"), `wb-${Math.random().toString(36).slice(2)}`);
    this.follow = this.follow.bind(this);
    for (const name of ["shown", "texts", "positions", "least"]) model.on(`change:${name}`, this.follow);
    this.root.addEventListener("keydown", (event) => this.keep(event));
    this.show();
  }

  close() {
    for (const name of ["shown", "texts", "positions", "least"]) this.model.off(`change:${name}`, this.follow);
    clearTimeout(this.timer);
    this.answered();
    this.closed = true;
  }

  build(kind, id) {
    const [text, title] = [this.model.get("label"), this.model.get("meaning")];
    const label = { htmlFor: id, textContent: text, title };
    if (kind !== "toggle") element("label", "wb-control-name", this.root, label);
    if (kind === "slider") this.addSlider(id, text, title);
    if (kind === "text") this.addEntry({ id, title });
    if (kind === "choice") this.addList(id, title);
    if (kind === "toggle") {
      this.box = element("input", "", this.root, { type: "checkbox", id, title });
      this.box.addEventListener("change", () => this.choose(Number(this.box.checked)));
      element("label", "wb-control-name", this.root, label);
    }
    const unit = this.model.get("unit");
    if (unit) element("span", "wb-control-unit", this.root, { textContent: unit });
  }

  addSlider(id, text, title) {
    this.range = element("input", "", this.root, { type: "range", min: 0, step: 1, id, title });
    this.range.addEventListener("pointerdown", () => (this.gesture = Date.now()));
    this.range.addEventListener("keydown", () => {
      if (Date.now() - this.keyed > ONE_GESTURE) this.gesture = Date.now();
      this.keyed = Date.now();
    });
    this.range.addEventListener("input", () => {
      this.preview();
      this.ask({ position: Number(this.range.value) });
    });
    if (this.model.get("editable")) this.addEntry({ ariaLabel: `${text}, value`, title });
    else this.readout = element("output", "wb-control-readout", this.root, { htmlFor: id });
  }

  addEntry(properties) {
    this.entry = element("input", "wb-control-entry", this.root, {
      type: "text", autocomplete: "off", spellcheck: false, ...properties,
    });
    this.entry.addEventListener("input", () => (this.edited = true));
    this.entry.addEventListener("blur", () => this.edited && this.commit());
    this.entry.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.commit();
      if (event.key === "Escape") this.restore();
    });
  }

  addList(id, title) {
    this.list = element("select", "", this.root, { id, title });
    this.list.addEventListener("change", () => this.choose(this.list.selectedIndex));
  }

  // Requests.

  choose(position) {
    this.gesture = Date.now();
    this.ask({ position });
  }

  commit() {
    this.edited = false;
    if (this.root.closest("[inert]")) return; // nobody would answer
    this.gesture = Date.now();
    this.ask({ text: this.entry.value.trim() });
  }

  // Give up an entry: the value that holds is asked for, so that an error message goes away.
  restore() {
    this.entry.value = this.model.get("shown").text;
    if (this.edited || this.model.get("shown").refused !== null) this.commit();
  }

  ask(content) {
    this.number = Math.max(this.number, this.model.get("shown").answered ?? 0) + 1;
    this.waiting = { ...content, number: this.number, gesture: this.gesture ?? Date.now() };
    this.slow ??= setTimeout(() => this.announce("wb-unanswered"), SLOW);
    if (!this.underWay) this.send();
  }

  // The frame of the panel hears this, and calls `giveUp` when there is nobody left to answer.
  announce(event) {
    this.root.dispatchEvent(new CustomEvent(event, { bubbles: true, detail: this }));
  }

  answered() {
    if (!this.slow) return;
    clearTimeout(this.slow);
    this.slow = undefined;
    this.announce("wb-answered");
  }

  // Show the value that holds, as the figures do.
  giveUp() {
    this.number = this.model.get("shown").answered ?? 0;
    this.waiting = undefined;
    this.edited = false;
    this.proceed();
    this.answered();
    this.show();
  }

  send() {
    this.underWay = this.waiting.number;
    this.model.send(this.waiting);
    this.waiting = undefined;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.proceed(), PATIENCE);
  }

  proceed() {
    clearTimeout(this.timer);
    this.underWay = 0;
    if (this.waiting) this.send();
  }

  // Plain keys belong to the control; a notebook would take them for its own commands.
  keep(event) {
    const plain = !event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Tab";
    if (plain && !(event.shiftKey && event.key === "Enter")) event.stopPropagation();
  }

  // Answers. Traits that change together are reported one by one, so they are read when all have arrived.

  follow() {
    if (this.following) return;
    this.following = true;
    queueMicrotask(() => {
      this.following = false;
      if (this.closed) return;
      if (this.underWay && this.model.get("shown").answered >= this.underWay) this.proceed();
      this.show();
    });
  }

  show() {
    const { position = 0, text = "", refused = null, answered = 0 } = this.model.get("shown");
    if (answered < this.number) return;
    this.answered();
    if (this.list) this.fill();
    if (this.list) this.list.selectedIndex = position;
    if (this.box) this.box.checked = position === 1;
    if (this.range) {
      this.range.max = this.model.get("positions") - 1;
      this.range.disabled = this.model.get("positions") < 2;
      this.range.value = position;
      this.tell(text);
    }
    if (this.entry && !this.edited) {
      this.entry.value = this.entry.defaultValue = refused ?? text;
      this.entry.setAttribute("aria-invalid", refused !== null);
    }
  }

  fill() {
    const texts = this.model.get("texts");
    const there = [...this.list.options].map((option) => option.text);
    if (texts.join("\n") === there.join("\n")) return;
    this.list.replaceChildren(...texts.map((text) => new Option(text)));
  }

  // What the position stands for, until Python answers.
  preview() {
    const position = Number(this.range.value);
    const text = this.model.get("texts")[position] ?? String(this.model.get("least") + position);
    this.tell(text);
    if (this.entry) {
      this.edited = false;
      this.entry.value = text;
      this.entry.setAttribute("aria-invalid", false);
    }
  }

  tell(text) {
    const spoken = [text, this.model.get("shown").unit].filter(Boolean).join(" ");
    this.range.setAttribute("aria-valuetext", spoken);
    if (this.readout) this.readout.textContent = text;
  }
}

export default {
  render({ model, el }) {
    const view = new View(model, el);
    return () => view.close();
  },
};
