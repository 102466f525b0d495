// Elements of the page, in one line each, and what several parts consist of; files that the browser saves.

export const SVG = "http://www.w3.org/2000/svg";
export const PREPARING = "preparing …";
export const ARROWS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export const counted = (number) => number.toLocaleString("en");

// An element with properties and attributes, or with a text.
export function element(tag, className, parent, more = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(typeof more === "string" ? { textContent: more } : more)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  if (parent) parent.append(made);
  return made;
}

export function drawn(tag, parent, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent?.append(made);
  return made;
}

// A button of a panel, in JupyterLab's look.
export function panelButton(className, parent, label, title, action) {
  const look = `jupyter-widgets jupyter-button widget-button ${className}`;
  const made = element("button", look, parent, { type: "button", textContent: label, title });
  made.addEventListener("click", action);
  return made;
}

// Says something else on a button for a while. It stays as wide as it was, so its neighbours do not move.
export function relabel(button, label) {
  button.style.minWidth = `${button.getBoundingClientRect().width}px`;
  button.textContent = label;
}

export function saveAs(name, content) {
  const link = element("a", "", null, { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // the browser reads it after the click
}

export function pushButton(parent, label, title, action) {
  const made = element("button", "wb-tool", parent, { type: "button", textContent: label, title });
  made.setAttribute("aria-label", title);
  made.addEventListener("click", action);
  return made;
}

// JupyterLab has shortcuts of single letters, which are not meant here.
export function keepKeys(root) {
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });
}

// A button that opens a small sheet over what follows; leaving the sheet or pressing Escape closes it.
export function sheet(parent, label, title) {
  const root = element("details", "wb-sheet", parent);
  const summary = element("summary", "wb-tool", root, { textContent: label, title });
  const content = element("div", "wb-sheet-content", root);
  root.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !root.contains(event.relatedTarget)) root.open = false;
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !root.open) return;
    root.open = false;
    summary.focus();
  });
  return { root, content };
}

let controls = 0;

export function labelled(parent, text, control) {
  controls += 1;
  control.id = `wb-control-${controls}-${Math.random().toString(36).slice(2)}`;
  const row = element("span", "wb-labelled", parent);
  element("label", "", row, { htmlFor: control.id, textContent: text });
  row.append(control);
  return control;
}

export function choice(parent, text, options) {
  const select = labelled(parent, text, element("select", "wb-choice"));
  for (const [value, name] of options) element("option", "", select, { value, textContent: name });
  return select;
}

// Buttons of which one is chosen; arrows go from one to the next.
export class Tabs {
  constructor(parent, label, choose, title = "") {
    this.choose = choose;
    this.root = element("div", "wb-tabs", parent, { role: "radiogroup", "aria-label": label, title });
    this.root.addEventListener("keydown", (event) => {
      const tabs = [...this.root.children];
      if (!(event.key in ARROWS) || !tabs.length) return;
      event.preventDefault();
      const next = tabs[(tabs.indexOf(event.target) + ARROWS[event.key] + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  }

  show(texts, chosen) {
    if (texts.join("\n") !== this.texts) {
      this.root.replaceChildren(...texts.map((textContent, place) => {
        const tab = element("button", "wb-tab", null, { type: "button", role: "radio", textContent });
        tab.addEventListener("click", () => this.choose(place));
        return tab;
      }));
    }
    this.texts = texts.join("\n");
    [...this.root.children].forEach((tab, place) => {
      tab.setAttribute("aria-checked", String(place === chosen));
      tab.tabIndex = place === chosen ? 0 : -1;
    });
  }
}

// What the keys of a part mean, over it; it has the focus while it is open.
export class Help {
  constructor(parent, title, keys, text = "") {
    this.root = element("div", "wb-help", parent, { role: "dialog", "aria-label": title, hidden: true, tabIndex: -1 });
    element("b", "", this.root, title[0].toUpperCase() + title.slice(1));
    const list = element("dl", "", this.root);
    for (const [key, meaning] of keys) {
      element("dt", "", list, key);
      element("dd", "", list, meaning);
    }
    if (text) element("p", "", this.root, text);
    pushButton(this.root, "close", "close this help", () => this.toggle(false));
    keepKeys(this.root);
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" || event.key === "?") this.toggle(false);
    });
  }

  toggle(open = this.root.hidden) {
    if (open) this.before = document.activeElement;
    this.root.hidden = !open;
    (open ? this.root : this.before)?.focus?.();
  }
}

// Asks Python as long as something is missing, at growing intervals.
export class Asking {
  constructor(isMissing, ask, soon = 300, latest = 30_000) {
    Object.assign(this, { isMissing, ask, soon, latest });
  }

  check(wait = this.soon) {
    if (!this.isMissing()) return this.stop();
    this.timer ??= setTimeout(() => this.now(Math.min(2 * wait, this.latest)), wait);
    return undefined;
  }

  now(wait = this.soon) {
    this.stop();
    if (!this.isMissing()) return;
    this.ask();
    this.check(wait);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
